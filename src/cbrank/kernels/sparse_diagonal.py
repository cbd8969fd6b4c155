"""CBR-diag on sparse rows: what ``diagonal`` computes, at the cost of the non-zeros.

With text, a pair costs two walks over non-zeros that lie anywhere in memory, and most pairs do not
update the model. So each pair goes through three tests, from cheap to exact:

1. O(1). A buffered row keeps its score from when it was last computed. An update alpha moves
   the score of b by alpha z' S b, S being the diagonal of variances: at most alpha |z| |b| in the
   norm of S. The sum of these moves so far is the *drift*. A pair that meets its constraint even
   if the score of b has moved by all the drift since then is skipped.
2. The score of b as it is, and nothing else of it: one number for each non-zero.
3. The exact margin and variance, and the update.

Where neither row of a pair has negative values (counts, tf-idf) the bounds are tighter:
|x - b|^2 <= |x|^2 + |b|^2, and an update by a positive row p and a negative row n raises the
scores of such rows by p only and lowers them by n only. A buffered negative row is in doubt for
what raises its score, a positive one for what lowers it. Hence one drift for each class, beside the
one for rows with negative values.

The numbers of a feature lie side by side in memory. One of them, PLACE, says where the feature stands
in the new row x, from 1, or is 0. Mean and variance of the features of x are worked on in short
contiguous arrays. The mean is written back after each update, for the scores of buffered rows; the
variance and the lag at the end of the sweep, as the boost is the same for all updates of a row.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import jit, kernel, outlined_jit
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
from cbrank.kernels.prequential import note_both

MU, VARIANCE, LAG, PLACE = range(4)
# Places in `drift`: by which scores of negative rows may have risen, by which those of positive ones may
# have fallen, both of rows without negative values, and by which that of any row may have moved.
_EITHER = 2
# The drift since some time is a difference of two long sums: their rounding errors are added to it.
_ROUNDING = 4.0 * EPSILON
# Rounding error of the difference of two scores, as a share of their sizes: that of a sum of some
# thousand terms.
_BLUR = 1e-12
# Size of what two scores have in common, as a multiple of their difference: beyond, more than three of
# its sixteen digits are lost.
_COMMON = 1e3


class _Known(NamedTuple):
    """What is known of the buffered rows, by class and slot."""

    score: np.ndarray  # mu . b when it was last computed
    drift: np.ndarray  # its drift at that time
    norm: np.ndarray  # upper bound of |b|
    variance: np.ndarray  # upper bound of the sum of b_i^2 / (G_i + shift)
    shift: np.ndarray
    positive: np.ndarray  # whether no value is negative
    ready: np.ndarray  # by class: whether all this is known


class _Row(NamedTuple):
    """The new row x in a pair, and the numbers of its features."""

    z: np.ndarray  # x - b in the features of x; equal to x between two pairs
    mu: np.ndarray
    variance: np.ndarray
    first: np.ndarray  # mu before the row


class _Other(NamedTuple):
    """The buffered row b in a pair, as the last test leaves it."""

    variance: np.ndarray  # of its weights, but 0 in the features of x
    change: np.ndarray  # of its weights by an update
    shared: np.ndarray  # places in x of the features that both have


@jit
def _is_any(held):
    """Say whether any weight is held."""
    most = 0.0
    for i in range(held.size):
        most = max(most, abs(held[i]))
    return most > 0.0


@jit
def _take(features, indices, values, x, held, selects):
    """Copy the numbers of the features of a new row into `x`, and write down their places.

    Return the scores of the row by mean and by lag, if it `selects` of features with a held weight only, that by
    the held weights, and whether no value is negative.
    """
    score, more, tested = 0.0, 0.0, 0.0
    below = 0.0  # a sum, not a flag: no branch, so the loop vectorises
    for k in range(indices.size):
        i = np.uint32(indices[k])
        x.mu[k] = x.first[k] = features[i, MU]
        x.variance[k] = features[i, VARIANCE]
        features[i, PLACE] = k + 1
        if not selects or held[i] != 0.0:
            score += x.mu[k] * values[k]
            more += features[i, LAG] * values[k]
        tested += held[i] * values[k]
    for k in range(indices.size):
        x.z[k] = values[k]
        below += abs(values[k]) - values[k]
    return score, more, tested, below == 0.0


@jit
def _let_go(features, indices, x, boost):
    """Write back what `x` has in hand; a saved or copied model must hold no places."""
    for k in range(indices.size):
        i = np.uint32(indices[k])
        features[i, VARIANCE] = x.variance[k]
        features[i, LAG] -= boost * (x.mu[k] - x.first[k])
        features[i, PLACE] = 0.0


@jit
def _weigh(x, values, shift):
    """Return the score of the new row, its squared norm and the sum of x_i^2 / (G_i + shift)."""
    score, square, variance = 0.0, 0.0, 0.0
    for k in range(values.size):
        score += x.mu[k] * values[k]
        weight = x.variance[k] * values[k] * values[k]
        square += weight
        variance += weight / (1.0 + shift * x.variance[k])
    return score, square, variance


@jit
def _score(features, indices, values):
    """Return the score of a buffered row."""
    score = 0.0
    for k in range(indices.size):
        score += features[np.uint32(indices[k]), MU] * values[k]
    return score


@jit
def _add_up(features, indices, values, b, x, n, shift):
    """Return mu.z and the sum of z_i^2 / (G_i + shift) over the features of x, from z itself."""
    ahead, total = 0.0, 0.0
    for k in range(n):
        ahead += x.mu[k] * x.z[k]
        total += x.z[k] * x.z[k] * x.variance[k] / (1.0 + shift * x.variance[k])
    for k in range(indices.size):
        if b.variance[k] > 0.0:
            ahead -= features[np.uint32(indices[k]), MU] * values[k]
    return ahead, total


@jit
def _look_closely(features, indices, values, b, x, n, ahead, total, shift):
    """Return mu.z, the sum of z_i^2 / (G_i + shift), and how many features both rows have.

    `ahead` is the difference of the scores, and `total` the sum of x_i^2 / (G_i + shift). They are put
    right for the features that both rows have, mostly few; where so much of them is due to these
    that digits are lost, they are added up anew. Leaves x - b in `x.z`, and `b` for the update.
    """
    shared = np.uint32(0)
    for k in range(indices.size):  # no branch: which features are shared cannot be foreseen
        i = np.uint32(indices[k])
        b.variance[k], b.shared[shared] = features[i, VARIANCE], k
        shared += np.uint32(features[i, PLACE] > 0.0)
    common, less, more = 0.0, 0.0, 0.0
    for k in range(shared):
        at = b.shared[k]
        place = int(features[np.uint32(indices[at]), PLACE]) - 1
        b.shared[k], b.variance[at] = place, 0.0
        weight = x.variance[place] / (1.0 + shift * x.variance[place])
        common += abs(x.mu[place] * values[at])
        less += weight * x.z[place] * x.z[place]
        x.z[place] -= values[at]
        more += weight * x.z[place] * x.z[place]
    if common <= _COMMON * abs(ahead) < math.inf and less <= 0.5 * total < math.inf:
        total += more - less
    else:
        ahead, total = _add_up(features, indices, values, b, x, n, shift)
    for k in range(indices.size):
        total += values[k] * values[k] * b.variance[k] / (1.0 + shift * b.variance[k])
    return ahead, total, shared


@jit
def _reset(x, values, b, shared):
    """Set z back to the values of x, for the next pair."""
    for k in range(shared):
        place = b.shared[k]
        x.z[place] = values[place]


@outlined_jit
def _narrow(features, indices, b_indices, b_values, b, x, boost, widest):
    """Narrow the weights that are too wide for a pair (see ``confidence``); say if there were any.

    `x` and `b` are as `_look_closely` leaves them.
    """
    any_narrowed = False
    for k in range(b_indices.size):
        i, factor = b_indices[k], narrowed(b_values[k], b.variance[k], widest)
        if factor < 1.0:
            any_narrowed = True
            features[i, MU] *= factor
            features[i, LAG] *= factor
            features[i, VARIANCE] *= factor * factor
    for k in range(indices.size):
        i, factor = indices[k], narrowed(x.z[k], x.variance[k], widest)
        if factor < 1.0:
            any_narrowed = True
            features[i, LAG] = factor * (features[i, LAG] - boost * (x.mu[k] - x.first[k]))
            x.mu[k] *= factor
            x.first[k] = x.mu[k]
            x.variance[k] *= factor * factor
        features[i, MU], features[i, VARIANCE] = x.mu[k], x.variance[k]
    return any_narrowed


@jit
def _less(variance, eaten, form):
    """Return a variance after an update; `eaten` is the gain times z_i^2 times the variance.

    In terms of precisions G + gain z^2, or for "drop" 1 / G - beta (z / G)^2.
    """
    share = max(1.0 - eaten, EPSILON) if form == DROP else 1.0 / (1.0 + eaten)
    return max(variance * share, SMALLEST_VARIANCE)


@jit
def _fire(features, indices, b_indices, b_values, b, x, step, gain, form, boost):
    """Update the mean, lag and variance of every feature of z = x - b (Proposition 2)."""
    for k in range(b_indices.size):
        variance, value = b.variance[k], b_values[k]
        b.change[k] = step * value * variance
        b.variance[k] = _less(variance, gain * value * value * variance, form)
    for k in range(b_indices.size):
        i = np.uint32(b_indices[k])
        features[i, MU] -= b.change[k]
        features[i, LAG] += boost * b.change[k]
        features[i, VARIANCE] = b.variance[k]
    for k in range(indices.size):
        x.mu[k] += step * x.z[k] * x.variance[k]
        x.variance[k] = _less(x.variance[k], gain * x.z[k] * x.z[k] * x.variance[k], form)
    for k in range(indices.size):
        features[np.uint32(indices[k]), MU] = x.mu[k]


@jit
def _row(buffer, label, slot):
    """Return a buffered row, to functions that count no references either."""
    length = buffer.length[label, slot]
    return buffer.indices[label, slot, :length], buffer.values[label, slot, :length]


@jit
def _bound(square):
    """Return an upper bound of a norm: 1e-9 is far more than the rounding error of its sum."""
    return math.sqrt(square) * (1.0 + 1e-9)


@jit
def _apart(square, b_square, both_positive):
    """Return an upper bound of |x - b|^2, given those of |x|^2 and |b|^2."""
    crossed = 0.0 if both_positive else 2.0 * math.sqrt(square) * math.sqrt(b_square)
    return square + b_square + crossed


@jit
def _is_met(margin, wanted):
    """Say whether a margin is at least the root of `wanted`; False if a square overflows."""
    return margin >= 0.0 and wanted <= margin * margin < math.inf


@jit
def _note(known, label, slot, score, drift):
    known.score[label, slot] = score
    known.drift[label, slot] = drift[label if known.positive[label, slot] else _EITHER]


@jit
def _keep(known, label, slot, score, square, variance, shift, drift):
    """Keep what is known of a row; 1e-9 is far more than the rounding error of the sums."""
    known.norm[label, slot] = _bound(square)
    known.variance[label, slot], known.shift[label, slot] = variance * (1.0 + 1e-9), shift
    _note(known, label, slot, score, drift)


@jit
def _variance_of(known, label, slot, shift):
    """Return an upper bound of the sum of b_i^2 / (G_i + shift), whatever the shift of the one known.

    (G + a) / (G + c) is at most a / c where a is the larger.
    """
    variance, known_shift = known.variance[label, slot], known.shift[label, slot]
    if known_shift <= shift:
        return variance
    return min(variance * known_shift / shift, known.norm[label, slot] ** 2)


@jit
def _look(features, buffer, label, slot, known, shift, drift):
    """Compute what is known of a buffered row anew."""
    indices, values = _row(buffer, label, slot)
    square, total, below = 0.0, 0.0, 0.0
    for k in range(indices.size):
        variance = features[np.uint32(indices[k]), VARIANCE]
        weight = variance * values[k] * values[k]
        square += weight
        total += weight / (1.0 + shift * variance)
        below += abs(values[k]) - values[k]
    known.positive[label, slot] = below == 0.0
    score = _score(features, indices, values)
    _keep(known, label, slot, score, square, total, shift, drift)


@outlined_jit
def _look_at_all(features, buffer, label, known, shift, drift):
    """Compute what is known of the buffered rows of a class anew; the table must be up to date."""
    for k in range(buffer.size[label]):
        slot = (buffer.oldest[label] + k) % known.norm.shape[1]
        _look(features, buffer, label, slot, known, shift, drift)
    known.ready[label] = True


@jit
def _sweep(
    indices, values, label, C, score, square, total, positive,
    buffer, model, parameters, known, drift, x, b
):  # fmt: skip
    """Pair the new row with the buffered rows of the other class, oldest first (Algorithm 3).

    Return what `_weigh` says of it at the end.
    """
    features, other, sign, capacity = (
        model.features,
        1 - label,
        2.0 * label - 1.0,
        known.norm.shape[1],
    )
    phi, form, widest = parameters.phi, parameters.form, parameters.widest
    shift, boost = shift_of(C, form), boost_of(model.tally[ROWS])
    model.tally[PAIRS] += buffer.size[other]
    slot = buffer.oldest[other] - 1
    for _ in range(buffer.size[other]):
        slot = slot + 1 if slot + 1 < capacity else 0
        b_norm, b_score = known.norm[other, slot], known.score[other, slot]
        both_positive = positive and known.positive[other, slot]
        most = _apart(total * (1.0 + 1e-9), _variance_of(known, other, slot, shift), both_positive)
        moved = drift[other if known.positive[other, slot] else _EITHER] * (1.0 + _ROUNDING)
        doubt = (moved - known.drift[other, slot]) * b_norm + _BLUR * (abs(score) + abs(b_score))
        # Test 1: by the old score and the drift.
        if _is_met(sign * (score - b_score) - doubt, phi * phi * most):
            continue
        # Test 2: by the score as it is.
        b_indices, b_values = _row(buffer, other, slot)
        b_score = _score(features, b_indices, b_values)
        _note(known, other, slot, b_score, drift)
        doubt = _BLUR * (abs(score) + abs(b_score))
        if _is_met(sign * (score - b_score) - doubt, phi * phi * most):
            continue
        # Test 3: exactly.
        for attempt in range(2):
            ahead, variance, shared = _look_closely(
                features, b_indices, b_values, b, x, indices.size, score - b_score, total, shift
            )
            alpha, beta = scw_step(sign * ahead, variance, C, phi)
            wide = attempt == 0 and alpha > 0.0 and may_be_wide(variance, shift, widest)
            if not (wide and _narrow(features, indices, b_indices, b_values, b, x, boost, widest)):
                break
            # The drift does not cover what narrowing does to the mean.
            _look_at_all(features, buffer, other, known, shift, drift)
            known.ready[label] = False
            _reset(x, values, b, shared)
            score, square, total = _weigh(x, values, shift)
            b_norm, b_score = known.norm[other, slot], known.score[other, slot]
        if alpha > 0.0:
            gain = scw_information(alpha, variance, phi) if form == PRECISION else beta
            step = sign * alpha
            _fire(features, indices, b_indices, b_values, b, x, step, gain, form, boost)
            model.tally[UPDATES] += 1
            # The mean moves by alpha y S (x - b): the score of a row without negative values goes
            # in the direction of y by at most alpha |x| |row|, the other way by alpha |b| |row|.
            norm = _bound(square)
            apart = math.sqrt(_apart(norm**2, b_norm**2, both_positive))
            drift[other] += alpha * (norm if both_positive else apart)
            drift[label] += alpha * (b_norm if both_positive else apart)
            drift[_EITHER] += alpha * apart
            score, square, total = _weigh(x, values, shift)
        _reset(x, values, b, shared)
    _let_go(features, indices, x, boost)
    return score, square, total


@kernel
def learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the sparse rows `order` of `X`, in that order (Algorithm 1)."""
    features, shape, room = model.features, buffer.length.shape, buffer.values.shape[2]
    known = _Known(
        np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape),
        np.empty(shape, np.bool_), np.zeros(2, np.bool_)
    )  # fmt: skip
    x = _Row(np.empty(room), np.empty(room), np.empty(room), np.empty(room))
    b = _Other(np.empty(room), np.empty(room), np.empty(room, np.int32))
    drift, form, at = np.zeros(3), parameters.form, 0
    selects = parameters.selects and _is_any(trail.held)
    for row in order:
        if weights[row] > 0.0:
            label, begin, end = labels[row], X.indptr[row], X.indptr[row + 1]
            indices, values = X.indices[begin:end], X.values[begin:end]
            slot = store_sparse(buffer, label, indices, values, parameters.reservoir)
            C = parameters.C * row_weight(buffer, label, weights[row], parameters.balanced)
            shift = shift_of(C, form)
            if not known.ready[1 - label]:
                _look_at_all(features, buffer, 1 - label, known, shift, drift)
            said, more, tested, positive = _take(features, indices, values, x, trail.held, selects)
            note_both(trail, at, label, said, more, per_lag_of(model.tally), tested)
            score, square, total = _weigh(x, values, shift)
            at += 1
            score, square, total = _sweep(
                indices, values, label, C, score, square, total, positive,
                buffer, model, parameters, known, drift, x, b
            )  # fmt: skip
            if slot >= 0:
                known.positive[label, slot] = positive
                _keep(known, label, slot, score, square, total, shift, drift)
            model.tally[ROWS] += 1
