"""One buffer of rows per class, by reservoir sampling (Algorithm 2) or first-in-first-out.

Both buffers of a learner are one tuple of arrays whose first axis is the class, 0 or 1. Rows are
copied in: the caller may reuse its memory. A sparse row is stored as its non-zeros, padded to the
width of the longest one so far.

Here and in all other kernels rows are copied and summed element by element: an assignment to a slice,
or `sum`, takes Numba seconds to compile.
"""

from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import jit
from cbrank.kernels.random import uniform


class Csr(NamedTuple):
    """A chunk of sparse rows."""

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class DenseBuffer(NamedTuple):
    """Two buffers of M dense rows."""

    rows: np.ndarray  # (2, M, d)
    means: np.ndarray  # (2, d) of the latest rows of each class (see ``prequential``), or (2, 0)
    size: np.ndarray  # (2,) filled slots
    oldest: np.ndarray  # (2,) slot of the oldest row, where a sweep starts; 0 for the reservoir
    seen: np.ndarray  # (2,) rows of each class so far, those not kept included
    random: np.ndarray  # (1,) state of the generator


class SparseBuffer(NamedTuple):
    """Two buffers of M sparse rows; the last four as in `DenseBuffer`."""

    values: np.ndarray  # (2, M, width)
    indices: np.ndarray  # (2, M, width)
    length: np.ndarray  # (2, M) non-zeros of each row
    size: np.ndarray
    oldest: np.ndarray
    seen: np.ndarray
    random: np.ndarray


def _counters(seed: int) -> tuple[np.ndarray, ...]:
    state = np.array([seed], dtype=np.uint64)
    return np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64), state


def empty_dense(capacity: int, n_features: int, seed: int, *, means: bool) -> DenseBuffer:
    """Make empty buffers for dense rows; `seed` is any positive 64-bit number."""
    rows, mean_rows = np.zeros((2, capacity, n_features)), np.zeros((2, n_features if means else 0))
    return DenseBuffer(rows, mean_rows, *_counters(seed))


def empty_sparse(capacity: int, seed: int) -> SparseBuffer:
    """Make empty buffers for sparse rows."""
    values, indices = np.zeros((2, capacity, 0)), np.zeros((2, capacity, 0), np.int32)
    return SparseBuffer(values, indices, np.zeros((2, capacity), np.int64), *_counters(seed))


def widened(buffer: SparseBuffer, width: int) -> SparseBuffer:
    """Return `buffer` with room for rows of `width` non-zeros.

    A new buffer shares no array with the old one, which another thread may still be reading.
    """
    width = max(width, int(buffer.length.max(initial=0)))
    # One very long row should not cost memory for good: room above four times the need is given up.
    if width <= buffer.values.shape[2] <= 4 * width:
        return buffer
    values = np.zeros((*buffer.length.shape, width))
    indices = np.zeros((*buffer.length.shape, width), np.int32)
    held = min(width, buffer.values.shape[2])
    values[..., :held] = buffer.values[..., :held]
    indices[..., :held] = buffer.indices[..., :held]
    return SparseBuffer(values, indices, *(array.copy() for array in buffer[2:]))


def with_room(
    buffer: DenseBuffer | SparseBuffer, capacity: int, *, reservoir: bool
) -> DenseBuffer | SparseBuffer:
    """Return a buffer with room for `capacity` rows of each class, with the latest rows that it has.

    Of a reservoir they are those of the first slots, which are as uniform a sample as all. With more room
    it would be none: the next rows would come in at once.
    """
    before = buffer[0].shape[1]
    if before == capacity or (before < capacity and reservoir):
        return buffer
    size, slots = np.minimum(buffer.size, capacity), np.arange(min(before, capacity))
    skipped = 0 if reservoir else buffer.oldest + buffer.size - size
    held = (slots + np.reshape(skipped, (-1, 1))) % before
    changed = {}
    for name in {"rows", "values", "indices", "length"} & set(buffer._fields):
        array = getattr(buffer, name)
        changed[name] = np.zeros((2, capacity, *array.shape[2:]), array.dtype)
        changed[name][:, : slots.size] = array[[[0], [1]], held]
    return buffer._replace(size=size, oldest=np.zeros(2, np.int64), **changed)


@jit
def choose_slot(buffer, label, capacity, reservoir):
    """Choose the slot for a row just counted in `seen`; -1 if it is not kept."""
    size = buffer.size[label]
    if size < capacity:
        buffer.size[label] = size + 1
        return size
    if reservoir:
        # One draw does both: it is below `capacity` with probability capacity / seen, and then
        # it is a uniformly random slot.
        drawn = int(uniform(buffer.random) * buffer.seen[label])
        return drawn if drawn < capacity else -1
    slot = buffer.oldest[label]
    buffer.oldest[label] = (slot + 1) % capacity
    return slot


@jit
def store(buffer, label, x, reservoir):
    """Count a dense row and offer it to the buffer of its class; return its slot or -1."""
    buffer.seen[label] += 1
    slot = choose_slot(buffer, label, buffer.rows.shape[1], reservoir)
    if slot >= 0:
        for i in range(x.size):
            buffer.rows[label, slot, i] = x[i]
    return slot


@jit
def store_sparse(buffer, label, indices, values, reservoir):
    """Count a sparse row and offer it to the buffer of its class; return its slot or -1."""
    buffer.seen[label] += 1
    slot = choose_slot(buffer, label, buffer.length.shape[1], reservoir)
    if slot >= 0:
        buffer.length[label, slot] = values.size
        for k in range(values.size):
            buffer.indices[label, slot, k] = indices[k]
            buffer.values[label, slot, k] = values[k]
    return slot


@jit
def row_weight(buffer, label, weight, balanced):
    """Return the weight of a row just counted: its sample weight times its class weight.

    Balanced class weights are n / (2 n_class), as scikit-learn's, by the counts so far.
    """
    if balanced:
        return weight * (buffer.seen[0] + buffer.seen[1]) / (2.0 * buffer.seen[label])
    return weight
