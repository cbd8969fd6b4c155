"""The learners of rankers with C "auto": which of them are merged, and what is known of them then.

A ranker whose C is a number has one learner, number 0.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cbrank.kernels.buffers import are_among
from cbrank.kernels.confidence import FullModel, SparseModel, averaged_mean
from cbrank.merging.gaussians import variances
from cbrank.rankers.halving import SLIGHT
from cbrank.rankers.record import Record

if TYPE_CHECKING:
    from cbrank.rankers.cbr import Learned

Floats = NDArray[np.float64]
Chosen = dict[int, tuple[int, ...]]  # number of a merged learner, and its number in each ranker


def chosen(learned: "Sequence[Learned]", prior: "Learned | None") -> Chosen:
    """Return which learners are merged: those that all have left, or else those that lead."""
    every = [*learned] if prior is None else [*learned, prior]
    left = set.intersection(*(set(part.models) for part in every)) - {_forgetful(learned[0])}
    left = {number for number in left if len({_kind(part, number) for part in every}) == 1}
    if left:
        return {number: (number,) * len(learned) for number in sorted(left)}
    leaders = tuple(_leader(part) for part in learned)
    votes = np.bincount(leaders, [part.buffer.seen.sum() for part in learned])
    return {int(votes.argmax()): leaders}


def _kind(part: "Learned", number: int) -> tuple[float, int] | None:
    """Return C and reach of a learner: of one that joined later, each ranker may have its own."""
    choice = part.halving
    return None if choice is None else (float(choice.C[number]), int(choice.reach[number]))


def halving_of(numbers: Chosen, learned: "Sequence[Learned]") -> Any:
    """Return the halving of a ranker whose learners are those that were merged, by number."""
    own = (
        part.halving
        for place, part in enumerate(learned)
        if all(each[place] == number for number, each in numbers.items())
    )
    return next(own, learned[0].halving)


def before(number: int, prior: "Learned | None", fresh: Any) -> Any:
    """Return the model that learners with this number went on from; `fresh` gives a new one."""
    if prior is None:
        return fresh(number)
    known = prior.models.get(number)
    return known if known is not None else _with_use(prior.models[_leader(prior)], fresh(number))


def _with_use(model: Any, fresh: Any) -> Any:
    """Return a model with a fresh prior where it makes no use of features and `fresh` does."""
    unused = np.flatnonzero((variances(model) <= SLIGHT) & (variances(fresh) > SLIGHT))
    if not unused.size:
        return model
    model = type(model)(*(array.copy() for array in model))
    if isinstance(model, FullModel):
        model.Sigma[unused, unused] = 1.0
    elif isinstance(model, SparseModel):
        model.variances[unused] = 1.0  # a view
    else:
        model.G[unused] = 1.0
    return model


def _forgetful(part: "Learned") -> int | None:
    return None if part.halving is None else part.halving.forgetful


def _leader(part: "Learned") -> int:
    return next(number for number in part.models if number != _forgetful(part))


def taken_over(
    merged: "Learned",
    numbers: Chosen,
    learned: "Sequence[Learned]",
    rows: Sequence[tuple[NDArray[np.int64], Any]],
    weights: Floats,
) -> Record:
    """Return the record of a merged ranker, with what the learners of its models have shown.

    `rows` are buffered ones of each ranker, with their labels, and `weights` those of the rankers.
    Class means of scores move, and the usual distance from the midpoint stretches, by as much as
    for buffered rows, from the weights before to those of now.
    """
    record = merged.record
    level, centre, evidence = (
        getattr(record, name).copy() for name in ("level", "centre", "evidence")
    )
    for number, each in numbers.items():
        own = [(part.record, place) for part, place in zip(learned, each, strict=True)]
        shown = [record.evidence[place] for record, place in own]
        evidence[number] = np.average(shown, axis=0, weights=weights)
        before = [part.models[place] for part, place in zip(learned, each, strict=True)]
        now = merged.models[number]
        if record.origin.size:
            # A few rows will tell the usual distance; until then, that of the means is taken.
            apart = merged.buffer.means[1] - merged.buffer.means[0]
            level[number] = [abs(apart @ readout) for readout in _readouts(now)]
        else:
            each_own = list(zip(own, before, rows, strict=True))
            far = [
                record.level[place] * _stretch(old, now, some[1])
                for (record, place), old, some in each_own
            ]
            moved = [
                record.centre[place, :, :2] + _moves(old, now, *some)
                for (record, place), old, some in each_own
            ]
            level[number] = np.average(far, axis=0, weights=weights)
            centre[number, :, :2] = np.average(moved, axis=0, weights=weights)
    return record._replace(level=level, centre=centre, evidence=evidence)


def _readouts(model: Any) -> tuple[Floats, Floats]:
    return model.mu, averaged_mean(model)


def _stretch(old: Any, new: Any, rows: Any) -> Floats:
    """Return by which factor scores of rows lie farther apart, by each readout: (readouts,)."""
    factors = np.ones(2)
    for readout in range(2):
        before, now, among = _scores(old, new, rows, readout)
        if among.any() and (spread := before[among].std()) > 0.0:
            factors[readout] = now[among].std() / spread
    return factors


def _moves(old: Any, new: Any, labels: NDArray[np.int64], rows: Any) -> Floats:
    """Return how far the mean score of rows of each class moves, by each readout: (readouts, 2)."""
    found = np.zeros((2, 2))
    for readout in range(2):
        before, now, among = _scores(old, new, rows, readout)
        for label in range(2):
            own = among & (labels == label)
            if own.any():
                found[readout, label] = (now[own] - before[own]).mean()
    return found


def _scores(
    old: Any, new: Any, rows: Any, readout: int
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return scores of rows by two models, and which rows have none that is far beyond all others."""
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.array(
            [rows @ _readouts(model)[readout][: rows.shape[1]] for model in (old, new)]
        )
    among = np.isfinite(scores).all(axis=0)
    if among.any():
        among &= are_among(scores[0], scores[0]) & are_among(scores[1], scores[1])
    return *scores, among
