"""Confidence-weighted bipartite ranking: Propositions 1 and 2 and the sweeps of Algorithms 1 and 3.

Names are the paper's: the ranker is a Gaussian of mean ``mu`` and covariance ``Sigma``, or of
mean ``mu`` and per-feature precision ``G``; ``z`` is the new row minus a buffered one.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import jit, kernel
from cbrank.kernels.buffers import row_weight, store, store_sparse
from cbrank.kernels.vectors import difference, dot, dot_sparse, multiply

DIAGONAL_FORMS = ("paper", "precision", "drop")
PAPER, PRECISION, DROP = range(3)
ROWS, PAIRS, UPDATES, TWICE_RIGHT = range(4)

_EPSILON = np.finfo(np.float64).eps


class FullModel(NamedTuple):
    """A Gaussian over weights with full covariance."""

    mu: np.ndarray  # (d,)
    Sigma: np.ndarray  # (d, d)
    lag: np.ndarray  # (d,), or (0,) where no average is kept: see averaged_mean
    tally: np.ndarray  # (4,) rows, pairs, updates, twice the pairs ranked right


class DiagonalModel(NamedTuple):
    """A Gaussian over weights with one precision per feature."""

    mu: np.ndarray
    G: np.ndarray  # (d,)
    lag: np.ndarray
    tally: np.ndarray


class Parameters(NamedTuple):
    """What a sweep needs to know."""

    C: float
    phi: float
    form: int
    reservoir: bool
    balanced: bool


@jit
def scw_step(margin, variance, C, phi):
    """Return alpha and beta of Propositions 1 and 2.

    The margin is taken in standard deviations, and the forms are free of cancellation and
    overflow. Both are zero where the margin already has the wanted confidence, and where the
    variance is zero, infinite or not a number.
    """
    if not (0.0 < variance < math.inf and margin < phi * math.sqrt(variance)):
        return 0.0, 0.0
    psi, zeta = 1.0 + phi**2 / 2.0, 1.0 + phi**2
    deviation = math.sqrt(variance)
    m = margin / deviation
    root = phi * math.sqrt(m * m * phi**2 / 4.0 + zeta)
    if m > 0.0:
        alpha = (phi**2 - m * m) / (deviation * (m * psi + root))
    else:
        alpha = (root - m * psi) / (deviation * zeta)
    alpha = min(C, alpha)
    if not alpha > 0.0:
        return 0.0, 0.0
    return alpha, 1.0 / (1.0 / scw_information(alpha, variance, phi) + variance)


@jit
def scw_information(alpha, variance, phi):
    """Return alpha phi / sqrt(u): what a step adds to the precision along z."""
    deviation = math.sqrt(variance)
    gain = alpha * phi * deviation
    return alpha * phi * (gain + math.hypot(gain, 2.0)) / (2.0 * deviation)


# The average with polynomial decay, avg += 4 / (t + 4) (mu - avg), t = 0, 1, ..., touches every
# weight at every row. Its lag behind the mean shrinks by t / (t + 4) a row, so with
# boost(t) = t (t + 1) (t + 2) (t + 3) / 24 the array `lag` = boost * (avg - mu) changes only
# where the mean does.


def boost_after(rows: int) -> float:
    """Return how much larger `lag` is than the average's lag after so many rows."""
    t = float(rows)
    return t * (t + 1.0) * (t + 2.0) * (t + 3.0) / 24.0


_boost = jit(boost_after)


def averaged_mean(model: FullModel | DiagonalModel) -> np.ndarray:
    """Return the polynomial-decay average of the means after every row so far."""
    rows = model.tally[ROWS]
    return model.mu + model.lag / boost_after(rows) if rows else model.mu.copy()


@jit
def _count_pair(tally, ahead):
    """Count a pair met, and twice whether it was ranked right, once if it was tied."""
    tally[PAIRS] += 1
    tally[TWICE_RIGHT] += 2 if ahead > 0.0 else (1 if ahead == 0.0 else 0)


@jit
def _count_pairs(model, x, buffer, other, sign):
    """Count the pairs of a row by the mean as it is before the row's own updates."""
    score = dot(model.mu, x)
    for slot in range(buffer.size[other]):
        _count_pair(model.tally, sign * (score - dot(model.mu, buffer.rows[other, slot])))


# Full covariance ------------------------------------------------------------------------------


@jit
def _full_pair(model, x, b, sign, C, phi, boost, z, s):
    """Update the ranker with one pair (Proposition 1)."""
    mu, Sigma = model.mu, model.Sigma
    d = mu.size
    margin = 0.0
    for i in range(d):
        z[i] = x[i] - b[i]
        margin += mu[i] * z[i]
    multiply(Sigma, z, s)
    variance = dot(s, z)
    alpha, beta = scw_step(sign * margin, variance, C, phi)
    if alpha <= 0.0:
        return
    model.tally[UPDATES] += 1
    for i in range(d):
        mu[i] += sign * alpha * s[i]
    for i in range(model.lag.size):
        model.lag[i] -= boost * sign * alpha * s[i]
    shrink(Sigma, s, math.sqrt(beta), 1.0 - beta * variance)


@jit
def shrink(Sigma, s, scale, least):
    """Take (scale s)(scale s)' from `Sigma`, symmetric to the bit.

    No variance can fall below `least` of what it was; rounding must not carry one there.
    """
    least = max(least, _EPSILON)
    for i in range(s.size):
        s[i] *= scale
    for i in range(s.size):
        floor = least * Sigma[i, i]
        for j in range(s.size):
            Sigma[i, j] -= s[i] * s[j]
        Sigma[i, i] = max(Sigma[i, i], floor)


@kernel
def learn_full(X, labels, weights, order, buffer, model, parameters):
    """Stream the rows `order` of `X` through CBR: Algorithm 1, with Algorithm 3 as its inner loop."""
    z, s = np.empty(X.shape[1]), np.empty(X.shape[1])
    capacity = buffer.rows.shape[1]
    for row in order:
        if weights[row] > 0.0:
            x, label = X[row], labels[row]
            store(buffer, label, x, parameters.reservoir)
            other, sign = 1 - label, 2.0 * label - 1.0
            C = parameters.C * row_weight(buffer, label, weights[row], parameters.balanced)
            boost = _boost(model.tally[ROWS])
            _count_pairs(model, x, buffer, other, sign)
            for k in range(buffer.size[other]):
                b = buffer.rows[other, (buffer.oldest[other] + k) % capacity]
                _full_pair(model, x, b, sign, C, parameters.phi, boost, z, s)
            model.tally[ROWS] += 1


# Diagonal covariance --------------------------------------------------------------------------


@jit
def _more_precise(G, z, beta, information, form):
    """Return a feature's precision after a step, in one of the three forms."""
    if form == PRECISION:
        return G + information * z * z
    if form == DROP:
        return G / max(1.0 - beta * z * z / G, _EPSILON)
    return G + beta * z * z


@jit
def _diagonal_pair(model, x, b, sign, C, phi, form, boost):
    """Update the ranker with one pair of dense rows (Proposition 2)."""
    mu, G = model.mu, model.G
    shift = C if form == PAPER else 0.0
    margin, variance = 0.0, 0.0
    for i in range(mu.size):
        z = x[i] - b[i]
        margin += mu[i] * z
        variance += z * z / (G[i] + shift)
    alpha, beta = scw_step(sign * margin, variance, C, phi)
    if alpha <= 0.0:
        return
    model.tally[UPDATES] += 1
    information = scw_information(alpha, variance, phi) if form == PRECISION else 0.0
    for i in range(mu.size):
        z = x[i] - b[i]
        change = sign * alpha * z / G[i]
        mu[i] += change
        if model.lag.size:
            model.lag[i] -= boost * change
        G[i] = _more_precise(G[i], z, beta, information, form)


@jit
def _diagonal_pair_sparse(model, indices, z, sign, C, phi, form, boost):
    """Update the ranker with one pair, given the non-zeros of z."""
    mu, G = model.mu, model.G
    shift = C if form == PAPER else 0.0
    margin, variance = 0.0, 0.0
    for k in range(indices.size):
        i = indices[k]
        margin += mu[i] * z[k]
        variance += z[k] * z[k] / (G[i] + shift)
    alpha, beta = scw_step(sign * margin, variance, C, phi)
    if alpha <= 0.0:
        return
    model.tally[UPDATES] += 1
    information = scw_information(alpha, variance, phi) if form == PRECISION else 0.0
    for k in range(indices.size):
        i = indices[k]
        change = sign * alpha * z[k] / G[i]
        mu[i] += change
        if model.lag.size:
            model.lag[i] -= boost * change
        G[i] = _more_precise(G[i], z[k], beta, information, form)


@jit
def _diagonal_row(x, label, weight, buffer, model, parameters):
    store(buffer, label, x, parameters.reservoir)
    other, sign, capacity = 1 - label, 2.0 * label - 1.0, buffer.rows.shape[1]
    C = parameters.C * row_weight(buffer, label, weight, parameters.balanced)
    boost = _boost(model.tally[ROWS])
    _count_pairs(model, x, buffer, other, sign)
    for k in range(buffer.size[other]):
        b = buffer.rows[other, (buffer.oldest[other] + k) % capacity]
        _diagonal_pair(model, x, b, sign, C, parameters.phi, parameters.form, boost)
    model.tally[ROWS] += 1


@jit
def _diagonal_row_sparse(indices, values, label, weight, buffer, model, parameters, z_at, z):
    store_sparse(buffer, label, indices, values, parameters.reservoir)
    other, sign, capacity = 1 - label, 2.0 * label - 1.0, buffer.length.shape[1]
    C = parameters.C * row_weight(buffer, label, weight, parameters.balanced)
    boost = _boost(model.tally[ROWS])
    score = dot_sparse(model.mu, indices, values)
    for slot in range(buffer.size[other]):
        length = buffer.length[other, slot]
        b_indices = buffer.indices[other, slot, :length]
        b_score = dot_sparse(model.mu, b_indices, buffer.values[other, slot, :length])
        _count_pair(model.tally, sign * (score - b_score))
    for k in range(buffer.size[other]):
        slot = (buffer.oldest[other] + k) % capacity
        length = buffer.length[other, slot]
        b_indices = buffer.indices[other, slot, :length]
        b_values = buffer.values[other, slot, :length]
        n = difference(indices, values, b_indices, b_values, z_at, z)
        _diagonal_pair_sparse(
            model, z_at[:n], z[:n], sign, C, parameters.phi, parameters.form, boost
        )
    model.tally[ROWS] += 1


@kernel
def learn_diagonal(X, labels, weights, order, buffer, model, parameters):
    """Stream the rows `order` of `X` through CBR-diag."""
    for row in order:
        if weights[row] > 0.0:
            _diagonal_row(X[row], labels[row], weights[row], buffer, model, parameters)


@kernel
def learn_diagonal_sparse(X, labels, weights, order, buffer, model, parameters):
    """Stream the sparse rows `order` of `X` through CBR-diag."""
    room = 2 * buffer.values.shape[2]
    z_at, z = np.empty(room, np.int32), np.empty(room)
    for row in order:
        if weights[row] > 0.0:
            begin, end = X.indptr[row], X.indptr[row + 1]
            indices, values = X.indices[begin:end], X.values[begin:end]
            _diagonal_row_sparse(
                indices, values, labels[row], weights[row], buffer, model, parameters, z_at, z
            )
