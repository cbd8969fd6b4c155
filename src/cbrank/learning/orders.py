"""Rows learned anew, as `fit` learns them: in random order, and where they are few in several orders.

What one pass over few rows makes of them depends on their order. So the Gaussians of several passes are averaged:
the first decides about columns and has the honest measures, the others learn the same features.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cbrank.learning import blocks
from cbrank.learning.method import Method
from cbrank.learning.state import Batch, Cell, State, begin

FEW = 2048  # rows that are learned in several orders (docs/_orders_table.md)
_TWICE = 2  # four orders: twice the mean of two


def learn_anew(cell: Cell, method: Method, batch: Batch, random: np.random.RandomState) -> Batch:
    """Learn rows in random order, few ones in several orders; return them as they were learned."""
    every = batch.order[batch.weights[batch.order] > 0.0]
    first = batch._replace(order=random.permutation(every))
    blocks.decide(cell, method, first)
    method = replace(method.of_state(cell.state), grows=False)
    batch = batch._replace(order=every)
    if method.leaves is not None:
        from cbrank.learning.leaves import grown_in_fit  # noqa: PLC0415 (only tables have such)

        cell.state, batch = grown_in_fit(method, cell.state, batch)
    fresh = cell.state
    blocks.learn(cell, method, batch._replace(order=first.order), shuffled=True)
    centred = bool(cell.state.record.origin.size)  # scores of other weights are in other units
    if not method.pool or every.size > FEW or not centred:
        return batch
    states = [cell.state]
    while len(states) < 2**_TWICE:
        other = Cell(_before_its_first_row(method, cell.state, fresh))
        again = batch._replace(order=random.permutation(every))
        blocks.learn(other, method, again, shuffled=True)
        states.append(other.state)
    for _ in range(_TWICE):
        pairs = zip(states[::2], states[1::2], strict=True)
        states = [_mean_of(*pair) for pair in pairs]
    [cell.state] = states
    return batch


def prepare(cell: Cell, method: Method, batch: Batch, random: np.random.RandomState) -> None:
    """Decide about columns by some rows and grow trees from them, for rankers that will learn other rows apart."""
    every = batch.order[batch.weights[batch.order] > 0.0]
    blocks.decide(cell, method, batch._replace(order=random.permutation(every)))
    method = method.of_state(cell.state)
    if method.leaves is not None:
        from cbrank.learning.leaves import grown_before  # noqa: PLC0415 (only tables have such)

        cell.state = grown_before(method, cell.state, batch._replace(order=every))


def _before_its_first_row(method: Method, known: State, first: State) -> State:
    """Return a state that has learned nothing, with what another has decided about columns.

    `first` is that other before its first row.
    """
    seed = int(known.buffer.random[0])
    front = known.front
    fresh = begin(method, known.width, seed, front, sparse=known.sparse, shuffled=True)
    if front is None:
        return fresh
    models = tuple(front.begun(method, model, at) for at, model in enumerate(fresh.models))
    fresh = fresh._replace(models=models)
    if first.beside:
        from cbrank.learning.leaves import with_groups_of  # noqa: PLC0415 (only tables have such)

        fresh = with_groups_of(method, fresh, first)
    return fresh


def _mean_of(one: State, other: State) -> State:
    """Return the first state with the mean of both Gaussians of each learner, and of what speaks for it."""
    models = _means(one.models, other.models)
    beside = tuple(
        left._replace(models=_means(left.models, right.models))
        for left, right in zip(one.beside, other.beside, strict=True)
    )
    names = "evidence", "blend"
    both = {name: (getattr(one.record, name) + getattr(other.record, name)) / 2 for name in names}
    return one._replace(models=models, record=one.record._replace(**both), beside=beside)


def _means(some: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(_mean(*pair) for pair in zip(some, others, strict=True))


def _mean(one: Any, other: Any) -> Any:
    """Return a model of which all is the mean but what it has counted."""
    means = {name: (getattr(one, name) + getattr(other, name)) / 2 for name in one._fields}
    return one._replace(**(means | {"tally": one.tally}))
