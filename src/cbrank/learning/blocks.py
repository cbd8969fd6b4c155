"""Rows of a stream, a block at a time: tested, learned, and counted at the end of the block.

Every learner of a pool takes the same rows, whatever interrupts: rows come in parts, each up to the end of
a block at most, and a part that has begun is taken to its end.
"""

import contextlib
import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import starmap
from typing import Any

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

DENSE_BLOCK = 2**20  # numbers of a sparse matrix made dense at a time: 8 MiB


def learn(
    cell: Cell,
    method: Method,
    batch: Batch,
    *,
    shuffled: bool,
    tested: bool = True,
    ahead: bool = False,
) -> None:
    """Learn rows in the order given, all but those of weight 0.

    Rows that were learned from before, in an earlier pass, are not `tested`. Rows that were `shuffled` are no stream
    in time. If rows wait for more, so do these, unless it is to be decided what columns are by looking
    `ahead`. Where nothing could be learned, all is as before.
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
            _wait_or_learn(cell, method, batch._replace(order=order), tested, ahead)
    except BaseException:
        if cell.state.buffer.seen.sum() == seen:
            cell.state.record.memory[0] = remembered
            cell.state = cell.state._replace(intercept=before.intercept)
        raise
    finally:
        cell.turn += 1


def _wait_or_learn(cell: Cell, method: Method, batch: Batch, tested: bool, ahead: bool) -> None:
    """Let rows wait with those that do, or learn all once there are enough to decide what columns are."""
    front, order = cell.state.front, batch.order
    waiting = front.waiting
    if ahead:
        first = some(batch.X, order[: front.first_of_fit])
    else:
        head = order[: front.first - waiting.labels.size]
        with_head = waiting.with_rows(some(batch.X, head), batch.labels[head], batch.weights[head])
        if with_head.labels.size < front.first:
            cell.state = cell.state._replace(front=front._replace(waiting=with_head))
            return
        first = with_head.rows
    method, state = front.settle(method, cell.state, first)
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
        for block in _blocks(cell, batch, tested):
            begin = 0
            while begin < block.order.size:
                end = begin + (rows_left(cell.state) if tested else record.LONGEST)
                rows = block._replace(order=block.order[begin:end])
                part = _Part(cell, method, rows, tested)
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


def _blocks(cell: Cell, batch: Batch, tested: bool) -> Iterator[Batch]:
    """Yield rows as kernels take them; those that become dense or features, a block at a time."""
    state, plain = cell.state, isinstance(batch.X, np.ndarray | Table)
    forgotten = state.front is None and state.memory is None
    if forgotten and (state.sparse or plain):
        yield for_kernel(cell, batch)
        return
    begin, every, as_it_is = 0, batch.order, plain or state.sparse
    while begin < every.size:
        room = record.LONGEST if as_it_is else max(1, DENSE_BLOCK // max(batch.X.shape[1], 1))
        if not forgotten:
            room = min(room, rows_left(cell.state) if tested else record.LONGEST)
        places = every[begin : begin + room]
        rows = some(batch.X, places)
        X = features_of(cell.state, rows)
        if tested:
            cell.state = _keeping(cell.state, rows, X, batch.labels[places], batch.weights[places])
        here = np.arange(places.size)
        yield for_kernel(cell, Batch(X, batch.labels[places], batch.weights[places], here))
        begin += places.size


def _keeping(state: State, rows: Any, X: Any, labels: Any, weights: Any) -> State:
    """Return a state that keeps some more rows of the block, which are about to be learned."""
    front, memory = state.front, state.memory
    if front is not None:
        front = front.keeping(X)
    if memory is not None:
        if state.sparse and front is None:
            rows = sp.csr_array(rows)
        elif sp.issparse(rows):
            rows = rows.toarray()
        memory = memory.with_rows(int(state.record.position[record.FILLED]), rows, labels, weights)
    return state._replace(front=front, memory=memory)


def some(X: Any, rows: Any) -> Any:
    """Return some of the rows of a table or an array."""
    return X.take(rows) if isinstance(X, Table) else X[rows]


def features_of(state: State, rows: Any) -> Any:
    """Return rows as they are learned."""
    if state.front is not None:
        return state.front.encode(rows, state)
    return rows.toarray() if sp.issparse(rows) and not state.sparse else rows


def for_kernel(cell: Cell, batch: Batch) -> Batch:
    """Return rows as kernels take them: read-only, so that one compiled version serves all."""
    if not cell.state.sparse:
        return batch._replace(X=read_only(batch.X))
    X = batch.X if sp.issparse(batch.X) else sp.csr_array(batch.X)
    parts = X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
    rows = kernels.buffers.Csr(*map(read_only, parts))
    longest = int(np.diff(rows.indptr)[batch.order].max(initial=0))
    buffer = kernels.buffers.widened(cell.state.buffer, longest)
    if buffer is not cell.state.buffer:
        cell.state = cell.state._replace(buffer=buffer)
    return batch._replace(X=rows)


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


class _Part:
    """The next rows of a batch. Every learner takes all of them or none does."""

    def __init__(self, cell: Cell, method: Method, batch: Batch, tested: bool) -> None:
        self._cell, self._method, self._batch, self._tested = cell, method, batch, tested
        state, self._size = cell.state, batch.order.size
        count = len(state.models)
        self._kernel = _kernel_of(method, state)
        # What learners say of the rows before they learn from them.
        self._said = np.empty((count, self._size, state.record.places.shape[1], 2))
        self._scores, self._labels = np.empty(self._size), np.empty(self._size, np.int64)
        self._before = int(state.buffer.seen.sum())
        self.learned = np.zeros(count, np.int64)  # rows that each learner has taken
        self._forgot = np.zeros(count, np.int64)  # times that each has forgotten
        # All meet the same buffered rows: who is not the last to learn has those of a copy.
        self._own = state.buffer._make(map(np.copy, state.buffer)) if count > 1 else state.buffer
        self._done = False

    def go_on(self) -> None:
        """Let the learners take the rows, forget if it is time, and note how they did."""
        state = self._cell.state
        if not self._done:
            for place in [*range(1, len(state.models)), 0]:
                if share := self._method.learners[place].forgetting:
                    self._learn_and_forget(place, share)
                else:
                    self._learn(place, self._size)
            noted = [self._noted()] if self._tested else []
            uninterrupted([(setattr, self, "_done", True), *noted])
        if not rows_left(self._cell.state):
            end_block(self._cell, self._method)

    def _learn(self, place: int, end: int) -> None:
        """Let a learner take the rows that it has not taken yet, up to one of them."""
        state, method, begin = self._cell.state, self._method, int(self.learned[place])
        if begin >= end:
            return
        model, buffer = state.models[place], self._own if place else state.buffer
        part = slice(begin, end)
        trail = kernels.prequential.Trail(
            *state.record[:3], self._said[place, part], self._scores[part], self._labels[part]
        )
        X, labels, weights, order = self._batch
        rows = X, labels, weights, order[part]
        calls: list[Any] = (
            [*map(assign, self._own, state.buffer)] if place > 1 and not begin else []
        )
        calls += [
            (self._kernel, *rows, buffer, model, method.parameters[place], trail),
            (self.learned.__setitem__, place, end),
        ]
        uninterrupted(calls)

    def _learn_and_forget(self, place: int, share: float) -> None:
        """Let a learner take what is left of the rows, in steps between which it forgets."""
        every = kernels.forgetting.rows_between(share)
        while True:
            begin = self._before + int(self.learned[place])
            if self._forgot[place] < begin // every - self._before // every:
                self._forget(place, share)
            elif begin < self._before + self._size:
                rows = every - begin % every
                self._learn(place, min(begin + rows - self._before, self._size))
            else:
                return

    def _forget(self, place: int, share: float) -> None:
        changes = kernels.forgetting.forget(self._cell.state.models[place], share)
        done = self._forgot.__setitem__, place, self._forgot[place] + 1
        uninterrupted([*(assign(*change) for change in changes), done])

    def _noted(self) -> Call:
        """Return the call that takes what was said into the record."""
        known = self._cell.state.record
        return (
            kernels.prequential.follow,
            self._said,
            self._scores,
            self._labels,
            np.arange(len(known.level)),
            served.mix_of(self._method, self._cell.state),
            kernels.prequential.Block(*known[record.BLOCK]),
            kernels.prequential.Readouts(*known[record.READOUTS]),
            kernels.calibration.Curve(*known[record.CURVE]),
            not known.origin.size,
            record.shuffled(known),
        )


# The end of a block -------------------------------------------------------------------------------


def end_block(cell: Cell, method: Method) -> None:
    """Measure the block, which is full, and begin another that what is served now will test."""
    state = cell.state
    memory = state.memory
    if memory is not None:
        rows = memory.of_block(state.record.position)
        if state.front is not None and rows is not None:
            state = state.front.end_block(method, state, rows.X)
        state = state._replace(memory=memory.after_block(state.record.position))
    state = state._replace(record=record.measured(state.record))
    state = with_learners(method, state)
    view = served.bounded(state)
    calls: list[Any] = []
    if state.record.origin.size:
        calls.append(assign(state.buffer.means, view.buffer.means))
    held = served.mixture_of(method, view).weights
    known = record.next_block(state.record, held, served.origin_of(view))
    after = state._replace(record=known, buffer=method.buffer_after(method, state))
    uninterrupted([*calls, (setattr, cell, "state", after)])


def with_learners(method: Method, state: State) -> State:
    """Return a state with the learner that is for rows in their order, if they come so."""
    count = len(state.models)
    if not method.joins or count > method.lasting or record.shuffled(state.record):
        return state
    weights = served.mix_of(method, state).sum(axis=1)
    lines = [learner.line for learner in method.learners]
    weights[np.array(lines[:count]) != lines[count]] = -1.0
    place = int(weights.argmax())
    # With one variance a feature, those of others are too small to be moved in the time of its memory.
    model = (
        state.models[place] if method.needs_matrix else method.new_model(state.width, state.sparse)
    )
    models = *state.models, model._make(map(np.copy, model))
    return state._replace(models=models, record=record.joined(state.record, place))


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
