"""One row at a time: learned and tested, or scored, by one call with a table of addresses.

The table stands for some thirty arrays, which would take longer to be handed over than the row to be
learned. A row that is not plainly in order is left alone (a number is not finite, a weight is asleep, a
learner is to forget now): the call says so, and the general kernels or the checks before them see to it.
They give the same numbers to the last bit.
"""

import math
from typing import Any

import numpy as np
from numba.core import config

from cbrank.kernels._addresses import (
    block_at,
    buffer_at,
    copied_at,
    counts_at,
    curve_at,
    floats_at,
    learner_at,
    model_at,
    pending_at,
    reaches_at,
    readouts_at,
)
from cbrank.kernels._jit import exact_jit, exact_kernel, jit, kernel
from cbrank.kernels._reaches import measure
from cbrank.kernels.buffers import store
from cbrank.kernels.calibration import (
    SHAPE_KNOTS,
    TREND,
    _called_from,
    _expit,
    _log_odds,
    _place_of,
    _trend_of,
    knots_of,
)
from cbrank.kernels.confidence import (
    ROWS,
    UPDATES,
    Parameters,
    boost_after,
    per_lag_of,
)
from cbrank.kernels.full import _learn_row, rows_between
from cbrank.kernels.prequential import (
    MEMORY,
    Trail,
    _follow,
    say_both,
    witness,
)
from cbrank.kernels.row_table import (
    BALANCED,
    BALANCED_POINT,
    BOUND,
    BUFFER,
    BY_MEANS,
    CAPACITY,
    COSTS,
    CURVE,
    DUE,
    EACH,
    ERRORS,
    FEATURES,
    FIXED,
    FORM,
    HELD,
    INTERCEPT,
    LAG,
    LEARNERS,
    LEVEL,
    MEMORY_AT,
    MIX,
    MU,
    NOTES,
    NUMBERS,
    OWN,
    PADDED,
    PHI,
    POINT,
    POSITION,
    READOUTS,
    RESERVOIR,
    ROOM,
    ROW,
    SEEN,
    SETTINGS,
    SHAPE,
    SHARE,
    SWEEP,
    TALLY,
    WEIGHTS,
    WORK,
)
from cbrank.kernels.scores import NEGLIGIBLE, _anchor_by_means, _anchor_by_scores, _score_of
from cbrank.parameters import ASLEEP

REFUSED, LEARNED, LAST = range(3)  # what has become of a row to learn

COMPILED = not config.DISABLE_JIT  # type: ignore[attr-defined]  # Python has no addresses

_LARGEST = np.finfo(np.float64).max

_boost_of = exact_jit(boost_after)


# Learning -----------------------------------------------------------------------------------------


@jit
def _is_finite(x):
    finite = True
    for i in range(x.size):
        finite &= abs(x[i]) < math.inf
    return finite


@jit
def _all_awake(model):
    awake = True
    for i in range(model.mu.size):
        awake &= model.Sigma[i, i] != ASLEEP or model.mu[i] != 0.0 or model.lag[i] != 0.0
    return awake


@jit
def _is_same(copied, buffer):
    """Say whether nobody else has learned a row since this buffer was copied, or filled with the other."""
    same = copied.random[0] == buffer.random[0]
    for label in range(2):
        same &= copied.seen[label] == buffer.seen[label]
        same &= copied.size[label] == buffer.size[label]
        same &= copied.oldest[label] == buffer.oldest[label]
    return same


@jit
def _copy_buffer(buffer, d, copied):
    for label in range(2):
        copied.seen[label] = buffer.seen[label]
        room = buffer.came.shape[1]
        for k in range(buffer.size[label]):
            slot = (buffer.oldest[label] + k) % room
            copied.came[label, slot] = buffer.came[label, slot]
            for place in (slot, slot + room):
                for i in range(d):
                    copied.rows[label, place, i] = buffer.rows[label, slot, i]
    copied.least[0] = buffer.least[0]
    _copy_places(buffer, copied)


@jit
def _copy_means(buffer, d, copied):
    for k in range(4):
        for i in range(d):
            copied.means[k, i] = buffer.means[k, i]


@jit
def _copy_places(buffer, copied):
    """Let the copy of a buffer hold the rows in the slots that the buffer does."""
    for label in range(2):
        copied.size[label], copied.oldest[label] = buffer.size[label], buffer.oldest[label]
    copied.random[0] = buffer.random[0]


@jit
def _copy_model(model, d, learner, pending, reaches, due):
    """Copy a model; nothing is known of the reaches of its pairs then."""
    for i in range(d):
        learner.mu[i], learner.lag[i] = model.mu[i], model.lag[i]
        pending.left[i] = model.Sigma[i, i]
        for j in range(d):
            learner.Sigma[i, j] = model.Sigma[i, j]
    reaches.known[0] = False
    due[0] = 0


@jit
def _give_back(model, learner, d, updates):
    """Write what a row has changed to the model, which had so many updates before."""
    changed = model.tally[UPDATES] > updates
    for i in range(d):
        changed |= model.Sigma[i, i] != learner.Sigma[i, i]  # narrowed, without an update
    if changed:
        for i in range(d):
            model.mu[i], model.lag[i] = learner.mu[i], learner.lag[i]
            for j in range(d):
                model.Sigma[i, j] = learner.Sigma[i, j]


@jit
def _is_plain(table, label, row, settings, buffer):
    """Say whether a row can be learned: it is finite, has a weight, and no learner forgets with it."""
    room_left = table[ROOM] - counts_at(table[POSITION], (2,))[1]
    plain = room_left > 0 and settings[WEIGHTS + label] > 0.0 and _is_finite(row)
    rows = buffer.seen[0] + buffer.seen[1] + 1
    for place in range(table[LEARNERS]):
        every = int(settings[OWN + 2 * place + 1])
        plain &= every == 0 or rows % every != 0
        plain &= _all_awake(model_at(table, place))
    return plain


@jit
def _refresh(table, place):
    """Copy the model of a learner that somebody else has taught."""
    d, D, M = table[FEATURES], table[PADDED], table[CAPACITY]
    model, pending = model_at(table, place), pending_at(table, place, d, D)
    reaches = reaches_at(table, place, D, M)
    learner = learner_at(table, place, pending.Sigma, model.tally)
    due = counts_at(table[WORK + EACH * place + DUE], (1,))
    _copy_model(model, d, learner, pending, reaches, due)


@jit
def _teach(table, place, X, label, settings, copied):
    """Let a learner learn a row."""
    d, D, M = table[FEATURES], table[PADDED], table[CAPACITY]
    model, pending = model_at(table, place), pending_at(table, place, d, D)
    reaches = reaches_at(table, place, D, M)
    learner = learner_at(table, place, pending.Sigma, model.tally)
    due = counts_at(table[WORK + EACH * place + DUE], (1,))
    if model.tally[ROWS] >= due[0]:
        measure(reaches, X, copied, pending)
        due[0] = model.tally[ROWS] + rows_between(model.tally[ROWS])
    parameters = Parameters(
        settings[OWN + 2 * place],
        settings[PHI],
        int(settings[FORM]),
        settings[RESERVOIR] != 0.0,
        settings[BALANCED] != 0.0,
        settings[BOUND],
        False,
    )
    updates, weight = model.tally[UPDATES], settings[WEIGHTS + label]
    _learn_row(X[0], label, weight, copied, learner, parameters, pending, reaches)
    _give_back(model, learner, d, updates)


@kernel
def learn(address: int, label: int, may_end: bool) -> int:
    """Let models with full covariance learn a row of a stream: LEARNED, LAST or REFUSED.

    The last row of a block is learned only where it may end one.
    """
    table = counts_at(address, (WORK,))
    d, D, learners = table[FEATURES], table[PADDED], table[LEARNERS]
    X, settings = floats_at(table[ROW], (1, D)), floats_at(table[SETTINGS], (OWN + 2 * learners,))
    row, buffer, position = X[0, :d], buffer_at(table), counts_at(table[POSITION], (2,))
    if not _is_plain(table, label, row, settings, buffer):
        return REFUSED
    if position[1] + 1 == table[ROOM] and not may_end:
        return LAST
    memory = floats_at(table[MEMORY_AT], (1,))
    memory[0] = MEMORY
    notes, said = table[NOTES], floats_at(table[NOTES], (learners, 1, READOUTS, 2))
    tested = floats_at(notes + 32 * learners, (1,))
    noted = counts_at(notes + 32 * learners + 8, (1,))
    held, origin = floats_at(table[HELD], (d,)), floats_at(table[HELD + 1], (d,))
    copied = copied_at(table, D, table[CAPACITY])
    if not _is_same(copied, buffer):
        _copy_buffer(buffer, d, copied)
        for place in range(learners):
            _refresh(table, place)
    _copy_means(buffer, d, copied)  # the end of a block gives them other bounds
    for place in range(learners):
        tally = model_at(table, place).tally
        learner = learner_at(
            table, place, floats_at(table[WORK + EACH * place + SWEEP], (D, D)), tally
        )
        own = Trail(held, origin, memory, said[place], tested, noted)
        say_both(own, 0, X[0], learner.mu, learner.lag, per_lag_of(tally), copied)
    trail = Trail(held, origin, memory, said[0], tested, noted)
    for place in range(learners):
        # Each stores the row anew, in the same slot: what a sweep meets is of the other class.
        _copy_places(buffer, copied)
        copied.seen[label] = buffer.seen[label]
        _teach(table, place, X, label, settings, copied)
    witness(trail, 0, row, label, buffer)
    store(buffer, label, row, settings[RESERVOIR] != 0.0)
    numbers = counts_at(table[NUMBERS], (learners,))
    mix = floats_at(table[MIX], (learners, READOUTS))
    block, readouts, curve = block_at(table), readouts_at(table), curve_at(table)
    _follow(said, tested, noted, numbers, mix, block, readouts, curve, numbers.size, False)
    return LEARNED


# Scoring ------------------------------------------------------------------------------------------


@exact_jit
def _write_readout(table, place, readout, weights):
    """Write the mean of the weights of a learner, or their average."""
    d, own = table[FEATURES], WORK + EACH * place
    mu, lag, tally = table[own + MU], table[own + LAG], table[own + TALLY]
    means, lags, rows = floats_at(mu, (d,)), floats_at(lag, (d,)), counts_at(tally, (3,))[ROWS]
    if readout == 1 and rows > 0:
        boost = _boost_of(rows)
        for i in range(d):
            weights[i] = means[i] + lags[i] / boost
    else:
        for i in range(d):
            weights[i] = means[i]


@exact_jit
def _anchor_of(table, place, readout, weights):
    """Return the middle and the unit of a readout with these weights."""
    number = counts_at(table[NUMBERS], (table[LEARNERS],))[place]
    level = floats_at(table[LEVEL], (table[LEARNERS], READOUTS))[number, readout]
    if table[BY_MEANS]:
        means = floats_at(table[BUFFER + 1], (4, table[FEATURES]))
        return _anchor_by_means(means, weights, level)
    centres = floats_at(table[LEVEL + 1], (table[LEARNERS], READOUTS, 3))
    return _anchor_by_scores(centres[number, readout], level)


@exact_jit
def _serve(table, weights, part):
    """Write the weights that are served; return their middle and their unit. `part` is scratch."""
    learners, parts, best, middle, unit = table[LEARNERS], 0, 0.0, 0.0, 1.0
    mix = floats_at(table[MIX], (learners, READOUTS))
    for place in range(learners):
        for readout in range(READOUTS):
            if mix[place, readout] > NEGLIGIBLE:
                _write_readout(table, place, readout, weights)
                middle, own = _anchor_of(table, place, readout, weights)
                parts += 1
                if mix[place, readout] > best:
                    best, unit = mix[place, readout], own
    if parts > 1:
        middle = 0.0
        for i in range(part.size):
            weights[i] = 0.0
        for place in range(learners):
            for readout in range(READOUTS):
                if mix[place, readout] > NEGLIGIBLE:
                    _write_readout(table, place, readout, part)
                    own_middle, own = _anchor_of(table, place, readout, part)
                    share = mix[place, readout] * unit / own
                    middle += share * own_middle
                    for i in range(part.size):
                        weights[i] += share * part[i]
    return middle, unit


@exact_jit
def _trend_at(table):
    if floats_at(table[MEMORY_AT], (1,))[0] > MEMORY:
        return 0.0
    curve = floats_at(table[CURVE], (4,))
    return curve[TREND] * _trend_of(floats_at(table[ERRORS], (2,)))


@exact_jit
def _intercept_at(table, middle, unit):
    """Return the intercept of weights with this middle and this unit."""
    point = floats_at(table[POINT], (BALANCED_POINT + 1,))
    if point[FIXED] != 0.0:
        return point[INTERCEPT]
    seen, share = counts_at(table[SEEN], (2,)), floats_at(table[SHARE], (2,))
    negatives, positives = share[0] + 0.5, share[1] + 0.5
    if share[0] == 0.0 or share[1] == 0.0:
        negatives, positives = seen[0] + 0.5, seen[1] + 0.5
    balanced = point[BALANCED_POINT] != 0.0
    wanted = _called_from(negatives, positives, point[COSTS:], balanced) - _trend_at(table)
    shape, curve = floats_at(table[SHAPE], (2, SHAPE_KNOTS)), floats_at(table[CURVE], (4,))
    intercept = -(middle + unit * _place_of(wanted, shape, knots_of(shape), curve))
    return intercept if abs(intercept) < math.inf else 0.0


@exact_jit
def _both_seen(table):
    seen = counts_at(table[SEEN], (2,))
    return seen[0] > 0 and seen[1] > 0


@exact_kernel
def score(address: int, X: Any, out: Any) -> bool:
    """Write the score of the row `X` to `out`; say whether it could be done."""
    table = counts_at(address, (WORK,))
    if not (_is_finite(X[0]) and _both_seen(table)):
        return False
    weights, part = np.empty(table[FEATURES]), np.empty(table[FEATURES])
    middle, unit = _serve(table, weights, part)
    out[0] = _score_of(X[0], weights) + _intercept_at(table, middle, unit)
    return True


@exact_kernel
def probabilities(address: int, X: Any, out: Any) -> bool:
    """Write the probabilities of both classes for the row `X` to `out`; say whether it could be done."""
    table = counts_at(address, (WORK,))
    if not _is_finite(X[0]):
        return False
    weights, part = np.empty(table[FEATURES]), np.empty(table[FEATURES])
    middle, unit = _serve(table, weights, part)
    place = (_score_of(X[0], weights) - middle) / unit
    if math.isnan(place):
        place = 0.0
    place = min(max(place, -_LARGEST), _LARGEST)
    shape, curve = floats_at(table[SHAPE], (2, SHAPE_KNOTS)), floats_at(table[CURVE], (4,))
    logit = _log_odds(place, shape, knots_of(shape), curve) + _trend_at(table)
    out[0, 1] = _expit(logit)
    out[0, 0] = 1.0 - out[0, 1]
    return True
