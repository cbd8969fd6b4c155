"""The learners of rankers with C "auto": which of them are merged, and what is known of them then.

A ranker whose C is a number has one learner, number 0.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cbrank.kernels.confidence import averaged_mean
from cbrank.rankers.halving import FORGETFUL
from cbrank.rankers.record import Record

if TYPE_CHECKING:
    from cbrank.rankers.cbr import Learned

Floats = NDArray[np.float64]
Chosen = dict[int, tuple[int, ...]]  # number of a merged learner, and its number in each ranker


def chosen(learned: "Sequence[Learned]", prior: "Learned | None") -> Chosen:
    """Return which learners are merged: those that all have left, or else those that lead."""
    every = [*learned] if prior is None else [*learned, prior]
    left = set.intersection(*(set(part.models) for part in every)) - {FORGETFUL}
    if left:
        return {number: (number,) * len(learned) for number in sorted(left)}
    leaders = tuple(_leader(part) for part in learned)
    votes = np.zeros(FORGETFUL)
    np.add.at(votes, leaders, [part.buffer.seen.sum() for part in learned])
    return {int(votes.argmax()): leaders}


def before(number: int, prior: "Learned | None", fresh: Any) -> Any:
    """Return the model that learners with this number went on from."""
    if prior is None:
        return fresh
    return prior.models.get(number, prior.models[_leader(prior)])


def _leader(part: "Learned") -> int:
    return next(number for number in part.models if number != FORGETFUL)


def taken_over(
    record: Record,
    numbers: Chosen,
    models: Mapping[int, Any],
    learned: "Sequence[Learned]",
    rows: Sequence[tuple[NDArray[np.int64], Any]],
) -> Record:
    """Return a record of what the merged models' learners have shown, given rows of each ranker.

    Where the record knows class means of scores, they move by as much as the scores of buffered rows
    do from the weights before to those of now.
    """
    of_rows = np.array([max(float(part.record.learned[0]), 1.0) for part in learned])
    names = ("level", "centre", "evidence")
    changed = {name: getattr(record, name).copy() for name in names}
    for number, each in numbers.items():
        for name, array in changed.items():
            before = [
                getattr(part.record, name)[own] for part, own in zip(learned, each, strict=True)
            ]
            array[number] = np.average(before, axis=0, weights=of_rows)
        if not record.origin.size:
            own = [part.models[place] for place, part in zip(each, learned, strict=True)]
            moves = [
                _moves(old, models[number], *some) for old, some in zip(own, rows, strict=True)
            ]
            changed["centre"][number] += np.average(moves, axis=0, weights=of_rows)
            negative, positive = changed["centre"][number].T
            changed["level"][number] = np.maximum(positive - negative, 0.0)
    return record._replace(**changed)


def _moves(old: Any, new: Any, labels: NDArray[np.int64], rows: Any) -> Floats:
    """Return how far the mean score of rows of each class moves, by each readout: (readouts, 2)."""
    found = np.zeros((2, 2))
    for readout, (one, other) in enumerate(
        ((old.mu, new.mu), (averaged_mean(old), averaged_mean(new)))
    ):
        with np.errstate(over="ignore", invalid="ignore"):
            moved = rows @ (other - one)[: rows.shape[1]]
        for label in range(2):
            if (labels == label).any() and np.isfinite(moved).all():
                found[readout, label] = moved[labels == label].mean()
    return found
