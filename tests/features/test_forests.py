"""Trees of tables: their numbers and bins, and that no row has leaves of trees that it has grown."""

import warnings

import numpy as np
import pytest
import tree_oracles
from additive_tables import assert_same, part, table
from hypothesis import given
from hypothesis import strategies as st

from cbrank import AdditiveRanker
from cbrank.features import forests
from cbrank.features.encoder import TableEncoder
from cbrank.features.forests import Apart, thresholds_of
from cbrank.kernels.trees import BINS

LARGEST = np.finfo(np.float64).max

# Numbers ------------------------------------------------------------------------------------------


def encoded(X):
    """An encoder that has seen rows in random order, and the rows."""
    encoder = TableEncoder().fit(X)
    return encoder, encoder.read(X)


def forest_of(X, y, weights=None, *, folds=True, seed=0):
    """What grows from some rows: the encoder, the rows, trees, and the leaves of each row."""
    encoder, rows = encoded(X)
    weights = np.ones(len(y)) if weights is None else weights
    known = forests.Rows(rows, np.asarray(y, np.int64), weights)
    found = forests.grown(encoder, known, seed, folds=folds)
    assert found is not None
    return encoder, rows, *found


def test_columns_as_numbers():
    X = {
        "number": [1.5, np.nan, np.inf, -np.inf, 2.0] * 20,
        "word": np.array(["b", "a", "b", None, "c", "b", "a", "c", "b", "a"] * 10, object),
        "when": np.datetime64("2024-02-28T23:30") + np.array([0, 1, 2, 40, 3] * 20) * 86400,
        "none": [None] * 100,
    }
    y = np.arange(100) % 3 == 0
    encoder, _, forest, _ = forest_of(X, y)
    times = np.array(["2024-02-28T23:30", "2024-03-03", "NaT", "2024-12-31", "NaT"], "M8[s]")
    new = {
        "number": [1.5, None, np.inf, -np.inf, -7.0],
        "word": ["b", "a", "c", None, "never met"],
        "when": times,
        "none": [None] * 5,
    }
    found = forests.numbers_of(encoder, encoder.read(new), forest.columns)
    days = (times - np.datetime64("2024-02-28T23:30")) / np.timedelta64(1, "D")
    expected = [
        [1.5, np.nan, LARGEST, -LARGEST, -7.0],
        [0.0, 1.0, 2.0, 3.0, np.nan],  # by frequency; missing words are one more
        days,
        [1, 2, np.nan, 11, np.nan],
        [2, 6, np.nan, 1, np.nan],
        [23, 0, np.nan, 0, np.nan],
    ]
    np.testing.assert_array_equal(found, np.array(expected).T)


def test_infinite_values_go_with_the_largest_and_not_with_missing_ones():
    random = np.random.RandomState(0)
    X = np.where(random.random_sample((300, 1)) < 0.5, np.nan, random.standard_normal((300, 1)))
    ranker = AdditiveRanker(random_state=0).fit(X, np.isnan(X[:, 0]) ^ (np.arange(300) % 9 == 0))
    scores = ranker.decision_function([[-np.inf], [-LARGEST], [np.inf], [LARGEST], [np.nan]])
    assert scores[0] == scores[1] < scores[4]
    assert scores[2] == scores[3] < scores[4]


# Bins ---------------------------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.floats(-LARGEST, LARGEST),
    st.sampled_from(
        [LARGEST, -LARGEST, LARGEST / 2, 5e-324, -5e-324, 0.0, -0.0, 1.0, 1.0 + 2**-52, np.nan]
    ),
    st.integers(0, 200),
)


@given(st.lists(NUMBERS, max_size=200))
def test_thresholds_part_bins(cells):
    values = np.array(cells, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ends = thresholds_of(values)
    distinct = np.unique(values[~np.isnan(values)])
    places = (distinct[:, None] > ends).sum(axis=1)
    assert len(ends) <= BINS - 2
    np.testing.assert_array_equal(np.unique(places), np.arange(len(ends) + bool(distinct.size)))
    if distinct.size < BINS:
        np.testing.assert_array_equal(places, np.arange(distinct.size))


@given(st.lists(st.tuples(NUMBERS, st.sampled_from([0.0, 1.0, 7.0, np.nan])), min_size=1))
def test_rows_as_bins_are_those_of_the_oracle(cells):
    X = np.array(cells)
    thresholds = [*map(thresholds_of, X.T)]
    binned, plain = forests._binned(X, thresholds), tree_oracles.binned(X, thresholds)
    for ours, theirs in zip(binned, plain, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_value_of_most_rows_ends_a_bin_of_little_else():
    random = np.random.RandomState(0)
    values = np.append(np.zeros(9000), random.standard_normal(3000))
    ends = thresholds_of(values)
    assert len(ends) == BINS - 2
    places = (values[:, None] > ends).sum(axis=1)
    beside = values[(places == places[0]) & (values != 0.0)]
    assert (beside < 0.0).all()
    assert len(beside) < 0.5 * 3000 / (BINS - 2)
    others = np.bincount(places)[np.arange(BINS - 1) != places[0]]
    assert others.max() <= 2 * others.min()


# Rows that trees were grown from ------------------------------------------------------------------


def test_no_row_has_a_leaf_of_a_tree_that_it_has_grown():
    """Trees that a row has leaves of are the same if it weighs a thousand times as much."""
    X, y = table(3000)
    *_, forest, leaves = forest_of(X, y)
    trees = np.searchsorted(forest.roots, leaves, side="right") - 1
    for row in np.random.RandomState(0).choice(3000, 4, replace=False):
        weights = np.ones(3000)
        weights[row] = 1000.0
        *_, other, theirs = forest_of(X, y, weights)
        same = [
            [*map(np.array_equal, tree_of(forest, tree), tree_of(other, tree))]
            for tree in range(400)
        ]
        assert all(map(all, (same[tree] for tree in trees[row])))
        assert sum(map(all, same)) == 100 == len({*trees[row]})
        assert (theirs[row] >= 0).all()


def tree_of(forest, tree):
    """The arrays of a tree."""
    begin, end = np.append(forest.roots, forest.width)[[tree, tree + 1]]
    left = np.where(forest.left[begin:end] < 0, -1, forest.left[begin:end] - begin)
    return forest.column[begin:end], forest.threshold[begin:end], left, forest.value[begin:end]


def test_no_row_has_a_leaf_of_a_tree_that_a_sample_with_it_has_grown():
    """A tree that is told the label by a column of its own is right of its rows, and of no others."""
    random = np.random.RandomState(0)
    X, y = {"c": random.permutation(60).astype(float)}, random.permutation(60) % 2
    encoder, rows, forest, leaves = forest_of(X, y)
    every = forest.leaves_of(forests.numbers_of(encoder, rows, forest.columns))
    right = (forest.value[every] > 0.0) == y[:, None].astype(bool)
    inside = leaves < 0
    assert 0.6 < inside.mean() < 0.66
    assert right[inside].mean() > 0.9
    assert right[~inside].mean() < 0.6


@pytest.mark.parametrize("size", [300, 2100])
def test_features_of_rows_that_trees_were_grown_from(size):
    X, y = table(size)
    encoder, rows, forest, leaves = forest_of(X, y)
    new = forest.encode(encoder, rows)
    own = forest.encode(encoder, Apart(rows, leaves))
    np.testing.assert_allclose(new.sum(axis=1), forest.share * len(forest.roots), rtol=1e-12)
    np.testing.assert_allclose(own.sum(axis=1), new.sum(axis=1), rtol=1e-12)
    assert own.multiply(new != 0).nnz == own.nnz < new.nnz
    some = np.array([7, 3, 3])
    taken = Apart(rows, leaves).take(some)
    np.testing.assert_array_equal(forest.encode(encoder, taken).toarray(), own[some].toarray())
    plain = forest.encode(encoder, taken.plain())
    np.testing.assert_array_equal(plain.toarray(), new[some].toarray())


def test_what_centred_weights_take_from_a_score():
    X, y = table(300)
    encoder, rows, forest, _ = forest_of(X, y)
    weights = np.random.RandomState(0).standard_normal(forest.width)
    before = weights.copy()
    centred, taken = forest.centred(weights)
    np.testing.assert_array_equal(weights, before)
    features = forest.encode(encoder, rows)
    np.testing.assert_allclose(features @ centred + taken, features @ weights, rtol=1e-9)


@pytest.mark.parametrize(("size", "seeds"), [(300, 20), (3000, 20)])
def test_a_fit_of_noise_knows_that_it_is_noise(size, seeds):
    """Columns that tell each row from all others say nothing of the label, whatever trees make of them."""
    found = []
    for seed in range(seeds):
        random = np.random.RandomState(seed)
        X = np.stack([random.permutation(size), random.standard_normal(size)], axis=1)
        y = np.arange(size) % 3 == 0
        ranker = AdditiveRanker(random_state=seed).fit(X, random.permutation(y))
        assert ranker._learned.state.beside
        found.append(ranker.progressive_auc_)
    error = np.std(found, ddof=1) / np.sqrt(seeds)
    assert abs(np.mean(found) - 0.5) < 3.0 * error


def test_swapped_labels_mirror_trees():
    """Where no two splits are equally good: which comes first of those is a matter of rounding."""
    random = np.random.RandomState(0)
    X, weights = random.standard_normal((2500, 4)), random.uniform(0.5, 2.0, 2500)
    y = (X[:, 0] * X[:, 1] + 0.5 * random.standard_normal(2500) > 0.0).astype(int)
    *_, one, leaves = forest_of(X, y, weights)
    *_, other, theirs = forest_of(X, 1 - y, weights)
    for name in ("column", "threshold", "left", "missing", "cover", "roots"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    np.testing.assert_array_equal(leaves, theirs)
    np.testing.assert_allclose(one.value, -other.value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ({"a": [None] * 40}, np.arange(40) % 2),
        ({"a": np.arange(40.0)}, np.arange(40) < 7),
        ({"a": [f"x y z {at} w" for at in range(40)]}, np.arange(40) % 2),
    ],
    ids=["nothing", "few", "text"],
)
def test_nothing_grows_from_too_little(X, y):
    encoder, rows = encoded(X)
    known = forests.Rows(rows, y.astype(np.int64), np.ones(40))
    assert forests.grown(encoder, known, 0, folds=True) is None


# Rankers ------------------------------------------------------------------------------------------


def make():
    return AdditiveRanker(random_state=0, horizon="next")


def streamed(X, y, ends, weights=None):
    ranker, begin = make(), 0
    for end in ends:
        rows = slice(begin, end)
        own = None if weights is None else weights[rows]
        ranker.partial_fit(part(X, rows), y[rows], classes=[0, 1], sample_weight=own)
        begin = end
    assert ranker._learned.state.beside
    return ranker


def test_any_chunking_learns_the_same():
    X, y = table(3000)
    whole = streamed(X, y, [3000])
    assert_same(streamed(X, y, [1000, 2000, 3000]), whole)
    assert_same(streamed(X, y, [*range(7, 3000, 7), 3000]), whole)
    ones = streamed(X, y, [1000, *range(1001, 1101), 3000])  # about the growth
    assert_same(ones, whole, rtol=1e-9, atol=1e-9)


def test_rows_of_weight_zero_grow_nothing():
    X, y = table(1400)
    kept = np.random.RandomState(0).random_sample(1400) < 0.8
    dull = {name: cells.copy() for name, cells in X.items()}
    dull["word"][~kept], dull["unit"][~kept] = "never", 1e9
    own = part(X, kept)
    expected = streamed(own, y[kept], [kept.sum()])
    assert_same(streamed(dull, y, [700, 1400], kept * 1.0), expected)
    some = slice(400)
    fitted = make().fit(part(dull, some), y[some], kept[some] * 1.0)
    plain = make().fit(part(X, kept.nonzero()[0][: kept[some].sum()]), y[some][kept[some]])
    np.testing.assert_array_equal(fitted.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_a_weight_of_rows_is_that_of_trees(learn):
    """Among rows that weigh much a column says the opposite of what it says among the others."""
    random = np.random.RandomState(0)
    X = random.standard_normal((2500, 2))
    heavy = random.random_sample(2500) < 0.2
    y = (X[:, 0] > 0.0) ^ heavy
    for weight, sign in ((1.0, 1.0), (100.0, -1.0)):
        ranker = getattr(make(), learn)(X, y, sample_weight=np.where(heavy, weight, 1.0))
        [group] = ranker._learned.state.beside
        scores = group.source.encode(ranker.encoder_, ranker.encoder_.read(X)) @ group.source.value
        assert sign * np.corrcoef(scores, X[:, 0])[0, 1] > 0.5


@pytest.mark.parametrize(("learn", "size"), [("fit", 300), ("partial_fit", 800)])
def test_rows_of_the_caller_are_neither_changed_nor_kept(learn, size):
    random = np.random.RandomState(0)
    X, weights = random.standard_normal((3 * size, 3)), random.uniform(0.5, 2.0, 3 * size)
    y = ((X[:, 0] * X[:, 1] > 0) ^ (random.random_sample(3 * size) < 0.1)).astype(int)
    kept = make()
    own = np.empty((size, 3)), np.empty(size, int), np.empty(size)
    for begin in range(0, 3 * size, size):
        rows = slice(begin, begin + size)
        for array, cells in zip(own, (X[rows], y[rows], weights[rows]), strict=True):
            array[:] = cells
        getattr(kept, learn)(own[0], own[1], sample_weight=own[2])
        for array, cells in zip(own, (X[rows], y[rows], weights[rows]), strict=True):
            np.testing.assert_array_equal(array, cells)
            array[:] = 0
    last = slice(0 if learn == "partial_fit" else 2 * size, None)
    plain = getattr(make(), learn)(X[last], y[last], sample_weight=weights[last])
    assert plain._learned.state.beside
    assert_same(kept, plain)


def test_growth_is_deterministic():
    X, y = table(2500)
    for size in (300, 2500):
        some = part(X, slice(size)), y[:size]
        assert_same(make().fit(*some), make().fit(*some))
