"""C chosen within the pass by successive halving, and learners that forget.

With C="auto" a ranker has several learners that share rows and buffers and differ in C. One of them
leads: its model is the ranker's. At each cut the half with the better progressive AUC goes on
(Jamieson and Talwalkar, "Non-stochastic best arm identification", 2016), until one is left.

All learners take the same rows, whatever interrupts: rows come in parts, and a part that has begun is
taken to its end (`take_part`).
"""

import operator
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels

if TYPE_CHECKING:
    from cbrank.rankers.base import Batch
    from cbrank.rankers.cbr import CBRanker

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

# A cut is cheaper the earlier it comes, and less sure: an AUC needs rows of both classes, and cuts
# by rows alone chose wrongly where one class is rare.
FIRST_CUT = 512  # rows before the first cut
FEWEST_RARE = 16  # of them of the rarer class
_EXPONENTS = np.arange(-12, 5, 2)  # powers of 2, from what raw columns to what scaled ones need
_LIKELIEST = -4.0  # best over the benchmark sets (docs/defaults.md): the nearest leads among equals
_LONGEST_PART = 1024  # rows: an interrupt waits until all learners have taken them
_TRIES = 16  # to end a part that is interrupted, or fails, again and again

Call = tuple[Any, ...]  # a compiled function and its arguments


class Halving(NamedTuple):
    """Where the learners stand."""

    C: Floats  # (g,) every C that is tried
    tally: Places  # (g, 4) of each learner when it last learned
    alive: Places  # places in C of the learners left, the leader's first


# Learners, stacked along the first axis of a model's arrays --------------------------------------


def begin(model: Any) -> tuple[Any, Halving]:
    """Return the learners beside the leader, stacked, and the halving before its first row."""
    C = np.exp2(_EXPONENTS, dtype=np.float64)
    halving = Halving(C, np.zeros((len(C), 4), np.int64), np.arange(len(C)))
    return stacked(model, len(C) - 1), halving._replace(alive=ranked(halving))


def most_models() -> int:
    """Return how many models there are at most: all, and at a cut the half that goes on."""
    return len(_EXPONENTS) + len(_EXPONENTS) // 2


def stacked(model: Any, count: int) -> Any:
    """Return `count` copies of a model, stacked along a new first axis of its arrays."""
    return type(model)(*(np.repeat(array[None], count, axis=0) for array in model))


def of_stack(models: Any, place: int) -> Any:
    """Return one of the stacked models: a view, so that learning changes the stack."""
    return type(models)(*(array[place] for array in models))


# Who leads and who leaves -------------------------------------------------------------------------


def progressive_auc(halving: Halving) -> Floats:
    """Return the progressive AUC of every learner, as it was when the learner left."""
    right = halving.tally[:, kernels.confidence.TWICE_RIGHT]
    pairs = halving.tally[:, kernels.confidence.PAIRS]
    with np.errstate(invalid="ignore"):
        return right / (2 * pairs)


def ranked(halving: Halving) -> Places:
    """Return the places in C of the learners left, the best progressive AUC first."""
    alive = halving.alive
    auc = np.nan_to_num(progressive_auc(halving)[alive], nan=0.5)
    unlikely = np.abs(np.log2(halving.C[alive]) - _LIKELIEST)
    return alive[np.lexsort((alive, unlikely, -auc))]


def rows_to_cut(labels: Places, seen: Places, halving: Halving) -> int:
    """Return after how many of the rows to come the next cut is, or how many rows there are."""
    rows, rare = _next_cut(halving)
    if halving.alive.size == 1 or sum(seen.tolist()) + labels.size < rows:
        return labels.size
    positive = np.cumsum(labels)
    negative = np.arange(1, labels.size + 1) - positive
    enough = np.minimum(seen[0] + negative, seen[1] + positive) >= rare
    due = enough & (seen.sum() + np.arange(1, labels.size + 1) >= rows)
    return int(due.argmax()) + 1 if due.any() else labels.size


def is_due(seen: Places, halving: Halving) -> bool:
    """Say whether the next cut is now."""
    rows, rare = _next_cut(halving)
    counts = seen.tolist()
    return halving.alive.size > 1 and sum(counts) >= rows and min(counts) >= rare


def _next_cut(halving: Halving) -> tuple[int, int]:
    """Return how many rows, and of the rarer class, there must be before the next cut."""
    left, doubled = len(halving.C), 1
    while left > halving.alive.size:
        left, doubled = (left + 1) // 2, 2 * doubled
    return doubled * FIRST_CUT, doubled * FEWEST_RARE


def promote(model: Any, others: Any, halving: Halving) -> None:
    """Let the best learner change places with the leader, whose arrays are `model`."""
    place = int(np.flatnonzero(halving.alive == ranked(halving)[0])[0])
    if place:
        order = np.arange(halving.alive.size)
        order[[0, place]] = place, 0
        changes = [(halving.alive[:], halving.alive[order])]
        for leading, stack in zip(model, others, strict=True):
            before = leading.copy()
            changes += [(leading, stack[place - 1]), (stack[place - 1], before)]
        uninterrupted(assign(*change) for change in changes)


def cut(others: Any, halving: Halving) -> tuple[Any, Halving]:
    """Return the better half of the learners, rounded up."""
    kept = ranked(halving)[: (halving.alive.size + 1) // 2]
    stay = np.isin(halving.alive[1:], kept)
    others = type(others)(*(array[stay] for array in others))
    alive = np.append(halving.alive[:1], halving.alive[1:][stay])
    return others, halving._replace(alive=alive)


def ended(halvings: Sequence[Halving], prior: Halving | None) -> Halving:
    """Return the end of several that went on apart: the C with which most pairs were met is left."""
    tally = sum(halving.tally for halving in halvings)
    if prior is not None:
        tally = tally - (len(halvings) - 1) * prior.tally
    C = halvings[0].C.copy()
    halving = Halving(C, np.array(tally), np.arange(len(C)))
    pairs = halving.tally[:, kernels.confidence.PAIRS]
    most = halving._replace(alive=np.flatnonzero(pairs == pairs.max()))
    return halving._replace(alive=ranked(most)[:1])


# Rows that all learners take ----------------------------------------------------------------------


def rows_to_forgetting(ranker: "CBRanker") -> int:
    """Return after how many rows there is forgetting: more than there are, if there is none."""
    if not ranker.forgetting:
        return sys.maxsize
    every = kernels.forgetting.rows_between(ranker.forgetting)
    return every - int(ranker._buffer.seen.sum()) % every


def take_part(ranker: "CBRanker", batch: "Batch", parameters: Any) -> int:
    """Let all learners take the first rows of a batch, up to a cut or forgetting; return how many."""
    part = _Part(ranker, batch, parameters)
    _to_its_end(part, _TRIES)
    return part.size


def _to_its_end(part: "_Part", tries: int) -> None:
    """Take a part to its end once it has begun; what interrupted it goes on its way then."""
    try:
        part.go_on()
    except BaseException:
        if tries and part.learned:
            _to_its_end(part, tries - 1)
        raise


class _Part:
    """The next rows of a batch, up to a cut or to forgetting.

    Every learner takes all of them or none does. An interrupted part goes on where it stopped.
    """

    def __init__(self, ranker: "CBRanker", batch: "Batch", parameters: Any) -> None:
        self._ranker, self._parameters = ranker, parameters
        self._halving: Halving | None = getattr(ranker, "_halving", None)
        self._models = ranker._learners()
        self.learned: list[int] = []  # which of them have taken the rows
        self._remember: list[Any] | None = None  # which of those left have yet to forget
        left = rows_to_forgetting(ranker)
        self.size = self._rows_to_cut(batch.labels, batch.order[:left])
        self._forgets = self.size == left
        self._batch = batch._replace(order=batch.order[: self.size])
        if self._halving is not None:  # of merged rankers, some met pairs with another C
            self._elsewhere = self._halving.tally[self._halving.alive[0]] - ranker._model.tally

    def _rows_to_cut(self, labels: Places, order: Places) -> int:
        """Return how many rows to take: all, unless a cut is due or there are very many."""
        if self._halving is None or self._halving.alive.size == 1:
            return order.size
        seen = self._ranker._buffer.seen
        return rows_to_cut(labels[order[:_LONGEST_PART]], seen, self._halving)

    def go_on(self) -> None:
        """Let the learners take the rows, cut them if it is time, and let the rest forget."""
        uninterrupted(self._calls())
        if self._halving is not None:
            self._settle()
        if self._forgets:
            self._forget()

    def _calls(self) -> Iterator[Call]:
        """Yield what lets each learner take the rows that has not yet done so.

        All meet the same buffered rows: the others those of a copy, and at last the leader, whose
        learning changes the buffer itself.
        """
        learn, shared, halving = self._ranker._kernel(), self._ranker._buffer, self._halving
        own = type(shared)(*(array.copy() for array in shared)) if len(self._models) > 1 else shared
        leader = len(self._models) - 1
        for place, model in enumerate(self._models):
            if place in self.learned:
                continue
            buffer, parameters, which = own if place < leader else shared, self._parameters, 0
            if halving is not None:
                which = halving.alive[place + 1 if place < leader else 0]
                parameters = parameters._replace(C=halving.C[which])
            if 0 < place < leader:
                yield from map(assign, own, shared)
            yield learn, *self._batch, buffer, model, parameters
            yield self.learned.append, place
            if halving is not None and place < leader:
                yield assign(halving.tally[which], model.tally)
            elif halving is not None:
                yield np.add, model.tally, self._elsewhere, halving.tally[which]

    def _settle(self) -> None:
        """Let the best learner lead, and the worse half leave if it is time."""
        ranker = self._ranker
        if ranker._halving.alive.size > 1:
            promote(ranker._model, ranker._others, ranker._halving)
            if is_due(ranker._buffer.seen, ranker._halving):
                others, halving = cut(ranker._others, ranker._halving)
                ranker.__dict__.update(_others=others, _halving=halving)

    def _forget(self) -> None:
        if self._remember is None:
            self._remember = self._ranker._learners()
        while self._remember:
            changes = kernels.forgetting.forget(self._remember[-1], self._ranker.forgetting)
            uninterrupted([*(assign(*change) for change in changes), (self._remember.pop,)])


# Python looks for signals, and raises KeyboardInterrupt, between the steps of Python code. Where C
# code calls C code there are none: calls made like this are interrupted before the first or after the
# last.


def uninterrupted(calls: Iterable[Call]) -> None:
    """Make calls with nothing in between."""
    deque(starmap(operator.call, [*calls]), maxlen=0)


def assign(array: NDArray[Any], value: Any) -> Call:
    """Return the call that fills an array with what `value` then holds."""
    return operator.setitem, array, ..., value
