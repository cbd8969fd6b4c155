"""The client of a cluster."""

from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager

from distributed import Client, KilledWorker, default_client
from distributed.client import ClosedClientError

_PATIENCE = "5s"


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
            "The client is asynchronous, and learning waits for it: make one that is not."
        )
    return found


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Connect to a scheduler; one that does not answer soon, or loses workers, is a ValueError."""
    try:
        client = Client(address, timeout=_PATIENCE)
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
                f"a task was given up after {error.allowed_failures + 1} workers were lost over it, "
                "perhaps for want of memory: give workers more of it, or make partitions smaller."
            ) from error
        except (CancelledError, ClosedClientError) as error:
            raise ValueError(
                f"the scheduler at {address} was lost or restarted meanwhile: start it, and then this "
                "again."
            ) from error
