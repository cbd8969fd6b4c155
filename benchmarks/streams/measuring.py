"""The streams, how they are read, test-then-learn in a process of its own, and the measures."""

import lzma
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.comparison import table_path, why_no_data_set, why_no_table
from benchmarks.processes import PeakMemory, Process
from benchmarks.streams.learners import Learner
from docs import one_class

WINDOW = 1000
"""Rows of a window, whose AUC is measured; also of a call to the process that learns."""

BINS = 15
CLOSEST = 1e-6
"""How close to 0 and 1 a probability may come before its log loss is taken: trees give 0 and 1."""

_WARM_UP_ROWS = 60  # that a throw-away learner takes before the clock starts

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


# Streams ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stream:
    """A table whose rows are read in the order of the file.

    Attributes
    ----------
    name : str
        Its name on the command line, and of its file ``tables/NAME.csv.xz``.
    title : str
        What it is, for figures and tables.
    order : str
        What the order of its rows is.
    label : str
        The label's column, the last one; 1 is positive. Empty if the stream is the data set of
        this name in `cbrank.datasets`.
    most : int or None
        How many rows are read, if not all.
    """

    name: str
    title: str
    order: str
    label: str = ""
    most: int | None = None

    @property
    def size(self) -> int:
        """Rough number of rows, for the time that remains."""
        return self.most or 30_000

    def missing(self) -> str:
        """Say which file is missing and where it should lie; nothing if it is there."""
        return why_no_table(self.name) if self.label else why_no_data_set(self.name)

    def load(self) -> tuple[Floats, Labels]:
        """Return rows and labels in the order of the file.

        Raises
        ------
        ValueError
            If the table is not numbers with the label last.
        """
        if not self.label:
            X, y = one_class.load(self.name)
            return np.asarray(X[: self.most]), y[: self.most]
        return self._read(table_path(self.name))

    def _read(self, path: Path) -> tuple[Floats, Labels]:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            last = file.readline().rstrip("\n").split(",")[-1]
            if last != self.label:
                raise ValueError(f"{path}: the last column is {last!r} and not {self.label!r}.")
            try:
                table = np.loadtxt(file, delimiter=",", ndmin=2, max_rows=self.most)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
        return np.ascontiguousarray(table[:, :-1]), (table[:, -1] == 1.0).astype(np.int64)


STREAMS = [
    Stream(
        "elec",
        "elec: does the price of electricity rise?",
        "half-hours from 1996 to 1998",
        label="class",
    ),
    Stream("weather", "weather: does it rain?", "days from 1949 to 1999", label="target"),
    Stream(
        "covtype",
        "covtype: is it lodgepole pine?",
        (
            "that of the public file, first 15,120 rows of which each of the seven kinds of forest "
            "has as many, then neighbours on the map one after the other"
        ),
        most=100_000,
    ),
]


# Test, then learn ---------------------------------------------------------------------------------


class Run:
    """A method that predicts the rows of a stream and learns from them, inside its process."""

    def __init__(self, make: Callable[[], Learner], X: Floats, y: Labels) -> None:
        self.make, self.X, self.y = make, X, y

    def warm_up(self) -> None:
        """Let a learner that is thrown away load and compile what it needs, then begin."""
        self.start()
        self.go_on(0, min(_WARM_UP_ROWS, len(self.y)))
        self.start()
        self._memory = PeakMemory()

    def start(self) -> None:
        """Begin the stream with a new learner."""
        self.learner = self.make()
        other = np.flatnonzero(self.y != self.y[0])
        self._both_known = int(other[0]) + 1 if len(other) else len(self.y)

    def go_on(self, begin: int, end: int) -> tuple[Floats, float]:
        """Return the probabilities of rows `begin` to `end`, and the seconds that these rows took.

        A row's is one half until a row of each class has been learned from.
        """
        learner, at = self.learner, 0
        blocks = learner.prepare(self.X[begin:end], self.y[begin:end])
        probabilities = np.full(end - begin, 0.5)
        clock = time.perf_counter()
        for block in blocks:
            if begin + at >= self._both_known:
                probabilities[at : at + learner.rows] = learner.predict(block)
            learner.learn(block)
            at += learner.rows
        return probabilities, time.perf_counter() - clock

    def mib(self) -> float:
        """Return how far memory rose since the warm-up."""
        return self._memory.mib()

    def reported(self) -> float:
        """Return the AUC that the learner reports of itself."""
        return self.learner.reported()


class Foretold(NamedTuple):
    """What a method said of a stream's rows before it knew their labels, and at what cost.

    Attributes
    ----------
    probabilities : ndarray of float64
        Of every row, that it is positive.
    microseconds : float
        The time of a row, to predict and to learn.
    mib : float
        How far the process's memory rose meanwhile.
    reported : float
        The AUC that the method reports of itself; NaN if it reports none.
    """

    probabilities: Floats
    microseconds: float
    mib: float
    reported: float


def foretell(make: Callable[[], Learner], X: Floats, y: Labels) -> Foretold:
    """Let a method predict and learn a stream in a fresh process with one thread.

    Raises
    ------
    ProcessFailed
        If the method fails; the text says why.
    """
    probabilities, seconds = [], 0.0
    with Process() as process:
        process.make(Run, make, X, y).call("warm_up")
        for begin in range(0, len(y), WINDOW):
            part, taken = process.call("go_on", begin, min(begin + WINDOW, len(y)))
            probabilities.append(part)
            seconds += taken
        mib, reported = process.call("mib"), process.call("reported")
    return Foretold(np.concatenate(probabilities), 1e6 * seconds / len(y), mib, reported)


def measure(make: Callable[[], Learner], X: Floats, y: Labels) -> dict[str, Any]:
    """Return the measures of what a method foretells, by name, with its cost and what it reports.

    Raises
    ------
    ProcessFailed
        If the method fails; the text says why.
    """
    told = foretell(make, X, y)
    cost = {"microseconds": told.microseconds, "reported": told.reported}
    return measures(y, told.probabilities) | cost


# Measures -----------------------------------------------------------------------------------------


def measures(y: Labels, probabilities: Floats) -> dict[str, Any]:
    """Measure probabilities that were given before the labels were known.

    Parameters
    ----------
    y : ndarray of int64
        Labels, 0 and 1.
    probabilities : ndarray of float64
        Those of label 1.

    Returns
    -------
    dict
        ``windows``, the AUC of each full window of 1,000 rows, NaN if it has one class;
        ``window_auc``, their mean; ``auc``, ``log_loss`` and ``calibration_error`` of the whole.

    Examples
    --------
    >>> y = np.tile([0, 1], 1000)
    >>> measured = measures(y, np.where(y == 1, 0.8, 0.4))
    >>> measured["windows"], measured["auc"], round(measured["calibration_error"], 3)
    ([1.0, 1.0], 1.0, 0.286)
    """
    windows = [auc(y[begin:end], probabilities[begin:end]) for begin, end in _windows(len(y))]
    known = [value for value in windows if not math.isnan(value)]
    return {
        "windows": windows,
        "window_auc": sum(known) / len(known) if known else math.nan,
        "auc": auc(y, probabilities),
        "log_loss": log_loss(y, probabilities),
        "calibration_error": calibration_error(y, probabilities),
    }


def facts(X: Floats, y: Labels) -> dict[str, Any]:
    """Return what a stream is like."""
    return {
        "rows": len(y),
        "features": X.shape[1],
        "positives": int(y.sum()),
        "shares": shares(y),
    }


def shares(y: Labels) -> list[float]:
    """Return the share of positive rows in each full window."""
    return [float(y[begin:end].mean()) for begin, end in _windows(len(y))]


def _windows(rows: int) -> Iterator[tuple[int, int]]:
    return ((end - WINDOW, end) for end in range(WINDOW, rows + 1, WINDOW))


def auc(y: Labels, scores: Floats) -> float:
    """Return the area under the ROC curve; NaN if there is one class only."""
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    return float(roc_auc_score(y, scores)) if y.min() < y.max() else math.nan


def log_loss(y: Labels, probabilities: Floats) -> float:
    """Return the mean of minus the logarithm of the probability that was given to the label."""
    of_label = np.where(y == 1, probabilities, 1.0 - probabilities)
    return float(-np.log(np.clip(of_label, CLOSEST, 1.0 - CLOSEST)).mean())


def calibration_error(y: Labels, probabilities: Floats) -> float:
    """Return the expected calibration error over 15 bins of as many rows each.

    It is the mean distance between the mean probability of a bin and its share of positive rows.
    Rows of the same probability count as so many times their mean label: which of them come into
    which bin then makes no difference.

    Examples
    --------
    >>> calibration_error(np.array([0, 1] * 30), np.full(60, 0.5))
    0.0
    """
    _, same = np.unique(probabilities, return_inverse=True)
    labels = (np.bincount(same, y) / np.bincount(same))[same]
    bins = np.array_split(np.argsort(probabilities), BINS)
    gaps = [abs(float((probabilities[rows] - labels[rows]).sum())) for rows in bins]
    return sum(gaps) / len(y)
