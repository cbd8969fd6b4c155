"""The study as a list of tasks that do not depend on each other."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from cbrank import datasets
from cbrank.datasets.entry import Table
from cbrank.methods import METHODS
from cbrank.study.protocol import evaluate
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
    names: Iterable[str],
    methods: Iterable[str],
    scalings: Iterable[Scaling] = (),
    runs: int | None = None,
) -> list[Task]:
    """List the tasks of a study, in the order of ``results.csv``.

    Parameters
    ----------
    names : iterable of str
        Data sets.
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
        Task(table, name, scaling, method, run)
        for name in names
        for table in [datasets.info(name).table]
        for scaling in chosen or usual[table]
        for method in methods
        if table in METHODS[method].kinds
        for run in range(runs or RUNS[table])
    ]
    return sorted(set(tasks), key=place)


def place(task: Task) -> tuple[int, ...]:
    """Return where a task stands in ``results.csv``."""
    return (
        datasets.names().index(task.dataset),
        SCALINGS.index(task.scaling),
        list(METHODS).index(task.method),
        task.run,
    )


def work(task: Task, settings: Settings) -> int:
    """Estimate how long a task takes, so that long ones come first and the end can be foretold.

    The unit is about ten nanoseconds on the machine where the constants were measured.
    """
    entry, ranker = datasets.info(task.dataset), METHODS[task.method].new(1.0, 0)
    rows, width = min(entry.rows, settings.rows(task.table)), min(entry.features, 2000)
    overhead = 20_000_000 if task.table == "benchmark" else 300_000_000
    pair = width**2 + 1000 if getattr(ranker, "takes_dense_rows", bool)() else 4 * width
    return overhead + rows * getattr(ranker, "buffer_size", 1) * pair


def perform(task: Task, settings: Settings) -> dict[str, Any]:
    """Do a task and return the values of its line of ``results.csv``; an error makes a line too."""
    values = {**task._asdict(), "seed": settings.run_seed(task.dataset, task.run)}
    try:
        # Sums over several threads would be rounded in another order.
        with threadpool_limits(limits=1):
            outcome = evaluate(METHODS[task.method], task.dataset, task.scaling, task.run, settings)
    except Exception as error:  # noqa: BLE001 (it must not end the study)
        return values | {"status": "failed", "error": _sentence(error)}
    rows, facts = outcome.rows, outcome.rows.facts
    return values | {
        **outcome.measures._asdict(),
        **outcome.choice._asdict(),
        "tune_seconds": outcome.tune_seconds,
        "fit_seconds": outcome.fit_seconds,
        "train_rows": len(rows.y),
        "test_rows": len(rows.y_test),
        "features": facts.features,
        "positives": facts.positives / facts.rows,
        "sample": int(facts.sample),
        "status": "ok",
        "error": "",
    }


def _sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
