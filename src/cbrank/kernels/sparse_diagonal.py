"""CBR-diag on sparse rows: what ``diagonal`` computes, at the cost of the non-zeros.

With text, a pair costs two walks over non-zeros that lie anywhere in memory, and most pairs do not
update the model. So each pair goes through three tests, from cheap to exact:

1. O(1). A buffered row keeps its score from when it was last computed. An update alpha moves
   the score of b by alpha z' S b, S being the diagonal of variances: at most alpha |z| |b| in the
   norm of S. The sum of these moves so far is the *drift*. A pair that meets its constraint even
   if the score of b has moved by all the drift since then is skipped.
2. One walk over b: its score now, and |x - b|^2 from |x|^2, up to a bound of the rounding error.
3. The exact margin and variance, and the update.

Where neither row of a pair has negative values (counts, tf-idf) the bounds are tighter:
|x - b|^2 <= |x|^2 + |b|^2, and an update raises the scores of such rows by its x only and
lowers them by its b only. Hence one drift for each direction, beside the one for any row.

The numbers of a feature lie side by side in memory. One of them, PLACE, says where the feature stands
in the new row x, or is 0; the features of x itself are worked on in short contiguous arrays.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import allocating_jit as jit
from cbrank.kernels._jit import kernel
from cbrank.kernels.buffers import row_weight, store_sparse
from cbrank.kernels.confidence import (
    DROP,
    EPSILON,
    PAIRS,
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
from cbrank.kernels.diagonal import may_be_wide, shift_of
from cbrank.kernels.prequential import foretell_both_sparse

MU, VARIANCE, LAG, PLACE = range(4)
# Places in `drift`: by which scores of rows without negative values may have fallen and risen, and by
# which that of any row may have done either. The first two are 0 and 1 as the classes are: the new row
# of an update pulls scores towards its own class.
_AGAINST, _ALONG, _EITHER = range(3)
# The drift since some time is a difference of two long sums: their rounding errors are added to it.
_ROUNDING = 4.0 * EPSILON
# Rounding error of the difference of two scores, as a share of their sizes: that of a sum of some
# thousand terms.
_BLUR = 1e-12


class _Known(NamedTuple):
    """What is known of the buffered rows, by class and slot."""

    score: np.ndarray  # mu . b when it was last computed
    rise: np.ndarray  # the drift by which scores may rise, at that time
    fall: np.ndarray  # the drift by which scores may fall, at that time
    norm: np.ndarray  # upper bound of |b|
    positive: np.ndarray  # whether no value is negative


class _Row(NamedTuple):
    """The new row and the numbers of its features.

    Places count from 1. Place 0 has the value 0 and is that of features which x lacks, so that
    looking one up needs no branch.
    """

    value: np.ndarray
    z: np.ndarray  # x - b in the features of x; equal to `value` between two pairs
    mu: np.ndarray
    variance: np.ndarray
    lag: np.ndarray


@jit
def _take(features, indices, values, x):
    """Copy a new row and the numbers of its features into `x`, and write down their places."""
    for k in range(indices.size):
        i, place = indices[k], k + 1
        x.value[place] = x.z[place] = values[k]
        x.mu[place], x.variance[place] = features[i, MU], features[i, VARIANCE]
        x.lag[place] = features[i, LAG]
        features[i, PLACE] = place


@jit
def _give_back(features, indices, x):
    """Copy the numbers of the features back from `x`."""
    for k in range(indices.size):
        i, place = indices[k], k + 1
        features[i, MU], features[i, VARIANCE] = x.mu[place], x.variance[place]
        features[i, LAG] = x.lag[place]


@jit
def _reset(x, n):
    """Set z back to the values of x, for the next pair."""
    for k in range(1, n + 1):
        x.z[k] = x.value[k]


@jit
def _weigh_new(x, n):
    """Return the score of the new row, its squared norm and whether no value is negative."""
    score, square, below = 0.0, 0.0, 0.0  # a sum, not a flag: no branch, so the loop vectorises
    for k in range(1, n + 1):
        score += x.mu[k] * x.value[k]
        square += x.variance[k] * x.value[k] * x.value[k]
        below += abs(x.value[k]) - x.value[k]
    return score, square, below == 0.0


@jit
def _weigh(features, indices, values):
    """Return the score of a buffered row and its squared norm."""
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
    """Return mu.z and the sum of z_i^2 / (G_i + shift); leave x - b in `x.z` for the update."""
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
    """Narrow the weights that are too wide for a pair (see ``confidence``); say if there were any.

    `x.z` is as `_look_closely` leaves it.
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
    """Return a variance after an update; `eaten` is the gain times z_i^2 times the variance.

    In terms of precisions G + gain z^2, or for "drop" 1 / G - beta (z / G)^2.
    """
    share = max(1.0 - eaten, EPSILON) if form == DROP else 1.0 / (1.0 + eaten)
    return max(variance * share, SMALLEST_VARIANCE)


@jit
def _fire(features, indices, b_indices, b_values, x, step, gain, form, boost):
    """Update the mean, lag and variance of every feature of z = x - b (Proposition 2)."""
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
    """Return an upper bound of a norm: 1e-9 is far more than the rounding error of its sum."""
    return math.sqrt(square) * (1.0 + 1e-9)


@jit
def _apart(norm, b_norm, both_positive):
    """Return an upper bound of |x - b|."""
    return math.sqrt(norm * norm + b_norm * b_norm) if both_positive else norm + b_norm


@jit
def _drifts(known, label, slot, drift):
    """Return the drifts by which the score of a row may have risen and fallen."""
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
    """Compute the score and the norm of a buffered row anew."""
    score, square = _weigh(features, *_row(buffer, label, slot))
    _note(known, label, slot, score, drift)
    known.norm[label, slot] = _bound(square)


@jit
def _look_at_all(features, buffer, known, drift):
    """Compute the scores and norms of all buffered rows anew."""
    for label in range(2):
        for slot in range(buffer.size[label]):
            _look(features, buffer, label, slot, known, drift)


@jit
def _doubts(known, label, slot, drift):
    """Return how far the score of a row may have risen and fallen since it was computed."""
    norm = known.norm[label, slot]
    upward, downward = _drifts(known, label, slot, drift)
    rise = (upward * (1.0 + _ROUNDING) - known.rise[label, slot]) * norm
    return rise, (downward * (1.0 + _ROUNDING) - known.fall[label, slot]) * norm


@jit
def _sweep(indices, label, C, buffer, model, parameters, known, drift, x):
    """Pair the new row with the buffered rows of the other class, oldest first (Algorithm 3).

    Return its score, squared norm and whether it has no negative value, as they are at the end.
    """
    features, other, sign, n = model.features, 1 - label, 2.0 * label - 1.0, indices.size
    capacity, phi, form = buffer.length.shape[1], parameters.phi, parameters.form
    shift, boost = shift_of(C, form), boost_of(model.tally[ROWS])
    score, square, positive = _weigh_new(x, n)
    model.tally[PAIRS] += buffer.size[other]
    for k in range(buffer.size[other]):
        slot = (buffer.oldest[other] + k) % capacity
        norm, b_norm = _bound(square), known.norm[other, slot]
        both_positive = positive and known.positive[other, slot]
        apart = _apart(norm, b_norm, both_positive)
        rise, fall = _doubts(known, other, slot, drift)
        doubt = rise if sign > 0.0 else fall
        doubt += _BLUR * (abs(score) + abs(known.score[other, slot]))
        # Test 1: by the old score and the drift.
        if sign * (score - known.score[other, slot]) - doubt >= phi * apart:
            continue
        # Test 2: by the score as it is, in one walk over b.
        b_indices, b_values = _row(buffer, other, slot)
        b_score, change = _weigh_pair(features, b_indices, b_values, x)
        _note(known, other, slot, b_score, drift)
        margin = sign * (score - b_score) - _BLUR * (abs(score) + abs(b_score))
        # |x|^2 + change cancels where rows are close: 1e-9 of the bound covers its rounding error.
        if margin >= phi * math.sqrt(max(square + change, 0.0) + 1e-9 * apart * apart):
            continue
        # Test 3: exactly.
        ahead, variance = _look_closely(features, b_indices, b_values, x, n, shift)
        alpha, beta = scw_step(sign * ahead, variance, C, phi)
        if (
            alpha > 0.0
            and may_be_wide(variance, shift)
            and _narrow(features, indices, b_indices, b_values, x)
        ):
            # The drift does not cover what narrowing does to the mean: all scores are recomputed.
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
            # The mean moves by alpha y S (x - b): the score of a row without negative values goes
            # in the direction of y by at most alpha |x| |row|, the other way by alpha |b| |row|.
            drift[label] += alpha * (norm if both_positive else apart)
            drift[other] += alpha * (b_norm if both_positive else apart)
            drift[_EITHER] += alpha * apart
            score, square, _ = _weigh_new(x, n)
        _reset(x, n)
    return score, square, positive


@kernel
def learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the sparse rows `order` of `X`, in that order (Algorithm 1)."""
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
    at = 0
    for row in order:
        if weights[row] > 0.0:
            label, begin, end = labels[row], X.indptr[row], X.indptr[row + 1]
            indices, values = X.indices[begin:end], X.values[begin:end]
            per_lag = per_lag_of(model.tally)
            foretell_both_sparse(trail, at, indices, values, label, features, per_lag)
            slot = store_sparse(buffer, label, indices, values, parameters.reservoir)
            at += 1
            C = parameters.C * row_weight(buffer, label, weights[row], parameters.balanced)
            _take(features, indices, values, x)
            score, square, positive = _sweep(
                indices, label, C, buffer, model, parameters, known, drift, x
            )
            for k in range(values.size):  # a saved or copied model must hold no places
                features[indices[k], PLACE] = 0.0
            if slot >= 0:
                known.norm[label, slot], known.positive[label, slot] = _bound(square), positive
                _note(known, label, slot, score, drift)
            model.tally[ROWS] += 1
