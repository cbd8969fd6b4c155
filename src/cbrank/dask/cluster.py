"""The cluster as the client sees it: connecting, messages of workers, and a progress bar."""

import logging
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

import click
from distributed import (
    Client,
    Future,
    KilledWorker,
    Lock,
    as_completed,
    default_client,
    get_worker,
)
from distributed.client import ClosedClientError

_TIMEOUT = "5s"  # a scheduler that is there answers within milliseconds
_TOPIC = "cbrank"  # of the events by which workers report to the client
_log = logging.getLogger("cbrank")

# Connecting ---------------------------------------------------------------------------------------


def client_or_default(client: Client | None) -> Client:
    """Return the client given, or the one that was made last."""
    try:
        found = default_client() if client is None else client
    except ValueError:
        raise ValueError(
            "There is no Dask client: make one by `from dask.distributed import Client; client = "
            "Client()` for this machine or `Client(ADDRESS)` for a cluster, or pass client=."
        ) from None
    if found.asynchronous:
        raise ValueError(
            "The client is asynchronous, and fit waits for its results: make one with "
            "asynchronous=False."
        )
    return found


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Connect to a scheduler; one that does not answer soon, or loses workers, is a ValueError."""
    try:
        client = Client(address, timeout=_TIMEOUT)
    except (OSError, TypeError, ValueError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {address!r} ({error}): give the address that "
            "`dask scheduler` prints, such as tcp://10.0.0.1:8786."
        ) from error
    with client:
        try:
            yield client
        except KilledWorker as error:
            raise ValueError(
                f"a task was given up after {error.allowed_failures + 1} workers died while they ran "
                "it, perhaps for lack of memory: give workers more memory, or make partitions "
                "smaller."
            ) from error
        except (CancelledError, ClosedClientError) as error:
            raise ValueError(
                f"the scheduler at {address} was lost or restarted meanwhile: start it, and try "
                "again."
            ) from error


# Compiling once on each machine, and what workers report ------------------------------------------

_compiled: set[str] = set()  # what this process need not wait for any more
_first_call = threading.Lock()


@contextmanager
def compiled_once(name: str) -> Iterator[None]:
    """Run code that compiles kernels at its first call, one process of a machine at a time.

    The others wait, and then load from Numba's cache on disk what the first has compiled.
    """
    if name in _compiled:
        yield
        return
    with _first_call, Lock(f"cbrank-{name}-{socket.gethostname()}"), _logging_to_client():
        yield
    _compiled.add(name)


def tell_client(message: str) -> None:
    """Send a message from a task to the client, which logs it."""
    get_worker().log_event(_TOPIC, message)


@contextmanager
def _logging_to_client() -> Iterator[None]:
    """Send what this thread logs to the client, where people see it, and not to the worker's log."""
    own = threading.get_ident()

    def redirect(record: logging.LogRecord) -> bool:
        if record.thread != own:
            return True
        tell_client(record.getMessage())
        return False

    _log.addFilter(redirect)
    try:
        yield
    finally:
        _log.removeFilter(redirect)


@contextmanager
def messages_logged(client: Client) -> Iterator[None]:
    """Log on the client what workers report meanwhile, each message once."""
    logged: set[str] = set()

    def log(event: tuple[float, Any]) -> None:
        if event[1] not in logged:
            logged.add(event[1])
            _log.warning("cbrank: %s", str(event[1]).removeprefix("cbrank: "))

    client.subscribe_topic(_TOPIC, log)
    try:
        yield
    finally:
        if client.status == "running":
            client.unsubscribe_topic(_TOPIC)


# Progress -----------------------------------------------------------------------------------------


def at_terminal() -> bool:
    """Say whether a progress bar would be seen: whether standard error is a terminal."""
    return sys.stderr.isatty()


def show_progress(client: Client, label: str, counts: Sequence[Future]) -> None:
    """Show a bar of the partitions that are done, with rows per second, until all are.

    Parameters
    ----------
    client : Client
        Whose futures these are.
    label : str
        What stands before the bar.
    counts : sequence of Future
        Rows learned from, one number for each partition.
    """
    rows, began = 0, time.monotonic()
    bar = click.progressbar(
        length=len(counts),
        label=label,
        show_pos=True,
        file=sys.stderr,
        item_show_func=lambda speed: "" if speed is None else f"{speed:,} rows/s",
    )
    with bar:
        for _, count in as_completed(counts, loop=client.loop, with_results=True):
            rows += count
            bar.update(1, round(rows / max(time.monotonic() - began, 1e-9)))
