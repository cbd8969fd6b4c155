"""The table of addresses and sizes by which ``one_row`` takes rows, and what is kept from row to row."""

import numpy as np

from cbrank.kernels._awake import BEYOND
from cbrank.kernels._pending import GROUP
from cbrank.kernels._simd import WIDTH

# What the table has: addresses of the arrays of a DenseBuffer, of a record up to its `learned`, of the
# numbers of all learners, of the weights of their readouts, of room for notes, of `SETTINGS` and of the
# operating `POINT`; of a copy of the buffer and of the row to learn; then sizes; then for each learner
# addresses of its model and of what its sweeps work on.
BUFFER, RECORD, NUMBERS, MIX, NOTES, SETTINGS, POINT, COPIED, ROW, SIZES = (
    0, 8, 25, 26, 27, 28, 29, 30, 38, 39,
)  # fmt: skip
FEATURES, CAPACITY, LEARNERS, ROOM, BY_MEANS, PADDED = range(SIZES, SIZES + 6)
WORK = SIZES + 6
MODEL, SWEEP = 0, 4  # places of a learner's addresses: its model, and what its sweeps work on
REACHES, MEAN, DUE, EACH = SWEEP + 15, SWEEP + 22, SWEEP + 24, SWEEP + 25
MU, LAG, TALLY = MODEL, MODEL + 2, MODEL + 3
SEEN = BUFFER + 4
HELD, MEMORY_AT, POSITION, LEVEL = RECORD, RECORD + 2, RECORD + 7, RECORD + 8
SHAPE, CURVE, ERRORS, SHARE = RECORD + 11, RECORD + 12, RECORD + 14, RECORD + 15
# What a row is learned by: the fields of `Parameters` but for C, its weight by class, and for each learner
# its C and the rows between two steps of forgetting, 0 if it forgets nothing.
PHI, FORM, RESERVOIR, BALANCED, BOUND, WEIGHTS, OWN = 0, 1, 2, 3, 4, 5, 7
# The intercept, if it is fixed, and else the costs of the classes and whether the point is balanced.
FIXED, INTERCEPT, COSTS, BALANCED_POINT = 0, 1, 2, 4
READOUTS = 2


# What a sweep works on (see ``_awake``). To copy it for each call, as ``full`` does for many rows, would
# take longer than one row takes: so the copies stay, and what a row changes is written to the model and to
# the buffer as well.


def copies(n_features: int, capacity: int) -> list[np.ndarray]:
    """Return room for a copy of a buffer, as a ring, all zero, which no buffer is, and for a row."""
    D, counts = padded_length(n_features), [np.zeros(2, np.int64) for _ in range(3)]
    rows, means, row = _aligned(2 * ring_slots(capacity), D), _aligned(4, D), _aligned(1, D)
    came, least = np.zeros((2, capacity), np.int64), np.zeros(1, np.int64)
    return [rows, means, *counts, np.zeros(1, np.uint64), came, least, row]


def workspace(n_features: int, capacity: int) -> list[np.ndarray]:
    """Return the arrays that the sweeps of a learner work on."""
    d, D, slots = n_features, padded_length(n_features), ring_slots(capacity)
    pairs = _aligned(2 * GROUP + 4, GROUP)
    return [
        *(_aligned(D + BEYOND, D)[:D], _aligned(1, D), *(_aligned(GROUP, D) for _ in range(3))),
        *(pairs[:GROUP], pairs[GROUP : 2 * GROUP], *pairs[2 * GROUP :]),
        *(np.zeros(GROUP, np.uint64), np.zeros(1, np.int64)),
        *(np.arange(d, dtype=np.uint64), np.zeros(d + 1, np.uint64)),
        *(np.zeros(1, np.bool_), _aligned(1, D), np.zeros((2, slots)), np.zeros((2, slots))),
        *(_aligned(2, D), _aligned(2, D), np.zeros(2)),
        *(_aligned(1, D), _aligned(1, D), np.zeros(1, np.int64)),
    ]


def padded_length(n_features: int) -> int:
    """Return how many numbers a row is stored in: see ``_pending.padded``."""
    return max(1, -(-n_features // WIDTH)) * WIDTH


def ring_slots(capacity: int) -> int:
    """Return how many slots a ring has: see ``_awake.slots_of``."""
    return 2 * capacity + WIDTH


def _aligned(rows: int, width: int) -> np.ndarray:
    """Return a matrix of zeros that begins at a cache line."""
    room = np.zeros(rows * width + WIDTH)
    begin = -(room.ctypes.data // 8) % WIDTH
    return room[begin : begin + rows * width].reshape(rows, width)
