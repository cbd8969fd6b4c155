"""Where and when numbers came about: time, versions and machine."""

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cbrank.version import __version__

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "joblib")


def now() -> str:
    """Return the time of day, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of cbrank, of Python and of libraries."""
    ours = {"cbrank": __version__, "python": platform.python_version()}
    return ours | {name: version(name) for name in libraries}


def machine() -> dict[str, Any]:
    """Describe the machine."""
    return {
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "cpu": _cpu_model() or platform.processor() or platform.machine(),
    }


def _cpu_model() -> str:
    """Return the processor's name where the system tells it in a file."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else ""
