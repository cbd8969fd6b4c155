"""Batch logistic regression: how well a linear scorer does when it sees all rows at once."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.linear_model import LogisticRegression


class BatchRanker:
    """Batch logistic regression with the methods of a ranker that the study calls.

    Parameters
    ----------
    C : float
        Inverse of the L2 penalty's weight.
    random_state : int
        Not used: the fit is deterministic.

    Attributes
    ----------
    diverged_ : bool
        Always False.

    Examples
    --------
    >>> from cbrank import datasets
    >>> X, y, facts = datasets.load("glass")
    >>> ranker = BatchRanker(C=1.0, random_state=0).fit(X, y)
    >>> bool(ranker.decision_function(X[y == 1]).mean() > 0)
    True
    """

    diverged_ = False

    def __init__(self, C: float, random_state: int) -> None:
        self.C = C
        self.random_state = random_state

    def fit(self, X: Any, y: NDArray[np.int64]) -> Self:
        """Learn from all rows at once."""
        solver = "lbfgs" if issparse(X) else "newton-cholesky"
        self._regression = LogisticRegression(C=self.C, solver=solver, max_iter=1000).fit(X, y)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the log-odds of each row."""
        return np.asarray(self._regression.decision_function(X))
