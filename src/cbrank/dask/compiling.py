"""Kernels compiled once on each machine, and the client told of it.

What one process compiles the next finds on disk, so the first call of a kernel is made by one
process of a machine at a time.
"""

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client, Lock, get_worker

_TOPIC = "cbrank"
_log = logging.getLogger("cbrank")
_ready: set[str] = set()
_turn = threading.Lock()


@contextmanager
def one_at_a_time(kernel: str) -> Iterator[None]:
    """Call a kernel; for the first time in this process while no other one of the machine does."""
    if kernel in _ready:
        yield
        return
    with _turn, Lock(f"cbrank-{kernel}-{socket.gethostname()}"), _heard_by_client():
        yield
    _ready.add(kernel)


def tell_client(sentence: str) -> None:
    """Tell the client something, from within a task."""
    get_worker().log_event(_TOPIC, sentence)


@contextmanager
def _heard_by_client() -> Iterator[None]:
    """Hand what this thread logs to the client, who may not see the logs of workers."""
    own = threading.get_ident()

    def hand_over(record: logging.LogRecord) -> bool:
        if record.thread != own:
            return True
        tell_client(record.getMessage())
        return False

    _log.addFilter(hand_over)
    try:
        yield
    finally:
        _log.removeFilter(hand_over)


@contextmanager
def hearing(client: Client) -> Iterator[None]:
    """Log what workers tell meanwhile, each sentence once."""
    told: set[str] = set()

    def log(event: tuple[float, Any]) -> None:
        if event[1] not in told:
            told.add(event[1])
            _log.warning("cbrank: %s", str(event[1]).removeprefix("cbrank: "))

    client.subscribe_topic(_TOPIC, log)
    try:
        yield
    finally:
        if client.status == "running":
            client.unsubscribe_topic(_TOPIC)
