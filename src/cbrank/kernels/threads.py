"""One BLAS thread during matrix products, for the sake of reproducibility.

BLAS splits large products among its threads, and the split changes the last bits of the sums. With
another ``OMP_NUM_THREADS``, or on a machine with other cores, the same rows would give another model,
and a run that is killed and resumed would not end with the bytes of one that was not.
"""

import functools
import importlib
import threading
from typing import Any

from threadpoolctl import ThreadpoolController


class _OneThread:
    """A context manager that keeps BLAS to one thread while any Python thread is inside.

    threadpoolctl's own limits are restored by whoever leaves first; hence the count. An interrupt
    on the way in or out must not leave BLAS at one thread for good.
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
                        library.set_num_threads(1)
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
                except BaseException:  # interrupted half way: do it again, then raise
                    self._give_back()
                    raise

    def _give_back(self) -> None:
        for library, threads in self._before:
            library.set_num_threads(threads)


@functools.cache
def _libraries() -> list[Any]:
    """Return the BLAS libraries of NumPy and of SciPy; Numba's ``np.dot`` calls the latter."""
    importlib.import_module("scipy.linalg.cython_blas")
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


one_thread = _OneThread()
