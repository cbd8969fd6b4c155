"""scikit-learn: stochastic gradients, and the batch fit that sees all rows at once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cbrank.bench.peers.learner import Learner


class Sgd(Learner):
    """`SGDClassifier.partial_fit`."""

    def __init__(self, **parameters: Any) -> None:
        from sklearn.linear_model import SGDClassifier  # noqa: PLC0415

        self.classifier = SGDClassifier(**parameters, shuffle=False, random_state=0)

    def learn(self, rows: Any) -> None:
        """Learn from a chunk."""
        self.classifier.partial_fit(*rows, classes=(0, 1))

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the signed distances."""
        return np.asarray(self.classifier.decision_function(X))


class Batch(Learner):
    """`LogisticRegression.fit` on all rows, the lead-in among them."""

    batch = True

    def __init__(self) -> None:
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

        self.regression = LogisticRegression(max_iter=1000)
        self.chunks: list[Any] = []

    def learn(self, rows: Any) -> None:
        """Keep the rows."""
        self.chunks.append(rows)

    def finish(self) -> None:
        """Fit once."""
        X, y = zip(*self.chunks, strict=True)
        stack = sparse.vstack if sparse.issparse(X[0]) else np.concatenate
        self.regression.fit(stack(X), np.concatenate(y))

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the log-odds."""
        return np.asarray(self.regression.decision_function(X))
