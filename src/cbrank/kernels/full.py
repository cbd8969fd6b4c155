"""CBR with full covariance, pair by pair: Algorithm 1, with Algorithm 3 as its inner loop.

A pair costs O(d) for each non-zero of z, for Sigma z, if it may violate its constraint, and O(d^2) for
the update if it does. Nearly all that do not are skipped in O(d), by an upper bound of their deviation
(``_reaches``). Products and updates are made for several pairs at a time (``_pending``). Neither changes
a result.
"""

import numpy as np

from cbrank.kernels import _pending, _reaches
from cbrank.kernels._awake import (
    awake_of,
    give_back,
    model_of,
    ring_of,
    rows_of,
    store_all,
    store_twice,
    trail_of,
)
from cbrank.kernels._jit import allocating_jit, jit, kernel, outlined_jit
from cbrank.kernels._pending import GROUP
from cbrank.kernels._simd import lowest_bit, splat, store, times
from cbrank.kernels.buffers import row_weight
from cbrank.kernels.confidence import (
    PAIRS,
    ROWS,
    UPDATES,
    boost_of,
    is_rounding,
    narrow,
    per_lag_of,
    scw_step,
)
from cbrank.kernels.prequential import remember, say_both

# Calls with fewer rows do without reaches: the products of all buffered rows would cost more than the
# pairs that they save.
_FEW = 16
# Rows after which the squares of buffered rows are computed anew: this share of all rows so far, as Sigma
# changes ever more slowly, within these bounds.
_SHARE, _SOONEST, _LATEST = 16, 32, 1024


@jit
def rows_between(rows):
    """Return how many rows come before the next squares of buffered rows, after so many rows in all."""
    return min(max(rows // _SHARE, _SOONEST), _LATEST)


# A group of pairs ---------------------------------------------------------------------------------


@jit
def _step(pending, k, C, phi):
    """Return alpha and beta of a pair of the group."""
    variance = pending.variance[k]
    if is_rounding(variance, pending.Z[k], pending.square[k], pending.left):
        return 0.0, 0.0
    return scw_step(pending.margin[k], variance, C, phi)


@outlined_jit
def _narrow(pending, k, sign, model, reaches, widest):
    """Narrow weights that are too wide for a pair of the group (see ``confidence``).

    It needs Sigma itself, so that what is known of the pairs to come is of another one.
    """
    _pending.apply(pending)
    if narrow(model, pending.Sigma, pending.Z[k], widest):
        reaches.known[0] = False
    for i in range(pending.every.size):
        pending.left[i] = pending.Sigma[i, i]
    margins = _pending.products_with(model.mu, pending)
    store(pending.margin, 0, times(splat(sign), margins))
    store(pending.reach, 0, splat(np.nan))


@jit
def _meet(x, rows, other, slot, size, sign, C, parameters, model, boost, pending, reaches):
    """Pair a new row with some buffered rows of the other class, those from `slot` on.

    Pairs are the bits of numbers, the first of them the lowest.
    """
    phi, widest = parameters.phi, parameters.widest
    _reaches.look_ahead(reaches, other, slot, phi, sign, model.mu, x, rows, pending)
    new, looked, todo, narrowed = _reaches.open_pairs(pending) & ((1 << size) - 1), 0, 0, -1
    while True:
        if new:
            _pending.look_at(pending, new)
            looked, todo = looked | new, todo | new
        if not todo:
            break
        k, new = lowest_bit(todo), 0
        alpha, beta = _step(pending, k, C, phi)
        # Variances are at most 1, so with z.z up to widest^2 no weight can be too wide.
        if alpha > 0.0 and pending.square[k] > widest * widest and narrowed < k:
            _narrow(pending, k, sign, model, reaches, widest)
            new, looked, todo, narrowed = (1 << size) - (1 << k), 0, 0, k
            continue
        todo &= todo - 1
        if alpha > 0.0:
            _pending.update(pending, k, model, sign, alpha, beta, boost)
            model.tally[UPDATES] += 1
            new = _reaches.open_pairs(pending) & ((1 << size) - (2 << k)) & ~looked
    _pending.apply(pending)


# A row --------------------------------------------------------------------------------------------


@jit
def _sweep(x, C, label, ring, model, parameters, pending, reaches):
    """Pair a new row with the buffered rows of the other class, oldest first (Algorithm 3)."""
    other, sign = 1 - label, 2.0 * label - 1.0
    boost, size = boost_of(model.tally[ROWS]), ring.size[other]
    model.tally[PAIRS] += size
    for first in range(0, size, GROUP):
        slot, few = ring.oldest[other] + first, min(GROUP, size - first)
        _meet(
            x,
            ring.rows[other],
            other,
            slot,
            few,
            sign,
            C,
            parameters,
            model,
            boost,
            pending,
            reaches,
        )


@jit
def _learn_row(x, label, weight, ring, model, parameters, pending, reaches):
    """Buffer a row and sweep."""
    if reaches.known[0]:
        _reaches.look_at_new(reaches, x, pending)
    slot = store_twice(ring, label, x, parameters.reservoir)
    if slot >= 0 and reaches.known[0]:
        _reaches.keep_new(reaches, label, slot)
    C = parameters.C * row_weight(ring, label, weight, parameters.balanced)
    _sweep(x, C, label, ring, model, parameters, pending, reaches)
    model.tally[ROWS] += 1


@allocating_jit
def _learn(X, labels, weights, order, d, ring, model, parameters, trail):
    """Learn from padded rows, of which `order` has the places in `labels` and `weights`."""
    measured = order.size >= _FEW
    pending = _pending.begin(model.Sigma, d)
    reaches = _reaches.nothing_known(X.shape[1], ring.rows.shape[1])
    at, due = 0, 0
    for k in range(order.size):
        weight, label = weights[order[k]], labels[order[k]]
        if measured and k >= due:
            _reaches.measure(reaches, X[k:], ring, pending)
            due = k + rows_between(model.tally[ROWS])
        if weight > 0.0:
            say_both(trail, at, X[k], model.mu, model.lag, per_lag_of(model.tally), ring)
            remember(X[k], label, ring, trail)
            at += 1
            _learn_row(X[k], label, weight, ring, model, parameters, pending, reaches)


@kernel
def learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the rows `order` of `X`, in that order (Algorithm 1).

    A row of weight 0 is passed over as if it were not there.
    """
    places = awake_of(model)
    d, width = places.size, _pending.padded(places.size)
    rows, learner = rows_of(X, order, places, width), model_of(model, places, width)
    ring, notes = ring_of(buffer, places, width), trail_of(trail, places, width)
    _learn(rows, labels, weights, order, d, ring, learner, parameters, notes)
    give_back(model, learner, places)
    store_all(X, labels, weights, order, buffer, parameters.reservoir, trail)
