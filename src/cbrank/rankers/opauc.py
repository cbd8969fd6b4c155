"""One-pass AUC optimisation."""

from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from cbrank import kernels
from cbrank.learning.method import Kernels, Method
from cbrank.learning.room import refuse_if_too_large
from cbrank.learning.state import State
from cbrank.parameters import COUNT, Parameter, Table, common, regularization, step
from cbrank.rankers.base import Ranker


class OPAUCRanker(Ranker):
    """One-pass AUC optimisation (OPAUC, OPAUCr).

    Gradient steps [1]_ on the pairwise square loss, which the mean and covariance of each class
    express for all pairs seen: no buffer of rows is needed to learn. With a `rank`, OPAUCr: a random
    sketch stands for each covariance. Both take the steps of the authors' programs.

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
    .. [1] W. Gao, R. Jin, S. Zhu, Z.-H. Zhou. "One-Pass AUC Optimization", ICML 2013.

    Examples
    --------
    >>> from cbrank import OPAUCRanker
    >>> from cbrank.datasets import load
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y, facts = load("german")
    >>> X = StandardScaler().fit_transform(X)
    >>> ranker = OPAUCRanker(random_state=0).fit(X[:800], y[:800])
    >>> round(ranker.score(X[800:], y[800:]), 2)
    0.83
    """

    PARAMETERS: ClassVar[Table] = (
        step(2.0**-9),
        regularization(),
        Parameter(
            "rank",
            (COUNT, None),
            None,
            "Columns of the sketch that stands for each covariance (OPAUCr; the paper has 50); None "
            "keeps the covariances themselves, d x d numbers each.",
        ),
        Parameter(
            "sketch",
            ("published", "centred"),
            "published",
            "With a rank, the authors' sketch, which is close to one of the second moments, or one of "
            "the covariance.",
        ),
        *common("the step", "the shuffling and of the sketch"),
    )

    step: float
    regularization: float
    rank: int | None
    sketch: Literal["published", "centred"]

    def takes_dense_rows(self) -> bool:
        return self.rank is None

    def _method(self, state: State | None = None, *, fits: bool = False) -> Method:  # noqa: ARG002
        sketched = Kernels(kernels.opauc.learn_sketch, kernels.opauc.learn_sketch_sparse)
        numbers = float(self.step), float(self.regularization), self.sketch == "centred"
        return Method(
            partial(_new_model, self.rank),
            Kernels(kernels.opauc.learn) if self.rank is None else sketched,
            (kernels.opauc.Parameters(*numbers, self._balances(fits)),),
            needs_matrix=self.takes_dense_rows(),
        )


def _new_model(rank: int | None, n_features: int, _: bool) -> Any:
    w, diverged, mean = np.zeros(n_features), np.zeros(1, np.int64), np.zeros((2, n_features))
    if rank is not None:
        sketch = np.zeros((2, n_features, rank))
        return kernels.opauc.SketchModel(w, diverged, mean, sketch, np.zeros((2, rank)))
    refuse_if_too_large(n_features, 2, 'use rank=50, or CBRanker with covariance="diagonal"')
    covariances = np.zeros((2, n_features, n_features))
    return kernels.opauc.Model(w, diverged, mean, covariances)
