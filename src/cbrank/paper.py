r"""Confidence-weighted bipartite ranking as the paper states it, in plain NumPy.

Khalid, Ray and Chitsaz, "Confidence-Weighted Bipartite Ranking" (ADMA 2016). The functions stand in the
order in which they call each other, under the paper's names:

* `cbr`: Algorithm 1, the framework
* `update_buffer`: Algorithm 2, reservoir sampling, or the oldest row replaced (FIFO)
* `update_ranker`: Algorithm 3, with a full covariance :math:`\Sigma` or a diagonal :math:`G`
* `step`: the coefficients :math:`\alpha` and :math:`\beta` of Propositions 1 and 2

Labels are +1 and -1. `CBRanker.paper` is the estimator that learns the same model fast.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = ["cbr", "step", "update_buffer", "update_ranker"]

Array = NDArray[np.float64]


def cbr(
    rows: Iterable[tuple[Array, int]],
    C: float,
    *,
    M: int = 50,
    eta: float = 0.7,
    policy: Literal["fifo", "reservoir"] = "fifo",
    covariance: Literal["full", "diagonal"] = "full",
    random: np.random.Generator | None = None,
) -> tuple[Array, Array]:
    """Learn a ranker from a stream in one pass (Algorithm 1).

    Parameters
    ----------
    rows : iterable of (ndarray of shape (d,), {-1, +1})
        The stream.
    C : float
        The penalty parameter.
    M : int, default=50
        The capacity of each buffer.
    eta : float, default=0.7
        The probability with which a pair is to be ranked correctly, above 0.5.
    policy : {"fifo", "reservoir"}, default="fifo"
        Which row a full buffer replaces.
    covariance : {"full", "diagonal"}, default="full"
        CBR, or CBR-diag.
    random : Generator, optional
        What the reservoir draws from.

    Returns
    -------
    mu : ndarray of shape (d,)
        The mean: ``mu @ x`` is the score of a row.
    Sigma : ndarray of shape (d, d) or (d,)
        The covariance, or the diagonal G.

    Examples
    --------
    >>> stream = [(np.array([1.0, 0.0]), 1), (np.array([0.0, 1.0]), -1), (np.array([2.0, 1.0]), 1)]
    >>> mu, Sigma = cbr(stream, C=1.0)
    >>> mu.round(3)
    array([ 0.476, -0.311])
    """
    phi, random = float(ndtri(eta)), random or np.random.default_rng(0)
    mu: Array = np.zeros(0)
    Sigma: Array = np.zeros(0)
    B: dict[int, list[Array]] = {+1: [], -1: []}
    count = {+1: 0, -1: 0}
    for x, y in rows:
        if not mu.size:
            mu = np.zeros(len(x))
            Sigma = np.eye(len(x)) if covariance == "full" else np.ones(len(x))
        count[y] += 1
        update_buffer(x, B[y], M, count[y], policy, random)
        mu, Sigma = update_ranker(mu, Sigma, x, y, B[-y], C, phi)
    return mu, Sigma


def update_buffer(
    x: Array, B: list[Any], M: int, count: int, policy: str, random: np.random.Generator
) -> None:
    """Put a row into the buffer of its class (Algorithm 2).

    Parameters
    ----------
    x : ndarray of shape (d,)
        The row.
    B : list
        The buffer, which changes.
    M : int
        Its capacity.
    count : int
        How many rows of the class there were, this one included.
    policy : {"fifo", "reservoir"}
        Which row a full buffer replaces.
    random : Generator
        What the reservoir draws from.

    Examples
    --------
    >>> B = [1, 2, 3]
    >>> update_buffer(4, B, 3, 4, "fifo", np.random.default_rng(0))
    >>> B
    [2, 3, 4]
    """
    if len(B) < M:
        B.append(x)
    elif policy == "fifo":
        B[:] = [*B[1:], x]
    elif random.random() < M / count:
        B[random.integers(M)] = x


def update_ranker(
    mu: Array, Sigma: Array, x: Array, y: int, B: Sequence[Array], C: float, phi: float
) -> tuple[Array, Array]:
    """Update the ranker by a row and each buffered row of the other class in turn (Algorithm 3).

    Parameters
    ----------
    mu, Sigma : ndarray
        The mean, and the covariance of shape (d, d) or the diagonal G of shape (d,).
    x : ndarray of shape (d,)
        The row.
    y : {-1, +1}
        Its label.
    B : sequence of ndarray
        The buffer of the other class.
    C : float
        The penalty parameter.
    phi : float
        The quantile of eta of the standard normal distribution.

    Returns
    -------
    tuple of ndarray
        The mean and the covariance after it.

    Examples
    --------
    >>> update_ranker(np.zeros(2), np.ones(2), np.array([1.0, 0.0]), 1, [np.zeros(2)], 1.0, 0.5)
    (array([0.63245553, 0.        ]), array([1.4, 1. ]))
    """
    for b in B:
        z = x - b
        if Sigma.ndim == 2:  # Proposition 1
            s = Sigma @ z
            alpha, beta = step(y * mu @ z, z @ s, C, phi)
            mu, Sigma = mu + alpha * y * s, Sigma - beta * np.outer(s, s)
        else:  # Proposition 2, where Sigma is G, a precision
            alpha, beta = step(y * mu @ z, np.sum(z**2 / (Sigma + C)), C, phi)
            mu, Sigma = mu + alpha * y * z / Sigma, Sigma + beta * z**2
    return mu, Sigma


def step(m: Any, v: Any, C: float, phi: float) -> tuple[float, float]:
    r"""Return :math:`\alpha` and :math:`\beta` for a pair of margin `m` and variance `v`.

    Both are 0 if the pair is ranked correctly with the probability asked for: ``m >= phi * sqrt(v)``.

    Parameters
    ----------
    m, v : float
        Margin and variance.
    C : float
        The penalty parameter.
    phi : float
        The quantile of eta of the standard normal distribution.

    Returns
    -------
    tuple of float
        How far the mean moves, and how much the covariance shrinks.

    Examples
    --------
    >>> step(2.0, 1.0, 1.0, 0.5)
    (0.0, 0.0)
    >>> [round(number, 3) for number in step(-1.0, 1.0, 1.0, 0.5)]
    [1.0, 0.39]
    """
    psi, zeta = 1 + phi**2 / 2, 1 + phi**2
    if v <= 0 or m >= phi * np.sqrt(v):
        return 0.0, 0.0
    alpha = min(C, (-m * psi + np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * zeta)) / (v * zeta))
    u = (-alpha * v * phi + np.sqrt(alpha**2 * v**2 * phi**2 + 4 * v)) ** 2 / 4
    return float(alpha), float(alpha * phi / (np.sqrt(u) + v * alpha * phi))
