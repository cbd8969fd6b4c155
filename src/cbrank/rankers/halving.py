"""What a ranker with C="auto" decides within the pass: C, forgetting, mean or average, rows kept.

Such a ranker has several learners that share rows and buffers and differ in C. After each block of
rows the AUC of each readout of each learner, on rows that it had not learned from, is known
(``record``). What is served is a mixture of all readouts, each in units of its own class distance: the
better its AUC, the more it weighs. At each cut the better half of the learners goes on (Jamieson and
Talwalkar, "Non-stochastic best arm identification", 2016), until one C is left. In a stream, one more
learner forgets: at the first cut it joins as a copy of the best, with one variance a feature as a new one.

One of the learners leads: its model is the ranker's. All learners take the same rows, whatever
interrupts: rows come in parts, and a part that has begun is taken to its end (`take_part`).
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.parameters import ASLEEP, buffer_size_after, room_for
from cbrank.rankers import record
from cbrank.rankers.parts import assign, to_its_end, uninterrupted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cbrank.rankers.base import Batch
    from cbrank.rankers.cbr import CBRanker

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

# A cut is cheaper the earlier it comes, and less sure: an AUC needs rows of both classes, and cuts
# by rows alone chose wrongly where one class is rare. Twice as early, they chose too large a C in some
# orders of covtype.
FIRST_CUT = 512  # rows before the first cut
FEWEST_RARE = 16  # of them of the rarer class
_LIKELIEST = -4.0  # best over the benchmark sets (docs/defaults.md): the nearest leads among equals
# What it forgets per row: streams that change want 0.001 to 0.01 (docs/_drift_table.md), and the mixture
# with one that forgets nothing is best, or nearly, with the least of these. To let it rest while it is behind
# would halve the work of a stream that stays the same, and lost 0.03 on electricity prices, which do not.
FORGETS = 0.001
# Largest C of that learner with one variance a feature. There a large one makes variances so small, with every
# wrong pair, that the mean can no more be moved in the time of its memory: after labels were swapped, most of
# 20 streams were ranked backwards for thousands of rows, with this C none.
_LARGEST_OF_FORGETFUL = 2.0**-8
# Difference of two AUCs that makes one readout weigh e times the other. Between 0.005 and 0.02 nothing
# changes by more than chance (docs/defaults.md).
_TEMPERATURE = 0.01
# AUC by which a learner must be ahead per octave that its C is from the likeliest: where all are nearly
# equal, as at the beginning of many streams, chance is not to choose an extreme one.
_PER_OCTAVE = 0.00025

# A weight that a learner makes no use of has a prior of this variance: in a full covariance it is asleep
# and costs nothing, elsewhere it hardly moves.
SLIGHT = ASLEEP


class Arms(NamedTuple):
    """The learners that begin, and how many may join them; one more, the last, may forget."""

    exponents: tuple[int, ...]  # C is 2 to the power of this
    reaches: tuple[int, ...]  # kinds of features beyond the first that each makes use of
    later: int

    @property
    def slots(self) -> int:
        """How many learners there may be."""
        return len(self.exponents) + self.later + 1


# Powers of 2 from what raw columns to what scaled ones need. Nine, two apart, rank no better than these
# five (docs/defaults.md), for the mixture of two neighbours does what one between them would. There is room
# for nine, with which files of version 0.1.0 began.
OF_CBR = Arms((-12, -8, -4, 0, 4), (0,) * 5, 4)


class Halving(NamedTuple):
    """Where the learners stand."""

    C: Floats  # (g,) of every learner there may be, the one that forgets last
    forgetting: Floats  # (g,) share that each forgets per row
    reach: Places  # (g,) kinds of features beyond the first that each makes use of
    alive: Places  # numbers of the learners left, the leader's first

    @property
    def forgetful(self) -> int:
        """Number of the learner that forgets."""
        return self.C.size - 1


# Learners, stacked along the first axis of a model's arrays --------------------------------------


def begin(ranker: "CBRanker") -> tuple[Any, Halving]:
    """Return the learners beside the leader, stacked, and the halving before its first row."""
    arms = ranker.ARMS
    exponents = np.full(arms.slots, _LIKELIEST)
    exponents[: len(arms.exponents)] = arms.exponents
    reach = np.full(arms.slots, max(arms.reaches))
    reach[: len(arms.reaches)] = arms.reaches
    unlikely = np.abs(exponents[: len(arms.exponents)] - _LIKELIEST)
    alive = np.lexsort((-reach[: unlikely.size], unlikely))
    models = [ranker._reaching(ranker._model, int(reach[number])) for number in alive]
    assigned = [assign(*pair) for pair in zip(ranker._model, models[0], strict=True)]
    uninterrupted(assigned)
    halving = Halving(np.exp2(exponents), np.zeros(arms.slots), reach, alive)
    return stack(models[1:], ranker._model), halving


def most_models(arms: Arms) -> int:
    """Return how many models there are at most: all, and at a cut those that go on."""
    return len(arms.exponents) + (len(arms.exponents) + 1) // 2


def stacked(model: Any, count: int) -> Any:
    """Return `count` copies of a model, stacked along a new first axis of its arrays."""
    return type(model)(*(np.repeat(array[None], count, axis=0) for array in model))


def stack(models: "Sequence[Any]", like: Any) -> Any:
    """Return models stacked along a new first axis of their arrays; one like them if there is none."""
    if not models:
        return stacked(like, 0)
    return type(like)(*map(np.stack, zip(*models, strict=True)))


def of_stack(models: Any, place: int) -> Any:
    """Return one of the stacked models: a view, so that learning changes the stack."""
    return type(models)(*(array[place] for array in models))


# Who leads, who leaves and who weighs what ---------------------------------------------------------


def mixture(halving: Halving | None, evidence: Floats, alive: Places, readouts: Places) -> Floats:
    """Return the weights of the readouts of some learners; others than `readouts` have none."""
    mix = np.zeros((alive.size, evidence.shape[1]))
    if halving is None:
        mix[:, readouts] = 1.0
        return mix
    unlikely = np.abs(np.log2(halving.C[alive]) - _LIKELIEST)
    known = evidence[alive][:, readouts] - _PER_OCTAVE * unlikely[:, None]
    weights = np.exp((known - known.max()) / _TEMPERATURE)
    mix[:, readouts] = weights / weights.sum()
    return mix


def ranked(halving: Halving, evidence: Floats, readouts: Places) -> Places:
    """Return the numbers of the learners left, the best first."""
    alive = halving.alive
    weight = mixture(halving, evidence, alive, readouts).sum(axis=1)
    unlikely = np.abs(np.log2(halving.C[alive]) - _LIKELIEST)
    return alive[np.lexsort((alive, unlikely, -weight))]


def is_due(ranker: "CBRanker", halving: Halving) -> bool:
    """Say whether the next cut is now."""
    learners = int((halving.alive != halving.forgetful).sum())
    if learners <= 1:
        return False
    seen, left, doubled = ranker._buffer.seen, ranker._begun(), 1
    while left > learners:
        left, doubled = (left + 1) // 2, 2 * doubled
    return bool(seen.sum() >= doubled * FIRST_CUT and seen.min() >= doubled * FEWEST_RARE)


def left_after_cut(halving: Halving, order: Places) -> Places:
    """Return the numbers of the learners that go on, given all of them in order.

    Beside the best, those with the next larger and the next smaller C go on first: a large C is ahead at the
    beginning of many streams, and falls behind later.
    """
    choosing = _neighbours_first(halving, order[order != halving.forgetful])
    kept = choosing[: (choosing.size + 1) // 2]
    return order[np.isin(order, np.append(kept, halving.forgetful))]


def _neighbours_first(halving: Halving, order: Places) -> Places:
    """Return numbers of learners in order, but for those next to the best, which come after it."""
    ratios = halving.C[order] / halving.C[order[0]]
    alike = halving.reach[order] == halving.reach[order[0]]
    above, below = ratios[alike & (ratios > 1.0)], ratios[alike & (ratios < 1.0)]
    next_to = [1.0, above.min(initial=np.inf), below.max(initial=0.0)]
    first = alike & np.isin(ratios, next_to)
    return np.concatenate([order[first], order[~first]])


def end_block(ranker: "CBRanker") -> None:
    """Measure the block of a ranker; choose who leads, who leaves, and what is served from now on."""
    measured = record.measured(ranker._record, ranker._numbers())
    view = ranker._bounded()
    calls: list[Any] = []
    if measured.origin.size:
        calls.append(assign(ranker._buffer.means, view._buffer.means))
    halving: Halving | None = getattr(ranker, "_halving", None)
    if halving is None:
        after = _next(view, measured, None, ranker._learners())
        buffer = _buffer(ranker, record.shuffled(measured))
        new: dict[str, Any] = {"_record": after, "_buffer": buffer}
        uninterrupted([*calls, (ranker.__dict__.update, new)])
        return
    models = dict(ranker._learners())
    order = ranked(halving, measured.evidence, ranker._readouts())
    leader = int(order[0])
    kept = left_after_cut(halving, order) if is_due(ranker, halving) else order
    if _wants_forgetful(ranker, halving):
        halving = with_learner(halving, halving.forgetful, leader, FORGETS)
        models[halving.forgetful] = models[leader]
        if not ranker._is_full():
            models[halving.forgetful] = ranker.prior(leader)
            halving.C[halving.forgetful] = min(halving.C[leader], _LARGEST_OF_FORGETFUL)
        measured = like(measured, halving.forgetful, leader)
        kept = np.append(kept, halving.forgetful)
    new = {"_buffer": _buffer(ranker, _is_steady(measured, halving, leader))}
    if set(kept.tolist()) == set(halving.alive.tolist()):
        alive, place = halving.alive.copy(), int(np.flatnonzero(halving.alive == leader)[0])
        alive[[0, place]] = alive[[place, 0]]
        calls += _exchange(ranker._model, models[leader]) if place else []
    else:
        alive = kept
        new["_others"] = stack([models[number] for number in kept[1:].tolist()], ranker._model)
        if leader != halving.alive[0]:
            new["_model"] = type(ranker._model)(*(array.copy() for array in models[leader]))
    new["_record"] = _next(view, measured, halving, [(n, models[n]) for n in alive.tolist()])
    new["_halving"] = halving._replace(alive=alive)
    uninterrupted([*calls, (ranker.__dict__.update, new)])


def _next(
    ranker: "CBRanker",
    measured: record.Record,
    halving: Halving | None,
    learners: list[tuple[int, Any]],
) -> record.Record:
    """Return the record of the next block, tested by what these learners serve."""
    numbers = np.array([number for number, _ in learners])
    mix = mixture(halving, measured.evidence, numbers, ranker._readouts())
    held = ranker._mixed(measured, mix, learners, slice(None)).weights
    return record.next_block(measured, held, ranker._origin(), len(learners))


def forgotten(ranker: "CBRanker", number: int) -> float:
    """Return what the learner with that number forgets per row: as asked, if a number was given."""
    if ranker.forgetting != "auto":
        return float(ranker.forgetting)
    halving: Halving | None = getattr(ranker, "_halving", None)
    return 0.0 if halving is None else float(halving.forgetting[number])


def _wants_forgetful(ranker: "CBRanker", halving: Halving) -> bool:
    wanted = ranker.forgetting == "auto" and not record.shuffled(ranker._record)
    # Later the best is more often the one that will be left. Of two with one C the one that forgets may lead
    # where nothing changes: on standardised covtype it then did so for good, and ranked worse.
    joined = halving.forgetful in halving.alive
    return bool(wanted and not joined and ranker._buffer.seen.sum() >= FIRST_CUT)


def with_learner(halving: Halving, number: int, best: int, forgets: float) -> Halving:
    """Return a halving in which a learner has the C and the reach of another, and forgets."""
    changed = {name: getattr(halving, name).copy() for name in ("C", "reach", "forgetting")}
    changed["C"][number], changed["reach"][number] = halving.C[best], halving.reach[best]
    changed["forgetting"][number] = forgets
    return halving._replace(**changed)


def like(measured: record.Record, number: int, best: int) -> record.Record:
    """Return a record in which a learner begins as another stands."""
    changed = {name: getattr(measured, name).copy() for name in ("level", "centre", "evidence")}
    for array in changed.values():
        array[number] = array[best]
    return measured._replace(**changed)


def _exchange(leading: Any, other: Any) -> list[Any]:
    """Return the calls by which two models change places."""
    calls: list[Any] = []
    for one, two in zip(leading, other, strict=True):
        before = one.copy()
        calls += [assign(one, two), assign(two, before)]
    return calls


def _buffer(ranker: "CBRanker", steady: bool) -> Any:
    """Return the buffer, with room for as many rows as are wanted now if its size is "auto".

    With a number for C it is the paper's, and where rows come in random order it need be no window.
    """
    if ranker.buffer_size != "auto":
        return ranker._buffer
    seen, weights = ranker._buffer.seen, int(np.count_nonzero(ranker._record.held))
    wanted = buffer_size_after(int(seen.sum()), int(seen.min()), weights, steady=steady)
    width, reservoir = ranker._record.held.size, ranker.policy == "reservoir"
    kept = min(wanted, ranker._rows_kept(width)[0])
    plain = ranker.C != "auto" or reservoir or record.shuffled(ranker._record)
    room = kept if plain else room_for(kept, width)
    return kernels.buffers.with_room(ranker._buffer, kept, room, reservoir=reservoir)


def _is_steady(measured: record.Record, halving: Halving, leader: int) -> bool:
    """Say whether things stay the same: rows are in random order, or to forget does worse than not to."""
    ahead = halving.forgetful in halving.alive and leader != halving.forgetful
    return record.shuffled(measured) or ahead


# Rows that all learners take ----------------------------------------------------------------------


def take_part(ranker: "CBRanker", batch: "Batch", parameters: Any, tested: bool) -> int:
    """Let all learners take the first rows of a batch, up to the end of a block; return how many."""
    if not record.rows_left(ranker._record):
        ranker._end_block()
    part = _Part(ranker, batch, parameters, tested)
    to_its_end(part.go_on, part.learned.any)
    return part.size


class _Part:
    """The next rows of a batch, up to the end of a block.

    Every learner takes all of them or none does. An interrupted part goes on where it stopped.
    """

    def __init__(self, ranker: "CBRanker", batch: "Batch", parameters: Any, tested: bool) -> None:
        self._ranker, self._parameters, self._tested = ranker, parameters, tested
        self._models = [model for _, model in ranker._learners()]
        count, longest = len(self._models), record.LONGEST
        left = record.rows_left(ranker._record) if tested else longest
        self._batch = batch._replace(order=batch.order[:left])
        self.size = self._batch.order.size
        self._notes = record.notes_for(ranker._record, self.size, count)
        self._before = int(ranker._buffer.seen.sum())
        self.learned = np.zeros(count, np.int64)  # rows that each learner has taken
        self._forgot = np.zeros(count, np.int64)  # times that each has forgotten
        shared = ranker._buffer
        self._own = (
            type(shared)(*(array.copy() for array in shared)) if count > 1 else shared
        )  # all meet the same buffered rows: a learner that does not lead those of a copy
        self._done = False

    def go_on(self) -> None:
        """Let the learners take the rows, forget if it is time, and note how they did."""
        if not self._done:
            self._take()
        if not record.rows_left(self._ranker._record):
            self._ranker._end_block()

    def _take(self) -> None:
        for place in [*range(1, len(self._models)), 0]:  # the leader, who changes the buffer, last
            self._teach(place)
        ranker = self._ranker
        calls: list[Any] = [(setattr, self, "_done", True)]
        if self._tested:
            numbers, mix = ranker._numbers(), ranker._mix()
            calls.append(record.noted(ranker._record, self._notes, numbers, mix))
        uninterrupted(calls)

    def _teach(self, place: int) -> None:
        """Let a learner take what is left of the rows, in steps between which it forgets."""
        share, parameters = self._settings(place)
        every = kernels.forgetting.rows_between(share) if share else 0
        while True:
            begin = int(self.learned[place])
            passed = (self._before + begin) // every - self._before // every if every else 0
            if self._forgot[place] < passed:
                self._forget(place, share)
            elif begin < self.size:
                rows = every - (self._before + begin) % every if every else self.size
                self._learn(place, begin, min(begin + rows, self.size), parameters)
            else:
                return

    def _settings(self, place: int) -> tuple[float, Any]:
        """Return what a learner forgets, and its parameters."""
        halving: Halving | None = getattr(self._ranker, "_halving", None)
        if halving is None:
            return forgotten(self._ranker, 0), self._parameters
        number = int(halving.alive[place])
        C = halving.C[number]
        return forgotten(self._ranker, number), self._parameters._replace(C=C)

    def _learn(self, place: int, begin: int, end: int, parameters: Any) -> None:
        shared, model = self._ranker._buffer, self._models[place]
        buffer = self._own if place else shared
        rows = self._batch._replace(order=self._batch.order[begin:end])
        trail = self._notes.trail(self._ranker._record, place, begin, end)
        calls: list[Any] = [*map(assign, self._own, shared)] if place > 1 and not begin else []
        calls += [
            (self._ranker._kernel(model), *rows, buffer, model, parameters, trail),
            (self.learned.__setitem__, place, end),
        ]
        uninterrupted(calls)

    def _forget(self, place: int, share: float) -> None:
        changes = kernels.forgetting.forget(self._models[place], share)
        done = self._forgot.__setitem__, place, self._forgot[place] + 1
        uninterrupted([*(assign(*change) for change in changes), done])
