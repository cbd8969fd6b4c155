"""Weights that a learner makes no use of are asleep: sweeps of a full covariance leave them out.

Such a weight has a mean of 0 and a variance of exactly `ASLEEP`, and it stays so: its column is as
good as absent. A learner with 10 weights awake of 600 then costs what one with 10 columns does.
What is common to all learners, the buffer and the test by the weights held, keeps all columns.
"""

import numpy as np

from cbrank.kernels._jit import jit
from cbrank.kernels.buffers import DenseBuffer, store
from cbrank.kernels.confidence import FullModel
from cbrank.kernels.prequential import Trail, witness
from cbrank.parameters import ASLEEP


@jit
def awake_of(model):
    """Return the places of the weights that are awake."""
    places, n = np.empty(model.mu.size + 1, np.int64), 0
    for i in range(model.mu.size):
        places[n] = i
        n += not (model.Sigma[i, i] == ASLEEP and model.mu[i] == 0.0 and model.lag[i] == 0.0)
    return places[:n].copy()


@jit
def _some(vector, places):
    out = np.empty(places.size)
    for k in range(places.size):
        out[k] = vector[places[k]]
    return out


@jit
def rows_of(X, order, places):
    """Return some columns of the rows `order`."""
    out = np.empty((order.size, places.size))
    for k in range(order.size):
        for i in range(places.size):
            out[k, i] = X[order[k], places[i]]
    return out


@jit
def model_of(model, places):
    """Return a model of some of the weights, with the same tally."""
    Sigma = np.empty((places.size, places.size))
    for i in range(places.size):
        for j in range(places.size):
            Sigma[i, j] = model.Sigma[places[i], places[j]]
    return FullModel(_some(model.mu, places), Sigma, _some(model.lag, places), model.tally)


@jit
def buffer_of(buffer, places):
    """Return a copy of a buffer with some columns."""
    rows = np.empty((2, buffer.rows.shape[1], places.size))
    means = np.empty((2, places.size))
    for label in range(2):
        for i in range(places.size):
            means[label, i] = buffer.means[label, places[i]]
        for slot in range(buffer.size[label]):
            for i in range(places.size):
                rows[label, slot, i] = buffer.rows[label, slot, places[i]]
    return DenseBuffer(
        rows,
        means,
        buffer.size.copy(),
        buffer.oldest.copy(),
        buffer.seen.copy(),
        buffer.random.copy(),
    )


@jit
def trail_of(trail, places):
    """Return a trail with the same notes that takes rows with some columns."""
    held, origin = _some(trail.held, places), _some(trail.origin, places)
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
