"""Test, then learn: what a learner says of each row before it learns from it.

Kernels note the score of a row as it arrives (`foretell`), so that the notes are honest: no row has
taught the weights that judge it. The notes on the rows of one call, or of as many as the block has room
for, move the curve from scores to probabilities (`follow`); those on a whole block give its AUC
(`pair_auc`), the evidence for each readout and the shape of the curve (`measure`).

A pairwise ranker has no intercept: as its weights move, all scores move with them, by far more than
rows differ if columns are far from zero. So a score is taken from the midpoint of the two class means
and divided by their distance. Rankers with a matrix of all features keep the means of the latest rows
of each class, and judge them by the weights of the moment. For others, whose rows may be sparse, the
means of the latest scores of each class do. A *readout* is one way to take a score from a model: the
mean of the weights, or their average.

The AUC is measured by weights that are held for a block, on pairs of rows of that block: given the
rows before it, no order of the labels in the block can make such a measure flatter.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import allocating_jit, jit, kernel
from cbrank.kernels.buffers import FOREIGN, LOWER, UPPER
from cbrank.kernels.calibration import (
    FARTHEST,
    TERMS,
    count_places,
    find_shape,
    knots_of,
    learn_curve,
)

SCORE, GAP = range(2)  # what is noted of a row and a readout
TYPICAL = 2  # place in `centre`, after the two classes

# Rows of a class that its mean remembers in a stream, and rows that the level of a readout and the
# class means of scores do. Electricity prices want it short, weather does not mind.
MEMORY = 50.0
# Least unit, as a share of the usual distance of scores from the midpoint: where the class means meet,
# as on noise or for a moment, a score says little and must not be blown up.
_LEAST_UNIT = 0.5
# Places are multiples of 1 / _FINEST, far coarser than the rounding of scores, which depends on how a
# stream is cut into chunks: what is equal but for rounding is a tie, however rows come.
_FINEST = 2.0**30
# Units that a score is taken for at most in the mean of its class and in the level. Where all scores move by
# more, the level follows in some rows.
_OUTLYING = 100.0
_LARGEST = np.finfo(np.float64).max


class Trail(NamedTuple):
    """What a learner is tested by, and where it notes what it says of rows."""

    held: np.ndarray  # (d,) weights by which the block is tested
    origin: np.ndarray  # (d,) subtracted from rows, which saves digits; empty without class means
    memory: np.ndarray  # (1,) rows of its class that a class mean remembers
    said: np.ndarray  # (rows, readouts, 2) score and gap
    tested: np.ndarray  # (rows,) score by the held weights
    labels: np.ndarray  # (rows,)


class Block(NamedTuple):
    """The rows of a block so far."""

    places: np.ndarray  # (learners left, readouts, room)
    served: np.ndarray  # (room,) places by what was served
    tested: np.ndarray  # (room,) scores by the held weights
    labels: np.ndarray  # (room,)
    position: np.ndarray  # (2,) rows before the block, and of the block


class Readouts(NamedTuple):
    """What is known of the readouts of all learners (g, readouts)."""

    level: np.ndarray  # usual distance of scores from the midpoint
    centre: np.ndarray  # (g, readouts, 3) means of the scores of each class, and a typical distance
    evidence: np.ndarray  # AUC of late blocks


# Notes --------------------------------------------------------------------------------------------


@jit
def _rate(buffer, label, trail):
    return 1.0 / min(buffer.seen[label] + 1.0, trail.memory[0])


@jit
def remember(x, label, buffer, trail):
    """Move the mean of a class towards a row, but for values out of bounds."""
    means, rate = buffer.means, _rate(buffer, label, trail)
    for i in range(x.size):
        if means[LOWER, i] < x[i] < means[UPPER, i]:
            means[label, i] = (1.0 - rate) * means[label, i] + rate * x[i]


@jit
def _test(x, held, origin):
    score = 0.0
    for i in range(x.size):
        score += held[i] * (x[i] - origin[i])
    return score


@jit
def witness(trail, at, x, label, buffer):
    """Note how the held weights place a row that is about to be stored, and move its class mean."""
    trail.tested[at], trail.labels[at] = _test(x, trail.held, trail.origin), label
    remember(x, label, buffer, trail)


@jit
def foretell(trail, at, x, label, w, buffer):
    """Note what weights say of a row that is about to be stored and learned from."""
    score, gap = 0.0, 0.0
    for i in range(x.size):
        one, other = buffer.means[0, i], buffer.means[1, i]
        score += w[i] * (x[i] - 0.5 * one - 0.5 * other)
        gap += w[i] * (other - one)
    trail.said[at, 0, SCORE], trail.said[at, 0, GAP] = score, gap
    witness(trail, at, x, label, buffer)


@jit
def say_both(trail, at, x, mu, lag, per_lag, buffer):
    """Note what the mean and the average, mu + lag * per_lag, say of a row, and nothing else."""
    score, gap, more_score, more_gap = 0.0, 0.0, 0.0, 0.0
    for i in range(x.size):
        one, other = buffer.means[0, i], buffer.means[1, i]
        off, apart = x[i] - 0.5 * one - 0.5 * other, other - one
        score += mu[i] * off
        gap += mu[i] * apart
        more_score += lag[i] * off
        more_gap += lag[i] * apart
    said = trail.said
    said[at, 0, SCORE], said[at, 0, GAP] = score, gap
    said[at, 1, SCORE] = score + per_lag * more_score
    said[at, 1, GAP] = gap + per_lag * more_gap


@jit
def foretell_both(trail, at, x, label, mu, lag, per_lag, buffer):
    """Note what the mean and the average say of a row that is about to be stored and learned from."""
    say_both(trail, at, x, mu, lag, per_lag, buffer)
    witness(trail, at, x, label, buffer)


@jit
def foretell_row(trail, at, x, label, w):
    """Note what weights say of a row, without class means."""
    score, tested = 0.0, 0.0
    for i in range(x.size):
        score += w[i] * x[i]
        tested += trail.held[i] * x[i]
    trail.said[at, 0, SCORE], trail.said[at, 0, GAP] = score, 0.0
    trail.tested[at], trail.labels[at] = tested, label


@jit
def note_both(trail, at, label, score, more, per_lag, tested):
    """Note the scores of a row by the mean, the lag and the held weights, without class means."""
    trail.said[at, 0, SCORE], trail.said[at, 0, GAP] = score, 0.0
    trail.said[at, 1, SCORE], trail.said[at, 1, GAP] = score + per_lag * more, 0.0
    trail.tested[at], trail.labels[at] = tested, label


@jit
def foretell_row_both(trail, at, x, label, mu, lag, per_lag):
    """Note what the mean and the average say of a row, without class means."""
    score, more, tested = 0.0, 0.0, 0.0
    for i in range(x.size):
        score += mu[i] * x[i]
        more += lag[i] * x[i]
        tested += trail.held[i] * x[i]
    note_both(trail, at, label, score, more, per_lag, tested)


@jit
def foretell_sparse(trail, at, indices, values, label, w):
    """Note what weights say of a sparse row."""
    score, tested = 0.0, 0.0
    for k in range(indices.size):
        score += w[indices[k]] * values[k]
        tested += trail.held[indices[k]] * values[k]
    trail.said[at, 0, SCORE], trail.said[at, 0, GAP] = score, 0.0
    trail.tested[at], trail.labels[at] = tested, label


# Scores in units of the classes' distance ---------------------------------------------------------


def unit_from(gap: float, level: float) -> float:
    """Return what scores are divided by: the distance of the class means, if it is not too small."""
    unit = max(gap, _LEAST_UNIT * level)
    return unit if 0.0 < unit < math.inf else 1.0


_unit_of = jit(unit_from)


@jit
def _is_typical(distance, centre):
    """Say whether a score this far from the midpoint is one of many; follow the typical distance.

    It moves towards every distance by a factor of two at most: towards the median, whatever outliers there are.
    """
    typical = centre[TYPICAL]
    if not 0.0 < distance < math.inf:
        return distance == 0.0
    bounded = min(max(distance, 0.5 * typical), 2.0 * typical)
    centre[TYPICAL] = bounded if typical > 0.0 else distance
    return typical == 0.0 or distance <= FOREIGN * typical


@jit
def _place(said, label, level, centre, seen, memory, by_scores):
    """Return where a note places its row, from the midpoint and in units; follow the classes.

    `seen` are the rows of its class so far.
    """
    score, gap, middle = said[SCORE], said[GAP], 0.0
    if by_scores:
        middle, gap = 0.5 * (centre[0] + centre[1]), centre[1] - centre[0]
    unit = _unit_of(gap, level[0])
    place = (score - middle) / unit
    if not abs(place) < math.inf:
        place = 0.0
    if _is_typical(abs(score - middle), centre):
        level[0] += (min(abs(place), _OUTLYING) * unit - level[0]) / min(memory, MEMORY)
        if by_scores:
            off = (score - centre[label]) / unit
            centre[label] += min(max(off, -_OUTLYING), _OUTLYING) * unit / min(seen + 1.0, memory)
    return round(min(max(place, -FARTHEST), FARTHEST) * _FINEST) / _FINEST


# What follows from the notes ----------------------------------------------------------------------


@jit
def _finite(score):
    """Return a score that can be saved: what has overflowed becomes the largest number."""
    return 0.0 if math.isnan(score) else min(max(score, -_LARGEST), _LARGEST)


@kernel
def follow(said, tested, labels, learners, mix, block, readouts, state, centred, shuffled):
    """Turn the notes on rows into places, and let the curve learn from them.

    `said` has the notes of the learners with these numbers, in that order, and `mix` their weights
    in the place that is served; the first `centred` are tested by class means; `readouts` is by number.
    """
    _follow(said, tested, labels, learners, mix, block, readouts, state, centred, shuffled)


@allocating_jit
def _follow(said, tested, labels, learners, mix, block, readouts, state, centred, shuffled):
    matrix, right, inputs = np.empty((TERMS, TERMS)), np.empty(TERMS), np.empty(TERMS)
    at, knots = block.position[1], knots_of(state.shape)
    for row in range(labels.size):
        place, rows = 0.0, state.rows[0] + 1.0
        memory = min(rows, max(MEMORY, rows / 4.0) if shuffled else MEMORY)
        label, seen = labels[row], state.share[labels[row]]
        for k in range(learners.size):
            g = learners[k]
            for r in range(said.shape[2]):
                level, centre = readouts.level[g, r : r + 1], readouts.centre[g, r]
                own = _place(said[k, row, r], label, level, centre, seen, memory, k >= centred)
                block.places[k, r, at] = own
                place += mix[k, r] * own
        block.served[at], block.labels[at] = place, labels[row]
        block.tested[at] = _finite(tested[row])
        at += 1
        learn_curve(state, place, labels[row], knots, shuffled, matrix, right, inputs)
    block.position[1] = at


# The end of a block -------------------------------------------------------------------------------


def pair_auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the AUC of some scores, ties counted half; one half without rows of both classes."""
    auc: float = _auc_in_order(scores, np.argsort(scores), labels)
    return auc


@kernel
def _auc_in_order(scores, order, labels):
    return _pair_auc(scores, order, labels)


@jit
def _pair_auc(scores, order, labels):
    """Return the AUC of scores that rise in some order."""
    twice, below, positive, at = 0, 0, 0, 0
    while at < order.size:
        end, new = at, 0
        while end < order.size and scores[order[end]] == scores[order[at]]:
            new += labels[order[end]]
            end += 1
        if end == at:  # not a number: nothing can be said of the rest
            return 0.5
        old = end - at - new
        twice += new * (2 * below + old)
        below += old
        positive += new
        at = end
    return twice / (2.0 * positive * below) if positive and below else 0.5


@kernel
def measure(  # type: ignore[no-untyped-def]
    places, orders, served, labels, learners, kept, evidence, weight, counts, shape
) -> None:
    """Update the evidence for all readouts, the counts and the shape of the curve with a block.

    `orders` are those in which the places rise (NumPy sorts several times as fast as a compiled loop);
    `kept` is the share of what was known before that still counts.
    """
    positive = 0
    for i in range(labels.size):
        positive += labels[i]
    new = 2.0 * positive * (labels.size - positive) / labels.size
    if new > 0.0:
        for k in range(learners.size):
            old = weight[learners[k]] * kept
            weight[learners[k]] = old + new
            for r in range(evidence.shape[1]):
                auc, before = (
                    _pair_auc(places[k, r], orders[k, r], labels),
                    evidence[learners[k], r],
                )
                evidence[learners[k], r] = min((old * before + new * auc) / (old + new), 1.0)
    count_places(served, labels, counts, kept)
    found = find_shape(counts, shape)
    for i in range(found.shape[0]):
        for k in range(found.shape[1]):
            shape[i, k] = found[i, k]
