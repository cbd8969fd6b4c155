"""Follow the regularised leader for the area under the ROC curve."""

from typing import Any, ClassVar

import numpy as np

from cbrank import kernels
from cbrank.learning.method import Kernels, Method
from cbrank.learning.state import State
from cbrank.parameters import NOT_NEGATIVE, POSITIVE, Parameter, Table, common, step
from cbrank.rankers.base import Ranker


class FTRLAUCRanker(Ranker):
    """Follow the regularised leader on the pairwise square loss (FTRL-AUC).

    A row's gradient [1]_ compares its score with the mean score of the other class, over that
    class's rows as they were scored on arrival; then every feature makes its own step of
    FTRL-Proximal [2]_. Sparse rows cost their non-zeros, and `l1` makes the weights sparse. The
    weight of a row is a factor of its step and not of the penalties.

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
    .. [1] B. Zhou, Y. Ying, S. Skiena. "Online AUC Optimization for Sparse High-Dimensional
       Datasets", ICDM 2020.
    .. [2] H. B. McMahan et al. "Ad Click Prediction: a View from the Trenches", KDD 2013.

    Examples
    --------
    >>> from cbrank import FTRLAUCRanker
    >>> from cbrank.datasets import load
    >>> X, y, facts = load("german")
    >>> ranker = FTRLAUCRanker(random_state=0).fit(X[:800], y[:800])
    >>> round(ranker.score(X[800:], y[800:]), 2)
    0.74
    """

    PARAMETERS: ClassVar[Table] = (
        step(2.0**-5, "Learning rate: alpha of FTRL-Proximal."),
        Parameter(
            "l1",
            (NOT_NEGATIVE,),
            0.0,
            "Weight of the sum of absolute weights; against all rows together, not each.",
        ),
        Parameter(
            "l2",
            (NOT_NEGATIVE,),
            0.0,
            "Weight of half the squared norm; against all rows together, not each.",
        ),
        Parameter("beta", (POSITIVE,), 1.0, "Added to the root of the summed squared gradients."),
        *common("the step"),
    )

    step: float
    l1: float
    l2: float
    beta: float

    def _method(self, state: State | None = None, *, fits: bool = False) -> Method:  # noqa: ARG002
        numbers = float(self.step), float(self.l1), float(self.l2), float(self.beta)
        return Method(
            _new_model,
            Kernels(kernels.ftrl.learn, kernels.ftrl.learn_sparse),
            (kernels.ftrl.Parameters(*numbers, self._balances(fits)),),
        )


def _new_model(n_features: int, _: bool) -> Any:
    return kernels.ftrl.Model(
        w=np.zeros(n_features),
        diverged=np.zeros(1, np.int64),
        z=np.zeros(n_features),
        n=np.zeros(n_features),
        mean_score=np.zeros(2),
    )
