"""``curves.csv``: how the ranking of rows not yet seen improves along the stream."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from cbrank.atomic import atomic_write_text
from cbrank.methods import METHODS
from cbrank.study.tasks import Task, place

COLUMNS = ("dataset", "scaling", "method", "rows", "auc")

Key = tuple[str, str, str]  # data set, scaling, method


class Point(NamedTuple):
    """A point of a learning curve.

    `auc` is the mean AUC of the blocks among the first `rows` rows, each ranked before any of its
    rows was learned from.
    """

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
        """Return the tasks that lack a curve: first runs of online methods on benchmark sets."""
        return [
            task
            for task in tasks
            if task.run == 0
            and task.table == "benchmark"
            and METHODS[task.method].group != "ceiling"
            and _key(task) not in self.points
        ]

    def add(self, task: Task, points: Iterable[Point]) -> None:
        """Add a curve."""
        self.points[_key(task)] = list(points)

    def write(self) -> None:
        """Write all curves, in order."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for key in sorted(self.points, key=_place):
            writer.writerows((*key, *point) for point in self.points[key])
        atomic_write_text(self.path, file.getvalue())


def _key(task: Task) -> Key:
    return task.dataset, task.scaling, task.method


def _place(key: Key) -> tuple[int, ...]:
    dataset, scaling, method = key
    return place(Task("benchmark", dataset, scaling, method, 0))  # type: ignore[arg-type]
