"""Calls that an interrupt cannot part.

Python looks for signals, and raises KeyboardInterrupt, between the steps of Python code. Where C code
calls C code there are none: calls made like this are interrupted before the first or after the last.
"""

import operator
from collections import deque
from collections.abc import Iterable
from itertools import starmap
from typing import Any

from numpy.typing import NDArray

Call = tuple[Any, ...]  # a compiled function and its arguments


def uninterrupted(calls: Iterable[Call]) -> None:
    """Make calls with nothing in between."""
    deque(starmap(operator.call, [*calls]), maxlen=0)


def assign(array: NDArray[Any], value: Any) -> Call:
    """Return the call that fills an array with what `value` then holds."""
    return operator.setitem, array, ..., value
