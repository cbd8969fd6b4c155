"""Matrix products by one thread: how many there are changes the last bits of a sum.

BLAS shares large products out among its threads, so the same rows would give other bytes under another
``OMP_NUM_THREADS`` or on other processors, and a run that was killed and resumed there another model.
"""

import functools
import importlib
import threading
from typing import Any

from threadpoolctl import ThreadpoolController


class _OneThread:
    """Keep BLAS to one thread for as long as anyone, in any thread, is inside.

    An interrupt on the way in or out takes nobody's threads away for good.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = [(library, library.get_num_threads()) for library in _libraries()]
                try:
                    for library, _ in self._before:
                        _set_threads(library, 1)
                except BaseException:
                    self._give_back()
                    raise
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                try:
                    self._give_back()
                except BaseException:
                    self._give_back()
                    raise

    def _give_back(self) -> None:
        for library, threads in self._before:
            _set_threads(library, threads)


def _set_threads(library: Any, threads: int) -> None:
    """Set how many threads a library has, from any Python thread.

    threadpoolctl from 3.8 on lets only the first Python thread that asked set them, until it is told
    that this one is done, and ignores the others.
    """
    done = getattr(library, "clear_controlling_thread", lambda **_: None)
    done(force=True)
    library.set_num_threads(threads)
    done(force=True)


@functools.cache
def _libraries() -> list[Any]:
    """Return NumPy's BLAS and SciPy's, which Numba's products use."""
    importlib.import_module("scipy.linalg.cython_blas")
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


one_thread = _OneThread()
