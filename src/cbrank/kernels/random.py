"""Random numbers whose whole state is one array of one ``uint64``, so that it can be saved.

The generator is the 64-bit multiply-with-carry MWC64X. Its products never exceed 64 bits, so
compiled code and plain Python agree.
"""

import math

import numpy as np

from cbrank.kernels._jit import jit

_MULTIPLIER = np.uint64(4294883355)
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
    high = _next32(state) >> _FIVE
    low = _next32(state) >> _SIX
    return (float(high) * 67108864.0 + float(low)) / 9007199254740992.0


@jit
def normal(state):
    """Draw from the standard normal distribution (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(state)))
    return radius * math.cos(2.0 * math.pi * uniform(state))
