"""What a sweep of a full covariance works on: copies of the weights awake, padded for SIMD.

Weights that a learner makes no use of are *asleep*: they have a mean of 0 and a variance of exactly
`ASLEEP`, and stay so: their columns are as good as absent. A learner with 10 weights awake of 600 then
costs what one with 10 columns does. What is common to all learners, the buffer and the test by the
weights held, keeps all columns.
"""

import numpy as np

from cbrank.kernels._jit import allocating_jit, jit
from cbrank.kernels._simd import WIDTH, load
from cbrank.kernels._simd import store as write
from cbrank.kernels.buffers import DenseBuffer, choose_slot, store
from cbrank.kernels.confidence import FullModel
from cbrank.kernels.prequential import Trail, witness
from cbrank.parameters import ASLEEP

_LINE = 8  # doubles of a cache line
BEYOND = 8  # rows after those of Sigma, for a load of 64 numbers may go beyond the last


@allocating_jit
def aligned(rows, width):
    """Return a matrix of zeros that begins at a cache line."""
    room = np.zeros(rows * width + _LINE)
    begin = (_LINE - room.ctypes.data // 8 % _LINE) % _LINE
    return room[begin : begin + rows * width].reshape(rows, width)


@allocating_jit
def awake_of(model):
    """Return the places of the weights that are awake, unsigned as in ``_pending``."""
    places, n = np.empty(model.mu.size + 1, np.uint64), 0
    for i in range(model.mu.size):
        places[n] = i
        n += not (model.Sigma[i, i] == ASLEEP and model.mu[i] == 0.0 and model.lag[i] == 0.0)
    return places[:n].copy()


@allocating_jit
def _some(vector, places, width):
    out = aligned(1, width)[0]
    for k in range(places.size):
        out[k] = vector[places[k]]
    return out


@allocating_jit
def rows_of(X, order, places, width):
    """Return some columns of the rows `order`, followed by zeros up to a width."""
    out = aligned(order.size, width)
    for k in range(order.size):
        for i in range(places.size):
            out[k, i] = X[order[k], places[i]]
    return out


@allocating_jit
def model_of(model, places, width):
    """Return a model of some of the weights, with the same tally."""
    Sigma = aligned(width + BEYOND, width)[:width]
    for i in range(places.size):
        for j in range(places.size):
            Sigma[i, j] = model.Sigma[places[i], places[j]]
    mu, lag = _some(model.mu, places, width), _some(model.lag, places, width)
    return FullModel(mu, Sigma, lag, model.tally)


# A sweep meets the buffered rows of a class from the oldest on, eight at a time. For them to follow one
# another, a copy of a buffer, a *ring*, has each row in two slots, one as many behind the other as the buffer
# has; and after the last slot there is room for seven more.


@jit
def slots_of(capacity):
    """Return how many slots a ring has."""
    return 2 * capacity + WIDTH


@jit
def capacity_of(slots):
    """Return how many rows of each class a ring can have, given an array by class and slot."""
    return (slots.shape[1] - WIDTH) // 2


@jit
def store_twice(ring, label, x, reservoir):
    """Count a row and offer it to the ring of its class; return its slot or -1."""
    ring.seen[label] += 1
    slot, capacity = choose_slot(ring, label, reservoir), ring.came.shape[1]
    if slot >= 0:
        one, other = ring.rows[label, slot], ring.rows[label, slot + capacity]
        for i in range(0, x.size, WIDTH):
            here = load(x, i)
            write(one, i, here)
            write(other, i, here)
    return slot


@allocating_jit
def ring_of(buffer, places, width):
    """Return a copy of a buffer with some columns, as a ring."""
    capacity = buffer.rows.shape[1]
    ring = buffer_of(buffer, places, width, slots_of(capacity))
    for label in range(2):
        for k in range(ring.size[label]):
            slot = (ring.oldest[label] + k) % capacity
            for i in range(places.size):
                ring.rows[label, slot + capacity, i] = ring.rows[label, slot, i]
    return ring


@allocating_jit
def buffer_of(buffer, places, width, slots):
    """Return a copy of a buffer with some columns and so many slots."""
    rows, means = aligned(2 * slots, width).reshape(2, slots, width), aligned(4, width)
    for k in range(4):
        for i in range(places.size):
            means[k, i] = buffer.means[k, places[i]]
    for label in range(2):
        for k in range(buffer.size[label]):
            slot = (buffer.oldest[label] + k) % buffer.came.shape[1]
            for i in range(places.size):
                rows[label, slot, i] = buffer.rows[label, slot, places[i]]
    return DenseBuffer(
        rows,
        means,
        buffer.size.copy(),
        buffer.oldest.copy(),
        buffer.seen.copy(),
        buffer.random.copy(),
        buffer.came.copy(),
        buffer.least,
    )


@allocating_jit
def trail_of(trail, places, width):
    """Return a trail with the same notes that takes rows with some columns."""
    held, origin = _some(trail.held, places, width), _some(trail.origin, places, width)
    return Trail(held, origin, trail.memory, trail.said, trail.tested, trail.labels)


@jit
def give_back(model, learned, places):
    """Write what the weights awake have learned to the whole model."""
    for i in range(places.size):
        model.mu[places[i]], model.lag[places[i]] = learned.mu[i], learned.lag[i]
        for j in range(places.size):
            model.Sigma[places[i], places[j]] = learned.Sigma[i, j]


@jit
def store_all(X, labels, weights, order, buffer, reservoir, trail):
    """Store whole rows as the sweep has stored those columns that are awake, and test them."""
    at = 0
    for k in range(order.size):
        row = order[k]
        if weights[row] > 0.0:
            witness(trail, at, X[row], labels[row], buffer)
            store(buffer, labels[row], X[row], reservoir)
            at += 1
