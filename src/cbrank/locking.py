"""What belongs to one object that learns and to no copy of it."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from typing import Any, Self


class Own:
    """A lock and a note; copied or pickled with their owner, both begin anew."""

    __slots__ = ("known", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.known: Any = None  # what the owner has worked out for itself

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


class Owner:
    """Base of what threads learn into one after the other: what changes it holds its own lock."""

    _own: Own

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:  # noqa: ARG004
        self = super().__new__(cls)
        self._own = Own()
        return self

    def __getstate__(self) -> dict[str, Any]:
        with self._own.lock:
            state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        state.pop("_own", None)
        return state

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy of one moment, between two chunks that are learned."""
        memo[id(self)] = twin = type(self).__new__(type(self))
        with self._own.lock:
            state = deepcopy(self.__getstate__(), memo)
        getattr(twin, "__setstate__", twin.__dict__.update)(state)
        return twin


@contextmanager
def undisturbed(objects: Iterable[Any]) -> Iterator[None]:
    """Let nobody change those of the objects that threads take turns with."""
    with ExitStack() as stack:
        for item in objects:
            if isinstance(item, Owner):
                stack.enter_context(item._own.lock)  # noqa: SLF001
        yield
