"""The sample of the rows of a stream: uniform, bounded, and the same under any chunking."""

import copy
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cbrank import AdditiveRanker, CBRanker, merge
from cbrank.learning import memory as memories
from cbrank.learning import record
from cbrank.modelfile import gather, restore


def splitmix(seed, number):
    """Mix a number as SplitMix64 does, one step at a time."""
    mask = 2**64 - 1
    mixed = (seed + (number + 1) * 0x9E3779B97F4A7C15) & mask
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & mask
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
    return mixed ^ (mixed >> 31)


def sample(ranker):
    """Return the rows that a ranker remembers."""
    state = ranker._learned.state
    return state.memory.rows(state.record.position)


def least(seed, rows, most):
    """Return the numbers of the rows with the least keys, in order."""
    return sorted(sorted(range(rows), key=lambda number: splitmix(seed, number))[:most])


def stream(n, d=3, seed=0):
    random = np.random.RandomState(seed)
    X = random.randn(n, d)
    return X, (X[:, 0] + random.randn(n) > 0).astype(int)


@pytest.fixture
def few(monkeypatch):
    """Let a sample have 300 rows at most."""
    monkeypatch.setattr(memories, "MOST_ROWS", 300)
    monkeypatch.setattr(memories, "_LOOSE", 20)


def test_keys_are_those_of_the_formula():
    numbers = np.array([0, 1, 17, 2**40])
    assert memories.keys_of(5, numbers).tolist() == [splitmix(5, n) for n in numbers.tolist()]


@pytest.mark.usefixtures("few")
@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(1, 2399), max_size=6), single=st.integers(0, 2399))
def test_any_chunking_keeps_the_rows_with_the_least_keys(cuts, single):
    X, y = stream(2400)
    ranker = CBRanker(random_state=0)
    ends = sorted({0, 2400, single, min(single + 5, 2400), *cuts})
    for begin, end in pairwise(ends):
        if begin == single:
            for row in range(begin, end):
                ranker.learn_one(X[row], y[row], classes=[0, 1])
        else:
            ranker.partial_fit(X[begin:end], y[begin:end], classes=[0, 1])
    rows = sample(ranker)
    expected = least(ranker._learned.state.memory.seed, 2400, 300)
    assert rows.numbers.tolist() == expected
    np.testing.assert_array_equal(rows.X, X[expected])
    np.testing.assert_array_equal(rows.labels, y[expected])
    assert (rows.weights == 1.0).all()


@pytest.mark.usefixtures("few")
def test_every_time_is_as_likely():
    X, y = stream(3000)
    counts = np.zeros(10)
    for seed in range(20):
        numbers = sample(CBRanker(random_state=seed).partial_fit(X, y)).numbers
        counts += np.histogram(numbers, 10, (0, 3000))[0]
    assert (np.abs(counts - 600) < 5 * np.sqrt(600 * 0.9)).all()


def test_rows_are_bounded_by_bytes_too(monkeypatch):
    monkeypatch.setattr(memories, "MOST_BYTES", 100 * 3 * 8)
    X, y = stream(2000)
    ranker = CBRanker(random_state=0).partial_fit(X, y)
    assert sample(ranker).numbers.tolist() == least(ranker._learned.state.memory.seed, 2000, 100)


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_arrays_and_sparse_rows_are_kept_as_they_came(as_rows, covariance):
    X, y = stream(500)
    X[np.abs(X) < 0.7] = 0.0
    kept = sample(CBRanker(covariance=covariance).partial_fit(as_rows(X), y, sample_weight=y + 0.5))
    rows = kept.X.toarray() if sparse.issparse(kept.X) else kept.X
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(kept.weights, y + 0.5)
    X[:] = 7.0  # the caller's rows are not kept by reference
    rows = kept.X.toarray() if sparse.issparse(kept.X) else kept.X
    assert not (rows == 7.0).any()


def test_rows_of_weight_zero_are_not_kept():
    X, y = stream(600)
    weights = (np.arange(600) % 3 > 0).astype(float)
    kept = sample(CBRanker().partial_fit(X, y, sample_weight=weights))
    np.testing.assert_array_equal(kept.X, X[weights > 0])


def test_a_number_for_c_keeps_no_rows():
    X, y = stream(300)
    ranker = CBRanker(C=1.0).partial_fit(X, y)
    assert ranker._learned.state.memory is None
    with pytest.raises(AttributeError, match="keeps no rows"):
        _ = ranker.auc_by_age_
    assert AdditiveRanker(C=1.0).partial_fit(X, y)._learned.state.memory is not None


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("rows", [100, 290, 1900])
@pytest.mark.parametrize("ranker", [CBRanker(), CBRanker(covariance="diagonal"), AdditiveRanker()])
def test_saved_it_goes_on_as_if_it_had_never_stopped(ranker, rows):
    X, y = stream(2500)
    straight = ranker.__class__(**ranker.get_params()).partial_fit(X[:rows], y[:rows])
    opened = restore("model", *copy.deepcopy(gather(model=straight)))
    for each in (straight, opened):
        each.partial_fit(X[rows:], y[rows:])
    ours, theirs = sample(straight), sample(opened)
    for field in ("labels", "weights", "numbers", "keys"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))
    assert (
        straight._learned.state.memory.drawn().limit == opened._learned.state.memory.drawn().limit
    )


@pytest.mark.usefixtures("few")
def test_merged_samples_are_a_sample_of_all():
    X, y = stream(4000)
    parts = [CBRanker(random_state=s).partial_fit(X[s::4], y[s::4]) for s in range(4)]
    kept = [sample(part) for part in parts]
    merged = sample(merge(parts))
    begun = [int(part._learned.state.record.position[record.ROWS]) for part in parts]
    firsts = np.cumsum([0, *begun[:-1]])
    every = {
        int(key): (int(min(number, end - 1) + first), row.tolist())
        for rows, first, end in zip(kept, firsts, begun, strict=True)
        for key, number, row in zip(rows.keys, rows.numbers, rows.X, strict=True)
    }
    expected = sorted(every[key] for key in sorted(every)[:300])
    assert merged.numbers.tolist() == [number for number, _ in expected]
    assert sorted(merged.X.tolist()) == sorted(row for _, row in expected)


@pytest.mark.parametrize(
    "change",
    [
        {"memory.labels": lambda a: a + 2},
        {"memory.weights": lambda a: -a},
        {"memory.numbers": lambda a: a[::-1].copy()},
        {"memory.numbers": lambda a: a + 10_000},
        {"memory.keys": lambda a: a[:-1]},
        {"memory.rows.values": lambda a: a * np.nan},
        {"memory.rows.values": lambda a: a[:-1]},
    ],
)
def test_forged_rows_are_refused(change):
    X, y = stream(700)
    arrays, facts = gather(model=CBRanker().partial_fit(X, y))
    for name, forge in change.items():
        arrays = arrays | {f"model.{name}": forge(arrays[f"model.{name}"])}
    with pytest.raises(ValueError, match=r"memory|block|keys"):
        restore("model", arrays, facts)


@pytest.mark.parametrize(
    "odd", [None, {}, {"seed": "x"}, {"seed": 1, "limit": -1, "kind": "dense"}]
)
def test_forged_facts_are_refused(odd):
    X, y = stream(700)
    arrays, facts = gather(model=CBRanker().partial_fit(X, y))
    with pytest.raises(ValueError, match="memory"):
        restore("model", arrays, {"model": facts["model"] | {"memory": odd}})
