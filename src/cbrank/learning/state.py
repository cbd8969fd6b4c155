"""What a ranker has learned: one value of arrays, which is replaced whole."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.learning import record
from cbrank.learning.method import Method

Arrays = dict[str, NDArray[Any]]


class Batch(NamedTuple):
    """Rows to learn from, as kernels take them."""

    X: Any
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]
    order: NDArray[np.int64]  # which rows, in which order


class Indicators(NamedTuple):
    """Learners of sparse features beside the others: they have a buffer of the same rows."""

    source: Any  # what turns rows into features
    models: tuple[Any, ...]
    buffer: Any
    held: NDArray[np.float64]  # weights by which the block is tested


class State(NamedTuple):
    """What a ranker has learned."""

    models: tuple[Any, ...]  # of the learners: the kernels' tuples of arrays
    buffer: Any
    record: record.Record
    front: Any  # how rows become features, and those that wait for it to be decided
    sparse: bool  # whether rows are learned as sparse ones
    intercept: float | None = None  # by the rows of a fit; None for that of the stream
    memory: Any = None  # a sample of all rows (``memory``), for those who keep one
    beside: tuple[Indicators, ...] = ()

    @property
    def width(self) -> int:
        """Number of features."""
        return int(self.record.held.size)

    @property
    def columns(self) -> int:
        """Number of columns of rows, where features are selected from them; else of features."""
        return int(self.front.n_columns) if self.selects else self.width

    @property
    def selects(self) -> bool:
        """Whether only some columns of rows have features (``slots``)."""
        return hasattr(self.front, "n_columns")


class Cell:
    """Where a ranker keeps its state, which is replaced and never changed but for the numbers in its arrays."""

    __slots__ = ("state", "turn")

    def __init__(self, state: State) -> None:
        self.state = state
        self.turn = (
            0  # how many times rows were learned: what was worked out in between is of no use
        )

    def __reduce__(self) -> Any:
        return Cell, (self.state,)


def begin(
    method: Method, n_features: int, seed: int, front: Any, *, sparse: bool, shuffled: bool
) -> State:
    """Return the state before the first row."""
    selects = hasattr(front, "n_columns")
    kept = method.rows_kept(front.n_columns if selects else n_features)
    sparse = (sparse or selects) and not method.needs_matrix
    means = method.needs_matrix
    if sparse:
        buffer: Any = kernels.buffers.empty_sparse(*kept, seed)
    else:
        buffer = kernels.buffers.empty_dense(*kept, n_features, seed, means=means)
    count = method.lasting + (method.joins and not shuffled)
    models = tuple(method.new_model(n_features, sparse) for _ in range(count))
    known = record.begin(n_features, count, method.n_readouts, means=means, shuffled=shuffled)
    rows = method.new_memory(seed) if method.new_memory else None
    return State(models, buffer, known, front, sparse, memory=rows)


def resized(method: Method, state: State, n_features: int) -> State:
    """Return a state with room for so many features, new ones as at the beginning."""
    if state.sparse:  # a copy, for the old buffer goes with the old models
        buffer = state.buffer._make(map(np.copy, state.buffer))
    else:
        room, means = state.buffer.rows.shape[1], method.needs_matrix
        fresh = kernels.buffers.empty_dense(room, room, n_features, 1, means=means)
        buffer = _refilled(fresh, state.buffer)
    models = tuple(
        _refilled(method.new_model(n_features, state.sparse), model) for model in state.models
    )
    held = state.record
    wide = {"held": _refilled((np.zeros(n_features),), (held.held,))[0]}
    if held.origin.size:
        wide["origin"] = _refilled((np.zeros(n_features),), (held.origin,))[0]
    return state._replace(models=models, buffer=buffer, record=held._replace(**wide))


def _refilled(fresh: Any, arrays: Any) -> Any:
    """Return a tuple of fresh arrays, filled with others as far as both reach."""
    for new, old in zip(fresh, arrays, strict=True):
        both = tuple(map(slice, np.minimum(new.shape, old.shape)))
        new[both] = old[both]
    return fresh


def buffered_rows(state: State) -> tuple[NDArray[np.int64], Any]:
    """Return the labels of buffered rows, and the rows as they are learned, copied."""
    buffer = state.buffer
    held = kernels.buffers.filled(buffer)
    labels = np.repeat([0, 1], held.sum(axis=1))
    if "rows" in buffer._fields:
        return labels, buffer.rows[held]
    length, begin_at = buffer.length[held], np.flatnonzero(held) * buffer.values.shape[2]
    indptr = np.concatenate([[0], np.cumsum(length)])
    at = np.arange(indptr[-1]) + np.repeat(begin_at - indptr[:-1], length)
    indices = buffer.indices.ravel()[at]
    width = max(state.width, int(indices.max(initial=0)) + 1)
    rows = (buffer.values.ravel()[at], indices, indptr)
    return labels, sp.csr_array(rows, shape=(len(length), width))


# As arrays ----------------------------------------------------------------------------------------

# How much of the last axis is kept in files: what follows is room to work in, zero between any two rows.
_KEPT = {"features": 3}


def parts_of(held: Any) -> dict[str, Any]:
    """Return the tuples of arrays of a state, or of a group of learners, by name."""
    models = {f"model{place}": model for place, model in enumerate(held.models)}
    others = {name: getattr(held, name) for name in ("buffer", "record") if hasattr(held, name)}
    return models | others


def arrays_of(held: Any) -> Arrays:
    """Return the arrays of a state, not copied, but for those of its front; or those of a group."""
    return {
        f"{part}.{field}": kept(field, np.asarray(value))
        for part, own in parts_of(held).items()
        for field, value in own._asdict().items()
    }


def with_arrays(held: Any, arrays: Arrays) -> Any:
    """Return a state or a group with the values of `arrays_of`; what was a plain number stays one."""
    found = {part: _filled(own, part, arrays) for part, own in parts_of(held).items()}
    models = tuple(found.pop(f"model{place}") for place in range(len(held.models)))
    return held._replace(models=models, **found)


def _filled(held: Any, part: str, arrays: Arrays) -> Any:
    values = {field: arrays[f"{part}.{field}"] for field in held._fields}
    return held._make(
        _with_room(field, values[field], value)
        if isinstance(value, np.ndarray)
        else type(value)(values[field][()])
        for field, value in held._asdict().items()
    )


def kept(field: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return an array without the room to work in."""
    return array[..., : _KEPT[field]] if field in _KEPT else array


def _with_room(field: str, array: NDArray[Any], held: NDArray[Any]) -> NDArray[Any]:
    """Return an array with the room to work in that it has beside what is kept."""
    if field not in _KEPT:
        return array
    whole = np.zeros((*array.shape[:-1], held.shape[-1]))
    whole[..., : _KEPT[field]] = array
    return whole


def writeable(state: State) -> State:
    """Return a state whose arrays can be learned into: joblib maps large ones read-only."""
    beside = tuple(_with_writeable(group) for group in state.beside)
    whole: State = _with_writeable(state)
    return whole._replace(record=_writeable(state.record), beside=beside)


def _with_writeable(held: Any) -> Any:
    models = tuple(map(_writeable, held.models))
    for model in models:
        if "features" in model._fields:  # pickled in the midst of a row, it has notes of it
            model.features[..., kernels.sparse_diagonal.PLACE] = 0.0
    return held._replace(models=models, buffer=_writeable(held.buffer))


def _writeable(arrays: Any) -> Any:
    if all(array.flags.writeable for array in arrays):
        return arrays
    return type(arrays)(*(np.array(array) for array in arrays))
