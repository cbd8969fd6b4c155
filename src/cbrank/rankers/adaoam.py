"""Adaptive online AUC maximisation."""

from typing import Any, ClassVar

import numpy as np

from cbrank import kernels
from cbrank.learning.method import Kernels, Method
from cbrank.learning.room import refuse_if_too_large
from cbrank.learning.state import State
from cbrank.parameters import POSITIVE, Parameter, Table, common, regularization, step
from cbrank.rankers.base import Ranker


class AdaOAMRanker(Ranker):
    """Adaptive online AUC maximisation (AdaOAM).

    The gradient of one-pass AUC optimisation with a step of its own for every feature, shorter
    the larger that feature's gradients have been [1]_. Weights beyond a ball are projected to it
    in the norm of these steps, as in AdaGrad [2]_.

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
    .. [1] Y. Ding, P. Zhao, S. Hoi, Y.-S. Ong. "An Adaptive Gradient Method for Online AUC
       Maximization", AAAI 2015.
    .. [2] J. Duchi, E. Hazan, Y. Singer. "Adaptive Subgradient Methods for Online Learning and
       Stochastic Optimization", JMLR 12, 2011.

    Examples
    --------
    >>> from cbrank import AdaOAMRanker
    >>> from cbrank.datasets import load
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y, facts = load("german")
    >>> X = StandardScaler().fit_transform(X)
    >>> ranker = AdaOAMRanker(random_state=0).fit(X[:800], y[:800])
    >>> round(ranker.score(X[800:], y[800:]), 2)
    0.83
    """

    PARAMETERS: ClassVar[Table] = (
        step(2.0**-6),
        regularization(
            "Weight of the squared norm; weights are kept within a ball of radius one over its root."
        ),
        Parameter(
            "smoothing", (POSITIVE,), 0.5, "Added to the root of the summed squared gradients."
        ),
        *common("the step"),
    )

    step: float
    regularization: float
    smoothing: float

    def takes_dense_rows(self) -> bool:
        return True

    def _method(self, state: State | None = None, *, fits: bool = False) -> Method:  # noqa: ARG002
        numbers = float(self.step), float(self.regularization), float(self.smoothing)
        return Method(
            _new_model,
            Kernels(kernels.adaoam.learn),
            (kernels.adaoam.Parameters(*numbers, self._balances(fits)),),
            needs_matrix=True,
        )


def _new_model(n_features: int, _: bool) -> Any:
    refuse_if_too_large(
        n_features, 2, 'use OPAUCRanker(rank=50) or CBRanker(covariance="diagonal")'
    )
    return kernels.adaoam.Model(
        w=np.zeros(n_features),
        diverged=np.zeros(1, np.int64),
        mean=np.zeros((2, n_features)),
        Gamma=np.zeros((2, n_features, n_features)),
        s=np.zeros(n_features),
    )
