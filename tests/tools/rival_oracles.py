"""Slow, plain-NumPy readings of the later rivals, used as oracles by the tests.

Written from the formulas alone, as `oracles` is: it shares no code with the library, and loops
over rows and features.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from oracles import fires, quiet, scw_step, stream
from scipy.stats import norm


@quiet()
def scw_full(
    X: np.ndarray,
    y: np.ndarray,
    C: float,
    eta: float = 0.7,
    weights: np.ndarray | None = None,
    balanced: bool = False,
    dtype: type = np.float64,
) -> SimpleNamespace:
    """SCW-I (Wang et al. 2012) with the full covariance and a weighted C."""
    kind = np.dtype(dtype).type
    d = np.asarray(X).shape[1]
    phi = kind(norm.ppf(eta))
    mu = np.zeros(d, dtype=kind)
    Sigma = np.eye(d, dtype=kind)
    for x, _, sign, factor, _ in stream(X, y, weights, balanced, dtype):
        m = sign * (mu @ x)
        v = x @ Sigma @ x
        if fires(m, v, phi):
            alpha, beta = scw_step(m, v, kind(C) * factor, phi)
            mu = mu + alpha * sign * (Sigma @ x)
            Sigma = Sigma - beta * np.outer(Sigma @ x, Sigma @ x)
    return SimpleNamespace(w=mu, covariance=Sigma)


@quiet()
def scw_diagonal(
    X: np.ndarray,
    y: np.ndarray,
    C: float,
    eta: float = 0.7,
    weights: np.ndarray | None = None,
    balanced: bool = False,
    dtype: type = np.float64,
) -> SimpleNamespace:
    """SCW-I of which only the diagonal of the covariance is kept after every row."""
    kind = np.dtype(dtype).type
    d = np.asarray(X).shape[1]
    phi = kind(norm.ppf(eta))
    mu = np.zeros(d, dtype=kind)
    sigma = np.ones(d, dtype=kind)
    for x, _, sign, factor, _ in stream(X, y, weights, balanced, dtype):
        m = sign * (mu @ x)
        Sigma = np.diag(sigma)
        v = x @ Sigma @ x
        if fires(m, v, phi):
            alpha, beta = scw_step(m, v, kind(C) * factor, phi)
            mu = mu + alpha * sign * (Sigma @ x)
            sigma = np.diag(Sigma - beta * np.outer(Sigma @ x, Sigma @ x)).copy()
    return SimpleNamespace(w=mu, covariance=sigma)


@quiet()
def ftrl_auc(
    X: np.ndarray,
    y: np.ndarray,
    step: float,
    l1: float = 0.0,
    l2: float = 0.0,
    beta: float = 1.0,
    weights: np.ndarray | None = None,
    balanced: bool = False,
    dtype: type = np.float64,
) -> SimpleNamespace:
    """FTRL-AUC (Zhou et al. 2020), with FTRL-Proximal as McMahan et al. (2013) print it.

    The weight of a row is a factor of its step, which is to say of what it adds to z, while n
    sums the squares of the gradients themselves.
    """
    kind = np.dtype(dtype).type
    d = np.asarray(X).shape[1]
    alpha, l1, l2, beta = kind(step), kind(l1), kind(l2), kind(beta)
    w = np.zeros(d, dtype=kind)
    z = np.zeros(d, dtype=kind)
    n = np.zeros(d, dtype=kind)
    scores: list[list[np.floating]] = [[], []]  # of each class, at arrival
    for x, c, _, factor, counts in stream(X, y, weights, balanced, dtype):
        scores[c].append(w @ x)
        p = kind(counts[1]) / kind(counts[0] + counts[1])
        u = np.mean(scores[1]) if scores[1] else kind(0)
        v = np.mean(scores[0]) if scores[0] else kind(0)
        g = 2 * (1 - p) * (w @ x - v - 1) * x if c == 1 else 2 * p * (w @ x - u + 1) * x
        for i in range(d):
            sigma = (np.sqrt(n[i] + g[i] ** 2) - np.sqrt(n[i])) / alpha
            z[i] += factor * g[i] - sigma * w[i]
            n[i] += g[i] ** 2
            if abs(z[i]) <= l1:
                w[i] = 0
            else:
                w[i] = -(z[i] - np.sign(z[i]) * l1) / ((beta + np.sqrt(n[i])) / alpha + l2)
    return SimpleNamespace(w=w, z=z, n=n)


@quiet()
def spauc(
    X: np.ndarray,
    y: np.ndarray,
    step: float,
    regularization: float = 1e-4,
    weights: np.ndarray | None = None,
    balanced: bool = False,
    dtype: type = np.float64,
) -> SimpleNamespace:
    """SPAUC (Lei and Ying 2021) with a constant step and the proximal map of the squared norm."""
    kind = np.dtype(dtype).type
    d = np.asarray(X).shape[1]
    w = np.zeros(d, dtype=kind)
    seen: list[list[np.ndarray]] = [[], []]
    for x, c, _, factor, counts in stream(X, y, weights, balanced, dtype):
        seen[c].append(x)
        if not (seen[0] and seen[1]):
            continue
        p = kind(counts[1]) / kind(counts[0] + counts[1])
        negative = np.mean(seen[0], axis=0)
        positive = np.mean(seen[1], axis=0)
        if c == 1:
            g = (1 - p) * (w @ (x - positive)) * (x - positive)
        else:
            g = p * (w @ (x - negative)) * (x - negative)
        gap = negative - positive
        g = g + p * (1 - p) * (1 + w @ gap) * gap
        eta = kind(step) * factor
        w = (w - eta * g) / (1 + eta * kind(regularization))
    return SimpleNamespace(w=w)
