"""River: rows are dictionaries, made before the clock starts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cbrank.bench.peers.learner import Learner

NEEDS = {"river": "pip install 'cbrank[bench]'"}

Row = dict[Any, float]


class LogisticRegression(Learner):
    """`linear_model.LogisticRegression` with its own defaults."""

    def __init__(self) -> None:
        from river import linear_model  # noqa: PLC0415

        self.model: Any = linear_model.LogisticRegression()

    def prepare(self, X: Any, y: NDArray[np.int64]) -> list[tuple[Row, bool]]:
        """Make dictionaries: all numbers of a dense row, the non-zeros of a sparse one."""
        return list(zip(self.rows(X), y.astype(bool).tolist(), strict=True))

    def rows(self, X: Any) -> list[Row]:
        """Return the dictionaries of rows."""
        if sparse.issparse(X):
            return [
                dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
                for row in (X[i : i + 1] for i in range(X.shape[0]))
            ]
        return [dict(enumerate(row)) for row in X.tolist()]

    def learn(self, rows: Any) -> None:
        """Learn from a chunk, one row at a time."""
        learn_one = self.model.learn_one
        for x, y in rows:
            learn_one(x, y)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities."""
        return np.array([self.model.predict_proba_one(x).get(True, 0.5) for x in self.rows(X)])


class AdPredictor(LogisticRegression):
    """`linear_model.AdPredictor`, a Gaussian for each weight.

    It asks of a feature only whether it is there, so the numbers of dense rows are put into ten
    bins per column, equally full on the first rows; that is not timed.
    """

    def __init__(self) -> None:
        from river import linear_model  # noqa: PLC0415

        self.model = linear_model.AdPredictor()
        self.edges: list[NDArray[np.float64]] = []

    def rows(self, X: Any) -> list[Row]:
        """Return the dictionaries of the bins that rows fall into."""
        if sparse.issparse(X):
            return super().rows(X)
        if not self.edges:
            self.edges = [np.unique(np.quantile(column, np.arange(0.1, 1, 0.1))) for column in X.T]
        bins = [
            np.searchsorted(edges, column) for edges, column in zip(self.edges, X.T, strict=True)
        ]
        return [dict.fromkeys(enumerate(row), 1.0) for row in np.array(bins).T.tolist()]
