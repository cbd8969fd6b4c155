"""CBR-diag on dense rows: Proposition 2 and its two repaired forms.

Pairs that cannot fire are told by their margin alone, as in ``full``: a precision only grows, so
a norm of a buffered row, measured once, is a bound for good.
"""

import math

import numpy as np

from cbrank.kernels._jit import jit, kernel
from cbrank.kernels.buffers import row_weight, store
from cbrank.kernels.confidence import (
    DROP,
    EPSILON,
    LARGEST_C,
    PAPER,
    PRECISION,
    ROWS,
    SMALLEST_VARIANCE,
    UPDATES,
    boost_of,
    count_pairs,
    scw_information,
    scw_step,
)
from cbrank.kernels.vectors import centre, margin_of

_FEW = 32  # rows of a call that do not repay measuring the buffered ones


@jit
def more_precise(G, z, beta, information, form):
    """Return a feature's precision after a step, in one of the three forms."""
    if form == PRECISION:
        more = G + information * z * z
    elif form == DROP:
        more = G / max(1.0 - beta * z * z / G, EPSILON)
    else:
        more = G + beta * z * z
    return min(more, 1.0 / SMALLEST_VARIANCE)


@jit
def shift_of(C, form):
    """Return what Proposition 2 adds to each precision inside the variance."""
    return min(C, LARGEST_C) if form == PAPER else 0.0


@jit
def _norm(G, x, origin):
    """Return a bound of |x - origin| that rounding cannot undercut."""
    square = 0.0
    for i in range(x.size):
        square += (x[i] - origin[i]) ** 2 / G[i]
    return math.sqrt(square * (1.0 + EPSILON * (x.size + 8)))


@jit
def _update(model, x, b, sign, margin, C, phi, form, boost):
    """Update the ranker with one pair; say whether that moved it."""
    mu, G = model.mu, model.G
    shift, variance = shift_of(C, form), 0.0
    for i in range(mu.size):
        variance += (x[i] - b[i]) ** 2 / (G[i] + shift)
    alpha, beta = scw_step(margin, variance, C, phi)
    if alpha <= 0.0:
        return False
    model.tally[UPDATES] += 1
    information = scw_information(alpha, variance, phi) if form == PRECISION else 0.0
    for i in range(mu.size):
        z = x[i] - b[i]
        change = sign * alpha * z / G[i]
        mu[i] += change
        model.lag[i] -= boost * change
        G[i] = more_precise(G[i], z, beta, information, form)
    return True


@jit
def _sweep(x, norm, C, label, buffer, model, phi, form, norms, margins):
    """Meet a new row with the buffered rows of the other class, oldest first."""
    other, sign, capacity = 1 - label, 2.0 * label - 1.0, buffer.rows.shape[1]
    count_pairs(model, x, buffer, other, sign, margins)
    boost, moved = boost_of(model.tally[ROWS]), False
    for k in range(buffer.size[other]):
        slot = (buffer.oldest[other] + k) % capacity
        b = buffer.rows[other, slot]
        margin = sign * margin_of(model.mu, x, b) if moved else margins[slot]
        if not margin >= phi * (norm + norms[other, slot]):
            moved |= _update(model, x, b, sign, margin, C, phi, form, boost)


@kernel
def learn(X, labels, weights, order, buffer, model, parameters):
    """Stream the rows `order` of `X` through CBR-diag."""
    capacity, measured = buffer.rows.shape[1], order.size >= _FEW
    origin, margins = np.zeros(X.shape[1]), np.empty(capacity)
    norms = np.full((2, capacity), np.inf)
    if measured:
        centre(X, order, origin)
        for label in range(2):
            for slot in range(buffer.size[label]):
                norms[label, slot] = _norm(model.G, buffer.rows[label, slot], origin)
    for row in order:
        if weights[row] > 0.0:
            x, label = X[row], labels[row]
            norm = _norm(model.G, x, origin) if measured else np.inf
            slot = store(buffer, label, x, parameters.reservoir)
            if slot >= 0:
                norms[label, slot] = norm
            C = parameters.C * row_weight(buffer, label, weights[row], parameters.balanced)
            _sweep(
                x, norm, C, label, buffer, model, parameters.phi, parameters.form, norms, margins
            )
            model.tally[ROWS] += 1
