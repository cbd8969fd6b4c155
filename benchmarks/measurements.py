"""The list of all measurements, and those that are no workloads: start, memory, words as columns."""

import difflib
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from joblib import cpu_count
from scipy import sparse

from benchmarks.comparison import table_path, why_no_table
from benchmarks.in_brief import curves, service, streams
from benchmarks.interleaved import Timer, interleave
from benchmarks.limits import limits
from benchmarks.peers import PEERS
from benchmarks.processes import Process, ProcessFailed
from benchmarks.single_rows import single_rows
from benchmarks.workloads import WORKLOADS, Split, Workload, synthetic
from cbrank import datasets

_STARTED = (
    "CBR default",
    "CBR 50",
    "CBR-diag 50",
    "SGD averaged",
    "Batch LR",
    "River LR",
    "Vowpal Wabbit",
    "LibAUC",
)


@dataclass(frozen=True)
class Measurement:
    """What is measured as a whole, and repeated as a whole if it is interrupted.

    Attributes
    ----------
    name : str
        Its name on the command line.
    run : callable
        Measures, and returns what JSON can hold.
    work : float
        Rough duration relative to other measurements, for the time that remains.
    """

    name: str
    run: Callable[[], Any]
    work: float

    def __str__(self) -> str:
        return self.name


def plan(seed: int, quick: bool, only: list[str]) -> list[Measurement]:
    """List the measurements.

    Parameters
    ----------
    seed : int
        Seed of the rows.
    quick : bool
        Whether to measure less.
    only : list of str
        Names of workloads, groups of them or other measurements; all if empty.

    Returns
    -------
    list of Measurement
        Those that the data sets on this machine allow.
    """
    here = datasets.available()
    workloads = [
        Measurement(workload.name, partial(_measure, workload, seed, quick), workload.work)
        for workload in _wanted(only)
        if (workload.quick or not quick) and (not workload.data or workload.data in here)
    ]
    return workloads + [
        Measurement(name, partial(measure, seed, quick), work)
        for name, (measure, work) in OTHERS.items()
        if not only or name in only
    ]


def missing_data(only: list[str]) -> list[str]:
    """Name the data sets that are wanted and not on this machine."""
    here = datasets.available()
    return list(dict.fromkeys(w.data for w in _wanted(only) if w.data and w.data not in here))


def check_name(name: str) -> str:
    """Return the name of a measurement or a group of workloads.

    Raises
    ------
    ValueError
        If there is none of that name.

    Examples
    --------
    >>> check_name("text")
    'text'
    """
    groups, names = [w.group for w in WORKLOADS], [w.name for w in WORKLOADS]
    known = list(dict.fromkeys([*groups, *names, *OTHERS]))
    if name in known:
        return name
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}."
    raise ValueError(f"unknown measurement {name!r}: {hint}")


def _wanted(only: list[str]) -> list[Workload]:
    return [w for w in WORKLOADS if not only or {w.name, w.group} & set(only)]


def _measure(workload: Workload, seed: int, quick: bool) -> list[dict[str, Any]]:
    planned = workload.quick if quick else workload.ends
    split = workload.load(planned[-1], seed)
    ends = [end for end in planned if end < len(split.y)]
    ends += [len(split.y)] if len(ends) < len(planned) else []
    repeats = 1 if quick else workload.repeats
    pairs = [(workload.name, peer) for peer in workload.peers]
    results = interleave(pairs, {workload.name: split}, ends, repeats)
    return [asdict(result) for result in results]


# Start --------------------------------------------------------------------------------------------


def starts(seed: int, quick: bool) -> list[dict[str, Any]]:  # noqa: ARG001
    """Time new processes up to the end of their first fit, of 60 rows with 54 features.

    Peers that compile are started twice, first with an empty cache.
    """
    split = synthetic(54, "noisy", 60, 100, seed)
    lines = []
    for name in _STARTED:
        line: dict[str, Any] = {"peer": name, "note": PEERS[name].missing()}
        if not line["note"]:
            with tempfile.TemporaryDirectory() as folder:
                cache = {"NUMBA_CACHE_DIR": folder} if name.startswith("CBR") else {}
                try:
                    line["cold"] = _start(name, split, cache) if cache else None
                    line["warm"] = _start(name, split, cache)
                except ProcessFailed as reason:
                    line["note"] = f"failed: {reason}"
        lines.append(line)
    return lines


def _start(name: str, split: Split, environment: dict[str, str]) -> float:
    begin = time.perf_counter()
    with Process(environment) as process:
        process.make(Timer, name, split).call("warm_up")
        return time.perf_counter() - begin


# Memory -------------------------------------------------------------------------------------------


class FitMemory:
    """Fits of matrices that should not be copied; memory as `tracemalloc` sees it."""

    def dense(self, rows: int, d: int, seed: int) -> dict[str, Any]:
        """Fit a C-ordered float64 array."""
        split = synthetic(d, "easy", rows, 0, seed)
        X = np.ascontiguousarray(split.X)
        return self._fit(X, split.y, X.nbytes, {"buffer_size": 10})

    def sparse(self, rows: int, d: int, seed: int) -> dict[str, Any]:
        """Fit a CSR matrix of 100 non-zeros in a row."""
        random = np.random.default_rng(seed)
        columns = random.integers(0, d // 100, (rows, 100)) + np.arange(0, d, d // 100)
        values = random.standard_normal((rows, 100))
        indptr = np.arange(0, rows * 100 + 1, 100, dtype=np.int32)
        parts = values.ravel(), columns.ravel().astype(np.int32), indptr
        X = sparse.csr_array(parts, shape=(rows, d))
        y = (values[:, 0] > 0).astype(np.int64)
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        return self._fit(X, y, size, {"buffer_size": 10, "covariance": "diagonal"})

    def _fit(self, X: Any, y: Any, size: int, parameters: dict[str, Any]) -> dict[str, Any]:
        from cbrank import CBRanker  # noqa: PLC0415

        ranker = CBRanker(C=2.0**-4, random_state=0, **parameters)
        ranker.fit(X[:50], y[:50]).partial_fit(X[:50], y[:50])  # compiles
        tracemalloc.start()
        ranker.fit(X, y)
        fit = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        ranker.partial_fit(X, y)
        partial_fit = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows, features = X.shape
        sizes = {"matrix": size, "fit": fit, "partial_fit": partial_fit}
        return {"rows": rows, "features": features, **sizes}


def memories(seed: int, quick: bool) -> dict[str, dict[str, Any]]:
    """Measure what a fit adds to the caller's matrix, dense and sparse."""
    rows = 4000 if quick else 40_000
    with Process() as process:
        process.make(FitMemory)
        return {
            "dense": process.call("dense", rows, 200, seed),
            "sparse": process.call("sparse", rows, 50_000, seed),
        }


# Words as columns ---------------------------------------------------------------------------------


def one_hot(seed: int, quick: bool) -> list[dict[str, Any]]:
    """Measure the table adult with a column for each word, beside 30 dense columns."""
    if missing := why_no_table("adult"):
        raise ProcessFailed(missing)
    ends = [500, 1500, 2500] if quick else [500, 2500, 4500, 6500, 8500, 10_500]
    words = one_hot_rows(ends[-1], seed)
    arrays = words._replace(X=words.X.toarray(), X_held=words.X_held.toarray())
    splits = {
        "one-hot-30": synthetic(30, "noisy", ends[-1], 1000, seed),
        "one-hot-dense": arrays,
        "one-hot-sparse": words,
    }
    pairs = [
        (name, f"CBR {M}" + (", sparse rows" if split.kind == "sparse" else ""))
        for M in (50, 10)
        for name, split in splits.items()
    ]
    return [asdict(result) for result in interleave(pairs, splits, ends, 1 if quick else 3)]


def one_hot_rows(rows: int, seed: int) -> Split:
    """Read the table adult: a column for each word, numbers divided by their standard deviations.

    Returns
    -------
    Split
        Sparse rows.
    """
    import pandas as pd  # noqa: PLC0415

    frame = pd.read_csv(table_path("adult"))
    y = (frame.pop("income") == ">50K").to_numpy().astype(np.int64)
    numbers = frame.select_dtypes("number")
    words = pd.get_dummies(frame.drop(columns=numbers.columns), dtype=float)
    X = sparse.csr_array(np.hstack([numbers / numbers.std(), words]))
    order = np.random.default_rng(seed).permutation(len(y))
    learn, rest = order[:rows], order[rows:]
    return Split(X[learn], y[learn], X[rest], y[rest])


# Selection of C -----------------------------------------------------------------------------------


class Selection:
    """Cross-validation over values of C, and the fits that it consists of."""

    def measure(self, rows: int, grid: list[float], jobs: int, seed: int) -> tuple[float, float]:
        """Return the seconds of the search, and the sum of the seconds of its fits."""
        split = synthetic(54, "noisy", rows, 0, seed)
        begin = time.perf_counter()
        self._search(split.X, split.y, grid, jobs)
        return time.perf_counter() - begin, self._fits(split.X, split.y, grid)

    def _search(self, X: Any, y: Any, grid: list[float], jobs: int) -> None:
        from cbrank import CBRankerCV  # noqa: PLC0415

        CBRankerCV(Cs=grid, cv=3, n_jobs=jobs, random_state=0).fit(X, y)

    def _fits(self, X: Any, y: Any, grid: list[float]) -> float:
        """Fit and score every C on every fold, and fit one on all rows, one after the other."""
        from sklearn.model_selection import StratifiedKFold  # noqa: PLC0415

        from cbrank import CBRanker  # noqa: PLC0415

        seconds = 0.0
        for learn, rest in StratifiedKFold(3).split(X, y):
            X_learn, y_learn, X_rest, y_rest = X[learn], y[learn], X[rest], y[rest]
            for C in grid:
                begin = time.perf_counter()
                CBRanker(C=C, random_state=0).fit(X_learn, y_learn).score(X_rest, y_rest)
                seconds += time.perf_counter() - begin
        begin = time.perf_counter()
        CBRanker(C=grid[len(grid) // 2], random_state=0).fit(X, y)
        return seconds + time.perf_counter() - begin


def selection(seed: int, quick: bool) -> dict[str, Any]:
    """Measure cross-validation over 21 values of C on 6,400 rows of 54 features."""
    grid = [2.0**exponent for exponent in range(-10, 11, 5 if quick else 1)]
    rows, repeats = (1600, 1) if quick else (6400, 3)
    cores = cpu_count()
    with Process() as process:
        process.make(Selection).call("measure", 60, grid[:1], 1, seed)  # compiles
        taken = [process.call("measure", rows, grid, cores, seed) for _ in range(repeats)]
    shares = [search * cores / fits for search, fits in taken]
    return {
        "rows": rows,
        "values": len(grid),
        "cores": cores,
        "seconds": taken,
        "share": median(shares),
    }


OTHERS: dict[str, tuple[Callable[[int, bool], Any], float]] = {
    "limits": (limits, 2.0),
    "single-rows": (single_rows, 5.0),
    "one-hot": (one_hot, 8.0),
    "streams": (streams, 15.0),
    "curves": (curves, 25.0),
    "service": (service, 15.0),
    "start": (starts, 20.0),
    "memory": (memories, 5.0),
    "selection": (selection, 30.0),
}
"""What is measured beside the workloads, and its `Measurement.work`."""
