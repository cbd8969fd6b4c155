"""CBR with full covariance, pair by pair: Algorithm 1, with Algorithm 3 as its inner loop.

A pair costs O(d) for each non-zero of z, for Sigma z, but most pairs can be skipped in O(d) in all.
Let |z| = sqrt(z' Sigma z). By the triangle inequality |x - b| <= |x - r| + |b - r| for any origin r,
so a pair whose margin is at least phi (|x - r| + |b - r|) meets its constraint and cannot update the
model. Updates only shrink Sigma: a norm computed once for a buffered row stays an upper bound, until
a weight is narrowed (see ``confidence``), which may lengthen it. Skipping by this bound changes no
result.
"""

import math

import numpy as np

from cbrank.kernels._awake import (
    awake_of,
    buffer_of,
    give_back,
    model_of,
    rows_of,
    store_all,
    trail_of,
)
from cbrank.kernels._jit import jit, kernel
from cbrank.kernels.buffers import row_weight, store
from cbrank.kernels.confidence import (
    EPSILON,
    PAIRS,
    ROWS,
    UPDATES,
    WIDEST,
    boost_of,
    is_rounding,
    narrow,
    per_lag_of,
    scw_step,
    shrink,
)
from cbrank.kernels.prequential import foretell_both
from cbrank.kernels.vectors import centre, dot, margin_of, multiply_symmetric

# Rows after which the norms of the buffered rows are computed anew. Bounds get looser as Sigma
# shrinks; renewing them costs O(M d^2), little beside so many rows.
_SEGMENT = 1024
# Calls with fewer rows do without bounds: computing the norms of both buffers would cost more than
# the pairs that they save.
_FEW = 32


@jit
def _norm(Sigma, x, origin, z, s):
    """Return an upper bound of |x - origin|, rounding error included."""
    for i in range(x.size):
        z[i] = x[i] - origin[i]
    multiply_symmetric(Sigma, z, s)
    square, rounding = 0.0, 0.0
    for i in range(z.size):
        square += z[i] * s[i]
        rounding += z[i] * z[i] * Sigma[i, i]
    # |Sigma_ij| <= sqrt(Sigma_ii Sigma_jj), so d times `rounding` bounds the sum of the absolute
    # terms of z' Sigma z, and d EPSILON times that its rounding error.
    return math.sqrt(max(square, 0.0) + EPSILON * z.size**2 * rounding)


@jit
def _measure(X, buffer, Sigma, origin, norms, z, s):
    """Place the origin amid the next rows, and compute the norms of the buffered ones."""
    centre(X, np.arange(len(X)), origin)
    for label in range(2):
        for slot in range(buffer.size[label]):
            norms[label, slot] = _norm(Sigma, buffer.rows[label, slot], origin, z, s)


@jit
def _unmeasure(norms):
    """Set all norms to infinity, with which no pair is skipped."""
    for label in range(2):
        for slot in range(norms.shape[1]):
            norms[label, slot] = np.inf


@jit
def _look(model, z, square, s, margin, C, phi):
    """Return alpha, beta and the variance of a pair; write Sigma z to `s`."""
    multiply_symmetric(model.Sigma, z, s)
    variance = dot(s, z)
    if is_rounding(variance, z, square, model.Sigma):
        return 0.0, 0.0, variance
    alpha, beta = scw_step(margin, variance, C, phi)
    return alpha, beta, variance


@jit
def _update(model, s, sign, alpha, beta, variance, boost):
    """Update the ranker with one pair (Proposition 1); `s` is Sigma z, and is overwritten."""
    model.tally[UPDATES] += 1
    for i in range(model.mu.size):
        model.mu[i] += sign * alpha * s[i]
    for i in range(model.lag.size):
        model.lag[i] -= boost * sign * alpha * s[i]
    shrink(model.Sigma, s, math.sqrt(beta), 1.0 - beta * variance)


@jit
def _sweep(x, norm, C, label, buffer, model, phi, norms, z, s):
    """Pair a new row with the buffered rows of the other class, oldest first (Algorithm 3)."""
    other, sign, capacity = 1 - label, 2.0 * label - 1.0, buffer.rows.shape[1]
    boost = boost_of(model.tally[ROWS])
    model.tally[PAIRS] += buffer.size[other]
    for k in range(buffer.size[other]):
        slot = (buffer.oldest[other] + k) % capacity
        b = buffer.rows[other, slot]
        margin = sign * margin_of(model.mu, x, b)
        if margin >= phi * (norm + norms[other, slot]):
            continue
        for i in range(z.size):
            z[i] = x[i] - b[i]
        square = dot(z, z)
        alpha, beta, variance = _look(model, z, square, s, margin, C, phi)
        # Variances are at most 1, so with z.z up to WIDEST^2 no weight can be too wide.
        if alpha > 0.0 and square > WIDEST**2 and narrow(model, z):
            norm, margin = np.inf, sign * dot(model.mu, z)
            _unmeasure(norms)
            alpha, beta, variance = _look(model, z, square, s, margin, C, phi)
        if alpha > 0.0:
            _update(model, s, sign, alpha, beta, variance, boost)


@jit
def _learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from rows, of which `order` has the places in `labels` and `weights`."""
    d, capacity = X.shape[1], buffer.rows.shape[1]
    z, s, origin = np.empty(d), np.empty(d), np.empty(d)
    norms = np.full((2, capacity), np.inf)
    measured = order.size >= _FEW
    at = 0
    for k in range(order.size):
        row = order[k]
        if measured and k % _SEGMENT == 0:
            _measure(X[k:], buffer, model.Sigma, origin, norms, z, s)
        if weights[row] > 0.0:
            x, label = X[k], labels[row]
            norm = _norm(model.Sigma, x, origin, z, s) if measured else np.inf
            per_lag = per_lag_of(model.tally)
            foretell_both(trail, at, x, label, model.mu, model.lag, per_lag, buffer)
            slot = store(buffer, label, x, parameters.reservoir)
            at += 1
            if slot >= 0:
                norms[label, slot] = norm
            C = parameters.C * row_weight(buffer, label, weights[row], parameters.balanced)
            _sweep(x, norm, C, label, buffer, model, parameters.phi, norms, z, s)
            model.tally[ROWS] += 1


@kernel
def learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the rows `order` of `X`, in that order (Algorithm 1).

    A row of weight 0 is passed over as if it were not there.
    """
    places = awake_of(model)
    rows, all_awake = rows_of(X, order, places), places.size == model.mu.size
    learner, buffered, notes = model, buffer, trail
    if not all_awake:
        learner, buffered = model_of(model, places), buffer_of(buffer, places)
        notes = trail_of(trail, places)
    _learn(rows, labels, weights, order, buffered, learner, parameters, notes)
    if not all_awake:
        give_back(model, learner, places)
        store_all(X, labels, weights, order, buffer, parameters.reservoir, trail)
