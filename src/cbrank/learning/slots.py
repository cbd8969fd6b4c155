"""Rows of very many columns, of which only those are kept that matter: the front of feature selection.

A column gets a *slot* with the first row that has a value in it. At the end of each block the slots of the
working set (see ``selection``) and those of buffered rows stay, all others are free again. So memory holds
the features that are kept, those of buffered rows and of one block, however many columns there are.
Entries of a row stay in the order of their columns: sums are those of a ranker that keeps all.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.learning import served
from cbrank.learning.method import Method
from cbrank.learning.selection import FLOOR, RESERVE, have_learned, strongest
from cbrank.learning.state import State, resized

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

_FEWEST = 64  # slots of a state, used or not


class Slots(NamedTuple):
    """Which columns have a slot."""

    n_columns: int
    columns: Places  # in ascending order
    slots: Places  # the slot of each
    waiting: None = None  # no row waits

    # Rows ----------------------------------------------------------------------------------------

    def admitting(self, method: Method, state: State, rows: Any) -> State:
        """Return a state with slots for all columns of some rows, new ones in the order in which they come."""
        columns = sp.csr_array(rows).indices
        unknown = columns[~self.find(columns)[1]]
        new, first = np.unique(unknown, return_index=True)
        if not new.size:
            return state
        slots = np.empty(new.size, np.int64)
        slots[np.argsort(first)] = self.columns.size + np.arange(new.size)
        columns, slots = np.append(self.columns, new), np.append(self.slots, slots)
        order = np.argsort(columns)
        if room_for(slots.size) > state.width:
            state = resized(method, state, room_for(slots.size))
        return state._replace(front=Slots(self.n_columns, columns[order], slots[order]))

    def encode(self, rows: Any, _: Any = None) -> Any:
        """Return rows by slots; columns without one are left out."""
        X = sp.csr_array(rows)
        at, known = self.find(X.indices)
        ends = np.concatenate([[0], np.cumsum(known)])[X.indptr]
        width = room_for(self.columns.size)
        return sp.csr_array((X.data[known], self.slots[at[known]], ends), shape=(X.shape[0], width))

    def in_units(self, rows: Any) -> Any:
        """Return rows by slots, with all that has none in a free one: as a feature as large, which is as new."""
        X, free = sp.csr_array(rows), self.columns.size
        known = self.find(X.indices)[1]
        others = sp.csr_array((np.where(known, 0.0, X.data), X.indices, X.indptr), shape=X.shape)
        norms = np.sqrt(np.asarray(others.multiply(others).sum(axis=1)).ravel())
        at = np.arange(norms.size), np.full(norms.size, free)
        found = self.encode(X)
        return found + sp.csr_array((norms, at), shape=found.shape)

    def decode(self, rows: Any) -> Any:
        """Return rows by slots as they came."""
        known = np.empty(self.slots.size, np.int64)
        known[self.slots] = self.columns
        return sp.csr_array(
            (rows.data, known[rows.indices], rows.indptr), shape=(rows.shape[0], self.n_columns)
        )

    def find(self, columns: Any) -> tuple[Places, NDArray[np.bool_]]:
        """Return where columns are among those with a slot, and which of them are."""
        at = np.searchsorted(self.columns, columns)
        known = at < self.columns.size
        known[known] = self.columns[at[known]] == columns[known]
        return at, known

    # Weights -------------------------------------------------------------------------------------

    def of_columns(self, weights: Floats, columns: Any, other: float = 0.0) -> Floats:
        """Return the numbers of columns as they come, given those of slots; those without a slot have another."""
        if isinstance(columns, slice):
            found = np.full(self.n_columns, other)
            found[self.columns] = weights[self.slots]
            return found[columns]
        at, known = self.find(np.asarray(columns))
        found = np.full(known.shape, other)
        found[known] = weights[self.slots[at[known]]]
        return found

    # Blocks --------------------------------------------------------------------------------------

    def end_block(self, method: Method, state: State, _: Any = None) -> State:
        """Return the state with the working set and the columns of buffered rows."""
        selection = method.selection
        assert selection is not None
        learned, most = have_learned(state.models), max(RESERVE * selection.most, FLOOR)
        kept = np.flatnonzero(learned)
        if kept.size > most:
            weights = served.whole_mixture_of(method, state).weights
            strengths = selection.strengths(weights, served.precisions_of(method, state))
            kept = kept[strongest(strengths[kept], most)]
        return keeping(method, state, kept)

    def resized(self, n_columns: int) -> "Slots":
        """Return the front of rows of so many columns."""
        return self._replace(n_columns=n_columns)

    def with_columns(self, columns: Places) -> "Slots":
        """Return a front with slots for these columns, in ascending order."""
        return Slots(self.n_columns, columns, np.arange(columns.size))

    # As other fronts -------------------------------------------------------------------------------

    def first_width(self, _: int) -> int:
        """Return how many slots a state has before the first row."""
        return room_for(0)

    def anew(self, _: Any) -> "Slots":
        """Return the front of a stream of such rows before the first."""
        return no_slots(self.n_columns)

    def keeping(self, _: Any) -> "Slots":
        """Return the front, which keeps no rows."""
        return self

    def begun(self, _: Method, fresh: Any, place: int) -> Any:  # noqa: ARG002
        """Return the model of a learner before its first row."""
        return fresh

    def taken_out(self, _: State) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and facts for files."""
        arrays = {"front.columns": self.columns, "front.slots": self.slots}
        return arrays, {"columns": self.n_columns}


MOST = 2**27  # columns: `coef_` has a number for each


def no_slots(n_columns: int) -> Slots:
    """Return the front of rows of so many columns before the first."""
    if n_columns > MOST:
        raise ValueError(f"Features are selected from {MOST:,} columns at most, not {n_columns:,}.")
    none = np.zeros(0, np.int64)
    return Slots(n_columns, none, none)


def room_for(count: int) -> int:
    """Return how many slots a state has that uses so many: one is always free, and they rarely get more."""
    return max(_FEWEST, 1 << count.bit_length())


def slots_from(arrays: dict[str, NDArray[Any]], facts: Any, width: int) -> Slots:
    """Return a saved front; refuse what is not sound."""
    match facts:
        case {"columns": int(n_columns)} if type(n_columns) is int and 0 < n_columns <= MOST:
            pass
        case _:
            raise ValueError("it does not say how many columns it selects from")
    if arrays.keys() != {"columns", "slots"}:
        raise ValueError("it has not the slots of its columns")
    columns, slots = arrays["columns"], arrays["slots"]
    sound = (
        columns.dtype == slots.dtype == np.int64
        and columns.ndim == slots.ndim == 1
        and columns.size == slots.size
        and width == room_for(columns.size)
        and (np.diff(columns, prepend=-1, append=n_columns) > 0).all()
        and np.array_equal(np.sort(slots), np.arange(slots.size))
    )
    if not sound:
        raise ValueError("the slots of its columns make no sense")
    return Slots(n_columns, columns, slots)


def keeping(method: Method, state: State, kept: Places) -> State:
    """Return a state in which some slots keep their numbers; of all others only buffered rows' are left, as new."""
    buffer, front = state.buffer, state.front
    places = np.arange(buffer.values.shape[2])
    used = kernels.buffers.filled(buffer)[..., None] & (places < buffer.length[..., None])
    needed = np.zeros(state.width, bool)
    needed[kept] = needed[buffer.indices[used]] = True
    some = needed[front.slots]
    columns, before = front.columns[some], front.slots[some]
    learned = np.isin(before, kept)
    return placed(method, state, front.with_columns(columns), np.where(learned, before, -1))


def placed(method: Method, state: State, front: Slots, before: Places) -> State:
    """Return a state with the slots of another front, each with the numbers that it had at a slot, or as new."""
    own, width = np.flatnonzero(before >= 0), room_for(before.size)

    def moved(numbers: Any, fresh: Any) -> Any:
        fresh[own] = numbers[before[own]]
        return fresh

    models = tuple(
        model._replace(
            features=moved(model.features, method.new_model(width, True).features),
            tally=model.tally.copy(),
        )
        for model in state.models
    )
    columns = state.front.columns[np.argsort(state.front.slots)]
    slot_of = np.zeros(state.width, np.int32)
    at, known = front.find(columns)
    slot_of[: columns.size][known] = front.slots[at[known]]
    buffer = state.buffer._replace(indices=slot_of[state.buffer.indices])
    record = state.record._replace(held=moved(state.record.held, np.zeros(width)))
    return state._replace(models=models, buffer=buffer, record=record, front=front)


def with_all_columns(method: Method, states: Sequence[State]) -> list[State]:
    """Return states that have the columns of all, in the same slots."""
    columns = np.unique(np.concatenate([state.front.columns for state in states]))
    moved = []
    for state in states:
        at, known = state.front.find(columns)
        before = np.full(columns.size, -1)
        before[known] = state.front.slots[at[known]]
        moved.append(placed(method, state, state.front.with_columns(columns), before))
    return moved
