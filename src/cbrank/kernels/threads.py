"""One BLAS thread during matrix products, for the sake of reproducibility.

BLAS splits large products among its threads, and the split changes the last bits of the sums. With
another ``OMP_NUM_THREADS``, or on a machine with other cores, the same rows would give another model,
and a run that is killed and resumed would not end with the bytes of one that was not.
"""

import functools
import importlib
import os
import threading
from typing import Any

from threadpoolctl import ThreadpoolController


class _OneThread:
    """A context manager that keeps BLAS to one thread while any Python thread is inside.

    threadpoolctl's own limits are restored by whoever leaves first; hence the count. An interrupt
    on the way in or out must not leave BLAS at one thread for good, and neither must a fork while other
    threads are inside.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: list[tuple[Any, int]] = []
        if hasattr(os, "register_at_fork"):  # Windows has no forks
            os.register_at_fork(after_in_child=self._leave_in_child)

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
            self._inside = max(self._inside - 1, 0)  # 0 if this thread forked while inside
            if not self._inside:
                try:
                    self._give_back()
                except BaseException:  # interrupted half way: do it again, then raise
                    self._give_back()
                    raise

    def _leave_in_child(self) -> None:
        """Leave in place of threads that a forked process does not have."""
        self._lock = threading.Lock()
        if self._inside:
            self._inside = 0
            self._give_back()

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
    """Return the BLAS libraries of NumPy and of SciPy; Numba's ``np.dot`` calls the latter."""
    importlib.import_module("scipy.linalg.cython_blas")
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


one_thread = _OneThread()
