"""``make beyond``, or ``python -m benchmarks.beyond``: the options, and results as they come."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.beyond import measuring, methods, report
from benchmarks.beyond.measuring import Results
from benchmarks.comparison import Task, carry_out
from cbrank.cli.options import several

_SLOW = 10_000  # microseconds a row


def _check(what: str, known: Callable[[], Sequence[Any]]) -> Callable[[str], str]:
    def check(name: str) -> str:
        names = dict.fromkeys(each for item in known() for each in (item.name, item.group))
        if name in names:
            return name
        raise ValueError(f"unknown {what} or group {name!r}: there are {', '.join(names)}.")

    return check


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@several(
    "--only",
    _check("method", lambda: methods.METHODS),
    "Methods or groups of them (cbrank, peers); all if not given.",
)
@several(
    "--sets",
    _check("set", lambda: measuring.DATA),
    "Data or groups of them (benchmark, tables, large, streams); all if not given.",
)
@click.option(
    "--splits",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="At most so many random splits of a set; more can follow later.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("beyond"),
    show_default=True,
    help="Folder of the results; what is found there is not measured again.",
)
@click.option("--fresh", is_flag=True, help="Measure again what is found there, if chosen.")
def main(only: list[str], sets: list[str], splits: int, out: Path, fresh: bool) -> None:
    """Set the straight line, curves and trees beside boosted trees and other learners.

    Every method learns in a process of its own with one thread. Methods and data that are not on
    this machine are named with the reason. Leave the machine alone meanwhile: EBM takes some hours,
    all others together about one.
    """
    try:
        folder = Results(out, methods.METHODS, splits)
        carry_out("Beyond", folder, _wanted(only, sets), _Measuring(folder), report, fresh)
    except (ImportError, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error


def _wanted(only: list[str], sets: list[str]) -> list[Task]:
    """Return the tasks that are chosen, the slow ones last: the others are then there early."""
    tasks = [
        Task(data, method)
        for data in measuring.DATA
        if not sets or {data.name, data.group} & set(sets)
        for method in methods.METHODS
        if not only or {method.name, method.group} & set(only)
        if data.group != "streams" or method.stream
    ]
    return sorted(tasks, key=lambda task: task.method.cost >= _SLOW)


class _Measuring:
    """Measures tasks, a set after the other, so that each is read once."""

    def __init__(self, folder: Results) -> None:
        self.folder = folder
        self.data: Any = None

    def __call__(self, task: Task) -> None:
        data, method = task
        if self.data != data:
            self.data, self.loaded = data, data.load()
        measuring.measure(self.folder, data, method, self.loaded)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.beyond")
