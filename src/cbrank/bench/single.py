"""What is measured alone: the start of a process, the memory of a fit, cross-validation."""

import tempfile
import time
import tracemalloc
from statistics import median
from typing import Any

import numpy as np
from joblib import cpu_count
from scipy import sparse

from cbrank.bench.peers import PEERS
from cbrank.bench.synthetic import stream
from cbrank.bench.worker import Contestant, Failed, Process

STARTERS = (
    "CBR as it comes",
    "CBR 50",
    "CBR-diag 50",
    "SGD averaged",
    "Batch LR",
    "River LR",
    "Vowpal Wabbit",
    "LibAUC",
)
_COMPILED = "CBR"


def starts(seed: int, peers: tuple[str, ...] = STARTERS) -> list[dict[str, Any]]:
    """Time new processes up to the end of their first fit, of 60 rows with 54 features.

    Those that compile are started with an empty cache first.
    """
    rows = stream(54, "noisy", 60, 100, seed)
    lines = []
    for name in peers:
        line: dict[str, Any] = {"peer": name, "note": PEERS[name].missing()}
        if not line["note"]:
            with tempfile.TemporaryDirectory() as folder:
                cache = {"NUMBA_CACHE_DIR": folder} if name.startswith(_COMPILED) else {}
                try:
                    line["cold"] = _start(name, rows, cache) if cache else None
                    line["warm"] = _start(name, rows, cache)
                except Failed as reason:
                    line["note"] = f"failed: {reason}"
        lines.append(line)
    return lines


def _start(name: str, rows: Any, environment: dict[str, str]) -> float:
    begin = time.perf_counter()
    with Process(environment) as process:
        process.make(Contestant, name, rows).call("warm_up")
        return time.perf_counter() - begin


class Memory:
    """Fits of matrices that should not be copied; memory as `tracemalloc` sees it."""

    def dense(self, rows: int, d: int, seed: int) -> dict[str, Any]:
        """Fit a C-ordered float64 array."""
        data = stream(d, "easy", rows, 0, seed)
        X = np.ascontiguousarray(data.X)
        return self._fit(X, data.y, X.nbytes, {"buffer_size": 10})

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
        ranker.fit(X[:50], y[:50]).partial_fit(X[:50], y[:50])
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
        process.make(Memory)
        return {
            "dense": process.call("dense", rows, 200, seed),
            "sparse": process.call("sparse", rows, 50_000, seed),
        }


class Selection:
    """The paper's choice of C by cross-validation, and the fits that it consists of."""

    def measure(self, rows: int, grid: list[float], jobs: int, seed: int) -> tuple[float, float]:
        """Return the seconds of the search, and the sum of the seconds of its fits."""
        data = stream(54, "noisy", rows, 0, seed)
        begin = time.perf_counter()
        self._search(data.X, data.y, grid, jobs)
        return time.perf_counter() - begin, self._fits(data.X, data.y, grid)

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
    rows, times = (1600, 1) if quick else (6400, 3)
    cores = cpu_count()
    with Process() as process:
        process.make(Selection).call("measure", 60, grid[:1], 1, seed)  # compiles
        taken = [process.call("measure", rows, grid, cores, seed) for _ in range(times)]
    shares = [search * cores / fits for search, fits in taken]
    return {
        "rows": rows,
        "values": len(grid),
        "cores": cores,
        "seconds": taken,
        "share": median(shares),
    }
