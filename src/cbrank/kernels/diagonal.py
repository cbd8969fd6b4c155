"""CBR-diag on dense rows: one precision G_i per feature (Proposition 2), in three forms.

"paper" is Proposition 2 to the letter, which adds C to each precision inside the variance and
the covariance's beta to a precision. "precision" adds alpha phi / sqrt(u) instead, as the
derivation with a diagonal precision gives. "drop" is the diagonal of the full update.

Pairs that meet their constraint are skipped by the triangle bound of ``blocked``. Precisions only
grow, so that the norm of a buffered row, computed once in a call, stays an upper bound; narrowing,
too, makes norms smaller where there are no covariances.
"""

import math

import numpy as np

from cbrank.kernels._jit import jit, kernel
from cbrank.kernels.buffers import row_weight, store
from cbrank.kernels.confidence import (
    DROP,
    EPSILON,
    LARGEST_C,
    PAIRS,
    PAPER,
    PRECISION,
    ROWS,
    SMALLEST_VARIANCE,
    UPDATES,
    boost_of,
    narrowed,
    per_lag_of,
    scw_information,
    scw_step,
)
from cbrank.kernels.prequential import foretell_row_both
from cbrank.kernels.vectors import centre, margin_of

# Calls with fewer rows do without bounds: computing the norms of both buffers would cost more than
# the pairs that they save.
_FEW = 32


@jit
def more_precise(G, z, beta, information, form):
    """Return the precision of a feature after an update by z."""
    if form == PRECISION:
        more = G + information * z * z
    elif form == DROP:  # 1 / G - beta (z / G)^2, kept above zero whatever the rounding
        more = G / max(1.0 - beta * z * z / G, EPSILON)
    else:
        more = G + beta * z * z
    return min(more, 1.0 / SMALLEST_VARIANCE)


@jit
def shift_of(C, form):
    """Return what the form adds to each precision inside the variance: C for "paper", else 0."""
    return min(C, LARGEST_C) if form == PAPER else 0.0


@jit
def _norm(G, x, origin):
    """Return an upper bound of |x - origin|, rounding error included."""
    square = 0.0
    for i in range(x.size):
        square += (x[i] - origin[i]) ** 2 / G[i]
    return math.sqrt(square * (1.0 + EPSILON * (x.size + 8)))


@jit
def _variance(G, x, b, shift):
    """Return the sum of z^2 / (G + shift)."""
    total = 0.0
    for i in range(G.size):
        total += (x[i] - b[i]) ** 2 / (G[i] + shift)
    return total


@jit
def may_be_wide(variance, shift, widest):
    """Say whether a weight may have to be narrowed for a pair; False is certain.

    As G_i >= 1, each z_i^2 / G_i is at most (1 + shift) times its term z_i^2 / (G_i + shift).
    """
    return variance * (1.0 + shift) > widest * widest


@jit
def _narrow(model, x, b, widest):
    """Narrow the weights that are too wide for a pair; say whether there were any."""
    any_narrowed = False
    for i in range(x.size):
        factor = narrowed(x[i] - b[i], 1.0 / model.G[i], widest)
        if factor < 1.0:
            any_narrowed = True
            model.mu[i] *= factor
            model.lag[i] *= factor
            model.G[i] /= factor * factor
    return any_narrowed


@jit
def _update(model, x, b, sign, margin, C, parameters, boost):
    """Update the ranker with one pair if it violates its constraint."""
    phi, form, widest = parameters.phi, parameters.form, parameters.widest
    mu, G, shift = model.mu, model.G, shift_of(C, form)
    variance = _variance(G, x, b, shift)
    alpha, beta = scw_step(margin, variance, C, phi)
    if alpha > 0.0 and may_be_wide(variance, shift, widest) and _narrow(model, x, b, widest):
        variance = _variance(G, x, b, shift)
        alpha, beta = scw_step(sign * margin_of(mu, x, b), variance, C, phi)
    if alpha <= 0.0:
        return
    model.tally[UPDATES] += 1
    information = scw_information(alpha, variance, phi) if form == PRECISION else 0.0
    for i in range(mu.size):
        z = x[i] - b[i]
        change = sign * alpha * z / G[i]
        mu[i] += change
        model.lag[i] -= boost * change
        G[i] = more_precise(G[i], z, beta, information, form)


@jit
def _sweep(x, norm, C, label, buffer, model, parameters, norms):
    """Pair a new row with the buffered rows of the other class, oldest first (Algorithm 3)."""
    other, sign, capacity = 1 - label, 2.0 * label - 1.0, buffer.rows.shape[1]
    boost = boost_of(model.tally[ROWS])
    model.tally[PAIRS] += buffer.size[other]
    for k in range(buffer.size[other]):
        slot = (buffer.oldest[other] + k) % capacity
        b = buffer.rows[other, slot]
        margin = sign * margin_of(model.mu, x, b)
        if not margin >= parameters.phi * (norm + norms[other, slot]):
            _update(model, x, b, sign, margin, C, parameters, boost)


@kernel
def learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the rows `order` of `X`, in that order (Algorithm 1)."""
    capacity, measured = buffer.rows.shape[1], order.size >= _FEW
    origin = np.zeros(X.shape[1])
    norms = np.full((2, capacity), np.inf)  # with infinite norms no pair is skipped
    if measured:
        centre(X, order, origin)
        for label in range(2):
            for k in range(buffer.size[label]):
                slot = (buffer.oldest[label] + k) % capacity
                norms[label, slot] = _norm(model.G, buffer.rows[label, slot], origin)
    at = 0
    for row in order:
        if weights[row] > 0.0:
            x, label = X[row], labels[row]
            norm = _norm(model.G, x, origin) if measured else np.inf
            per_lag = per_lag_of(model.tally)
            foretell_row_both(trail, at, x, label, model.mu, model.lag, per_lag)
            slot = store(buffer, label, x, parameters.reservoir)
            at += 1
            if slot >= 0:
                norms[label, slot] = norm
            C = parameters.C * row_weight(buffer, label, weights[row], parameters.balanced)
            _sweep(x, norm, C, label, buffer, model, parameters, norms)
            model.tally[ROWS] += 1
