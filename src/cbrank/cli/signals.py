"""Stopping in good order."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_STOPS = signal.SIGINT, signal.SIGTERM
_HEARD = b"\nStopping after the rows at hand; a second signal stops at once.\n"


class Stops:
    """Catch the first SIGINT or SIGTERM while something is on that can be asked to end soon.

    A second one ends the program at once.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}
        self._ask: Callable[[], None] = lambda: None

    def ask(self, ask: Callable[[], None]) -> None:
        """Call this when a signal comes, or now if one has come."""
        self._ask = ask
        if self.received is not None:
            ask()

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._receive) for number in _STOPS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.received is not None:
            sys.exit(128 + number)
        self.received = number
        with contextlib.suppress(OSError):  # nobody may be there to read it
            os.write(2, _HEARD)
        self._ask()
