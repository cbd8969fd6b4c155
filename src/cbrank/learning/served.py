"""What a state serves: weights, the scores' middle and unit, the operating point and log odds."""

from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.learning import pool, record
from cbrank.learning.method import Method
from cbrank.learning.state import Indicators, State

Floats = NDArray[np.float64]

_NONE, _NO_MEANS, _NO_COLUMNS = np.zeros(0), np.zeros((2, 0)), np.zeros(0, np.int64)
_EVERY = slice(None)
# With one class so far, all rows with smaller values than this are called that.
_LARGEST_VALUE, _LARGEST_SCORE = 1e6, 1e300


class Anchor(NamedTuple):
    """Where scores are taken from and in which unit, so that moments can be compared."""

    middle: float  # score of the midpoint of the two class means
    unit: float  # their distance


class Needed(NamedTuple):
    """Weights of many features, made of those of readouts where they are needed."""

    width: int
    parts: tuple[
        tuple[float, Any, int, Any], ...
    ]  # share, model and readout, and what gives its weights

    def of(self, columns: Any = _EVERY) -> Floats:
        """Return the weights of some features."""
        found = np.zeros(self.width if columns is _EVERY else len(columns))
        for share, model, readout, weights in self.parts:
            found += share * weights(model, readout, columns)
        return found

    def products(self, rows: Any) -> Floats:
        """Return the products of sparse rows with the weights."""
        needed = rows.data, np.arange(rows.nnz, dtype=rows.indptr.dtype), rows.indptr
        one_column_each = sp.csr_array(needed, shape=(rows.shape[0], rows.nnz))
        return np.asarray(one_column_each @ self.of(rows.indices))


class Mixture(NamedTuple):
    """What is served: weights, and how their scores are anchored."""

    weights: Floats
    anchor: Anchor
    beside: tuple[Any, ...] = ()  # of the groups of learners of other features: arrays, or `Needed`


# Weights ------------------------------------------------------------------------------------------


def beside(method: Method, state: State) -> list[tuple[int, Method, Indicators]]:
    """Return the groups of learners of other features: the place of the first, how they learn, and themselves."""
    found, first = [], len(state.models)
    for group in state.beside:
        found.append((first, method.of_source(group.source), group))
        first += len(group.models)
    return found


def shares_of(method: Method, state: State) -> Floats:
    """Return the weights (groups, learners, readouts) of what each learner says in what its group does."""
    evidence = state.record.evidence
    ends = [len(state.models), *(len(group.models) for group in state.beside)]
    shares, begin = np.zeros((len(ends), *evidence.shape)), 0
    for group, count in zip(shares, ends, strict=True):
        own = slice(begin, begin + count)
        group[own] = pool.mixture(evidence[own], method.readouts)
        begin += count
    return shares


def mix_of(method: Method, state: State) -> Floats:
    """Return the weights (learners, readouts) of what each learner says in what is served."""
    if not state.beside:
        return pool.mixture(state.record.evidence, method.readouts)
    blend = np.maximum(state.record.blend[:-1], 0.0)
    blend = blend / blend.sum() if blend.any() else np.eye(blend.size)[0]
    found: Floats = np.tensordot(blend, shares_of(method, state), axes=1)
    return found


def leader_of(method: Method, state: State) -> int:
    """Return the place of the learner of all features that leads."""
    return pool.leader(mix_of(method, state)[: len(state.models)])


def leaders_of(method: Method, state: State) -> list[tuple[Any, float]]:
    """Return the model of each group that leads there, and what its score is multiplied by in the mixture."""
    mix, found = mix_of(method, state), list[tuple[Any, float, float]]()
    groups = [
        (0, state.models),
        *((first, held.models) for first, _, held in beside(method, state)),
    ]
    for first, models in groups:
        own = mix[first : first + len(models)]
        place = pool.leader(own)
        readout = int(own[place].argmax())
        weights = method.weights(models[place], readout, _EVERY) if first == 0 else _NONE
        unit = anchor_of(state, weights, first + place, readout).unit
        found.append((models[place], float(own.sum()), unit))
    unit = max(found, key=itemgetter(1))[2]
    return [(model, share * unit / own) for model, share, own in found]


def mixture_of(method: Method, state: State, columns: Any = _EVERY) -> Mixture:
    """Return what is served, in some columns: the mixture of readouts, of the selected features."""
    if method.selection is None:
        return whole_mixture_of(method, state, columns)
    whole = whole_mixture_of(method, state)
    weights = method.selection.cut(whole.weights, precisions_of(method, state))
    return whole._replace(weights=np.ascontiguousarray(weights[columns]))


def precisions_of(method: Method, state: State) -> Floats:
    """Return the precision of each feature: the mean of the learners', by their weight in what is served."""
    shares = mix_of(method, state).sum(axis=1)
    parts = [share / model.variances for share, model in zip(shares, state.models, strict=True)]
    return np.sum(parts, axis=0)  # type: ignore[no-any-return]


def whole_mixture_of(method: Method, state: State, columns: Any = _EVERY) -> Mixture:
    """Return the mixture of readouts in the unit of the one that weighs most, in some columns."""
    mix, centred, parts = mix_of(method, state), bool(state.record.origin.size), []
    others = beside(method, state) if state.beside else []
    for place, readout in np.transpose(np.nonzero(mix > kernels.scores.NEGLIGIBLE)).tolist():
        if place < len(state.models):
            weights = method.weights(state.models[place], readout, _EVERY if centred else columns)
            anchor = anchor_of(state, weights, place, readout)
            parts.append((mix[place, readout], weights[columns] if centred else weights, anchor, 0))
            continue
        group = max(at for at, (first, *_) in enumerate(others) if first <= place)
        first, own, held = others[group]
        model, anchor = held.models[place - first], anchor_of(state, _NONE, place, readout)
        if held.source.kind == "ids":
            parts.append((mix[place, readout], (model, readout, own.weights), anchor, group + 1))
            continue
        weights = own.weights(model, readout, _EVERY)
        parts.append((mix[place, readout], weights, anchor, group + 1))
    if len(parts) == 1 and not others:
        return Mixture(np.ascontiguousarray(parts[0][1]), parts[0][2])
    unit = max(parts, key=itemgetter(0))[2].unit
    found: list[Any] = [
        np.zeros(state.width)[columns],
        *(_none_of(each.source) for *_, each in others),
    ]
    middle = 0.0
    for share, weights, anchor, group in parts:
        factor = float(share) * unit / anchor.unit if len(parts) > 1 else 1.0
        if isinstance(weights, tuple):
            found[group] = found[group]._replace(parts=(*found[group].parts, (factor, *weights)))
        else:
            found[group] = found[group] + weights * factor
        middle += factor * anchor.middle
    for group, (*_, held) in enumerate(others, 1):
        if held.source.kind == "leaves":
            found[group], less = held.source.centred(found[group])
            middle -= less
    return Mixture(found[0], Anchor(float(middle), unit), tuple(found[1:]))


def _none_of(source: Any) -> Any:
    return Needed(source.width, ()) if source.kind == "ids" else np.zeros(source.width)


def products(rows: Any, weights: Any) -> Floats:
    """Return the products of sparse rows with the weights of a group of learners."""
    return weights.products(rows) if isinstance(weights, Needed) else np.asarray(rows @ weights)


def whole(weights: Any) -> Floats:
    """Return the weights of a group of learners as an array."""
    found: Floats = weights.of() if isinstance(weights, Needed) else weights
    return found


def anchor_of(state: State, weights: Floats, place: int, readout: int) -> Anchor:
    """Return the midpoint of the classes by a readout, whose weights these are, and its unit."""
    held = state.record
    means = state.buffer.means if held.origin.size and place < len(state.models) else _NO_MEANS
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
