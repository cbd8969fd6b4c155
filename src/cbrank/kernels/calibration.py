"""The curve from the places of scores to probabilities, learned row by row.

The log odds of a place (see ``prequential``) are the sum of its evidence by a monotone *shape*, of the
place itself and of the trend of the latest errors, each times a factor, and of an offset. The shape
is found anew at the end of each block of rows; offset and factors move with every row.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import allocating_jit, exact_jit, exact_kernel, jit
from cbrank.kernels.vectors import dot

TERMS = 4  # of `curve`, and their places in it
OFFSET, SHAPE, LINE, TREND = range(TERMS)

# Rows that the curve remembers in a stream, and rows that the trend of its errors does.
CURVE_MEMORY = 1000.0
TREND_MEMORY = 15.0
_TREND_PRIOR = 5.0  # weight of "no trend", in units of p (1 - p)
FARTHEST = 20.0  # distances of a score from the midpoint that the curve takes seriously
_LARGEST_LOGIT = 30.0
_FLATTEST = 0.05  # least factors of the shape and of the place together
# The shape of the curve: rows are counted in BINS, finest within _CORE of the midpoint; groups of at
# least _FEWEST_ROWS make up to SHAPE_KNOTS - 1 knots; each is shrunk by so many rows towards what it was.
BINS, _CORE, SHAPE_KNOTS, _FEWEST_ROWS, _SHRINKAGE = 128, 0.1, 33, 8.0, 8.0
_LEAST_INFORMATION = 1e-4  # of a row, p (1 - p): a curve that is sure of itself must stay movable


class Curve(NamedTuple):
    """The curve from scores to probabilities, and what it follows."""

    shape: np.ndarray  # (2, SHAPE_KNOTS) places and evidence there, in order; all zero at first
    curve: np.ndarray  # (4,) offset, and the factors of the shape, of the place and of the trend
    information: np.ndarray  # (4, 4) of these, faded
    errors: np.ndarray  # (2,) label - probability, and p (1 - p), both summed and soon faded
    share: np.ndarray  # (2,) rows of each class, faded
    rows: np.ndarray  # (1,) rows so far


# The shape ----------------------------------------------------------------------------------------
#
# Scores of a pairwise ranker are no log odds: where they have long tails, the evidence grows steeply
# near the midpoint and hardly beyond. So rows of each class are counted by place, and the logarithm of
# the ratio of the two densities, made monotone, is the evidence of a place.


@exact_jit
def knots_of(shape):
    """Return how many knots a shape has: places and evidence rise from one to the next."""
    n = 1
    while n < SHAPE_KNOTS and shape[0, n] > shape[0, n - 1] and shape[1, n] > shape[1, n - 1]:
        n += 1
    return n


@exact_jit
def _evidence_of(place, shape, n):
    """Return the evidence of a place by a shape of n knots, which goes on beyond its ends."""
    if n < 2:
        return place
    k, last = 1, n - 1  # the place is between knots k - 1 and k
    while k < last:
        middle = (k + last) // 2
        if place > shape[0, middle]:
            k = middle + 1
        else:
            last = middle
    run, rise = shape[0, k] - shape[0, k - 1], shape[1, k] - shape[1, k - 1]
    inside = min(max(place, shape[0, 0]), shape[0, n - 1])
    beyond = place - inside
    value = shape[1, k - 1] + rise / run * (inside - shape[0, k - 1])
    if beyond == 0.0:
        return value
    return value + math.copysign(math.log1p(abs(beyond) * rise / run), beyond)


def factors_from(curve: np.ndarray) -> tuple[float, float]:
    """Return the factors of the shape and of the place.

    Probabilities are ordered as scores are, also where scores that say the contrary would turn the
    curve round.
    """
    along, line = max(curve[SHAPE], 0.0), max(curve[LINE], 0.0)
    if along + line < _FLATTEST:
        along = _FLATTEST
    return along, line


_factors_of = exact_jit(factors_from)


@exact_jit
def _log_odds(place, shape, n, curve):
    along, line = _factors_of(curve)
    return curve[OFFSET] + along * _evidence_of(place, shape, n) + line * place


@exact_kernel
def log_odds(places: np.ndarray, shape: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """Return the log odds of many places, but for the trend."""
    found, n = np.empty(places.size), knots_of(shape)
    for i in range(places.size):
        found[i] = _log_odds(places[i], shape, n, curve)
    return found


@exact_jit
def _expit(logit):
    return 1.0 / (1.0 + math.exp(-logit))


@exact_kernel
def probabilities(logits: np.ndarray) -> np.ndarray:
    """Return the probabilities of the two classes, one beside the other, at log odds."""
    found = np.empty((logits.size, 2))
    for i in range(logits.size):
        found[i, 1] = _expit(logits[i])
        found[i, 0] = 1.0 - found[i, 1]
    return found


@exact_jit
def _place_of(wanted, shape, n, curve):
    """Return the place that has these log odds, or the farthest that is taken seriously."""
    along, line = _factors_of(curve)
    low, high = -FARTHEST, FARTHEST
    if n < 2:
        place = (wanted - curve[OFFSET]) / (along + line)
        return high if math.isnan(place) else min(max(place, low), high)
    first, last = 0, n  # knots before the first have at most these log odds
    while first < last:
        k = (first + last) // 2
        if curve[OFFSET] + along * shape[1, k] + line * shape[0, k] > wanted:
            last = k
        else:
            first = k + 1
    if 0 < first < n:
        run, rise = shape[0, first] - shape[0, first - 1], shape[1, first] - shape[1, first - 1]
        missing = wanted - curve[OFFSET] - along * shape[1, first - 1] - line * shape[0, first - 1]
        return shape[0, first - 1] + min(missing / (along * (rise / run) + line), run)
    for _ in range(64):
        middle = 0.5 * (low + high)
        if _log_odds(middle, shape, n, curve) > wanted:
            high = middle
        else:
            low = middle
    return low


@exact_jit
def _log(cost):
    return math.log(cost) if cost > 0.0 else -math.inf


@exact_jit
def _called_from(negatives, positives, costs, balanced):
    """Return the log odds from which a row is called positive, by class counts and costs."""
    wanted = math.log(positives / negatives) if balanced else 0.0
    wanted = wanted + _log(costs[0]) - _log(costs[1])
    return math.copysign(_LARGEST_LOGIT, wanted) if abs(wanted) > _LARGEST_LOGIT else wanted


@exact_kernel
def place_called(
    counts: np.ndarray,
    costs: np.ndarray,
    balanced: bool,
    trend: float,
    shape: np.ndarray,
    curve: np.ndarray,
) -> float:
    """Return the place from which a row is called positive, by class counts and costs."""
    wanted = _called_from(counts[0], counts[1], costs, balanced) - trend
    return _place_of(wanted, shape, knots_of(shape), curve)  # type: ignore[no-any-return]


@jit
def _bin(place):
    share = 0.5 + 0.5 * math.asinh(place / _CORE) / math.asinh(FARTHEST / _CORE)
    return min(max(int(share * BINS), 0), BINS - 1)


@jit
def count_places(places, labels, counts, kept):
    """Count rows by place: `counts` (3, BINS) has negatives, positives and the sum of places."""
    for i in range(3):
        for k in range(BINS):
            counts[i, k] *= kept
    for i in range(labels.size):
        k = _bin(places[i])
        counts[labels[i], k] += 1.0
        counts[2, k] += places[i]


@allocating_jit
def find_shape(counts, before):
    """Return the shape that counts of places have, shrunk towards the shape before."""
    negatives, positives = 0.0, 0.0
    for k in range(BINS):
        negatives, positives = negatives + counts[0, k], positives + counts[1, k]
    shape = np.zeros((2, SHAPE_KNOTS))
    if min(negatives, positives) < 1.0:
        return shape
    enough = max(_FEWEST_ROWS, (negatives + positives) / (SHAPE_KNOTS - 1))
    prior, n, weight = math.log(positives / negatives), 0, np.zeros(SHAPE_KNOTS)
    low, high, total = 0.0, 0.0, 0.0
    rest, known = negatives + positives, knots_of(before)
    for k in range(BINS):
        low, high, total = low + counts[0, k], high + counts[1, k], total + counts[2, k]
        if (low + high >= enough and rest - low - high >= enough) or k == BINS - 1:
            rest -= low + high
            if low + high <= 0.0:
                continue
            place = total / (low + high)
            p = _probability(prior + _evidence_of(place, before, known))
            odds = (high + _SHRINKAGE * p) / (low + _SHRINKAGE * (1.0 - p))
            shape[0, n], shape[1, n], weight[n] = place, math.log(odds) - prior, low + high
            low, high, total = 0.0, 0.0, 0.0
            n += 1
    if n < 2:
        return np.zeros((2, SHAPE_KNOTS))
    # Centred isotonic regression: neighbours in the wrong order become one knot between them, so that
    # the evidence rises everywhere (Oron and Flournoy 2017).
    top = 0
    for k in range(n):
        shape[0, top], shape[1, top], weight[top] = shape[0, k], shape[1, k], weight[k]
        while top > 0 and shape[1, top - 1] >= shape[1, top]:
            both = weight[top - 1] + weight[top]
            for i in range(2):
                old, new = weight[top - 1] * shape[i, top - 1], weight[top] * shape[i, top]
                shape[i, top - 1] = (old + new) / both
            weight[top - 1] = both
            top -= 1
        top += 1
    for k in range(top, n):
        shape[0, k], shape[1, k] = 0.0, 0.0
    return shape if top > 1 else np.zeros((2, SHAPE_KNOTS))


# Offset and factors -------------------------------------------------------------------------------


@jit
def _solve(matrix, right):
    """Solve equations in place of `right` by elimination; the matrix, whose upper half is used, is positive."""
    for i in range(TERMS):
        matrix[i, i] = 1.0 / matrix[i, i]
        for j in range(i + 1, TERMS):
            factor = matrix[i, j] * matrix[i, i]
            for k in range(j, TERMS):
                matrix[j, k] -= factor * matrix[i, k]
            right[j] -= factor * right[i]
    for i in range(TERMS - 1, -1, -1):
        for k in range(i + 1, TERMS):
            right[i] -= matrix[i, k] * right[k]
        right[i] *= matrix[i, i]


@jit
def _probability(logit):
    logit = min(max(logit, -_LARGEST_LOGIT), _LARGEST_LOGIT)
    return 1.0 / (1.0 + math.exp(-logit))


def trend_from(errors: np.ndarray) -> float:
    """Return the trend of the latest errors."""
    return errors[0] / (errors[1] + _TREND_PRIOR)  # type: ignore[no-any-return]


_trend_of = exact_jit(trend_from)


def rows_with(share: np.ndarray, rows: float) -> float:
    """Return so many rows, or as many as have a tenth of them of the rarer class."""
    rare = (min(share[0], share[1]) + 0.5) / (share[0] + share[1] + 1.0)
    return rows * max(1.0, 0.1 / rare)  # type: ignore[no-any-return]


_rows_with = jit(rows_with)


@jit
def learn_curve(state, place, label, knots, shuffled, matrix, right, inputs):
    """Move the curve by one Newton step for a row, with a memory that grows up to CURVE_MEMORY.

    Early scores are those of poor weights, so that the memory is half of the rows so far.
    """
    curve, information = state.curve, state.information
    state.rows[0] += 1
    memory = max(state.rows[0] / 2.0, 16.0)
    if not shuffled:
        memory = min(memory, _rows_with(state.share, CURVE_MEMORY))
    kept = 1.0 - 1.0 / memory
    inputs[OFFSET], inputs[LINE] = 1.0, place
    inputs[SHAPE] = _evidence_of(place, state.shape, knots)
    inputs[TREND] = 0.0 if shuffled else _trend_of(state.errors)
    p = _probability(dot(curve, inputs))
    weight = max(p * (1.0 - p), _LEAST_INFORMATION)
    for i in range(TERMS):
        right[i] = (label - p) * inputs[i]
        for j in range(TERMS):
            information[i, j] = kept * information[i, j] + weight * inputs[i] * inputs[j]
            matrix[i, j] = information[i, j]
        matrix[i, i] += 1.0
    for i in (LINE, TREND):  # 0 unless the stream says otherwise
        right[i] -= (1.0 - kept) * curve[i]
    _solve(matrix, right)
    for i in range(TERMS):
        curve[i] += min(max(right[i], -1.0), 1.0)
    inputs[TREND] = 0.0
    p = _probability(dot(curve, inputs))
    faded = 1.0 - 1.0 / TREND_MEMORY
    state.errors[0] = faded * state.errors[0] + (label - p)
    state.errors[1] = faded * state.errors[1] + p * (1.0 - p)
    state.share[0], state.share[1] = kept * state.share[0], kept * state.share[1]
    state.share[label] += 1.0
