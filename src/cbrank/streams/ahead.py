"""Reading ahead while the chunk before is learned."""

import contextlib
import queue
import threading
from collections.abc import Generator
from typing import Any, TypeVar

Item = TypeVar("Item")

_DEPTH = 2
_PATIENCE = 0.5  # seconds; a thread that waits for standard input is left to itself


Ready = queue.SimpleQueue[Any]  # of items in tuples, of an error, and of None at the end


def read_ahead(
    items: Generator[Item, None, None], ready: Ready | None = None
) -> Generator[Item, None, None]:
    """Give the items of a generator that runs up to two items ahead in a thread of its own.

    None put into `ready`, by whoever has it, ends that also while an item is waited for.

    Examples
    --------
    >>> list(read_ahead(number for number in range(3)))
    [0, 1, 2]
    """
    ready = queue.SimpleQueue() if ready is None else ready
    wanted = threading.Semaphore(_DEPTH)
    stopped = threading.Event()
    thread = threading.Thread(
        target=_work, args=(items, ready, wanted, stopped), name="cbrank-reader", daemon=True
    )
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            wanted.release()
            yield item[0]
    finally:
        stopped.set()
        wanted.release()
        thread.join(_PATIENCE)


def _work(
    items: Generator[Item, None, None],
    ready: Ready,
    wanted: threading.Semaphore,
    stopped: threading.Event,
) -> None:
    try:
        with contextlib.closing(items):
            while wanted.acquire() and not stopped.is_set():
                ready.put((next(items),))
    except StopIteration:
        ready.put(None)
    except BaseException as error:  # noqa: BLE001
        ready.put(error)
