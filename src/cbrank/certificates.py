r"""What can be proved of a stream after it was learned: certificates (docs/proofs.md).

With a positive oriented pair :math:`z`, its margin :math:`m`, its variance :math:`v` and the precision
:math:`A`, every step of the paper has the form :math:`\mu^+ = \mu + \alpha A^{-1} z`, :math:`A^+ = A + p z z'`. For
any weights :math:`w`, :math:`D = (w - \mu)' A (w - \mu)` then changes by

.. math:: D^+ - D = -2 \alpha (w \cdot z - m) + \alpha^2 v + p (w \cdot z - m^+)^2.

Summed up over a stream this is an identity, and as D is never negative a bound. `certificate` learns a stream pair by
pair in plain NumPy and returns every term.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from cbrank.paper import step, update_buffer

__all__ = ["Certificate", "certificate"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Certificate:
    """What a stream is proved to have lost at the most, and what it lost.

    Attributes
    ----------
    pairs, updates : int
        Pairs met, and pairs that moved the model.
    misranked : int
        Pairs with a margin of 0 or less when they were met.
    loss : float
        Sum of alpha (wanted - margin) over all updates; the margin wanted is phi sqrt(v), of AROW 1.
    reference : ndarray of shape (n_features,)
        The weights w to which the stream is compared.
    reference_loss : float
        The same sum with the margins of w. It is negative where these are larger than wanted.
    prior, moves, spread, remainder : float
        Halves of the squared norm of w, of the sum of alpha^2 v, of the sum of p (w.z - margin after)^2, and of D at
        the end. Loss = reference_loss + prior + moves + spread - remainder.
    bound : float
        That sum without the remainder: at least `loss`.
    misranked_bound : float
        At least `misranked`: the bound of AROW for w as it was given. NaN for the paper's step, which has none.
    weights : ndarray of shape (n_features,)
        The mean at the end.
    """

    pairs: int
    updates: int
    misranked: int
    loss: float
    reference: Floats
    reference_loss: float
    prior: float
    moves: float
    spread: float
    remainder: float
    bound: float
    misranked_bound: float
    weights: Floats


def certificate(
    X: ArrayLike,
    y: ArrayLike,
    reference_weights: ArrayLike | None = None,
    *,
    C: float = 1.0,
    eta: float = 0.7,
    buffer_size: int = 50,
    policy: Literal["fifo", "reservoir"] = "fifo",
    covariance: Literal["full", "diagonal"] = "full",
    update: Literal["scw", "arow"] = "scw",
    r: float = 1.0,
    random: np.random.Generator | None = None,
) -> Certificate:
    """Learn a stream in its order, and prove what it lost at the most.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Two labels; the greater is the positive class.
    reference_weights : array-like of shape (n_features,), default=None
        Weights to compare with, by default those of batch logistic regression. For the bound of the loss they are
        multiplied by the number that makes it least.
    C, eta, buffer_size, policy, covariance : optional
        As `CBRanker.paper` has them.
    update : {"scw", "arow"}, default="scw"
        The step of the paper, or that of AROW, of which the number of misranked pairs is bounded. It needs the full
        covariance.
    r : float, default=1.0
        Noise variance of AROW.
    random : Generator, optional
        What the reservoir draws from.

    Returns
    -------
    Certificate
        All terms of the identity and both bounds.

    Examples
    --------
    >>> from cbrank.certificates import certificate
    >>> from cbrank.datasets import load
    >>> X, y, facts = load("german")
    >>> found = certificate(X[:300] / X.std(axis=0), y[:300], C=0.03)
    >>> found.loss <= found.bound
    True
    >>> found = certificate(X[:300] / X.std(axis=0), y[:300], update="arow")
    >>> found.misranked <= found.misranked_bound
    True
    """
    X, positive = np.asarray(X, np.float64), np.asarray(y) == np.max(y)
    phi, random = float(ndtri(eta)), random or np.random.default_rng(0)
    if update == "arow" and covariance != "full":
        raise ValueError('The bound of `update="arow"` needs `covariance="full"`.')
    w = _logistic(X, positive) if reference_weights is None else np.array(reference_weights, float)
    stream = _Stream(w, full=covariance == "full")
    buffers: dict[int, list[Any]] = {+1: [], -1: []}
    count = {+1: 0, -1: 0}
    for x, sign in zip(X, np.where(positive, 1, -1).tolist(), strict=True):
        count[sign] += 1
        update_buffer(x, buffers[sign], buffer_size, count[sign], policy, random)
        for b in buffers[-sign]:
            z = sign * (x - b)
            m, s = float(stream.mu @ z), stream.shrunk(z)
            v = float(z @ s)
            stream.pairs += 1
            if update == "arow":
                alpha, p, wanted = max(0.0, 1.0 - m) / (v + r), 1.0 / r, 1.0
            elif covariance == "full":
                alpha, beta = step(m, v, C, phi)
                p, wanted = beta / (1.0 - beta * v), phi * np.sqrt(v)
            else:  # beta is what the paper adds to a precision
                v = float(np.sum(z**2 / (stream.A + C)))
                alpha, p = step(m, v, C, phi)
                wanted = phi * np.sqrt(v)
            if alpha > 0.0 and v > 0.0:
                stream.take(z, s, m, alpha, p, wanted)
    return stream.certificate(r if update == "arow" else None)


class _Stream:
    """The model, and the sums that the identity is made of."""

    def __init__(self, w: Floats, *, full: bool) -> None:
        d = w.size
        self.w, self.full, self.mu = w, full, np.zeros(d)
        self.A: Any = np.eye(d) if full else np.ones(d)
        self.Sigma = self.A.copy()
        self.pairs, self.updates, self.misranked = 0, 0, 0
        self.loss, self.wanted, self.moves, self.squares = 0.0, 0.0, 0.0, 0.0
        # Sums of alpha z, and of p (margin after) z.
        self.pull: Any = np.zeros(d)
        self.turned: Any = np.zeros(d)
        self.hinge = 0.0  # of w

    def shrunk(self, z: Floats) -> Any:
        """Return A^-1 z."""
        return self.Sigma @ z if self.full else z / self.A

    def take(self, z: Floats, s: Floats, m: float, alpha: float, p: float, wanted: float) -> None:
        """Let a pair move the model."""
        v = float(z @ s)
        self.mu = self.mu + alpha * s
        if self.full:
            self.A += p * np.outer(z, z)
            self.Sigma -= p / (1.0 + p * v) * np.outer(s, s)
            after = float(self.mu @ z)
            self.turned += p * after * z
            self.squares += p * after**2
        else:
            gain = p * z**2
            self.A = self.A + gain
            self.turned += gain * self.mu
            self.squares += float(gain @ self.mu**2)
        self.updates += 1
        self.loss += alpha * (wanted - m)
        self.wanted += alpha * wanted
        self.pull += alpha * z
        self.moves += alpha**2 * v
        self.hinge += max(0.0, 1.0 - float(self.w @ z))
        self.misranked += int(m <= 0.0)

    def times(self, w: Floats) -> Any:
        """Return A w."""
        return self.A @ w if self.full else self.A * w

    def certificate(self, r: float | None) -> Certificate:
        """Return the terms, for the reference at its best length; `r` is that of AROW."""
        w, own = self.w, float(self.w @ self.times(self.w))
        # As a function of its length the bound is a parabola.
        w = w * (float(w @ (self.pull + self.turned)) / own)
        spread = w @ self.times(w) - w @ w - 2.0 * w @ self.turned + self.squares
        apart = w - self.mu
        terms = {
            "reference_loss": float(self.wanted - w @ self.pull),
            "prior": float(w @ w) / 2.0,
            "moves": float(self.moves) / 2.0,
            "spread": float(spread) / 2.0,
        }
        return Certificate(
            self.pairs,
            self.updates,
            self.misranked,
            float(self.loss),
            w,
            **terms,
            remainder=float(apart @ self.times(apart)) / 2.0,
            bound=sum(terms.values()),
            misranked_bound=np.nan if r is None else self._most_mistakes(r),
            weights=self.mu,
        )

    def _most_mistakes(self, r: float) -> float:
        """Return the bound of AROW on the number of misranked pairs (Crammer, Kulesza and Dredze 2009)."""
        correct = self.updates - self.misranked
        length = np.sqrt(r * self.w @ self.times(self.w))
        room = np.sqrt(np.linalg.slogdet(self.A)[1] + correct)
        return float(length * room + self.hinge - correct)


def _logistic(X: Floats, positive: NDArray[np.bool_]) -> Floats:
    """Return the weights of batch logistic regression."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    found: Floats = LogisticRegression(max_iter=1000).fit(X, positive).coef_[0]
    return found
