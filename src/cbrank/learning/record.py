"""The honest record of a ranker: how it did on rows before it learned from them.

Rows are tested, then learned from, in blocks (see ``kernels.prequential``). The record is a tuple of
arrays, like a model: it is saved, resized and merged with it. `begin`, `measured`, `next_block` and
`merged` give new ones; nothing here changes a ranker. Rows are noted in it by ``blocks``.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

SHORTEST, LONGEST = 32, 1024  # rows of a block: an eighth of the rows so far, within these bounds
ROWS, FILLED = range(2)  # places in `position`
_RECENT = 1000.0  # rows that `recent_auc_` remembers
_EVIDENCE = 2000.0  # rows that the evidence for learners remembers in a stream
_NORMAL_95 = 1.959963984540054  # standard errors on each side of a 95% interval
# Of the weights of groups of learners: their inverse variance at first, steps of Newton's method for a block, how
# much one of them changes log odds at most, and the farthest place that counts.
_SURE_AT_FIRST, _STEPS, _LONGEST_STEP, _FARTHEST = 4.0, 8, 4.0, 20.0
EVER = 2.0**52  # a memory longer than any stream: that of rows in random order
# Blocks after which a merged ranker's shape is taken, each of which shrinks it towards that before. Of 1, 2,
# 3 and 8, 2 had on five data sets in four shards about the log loss of shrinking towards the first ranker's.
_BLOCKS_OF_SHAPE = 2
MOST_BLOCKS = 2048  # of the history; beyond, neighbours become one
BLOCK, READOUTS, CURVE = slice(3, 8), slice(8, 11), slice(11, 17)  # fields of a record
_WEIGHT, _AUC, _PAIRS, _POSITIVES, _NEGATIVES = range(5)  # places in `sums`


class Record(NamedTuple):
    """How a ranker did, and the curve from its scores to probabilities.

    What the kernels' `Trail`, `Block`, `Readouts` and `Curve` have is explained there.
    """

    held: Floats
    origin: Floats
    memory: Floats
    places: Floats
    served: Floats
    tested: Floats
    labels: Counts
    position: Counts
    level: Floats
    centre: Floats
    evidence: Floats
    shape: Floats
    curve: Floats
    information: Floats
    errors: Floats
    share: Floats
    learned: Counts
    weight: Floats  # (learners,) rows that the evidence rests on, faded
    counts: Floats  # (3, bins) rows of each class by place, and the sum of places; faded
    sums: Floats  # (2, 5) of all blocks, and of the recent ones
    history: Floats  # (blocks, 3) rows so far, AUC, and effective rows of a block
    blend: Floats  # (groups + 1,) what the places by each group of learners, and 1, add to the log odds
    certainty: Floats  # (groups + 1, groups + 1) inverse covariance of the blend


def begin(n_features: int, learners: int, readouts: int, *, means: bool, shuffled: bool) -> Record:
    """Return the record of a ranker that has learned nothing."""
    shape = learners, readouts
    return Record(
        np.zeros(n_features),
        np.zeros(n_features if means else 0),
        np.array([EVER if shuffled else kernels.prequential.MEMORY]),
        np.zeros((*shape, SHORTEST)),
        np.zeros(SHORTEST),
        np.zeros(SHORTEST),
        np.zeros(SHORTEST, np.int64),
        np.zeros(2, np.int64),
        np.zeros(shape),
        np.zeros((*shape, 3)),
        np.full(shape, 0.5),
        np.zeros((2, kernels.calibration.SHAPE_KNOTS)),
        np.array([0.0, 1.0, 0.0, 0.0]),
        np.eye(4),
        np.zeros(2),
        np.zeros(2),
        np.zeros(1, np.int64),
        np.zeros(learners),
        np.zeros((3, kernels.calibration.BINS)),
        np.zeros((2, 5)),
        np.zeros((0, 3)),
        np.array([1.0, 0.0]),
        _SURE_AT_FIRST * np.eye(2),
    )


_OF_LEARNERS = "places", "level", "centre", "evidence", "weight"


def with_learners(record: Record, learners: Iterable[int]) -> Record:
    """Return the record of these learners, in this order; one may come twice, as it stands."""
    return record._replace(**{name: getattr(record, name)[[*learners]] for name in _OF_LEARNERS})


def with_group(record: Record, known: "Known", blend: float) -> Record:
    """Return the record with one more group of learners, of which so much is known."""
    fresh = np.zeros((len(known.level), *record.places.shape[1:])), *known
    held = [getattr(record, name) for name in _OF_LEARNERS]
    both = {
        name: np.concatenate(pair)
        for name, pair in zip(_OF_LEARNERS, zip(held, fresh, strict=True), strict=True)
    }
    groups = record.blend.size
    weights = np.insert(record.blend, groups - 1, blend)
    return record._replace(**both, blend=weights, certainty=_SURE_AT_FIRST * np.eye(groups + 1))


def without_group(record: Record, group: int, learners: slice) -> Record:
    """Return the record without a group of learners."""
    kept = np.delete(np.arange(len(record.level)), learners)
    others = np.delete(np.arange(record.blend.size), group)
    return with_learners(record, kept)._replace(
        blend=record.blend[others], certainty=record.certainty[np.ix_(others, others)]
    )


class Known(NamedTuple):
    """What is known of the learners of a group before the first row that they are tested by."""

    level: Floats
    centre: Floats
    evidence: Floats
    weight: Floats


def known_from(scores: Floats, labels: Counts, shape: tuple[int, int]) -> Known:
    """Return what scores of rows say of learners that give them, each by all of its readouts."""
    means = [float(scores[labels == label].mean()) for label in range(2)]
    off = np.abs(scores - sum(means) / 2)
    centre = np.array([*means, float(np.median(off))])
    level, evidence = np.full(shape, off.mean()), np.full(shape, 0.5)
    return Known(level, np.tile(centre, (*shape, 1)), evidence, np.zeros(shape[0]))


def known_of(record: Record, learners: slice) -> Known:
    """Return what is known of some learners."""
    return Known(*(getattr(record, name)[learners].copy() for name in _OF_LEARNERS[1:]))


def shuffled(record: Record) -> bool:
    """Say whether rows come in random order, so that nothing need fade."""
    return bool(record.memory[0] == EVER)


# The end of a block -------------------------------------------------------------------------------


def measured(record: Record) -> Record:
    """Return the record with its block, which is full, counted; the block stays."""
    labels, rows = record.labels, int(record.position[ROWS]) + record.labels.size
    history, sums = record.history, record.sums * _faded(labels.size)
    positive = int(labels.sum())
    if 0 < positive < labels.size and record.held.any():
        auc = kernels.prequential.pair_auc(record.tested, labels)
        found = _summed(auc, positive, labels.size - positive)
        sums += found
        history = _shortened(np.concatenate([history, [[rows, auc, found[_WEIGHT]]]]))
    names = ("evidence", "weight", "counts", "shape")
    changed = {name: getattr(record, name).copy() for name in names}
    places, orders = record.places, np.argsort(record.places, axis=2)
    numbers = np.arange(len(places))
    kernels.prequential.measure(
        places, orders, record.served, labels, numbers, _kept(record), *changed.values()
    )
    return record._replace(sums=sums, history=history, **changed)


def blended(record: Record, shares: Floats) -> Record:
    """Return the record with the weights of groups of learners after its block, which is full.

    The block is a logistic regression of its labels on places by the groups, which began at what was known before:
    one step of a Gaussian filter. `shares` (groups, learners, readouts) are those of readouts in their group.
    """
    groups = np.tensordot(shares, record.places, axes=((1, 2), (0, 1)))
    X = np.clip(np.vstack([groups, np.ones(record.labels.size)]), -_FARTHEST, _FARTHEST)
    before, kept = record.blend, _kept(record)
    known = kept * record.certainty + (1.0 - kept) * _SURE_AT_FIRST * np.eye(before.size)
    weights = before.copy()
    for _ in range(_STEPS):
        p = 1.0 / (1.0 + np.exp(-weights @ X))
        curvature = (X * (p * (1.0 - p))) @ X.T + known
        pull = X @ (record.labels - p) - known @ (weights - before)
        step = np.linalg.solve(curvature, pull)
        weights = weights + step * min(
            1.0, _LONGEST_STEP / max(float(np.abs(step @ X).max()), 1e-9)
        )
    if not np.isfinite(weights).all():
        return record
    return record._replace(blend=weights, certainty=0.5 * (curvature + curvature.T))


def _kept(record: Record) -> float:
    """Return the share of what was known before its block that still counts after it."""
    rows = int(record.position[ROWS]) + record.labels.size
    kept = max(1.0 - 2.0 * record.labels.size / rows, 0.0)  # late rows weigh more, in proportion
    if shuffled(record):
        return kept
    # They also fade, for learners that keep up to be told from others.
    memory = kernels.calibration.rows_with(record.share, _EVIDENCE)
    return min(kept, math.exp(-record.labels.size / memory))


def next_block(record: Record, held: Floats, origin: Floats) -> Record:
    """Return the record at the beginning of its next block, which these weights will test."""
    rows = int(record.position[ROWS] + record.position[FILLED])
    room = min(max(SHORTEST, rows // 8), LONGEST)
    return record._replace(
        held=held.copy(),  # they may be the model's own, which goes on learning
        origin=origin if record.origin.size else record.origin,
        places=np.zeros((*record.level.shape, room)),
        served=np.zeros(room),
        tested=np.zeros(room),
        labels=np.zeros(room, np.int64),
        position=np.array([rows, 0]),
    )


def _faded(rows: int) -> Floats:
    """Return what is left of the sums after a block: all but the recent ones stay."""
    left = math.exp(-rows / _RECENT)
    return np.array([[1.0] * 5, [left, left, left**2, left**2, left**2]])


def _summed(auc: float, positive: int, negative: int) -> Floats:
    """Return what a block adds to the sums: by them the variance can be told for any AUC."""
    weight = 2.0 * positive * negative / (positive + negative)
    share = weight**2 / (positive * negative)
    return np.array([weight, weight * auc, share, share * (positive - 1), share * (negative - 1)])


def _shortened(history: Floats) -> Floats:
    """Return a history that is not too long: neighbouring blocks become one."""
    if len(history) <= MOST_BLOCKS:
        return history
    rows, auc, weight = history[: len(history) // 2 * 2].reshape(-1, 2, 3).transpose(2, 0, 1)
    both = weight.sum(axis=1)
    joined = np.column_stack([rows[:, 1], (auc * weight).sum(axis=1) / both, both])
    return np.vstack([joined, history[len(history) // 2 * 2 :]])


# What a record says -------------------------------------------------------------------------------


def auc_of(record: Record, *, recent: bool = False) -> float:
    """Return the mean AUC of the blocks, NaN before there is one."""
    weight, total = record.sums[int(recent)][: _AUC + 1]
    return float(total / weight) if weight else math.nan


def weight_of(record: Record) -> float:
    """Return the effective rows of all blocks: a block of p and n rows counts 2 p n / (p + n)."""
    return float(record.sums[0, _WEIGHT])


def deviation_of(record: Record, *, recent: bool = False) -> float:
    """Return the standard error of `auc_of` (Hanley and McNeil 1982, at the mean AUC)."""
    sums, auc = record.sums[int(recent)], auc_of(record, recent=recent)
    if math.isnan(auc):
        return math.nan
    above, below = auc / (2.0 - auc) - auc**2, 2.0 * auc**2 / (1.0 + auc) - auc**2
    variance = (
        sums[_PAIRS] * auc * (1.0 - auc) + sums[_POSITIVES] * above + sums[_NEGATIVES] * below
    )
    return float(math.sqrt(max(variance, 0.0)) / sums[_WEIGHT])


def interval_of(record: Record, *, recent: bool = False) -> tuple[float, float]:
    """Return the ends of the 95% confidence interval of `auc_of`."""
    auc, error = auc_of(record, recent=recent), deviation_of(record, recent=recent)
    return max(auc - _NORMAL_95 * error, 0.0), min(auc + _NORMAL_95 * error, 1.0)


def merged(records: Sequence[Record], prior: Record | None) -> Record:
    """Return the record of rankers that learned apart, in this order; rows of a block are left out."""
    weights, first, last = shares(records, prior), records[0], records[-1]

    def summed(field: str) -> NDArray[Any]:
        total = sum(getattr(record, field) for record in records)
        if prior is not None:
            total = total - (len(records) - 1) * getattr(prior, field)
        return np.asarray(total)

    def mean(field: str) -> Floats:
        return np.average([getattr(record, field) for record in records], axis=0, weights=weights)

    every = np.sum([record.counts for record in records], axis=0)
    counts = _counts(every, summed("counts"))
    whole = first._replace(
        memory=last.memory.copy(),
        counts=counts,
        shape=_shape_of(counts, first),
        level=mean("level"),
        centre=mean("centre"),
        evidence=mean("evidence"),
        weight=np.maximum(summed("weight"), 0.0),
        curve=_curve(records),
        information=_information([record.information for record in records], summed("information")),
        errors=last.errors.copy(),
        share=np.maximum(summed("share"), 0.0),
        learned=np.maximum(summed("learned"), 0),
        sums=np.maximum([summed("sums")[0], _recent(records, prior)], 0.0),
        history=_histories(records, prior),
    )
    return whole._replace(position=np.array([max(int(summed("position")[ROWS]), 0), 0]))


def shares(records: Sequence[Record], prior: Record | None) -> Floats:
    """Return the weights of rankers that learned apart: the rows that each has tested since."""
    known = 0 if prior is None else int(prior.learned[0])
    rows = np.array([float(record.learned[0] - known) for record in records])
    return rows if rows.any() else np.ones(len(rows))


def _shape_of(counts: Floats, record: Record) -> Floats:
    """Return the shape of the curve by some counts alone: that after some blocks without rows.

    It does not depend on the shapes before, so that a tree of merges gives that of one merge.
    """
    shape, rows, numbers = np.zeros_like(record.shape), np.zeros(0), np.zeros(0, np.int64)
    places, evidence, weight = record.places[:0, :, :0], record.evidence.copy(), np.zeros(1)
    orders = np.zeros(places.shape, np.int64)
    for _ in range(_BLOCKS_OF_SHAPE):
        kernels.prequential.measure(
            places, orders, rows, numbers, numbers, 1.0, evidence, weight, counts.copy(), shape
        )
    return shape


def _curve(records: Sequence[Record]) -> Floats:
    """Return the mean of the curves, each weighing as much as it knows."""
    known = sum(record.information for record in records) + 1e-9 * np.eye(4)
    pulls = sum(record.information @ (record.curve - records[0].curve) for record in records)
    return np.asarray(records[0].curve + np.linalg.solve(known, pulls), np.float64)


def _information(parts: Sequence[Floats], total: Floats) -> Floats:
    """Return the information of all, or its mean where a prior that has faded makes it negative."""
    total = 0.5 * (total + total.T)
    sound = np.linalg.eigvalsh(total).min() > 0.0
    return total if sound else np.mean(parts, axis=0)


def _counts(every: Floats, once: Floats) -> Floats:
    """Return counts with the prior's rows taken `once`; places stay those of `every` count."""
    rows = np.maximum(once[:2], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        places = np.nan_to_num(every[2] / every[:2].sum(axis=0))
    return np.vstack([rows, places * rows.sum(axis=0)])


def _recent(records: Sequence[Record], prior: Record | None) -> Floats:
    """Return the recent sums of rankers whose rows follow one another."""
    begun, known = (prior.sums[1], prior.position[ROWS]) if prior is not None else (np.zeros(5), 0)
    total = begun
    for record in records:
        left = _faded(int(record.position[ROWS] - known))[1]
        total = total * left + (record.sums[1] - begun * left)
    return np.asarray(total)


def _histories(records: Sequence[Record], prior: Record | None) -> Floats:
    """Return the histories one after the other, the prior's once."""
    known = 0 if prior is None else int(prior.position[ROWS])
    parts, rows = [] if prior is None else [prior.history], float(known)
    for record in records:
        new = record.history[record.history[:, 0] > known].copy()
        new[:, 0] += rows - known
        parts.append(new)
        rows += float(record.position[ROWS] - known)
    history = np.vstack(parts)
    while len(history) > MOST_BLOCKS:
        history = _shortened(history)
    return history
