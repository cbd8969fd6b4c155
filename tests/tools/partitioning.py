"""Rows in partitions, and what a cluster must make of them."""

import sys

import cloudpickle
import dask.array as da
import numpy as np
from dask.distributed import Client

from cbrank import CBRanker, merge
from cbrank.dask.tasks import tree_reduced

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not find the tests

WIDTH = 4


def in_process(workers):
    return Client(processes=False, n_workers=workers, threads_per_worker=1, dashboard_address=":0")


def some_rows(rows, seed=0):
    rng = np.random.RandomState(seed)
    y = (rng.random_sample(rows) < 0.3).astype(int)
    return rng.standard_normal((rows, WIDTH)) + y[:, None] * [1.0, 0.5, 0.0, 0.0], y


def partitioned(lengths, seed=0):
    """Return the same rows in memory, as a list of parts, and as dask arrays."""
    X, y = some_rows(sum(lengths), seed)
    ends = np.cumsum(lengths)[:-1]
    rows = da.from_array(X, chunks=(tuple(lengths), WIDTH))
    labels = da.from_array(y, chunks=(tuple(lengths),))
    return list(zip(np.split(X, ends), np.split(y, ends), strict=True)), rows, labels


def merged_by_hand(parts, **parameters):
    """Learn from each part in its order and merge: what the cluster does, without it."""
    rankers = [CBRanker(**parameters).partial_fit(X, y, classes=[0, 1]) for X, y in parts if len(y)]
    return tree_reduced(rankers, merge)


def assert_same(one, other):
    """Say that two rankers are the same to the last bit."""
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.covariance_, other.covariance_)
    np.testing.assert_array_equal(one.n_seen_, other.n_seen_)
    assert (one.n_pairs_, one.n_updates_) == (other.n_pairs_, other.n_updates_)
    for name in ("progressive_auc_", "recent_auc_", "progressive_auc_history_"):
        np.testing.assert_equal(getattr(one, name), getattr(other, name))
    assert one.intercept_ == other.intercept_


def assert_close(one, other):
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(one.covariance_, other.covariance_, rtol=1e-7, atol=1e-10)
    np.testing.assert_array_equal(one.n_seen_, other.n_seen_)
    assert one.n_pairs_ == other.n_pairs_


def never():
    raise AssertionError("computed too early")
