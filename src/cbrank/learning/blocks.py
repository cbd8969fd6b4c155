"""Rows of a stream, a block at a time: tested, learned, and counted at the end of the block.

Every learner of a pool takes the same rows, whatever interrupts: rows come in parts, each up to the end of
a block at most, and a part that has begun is taken to its end.
"""

import contextlib
import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.features.table import Table
from cbrank.learning import record, served
from cbrank.learning.front import milestone, waits
from cbrank.learning.method import Method
from cbrank.learning.state import Batch, Cell, State

Call = tuple[Any, ...]  # a compiled function and its arguments

_NO_MEANS = np.zeros(0)
DENSE_BLOCK = 2**20  # numbers of a sparse matrix made dense at a time: 8 MiB


def learn(
    cell: Cell,
    method: Method,
    batch: Batch,
    *,
    shuffled: bool,
    tested: bool = True,
) -> None:
    """Learn rows in the order given, all but those of weight 0.

    Rows that were learned from before, in an earlier pass, are not `tested`. Rows that were `shuffled` are no stream
    in time. If rows wait for more, so do these. Where nothing could be learned, all is as before.
    """
    order = batch.order[batch.weights[batch.order] > 0.0]
    if not order.size:
        return
    before, memory = cell.state, cell.state.record.memory
    seen, remembered = before.buffer.seen.sum(), memory[0]
    try:
        memory[0] = record.EVER if shuffled else kernels.prequential.MEMORY
        if before.intercept is not None:
            cell.state = before._replace(intercept=None)
        if before.front is None or before.front.waiting is None:
            _learn(cell, method, batch._replace(order=order), tested)
        else:
            _wait_or_learn(cell, method, batch._replace(order=order), tested)
    except BaseException:
        if cell.state.buffer.seen.sum() == seen:
            cell.state.record.memory[0] = remembered
            cell.state = cell.state._replace(intercept=before.intercept)
        raise
    finally:
        cell.turn += 1


def decide(cell: Cell, method: Method, batch: Batch) -> None:
    """Decide what columns are by the first of some rows, of which none has been learned."""
    front = cell.state.front
    if front is not None and front.waiting is not None:
        _, cell.state = front.settle(
            method, cell.state, some(batch.X, batch.order[: front.first_of_fit])
        )


def _wait_or_learn(cell: Cell, method: Method, batch: Batch, tested: bool) -> None:
    """Let rows wait with those that do, or learn all once there are enough to decide what columns are."""
    front, order = cell.state.front, batch.order
    waiting = front.waiting
    head = order[: front.first - waiting.labels.size]
    with_head = waiting.with_rows(some(batch.X, head), batch.labels[head], batch.weights[head])
    if with_head.labels.size < front.first:
        cell.state = cell.state._replace(front=front._replace(waiting=with_head))
        return
    method, state = front.settle(method, cell.state, with_head.rows)
    fresh = Cell(state)  # so that an interrupt leaves the rows waiting
    if waiting.labels.size:
        _learn(fresh, method, Batch(*waiting.batch), tested)
    _learn(fresh, method, batch, tested)
    cell.state = fresh.state


def provisional(method: Method, state: State) -> tuple[Method, State]:
    """Return the state that the rows which wait would make; it is made anew every few rows."""
    waiting = state.front.waiting
    count = milestone(waiting.labels.size)
    method, decided = state.front.settle(method, state, some(waiting.rows, slice(0, max(1, count))))
    cell = Cell(decided)
    batch = Batch(*waiting.batch)
    if count:
        _learn(cell, method, batch._replace(order=batch.order[:count]), True)
    return method, cell.state


def decided(method: Method, state: State) -> tuple[Method, State]:
    """Return a state and how its rows are learned; if rows wait, what they would make."""
    return provisional(method, state) if waits(state) else (method.of_state(state), state)


def _learn(cell: Cell, method: Method, batch: Batch, tested: bool) -> None:
    """Learn rows a part of a block at a time: all learners take the rows up to its end."""
    shared = method.multiplies or _kernel_of(method, cell.state) is method.kernels.blocked
    with kernels.threads.one_thread if shared else contextlib.nullcontext():
        if not rows_left(cell.state):  # an interrupt came just before the block ended
            end_block(cell, method)
        for block in _blocks(cell, method, batch, tested):
            begin, size = 0, block[0].order.size
            while begin < size:
                end = begin + (rows_left(cell.state) if tested else record.LONGEST)
                some_rows = slice(begin, end)
                rows, *beside = (each._replace(order=each.order[some_rows]) for each in block)
                part = _Part(cell, method, rows, beside, tested)
                to_its_end(part.go_on, part.learned.any)
                begin = end


def _kernel_of(method: Method, state: State) -> Any:
    """Return the function that streams rows into the models of a state."""
    if state.sparse:
        return method.kernels.sparse
    many = state.record.held.size >= kernels.blocked.WORTHWHILE
    if many and method.kernels.blocked and state.buffer.least[0] >= kernels.blocked.FEWEST:
        return method.kernels.blocked
    return method.kernels.dense


def rows_left(state: State) -> int:
    """Return how many rows the block has room for."""
    return int(state.record.tested.size - state.record.position[record.FILLED])


# Rows as kernels take them --------------------------------------------------------------------------


def _blocks(cell: Cell, method: Method, batch: Batch, tested: bool) -> Iterator[list[Batch]]:
    """Yield rows as kernels take them, for each group of learners; those that become dense or features, a block at a time."""
    state, plain = cell.state, isinstance(batch.X, np.ndarray | Table)
    forgotten = state.front is None and state.memory is None
    selects = hasattr(state.front, "admitting")
    if forgotten and (state.sparse or plain):
        yield [for_kernel(cell, batch)]
        return
    begin, every, as_it_is = 0, batch.order, plain or state.sparse
    while begin < every.size:
        room = record.LONGEST if as_it_is else max(1, DENSE_BLOCK // max(batch.X.shape[1], 1))
        if not forgotten:
            room = min(room, rows_left(cell.state) if tested else record.LONGEST)
        places = every[begin : begin + room]
        rows = some(batch.X, places)
        # Further passes learn the features that the first has kept.
        if tested and selects:
            cell.state = cell.state.front.admitting(method, cell.state, rows)
        X = features_of(cell.state, rows)
        if tested:
            cell.state = _keeping(cell.state, rows, batch.labels[places], batch.weights[places])
        own = batch.labels[places], batch.weights[places], np.arange(places.size)
        beside = [
            _for_group(cell, at, Batch(group.source.encode(cell.state.front.encoder, rows), *own))
            for at, group in enumerate(cell.state.beside)
        ]
        yield [for_kernel(cell, Batch(X, *own)), *beside]
        begin += places.size


def _keeping(state: State, rows: Any, labels: Any, weights: Any) -> State:
    """Return a state that keeps some more rows of the block, which are about to be learned."""
    if state.memory is None:
        return state
    if state.sparse and not isinstance(rows, Table):
        rows = sp.csr_array(rows)
    elif sp.issparse(rows):
        rows = rows.toarray()
    elif isinstance(rows, Table):
        rows = rows.plain()
    filled = int(state.record.position[record.FILLED])
    return state._replace(memory=state.memory.with_rows(filled, rows, labels, weights))


def some(X: Any, rows: Any) -> Any:
    """Return some of the rows of a table or an array."""
    return X.take(rows) if isinstance(X, Table) else X[rows]


def features_of(state: State, rows: Any) -> Any:
    """Return rows as they are learned."""
    if state.front is not None:
        return state.front.encode(rows, state)
    return rows.toarray() if sp.issparse(rows) and not state.sparse else rows


class Encoded(NamedTuple):
    """Rows of features, and of those that are beside them."""

    X: Any
    beside: tuple[sp.csr_array, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Of the rows of features."""
        shape: tuple[int, int] = self.X.shape
        return shape


def encoded(state: State, rows: Any) -> Any:
    """Return rows as all learners score them."""
    X = features_of(state, rows)
    if not state.beside:
        return X
    beside = (group.source.encode(state.front.encoder, rows) for group in state.beside)
    return Encoded(X, tuple(beside))


def scored(X: Any, mixed: served.Mixture) -> Any:
    """Return the scores of encoded rows, before the intercept; a row's own does not depend on those beside it."""
    if not isinstance(X, Encoded):
        return product(X, mixed.weights)
    pairs = zip(X.beside, mixed.beside, strict=True)
    return product(X.X, mixed.weights) + sum(starmap(served.products, pairs))


def product(X: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the product of each row with the weights, whatever rows are beside it."""
    if sp.issparse(X):
        return np.asarray(X @ weights)
    if X.shape[1] != weights.size:
        raise ValueError(f"X has {X.shape[1]} features, and there are weights of {weights.size}.")
    scores: NDArray[np.float64] = kernels.scores.products(read_only(X), read_only(weights))
    return scores


def for_kernel(cell: Cell, batch: Batch) -> Batch:
    """Return rows as kernels take them: read-only, so that one compiled version serves all."""
    if not cell.state.sparse:
        return batch._replace(X=read_only(batch.X))
    rows, buffer = _sparse_rows(batch, cell.state.buffer)
    if buffer is not cell.state.buffer:
        cell.state = cell.state._replace(buffer=buffer)
    return rows


def _for_group(cell: Cell, at: int, batch: Batch) -> Batch:
    """Return rows as kernels take them for one of the groups of learners beside the others."""
    beside = [*cell.state.beside]
    rows, buffer = _sparse_rows(batch, beside[at].buffer)
    if buffer is not beside[at].buffer:
        beside[at] = beside[at]._replace(buffer=buffer)
        cell.state = cell.state._replace(beside=tuple(beside))
    return rows


def _sparse_rows(batch: Batch, buffer: Any) -> tuple[Batch, Any]:
    """Return sparse rows as kernels take them, and a buffer with room for them."""
    X = batch.X if sp.issparse(batch.X) else sp.csr_array(batch.X)
    parts = X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
    rows = kernels.buffers.Csr(*map(read_only, parts))
    longest = int(np.diff(rows.indptr)[batch.order].max(initial=0))
    return batch._replace(X=rows), kernels.buffers.widened(buffer, longest)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to of an array that a kernel can read."""
    if not (array.flags.c_contiguous and array.flags.aligned):
        array = np.require(array, requirements=["C", "A"])
    view = array.view()
    view.flags.writeable = False
    return view


def kernel_call(cell: Cell, method: Method, batch: Batch) -> Callable[[], None]:
    """Return the call in which the only learner takes all rows, and nothing else."""
    batch, state = for_kernel(cell, batch), cell.state
    (model,), (parameters,), size = state.models, method.parameters, batch.order.size
    said = np.empty((size, state.record.places.shape[1], 2))
    trail = kernels.prequential.Trail(
        *state.record[:3], said, np.empty(size), np.empty(size, np.int64)
    )
    return partial(_kernel_of(method, state), *batch, cell.state.buffer, model, parameters, trail)


# A part of a block --------------------------------------------------------------------------------


class _Group(NamedTuple):
    """Learners of the same features, and the rows of a part as they learn them."""

    first: int  # the place of its first learner among all
    method: Method
    models: tuple[Any, ...]
    kernel: Any
    rows: Batch
    buffer: Any
    own: Any  # a copy of the buffer, for who is not the last to learn: all meet the same rows
    trail: tuple[Any, ...]  # what tests them
    scores: Any


class _Part:
    """The next rows of a batch. Every learner takes all of them or none does."""

    def __init__(
        self, cell: Cell, method: Method, batch: Batch, beside: Sequence[Batch], tested: bool
    ) -> None:
        self._cell, self._method, self._tested = cell, method, tested
        state, self._size = cell.state, batch.order.size
        known = state.record
        count = len(known.level)
        # What learners say of the rows before they learn from them.
        self._said = np.empty((count, self._size, known.places.shape[1], 2))
        self._labels = np.empty(self._size, np.int64)
        self._before = int(state.buffer.seen.sum())
        self.learned = np.zeros(count, np.int64)  # rows that each learner has taken
        self._forgot = np.zeros(count, np.int64)  # times that each has forgotten
        kernel = _kernel_of(method, state)
        self._groups = [self._group(0, method, kernel, state, batch, known[:2])]
        if beside:
            pairs = zip(served.beside(method, state), beside, strict=True)
            self._groups += [
                self._group(first, own, own.kernels.sparse, group, rows, (group.held, _NO_MEANS))
                for (first, own, group), rows in pairs
            ]
        self._done = False

    def _group(
        self, first: int, method: Method, kernel: Any, held: Any, rows: Batch, tests: Any
    ) -> _Group:
        models, buffer = held.models, held.buffer
        own = buffer._make(map(np.copy, buffer)) if len(models) > 1 else buffer
        trail = *tests, self._cell.state.record.memory
        return _Group(first, method, models, kernel, rows, buffer, own, trail, np.empty(self._size))

    def go_on(self) -> None:
        """Let the learners take the rows, forget if it is time, and note how they did."""
        if not self._done:
            for group in self._groups:
                for place in [*range(1, len(group.models)), 0]:
                    if share := group.method.learners[place].forgetting:
                        self._learn_and_forget(group, place, share)
                    else:
                        self._learn(group, place, self._size)
            noted = [self._noted()] if self._tested else []
            uninterrupted([(setattr, self, "_done", True), *noted])
        if not rows_left(self._cell.state):
            end_block(self._cell, self._method)

    def _learn(self, group: _Group, place: int, end: int) -> None:
        """Let a learner take the rows that it has not taken yet, up to one of them."""
        at = group.first + place
        begin = int(self.learned[at])
        if begin >= end:
            return
        buffer, part = group.own if place else group.buffer, slice(begin, end)
        held, origin, memory = group.trail
        trail = kernels.prequential.Trail(
            held, origin, memory, self._said[at, part], group.scores[part], self._labels[part]
        )
        X, labels, weights, order = group.rows
        rows = X, labels, weights, order[part]
        calls: list[Any] = (
            [*map(assign, group.own, group.buffer)] if place > 1 and not begin else []
        )
        calls += [
            (
                group.kernel,
                *rows,
                buffer,
                group.models[place],
                group.method.parameters[place],
                trail,
            ),
            (self.learned.__setitem__, at, end),
        ]
        uninterrupted(calls)

    def _learn_and_forget(self, group: _Group, place: int, share: float) -> None:
        """Let a learner take what is left of the rows, in steps between which it forgets."""
        every, at = kernels.forgetting.rows_between(share), group.first + place
        while True:
            begin = self._before + int(self.learned[at])
            if self._forgot[at] < begin // every - self._before // every:
                self._forget(at, group.models[place], share)
            elif begin < self._before + self._size:
                rows = every - begin % every
                self._learn(group, place, min(begin + rows - self._before, self._size))
            else:
                return

    def _forget(self, at: int, model: Any, share: float) -> None:
        changes = kernels.forgetting.forget(model, share)
        done = self._forgot.__setitem__, at, self._forgot[at] + 1
        uninterrupted([*(assign(*change) for change in changes), done])

    def _noted(self) -> Call:
        """Return the call that takes what was said into the record."""
        known = self._cell.state.record
        return (
            kernels.prequential.follow,
            self._said,
            sum(group.scores for group in self._groups),
            self._labels,
            np.arange(len(known.level)),
            served.mix_of(self._method, self._cell.state),
            kernels.prequential.Block(*known[record.BLOCK]),
            kernels.prequential.Readouts(*known[record.READOUTS]),
            kernels.calibration.Curve(*known[record.CURVE]),
            len(self._cell.state.models) if known.origin.size else 0,
            record.shuffled(known),
        )


# The end of a block -------------------------------------------------------------------------------


def end_block(cell: Cell, method: Method) -> None:
    """Measure the block, which is full, and begin another that what is served now will test."""
    state = cell.state
    memory, before = state.memory, int(state.record.position[record.ROWS])
    if memory is not None:
        rows = memory.of_block(state.record.position)
        if state.front is not None and rows is not None:
            state = state.front.end_block(method, state, rows.X)
        state = state._replace(memory=memory.after_block(state.record.position))
    if state.selects:
        state = state.front.end_block(method, state)
    known = state.record
    if state.beside:
        known = record.blended(known, served.shares_of(method, state))
    state = state._replace(record=record.measured(known))
    state = with_learners(method, state)
    if method.leaves is not None or method.ids is not None:
        from cbrank.learning.leaves import grown_again  # noqa: PLC0415 (only tables have such)

        state = grown_again(method, state, before)
    view = served.bounded(state)
    calls: list[Any] = []
    if state.record.origin.size:
        calls.append(assign(state.buffer.means, view.buffer.means))
    state = testing(method, state, view)
    after = state._replace(buffer=method.buffer_after(method, state))
    uninterrupted([*calls, (setattr, cell, "state", after)])


def testing(method: Method, state: State, view: State) -> State:
    """Return a state at the beginning of its next block, which what is served by a view of it will test."""
    mixed = served.mixture_of(method, view)
    known = record.next_block(state.record, mixed.weights, served.origin_of(view))
    groups = zip(state.beside, mixed.beside, strict=True)
    beside = tuple(group._replace(held=served.whole(weights)) for group, weights in groups)
    return state._replace(record=known, beside=beside)


def with_learners(method: Method, state: State) -> State:
    """Return a state with the learner that is for rows in their order, if they come so."""
    count = len(state.models)
    if not method.joins or count > method.lasting or record.shuffled(state.record):
        return state
    weights = served.mix_of(method, state)[:count].sum(axis=1)
    lines = [learner.line for learner in method.learners]
    weights[np.array(lines[:count]) != lines[count]] = -1.0
    place = int(weights.argmax())
    # With one variance a feature, those of others are too small to be moved in the time of its memory.
    model = (
        state.models[place] if method.needs_matrix else method.new_model(state.width, state.sparse)
    )
    models = *state.models, model._make(map(np.copy, model))
    places = [*range(count), place, *range(count, len(state.record.level))]
    return state._replace(models=models, record=record.with_learners(state.record, places))


# Calls that an interrupt cannot part --------------------------------------------------------------
#
# Python looks for signals, and raises KeyboardInterrupt, between the steps of Python code. Where C code
# calls C code there are none: calls made like this are interrupted before the first or after the last.

_TRIES = 16  # to end a step that is interrupted, or fails, again and again


def uninterrupted(calls: Iterable[Call]) -> None:
    """Make calls with nothing in between."""
    deque(starmap(operator.call, [*calls]), maxlen=0)


def to_its_end(step: Callable[[], None], begun: Callable[[], Any], tries: int = _TRIES) -> None:
    """Make a step that goes on where it stopped to its end, once it has begun.

    What interrupted it goes on its way then.
    """
    try:
        step()
    except BaseException:
        if tries and begun():
            to_its_end(step, begun, tries - 1)
        raise


def assign(array: Any, value: Any) -> Call:
    """Return the call that fills an array with what `value` then holds."""
    return operator.setitem, array, ..., value
