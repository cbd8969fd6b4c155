"""A second reading of the paper's learner, by others than those who wrote `cbrank.paper` and the oracles.

It keeps to the text (Algorithms 1 to 3, Propositions 1 and 2) in the order in which the paper computes things,
and takes nothing from elsewhere but the draws of the reservoir, which are those of the ranker under test. Any
floating type will do: in ``np.longdouble`` it tells how much of a difference is rounding of doubles.
"""

from typing import NamedTuple

import numpy as np
from oracles import MWC
from scipy.stats import norm


class Read(NamedTuple):
    """What a stream has taught."""

    mu: np.ndarray
    spread: np.ndarray  # Sigma, or the diagonal G
    updates: int
    least: float  # the least share of v in the sum of z_i^2 Sigma_ii: below 1e-16 doubles hold none of it


def read(X, signs, C, covariance, policy, state, dtype=np.float64, M=50, eta=0.7):
    """Learn from rows with labels +1 and -1; `state` is the first of the reservoir's random numbers."""
    X, full, draws = X.astype(dtype), covariance == "full", MWC(state)
    phi, d = dtype(norm.ppf(eta)), X.shape[1]
    psi, zeta, C = 1 + phi**2 / 2, 1 + phi**2, dtype(C)
    mu, spread = np.zeros(d, dtype), np.eye(d, dtype=dtype) if full else np.ones(d, dtype)
    seen, kept = {1: 0, -1: 0}, {1: np.zeros((0, d), dtype), -1: np.zeros((0, d), dtype)}
    updates, least = 0, np.inf
    for x, y in zip(X, signs, strict=True):
        seen[y] += 1
        if len(kept[y]) < M:
            kept[y] = np.vstack([kept[y], x])
        elif policy == "fifo":
            kept[y] = np.vstack([kept[y][1:], x])
        else:
            place = int(draws.uniform() * seen[y])
            if place < M:
                kept[y][place] = x
        for z in x - kept[-y]:
            direction = spread @ z if full else z / spread
            v = z @ direction if full else np.sum(z**2 / (spread + C))
            m = y * (mu @ z)
            # An update ends at m = phi sqrt(v); a row that comes twice must not begin another one there.
            if v <= 0 or m >= phi * np.sqrt(v) * (1 - 1e-12):
                continue
            root = np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * zeta)
            alpha = min(C, max(dtype(0), (-m * psi + root) / (v * zeta)))
            u = (-alpha * v * phi + np.sqrt(alpha**2 * v**2 * phi**2 + 4 * v)) ** 2 / 4
            beta = alpha * phi / (np.sqrt(u) + v * alpha * phi)
            if alpha > 0:
                updates += 1
                least = min(least, float(v / (z**2 @ np.diag(spread)))) if full else 1.0
                mu = mu + alpha * y * direction
                spread = (
                    spread - beta * np.outer(direction, direction) if full else spread + beta * z**2
                )
    return Read(mu, spread, updates, least)
