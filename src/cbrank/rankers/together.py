"""Rankers that learned apart from one beginning, brought to the same features for merging."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank.features.encoder import TableEncoder
from cbrank.features.forests import Forest
from cbrank.learning import blocks, record, tables
from cbrank.learning.front import Scales, in_scales
from cbrank.learning.slots import Slots, with_all_columns
from cbrank.learning.state import Batch, Cell, State, begin, resized
from cbrank.learning.tables import Tables

Places = NDArray[np.int64]


def together(rankers: Sequence[Any], prior: Any) -> tuple[list[Any], Any, Callable[[Any], Any]]:
    """Return rankers to merge, which have the features of all, and what is left to be done then.

    Rows of rankers that wait for more are learned by the merged one at the end.
    """
    decided = [ranker for ranker in rankers if not ranker.waits]
    known = 0
    if prior is not None and prior.waits:
        known = int(prior.n_seen_.sum())
        if known and len(decided) > 1 and decided[0].TAKES_TABLES:
            raise ValueError(
                f"the prior has seen {known} rows, too few to decide what columns are, so that the "
                "rankers have done it apart: let it learn from more rows before others go on from it."
            )
        prior = _decided_as(decided[0], prior) if known and len(decided) > 1 else None
    waiting = [ranker for ranker in rankers if ranker.waits]
    if not decided:
        decided, waiting = waiting[:1], waiting[1:]

    def finish(merged: Any) -> Any:
        for ranker in waiting:
            _learn_waiting(merged, ranker, known)
        return merged

    if len(decided) == 1 and prior is None:
        return decided, None, finish
    states = [ranker.learned() for ranker in decided]
    begun = None if prior is None else prior.learned()
    front = states[0].front if begun is None else begun.front
    if isinstance(front, Scales):
        states = [in_scales(state, front.inverse) for state in states]
    elif isinstance(front, Slots):
        every = [*states] if begun is None else [*states, begun]
        every = with_all_columns(decided[0]._method(states[0]), every)
        states, begun = every[: len(states)], None if begun is None else every[-1]
    elif isinstance(front, Tables):
        states, begun = _with_all_features(decided[0], states, begun)
    moved = [_with_state(*pair) for pair in zip(decided, states, strict=True)]
    return moved, prior if begun is None else _with_state(prior, begun), finish


def _decided_as(ranker: Any, prior: Any) -> Any:
    """Return a prior whose rows wait as if it had learned them, its columns in the units of a ranker."""
    state = prior.learned()
    method, held = prior._method(state), state.front.waiting
    seed, shuffled = int(state.buffer.random[0]), record.shuffled(state.record)
    front = Scales(ranker.learned().front.inverse, None)
    cell = Cell(begin(method, state.width, seed, front, sparse=False, shuffled=shuffled))
    blocks.learn(cell, method, Batch(*held.batch), shuffled=shuffled)
    return _with_state(prior, cell.state)


def _with_state(ranker: Any, state: State) -> Any:
    twin = copy(ranker)
    twin._own, twin._learned = type(ranker._own)(), Cell(state)
    return twin


def _learn_waiting(merged: Any, ranker: Any, known: int) -> None:
    """Learn the rows that wait in a ranker, but for those that all have."""
    held = ranker.learned().front.waiting
    order = np.arange(known, held.labels.size)
    cell = merged._learned
    batch = Batch(held.rows, held.labels, held.weights, order)
    shuffled = record.shuffled(cell.state.record)
    blocks.learn(cell, merged._method(cell.state), batch, shuffled=shuffled)


# Tables ---------------------------------------------------------------------------------------------


def _with_all_features(
    ranker: Any, states: list[State], begun: State | None
) -> tuple[list[State], State | None]:
    """Return states that have the features of all."""
    before: Any = None if begun is None else begun.front.encoder
    encoder, places = TableEncoder.joined([state.front.encoder for state in states], before)
    every = [*states]
    if begun is not None:  # its features come first
        every, places = [*states, begun], [*places, np.arange(before.width_)]
    front = Tables(encoder, None)
    pairs = zip(every, places, strict=True)
    moved = [_moved(ranker, state, front, own) for state, own in pairs]
    return (moved, None) if begun is None else (moved[:-1], moved[-1])


def _moved(ranker: Any, state: State, front: Tables, places: Places) -> State:
    """Return a state with the features of a front, its own at some places, others as new ones."""
    own, width = np.full(state.width, -1), max(1, front.encoder.width_)
    own[: places.size] = places[: own.size]
    places, kept = own, np.flatnonzero(own >= 0)
    order = np.full(width, -1)
    order[places[kept]] = kept
    order[order < 0] = places.size + np.arange(width - kept.size)
    new = order >= places.size
    wide = resized(ranker._method(state), state, places.size + width - kept.size)
    record = wide.record
    origin = record.origin[order] if record.origin.size else record.origin
    moved = wide._replace(
        models=tuple(_in_order(model, order) for model in wide.models),
        buffer=_buffer_in_order(wide.buffer, order, places),
        record=record._replace(held=record.held[order], origin=origin),
        front=front,
        beside=tuple(
            group._replace(source=group.source.with_features(places))
            if isinstance(group.source, Forest)
            else group
            for group in wide.beside
        ),
    )
    tables.keep_lines(ranker._method(moved), moved, new)
    return moved


def _in_order(model: Any, order: Places) -> Any:
    """Return a model with features in another order."""
    if "features" in model._fields:
        return model._replace(features=np.ascontiguousarray(model.features[order]))
    changed = {
        name: np.ascontiguousarray(getattr(model, name)[order])
        for name in model._fields
        if name not in {"tally", "Sigma"}
    }
    if "Sigma" in model._fields:
        changed["Sigma"] = np.ascontiguousarray(model.Sigma[order[:, None], order])
    return model._replace(**changed)


def _buffer_in_order(buffer: Any, order: Places, places: Places) -> Any:
    if "rows" in buffer._fields:
        rows = np.ascontiguousarray(buffer.rows[..., order])
        means = buffer.means[..., order] if buffer.means.size else buffer.means
        return buffer._replace(rows=rows, means=np.ascontiguousarray(means))
    for label, slot in np.argwhere(buffer.length > 0):
        some = slice(0, buffer.length[label, slot])
        indices = places[buffer.indices[label, slot, some]]
        rising = np.argsort(indices)
        buffer.indices[label, slot, some] = indices[rising]
        buffer.values[label, slot, some] = buffer.values[label, slot, some][rising]
    return buffer
