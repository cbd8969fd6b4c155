"""A lock for each object that several threads may learn into."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import deepcopy
from typing import Any, NoReturn, Self, TypeVar
from weakref import WeakSet


class Own:
    """A lock and caches of one object; a copy or a pickle of the object gets new ones."""

    __slots__ = (
        "__weakref__",
        "by_age",
        "known",
        "later",
        "lock",
        "provisional",
        "served",
        "session",
    )

    lock: AbstractContextManager[Any]

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _EVERY.add(self)
        self.known: Any = None  # what the owner has worked out for itself
        self.served: Any = None  # what it has worked out to score by
        self.provisional: Any = None  # what rows that wait would make
        self.later: Any = None  # what it says of rows that come much later
        self.by_age: Any = None  # how well it ranks rows by how much later they come
        self.session: Any = None  # what it takes single rows by

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


# Forks -------------------------------------------------------------------------------------------
#
# A child process has only the thread that forked. A lock that another thread of the parent held stays locked
# in the child for good, and what the thread was changing stays as it was at that moment. To take all locks
# before each fork would let forks wait for as long as rankers learn, minutes in a fit.

_EVERY: WeakSet[Own] = WeakSet()


class _HeldInParent:
    """In a child process, the lock of an object that a thread of the parent was changing."""

    def __enter__(self) -> NoReturn:
        raise RuntimeError(
            "This object was being changed by a thread of the parent process when this process was "
            "forked, and may be half changed here: neither learn into it, nor copy or save it. Copy or "
            "save it before the fork, fork while no thread learns, or start processes by 'spawn' or "
            "'forkserver'."
        )

    def __exit__(self, *_: object) -> None:
        """Do nothing: there is no way in."""


def _mark_held() -> None:
    for own in [*_EVERY]:
        lock: Any = own.lock
        if isinstance(lock, _HeldInParent):
            continue
        if lock.acquire(blocking=False):  # it is free, or this thread's own
            lock.release()
        else:
            own.lock = _HeldInParent()


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_mark_held)


_Owner = TypeVar("_Owner")


def copied(owner: _Owner, memo: dict[int, Any]) -> _Owner:
    """Return a deep copy of an object that has a lock, made while nobody changes it."""
    kind: Any = type(owner)
    memo[id(owner)] = twin = kind.__new__(kind)
    with undisturbed([owner]):
        state = deepcopy(owner.__getstate__(), memo)
    getattr(twin, "__setstate__", twin.__dict__.update)(state)
    found: _Owner = twin
    return found


def state_of(owner: Any, state: Callable[[], Any]) -> dict[str, Any]:
    """Return what a pickle of an object that has a lock holds, given its state, while nobody changes it."""
    with undisturbed([owner]):
        held = dict(state())
    held.pop("_own", None)
    return held


class Owner:
    """Base of objects that threads change one after the other, each while it holds the lock."""

    _own: Own
    __deepcopy__ = copied

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:  # noqa: ARG004
        self = super().__new__(cls)
        self._own = Own()
        return self

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, super().__getstate__)


@contextmanager
def undisturbed(objects: Iterable[Any]) -> Iterator[None]:
    """Hold the locks of those objects that have one."""
    with ExitStack() as stack:
        for item in objects:
            if isinstance(own := getattr(item, "_own", None), Own):
                stack.enter_context(own.lock)
        yield
