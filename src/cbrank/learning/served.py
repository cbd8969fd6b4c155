"""What a state serves: weights, the scores' middle and unit, the operating point and log odds."""

from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.learning import pool, record
from cbrank.learning.method import Method
from cbrank.learning.state import State

Floats = NDArray[np.float64]

_NONE, _NO_MEANS, _NO_COLUMNS = np.zeros(0), np.zeros((2, 0)), np.zeros(0, np.int64)
_EVERY = slice(None)
# With one class so far, all rows with smaller values than this are called that.
_LARGEST_VALUE, _LARGEST_SCORE = 1e6, 1e300


class Anchor(NamedTuple):
    """Where scores are taken from and in which unit, so that moments can be compared."""

    middle: float  # score of the midpoint of the two class means
    unit: float  # their distance


class Mixture(NamedTuple):
    """What is served: weights, and how their scores are anchored."""

    weights: Floats
    anchor: Anchor


# Weights ------------------------------------------------------------------------------------------


def mix_of(method: Method, state: State) -> Floats:
    """Return the weights (learners, readouts) of what each learner says in what is served."""
    return pool.mixture(state.record.evidence, method.readouts)


def leader_of(method: Method, state: State) -> int:
    """Return the place of the learner that leads, in whose unit scores are."""
    return pool.leader(mix_of(method, state))


def mixture_of(method: Method, state: State, columns: Any = _EVERY) -> Mixture:
    """Return the mixture of readouts in the unit of the one that weighs most, in some columns."""
    mix, centred, parts = mix_of(method, state), bool(state.record.origin.size), []
    for place, readout in np.transpose(np.nonzero(mix > kernels.scores.NEGLIGIBLE)).tolist():
        weights = method.weights(state.models[place], readout, _EVERY if centred else columns)
        anchor = anchor_of(state, weights, place, readout)
        parts.append((mix[place, readout], weights[columns] if centred else weights, anchor))
    if len(parts) == 1:
        return Mixture(np.ascontiguousarray(parts[0][1]), parts[0][2])
    unit = max(parts, key=itemgetter(0))[2].unit
    shares = [share * unit / anchor.unit for share, _, anchor in parts]
    weights = sum(share * part[1] for share, part in zip(shares, parts, strict=True))
    middle = sum(share * part[2].middle for share, part in zip(shares, parts, strict=True))
    return Mixture(np.ascontiguousarray(weights), Anchor(float(middle), unit))


def anchor_of(state: State, weights: Floats, place: int, readout: int) -> Anchor:
    """Return the midpoint of the classes by a readout, whose weights these are, and its unit."""
    held = state.record
    means = state.buffer.means if held.origin.size else _NO_MEANS
    level, centre = float(held.level[place, readout]), held.centre[place, readout]
    if means.size and means.shape[1] != weights.size:
        raise ValueError(f"There are {weights.size} weights, and means of {means.shape[1]}.")
    return Anchor(*kernels.scores.anchor(means, weights, centre, level))


def origin_of(state: State) -> Floats:
    """Return the midpoint of the class means, if there are any."""
    if not state.record.origin.size:
        return _NONE
    origin: Floats = 0.5 * state.buffer.means[0] + 0.5 * state.buffer.means[1]
    return origin


def bounded(state: State) -> State:
    """Return a state whose class means are within the bounds of its buffered rows."""
    if not state.record.origin.size:
        return state
    means = kernels.buffers.bounded(state.buffer)
    return state._replace(buffer=state.buffer._replace(means=means))


# Probabilities and the operating point ----------------------------------------------------------


def trend_of(state: State) -> float:
    """Return what the errors of the latest rows add to log odds."""
    if record.shuffled(state.record):
        return 0.0
    trend = kernels.calibration.trend_from(state.record.errors)
    return float(state.record.curve[kernels.calibration.TREND] * trend)


def log_odds(state: State, anchor: Anchor, scores: Any) -> Floats:
    """Return the log odds of the positive class at scores before the intercept."""
    places = (np.asarray(scores) - anchor.middle) / anchor.unit
    if not np.isfinite(places).all():
        places = np.nan_to_num(places)
    held = state.record
    found: Floats = kernels.calibration.log_odds(places, held.shape, held.curve)
    return found + trend_of(state)


def intercept_of(state: State, served: Mixture, costs: Any, balanced: bool) -> float:
    """Return the intercept of a stream; `costs` gives those of the classes, by the rows so far."""
    seen = state.buffer.seen
    if not seen.all():  # rows of the class that has come, as large as rows may well be
        reach = 1.0 + _LARGEST_VALUE * float(np.abs(served.weights).sum())
        return float(np.sign(int(seen[1]) - int(seen[0]))) * min(reach, _LARGEST_SCORE)
    share = state.record.share if state.record.share.all() else seen
    return intercept_at(state, served.anchor, share + 0.5, costs(seen), balanced)


def intercept_at(state: State, anchor: Anchor, counts: Any, costs: Any, balanced: bool) -> float:
    """Return the intercept with which zero is where costs and class counts call rows positive."""
    held = state.record
    place = kernels.calibration.place_called(
        counts, costs, balanced, trend_of(state), held.shape, held.curve
    )
    intercept = -(anchor.middle + anchor.unit * place)
    return float(intercept) if np.isfinite(intercept) else 0.0
