"""Work spread over processes."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from joblib import Parallel, delayed, parallel_config


class Workers(NamedTuple):
    """Where work is done.

    Attributes
    ----------
    jobs : int
        Processes at a time; -1 for one on each core.
    backend : str
        One of joblib's, such as "loky" or "dask".
    """

    jobs: int = -1
    backend: str = "loky"

    def unordered(self, function: Callable[..., Any], calls: Iterable[Any]) -> Iterator[Any]:
        """Yield what the function returns for each tuple of arguments, as it comes in."""
        with parallel_config(self.backend, n_jobs=self.jobs), _interrupts_blocked():
            parallel = Parallel(return_as="generator_unordered", batch_size=1)
            values = parallel(
                delayed(_call_without_interrupts)(os.getpid(), function, *call) for call in calls
            )
        yield from values


def _call_without_interrupts(parent: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; a worker process ignores interrupts from then on, its parent handles them."""
    if os.getpid() != parent and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return function(*arguments)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT while processes start, which inherit the block: this process handles Ctrl-C."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
