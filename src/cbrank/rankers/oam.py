"""Online AUC maximisation."""

from typing import Any, ClassVar, Literal

import numpy as np

from cbrank import kernels
from cbrank.learning.method import Kernels, Method
from cbrank.learning.state import State
from cbrank.parameters import BUFFER_SIZE, POSITIVE, Parameter, Table, common
from cbrank.rankers.base import Ranker


class OAMRanker(Ranker):
    """Online AUC maximisation (OAM).

    A first-order ranker [1]_: every new row meets the buffered rows of the opposite class, and the
    pairs inside the margin move the weights. Pairs are weighted by how many rows of the opposite
    class the buffer stands for; half that weight bounds a step.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights of the features.
    n_seen_ : ndarray of shape (2,)
        Rows learned from, of the negative and of the positive class.
    diverged_ : bool
        Whether a step was too long, by huge columns or C, and learning stopped at the last sound
        weights.

    References
    ----------
    .. [1] P. Zhao, S. Hoi, R. Jin, T. Yang. "Online AUC Maximization", ICML 2011.

    Examples
    --------
    >>> from cbrank import OAMRanker
    >>> from cbrank.datasets import load
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y, facts = load("german")
    >>> X = StandardScaler().fit_transform(X)
    >>> ranker = OAMRanker(random_state=0).fit(X[:800], y[:800])
    >>> round(ranker.score(X[800:], y[800:]), 2)
    0.71
    """

    PARAMETERS: ClassVar[Table] = (
        Parameter("C", (POSITIVE,), 1.0, "Bound on the step of a pair."),
        BUFFER_SIZE,
        Parameter(
            "update",
            ("sequential", "gradient"),
            "sequential",
            "Passive-aggressive steps pair after pair, or one gradient step for the whole buffer.",
        ),
        Parameter(
            "policy",
            ("reservoir", "fifo"),
            "reservoir",
            "Whether the buffer holds a uniform sample of all rows or the latest.",
        ),
        *common("C", "the shuffling and of the reservoir"),
    )

    C: float
    buffer_size: int
    update: Literal["sequential", "gradient"]
    policy: Literal["fifo", "reservoir"]

    def _method(self, state: State | None = None, *, fits: bool = False) -> Method:  # noqa: ARG002
        kept = int(self.buffer_size)
        return Method(
            _new_model,
            Kernels(kernels.oam.learn, kernels.oam.learn_sparse),
            (
                kernels.oam.Parameters(
                    float(self.C),
                    self.update == "gradient",
                    self.policy == "reservoir",
                    self._balances(fits),
                ),
            ),
            rows_kept=lambda _: (kept, kept),
        )


def _new_model(n_features: int, _: bool) -> Any:
    return kernels.oam.Model(np.zeros(n_features), np.zeros(1, np.int64))
