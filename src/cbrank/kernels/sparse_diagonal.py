"""CBR-diag on sparse rows: what ``diagonal`` does, at the cost of a buffered row's non-zeros.

Mean, variance and lag of a feature lie side by side, so that it costs one cache line; beside them
stands its place in the new row x, whose own part is worked on in contiguous arrays. Buffered rows
keep the score they had when last looked at. Since then the mean has moved, in the norm of the
variances, by no more than `drift` tells, so a score is off by no more than that times the row's
norm: a pair that cannot fire even so is not looked at. One that can is weighed in a single walk,
and only if it still can are the exact variance and the update worked out.
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
    SMALLEST_VARIANCE,
    TIED,
    UPDATES,
    boost_of,
    count_pair,
    scw_information,
    scw_step,
)
from cbrank.kernels.diagonal import shift_of

MU, VARIANCE, LAG, PLACE = range(4)


class _Known(NamedTuple):
    """What is known of the buffered rows, by class and slot."""

    score: np.ndarray  # mu . b when last looked at
    rise: np.ndarray  # what drift[1] was then: how far scores may have risen since
    fall: np.ndarray  # and drift[0]
    norm: np.ndarray  # a bound of |b|
    positive: np.ndarray  # whether no value is below zero


class _Row(NamedTuple):
    """The new row: its values, and what the table has of its features; place 0 stays empty."""

    value: np.ndarray
    z: np.ndarray  # its part of x - b: its values between two pairs
    mu: np.ndarray
    variance: np.ndarray
    lag: np.ndarray


@jit
def _take(features, indices, values, x):
    """Copy a new row and its features into `x`, and note their places in the table."""
    for k in range(indices.size):
        i, place = indices[k], k + 1
        x.value[place] = x.z[place] = values[k]
        x.mu[place], x.variance[place] = features[i, MU], features[i, VARIANCE]
        x.lag[place] = features[i, LAG]
        features[i, PLACE] = place


@jit
def _give_back(features, indices, x):
    """Bring the table up to date with `x`."""
    for k in range(indices.size):
        i, place = indices[k], k + 1
        features[i, MU], features[i, VARIANCE] = x.mu[place], x.variance[place]
        features[i, LAG] = x.lag[place]


@jit
def _weigh_new(x, n):
    """Return the new row's score, its norm squared and whether no value is below zero."""
    score, square, below = 0.0, 0.0, 0.0
    for k in range(1, n + 1):
        score += x.mu[k] * x.value[k]
        square += x.variance[k] * x.value[k] * x.value[k]
        below += abs(x.value[k]) - x.value[k]
    return score, square, below == 0.0


@jit
def _weigh(features, indices, values):
    """Return the score of a buffered row and its norm squared."""
    score, square = 0.0, 0.0
    for k in range(indices.size):
        i, value = indices[k], values[k]
        score += features[i, MU] * value
        square += features[i, VARIANCE] * value * value
    return score, square


@jit
def _weigh_pair(features, b_indices, b_values, x):
    """Return the score of a buffered row, and |x - b|^2 - |x|^2."""
    score, change = 0.0, 0.0
    for k in range(b_indices.size):
        i, b = b_indices[k], b_values[k]
        score += features[i, MU] * b
        change += features[i, VARIANCE] * b * (b - 2.0 * x.value[int(features[i, PLACE])])
    return score, change


@jit
def _ahead(features, b_indices, b_values, x, n):
    """Return how far x is ahead of b, zero without rounding where the rows are equal."""
    total = 0.0
    for k in range(b_indices.size):
        place = int(features[b_indices[k], PLACE])
        if place > 0:
            x.z[place] -= b_values[k]
        else:
            total -= features[b_indices[k], MU] * b_values[k]
    for k in range(1, n + 1):
        total += x.mu[k] * x.z[k]
        x.z[k] = x.value[k]
    return total


@jit
def _variance(features, b_indices, b_values, x, n, shift):
    """Return the sum of z^2 / (G + shift); leave z where x has the feature in `x`."""
    total = 0.0
    for k in range(b_indices.size):
        i, b = b_indices[k], b_values[k]
        place, variance = int(features[i, PLACE]), features[i, VARIANCE]
        if place > 0:
            x.z[place] -= b
        else:
            total += b * b * variance / (1.0 + shift * variance)
    for k in range(1, n + 1):
        total += x.z[k] * x.z[k] * x.variance[k] / (1.0 + shift * x.variance[k])
    return total


@jit
def _less(variance, eaten, form):
    """Return a variance after a step, in one of the three forms."""
    share = max(1.0 - eaten, EPSILON) if form == DROP else 1.0 / (1.0 + eaten)
    return max(variance * share, SMALLEST_VARIANCE)


@jit
def _fire(features, indices, b_indices, b_values, x, step, gain, form, boost):
    """Update every feature of z = x - b."""
    for k in range(b_indices.size):
        i, b = b_indices[k], b_values[k]
        if features[i, PLACE] == 0.0:
            variance = features[i, VARIANCE]
            change = step * b * variance
            features[i, MU] -= change
            features[i, LAG] += boost * change
            features[i, VARIANCE] = _less(variance, gain * b * b * variance, form)
    for k in range(1, indices.size + 1):
        change = step * x.z[k] * x.variance[k]
        x.mu[k] += change
        x.lag[k] -= boost * change
        x.variance[k] = _less(x.variance[k], gain * x.z[k] * x.z[k] * x.variance[k], form)
    _give_back(features, indices, x)


@jit
def _row(buffer, label, slot):
    length = buffer.length[label, slot]
    return buffer.indices[label, slot, :length], buffer.values[label, slot, :length]


@jit
def _is_positive(values):
    below = 0.0
    for k in range(values.size):
        below += abs(values[k]) - values[k]
    return below == 0.0


@jit
def _bound(square):
    """Return a norm that rounding cannot undercut."""
    return math.sqrt(square) * (1.0 + 1e-9)


@jit
def _note(known, label, slot, score, drift):
    known.score[label, slot] = score
    known.rise[label, slot], known.fall[label, slot] = drift[1], drift[0]


@jit
def _look(features, buffer, label, slot, known, drift):
    """Find out about a buffered row anew."""
    score, square = _weigh(features, *_row(buffer, label, slot))
    _note(known, label, slot, score, drift)
    known.norm[label, slot] = _bound(square)


@jit
def _doubts(known, label, slot, drift):
    """Return how far a score may have risen and fallen since it was looked at."""
    norm = known.norm[label, slot]
    rise = (drift[1] - known.rise[label, slot]) * norm
    return rise, (drift[0] - known.fall[label, slot]) * norm


@jit
def _sweep(indices, label, C, buffer, model, parameters, known, drift, x):
    """Meet the new row with the buffered rows of the other class, oldest first."""
    features, other, sign, n = model.features, 1 - label, 2.0 * label - 1.0, indices.size
    capacity, phi, form = buffer.length.shape[1], parameters.phi, parameters.form
    shift, boost = shift_of(C, form), boost_of(model.tally[ROWS])
    score, square, positive = _weigh_new(x, n)
    for slot in range(buffer.size[other]):
        rise, fall = _doubts(known, other, slot, drift)
        ahead = score - known.score[other, slot]
        tied = TIED * (abs(score) + abs(known.score[other, slot]) + rise + fall)
        if not (ahead > rise + tied or -ahead > fall + tied):
            _look(features, buffer, other, slot, known, drift)
            ahead = score - known.score[other, slot]
        if not abs(ahead) > TIED * (abs(score) + abs(known.score[other, slot])):
            b_indices, b_values = _row(buffer, other, slot)
            ahead = _ahead(features, b_indices, b_values, x, n)
        count_pair(model.tally, sign * ahead)
    for k in range(buffer.size[other]):
        slot = (buffer.oldest[other] + k) % capacity
        norm, b_norm = _bound(square), known.norm[other, slot]
        both_positive = positive and known.positive[other, slot]
        apart = math.sqrt(norm * norm + b_norm * b_norm) if both_positive else norm + b_norm
        rise, fall = _doubts(known, other, slot, drift)
        doubt = rise if sign > 0.0 else fall
        if sign * (score - known.score[other, slot]) - doubt >= phi * apart:
            continue
        b_indices, b_values = _row(buffer, other, slot)
        b_score, change = _weigh_pair(features, b_indices, b_values, x)
        _note(known, other, slot, b_score, drift)
        margin = sign * (score - b_score)
        if margin >= phi * math.sqrt(max(square + change, 0.0) + 1e-9 * apart * apart):
            continue
        variance = _variance(features, b_indices, b_values, x, n, shift)
        alpha, beta = scw_step(margin, variance, C, phi)
        if alpha > 0.0:
            gain = scw_information(alpha, variance, phi) if form == PRECISION else beta
            _fire(features, indices, b_indices, b_values, x, sign * alpha, gain, form, boost)
            model.tally[UPDATES] += 1
            drift[label] += alpha * (norm if both_positive else apart)
            drift[other] += alpha * (b_norm if both_positive else apart)
            score, square, _ = _weigh_new(x, n)
        for place in range(1, n + 1):
            x.z[place] = x.value[place]
    return score, square, positive


@kernel
def learn(X, labels, weights, order, buffer, model, parameters):
    """Stream the sparse rows `order` of `X` through CBR-diag."""
    features, shape, room = model.features, buffer.length.shape, buffer.values.shape[2] + 1
    known = _Known(
        np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape, np.bool_)
    )  # fmt: skip
    x = _Row(np.zeros(room), np.zeros(room), np.zeros(room), np.zeros(room), np.zeros(room))
    drift = np.zeros(2)  # how far the mean has moved against and along rows without negative values
    for label in range(2):
        for slot in range(buffer.size[label]):
            _look(features, buffer, label, slot, known, drift)
            known.positive[label, slot] = _is_positive(_row(buffer, label, slot)[1])
    for row in order:
        if weights[row] > 0.0:
            label, begin, end = labels[row], X.indptr[row], X.indptr[row + 1]
            indices, values = X.indices[begin:end], X.values[begin:end]
            slot = store_sparse(buffer, label, indices, values, parameters.reservoir)
            C = parameters.C * row_weight(buffer, label, weights[row], parameters.balanced)
            _take(features, indices, values, x)
            score, square, positive = _sweep(
                indices, label, C, buffer, model, parameters, known, drift, x
            )
            for k in range(values.size):
                features[indices[k], PLACE] = 0.0
            if slot >= 0:
                _note(known, label, slot, score, drift)
                known.norm[label, slot], known.positive[label, slot] = _bound(square), positive
            model.tally[ROWS] += 1
