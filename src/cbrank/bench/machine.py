"""What the machine can do, and what CBR asks of it."""

import sys
import time
from pathlib import Path

import numpy as np

_SIDE = 768


def matrix_rate() -> float:
    """Measure the operations per second of a matrix product, the better of two."""
    matrix = np.random.default_rng(0).standard_normal((_SIDE, _SIDE))
    product = np.empty_like(matrix)
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        np.matmul(matrix, matrix, out=product)
        seconds.append(time.perf_counter() - begin)
    return 2.0 * _SIDE**3 / min(seconds)


def operations(d: int, M: int, rows: int, updates: int) -> float:
    """Count the additions and multiplications of CBR's sweep with full covariance.

    Up to 127 columns a row takes one product with Sigma, 2 d^2, and the margins of its M pairs,
    3 M d; a pair that fires takes another, 2 d^2, and a rank-one update, 2 d^2. In blocks a row
    takes 2 d^2; a pair that fires takes d^2 for one triangle of its rank-one matrix, and 8 M d
    to bring scores and products of both buffers up to date. Pairs that are looked at and do not
    fire, and the corrections for updates that wait, are not counted.

    Parameters
    ----------
    d, M : int
        Features, and buffered rows of each class.
    rows, updates : int
        Rows learned from, and pairs that fired.

    Returns
    -------
    float
        The count.
    """
    from cbrank.kernels.blocked import WORTHWHILE  # noqa: PLC0415

    if d < WORTHWHILE:
        return rows * (2.0 * d * d + 3.0 * M * d) + updates * 4.0 * d * d
    return rows * 2.0 * d * d + updates * (1.0 * d * d + 8.0 * M * d)


class Peak:
    """How far the process's memory rises above where it is now."""

    def __init__(self) -> None:
        self._resettable = _reset()
        self._before = _status("VmRSS") if self._resettable else _most()

    def mib(self) -> float:
        """Return the highest rise so far, in MiB."""
        now = _status("VmHWM") if self._resettable else _most()
        return max(now - self._before, 0.0) / 1024


def _reset() -> bool:
    """Make the system forget the highest memory so far, where it can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return float(next(line for line in lines if line.startswith(name)).split()[1])


def _most() -> float:
    """Return the highest memory of the process's life, in KiB."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:  # Windows
        return 0.0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1024 if sys.platform == "darwin" else float(most)
