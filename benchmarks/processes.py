"""Fresh processes with one thread, and how time and memory are taken in them."""

import gc
import logging
import multiprocessing
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

import numpy as np

_ONE_THREAD = {
    f"{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMBA")
}
_TIMEOUT = 900  # seconds for a call: the longest took 13, and slow machines should not fail
_SIDE = (
    768  # large enough for the full rate of a matrix product, small enough for some 20 milliseconds
)


class ProcessFailed(Exception):
    """A process could not do what it was asked for; the text says why."""


class Process:
    """A fresh process that holds one object and answers calls of its methods, one at a time.

    Parameters
    ----------
    environment : dict of str to str, optional
        Added to the process's environment, which allows one thread.
    timeout : float
        Seconds that a call may take.
    """

    def __init__(
        self, environment: dict[str, str] | None = None, timeout: float = _TIMEOUT
    ) -> None:
        self._timeout = timeout
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _environment(_ONE_THREAD | (environment or {})):
            self._process.start()
        theirs.close()

    def make(self, kind: Callable[..., Any], *arguments: Any) -> Self:
        """Make the object, in the process; `kind` must have an importable name."""
        self._send((kind, arguments))
        return self

    def ask(self, method: str, *arguments: Any) -> None:
        """Call a method and do not wait; `answer` returns its value."""
        self._send((method, arguments))

    def answer(self) -> Any:
        """Return what the last call returned, or raise `ProcessFailed`."""
        try:
            if not self._pipe.poll(self._timeout):
                raise ProcessFailed(f"no answer within {self._timeout} seconds")
            value = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join(5)
            code = self._process.exitcode
            raise ProcessFailed(f"the process ended unexpectedly (exit code {code})") from error
        if isinstance(value, ProcessFailed):
            raise value
        return value

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method and wait for its value."""
        self.ask(method, *arguments)
        return self.answer()

    def _send(self, message: Any) -> None:
        try:
            self._pipe.send(message)
        except OSError as error:
            raise ProcessFailed("the process ended unexpectedly") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.terminate()
        self._process.join()


def _serve(pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends us
    logging.getLogger("cbrank").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    try:
        kind, arguments = pipe.recv()
        served = kind(*arguments)
        while True:
            method, arguments = pipe.recv()
            pipe.send(getattr(served, method)(*arguments))
    except EOFError:
        pass
    except Exception as error:  # noqa: BLE001
        pipe.send(ProcessFailed(f"{type(error).__name__}: {_one_line(str(error))}"))


def _one_line(text: str) -> str:
    """Put a message on one line, without the file name that ends an import error."""
    return " ".join(re.sub(r" \([^()]*\.py\)$", "", text).split())


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def timed(do: Callable[..., Any], *arguments: Any) -> tuple[float, float]:
    """Return the seconds and MiB that a call takes, without garbage collection, as `timeit` does."""
    gc.collect()
    gc.disable()
    try:
        peak, begin = PeakMemory(), time.perf_counter()
        do(*arguments)
        return time.perf_counter() - begin, peak.mib()
    finally:
        gc.enable()


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


class PeakMemory:
    """How far the process's memory rises above what it is when this object is made."""

    def __init__(self) -> None:
        self._resettable = _reset_peak()
        self._before = _status("VmRSS") if self._resettable else _lifetime_peak()

    def mib(self) -> float:
        """Return the highest rise so far, in MiB."""
        now = _status("VmHWM") if self._resettable else _lifetime_peak()
        return max(now - self._before, 0.0) / 1024


def _reset_peak() -> bool:
    """Make the system forget the peak so far; only Linux can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return float(next(line for line in lines if line.startswith(name)).split()[1])


def _lifetime_peak() -> float:
    """Return the highest memory of the process's life, in KiB."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:  # Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform == "darwin" else float(peak)
