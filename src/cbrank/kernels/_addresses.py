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

from cbrank.kernels._jit import allocating_jit


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
def seeds_at(address, shape):
    """Return the array of uint64 at an address."""
    return carray(_pointer(address), shape, np.uint64)


@borrowing_jit
def flags_at(address, shape):
    """Return the array of booleans at an address."""
    return carray(_pointer(address), shape, np.bool_)
