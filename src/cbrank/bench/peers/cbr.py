"""CBR itself, chunk by chunk and row by row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank.bench.peers.learner import Learner

CLASSES = (0, 1)


def begun(ranker: Any) -> bool:
    """Say whether a ranker has learned from any row."""
    return hasattr(ranker, "classes_")


class Chunks(Learner):
    """`CBRanker.partial_fit`."""

    def __init__(self, **parameters: Any) -> None:
        from cbrank import CBRanker  # noqa: PLC0415

        self.ranker = CBRanker(**parameters, random_state=0)
        self.matrices = self.ranker.covariance == "full"

    def learn(self, rows: Any) -> None:
        """Learn from a chunk."""
        X, y = rows
        self.ranker.partial_fit(X, y, CLASSES)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the ranking scores."""
        return np.asarray(self.ranker.decision_function(X))

    def counts(self) -> tuple[int, int]:
        """Return the pairs met and those that fired."""
        return (self.ranker.n_pairs_, self.ranker.n_updates_) if begun(self.ranker) else (0, 0)


class Rows(Chunks):
    """`CBRanker.learn_one`."""

    def learn(self, rows: Any) -> None:
        """Learn from a chunk, one row at a time."""
        for x, y in zip(*rows, strict=True):
            self.ranker.learn_one(x, y, classes=None if begun(self.ranker) else CLASSES)
