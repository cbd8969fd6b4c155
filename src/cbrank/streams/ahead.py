"""A generator that runs ahead in a thread: a chunk is read while the one before is learned."""

import contextlib
import queue
import threading
from collections.abc import Generator
from typing import Any, TypeVar

Item = TypeVar("Item")

_DEPTH = 2  # items ahead: one that is ready, and one that is being read
# Seconds to wait for the thread at the end. It may be blocked in reading standard input, which cannot
# be interrupted; as a daemon thread it then ends with the process.
_PATIENCE = 0.5


Ready = queue.SimpleQueue[Any]  # of items in 1-tuples, then of an error or, at the end, None


def read_ahead(
    items: Generator[Item, None, None], ready: Ready | None = None
) -> Generator[Item, None, None]:
    """Yield the items of a generator that runs up to two items ahead in a thread.

    Anyone who puts None into `ready` ends it, also while it waits for an item.

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
