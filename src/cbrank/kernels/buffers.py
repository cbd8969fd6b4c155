"""One buffer of rows per class, by reservoir sampling (Algorithm 2) or first-in-first-out.

Both buffers of a learner are one tuple of arrays whose first axis is the class, 0 or 1. Rows are
copied in: the caller may reuse its memory. A sparse row is stored as its non-zeros, padded to the
width of the longest one so far.

A queue that has more room than the `least` rows that it is to keep holds a *window*: of both classes all
rows since a common time, as many as there is room for, which is when the latest `least` rows of the rarer
class began. A row and an earlier one of the other class then meet however rare their classes are. With as
many rows of each class instead, those of the rarer class are older, and most pairs have an old row of it
beside a new one of the other: what merely changes with time then seems to tell the classes apart.

The mean of a class moves towards each of its rows (see ``prequential``). Values beyond the *bounds* of their
column are left out: one missing value written as -3e38 would otherwise decide the mean. `bounded` finds the
bounds by quantiles, so that no few rows can move them far.

Here and in all other kernels rows are copied and summed element by element: an assignment to a slice,
or `sum`, takes Numba seconds to compile.
"""

from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import jit
from cbrank.kernels.random import uniform

LOWER, UPPER = 2, 3  # rows of `means` that bound the values of a column
BOUND = 1e154  # of columns of which nothing is known: larger numbers have squares that overflow
# How many times the usual distance from the middle a value or a score may be away to be counted. Amounts
# with long tails reach some hundreds, values that stand for missing ones a million and more.
FOREIGN = 1024.0


class Csr(NamedTuple):
    """A chunk of sparse rows."""

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class DenseBuffer(NamedTuple):
    """Two buffers of M dense rows."""

    rows: np.ndarray  # (2, M, d)
    means: np.ndarray  # (4, d) of the latest rows of each class and their bounds, or (4, 0)
    size: np.ndarray  # (2,) filled slots
    oldest: np.ndarray  # (2,) slot of the oldest row, where a sweep starts; 0 for the reservoir
    seen: np.ndarray  # (2,) rows of each class so far, those not kept included
    random: np.ndarray  # (1,) state of the generator
    came: np.ndarray  # (2, M) of a queue, how many rows had come with each row
    least: np.ndarray  # (1,) rows of each class that are kept however long ago they came


class SparseBuffer(NamedTuple):
    """Two buffers of M sparse rows; the last six as in `DenseBuffer`."""

    values: np.ndarray  # (2, M, width)
    indices: np.ndarray  # (2, M, width)
    length: np.ndarray  # (2, M) non-zeros of each row
    size: np.ndarray
    oldest: np.ndarray
    seen: np.ndarray
    random: np.ndarray
    came: np.ndarray
    least: np.ndarray


def _counters(least: int, room: int, seed: int) -> tuple[np.ndarray, ...]:
    size, oldest, seen = (np.zeros(2, np.int64) for _ in range(3))
    state, came = np.array([seed], dtype=np.uint64), np.zeros((2, room), np.int64)
    return size, oldest, seen, state, came, np.array([least])


def empty_dense(least: int, room: int, n_features: int, seed: int, *, means: bool) -> DenseBuffer:
    """Make empty buffers for dense rows; `seed` is any positive 64-bit number."""
    rows, mean_rows = np.zeros((2, room, n_features)), np.zeros((4, n_features if means else 0))
    mean_rows[LOWER], mean_rows[UPPER] = -BOUND, BOUND
    return DenseBuffer(rows, mean_rows, *_counters(least, room, seed))


def empty_sparse(least: int, room: int, seed: int) -> SparseBuffer:
    """Make empty buffers for sparse rows."""
    values, indices = np.zeros((2, room, 0)), np.zeros((2, room, 0), np.int32)
    length = np.zeros((2, room), np.int64)
    return SparseBuffer(values, indices, length, *_counters(least, room, seed))


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


def filled(buffer: DenseBuffer | SparseBuffer) -> np.ndarray:
    """Say of each slot (2, M) whether it is filled."""
    slots = np.arange(buffer.came.shape[1])
    return (slots - buffer.oldest[:, None]) % slots.size < buffer.size[:, None]  # type: ignore[no-any-return]


def bounded(buffer: DenseBuffer) -> np.ndarray:
    """Return the class means of a buffer within the bounds that its rows give, and these bounds.

    They are `FOREIGN` times as far from the median as nine in ten values are, of those that differ from it:
    most values of a column may be 0. Where the median moves from block to block, they are wider by as much. Few
    rows may have more than a tenth of outliers by chance, so that bounds get no more than twice as wide at a
    time. A mean that is out of bounds, as after a first row that was, becomes the median.
    """
    rows, means = buffer.rows[filled(buffer)], buffer.means
    if not means.size or not len(rows):
        return means
    known = means[UPPER] < BOUND
    with np.errstate(over="ignore", invalid="ignore"):
        middle = np.median(rows, axis=0)
        radius = FOREIGN * (usual_distance(rows, middle) + _drift(middle, means, known))
        radius = np.minimum(radius, np.where(known, means[UPPER] - means[LOWER], np.inf))
        found = np.array([middle - radius, middle + radius])
    before = (means[LOWER] < middle) & (middle < means[UPPER])  # for columns of one value
    kept = np.where(known & before, means[LOWER:], [[-BOUND], [BOUND]])
    usable = (radius > 0.0) & (np.abs(found).max(axis=0) < BOUND)
    lower, upper = np.where(usable, found, kept)
    within = (lower < means[:LOWER]) & (means[:LOWER] < upper)
    return np.stack([*np.where(within, means[:LOWER], middle), lower, upper])


def usual_distance(rows: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Return the distance within which nine in ten values are that differ from the middle of a column, or 0."""
    off = np.sort(np.abs(rows - middle), axis=0)
    equal = (off == 0.0).sum(axis=0)
    place = np.minimum(equal + 9 * (len(rows) - equal) // 10, len(rows) - 1)
    return np.take_along_axis(off, place[None], axis=0)[0]  # type: ignore[no-any-return]


def are_among(values: np.ndarray | float, scores: np.ndarray) -> np.ndarray:
    """Say of values whether they are not far beyond all scores but a few."""
    with np.errstate(over="ignore", invalid="ignore"):
        middle = np.median(scores, keepdims=True)
        usual = usual_distance(scores[:, None], middle)
        far = (np.abs(values - middle) > FOREIGN * usual) & (usual > 0.0)
    return ~far  # type: ignore[no-any-return]


def _drift(middle: np.ndarray, means: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return how far the middle of each column has moved."""
    return np.where(known, np.abs(middle - 0.5 * (means[LOWER] + means[UPPER])), 0.0)


def with_room(
    buffer: DenseBuffer | SparseBuffer, least: int, room: int, *, reservoir: bool
) -> DenseBuffer | SparseBuffer:
    """Return a buffer that keeps `least` rows of each class and has room for more, with the latest that it has.

    Of a reservoir they are those of the first slots, which are as uniform a sample as all. With more room
    it would be none: the next rows would come in at once.
    """
    before = buffer.came.shape[1]
    if (before, buffer.least[0]) == (room, least) or (before < room and reservoir):
        return buffer
    return latest(buffer, least, room, reservoir=reservoir)


def latest(
    buffer: DenseBuffer | SparseBuffer, least: int, room: int, *, reservoir: bool
) -> DenseBuffer | SparseBuffer:
    """Return a buffer with as many of the rows of another as a window (see `_close_window`), or a reservoir, holds."""
    before, ages = buffer.came.shape[1], []
    for label in range(2):
        slots = buffer.oldest[label] + np.arange(buffer.size[label])
        ages.append(buffer.came[label, slots % before])
    begin = min(own[-least] if own.size >= least else 0 for own in ages)
    size = np.array([min((own >= begin).sum(), room) for own in ages])
    slots = np.arange(min(before, room))
    skipped = 0 if reservoir else buffer.oldest + buffer.size - size
    held = (slots + np.reshape(skipped, (-1, 1))) % before
    changed = {"least": np.array([least]), "size": size, "oldest": np.zeros(2, np.int64)}
    for name in {"rows", "values", "indices", "length", "came"} & set(buffer._fields):
        array = getattr(buffer, name)
        changed[name] = np.zeros((2, room, *array.shape[2:]), array.dtype)
        changed[name][:, : slots.size] = array[[[0], [1]], held]
    return buffer._replace(**changed)


@jit
def choose_slot(buffer, label, reservoir):
    """Choose the slot for a row just counted in `seen`; -1 if it is not kept."""
    size, room = buffer.size[label], buffer.came.shape[1]
    if reservoir:
        if size < room:
            buffer.size[label] = size + 1
            return size
        # One draw does both: it is below `room` with probability room / seen, and then
        # it is a uniformly random slot.
        drawn = int(uniform(buffer.random) * buffer.seen[label])
        return drawn if drawn < room else -1
    slot = _wrapped(buffer.oldest[label] + size, room)
    if size == room:
        buffer.oldest[label] = _wrapped(slot + 1, room)
    else:
        buffer.size[label] = size + 1
    buffer.came[label, slot] = buffer.seen[0] + buffer.seen[1]
    if buffer.least[0] < room:
        _close_window(buffer)
    return slot


@jit
def _wrapped(slot, room):
    """Return a slot of a queue, which goes on at its first slot after the last."""
    return slot - room if slot >= room else slot


@jit
def _close_window(buffer):
    """Let rows go that came before the latest `least` of either class."""
    least, room, begin = buffer.least[0], buffer.came.shape[1], buffer.seen[0] + buffer.seen[1]
    for label in range(2):
        if buffer.size[label] < least:
            return
        first = _wrapped(buffer.oldest[label] + buffer.size[label] - least, room)
        begin = min(begin, buffer.came[label, first])
    for label in range(2):
        size, oldest = buffer.size[label], buffer.oldest[label]
        while size > least and buffer.came[label, oldest] < begin:
            size, oldest = size - 1, _wrapped(oldest + 1, room)
        buffer.size[label], buffer.oldest[label] = size, oldest


@jit
def store(buffer, label, x, reservoir):
    """Count a dense row and offer it to the buffer of its class; return its slot or -1."""
    buffer.seen[label] += 1
    slot = choose_slot(buffer, label, reservoir)
    if slot >= 0:
        for i in range(x.size):
            buffer.rows[label, slot, i] = x[i]
    return slot


@jit
def store_sparse(buffer, label, indices, values, reservoir):
    """Count a sparse row and offer it to the buffer of its class; return its slot or -1."""
    buffer.seen[label] += 1
    slot = choose_slot(buffer, label, reservoir)
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
