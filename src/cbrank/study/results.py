"""``results.csv``: one line for each finished task, safe against a sudden end."""

import csv
import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cbrank.atomic import atomic_write_text
from cbrank.study.settings import Settings
from cbrank.study.tasks import Task, place

COLUMNS = (
    "table", "dataset", "scaling", "method", "run", "seed", "auc", "accuracy", "accuracy_held",
    "balanced_held", "parameter", "tune_seconds", "fit_seconds", "train_rows", "test_rows",
    "features", "positives", "sample", "diverged", "status", "error",
)  # fmt: skip

Line = dict[str, str]


class StudyError(ValueError):
    """A study's folder holds something that cannot be gone on with."""


class Results:
    """The table of a study, on disk.

    Parameters
    ----------
    path : Path
        The file; it need not exist yet.

    Raises
    ------
    StudyError
        If the file is no such table.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = {task_of(line): line for line in _read(path)}

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

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a line, and see it onto the disk."""
        text = _text([row])
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        line = next(csv.DictReader(io.StringIO(text), COLUMNS))
        self.lines[task_of(line)] = line

    def write(self) -> None:
        """Write the table anew, in order and with the last line of each task only."""
        lines = [self.lines[task] for task in sorted(self.lines, key=place)]
        atomic_write_text(self.path, ",".join(COLUMNS) + "\n" + _text(lines))

    def failures(self) -> dict[Task, str]:
        """Return the error of each task that failed."""
        return {
            task: line["error"] for task, line in self.lines.items() if line["status"] == "failed"
        }


def task_of(line: Mapping[str, Any]) -> Task:
    """Return the task that a line is of."""
    table, dataset, scaling, method, run = (line[name] for name in Task._fields)
    return Task(table, dataset, scaling, method, int(run))


def _read(path: Path) -> list[Line]:
    """Read the whole lines of a file; a kill may have torn the last."""
    if not path.exists():
        return []
    header, *texts = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1] or [""]
    if header not in {"", ",".join(COLUMNS)}:
        raise StudyError(f"{path} is not a table of a study: move it away or use `fresh=True`.")
    return [_line(text, f"{path}, line {number}") for number, text in enumerate(texts, start=2)]


def _line(text: str, where: str) -> Line:
    values = next(csv.reader([text]), [])
    line = dict(zip(COLUMNS, values, strict=False))
    try:
        place(task_of(line))
        sound = len(values) == len(COLUMNS) and line["status"] in {"ok", "failed"}
    except (KeyError, ValueError):
        sound = False
    if not sound:
        raise StudyError(f"{where} is damaged: remove that line or use `fresh=True`.")
    return line


def _text(rows: Iterable[Mapping[str, Any]]) -> str:
    file = io.StringIO()
    csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n").writerows(rows)
    return file.getvalue()
