"""Calls that an interrupt cannot part.

Python looks for signals, and raises KeyboardInterrupt, between the steps of Python code. Where C code
calls C code there are none: calls made like this are interrupted before the first or after the last.
"""

import operator
from collections import deque
from collections.abc import Callable, Iterable
from itertools import starmap
from typing import Any

from numpy.typing import NDArray

Call = tuple[Any, ...]  # a compiled function and its arguments
_TRIES = 16  # to end a step that is interrupted, or fails, again and again


def uninterrupted(calls: Iterable[Call]) -> None:
    """Make calls with nothing in between."""
    deque(starmap(operator.call, [*calls]), maxlen=0)


def to_its_end(step: Callable[[], None], begun: Callable[[], Any], tries: int = _TRIES) -> None:
    """Make a step that goes on where it stopped to its end, once it has begun.

    What interrupted it goes on its way then.
    """
    try:
        step()
    except BaseException:
        if tries and begun():
            to_its_end(step, begun, tries - 1)
        raise


def assign(array: NDArray[Any], value: Any) -> Call:
    """Return the call that fills an array with what `value` then holds."""
    return operator.setitem, array, ..., value
