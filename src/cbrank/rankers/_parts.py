"""Rows that all learners of a ranker take, and what then becomes of the learners."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.rankers import _race
from cbrank.rankers._unbroken import Call, assign, unbroken

if TYPE_CHECKING:
    from cbrank.rankers.cbr import CBRanker

_LONGEST = 1024  # rows for several learners: an interrupt waits until all have taken them


class Part:
    """The next rows of a chunk, up to where learners leave a race or forget.

    Every learner takes all of them or none does. Called again, a part goes on where it stopped.
    """

    def __init__(
        self,
        ranker: "CBRanker",
        rows: tuple[Any, NDArray[np.int64], NDArray[np.float64]],  # with labels and weights
        order: NDArray[np.int64],
        parameters: Any,
    ) -> None:
        self._ranker, self._rows, self._parameters = ranker, rows, parameters
        self._race: _race.Race | None = getattr(ranker, "_race", None)
        self._models = ranker._learners()
        self._learned: list[int] = []  # which of them have taken the rows
        self._remember: list[Any] | None = None  # which of those left have yet to forget
        left = until_forgetting(ranker)
        self.size = self._until_cut(order[:left])
        self._forgets = self.size == left
        self._order = order[: self.size]
        if self._race is not None:  # of merged rankers, some met pairs with another C
            self._elsewhere = self._race.tally[self._race.alive[0]] - ranker._model.tally

    def _until_cut(self, order: NDArray[np.int64]) -> int:
        """Return how many rows to take: all, unless learners leave or there are very many."""
        if self._race is None or self._race.alive.size == 1:
            return order.size
        labels = self._rows[1][order[:_LONGEST]]
        return _race.until_cut(labels, self._ranker._buffer.seen, self._race)

    def has_begun(self) -> bool:
        """Say whether any learner has taken the rows."""
        return bool(self._learned)

    def __call__(self) -> None:
        """Let the learners take the rows, those leave whose time has come, and the rest forget."""
        unbroken(self._calls())
        if self._race is not None:
            self._settle()
        if self._forgets:
            self._forget()

    def _calls(self) -> Iterator[Call]:
        """Yield what lets each learner take the rows that has not yet done so.

        All meet the same buffered rows: rivals those of a copy, and at last the leader, whose
        learning changes the buffer itself.
        """
        learn, shared, race = self._ranker._kernel(), self._ranker._buffer, self._race
        own = type(shared)(*(array.copy() for array in shared)) if len(self._models) > 1 else shared
        leader = len(self._models) - 1
        for place, model in enumerate(self._models):
            if place in self._learned:
                continue
            buffer, parameters, which = own if place < leader else shared, self._parameters, 0
            if race is not None:
                which = race.alive[place + 1 if place < leader else 0]
                parameters = parameters._replace(C=race.C[which])
            if 0 < place < leader:
                yield from map(assign, own, shared)
            yield learn, *self._rows, self._order, buffer, model, parameters
            yield self._learned.append, place
            if race is not None and place < leader:
                yield assign(race.tally[which], model.tally)
            elif race is not None:
                yield np.add, model.tally, self._elsewhere, race.tally[which]

    def _settle(self) -> None:
        """Let the best learner lead, and the worse half leave if it is time."""
        ranker = self._ranker
        if ranker._race.alive.size > 1:
            _race.promote(ranker._model, ranker._rivals, ranker._race)
            if _race.is_due(ranker._buffer.seen, ranker._race):
                rivals, race = _race.drop_half(ranker._rivals, ranker._race)
                ranker.__dict__.update(_rivals=rivals, _race=race)

    def _forget(self) -> None:
        if self._remember is None:
            self._remember = self._ranker._learners()
        while self._remember:
            changes = kernels.forgetting.forget(self._remember[-1], self._ranker.forgetting)
            unbroken([*(assign(*change) for change in changes), (self._remember.pop,)])


def until_forgetting(ranker: "CBRanker") -> int:
    """Return after how many rows there is forgetting: more than there are, if there is none."""
    if not ranker.forgetting:
        return sys.maxsize
    every = kernels.forgetting.rows_between(ranker.forgetting)
    return every - int(ranker._buffer.seen.sum()) % every
