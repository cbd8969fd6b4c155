"""``curves.csv``: how the ranking of rows not yet seen improves along the stream."""

import csv
import io
import itertools
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from cbrank.atomic import atomic_write_text
from cbrank.methods import METHODS
from cbrank.study.settings import Settings
from cbrank.study.splits import split
from cbrank.study.tasks import Task, place

COLUMNS = ("dataset", "scaling", "method", "rows", "auc")

_POINTS = 25  # of a curve: enough for its shape, few enough for one file of all curves
_CHUNKS = 120  # in which a curve learns: short ones near its beginning, where it moves most
_LATEST = 100  # rows that a new one is ranked among: enough pairs, at a cost that stays the same

Key = tuple[str, str, str]  # data set, scaling, method


class Point(NamedTuple):
    """The share of pairs among the first `rows` rows ranked right before they were learned from."""

    rows: int
    auc: float


class CurvesFile:
    """``curves.csv`` of a study.

    Parameters
    ----------
    path : Path
        The file; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.points: dict[Key, list[Point]] = {}
        if path.exists():
            for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
                key = line["dataset"], line["scaling"], line["method"]
                point = Point(int(line["rows"]), float(line["auc"]))
                self.points.setdefault(key, []).append(point)

    def remaining(self, tasks: Iterable[Task]) -> list[Task]:
        """Return the tasks to draw: the first run of what streams over a benchmark set."""
        return [
            task
            for task in tasks
            if task.run == 0
            and task.table == "benchmark"
            and METHODS[task.method].group != "ceiling"
            and _key(task) not in self.points
        ]

    def add(self, task: Task, points: Iterable[Point]) -> None:
        """Take in a curve."""
        self.points[_key(task)] = list(points)

    def write(self) -> None:
        """Write all curves, in order."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for key in sorted(self.points, key=_place):
            writer.writerows((*key, *point) for point in self.points[key])
        atomic_write_text(self.path, file.getvalue())


def trace(task: Task, parameter: float, settings: Settings) -> tuple[Task, list[Point]]:
    """Stream a task's training rows through its method and measure the ranking on the way.

    The points stand evenly on a logarithmic axis, from the first pair on.

    Examples
    --------
    >>> from cbrank.study.tasks import plan
    >>> task, points = trace(plan(["glass"], ["Uni-Exp"])[0], 1.0, Settings())
    >>> points[-1].rows
    172
    """
    rows = split(task.dataset, task.run, task.scaling, settings)
    ranker = METHODS[task.method].new(parameter, settings.run_seed(task.dataset, task.run))
    ends = set(_evenly(10, len(rows.y), _POINTS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return task, [point for point in _progress(ranker, rows.X, rows.y) if point.rows in ends]


def _progress(ranker: Any, X: Any, y: NDArray[np.int64]) -> Iterator[Point]:
    """Rank each chunk among the latest rows before it is learned from.

    A chunk is at most a tenth of the rows before it. Only scores of one and the same model are
    compared: those of models apart in time have no common scale.
    """
    edges = {0, len(y), *_evenly(1, len(y), _CHUNKS), *_evenly(10, len(y), _POINTS)}
    right, pairs = 0.0, 0
    for begin, end in itertools.pairwise(sorted(edges)):
        if begin:
            first = max(0, begin - _LATEST)
            ahead = _leads(ranker.decision_function(X[first:end]), y[first:end], begin - first)
            right, pairs = right + np.sum(ahead > 0) + np.sum(ahead == 0) / 2, pairs + ahead.size
        ranker.partial_fit(X[begin:end], y[begin:end], classes=[0, 1])
        if pairs:
            yield Point(end, float(right / pairs))


def _leads(scores: NDArray[np.float64], y: NDArray[np.int64], new: int) -> NDArray[np.float64]:
    """Return how far positives lead negatives, in all pairs with a row from the `new`-th on."""
    lead = scores[y == 1][:, None] - scores[y == 0][None, :]
    rows = np.arange(len(y))
    fresh = (rows[y == 1] >= new)[:, None] | (rows[y == 0] >= new)[None, :]
    ahead: NDArray[np.float64] = lead[fresh]
    return ahead


def _evenly(first: int, last: int, most: int) -> list[int]:
    """Return at most so many whole numbers that stand evenly on a logarithmic axis."""
    return np.unique(np.geomspace(first, last, most).round().astype(int)).tolist()  # type: ignore[no-any-return]


def _key(task: Task) -> Key:
    return task.dataset, task.scaling, task.method


def _place(key: Key) -> tuple[int, ...]:
    dataset, scaling, method = key
    return place(Task("benchmark", dataset, scaling, method, 0))  # type: ignore[arg-type]
