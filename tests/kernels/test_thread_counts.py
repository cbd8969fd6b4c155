"""The same rows give the same bytes, however many threads matrix products could use."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from cbrank import kernels

pytestmark = pytest.mark.slow

_LEARN = """
import hashlib
import numpy as np
import cbrank
digest = hashlib.sha256()
for d in (192, 300):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(300, d))
    y = (X[:, :9].sum(axis=1) + rng.normal(size=300) > 0).astype(int)
    for parameters in ({"C": 0.1}, {"C": 0.1, "forgetting": 0.01}):
        halves = [cbrank.CBRanker(**parameters).partial_fit(X[rows], y[rows])
                  for rows in (slice(0, 150), slice(150, 300))]
        for ranker in (*halves, cbrank.merge(halves)):
            digest.update(ranker.coef_.tobytes() + ranker.covariance_.tobytes())
print(digest.hexdigest())
"""


def test_bytes_do_not_depend_on_the_number_of_threads():
    found = set()
    for threads in ("1", "2", "4"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        told = subprocess.run(
            [sys.executable, "-c", _LEARN],
            env={**os.environ, **dict.fromkeys(names, threads)},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(told.stdout)
    assert len(found) == 1


def test_the_number_of_threads_comes_back():
    def counts():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(2):
        before = counts()
        with kernels.threads.one_thread:
            with kernels.threads.one_thread:
                assert set(counts()) == {1}
            assert set(counts()) == {1}
        assert counts() == before


def test_one_thread_is_kept_to_from_any_python_thread():
    def inside():
        with kernels.threads.one_thread:
            return [library.get_num_threads() for library in kernels.threads._libraries()]

    before = [library.get_num_threads() for library in kernels.threads._libraries()]
    inside()  # threadpoolctl would obey this thread alone from here on
    with ThreadPoolExecutor(1) as pool:
        assert set(pool.submit(inside).result()) == {1}
    assert [library.get_num_threads() for library in kernels.threads._libraries()] == before
