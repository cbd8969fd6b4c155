"""``results.csv``: one line for each finished task, safe against a sudden end."""

import csv
import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from math import nan
from pathlib import Path
from typing import Any, Self

from cbrank.atomic import atomic_write_text
from cbrank.datasets.registry import info
from cbrank.methods import find
from cbrank.study.settings import Settings, StudyError
from cbrank.study.tasks import Task, place

COLUMNS = (
    "table", "dataset", "scaling", "method", "run", "seed", "auc", "accuracy", "accuracy_held",
    "balanced_held", "parameter", "lowest", "highest", "tune_seconds", "fit_seconds",
    "train_rows", "test_rows", "features", "positives", "sample", "diverged", "status", "error",
)  # fmt: skip

Line = dict[str, str]


class ResultsFile:
    """``results.csv`` of a study that is being run.

    Parameters
    ----------
    path : Path
        The file; it need not exist yet.

    Raises
    ------
    StudyError
        If the file is no such table, or has lines of unknown data sets or methods.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = read_lines(path)
        for task in self.lines:
            try:
                info(task.dataset)
                find(task.method)
            except ValueError as error:
                raise StudyError(
                    f"{path} has results that this version cannot go on with: {error} Remove "
                    "these lines or use `fresh=True`."
                ) from error

    def check_seeds(self, settings: Settings) -> None:
        """Refuse to go on with lines of another seed."""
        for task, line in self.lines.items():
            if line["seed"] != str(settings.run_seed(task.dataset, task.run)):
                raise StudyError(
                    f"{self.path} was written with another `seed` than {settings.seed}: give "
                    "that seed or another `folder` to keep it, or `fresh=True` to start anew."
                )

    def remaining(self, tasks: Iterable[Task]) -> list[Task]:
        """Return the tasks that have no line yet, or one that says they failed."""
        return [task for task in tasks if self.lines.get(task, {}).get("status") != "ok"]

    def append(self, values: Mapping[str, Any]) -> None:
        """Add a line, and see it onto the disk."""
        text = _text([values])
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        line = next(csv.DictReader(io.StringIO(text), COLUMNS))
        self.lines[task_of(line)] = line

    def write(self) -> None:
        """Write the file anew, in order and with the last line of each task only."""
        lines = [self.lines[task] for task in sorted(self.lines, key=place)]
        atomic_write_text(self.path, ",".join(COLUMNS) + "\n" + _text(lines))

    def failures(self) -> dict[Task, str]:
        """Return the error of each task that failed."""
        return {
            task: line["error"] for task, line in self.lines.items() if line["status"] == "failed"
        }


def read_lines(path: Path) -> dict[Task, Line]:
    """Read a file's lines by task; where a task was run again, its last line counts.

    A line without an end, torn by a kill, is passed over; a file that is not there has no lines.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict of Task to dict
        The text in each column.

    Raises
    ------
    StudyError
        If the file is no such table, or one of its lines is damaged.
    """
    if not path.exists():
        return {}
    header, *texts = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1] or [""]
    if header.rstrip("\r") not in {"", ",".join(COLUMNS)}:
        raise StudyError(f"{path} is not a table of a study: move it away or use `fresh=True`.")
    lines = [_line(text, f"{path}, line {number}") for number, text in enumerate(texts, start=2)]
    return {task_of(line): line for line in lines}


def _line(text: str, where: str) -> Line:
    values = next(csv.reader([text]), [])
    line = dict(zip(COLUMNS, values, strict=False))
    try:
        task_of(line)
        sound = len(values) == len(COLUMNS) and line["status"] in {"ok", "failed"}
    except (KeyError, ValueError):
        sound = False
    if not sound:
        raise StudyError(f"{where} is damaged: remove that line or use `fresh=True`.")
    return line


def task_of(line: Mapping[str, Any]) -> Task:
    """Return the task that a line is of."""
    table, dataset, scaling, method, run = (line[name] for name in Task._fields)
    return Task(table, dataset, scaling, method, int(run))


def _text(lines: Iterable[Mapping[str, Any]]) -> str:
    file = io.StringIO()
    csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n").writerows(lines)
    return file.getvalue()


@dataclass(frozen=True, kw_only=True)
class Result:
    """One run of one method on one data set: a line with its numbers, NaN where one is missing."""

    table: str
    dataset: str
    scaling: str
    method: str
    status: str
    error: str
    run: float
    auc: float
    accuracy: float
    accuracy_held: float
    balanced_held: float
    parameter: float
    lowest: float
    highest: float
    tune_seconds: float
    fit_seconds: float
    train_rows: float
    test_rows: float
    features: float
    positives: float
    sample: float
    diverged: float

    @classmethod
    def of(cls, line: Line) -> Self:
        """Take the numbers out of a line."""
        values: dict[str, Any] = {
            field.name: _number(line[field.name]) if field.type is float else line[field.name]
            for field in fields(cls)
        }
        return cls(**values)


def _number(text: str) -> float:
    if text in {"True", "False"}:
        return float(text == "True")
    try:
        return float(text or "nan")
    except ValueError:
        return nan
