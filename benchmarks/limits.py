"""The machine's limits: how fast it multiplies matrices, and loads and stores blocks of numbers.

The loops are compiled with the options of the kernels, and run over blocks of the size of Sigma.
"""

import time
from typing import Any

import numba
import numpy as np

from benchmarks.processes import Process, matrix_rate

SIZES = (8, 20, 30, 54, 100, 128, 200, 500, 1000, 2000, 5000)
"""Columns of Sigma whose size blocks have: 0.5 KiB, far inside the fastest cache, to 200 MB."""

_NUMBERS = 4e6  # loaded in a repeat: a millisecond or more
_LINE = 64  # bytes of a cache line, at which blocks begin: loads across two lines take longer

_loop = numba.njit(error_model="numpy", fastmath={"reassoc", "contract"})


@_loop
def load(block, times):
    """Add up a block again and again."""
    total = 0.0
    for k in range(times):
        part = 0.0
        for i in range(block.size):
            part += block[i]
        block[k % block.size] = part * 1e-12  # or once would do
        total = max(total, part)
    return total


@_loop
def change(block, times):
    """Load, change and store each number of a block again and again."""
    for k in range(times):
        step = 1e-9 * k
        for i in range(block.size):
            block[i] += step
    return block[0]


class Rates:
    """Measures the limits, inside a process with one thread."""

    def matrix(self, repeats: int) -> float:
        """Return the operations a second of a matrix product, the best of some."""
        return max(matrix_rate() for _ in range(repeats))

    def bytes(self, d: int, repeats: int) -> dict[str, float]:
        """Return the bytes a second of a block of d x d numbers, loaded and changed."""
        block = _aligned(d * d)
        times = max(int(_NUMBERS / block.size), 1)
        found = {"features": d, "loads": 0.0, "changes": 0.0}
        for _ in range(repeats):
            for name, loop in (("loads", load), ("changes", change)):
                loop(block, 1)
                begin = time.perf_counter()
                loop(block, times)
                rate = block.nbytes * times / (time.perf_counter() - begin)
                found[name] = max(found[name], rate)
        return found


def _aligned(size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    room = np.ones(size + _LINE // 8)
    begin = -room.ctypes.data % _LINE // 8
    return room[begin : begin + size]


def limits(seed: int, quick: bool) -> dict[str, Any]:  # noqa: ARG001
    """Measure the rate of matrix products, and of loads and stores at the sizes of Sigma."""
    repeats = 5 if quick else 25
    with Process() as process:
        process.make(Rates)
        matrix = process.call("matrix", repeats)
        return {"matrix": matrix, "sizes": [process.call("bytes", d, repeats) for d in SIZES]}
