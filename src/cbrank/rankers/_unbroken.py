"""Steps that are taken whole or not at all, whatever interrupts.

Python looks for signals, and raises KeyboardInterrupt, between the steps of Python code. Where C
code calls C code there are none: what `unbroken` calls is interrupted before the first call or
after the last.
"""

import operator
from collections import deque
from collections.abc import Iterable
from itertools import starmap
from typing import Any, Protocol

from numpy.typing import NDArray

Call = tuple[Any, ...]  # a compiled function and its arguments

_TRIES = 16  # of a step that is interrupted, or fails, again and again


class Step(Protocol):
    """What can be called again to go on where it was stopped."""

    def __call__(self) -> None:
        """Go on to the end."""

    def has_begun(self) -> bool:
        """Say whether anything has been changed."""


def unbroken(calls: Iterable[Call]) -> None:
    """Make calls with nothing in between."""
    deque(starmap(operator.call, [*calls]), maxlen=0)


def assign(array: NDArray[Any], value: Any) -> Call:
    """Return the call that fills an array with what `value` then holds."""
    return operator.setitem, array, ..., value


def whole(step: Step, tries: int = _TRIES) -> None:
    """Take a step to its end once it has begun, and let what interrupted it go on its way then."""
    try:
        step()
    except BaseException:
        if tries and step.has_begun():
            whole(step, tries - 1)
        raise
