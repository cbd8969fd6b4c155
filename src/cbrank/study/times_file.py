"""``times.csv``: how long kernels take, of which methods and in which scaling."""

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from cbrank.atomic import atomic_write_text
from cbrank.study.settings import Scaling, StudyError

SCALING: Scaling = "unit"  # as far as can be told, the paper's
PLAIN = {name: f"{name}, plain loop" for name in ("CBR_FIFO", "CBR-diag_FIFO")}


class Time(NamedTuple):
    """The shortest of some fits of a method on the training rows of a run."""

    table: str
    dataset: str
    method: str
    run: int
    parameter: float
    rows: int
    features: int
    fits: int
    seconds: float


def write_times(path: Path, times: Iterable[Time]) -> None:
    """Write ``times.csv`` whole."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(Time._fields)
    writer.writerows(times)
    atomic_write_text(path, file.getvalue())


def read_times(path: Path) -> list[Time]:
    """Read ``times.csv``; a file that is not there has no times.

    Raises
    ------
    StudyError
        If the file is no such table.
    """
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        try:
            return [_time(line) for line in csv.DictReader(file)]
        except (KeyError, TypeError, ValueError) as error:
            raise StudyError(f"{path} is damaged: remove it or measure the times anew.") from error


def _time(line: Mapping[str, str]) -> Time:
    kinds = Time.__annotations__
    return Time(**{name: kinds[name](line[name]) for name in Time._fields})
