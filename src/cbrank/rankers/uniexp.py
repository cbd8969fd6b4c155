"""Online univariate exponential loss."""

from typing import Any, ClassVar

import numpy as np

from cbrank import kernels
from cbrank.learning.method import Kernels, Method
from cbrank.learning.state import State
from cbrank.parameters import Table, common, step
from cbrank.rankers.base import Ranker


class UniExpRanker(Ranker):
    """Online Uni-Exp: the weighted univariate exponential loss.

    A pointwise ranker [1]_: every row is a gradient step on the exponential loss, weighted so that
    both classes count alike. The fastest of the rankers and the least careful: the loss has no bound,
    and where a step is too large for the columns, the next ones overflow.

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
    .. [1] W. Kotlowski, K. Dembczynski, E. Huellermeier. "Bipartite Ranking through Minimization
       of Univariate Loss", ICML 2011.

    Examples
    --------
    >>> from cbrank import UniExpRanker
    >>> from cbrank.datasets import load
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y, facts = load("german")
    >>> X = StandardScaler().fit_transform(X)
    >>> ranker = UniExpRanker(random_state=0).fit(X[:800], y[:800])
    >>> round(ranker.score(X[800:], y[800:]), 2)
    0.83
    """

    PARAMETERS: ClassVar[Table] = (step(2.0**-12), *common("the step"))

    step: float

    def _method(self, state: State | None = None, *, fits: bool = False) -> Method:  # noqa: ARG002
        return Method(
            _new_model,
            Kernels(kernels.uniexp.learn, kernels.uniexp.learn_sparse),
            (kernels.uniexp.Parameters(float(self.step), self._balances(fits)),),
        )


def _new_model(n_features: int, _: bool) -> Any:
    return kernels.uniexp.Model(np.zeros(n_features), np.zeros(1, np.int64))
