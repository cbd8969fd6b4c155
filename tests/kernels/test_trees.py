"""Trees of decisions against a slow plain reading of how they grow."""

import numpy as np
import pytest
import tree_oracles
from hypothesis import given, settings
from hypothesis import strategies as st

from cbrank import kernels
from cbrank.features.forests import Columns, Forest
from cbrank.kernels.trees import BINS, NO_NODE, Growth, Nodes

NO_COLUMNS = Columns(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((2, 0), np.int64))


def rows(seed, size=160):
    """Columns of numbers, with and without missing values, one mostly of zeros, one without any value."""
    random = np.random.RandomState(seed)
    X = random.standard_normal((size, 6))
    X[random.uniform(size=size) < 0.3, 1] = np.nan
    X[random.uniform(size=size) < 0.8, 2] = 0.0
    X[:, 3], X[:, 4] = 1.0, np.nan
    score = X[:, 0] * X[:, 5] + np.isnan(X[:, 1]) + (X[:, 2] > 0.5)
    labels = (score + 0.5 * random.standard_normal(size) > 0.5).astype(np.int64)
    thresholds = [np.array([-1.2, -0.4, 0.0, 0.5, 1.1])] * 3 + [np.zeros(0)] * 2
    return X, [*thresholds, np.array([-0.8, 0.1, 0.2, 0.9])], labels, random.uniform(0.5, 2.0, size)


def forest_of(nodes, roots, count, thresholds):
    """The trees as they are read."""
    nodes = Nodes(*(array[:count] for array in nodes))
    ends = np.zeros(count)
    for node in np.flatnonzero(nodes.left >= 0):
        code = nodes.bin[node]
        ends[node] = thresholds[nodes.column[node]][code - 1] if code else -np.inf
    own = nodes.column, ends, nodes.missing, nodes.left, nodes.value, nodes.cover
    return Forest(NO_COLUMNS, *own, roots, 1.0)


# Growing ------------------------------------------------------------------------------------------

GROWTH = Growth(leaves=7, rows=12, hessian=1e-3, tried=6)


def boosted(X, thresholds, labels, weights, held, growth=GROWTH):
    nodes, roots = tree_oracles.room(5, 2 * growth.leaves - 1)
    leaves = np.full((len(X), 5), NO_NODE, np.int32)
    binned, random = tree_oracles.binned(X, thresholds), np.array([1], np.uint64)
    count = kernels.trees.boost(
        binned, labels, weights, held, 0.3, growth, nodes, roots, leaves, random
    )
    return forest_of(nodes, roots, count, thresholds), leaves, nodes


@settings(max_examples=16)
@given(
    st.integers(0, 999),
    st.sampled_from([0.0, 0.25]),
    st.sampled_from([GROWTH, GROWTH._replace(leaves=99)]),
)
def test_boosted_trees_are_those_of_the_oracle(seed, share, growth):
    X, thresholds, labels, weights = rows(seed)
    held = np.random.RandomState(seed).uniform(size=len(X)) < share
    forest, leaves, nodes = boosted(X, thresholds, labels, weights, held, growth)
    codes = tree_oracles.binned(X, thresholds).codes
    found = tree_oracles.check_boosted(
        codes, labels, weights, held, 0.3, growth, nodes, forest.roots
    )
    assert found == forest.width > 5
    np.testing.assert_array_equal(leaves[held], forest.leaves_of(X)[held])
    assert (leaves[~held] == NO_NODE).all()


def test_leaves_have_as_much_of_the_second_derivatives_as_was_asked_for():
    X, thresholds, labels, weights = rows(0)
    growth = GROWTH._replace(rows=1, hessian=6.0)
    forest, _, nodes = boosted(X, thresholds, labels, weights, np.zeros(160, bool), growth)
    codes = tree_oracles.binned(X, thresholds).codes
    held = np.zeros(160, bool)
    tree_oracles.check_boosted(codes, labels, weights, held, 0.3, growth, nodes, forest.roots)
    assert forest.cover[forest.left < 0].min() < 40


@settings(max_examples=16)
@given(
    st.integers(0, 999),
    st.sampled_from([1, 3, 6]),
    st.sampled_from([Growth(9, 6, 0.0, 0), Growth(99, 9, 0.0, 0)]),
)
def test_bagged_trees_are_those_of_the_oracle(seed, tried, growth):
    X, thresholds, labels, weights = rows(seed)
    growth = growth._replace(tried=tried)
    nodes, roots = tree_oracles.room(4, 2 * len(X) - 1)
    leaves = np.full((len(X), 4), NO_NODE, np.int32)
    binned, random = tree_oracles.binned(X, thresholds), np.array([seed + 1], np.uint64)
    count = kernels.trees.bag(binned, labels, weights, growth, nodes, roots, leaves, random)
    found, sampled = tree_oracles.check_bagged(
        binned.codes, labels, weights, growth, nodes, roots, seed + 1
    )
    assert count == found > 4
    reached = forest_of(nodes, roots, count, thresholds).leaves_of(X)
    np.testing.assert_array_equal(leaves, np.where(sampled, NO_NODE, reached))


def test_growth_is_deterministic_and_changes_no_rows():
    X, thresholds, labels, weights = rows(0)
    binned, known = tree_oracles.binned(X, thresholds), (labels, weights)
    before = [array.copy() for array in (*binned, *known)]
    trees = []
    for _ in range(2):
        nodes, roots = tree_oracles.room(3, 2 * len(X) - 1)
        leaves, random = np.full((len(X), 3), NO_NODE, np.int32), np.array([7], np.uint64)
        growth = Growth(len(X), 1, 0.0, 2)
        count = kernels.trees.bag(binned, *known, growth, nodes, roots, leaves, random)
        trees.append([*(array[:count] for array in nodes), roots, leaves, random])
    for one, other in zip(*trees, strict=True):
        np.testing.assert_array_equal(one, other)
    for array, was in zip((*binned, *known), before, strict=True):
        np.testing.assert_array_equal(array, was)


# Reading ------------------------------------------------------------------------------------------

ENDS = [-np.inf, -1.7e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1.7e308]
VALUES = [*ENDS, np.nextafter(1.0, 2.0), np.nextafter(-1.0, -2.0), np.inf, np.nan]


@st.composite
def forests(draw):
    """Trees of any shape, of two columns."""
    left, roots = [], []
    for _ in range(draw(st.integers(1, 3))):
        roots.append(len(left))
        left.append(-1)
        for _ in range(draw(st.integers(0, 6))):
            leaves = [at for at in range(roots[-1], len(left)) if left[at] < 0]
            left[draw(st.sampled_from(leaves))] = len(left)
            left += [-1, -1]
    size = len(left)
    inner = np.array(left) >= 0
    column = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    threshold = draw(st.lists(st.sampled_from(ENDS), min_size=size, max_size=size))
    missing = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    return Forest(
        NO_COLUMNS,
        np.where(inner, column, -1).astype(np.int32),
        np.where(inner, threshold, 0.0),
        np.array(missing),
        np.array(left, np.int32),
        np.zeros(size),
        np.ones(size),
        np.array(roots, np.int32),
        1.0,
    )


@given(forests(), st.lists(st.tuples(*[st.sampled_from(VALUES)] * 2), max_size=9))
def test_leaves_are_those_of_a_plain_walk(forest, cells):
    X = np.array(cells, np.float64).reshape(-1, 2)
    walks = [[tree_oracles.leaf_of(row, forest, root) for root in forest.roots] for row in X]
    found = forest.leaves_of(X)
    np.testing.assert_array_equal(found, np.array(walks).reshape(found.shape))


# Bins and means -----------------------------------------------------------------------------------


def last_of_bins(counts):
    last = np.empty(BINS, np.int64)
    return last[: kernels.trees.last_of_bins(np.array(counts, np.int64), last)]


@given(st.lists(st.sampled_from([1, 7, 40, 300, 900]), max_size=200))
def test_each_value_has_a_bin(counts):
    last = last_of_bins(counts)
    assert len(last) <= BINS - 1
    assert (np.diff(last) > 0).all()
    assert not counts or last[-1] == len(counts) - 1
    if len(counts) < BINS:
        np.testing.assert_array_equal(last, np.arange(len(counts)))


@pytest.mark.parametrize("light", [1, 3])
def test_bins_of_values_that_are_alike_hold_alike(light):
    last = last_of_bins([light] * 630)
    np.testing.assert_array_equal(np.diff(last, prepend=-1), 10)


@given(st.sets(st.integers(0, 299), min_size=1, max_size=20), st.integers(1000, 9000))
def test_values_of_many_rows_end_their_bins(places, many):
    counts = np.ones(300, np.int64)
    counts[[*places]] = many
    last = last_of_bins(counts)
    assert {*places} <= {*last}
    begins = np.append(0, last[:-1] + 1)
    others = [counts[a : b + 1].sum() for a, b in zip(begins, last, strict=True) if b not in places]
    assert max(others) <= 300 / (len(others) - 20)


def test_leaves_less_the_mean_of_their_tree():
    X, thresholds, labels, weights = rows(0)
    forest, *_ = boosted(X, thresholds, labels, weights, np.zeros(160, bool))
    before = np.random.RandomState(0).standard_normal(forest.width)
    after = before.copy()
    total = kernels.trees.centre(forest.left, forest.cover, forest.roots, after)
    means = []
    for begin, end in zip(forest.roots, [*forest.roots[1:], forest.width], strict=True):
        leaves = begin + np.flatnonzero(forest.left[begin:end] < 0)
        means.append(np.average(before[leaves], weights=forest.cover[leaves]))
        np.testing.assert_allclose(
            after[leaves], before[leaves] - means[-1], rtol=1e-12, atol=1e-12
        )
    np.testing.assert_array_equal(after[forest.left >= 0], before[forest.left >= 0])
    assert total == pytest.approx(sum(means), rel=1e-12)
    reached = forest.leaves_of(X)
    np.testing.assert_allclose(after[reached].mean(axis=0), 0.0, atol=1e-12)
