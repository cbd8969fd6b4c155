"""One run of one method: its rows, model selection, the final fit and its measures (section 4.2).

The rows of the first run make its learning curve, too.
"""

import time
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from cbrank import datasets
from cbrank.methods import METHODS, Method
from cbrank.metrics import optimal_operating_point
from cbrank.study.curves import Point
from cbrank.study.measures import Measures, measure
from cbrank.study.selection import Choice, Fold, choose, cross_validation
from cbrank.study.settings import Grid, Scaling, Settings
from cbrank.study.splits import Split, split
from cbrank.study.tasks import Task

_POINTS = 25  # of a curve: enough for its shape, few enough for one file of all curves


class Outcome(NamedTuple):
    """What a run gives: measures, the parameter chosen, seconds and the rows used."""

    measures: Measures
    choice: Choice
    tune_seconds: float
    fit_seconds: float
    rows: Split


def evaluate(
    method: Method, dataset: str, scaling: Scaling, run: int, settings: Settings
) -> Outcome:
    """Run a method once on a data set.

    Parameters
    ----------
    method : Method
        What learns. Batch logistic regression has standardised columns on a benchmark set
        whatever the scaling.
    dataset : str
        Name of the data set.
    scaling : {"unit", "standard", "none"}
        What is done to the columns or rows.
    run : int
        Number of the run.
    settings : Settings
        Seed, grid and sizes.

    Returns
    -------
    Outcome
        Measures on the test fold, the choice and the seconds it took, compilation excluded.

    Examples
    --------
    >>> from cbrank.methods import METHODS
    >>> from cbrank.study.settings import quick
    >>> outcome = evaluate(METHODS["Uni-Exp"], "glass", "unit", 0, quick(seed=0))
    >>> outcome.measures.auc > 0.5
    True
    """
    scaling = _scaling(method, dataset, scaling)
    rows = split(dataset, run, scaling, settings)
    return learn(method, rows, settings.grid(scaling), settings.run_seed(dataset, run))


def learn(
    method: Method, rows: Split, grid: Grid, seed: int, folds: Sequence[Fold] | None = None
) -> Outcome:
    """Choose the tuned parameter, fit once and measure; `folds` replace the paper's three."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _warm_up(method.name, issparse(rows.X))
        started = time.perf_counter()
        choice = choose(method, folds or cross_validation(rows.X, rows.y), grid, seed)
        tuned = time.perf_counter()
        ranker = method.new(choice.parameter, seed).fit(rows.X, rows.y)
        fitted = time.perf_counter()
    threshold = optimal_operating_point(rows.y, ranker.decision_function(rows.X)).threshold
    measures = measure(rows.y_test, ranker.decision_function(rows.X_test), threshold)
    return Outcome(measures, choice, tuned - started, fitted - tuned, rows)


def _scaling(method: Method, dataset: str, scaling: Scaling) -> Scaling:
    table = datasets.info(dataset).table
    return "standard" if method.group == "ceiling" and table == "benchmark" else scaling


@cache
def _warm_up(name: str, sparse: bool) -> None:
    """Compile a method's kernels, once in a process, before anything is timed."""
    X, y = np.array([[0.0, 1.0], [1.0, 0.5], [0.0, 2.0], [2.0, 0.0]]), np.array([0, 1, 0, 1])
    METHODS[name].new(1.0, 0).fit(csr_array(X) if sparse else X, y)


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


# Learning curves ------------------------------------------------------------------------------------


def trace(task: Task, parameter: float, settings: Settings) -> tuple[Task, list[Point]]:
    """Stream a task's training rows through its method and measure the ranking on the way.

    Each block of rows is ranked by the weights that were there before it, among its own rows
    (`progressive_auc_history_`); a point is the mean of the blocks so far. The points stand about
    evenly on a logarithmic axis.

    Examples
    --------
    >>> from cbrank.study.tasks import plan
    >>> task, points = trace(plan(["glass"], ["Uni-Exp"])[0], 1.0, Settings())
    >>> points[-1].rows
    160
    """
    rows = split(task.dataset, task.run, task.scaling, settings)
    ranker = METHODS[task.method].new(parameter, settings.run_seed(task.dataset, task.run))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranker.partial_fit(rows.X, rows.y, classes=[0, 1])
    return task, _points(ranker.progressive_auc_history_)


def _points(history: NDArray[Any]) -> list[Point]:
    """Return the mean AUC of the blocks up to some of them."""
    if not len(history):
        return []
    ends, weights = history["rows"], np.cumsum(history["weight"])
    means = np.cumsum(history["auc"] * history["weight"]) / weights
    some = np.unique(ends.searchsorted(np.geomspace(ends[0], ends[-1], _POINTS).round()))
    return [Point(int(ends[place]), float(means[place])) for place in some]
