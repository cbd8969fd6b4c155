"""Random numbers whose whole state is one ``uint64``, so that a model file can hold it.

The generator is the multiply-with-carry MWC64X (Thomas): 32 random bits a call, which is
ample for choosing slots of a buffer. Its products never exceed 64 bits, so that the compiled code
and the plain Python of the tests draw the same numbers. Numba's own generator has its state in the
thread, where it can be neither saved nor kept apart for two rankers.
"""

import math

import numpy as np

from cbrank.kernels._jit import jit

_MULTIPLIER = np.uint64(4294883355)  # MWC64X's: the period is about 2^63
_LOW = np.uint64(0xFFFFFFFF)
_HALF, _FIVE, _SIX = np.uint64(32), np.uint64(5), np.uint64(6)


@jit
def _next32(state):
    x = state[0] & _LOW
    carry = state[0] >> _HALF
    state[0] = _MULTIPLIER * x + carry
    return x ^ carry


@jit
def uniform(state):
    """Draw from [0, 1) with 53 random bits."""
    # 27 and 26 bits of two draws: (high * 2^26 + low) / 2^53, as Python's random.random has it.
    high = _next32(state) >> _FIVE
    low = _next32(state) >> _SIX
    return (float(high) * 67108864.0 + float(low)) / 9007199254740992.0


@jit
def normal(state):
    """Draw from the standard normal distribution (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(state)))
    return radius * math.cos(2.0 * math.pi * uniform(state))
