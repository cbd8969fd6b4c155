"""Rows in random order: each once, by the seed alone, in little memory."""

import errno
import tempfile
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from cbrank.training import shuffling
from cbrank.training.shuffling import AT_ONCE, Buckets

ROWS = 1000


def rows(kind, count=ROWS, width=3):
    """Return rows whose first feature is their number, from 1."""
    X = np.zeros((count, width))
    X[:, 0], X[::2, 2] = np.arange(1, count + 1), 1.0
    return (X if kind == "dense" else sparse.csr_array(X)), (np.arange(count) % 3 == 0).astype(int)


def numbers(X):
    return np.asarray(X[:, [0]].todense() if sparse.issparse(X) else X[:, [0]]).ravel().tolist()


def spread(kind, chunk=ROWS, seed=(0, 0)):
    X, y = rows(kind)
    with Buckets(seed) as buckets:
        for begin in range(0, ROWS, chunk):
            buckets.add(X[begin : begin + chunk], y[begin : begin + chunk])
        assert buckets.rows == ROWS
        return [
            pair
            for X, y in buckets.shuffled(3)
            for pair in zip(numbers(X), y.tolist(), strict=True)
        ]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_buckets_give_each_row_once_in_an_order_that_chunks_do_not_change(kind):
    expected = spread(kind)
    assert sorted(expected) == [(row + 1.0, int(row % 3 == 0)) for row in range(ROWS)]
    assert spread(kind, chunk=7) == expected
    assert spread(kind, seed=(1, 0)) != expected
    assert spread(kind, seed=(0, 1)) != expected


def test_rows_come_in_chunks_as_large_as_those_of_a_stream(monkeypatch):
    monkeypatch.setattr(shuffling, "AT_ONCE", 300)
    X, y = rows("dense")
    with Buckets((0,)) as buckets:
        buckets.add(X, y)
        sizes = [len(y) for _, y in buckets.shuffled(3)]
    assert sum(sizes) == ROWS
    assert max(sizes) <= 300
    assert len(sizes) == 4


def test_features_that_appear_late_widen_the_rows():
    with Buckets((0,)) as buckets:
        buckets.add(*rows("sparse", 2, 3))
        buckets.add(*rows("sparse", 5, 8))
        [(X, _)] = buckets.shuffled(9)
    assert X.shape == (7, 9)
    assert sorted(numbers(X)) == [1, 1, 2, 2, 3, 4, 5]


def test_buckets_that_are_too_large_are_spread_again(monkeypatch):
    monkeypatch.setattr(shuffling, "CHUNK_BYTES", 100)
    monkeypatch.setattr(shuffling, "_IN_MEMORY", 10)
    for kind in ("dense", "sparse"):
        found = spread(kind)
        assert sorted(found) == [(row + 1.0, int(row % 3 == 0)) for row in range(ROWS)]
    monkeypatch.setattr(shuffling, "CHUNK_BYTES", 1)  # of single rows too
    assert len(spread("dense")) == ROWS


def test_all_orders_are_equally_likely(monkeypatch):
    monkeypatch.setattr(shuffling, "_BUCKETS", 2)
    X, y = rows("dense", 3)
    counts = dict[tuple[float, ...], int]()
    for seed in range(1200):
        with Buckets((seed,)) as buckets:
            buckets.add(X, y)
            order = tuple(number for X_, _ in buckets.shuffled(3) for number in numbers(X_))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert all(abs(count - 200) < 5 * np.sqrt(200) for count in counts.values())


def test_memory_does_not_grow_with_the_rows(monkeypatch):
    monkeypatch.setattr(shuffling, "CHUNK_BYTES", 2**20)
    monkeypatch.setattr(shuffling, "_IN_MEMORY", 2**10)
    X, y = np.ones((AT_ONCE, 8)), np.ones(AT_ONCE, np.int64)

    tracemalloc.start()
    with Buckets((0,)) as buckets:
        for _ in range(50):
            buckets.add(X, y)
        assert sum(len(labels) for _, labels in buckets.shuffled(8)) == 50 * AT_ONCE
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 50 * (X.nbytes + y.nbytes) / 2


def test_a_full_disk_is_a_sentence_with_its_cure(monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shuffling, "write_array", full)
    with Buckets((0,)) as buckets, pytest.raises(OSError, match="TMPDIR names another") as caught:
        buckets.add(*rows("dense"))
    assert caught.value.filename == tempfile.gettempdir()
