"""CBR with full covariance, pair by pair: Algorithm 1, with Algorithm 3 as its inner loop.

A pair costs O(d) for each non-zero of z, for Sigma z, if it may violate its constraint, and O(d^2) for
the update if it does. Nearly all that do not are skipped in O(d), by an upper bound of their deviation
(``_reaches``). Products and updates are made for several pairs at a time (``_pending``). Neither changes
a result.
"""

import math

import numpy as np

from cbrank.kernels import _pending, _reaches
from cbrank.kernels._awake import (
    awake_of,
    buffer_of,
    give_back,
    model_of,
    rows_of,
    store_all,
    trail_of,
)
from cbrank.kernels._jit import allocating_jit, jit, kernel, outlined_jit
from cbrank.kernels._pending import GROUP, margin_of, subtract
from cbrank.kernels.buffers import row_weight, store
from cbrank.kernels.confidence import (
    PAIRS,
    ROWS,
    UPDATES,
    WIDEST,
    boost_of,
    is_rounding,
    narrow,
    per_lag_of,
    scw_step,
)
from cbrank.kernels.prequential import remember, say_both

# Calls with fewer rows do without reaches: the products of all buffered rows would cost more than the
# pairs that they save.
_FEW = 32
# Rows after which the squares of buffered rows are computed anew: this share of all rows so far, as Sigma
# changes ever more slowly, within these bounds.
_SHARE, _SOONEST, _LATEST = 16, 32, 1024


@jit
def rows_between(rows):
    """Return how many rows come before the next squares of buffered rows, after so many rows in all."""
    return min(max(rows // _SHARE, _SOONEST), _LATEST)


# A pair -------------------------------------------------------------------------------------------


@jit
def _step(pending, k, sign, C, phi, mu):
    """Return alpha, beta and the variance of a pair of the group, and z.z."""
    variance, square, ahead = _pending.bring_up_to_date(pending, k, mu)
    if is_rounding(variance, pending.Z[k], square, pending.left):
        return 0.0, 0.0, variance, square
    alpha, beta = scw_step(sign * ahead, variance, C, phi)
    return alpha, beta, variance, square


@outlined_jit
def _narrow(pending, k, size, model, reaches):
    """Narrow weights that are too wide for a pair of the group (see ``confidence``).

    It needs Sigma itself, so that what is known of the pairs to come is of another one.
    """
    _pending.apply(pending)
    if narrow(model, pending.Sigma, pending.Z[k]):
        reaches.known[0] = False
    for i in range(pending.every.size):
        pending.left[i] = pending.Sigma[i, i]
    for later in range(k, size):
        pending.looked[later], pending.reach[later] = False, np.nan


# A group of pairs ---------------------------------------------------------------------------------


@jit
def _look_ahead(x, buffer, other, first, size, sign, phi, mu, pending, reaches):
    """Compute the products of those pairs of a group that do not meet their constraint as things stand."""
    reach, looked, others, alone = pending.reach, pending.looked, buffer.rows[other], -1
    for k in range(size):
        slot = (buffer.oldest[other] + first + k) % others.shape[0]
        b = others[slot]
        reach[k], ahead = _reaches.reach_and_margin(reaches, other, slot, phi, mu, x, b)
        looked[k] = not _reaches.is_beyond(sign * ahead, reach[k])
        if looked[k]:
            subtract(x, b, pending.Z[k])
            if alone < 0:
                alone = k
            else:
                _pending.look_at_two(pending, alone, k)
                alone = -1
    if alone >= 0:
        _pending.look_at(pending, alone)


@jit
def _meet(x, buffer, other, first, size, sign, C, phi, model, boost, pending, reaches):
    """Pair a new row with some buffered rows of the other class, from the `first` oldest on."""
    reach, looked, others, moved = pending.reach, pending.looked, buffer.rows[other], False
    _look_ahead(x, buffer, other, first, size, sign, phi, model.mu, pending, reaches)
    k, narrowed = 0, -1
    while k < size:
        b = others[(buffer.oldest[other] + first + k) % others.shape[0]]
        if not looked[k]:
            if not moved or _reaches.is_beyond(sign * margin_of(model.mu, x, b), reach[k]):
                k += 1
                continue
            subtract(x, b, pending.Z[k])
            _pending.look_at(pending, k)
        alpha, beta, variance, square = _step(pending, k, sign, C, phi, model.mu)
        # Variances are at most 1, so with z.z up to WIDEST^2 no weight can be too wide.
        if alpha > 0.0 and square > WIDEST**2 and narrowed < k:
            _narrow(pending, k, size, model, reaches)
            moved, narrowed = True, k
            continue
        if alpha > 0.0:
            scale, least = math.sqrt(beta), 1.0 - beta * variance
            _pending.update(pending, k, model, sign * alpha, boost, scale, least)
            model.tally[UPDATES] += 1
            moved = True
        k += 1
    _pending.apply(pending)


# A row --------------------------------------------------------------------------------------------


@jit
def _sweep(x, C, label, buffer, model, phi, pending, reaches):
    """Pair a new row with the buffered rows of the other class, oldest first (Algorithm 3)."""
    other, sign = 1 - label, 2.0 * label - 1.0
    boost, size = boost_of(model.tally[ROWS]), buffer.size[other]
    model.tally[PAIRS] += size
    for first in range(0, size, GROUP):
        few = min(GROUP, size - first)
        _meet(x, buffer, other, first, few, sign, C, phi, model, boost, pending, reaches)


@jit
def _learn_row(x, label, weight, buffer, model, parameters, pending, reaches):
    """Buffer a row and sweep."""
    if reaches.known[0]:
        _reaches.look_at_new(reaches, x, pending)
    slot = store(buffer, label, x, parameters.reservoir)
    if slot >= 0 and reaches.known[0]:
        _reaches.keep_new(reaches, label, slot)
    C = parameters.C * row_weight(buffer, label, weight, parameters.balanced)
    _sweep(x, C, label, buffer, model, parameters.phi, pending, reaches)
    model.tally[ROWS] += 1


@allocating_jit
def _learn(X, labels, weights, order, d, buffer, model, parameters, trail):
    """Learn from padded rows, of which `order` has the places in `labels` and `weights`."""
    measured = order.size >= _FEW
    pending = _pending.begin(model.Sigma, d)
    reaches = _reaches.nothing_known(X.shape[1], buffer.rows.shape[1])
    at, due = 0, 0
    for k in range(order.size):
        weight, label = weights[order[k]], labels[order[k]]
        if measured and k >= due:
            _reaches.measure(reaches, X[k:], buffer, pending)
            due = k + rows_between(model.tally[ROWS])
        if weight > 0.0:
            say_both(trail, at, X[k], model.mu, model.lag, per_lag_of(model.tally), buffer)
            remember(X[k], label, buffer, trail)
            at += 1
            _learn_row(X[k], label, weight, buffer, model, parameters, pending, reaches)


@kernel
def learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the rows `order` of `X`, in that order (Algorithm 1).

    A row of weight 0 is passed over as if it were not there.
    """
    places = awake_of(model)
    d, width = places.size, _pending.padded(places.size)
    rows, learner = rows_of(X, order, places, width), model_of(model, places, width)
    buffered, notes = buffer_of(buffer, places, width), trail_of(trail, places, width)
    _learn(rows, labels, weights, order, d, buffered, learner, parameters, notes)
    give_back(model, learner, places)
    store_all(X, labels, weights, order, buffer, parameters.reservoir, trail)
