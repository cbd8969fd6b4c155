"""The study as a list of tasks that do not depend on each other."""

from collections.abc import Iterable
from typing import NamedTuple

from cbrank.datasets.entry import Table
from cbrank.datasets.registry import info, names
from cbrank.methods import METHODS
from cbrank.study.settings import RUNS, SCALINGS, Scaling, Settings


class Task(NamedTuple):
    """One method, once, on one data set with one scaling."""

    table: Table
    dataset: str
    scaling: Scaling
    method: str
    run: int

    def __str__(self) -> str:
        return f"{self.method} on {self.dataset} ({self.scaling}), run {self.run}"


def plan(
    datasets: Iterable[str],
    methods: Iterable[str],
    scalings: Iterable[Scaling] = (),
    runs: int | None = None,
) -> list[Task]:
    """List the tasks of a study, in the order of ``results.csv``.

    Parameters
    ----------
    datasets : iterable of str
        Names of data sets.
    methods : iterable of str
        Methods; each runs on the kinds of data sets that it is registered for.
    scalings : iterable of {"unit", "standard", "none"}
        What is done to the rows. By default all three, and "unit" alone for text.
    runs : int, optional
        How often. By default as often as the paper does.

    Returns
    -------
    list of Task
        The tasks.

    Examples
    --------
    >>> [str(task) for task in plan(["glass"], ["OPAUC", "OPAUCr"], ["unit"], runs=1)]
    ['OPAUC on glass (unit), run 0']
    """
    chosen, usual = list(scalings), {"benchmark": SCALINGS, "high-dimensional": ("unit",)}
    tasks = [
        Task(table, dataset, scaling, method, run)
        for dataset in datasets
        for table in [info(dataset).table]
        for scaling in chosen or usual[table]
        for method in methods
        if table in METHODS[method].kinds
        for run in range(runs or RUNS[table])
    ]
    return sorted(set(tasks), key=place)


def place(task: Task) -> tuple[int, ...]:
    """Return where a task stands in ``results.csv``."""
    return (
        names().index(task.dataset),
        SCALINGS.index(task.scaling),
        list(METHODS).index(task.method),
        task.run,
    )


def work(task: Task, settings: Settings) -> int:
    """Estimate how long a task takes, so that long ones come first and the end can be foretold.

    The unit is about ten nanoseconds on the machine where the constants were measured.
    """
    entry, ranker = info(task.dataset), METHODS[task.method].new(1.0, 0)
    rows, width = min(entry.rows, settings.rows(task.table)), min(entry.features, 2000)
    overhead = 20_000_000 if task.table == "benchmark" else 300_000_000
    pair = width**2 + 1000 if getattr(ranker, "takes_dense_rows", bool)() else 4 * width
    return overhead + rows * getattr(ranker, "buffer_size", 1) * pair
