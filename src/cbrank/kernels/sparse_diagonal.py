"""CBR-diag on sparse rows: what ``diagonal`` does, at the cost of a buffered row's non-zeros.

Mean, variance, lag and the new row's value lie side by side, so that a feature costs one cache
line, and x's own part of margin and variance is computed once. Buffered rows keep the score they
had when last looked at. Since then the mean has moved, in the norm of the variances, by no more
than `moves` tells, so the score is off by no more than that times the row's norm: a pair that
cannot fire even so is not looked at. One that can is weighed in a single walk, and only if it
still can are the exact variance and the update worked out.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import jit, kernel
from cbrank.kernels.buffers import row_weight, store_sparse
from cbrank.kernels.confidence import (
    DROP,
    EPSILON,
    PRECISION,
    ROWS,
    UPDATES,
    boost_of,
    count_pair,
    scw_information,
    scw_step,
)
from cbrank.kernels.diagonal import shift_of

MU, VARIANCE, LAG, X_VALUE = range(4)


class _Known(NamedTuple):
    """What is known of the buffered rows, by class and slot."""

    score: np.ndarray  # mu . b when last looked at
    moves: np.ndarray  # how far the mean had moved by then
    norm: np.ndarray  # a bound of |b|
    positive: np.ndarray  # whether no value is below zero


@jit
def _weigh(features, indices, values):
    """Return the score of a row and its norm squared."""
    score, square = 0.0, 0.0
    for k in range(indices.size):
        i, value = indices[k], values[k]
        score += features[i, MU] * value
        square += features[i, VARIANCE] * value * value
    return score, square


@jit
def _is_positive(values):
    least = 0.0
    for k in range(values.size):
        least = min(least, values[k])
    return least >= 0.0


@jit
def _weigh_pair(features, b_indices, b_values):
    """Return the score of a buffered row, and |x - b|^2 - |x|^2."""
    score, change = 0.0, 0.0
    for k in range(b_indices.size):
        i, b = b_indices[k], b_values[k]
        score += features[i, MU] * b
        change += features[i, VARIANCE] * b * (b - 2.0 * features[i, X_VALUE])
    return score, change


@jit
def _variance(features, indices, values, b_indices, b_values, shift):
    """Return the sum of z^2 / (G + shift) over the features of z = x - b."""
    total = 0.0
    for k in range(b_indices.size):
        i = b_indices[k]
        z, variance = features[i, X_VALUE] - b_values[k], features[i, VARIANCE]
        total += z * z * variance / (1.0 + shift * variance)
        features[i, X_VALUE] = 0.0
    for k in range(indices.size):
        i = indices[k]
        z, variance = features[i, X_VALUE], features[i, VARIANCE]
        total += z * z * variance / (1.0 + shift * variance)
        features[i, X_VALUE] = values[k]
    return total


@jit
def _move(features, i, z, step, gain, form, boost):
    variance = features[i, VARIANCE]
    change = step * z * variance
    features[i, MU] += change
    features[i, LAG] -= boost * change
    eaten = gain * z * z * variance
    if form == DROP:
        features[i, VARIANCE] = variance * max(1.0 - eaten, EPSILON)
    else:
        features[i, VARIANCE] = variance / (1.0 + eaten)


@jit
def _fire(features, indices, values, b_indices, b_values, step, gain, form, boost):
    """Update every feature of z = x - b; return the new score of x and its norm squared."""
    for k in range(b_indices.size):
        i = b_indices[k]
        _move(features, i, features[i, X_VALUE] - b_values[k], step, gain, form, boost)
        features[i, X_VALUE] = 0.0
    score, square = 0.0, 0.0
    for k in range(indices.size):
        i, value = indices[k], values[k]
        if features[i, X_VALUE] != 0.0:
            _move(features, i, value, step, gain, form, boost)
        features[i, X_VALUE] = value
        score += features[i, MU] * value
        square += features[i, VARIANCE] * value * value
    return score, square


@jit
def _row(buffer, label, slot):
    length = buffer.length[label, slot]
    return buffer.indices[label, slot, :length], buffer.values[label, slot, :length]


@jit
def _look(features, buffer, label, slot, known, moved):
    """Find out about a buffered row anew."""
    score, square = _weigh(features, *_row(buffer, label, slot))
    known.score[label, slot], known.moves[label, slot] = score, moved
    known.norm[label, slot] = _bound(square)


@jit
def _bound(square):
    """Return a norm that rounding cannot undercut."""
    return math.sqrt(square) * (1.0 + 1e-9)


@jit
def _sweep(indices, values, label, C, buffer, model, parameters, known, moved):
    """Meet a new row with the buffered rows of the other class, oldest first."""
    features, other, sign = model.features, 1 - label, 2.0 * label - 1.0
    capacity, phi, form = buffer.length.shape[1], parameters.phi, parameters.form
    shift, boost = shift_of(C, form), boost_of(model.tally[ROWS])
    score, square = _weigh(features, indices, values)
    positive = _is_positive(values)
    for slot in range(buffer.size[other]):
        doubt = (moved - known.moves[other, slot]) * known.norm[other, slot]
        if not abs(score - known.score[other, slot]) > doubt:
            _look(features, buffer, other, slot, known, moved)
        count_pair(model.tally, sign * (score - known.score[other, slot]))
    for k in range(buffer.size[other]):
        slot = (buffer.oldest[other] + k) % capacity
        norm, b_norm = _bound(square), known.norm[other, slot]
        apart = norm + b_norm
        if positive and known.positive[other, slot]:
            apart = math.sqrt(norm * norm + b_norm * b_norm)
        margin = sign * (score - known.score[other, slot])
        if margin - (moved - known.moves[other, slot]) * b_norm >= phi * apart:
            continue
        b_indices, b_values = _row(buffer, other, slot)
        b_score, change = _weigh_pair(features, b_indices, b_values)
        known.score[other, slot], known.moves[other, slot] = b_score, moved
        margin = sign * (score - b_score)
        if margin >= phi * math.sqrt(max(square + change, 0.0) + 1e-9 * apart * apart):
            continue
        variance = _variance(features, indices, values, b_indices, b_values, shift)
        alpha, beta = scw_step(margin, variance, C, phi)
        if alpha > 0.0:
            gain = scw_information(alpha, variance, phi) if form == PRECISION else beta
            step = sign * alpha
            score, square = _fire(
                features, indices, values, b_indices, b_values, step, gain, form, boost
            )
            model.tally[UPDATES] += 1
            moved += alpha * apart
    return moved


@kernel
def learn(X, labels, weights, order, buffer, model, parameters):
    """Stream the sparse rows `order` of `X` through CBR-diag."""
    features, shape, moved = model.features, buffer.length.shape, 0.0
    known = _Known(np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape, np.bool_))
    for label in range(2):
        for slot in range(buffer.size[label]):
            _look(features, buffer, label, slot, known, moved)
            known.positive[label, slot] = _is_positive(_row(buffer, label, slot)[1])
    for row in order:
        if weights[row] > 0.0:
            label, begin, end = labels[row], X.indptr[row], X.indptr[row + 1]
            indices, values = X.indices[begin:end], X.values[begin:end]
            slot = store_sparse(buffer, label, indices, values, parameters.reservoir)
            C = parameters.C * row_weight(buffer, label, weights[row], parameters.balanced)
            for k in range(values.size):
                features[indices[k], X_VALUE] = values[k]
            moved = _sweep(indices, values, label, C, buffer, model, parameters, known, moved)
            for k in range(values.size):
                features[indices[k], X_VALUE] = 0.0
            if slot >= 0:
                _look(features, buffer, label, slot, known, moved)
                known.positive[label, slot] = _is_positive(values)
            model.tally[ROWS] += 1
