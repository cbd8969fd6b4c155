"""What is known of the learners of a merged ranker: their evidence, and how their scores have moved."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank.kernels.buffers import are_among
from cbrank.kernels.confidence import averaged_mean
from cbrank.learning.record import Record
from cbrank.learning.state import State

Floats = NDArray[np.float64]


def taken_over(
    merged: State,
    learned: Sequence[State],
    rows: Sequence[tuple[NDArray[np.int64], Any]],
    weights: Floats,
) -> Record:
    """Return the record of a merged state, with what the learners of its models have shown.

    `rows` are buffered ones of each ranker, with their labels, and `weights` those of the rankers.
    Class means of scores move, and the usual distance from the midpoint stretches, by as much as
    for buffered rows, from the weights before to those of now.
    """
    record = merged.record
    level, centre, evidence = (
        getattr(record, name).copy() for name in ("level", "centre", "evidence")
    )
    for place, now in enumerate(merged.models):
        own = [part.record for part in learned]
        evidence[place] = np.average(
            [held.evidence[place] for held in own], axis=0, weights=weights
        )
        before = [part.models[place] for part in learned]
        if record.origin.size:
            # A few rows will tell the usual distance; until then, that of the means is taken.
            apart = merged.buffer.means[1] - merged.buffer.means[0]
            level[place] = [abs(apart @ readout) for readout in _readouts(now)]
        else:
            each_own = list(zip(own, before, rows, strict=True))
            far = [held.level[place] * _stretch(old, now, some[1]) for held, old, some in each_own]
            moved = [
                held.centre[place, :, :2] + _moves(old, now, *some) for held, old, some in each_own
            ]
            level[place] = np.average(far, axis=0, weights=weights)
            centre[place, :, :2] = np.average(moved, axis=0, weights=weights)
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
