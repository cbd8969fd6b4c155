"""The plain loop as a peer, which checks CBR's fast sweeps as it goes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank.bench.peers.cbr import CLASSES, begun
from cbrank.bench.peers.learner import Learner

_PRODUCTS = 3e9  # of two numbers that Sigma z may cost in a chunk


class PlainLoop(Learner):
    """The plain loop, on the first rows of each chunk where all would take too long.

    Each chunk it starts from where `CBRanker` is, and after its rows the two are compared; the
    rest of a long chunk is left to `CBRanker`, not timed.
    """

    def __init__(self, C: float, buffer_size: int) -> None:
        from cbrank import CBRanker  # noqa: PLC0415

        self.C = C
        self.ranker = CBRanker(C=C, buffer_size=buffer_size, average=False)
        self.latest: list[list[NDArray[np.float64]]] = [[], []]
        self.largest = 0.0
        self.state: Any = None
        self.pending: Any = ()
        self.whole = True

    def prepare(self, X: Any, y: NDArray[np.int64]) -> Any:
        """Bring the ranker and the loop to the same place."""
        self._compare()
        self.state = self._state(X.shape[1])
        most = int(_PRODUCTS / (self.ranker.buffer_size * X.shape[1] ** 2))
        head = slice(0, max(most, 3))
        self.pending = X, y
        self.learned = len(y[head])
        self.whole = self.whole and self.learned == len(y)
        return X[head], y[head]

    def learn(self, rows: Any) -> None:
        """Learn from the rows."""
        from scipy.special import ndtri  # noqa: PLC0415

        from cbrank.bench import plain  # noqa: PLC0415

        X, y = rows
        plain.learn(X, y, self.state, self.C, float(ndtri(self.ranker.eta)))

    def scores(self, X: Any) -> NDArray[np.float64] | None:
        """Return the scores of the loop's mean."""
        return np.asarray(X @ self.state.mu) if self.whole else None

    def difference(self) -> float:
        """Return the largest relative difference between the two so far."""
        self._compare()
        return self.largest

    def _state(self, features: int) -> Any:
        from cbrank.bench import plain  # noqa: PLC0415

        capacity = self.ranker.buffer_size
        state = plain.start(features, capacity)
        if not begun(self.ranker):
            return state
        for label, rows in enumerate(self.latest):
            state.rows[label, : len(rows)] = rows
            state.size[label] = len(rows)
        return state._replace(mu=self.ranker.coef_[0].copy(), Sigma=self.ranker.covariance_)

    def _compare(self) -> None:
        """Let the ranker learn what the loop has, and see whether they agree."""
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
        for label, rows in enumerate(self.latest):
            rows.extend(X[y == label][-self.ranker.buffer_size :])
            del rows[: -self.ranker.buffer_size]
        self.pending = ()
