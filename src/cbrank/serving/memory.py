"""The memory of requests: one budget for bodies, decoded rows, queued jobs and answers.

A request reserves before its body is buffered, again before the body is decoded, and returns everything
when it is answered and its job is done. What a body takes once it is decoded is estimated by what can be
counted in it beforehand, as it may take a hundred times its size; the constants are upper bounds of what
was measured, and `tests/serving/test_memory.py` compares them with what decoding takes.
"""

import asyncio
import ctypes
import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from cbrank.serving.errors import Refused

T = TypeVar("T")

LARGE = 64 << 10  # bytes; larger bodies are decoded in a thread, a few at a time
# A model is checked and opened while its file is in memory: SECURITY.md promises four times its size.
MODEL_TIMES = 5
ANSWER = 1000  # bytes of a row in an answer: objects, with an id, and JSON
_CELL, _NESTED = 120, 200  # bytes of a cell with its place in a row, and of a row or list
_LINE = 550  # bytes of a line of CSV beside its cells: a list and two dicts
_BINARY_CELL, _BINARY_ROW = 80, 240
# What glibc's malloc is told: blocks of this size are returned when they are freed, the end of the heap only
# beyond so much (and by `trim`), and threads share heaps, each of which keeps what was freed in it.
_MALLOC = {-3: 1 << 20, -1: 64 << 20, -8: 2}  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_ARENA_MAX
_READER = ThreadPoolExecutor(1, "reader")


class Counted(Protocol):
    """Where the memory in use is counted."""

    memory: int
    memory_limit: int


class Memory:
    """How many bytes all requests may take together.

    Parameters
    ----------
    limit : int
        Bytes.
    counts : Counts
        Has `memory`, what is reserved, and `memory_limit`.

    Examples
    --------
    >>> from cbrank.serving.counts import Counts
    >>> memory = Memory(1000, Counts())
    >>> one, other = memory.reservation(), memory.reservation()
    >>> one.take(700)
    >>> other.take(400)
    Traceback (most recent call last):
    ...
    cbrank.serving.errors.Refused: requests take all the memory that they may: try again.
    >>> one.release()
    False
    >>> other.take(400)
    """

    def __init__(self, limit: int, counts: Counted) -> None:
        self.limit, self._counts, self._lock = limit, counts, threading.Lock()
        self._bodies = 0
        counts.memory_limit = limit

    def reservation(self) -> "Reservation":
        """Return what a request reserves by."""
        return Reservation(self)

    def add(self, size: int, body: int = 0) -> None:
        """Reserve, or refuse; from any thread. So much of it is for a body that arrives."""
        with self._lock:
            self.refuse_beyond(size, body)
            self._counts.memory += size
            self._bodies += body

    def refuse_beyond(self, size: int, body: int = 0) -> None:
        """Refuse what cannot be reserved: with 503 if it is in use, with 413 if there never is so much."""
        # Half is for what is decoded: bodies that arrive together could fill all, and none be answered.
        if size > self.limit or body > self.limit // 2:
            raise Refused(
                413,
                f"this request would take about {_mib(size)} of memory, and all requests together may "
                f"take {_mib(self.limit)}: send fewer rows at a time.",
            )
        if self._counts.memory + size > self.limit or self._bodies + body > self.limit // 2:
            again = {"retry-after": "1"}
            sentence = "requests take all the memory that they may: try again."
            raise Refused(503, sentence, headers=again)

    def remove(self, size: int, body: int) -> bool:
        """Return what was reserved; say whether this was the last of the bodies."""
        with self._lock:
            self._counts.memory -= size
            self._bodies -= body
            return body > 0 and self._bodies == 0


class Reservation:
    """What one request has reserved."""

    __slots__ = ("_body", "_memory", "_size")

    def __init__(self, memory: Memory) -> None:
        self._memory, self._size, self._body = memory, 0, 0

    def take(self, size: int) -> None:
        """Reserve more bytes, or refuse.

        Parameters
        ----------
        size : int
            Bytes beside those reserved before.

        Raises
        ------
        Refused
            With 503 if they are in use, and with 413 if there never are so many.
        """
        self._memory.add(size)
        self._size += size

    def take_body(self, size: int) -> None:
        """Reserve for bytes of a body that arrives, or refuse."""
        self._memory.add(size, body=size)
        self._size += size
        self._body += size

    def refuse_body(self, size: int) -> None:
        """Refuse a body of this size at once if there is no room for it now."""
        self._memory.refuse_beyond(size, body=size)

    def release(self) -> bool:
        """Return all; say whether no request has a large body any more."""
        is_last = self._size > 0 and self._memory.remove(self._size, self._body)
        self._size = self._body = 0
        return is_last


async def apart(body: bytes, read: Callable[..., T], *arguments: Any) -> T:
    """Call what reads a body: in a thread if the body is large, so that others are answered meanwhile."""
    if len(body) <= LARGE:
        return read(*arguments)
    return await in_reader(read, *arguments)


async def in_reader(read: Callable[..., T], *arguments: Any) -> T:
    """Call a function in the thread that reads large bodies; one, as decoders keep others from running."""
    return await asyncio.get_running_loop().run_in_executor(_READER, read, *arguments)


# Estimates ---------------------------------------------------------------------------------------


def of_json(body: bytes) -> int:
    """Return how many bytes a JSON text takes when it is decoded, at most.

    Examples
    --------
    >>> of_json(b'{"rows": [{"age": 31, "city": "Oslo"}]}')
    798
    """
    # One character beyond ASCII makes all characters of its string take up to four bytes.
    wide = not body.isascii() or b"\\u" in body
    nested = body.count(b"{") + body.count(b"[")
    return (5 if wide else 2) * len(body) + _CELL * body.count(b",") + _NESTED * nested


def of_csv(body: bytes) -> int:
    """Return how many bytes a table in CSV takes when it is decoded, at most."""
    lines = body.count(b"\n") + body.count(b"\r")
    return 6 * len(body) + _CELL * body.count(b",") + _LINE * lines


def of_tensor(rows: int, cells: int, size: int) -> int:
    """Return how many bytes a binary tensor of `size` bytes takes when it is decoded, at most."""
    # A text of one byte has a length of four before it, and no number is shorter than a byte.
    return 5 * size + _BINARY_CELL * min(cells, size) + _BINARY_ROW * min(rows, size)


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB" if size >= 2**20 else f"{size:,} bytes"


# The process --------------------------------------------------------------------------------------


def _libc() -> Any:
    """Return the C library if it is glibc, whose malloc these functions are for, or None."""
    try:
        library = ctypes.CDLL(None)
        return library if hasattr(library, "gnu_get_libc_version") else None
    except (OSError, TypeError):  # as on Windows
        return None


def keep_less() -> None:
    """Let malloc return large blocks to the system when they are freed, whichever thread had them."""
    if (library := _libc()) is not None:
        for option, value in _MALLOC.items():
            library.mallopt(option, value)


def trim() -> None:
    """Return to the system what is kept for later: by cycles of young objects, and by malloc."""
    gc.collect()
    if (library := _libc()) is not None:
        library.malloc_trim(0)
