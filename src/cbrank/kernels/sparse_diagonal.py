"""CBR-diag on sparse rows: what ``diagonal`` does, at the cost of a buffered row's non-zeros.

Mean, variance and lag of a feature lie side by side, so that it costs one cache line; beside them
stands its place in the new row x, whose own part is worked on in contiguous arrays. Buffered rows
keep the score they had when last looked at. Since then the mean has moved, in the norm of the
variances, by no more than `drift` tells, so a score is off by no more than that times the row's
norm: a pair that cannot fire even so is not looked at. One that can is weighed in a single walk,
and only if it still can are the exact margin, variance and update worked out.
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
    narrowed,
    scw_information,
    scw_step,
)
from cbrank.kernels.diagonal import may_be_wide, shift_of

MU, VARIANCE, LAG, PLACE = range(4)
_AGAINST, _ALONG, _EITHER = range(3)  # drift: of rows without negative values, and of any
_ROUNDING = 4.0 * EPSILON  # of sums of moves, which differences must not lose
_BLUR = 1e-12  # share of two scores by which rounding may put their difference off


class _Known(NamedTuple):
    """What is known of the buffered rows, by class and slot."""

    score: np.ndarray  # mu . b when last looked at
    rise: np.ndarray  # what the drift was then by which scores may have risen since
    fall: np.ndarray  # and that by which they may have fallen
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
def _reset(x, n):
    """Put x back in the place of x - b."""
    for k in range(1, n + 1):
        x.z[k] = x.value[k]


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
def _look_closely(features, b_indices, b_values, x, n, shift):
    """Return mu.z and the sum of z^2 / (G + shift); leave z where x has the feature in `x`."""
    ahead, total = 0.0, 0.0
    for k in range(b_indices.size):
        i, b = b_indices[k], b_values[k]
        place, variance = int(features[i, PLACE]), features[i, VARIANCE]
        if place > 0:
            x.z[place] -= b
        else:
            ahead -= features[i, MU] * b
            total += b * b * variance / (1.0 + shift * variance)
    for k in range(1, n + 1):
        ahead += x.mu[k] * x.z[k]
        total += x.z[k] * x.z[k] * x.variance[k] / (1.0 + shift * x.variance[k])
    return ahead, total


@jit
def _narrow(features, indices, b_indices, b_values, x):
    """Narrow the weights that this pair needs narrower; say whether there were any.

    The features' part of x - b is in `x`, as `_look_closely` leaves it.
    """
    any_narrowed = False
    for k in range(b_indices.size):
        i = b_indices[k]
        factor = narrowed(b_values[k], features[i, VARIANCE]) if features[i, PLACE] == 0.0 else 1.0
        if factor < 1.0:
            any_narrowed = True
            features[i, MU] *= factor
            features[i, LAG] *= factor
            features[i, VARIANCE] *= factor * factor
    for k in range(1, indices.size + 1):
        factor = narrowed(x.z[k], x.variance[k])
        if factor < 1.0:
            any_narrowed = True
            x.mu[k] *= factor
            x.lag[k] *= factor
            x.variance[k] *= factor * factor
    _give_back(features, indices, x)
    return any_narrowed


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
def _apart(norm, b_norm, both_positive):
    """Return a bound of |x - b|."""
    return math.sqrt(norm * norm + b_norm * b_norm) if both_positive else norm + b_norm


@jit
def _drifts(known, label, slot, drift):
    """Return how far the mean has moved along a row and against it."""
    if known.positive[label, slot]:
        return drift[_ALONG], drift[_AGAINST]
    return drift[_EITHER], drift[_EITHER]


@jit
def _note(known, label, slot, score, drift):
    known.score[label, slot] = score
    upward, downward = _drifts(known, label, slot, drift)
    known.rise[label, slot], known.fall[label, slot] = upward, downward


@jit
def _look(features, buffer, label, slot, known, drift):
    """Find out about a buffered row anew."""
    score, square = _weigh(features, *_row(buffer, label, slot))
    _note(known, label, slot, score, drift)
    known.norm[label, slot] = _bound(square)


@jit
def _look_at_all(features, buffer, known, drift):
    """Find out about all buffered rows anew."""
    for label in range(2):
        for slot in range(buffer.size[label]):
            _look(features, buffer, label, slot, known, drift)


@jit
def _doubts(known, label, slot, drift):
    """Return how far a score may have risen and fallen since it was looked at."""
    norm = known.norm[label, slot]
    upward, downward = _drifts(known, label, slot, drift)
    rise = (upward * (1.0 + _ROUNDING) - known.rise[label, slot]) * norm
    return rise, (downward * (1.0 + _ROUNDING) - known.fall[label, slot]) * norm


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
            ahead, _ = _look_closely(features, b_indices, b_values, x, n, 0.0)
            _reset(x, n)
        count_pair(model.tally, sign * ahead)
    for k in range(buffer.size[other]):
        slot = (buffer.oldest[other] + k) % capacity
        norm, b_norm = _bound(square), known.norm[other, slot]
        both_positive = positive and known.positive[other, slot]
        apart = _apart(norm, b_norm, both_positive)
        rise, fall = _doubts(known, other, slot, drift)
        doubt = rise if sign > 0.0 else fall
        doubt += _BLUR * (abs(score) + abs(known.score[other, slot]))
        if sign * (score - known.score[other, slot]) - doubt >= phi * apart:
            continue
        b_indices, b_values = _row(buffer, other, slot)
        b_score, change = _weigh_pair(features, b_indices, b_values, x)
        _note(known, other, slot, b_score, drift)
        margin = sign * (score - b_score) - _BLUR * (abs(score) + abs(b_score))
        if margin >= phi * math.sqrt(max(square + change, 0.0) + 1e-9 * apart * apart):
            continue
        ahead, variance = _look_closely(features, b_indices, b_values, x, n, shift)
        alpha, beta = scw_step(sign * ahead, variance, C, phi)
        if (
            alpha > 0.0
            and may_be_wide(variance, shift)
            and _narrow(features, indices, b_indices, b_values, x)
        ):
            _reset(x, n)
            _look_at_all(features, buffer, known, drift)
            score, square, _ = _weigh_new(x, n)
            norm, b_norm = _bound(square), known.norm[other, slot]
            apart = _apart(norm, b_norm, both_positive)
            ahead, variance = _look_closely(features, b_indices, b_values, x, n, shift)
            alpha, beta = scw_step(sign * ahead, variance, C, phi)
        if alpha > 0.0:
            gain = scw_information(alpha, variance, phi) if form == PRECISION else beta
            _fire(features, indices, b_indices, b_values, x, sign * alpha, gain, form, boost)
            model.tally[UPDATES] += 1
            drift[label] += alpha * (norm if both_positive else apart)
            drift[other] += alpha * (b_norm if both_positive else apart)
            drift[_EITHER] += alpha * apart
            score, square, _ = _weigh_new(x, n)
        _reset(x, n)
    return score, square, positive


@kernel
def learn(X, labels, weights, order, buffer, model, parameters):
    """Stream the sparse rows `order` of `X` through CBR-diag."""
    features, shape, room = model.features, buffer.length.shape, buffer.values.shape[2] + 1
    known = _Known(
        np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape, np.bool_)
    )  # fmt: skip
    x = _Row(np.zeros(room), np.zeros(room), np.zeros(room), np.zeros(room), np.zeros(room))
    drift = np.zeros(3)
    for label in range(2):
        for slot in range(buffer.size[label]):
            known.positive[label, slot] = _is_positive(_row(buffer, label, slot)[1])
    _look_at_all(features, buffer, known, drift)
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
                known.norm[label, slot], known.positive[label, slot] = _bound(square), positive
                _note(known, label, slot, score, drift)
            model.tally[ROWS] += 1
