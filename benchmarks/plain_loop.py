"""The paper's algorithm as a naive compiled loop, the baseline that the fast sweeps are compared with."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmarks.peers import CLASSES, Learner, has_learned
from cbrank import CBRanker
from cbrank.study.plain_loop import State, empty_state, learn

_PRODUCTS = 3e9  # multiplications for Sigma z in a chunk; more would take many seconds


class PlainLoop(Learner):
    """The loop as a peer, which checks `CBRanker` as it goes.

    Both learn from the same rows. Each chunk the loop starts from `CBRanker`'s model, so that
    rounding differences do not add up, and after its rows the two models are compared. Where a
    chunk would take the loop too long, it learns from the first rows only, and `CBRanker`, not
    timed, from the rest.
    """

    def __init__(self, C: float, buffer_size: int) -> None:
        self.C = C
        self.ranker = CBRanker(C=C, buffer_size=buffer_size, average=False)
        self.buffer_size = buffer_size
        self.buffered: list[list[NDArray[np.float64]]] = [[], []]  # as the ranker's, by class
        self.largest = 0.0  # difference so far
        self.state: Any = None
        self.pending: Any = ()  # the chunk that the ranker has not learned from yet
        self.whole = True  # whether the loop has learned from all rows

    def prepare(self, X: Any, y: NDArray[np.int64]) -> Any:
        """Bring ranker and loop to the same state, and choose the rows that the loop gets."""
        self._compare()
        self.state = self._ranker_state(X.shape[1])
        most = int(_PRODUCTS / (self.buffer_size * X.shape[1] ** 2))
        head = slice(0, max(most, 3))
        self.pending = X, y
        self.learned = len(y[head])
        self.whole = self.whole and self.learned == len(y)
        return X[head], y[head]

    def learn(self, rows: Any) -> None:
        """Learn from the rows."""
        X, y = rows
        learn(X, y, self.state, self.C, float(ndtri(self.ranker.eta)))

    def scores(self, X: Any) -> NDArray[np.float64] | None:
        """Return the scores by the loop's mean, if it has learned from all rows."""
        return np.asarray(X @ self.state.mu) if self.whole else None

    def difference(self) -> float:
        """Return the largest relative difference between the two so far."""
        self._compare()
        return self.largest

    def _ranker_state(self, features: int) -> State:
        state = empty_state(features, self.buffer_size)
        if not has_learned(self.ranker):
            return state
        for label, rows in enumerate(self.buffered):
            state.rows[label, : len(rows)] = rows
            state.size[label] = len(rows)
        return state._replace(mu=self.ranker.coef_[0].copy(), Sigma=self.ranker.covariance_)

    def _compare(self) -> None:
        """Let the ranker learn what the loop has learned, and compare the two."""
        if self.state is None or not self.pending:
            return
        (X, y), cut = self.pending, self.learned or 0
        self.ranker.partial_fit(X[:cut], y[:cut], classes=CLASSES)
        for ours, its in (
            (self.ranker.coef_[0], self.state.mu),
            (self.ranker.covariance_, self.state.Sigma),
        ):
            gap = float(np.abs(ours - its).max() / max(np.abs(its).max(), np.finfo(float).tiny))
            self.largest = max(self.largest, gap)
        if cut < len(y):
            self.ranker.partial_fit(X[cut:], y[cut:])
        for label, rows in enumerate(self.buffered):
            rows.extend(X[y == label][-self.buffer_size :])
            del rows[: -self.buffer_size]
        self.pending = ()
