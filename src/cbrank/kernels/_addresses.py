"""Arrays by their addresses.

To take an array from Python costs a compiled function 50 nanoseconds, more than the work that a row
means for most of them. So what is called once for a row takes one array of addresses instead. Whoever
makes it keeps the arrays alive, and has seen that they are C-ordered, aligned and of the right type.
"""

from typing import Any

import numpy as np
from numba import carray  # type: ignore[attr-defined]
from numba.core import types
from numba.extending import intrinsic

from cbrank.kernels._awake import slots_of
from cbrank.kernels._jit import allocating_jit
from cbrank.kernels._pending import GROUP, Pending
from cbrank.kernels._reaches import Reaches
from cbrank.kernels.buffers import DenseBuffer
from cbrank.kernels.calibration import SHAPE_KNOTS, Curve
from cbrank.kernels.confidence import FullModel
from cbrank.kernels.prequential import Block, Readouts
from cbrank.kernels.row_table import (
    BUFFER,
    CAPACITY,
    COPIED,
    CURVE,
    EACH,
    ERRORS,
    FEATURES,
    LEARNERS,
    LEVEL,
    MEAN,
    MODEL,
    PADDED,
    POSITION,
    REACHES,
    READOUTS,
    RECORD,
    ROOM,
    SHAPE,
    SHARE,
    SWEEP,
    WORK,
)


def borrowing_jit(function: Any) -> Any:
    """Compile a function that returns arrays at addresses, into those that call it."""
    return allocating_jit(function, forceinline=True)


@intrinsic
def _as_pointer(_context, address):
    """Return an address as a pointer."""

    def generate(context, builder, _signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(address), generate


_pointer: Any = _as_pointer


@borrowing_jit
def floats_at(address, shape):
    """Return the array of float64 at an address."""
    return carray(_pointer(address), shape, np.float64)


@borrowing_jit
def counts_at(address, shape):
    """Return the array of int64 at an address."""
    return carray(_pointer(address), shape, np.int64)


@borrowing_jit
def unsigned_at(address, shape):
    """Return the array of uint64 at an address."""
    return carray(_pointer(address), shape, np.uint64)


@borrowing_jit
def flags_at(address, shape):
    """Return the array of booleans at an address."""
    return carray(_pointer(address), shape, np.bool_)


# The tuples of a table ------------------------------------------------------------------------


@borrowing_jit
def buffer_at(table):
    d, pair = table[FEATURES], (2,)
    return DenseBuffer(
        floats_at(table[BUFFER], (2, table[CAPACITY], d)),
        floats_at(table[BUFFER + 1], (4, d)),
        counts_at(table[BUFFER + 2], pair),
        counts_at(table[BUFFER + 3], pair),
        counts_at(table[BUFFER + 4], pair),
        unsigned_at(table[BUFFER + 5], (1,)),
        counts_at(table[BUFFER + 6], (2, table[CAPACITY])),
        counts_at(table[BUFFER + 7], (1,)),
    )


@borrowing_jit
def copied_at(table, D, M):
    pair = (2,)
    return DenseBuffer(
        floats_at(table[COPIED], (2, slots_of(M), D)),
        floats_at(table[COPIED + 1], (4, D)),
        counts_at(table[COPIED + 2], pair),
        counts_at(table[COPIED + 3], pair),
        counts_at(table[COPIED + 4], pair),
        unsigned_at(table[COPIED + 5], (1,)),
        counts_at(table[COPIED + 6], (2, M)),
        counts_at(table[COPIED + 7], (1,)),
    )


@borrowing_jit
def model_at(table, place):
    """Return the model of a learner."""
    d, own = table[FEATURES], WORK + EACH * place + MODEL
    return FullModel(
        floats_at(table[own], (d,)),
        floats_at(table[own + 1], (d, d)),
        floats_at(table[own + 2], (d,)),
        counts_at(table[own + 3], (3,)),
    )


@borrowing_jit
def block_at(table):
    room = table[ROOM]
    return Block(
        floats_at(table[RECORD + 3], (table[LEARNERS], READOUTS, room)),
        floats_at(table[RECORD + 4], (room,)),
        floats_at(table[RECORD + 5], (room,)),
        counts_at(table[RECORD + 6], (room,)),
        counts_at(table[POSITION], (2,)),
    )


@borrowing_jit
def readouts_at(table):
    slots = table[LEARNERS]
    return Readouts(
        floats_at(table[LEVEL], (slots, READOUTS)),
        floats_at(table[LEVEL + 1], (slots, READOUTS, 3)),
        floats_at(table[LEVEL + 2], (slots, READOUTS)),
    )


@borrowing_jit
def curve_at(table):
    return Curve(
        floats_at(table[SHAPE], (2, SHAPE_KNOTS)),
        floats_at(table[CURVE], (4,)),
        floats_at(table[CURVE + 1], (4, 4)),
        floats_at(table[ERRORS], (2,)),
        floats_at(table[SHARE], (2,)),
        counts_at(table[SHARE + 1], (1,)),
    )


@borrowing_jit
def pending_at(table, place, d, D):
    work = WORK + EACH * place + SWEEP
    return Pending(
        floats_at(table[work], (D, D)),
        floats_at(table[work + 1], (D,)),
        floats_at(table[work + 2], (GROUP, D)),
        floats_at(table[work + 3], (GROUP, D)),
        floats_at(table[work + 4], (GROUP, D)),
        floats_at(table[work + 5], (GROUP, GROUP)),
        floats_at(table[work + 6], (GROUP, GROUP)),
        floats_at(table[work + 7], (GROUP,)),
        floats_at(table[work + 8], (GROUP,)),
        floats_at(table[work + 9], (GROUP,)),
        floats_at(table[work + 10], (GROUP,)),
        unsigned_at(table[work + 11], (GROUP,)),
        counts_at(table[work + 12], (1,)),
        unsigned_at(table[work + 13], (d,)),
        unsigned_at(table[work + 14], (d + 1,)),
    )


@borrowing_jit
def reaches_at(table, place, D, M):
    work = WORK + EACH * place + REACHES
    return Reaches(
        flags_at(table[work], (1,)),
        floats_at(table[work + 1], (D,)),
        floats_at(table[work + 2], (2, slots_of(M))),
        floats_at(table[work + 3], (2, slots_of(M))),
        floats_at(table[work + 4], (2, D)),
        floats_at(table[work + 5], (2, D)),
        floats_at(table[work + 6], (2,)),
    )


@borrowing_jit
def learner_at(table, place, Sigma, tally):
    """Return the copy of a learner's model, with its own tally."""
    D, work = table[PADDED], WORK + EACH * place + MEAN
    return FullModel(floats_at(table[work], (D,)), Sigma, floats_at(table[work + 1], (D,)), tally)
