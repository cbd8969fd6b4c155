"""Rows in random order: each once, by the seed alone, in little memory."""

import errno
import tempfile
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from cbrank.training import shuffling
from cbrank.training.shuffling import AT_ONCE, Buckets, Window

ROWS = 1000


def rows(kind, count=ROWS, width=3):
    """Return rows whose first feature is their number, from 1."""
    X = np.zeros((count, width))
    X[:, 0], X[::2, 2] = np.arange(1, count + 1), 1.0
    return (X if kind == "dense" else sparse.csr_array(X)), (np.arange(count) % 3 == 0).astype(int)


def numbers(X):
    return np.asarray(X[:, [0]].todense() if sparse.issparse(X) else X[:, [0]]).ravel().tolist()


def windowed(kind, chunk, size, stop=None):
    """Return the numbers of the rows in the order in which they leave; stop once, and go on."""
    X, y = rows(kind)
    window, left = Window(size, (7, 0)), []
    for begin in range(0, ROWS, chunk):
        if begin == stop:
            arrays = window.to_arrays(3)
            window = Window(size, (7, 0))
            window.take_up(arrays, 3, begin)
        given, labels = window.exchange(X[begin : begin + chunk], y[begin : begin + chunk])
        assert given.shape == (len(labels), 3)
        left += zip(numbers(given), labels.tolist(), strict=True)
    while len(window):
        given, labels = window.leave(3)
        left += zip(numbers(given), labels.tolist(), strict=True)
    return left


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("size", [1, 10, 999, 1000, 5000])
def test_a_window_gives_each_row_once_in_an_order_that_chunks_do_not_change(kind, size):
    expected = windowed(kind, ROWS, size)
    assert sorted(expected) == [(row + 1.0, int(row % 3 == 0)) for row in range(ROWS)]
    for chunk, stop in ((1, None), (10, 500), (37, 37 * 3), (1000, 0)):
        assert windowed(kind, chunk, size, stop) == expected
    if size == 1:
        assert expected == sorted(expected)


def test_a_window_may_stop_while_it_empties(monkeypatch):
    monkeypatch.setattr(shuffling, "AT_ONCE", 100)
    expected = windowed("dense", ROWS, 950)
    X, y = rows("dense")
    window = Window(950, (7, 0))
    left = numbers(window.exchange(X, y)[0])
    while len(window):
        left += numbers(window.leave(3)[0])
        arrays, rest = window.to_arrays(3), len(window)
        window = Window(950, (7, 0))
        if rest:
            window.take_up(arrays, 3, ROWS)
    assert left == [number for number, _ in expected]


def test_rows_leave_a_window_after_about_as_many_as_it_holds():
    order = [number for number, _ in windowed("dense", ROWS, 100)]
    places = np.argsort(order) - np.arange(ROWS)
    assert places.min() >= -100
    assert 60 < places[:500].mean() + 100 < 140


def test_features_that_appear_late_widen_the_rows_that_leave():
    window = Window(2, (0,))
    window.exchange(*rows("sparse", 2, 3))
    X, y = window.exchange(*rows("sparse", 5, 8))
    assert X.shape == (5, 8)
    assert len(y) == 5
    assert window.leave(9)[0].shape == (2, 9)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_rows_that_wait_are_checked(kind):
    window = Window(50, (0,))
    window.exchange(*rows(kind, 20))
    arrays = window.to_arrays(3)
    window.take_up(arrays, 3, 20)
    first = next(iter(arrays))
    bad = [
        (arrays, 2, 20),
        (arrays, 3, 19),
        (arrays | {"labels": arrays["labels"][:-1]}, 3, 20),
        (arrays | {"labels": arrays["labels"] + 1}, 3, 20),
        (arrays | {first: arrays[first].astype(np.float32)}, 3, 20),
        (arrays | {first: arrays[first][None]}, 3, 20),
        ({"labels": arrays["labels"]}, 3, 20),
        (arrays | {"more": arrays["labels"]}, 3, 20),
    ]
    if kind == "sparse":
        bad += [
            (arrays | {"indices": arrays["indices"] - 1}, 3, 20),
            (arrays | {"counts": arrays["counts"] - 1}, 3, 20),
            (arrays | {"counts": arrays["counts"] * 2}, 3, 20),
            (arrays | {"counts": arrays["counts"] * 2**62}, 3, 20),
            (arrays | {"values": arrays["values"][1:]}, 3, 20),
        ]
    for changed, width, read in bad:
        with pytest.raises(ValueError):  # noqa: PT011
            Window(50, (0,)).take_up(changed, width, read)
    with pytest.raises(ValueError, match="do not fit its columns"):
        Window(19, (0,)).take_up(arrays, 3, 20)


# All rows -----------------------------------------------------------------------------------------


def spread(kind, chunk=ROWS, seed=(0, 0)):
    X, y = rows(kind)
    with Buckets(seed) as buckets:
        for begin in range(0, ROWS, chunk):
            buckets.add(X[begin : begin + chunk], y[begin : begin + chunk])
        assert buckets.rows == ROWS
        return [
            pair for X, y in buckets.mixed(3) for pair in zip(numbers(X), y.tolist(), strict=True)
        ]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_buckets_give_each_row_once_in_an_order_that_chunks_do_not_change(kind):
    expected = spread(kind)
    assert sorted(expected) == [(row + 1.0, int(row % 3 == 0)) for row in range(ROWS)]
    assert spread(kind, chunk=7) == expected
    assert spread(kind, seed=(1, 0)) != expected
    assert spread(kind, seed=(0, 1)) != expected


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
            order = tuple(number for X_, _ in buckets.mixed(3) for number in numbers(X_))
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
        assert sum(len(labels) for _, labels in buckets.mixed(8)) == 50 * AT_ONCE
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
