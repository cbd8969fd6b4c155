"""One-pass AUC optimisation."""

from typing import Any, ClassVar, Literal

import numpy as np

from cbrank import kernels
from cbrank.learning.method import Kernels
from cbrank.learning.room import refuse_if_too_large
from cbrank.parameters import COUNT, Parameter, Table, common, regularization, step
from cbrank.rankers.base import Ranker


class OPAUCRanker(Ranker):
    """One-pass AUC optimisation (OPAUC, OPAUCr).

    Gradient steps [1]_ on the pairwise square loss, which the mean and covariance of each class
    express for all pairs seen: no buffer of rows is needed to learn. With a `rank`, OPAUCr: a random
    sketch stands for each covariance.

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

    def _needs_matrix(self) -> bool:
        return self.rank is None

    def _new_model(self, n_features: int, sparse: bool) -> Any:  # noqa: ARG002
        w, diverged, mean = np.zeros(n_features), np.zeros(1, np.int64), np.zeros((2, n_features))
        if self.rank is not None:
            sketch = np.zeros((2, n_features, self.rank))
            return kernels.opauc.SketchModel(w, diverged, mean, sketch, np.zeros((2, self.rank)))
        refuse_if_too_large(n_features, 2, 'use rank=50, or CBRanker with covariance="diagonal"')
        covariances = np.zeros((2, n_features, n_features))
        return kernels.opauc.Model(w, diverged, mean, covariances)

    def _kernels(self) -> Kernels:
        if self.rank is None:
            return Kernels(kernels.opauc.learn)
        return Kernels(kernels.opauc.learn_sketch, kernels.opauc.learn_sketch_sparse)

    def _kernel_parameters(self, balanced: bool) -> Any:
        return kernels.opauc.Parameters(
            float(self.step), float(self.regularization), self.sketch == "centred", balanced
        )
