"""A lock for each object that several threads may learn into."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from typing import Any, Self


class Own:
    """A lock and caches of one object; a copy or a pickle of the object gets new ones."""

    __slots__ = ("known", "lock", "served", "session", "turn")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.known: Any = None  # what the owner has worked out for itself
        self.served: Any = None  # what it has worked out to score by
        self.session: Any = None  # what it takes single rows by
        self.turn = 0  # how many times it has learned: what was worked out in between is of no use

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


class Owner:
    """Base of objects that threads change one after the other, each while it holds the lock."""

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
        """Return a copy made between two chunks, not in the middle of one."""
        memo[id(self)] = twin = type(self).__new__(type(self))
        with self._own.lock:
            state = deepcopy(self.__getstate__(), memo)
        getattr(twin, "__setstate__", twin.__dict__.update)(state)
        return twin


@contextmanager
def undisturbed(objects: Iterable[Any]) -> Iterator[None]:
    """Hold the locks of those objects that have one."""
    with ExitStack() as stack:
        for item in objects:
            if isinstance(item, Owner):
                stack.enter_context(item._own.lock)  # noqa: SLF001
        yield
