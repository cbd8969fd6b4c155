"""A process that does one thing, alone and with one thread."""

import gc
import logging
import math
import multiprocessing
import os
import re
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Self

from cbrank.bench.machine import Peak, matrix_rate
from cbrank.bench.peers import PEERS
from cbrank.bench.rows import Rows

_ONE_THREAD = {
    f"{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMBA")
}
_WARM_UP = 60  # rows that a throw-away learner takes first
_PATIENCE = 900  # seconds for an answer


class Failed(Exception):
    """A process could not do what it was asked for; the text says why."""


class Turn(NamedTuple):
    """What a peer did with a chunk.

    Attributes
    ----------
    rows : int
        How many it learned from.
    seconds : float
        How long that took.
    memory : float
        How far the process's memory rose, in MiB.
    pairs, updates : int
        CBR's pairs, and those that fired.
    rate : float
        Operations per second of a matrix product just before, where that is of interest.
    """

    rows: int
    seconds: float
    memory: float
    pairs: int = 0
    updates: int = 0
    rate: float = 0.0


class End(NamedTuple):
    """What a peer has to say at the end of a pass: its AUC on the rows held out, and more."""

    auc: float
    difference: float
    batch: Turn | None


class Contestant:
    """A peer at work on the rows of a workload, in its own process."""

    def __init__(self, name: str, rows: Rows) -> None:
        self.make, self.rows = PEERS[name].make, rows

    def start(self) -> None:
        """Begin the stream anew."""
        self.learner = self.make()

    def warm_up(self) -> None:
        """Let a learner that is thrown away load and compile what it needs."""
        self.start()
        self.turn(0, min(_WARM_UP, len(self.rows.y)))
        self.learner.finish()
        self.learner.scores(self.rows.X_held[:2])

    def turn(self, begin: int, end: int) -> Turn:
        """Go on learning from rows `begin` to `end`."""
        rows = self.learner.prepare(self.rows.X[begin:end], self.rows.y[begin:end])
        pairs, updates = self.learner.counts()
        rate = matrix_rate() if self.learner.matrices else 0.0
        seconds, memory = _timed(self.learner.learn, rows)
        met, fired = self.learner.counts()
        learned = self.learner.learned or end - begin
        return Turn(learned, seconds, memory, met - pairs, fired - updates, rate)

    def finish(self) -> End:
        """End the pass."""
        from sklearn.metrics import roc_auc_score  # noqa: PLC0415

        taken = _timed(self.learner.finish)
        scores = self.learner.scores(self.rows.X_held)
        return End(
            auc=math.nan if scores is None else float(roc_auc_score(self.rows.y_held, scores)),
            difference=self.learner.difference(),
            batch=Turn(len(self.rows.y), *taken) if self.learner.batch else None,
        )


def _timed(do: Callable[..., Any], *arguments: Any) -> tuple[float, float]:
    """Return seconds and MiB that a call takes, without garbage collection, as `timeit` does."""
    gc.collect()
    gc.disable()
    try:
        peak, begin = Peak(), time.perf_counter()
        do(*arguments)
        return time.perf_counter() - begin, peak.mib()
    finally:
        gc.enable()


class Process:
    """A fresh process that answers calls of an object's methods, one at a time.

    Parameters
    ----------
    environment : dict of str to str, optional
        Added to the process's environment, which allows one thread.
    """

    def __init__(self, environment: dict[str, str] | None = None) -> None:
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
        """Call a method; `answer` returns its value."""
        self._send((method, arguments))

    def answer(self) -> Any:
        """Return what the last call returned, or raise `Failed`."""
        try:
            if not self._pipe.poll(_PATIENCE):
                raise Failed(f"no answer within {_PATIENCE} seconds")
            value = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join(5)
            code = self._process.exitcode
            raise Failed(f"the process ended suddenly (exit code {code})") from error
        if isinstance(value, Failed):
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
            raise Failed("the process ended suddenly") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.terminate()
        self._process.join()


def _serve(pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
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
        pipe.send(Failed(f"{type(error).__name__}: {_one_line(str(error))}"))


def _one_line(text: str) -> str:
    """Return a message for a report: in one line, without the paths that imports add."""
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
