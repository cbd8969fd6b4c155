"""How long the compiled kernels take to learn the rows of a study's runs.

What is timed is one call of a method's kernel for all training rows of a run, with the parameter that the study
chose: for each row its buffering, the pairs or the step and, in all kernels alike, its scores before it
is learned from, a few sums over its columns. Checks of input, measures of the stream,
probabilities and the threshold are no part of it. A fit begins from an empty model, in this process and one
thread; the fits of a run's methods take turns, and the shortest time counts, so that no compilation is in it.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from cbrank.datasets.registry import names
from cbrank.methods import METHODS
from cbrank.study.settings import Settings
from cbrank.study.splits import split
from cbrank.study.tasks import Task
from cbrank.study.times_file import PLAIN, SCALING, Time

_LEAST, _MOST = 3, 20  # fits of each
_ENOUGH = 0.05  # seconds of fits after which no more than the least are made


Call = Callable[[], None]
Begin = Callable[[], Call]  # makes the call to time, from nothing


def tasks_to_time(tasks: Iterable[Task]) -> list[Task]:
    """Return the tasks that are timed: those of methods that learn row by row, in one scaling.

    Examples
    --------
    >>> from cbrank.study.tasks import plan
    >>> [task.method for task in tasks_to_time(plan(["glass"], ["OPAUC", "Batch LR"], runs=1))]
    ['OPAUC']
    """
    return [t for t in tasks if t.scaling == SCALING and METHODS[t.method].group != "ceiling"]


def measure(parameters: Mapping[Task, float], settings: Settings) -> Iterator[tuple[Task, Time]]:
    """Time the fits of some tasks, run by run.

    A plain loop is timed beside the method that it computes, as another time of the same task.

    Parameters
    ----------
    parameters : mapping of Task to float
        The parameter that each task chose.
    settings : Settings
        Seed and sizes of the study.

    Yields
    ------
    task, time : tuple
        The time of a task.
    """
    for _, run in groupby(sorted(parameters, key=_run), key=_run):
        tasks = list(run)
        with threadpool_limits(limits=1):
            yield from _measure_run({task: parameters[task] for task in tasks}, settings)


def _run(task: Task) -> tuple[int, int]:
    return names().index(task.dataset), task.run


def _measure_run(
    parameters: Mapping[Task, float], settings: Settings
) -> Iterator[tuple[Task, Time]]:
    first = next(iter(parameters))
    rows = split(first.dataset, first.run, SCALING, settings)
    seed = settings.run_seed(first.dataset, first.run)
    fits: dict[tuple[Task, str], Begin] = {}
    for task, parameter in parameters.items():
        if task.method in PLAIN:
            fits[task, PLAIN[task.method]] = _plain_fit(task, parameter, rows)
        fits[task, task.method] = _fit(task, parameter, rows, seed)
    length, width = rows.X.shape
    for (task, name), (count, seconds) in zip(fits, shortest(list(fits.values())), strict=True):
        named = task.table, task.dataset, name, task.run
        yield task, Time(*named, parameters[task], length, width, count, seconds)


def _fit(task: Task, parameter: float, rows: Any, seed: int) -> Begin:
    def begin() -> Call:
        ranker = METHODS[task.method].new(parameter, seed)
        call: Call = ranker.kernel_call(rows.X, rows.y, seed)
        return call

    return begin


def _plain_fit(task: Task, C: float, rows: Any) -> Begin:
    # Numba, which compiles the loops, takes long to import.
    from scipy.special import ndtri  # noqa: PLC0415

    from cbrank.study import plain_loop  # noqa: PLC0415

    parameters, X = METHODS[task.method].parameters, rows.X
    size, phi = parameters["buffer_size"], float(ndtri(parameters["eta"]))

    def begin() -> Call:
        if isinstance(X, np.ndarray):
            state = plain_loop.empty_state(X.shape[1], size)
            return partial(plain_loop.learn, X, rows.y, state, C, phi)
        diagonal = plain_loop.empty_diagonal_state(X.shape[1], size)
        parts = X.data, X.indices, X.indptr
        return partial(plain_loop.learn_diagonal, *parts, rows.y, diagonal, C, phi)

    return begin


def shortest(
    fits: list[Begin], clock: Callable[[], float] = time.perf_counter
) -> list[tuple[int, float]]:
    """Time calls that are made anew each time, in turns.

    Parameters
    ----------
    fits : list of callable
        Each returns the call to time; what it does itself is not timed.
    clock : callable, default=time.perf_counter
        Gives seconds.

    Returns
    -------
    list of tuple of int and float
        How often each was timed, and the shortest time: of 3 calls, and of up to 20 where they are short.
    """
    times: list[list[float]] = [[] for _ in fits]
    for turn in range(_MOST):
        for begin, taken in zip(fits, times, strict=True):
            if turn < _LEAST or len(taken) * min(taken) < _ENOUGH:
                call, started = begin(), clock()
                call()
                taken.append(clock() - started)
    return [(len(taken), min(taken)) for taken in times]
