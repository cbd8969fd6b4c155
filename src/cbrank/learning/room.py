"""Refuse a model that the machine cannot hold, before memory is asked for."""

import contextlib
import os
from pathlib import Path

_LITTLE = 2**20  # bytes that any machine has


def _available_bytes() -> float:
    """Return how much memory this process may still take, as far as the system tells."""
    known = [float("inf")]
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                known.append(int(line.split()[1]) * 1024.0)
    with contextlib.suppress(OSError, ValueError):
        known.append(float(Path("/sys/fs/cgroup/memory.max").read_text()))
    if len(known) == 1 and hasattr(os, "sysconf"):
        known.append(float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES"))
    return min(known)


def refuse_if_too_large(n_features: int, matrices: int, cure: str) -> None:
    """Raise a ValueError where `matrices` of d x d numbers will not fit memory."""
    refuse_beyond(8.0 * matrices * n_features**2, f"{n_features} features squared take", cure)


def refuse_beyond(needed: float, what: str, cure: str) -> None:
    """Raise a ValueError where a model of so many bytes will not fit memory."""
    if needed < _LITTLE:
        return
    available = _available_bytes()
    if needed > 0.9 * available:
        raise ValueError(
            f"{what} {needed / 2**30:.1f} GiB for this model, and {available / 2**30:.1f} GiB are "
            f"available: {cure}."
        )
