"""Stochastic proximal AUC maximisation."""

from typing import Any, ClassVar

import numpy as np

from cbrank import kernels
from cbrank.learning.method import Kernels, Method
from cbrank.learning.state import State
from cbrank.parameters import Table, common, regularization, step
from cbrank.rankers.base import Ranker


class SPAUCRanker(Ranker):
    """Stochastic proximal AUC maximisation (SPAUC).

    Proximal gradient steps [1]_ on the pairwise square loss, which splits into the spread of the
    scores within each class and the gap between the classes' means: of all rows seen, only the
    two means are kept. The paper's steps get shorter by the row; these are constant, to be tuned
    like those of the other rankers.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights of the features.
    n_seen_ : ndarray of shape (2,)
        Rows learned from, of the negative and of the positive class.
    diverged_ : bool
        Whether the step was too large and learning stopped at the last sound weights.

    References
    ----------
    .. [1] Y. Lei, Y. Ying. "Stochastic Proximal AUC Maximization", JMLR 22, 2021.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from cbrank import SPAUCRanker
    >>> from cbrank.datasets import load
    >>> X, y, facts = load("german")
    >>> ranker = make_pipeline(StandardScaler(), SPAUCRanker(random_state=0))
    >>> ranker = ranker.fit(X[:800], y[:800])
    >>> round(ranker.score(X[800:], y[800:]), 2)
    0.83
    """

    PARAMETERS: ClassVar[Table] = (
        step(2.0**-8),
        regularization("Weight of half the squared norm."),
        *common("the step"),
    )

    step: float
    regularization: float

    def _method(self, state: State | None = None, *, fits: bool = False) -> Method:  # noqa: ARG002
        numbers = float(self.step), float(self.regularization)
        return Method(
            _new_model,
            Kernels(kernels.spauc.learn, kernels.spauc.learn_sparse),
            (kernels.spauc.Parameters(*numbers, self._balances(fits)),),
        )


def _new_model(n_features: int, _: bool) -> Any:
    return kernels.spauc.Model(
        np.zeros(n_features), np.zeros(1, np.int64), np.zeros((2, n_features))
    )
