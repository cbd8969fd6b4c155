"""Rows learned anew, as `fit` learns them: in random order, and where they are few in several orders.

What one pass over few rows makes of them depends on their order. So the Gaussians of several passes are averaged:
the first decides about columns and has the honest measures, the others learn the same features.
"""

from typing import Any

import numpy as np

from cbrank.learning import blocks
from cbrank.learning.method import Method
from cbrank.learning.state import Batch, Cell, State, begin

FEW = 2048  # rows that are learned in several orders (docs/_orders_table.md)
_TWICE = 2  # four orders: twice the mean of two


def learn_anew(cell: Cell, method: Method, batch: Batch, random: np.random.RandomState) -> None:
    """Learn rows in random order, few ones in several orders."""
    every = batch.order
    first = batch._replace(order=random.permutation(every))
    blocks.learn(cell, method, first, shuffled=True, ahead=True)
    centred = bool(cell.state.record.origin.size)  # scores of other weights are in other units
    if not method.pool or every.size > FEW or not centred:
        return
    known = cell.state
    method = method.of_state(known)
    states = [known]
    while len(states) < 2**_TWICE:
        other = Cell(_before_its_first_row(method, known))
        again = batch._replace(order=random.permutation(every))
        blocks.learn(other, method, again, shuffled=True)
        states.append(other.state)
    for _ in range(_TWICE):
        pairs = zip(states[::2], states[1::2], strict=True)
        states = [_mean_of(*pair) for pair in pairs]
    [cell.state] = states


def _before_its_first_row(method: Method, known: State) -> State:
    """Return a state that has learned nothing, with what another has decided about columns."""
    seed = int(known.buffer.random[0])
    front = None if known.front is None else known.front.for_good()
    fresh = begin(method, known.width, seed, front, sparse=known.sparse, shuffled=True)
    if front is None:
        return fresh
    models = tuple(front.begun(method, model, at) for at, model in enumerate(fresh.models))
    return fresh._replace(models=models)


def _mean_of(one: State, other: State) -> State:
    """Return the first state with the mean of both Gaussians of each learner, and of what speaks for it."""
    models = tuple(_mean(*pair) for pair in zip(one.models, other.models, strict=True))
    evidence = (one.record.evidence + other.record.evidence) / 2
    return one._replace(models=models, record=one.record._replace(evidence=evidence))


def _mean(one: Any, other: Any) -> Any:
    """Return a model of which all is the mean but what it has counted."""
    means = {name: (getattr(one, name) + getattr(other, name)) / 2 for name in one._fields}
    return one._replace(**(means | {"tally": one.tally}))
