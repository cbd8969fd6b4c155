"""What a ranker of a stream says of rows that come much later than those it has learned.

A stream is learned in its order, for the rows that come next: knots are those of the first rows, class means and
weights lean on the last. For rows that come much later, the rows of the memory, which are of all times, are
learned anew in random order, as `fit` does.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.learning import blocks, record, served
from cbrank.learning.memory import Rows
from cbrank.learning.method import Method
from cbrank.learning.orders import learn_anew
from cbrank.learning.state import Batch, Cell, State, begin
from cbrank.metrics.roc import auc_of

Floats = NDArray[np.float64]

# Shares of the stream after which weights are tried on what comes later, and by which share of it later.
_TRIED, _AGES = (0.5, 0.75, 0.875), (0.0, 0.125, 0.25, 0.5)
_FEWEST = 32  # rows of each class whose AUC is worth looking at
_PARTS = 8  # consecutive ones, by which the standard error is told: rows near in time are alike


class Known(NamedTuple):
    """A state and how its rows are learned."""

    method: Method
    state: State

    def scores(self, X: object) -> Floats:
        """Return the scores of rows as they come, before the intercept."""
        return np.asarray(blocks.scored(blocks.encoded(self.state, X), served.mixture_of(*self)))


def taught(method: Method, state: State, rows: Rows) -> Known:
    """Return what some rows teach by themselves, in random order."""
    assert state.memory is not None
    front, seed = None if state.front is None else state.front.anew(rows.X), state.memory.seed
    width = rows.X.shape[1] if front is None else front.first_width(rows.X.shape[1])
    cell = Cell(begin(method, width, seed, front, sparse=sp.issparse(rows.X), shuffled=True))
    random, every = np.random.RandomState(seed % 2**32), np.arange(rows.labels.size)
    learn_anew(cell, method, Batch(rows.X, rows.labels, rows.weights, every), random)
    return Known(*blocks.decided(method, cell.state))


def later(method: Method, state: State) -> Known:
    """Return what ranks rows that come much later."""
    rows = None if state.memory is None else state.memory.rows(state.record.position)
    return Known(method, state) if rows is None else taught(method, state, rows)


def by_age(method: Method, state: State) -> Floats:
    """Return how well rows are ranked by how much later they come: rows between, AUC and its standard error."""
    assert state.memory is not None
    rows, held = state.memory.rows(state.record.position), state.record
    if rows is None:
        return np.zeros((0, 3))
    count = int(held.position[record.ROWS] + held.position[record.FILLED])
    found: list[list[_Ranked]] = [[] for _ in _AGES[1:]]
    for share in _TRIED:
        before = rows.numbers < share * count
        if np.bincount(rows.labels[before], minlength=2).min() < _FEWEST:
            continue
        known, ages = taught(method, state, rows.take(before)), rows.numbers / count - share
        for part, (youngest, oldest) in zip(found, pairwise(_AGES), strict=True):
            some = np.flatnonzero(~before & (ages >= youngest) & (ages < oldest))
            if (
                share + oldest <= 1.0
                and np.bincount(rows.labels[some], minlength=2).min() >= _FEWEST
            ):
                ranked = rows.take(some)
                part.append(_Ranked(known.scores(ranked.X), ranked.labels, ages[some] * count))
    lines = [_next(held), *(_measured(part) for part in found if part)]
    return np.array([line for line in lines if np.isfinite(line).all()]).reshape(-1, 3)


class _Ranked(NamedTuple):
    """Rows ranked by what was learned before them."""

    scores: Floats
    labels: NDArray[np.int64]
    ages: Floats  # rows between

    @property
    def auc(self) -> float:
        return auc_of(self.labels == 1, self.scores, np.ones(self.labels.size))

    def without(self, part: int) -> "_Ranked":
        """Return the rows without one of the consecutive parts."""
        ends = np.linspace(0, self.labels.size, _PARTS + 1).astype(int)
        kept = np.delete(np.arange(self.labels.size), slice(ends[part], ends[part + 1]))
        return _Ranked(self.scores[kept], self.labels[kept], self.ages[kept])


def _measured(found: list[_Ranked]) -> Floats:
    """Return rows between, AUC and the standard error, which is that of the jackknife over parts."""
    sizes = np.array([each.labels.size for each in found], np.float64)
    aucs, shares = np.array([each.auc for each in found]), sizes / sizes.sum()
    moved = np.array([[each.without(part).auc for part in range(_PARTS)] for each in found])
    variances = (_PARTS - 1) * moved.var(axis=1)
    between = shares @ np.array([each.ages.mean() for each in found])
    return np.array([between, shares @ aucs, np.sqrt(shares**2 @ variances)])


def _next(held: record.Record) -> Floats:
    """Return how well the blocks of the second half of the stream were ranked before they were learned."""
    half = held.position[record.ROWS] / 2
    history = held.history[held.history[:, 0] > half]
    if len(history) < 2:
        return np.full(3, np.nan)
    ends, aucs, weights = history.T
    auc, shares = float(np.average(aucs, weights=weights)), weights / weights.sum()
    error = np.sqrt(shares**2 @ (aucs - auc) ** 2 * len(aucs) / (len(aucs) - 1))
    return np.array([np.diff(ends, prepend=half).mean() / 2, auc, error])
