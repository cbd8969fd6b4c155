"""Soft confidence-weighted learning."""

from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cbrank import kernels
from cbrank.learning.method import Kernels, Method
from cbrank.learning.room import refuse_if_too_large
from cbrank.learning.state import State
from cbrank.parameters import COVARIANCE, POSITIVE, Parameter, Table, common, eta
from cbrank.rankers.base import Ranker


class SCWRanker(Ranker):
    """Soft confidence-weighted learning (SCW-I) with balanced classes.

    `CBRanker` without the pairs [1]_: the same Gaussian over weights and the same closed form, on
    every row by itself, which is asked to score above zero if positive and below if negative. As in
    the paper there is no intercept, so rows are best centred.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Mean of the weights.
    covariance_ : ndarray of shape (n_features, n_features) or (n_features,)
        Covariance of the weights, or their variances where it is diagonal.
    n_seen_ : ndarray of shape (2,)
        Rows learned from, of the negative and of the positive class.
    diverged_ : bool
        Always False: this ranker does not diverge.

    References
    ----------
    .. [1] J. Wang, P. Zhao, S. Hoi. "Exact Soft Confidence-Weighted Learning", ICML 2012.

    Examples
    --------
    >>> from cbrank import SCWRanker
    >>> from cbrank.datasets import load
    >>> X, y, facts = load("german")
    >>> ranker = SCWRanker(random_state=0).fit(X[:800], y[:800])
    >>> round(ranker.score(X[800:], y[800:]), 2)
    0.79
    """

    PARAMETERS: ClassVar[Table] = (
        Parameter(
            "C", (POSITIVE,), 0.25, "Largest step of a row: how far one row may move the mean."
        ),
        eta("row"),
        COVARIANCE,
        *common("C", class_weight="balanced"),
    )

    C: float
    eta: float
    covariance: Literal["full", "diagonal"]

    def takes_dense_rows(self) -> bool:
        return self.covariance == "full"

    def _method(self, state: State | None = None, *, fits: bool = False) -> Method:  # noqa: ARG002
        full = self.takes_dense_rows()
        diagonal = Kernels(kernels.scw.learn_diagonal, kernels.scw.learn_diagonal_sparse)
        numbers = float(self.C), float(ndtri(self.eta))
        return Method(
            partial(_new_model, full),
            Kernels(kernels.scw.learn_full) if full else diagonal,
            (kernels.scw.Parameters(*numbers, self._balances(fits)),),
            needs_matrix=full,
            weights=lambda model, _, columns: model.mu[columns],
        )

    @property
    def covariance_(self) -> NDArray[np.float64]:
        """Covariance of the weights, or their variances where it is diagonal."""
        return self._fitted("covariance_").models[0][1].copy()


def _new_model(full: bool, n_features: int, _: bool) -> Any:
    if not full:
        return kernels.scw.DiagonalModel(np.zeros(n_features), np.ones(n_features))
    refuse_if_too_large(n_features, 1, 'use covariance="diagonal"')
    return kernels.scw.FullModel(np.zeros(n_features), np.eye(n_features))
