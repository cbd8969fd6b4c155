"""Rows far beyond all others: they decide neither class means nor intercept nor probabilities."""

import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

import cbrank
from cbrank import AdditiveRanker, CBRanker
from cbrank.kernels.buffers import BOUND, LOWER, UPPER, are_among, bounded, empty_dense

NO_DATA = -3.4e38  # what stands for missing numbers in float32
LEARNED = 1500  # rows to learn from; the others test
DIAGONAL = {"C": 0.0625, "covariance": "diagonal"}


def table(value=NO_DATA, which="2%", seed=0, width=12):
    """Return rows of which some have a value in column 7, the same without it, and labels."""
    random = np.random.RandomState(seed)
    y = (random.random_sample(2500) < 0.3).astype(int)
    X = random.standard_normal((y.size, width)) + 0.25 * np.outer(y, random.standard_normal(width))
    chosen = random.random_sample(y.size) < 0.02 if which == "2%" else np.arange(y.size) == which
    hostile = X.copy()
    hostile[chosen, 7] = value
    return hostile, X, y


def assert_serves(ranker, ordinary, X, y, less=0.05):
    """Check that a ranker serves ordinary rows about as well as one that never saw an outlier."""
    X, y = X[LEARNED:], y[LEARNED:]
    scores = ranker.decision_function(X)
    assert roc_auc_score(y, scores) > roc_auc_score(y, ordinary.decision_function(X)) - less
    if not isinstance(ranker, AdditiveRanker):
        assert roc_auc_score(y, scores) == pytest.approx(roc_auc_score(y, X @ ranker.coef_[0]))
    errors = [((each.predict_proba(X)[:, 1] - y) ** 2).mean() for each in (ranker, ordinary)]
    assert errors[0] < errors[1] + 0.02
    called = [each.predict(X).mean() for each in (ranker, ordinary)]
    assert abs(called[0] - called[1]) < 0.25


WAYS = {
    "full": lambda X, y: CBRanker(0.0625).partial_fit(X, y),
    "auto": lambda X, y: CBRanker().partial_fit(X, y),
    "diagonal": lambda X, y: CBRanker(**DIAGONAL).partial_fit(X, y),
    "sparse": lambda X, y: CBRanker(**DIAGONAL).partial_fit(sparse.csr_array(X), y),
    "sparse rows made dense": lambda X, y: CBRanker(0.0625).partial_fit(sparse.csr_array(X), y),
    "fit": lambda X, y: CBRanker(random_state=0).fit(X, y),
    "fit for accuracy": lambda X, y: CBRanker(operating_point="accuracy", random_state=0).fit(X, y),
    "curves": lambda X, y: AdditiveRanker(random_state=0).partial_fit(X, y),
    "merged": lambda X, y: cbrank.merge(
        [CBRanker(0.0625).partial_fit(X[i::3], y[i::3]) for i in range(3)]
    ),
    "merged, diagonal": lambda X, y: cbrank.merge(
        [CBRanker(**DIAGONAL).partial_fit(X[i::3], y[i::3]) for i in range(3)]
    ),
}


@pytest.mark.parametrize("which", ["2%", 0, 5, LEARNED - 1])
@pytest.mark.parametrize("way", WAYS)
def test_outliers_spoil_no_other_row(way, which):
    hostile, X, y = table(which=which)
    learn, less = (
        WAYS[way],
        0.1 if way == "merged" else 0.05,
    )  # its weights, not its intercept, suffer
    ranker, ordinary = (learn(rows[:LEARNED], y[:LEARNED]) for rows in (hostile, X))
    assert_serves(ranker, ordinary, X, y, less)


@pytest.mark.parametrize("value", [1e9, -1e20, 1e100, 1e153, 1e308])
@pytest.mark.parametrize("way", ["full", "diagonal", "fit for accuracy"])
def test_outliers_of_any_size_spoil_no_other_row(way, value):
    hostile, X, y = table(value)
    learn = WAYS[way]
    assert_serves(learn(hostile[:LEARNED], y[:LEARNED]), learn(X[:LEARNED], y[:LEARNED]), X, y)


@pytest.mark.parametrize("late", [False, True])
def test_a_wide_table_keeps_its_scores_apart(late):
    random = np.random.RandomState(2)
    y = (random.random_sample(2500) < 0.3).astype(int)
    X = random.standard_normal((2500, 300)) + 0.3 * np.outer(y, random.standard_normal(300))
    X[(random.random_sample(2500) < 0.02) & (np.arange(2500) >= 2000 * late), 7] = NO_DATA
    ranker = CBRanker(0.0625).partial_fit(X, y)
    assert len(np.unique(ranker.decision_function(X[X[:, 7] > -9]))) > 2400
    assert abs(ranker.intercept_[0]) < 1000


# The same by other means -------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{"C": 0.0625}, {}, DIAGONAL])
def test_any_split_and_any_pause_gives_the_same_ranker(parameters, tmp_path):
    X, _, y = table()
    whole = CBRanker(**parameters).partial_fit(X, y)
    ranker = CBRanker(**parameters)
    for begin, end in ((0, 7), (7, 40), (40, 1000), (1000, 2500)):
        ranker.partial_fit(X[begin:end], y[begin:end], classes=[0, 1])
        cbrank.save(ranker, tmp_path / "model")
        ranker = cbrank.load(tmp_path / "model")
    for ours, theirs in zip(ranker._learned.state.record, whole._learned.state.record, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    assert ranker.intercept_ == pytest.approx(whole.intercept_, rel=1e-9)


@pytest.mark.parametrize("parameters", [{"C": 0.0625}, DIAGONAL])
def test_swapped_labels_give_the_mirror_image(parameters):
    X, _, y = table()
    one, other = (CBRanker(**parameters).partial_fit(X, labels) for labels in (y, 1 - y))
    np.testing.assert_array_equal(one.coef_, -other.coef_)
    assert np.abs(one.predict_proba(X) - other.predict_proba(X)[:, ::-1]).mean() < 0.05


def test_rows_of_weight_zero_and_their_outliers_change_nothing():
    X, _, y = table()
    ranker = CBRanker(0.0625).partial_fit(X, y)
    other = copy.deepcopy(ranker).partial_fit(X * 1e30, y, sample_weight=np.zeros(y.size))
    assert other.intercept_ == ranker.intercept_


# Bounds -------------------------------------------------------------------------------------------


def bounds_of(*blocks):
    """Return the means and the bounds of a column after blocks of values, each in the buffer alone."""
    means = empty_dense(1, 1, 1, 1, means=True).means
    for values in blocks:
        buffer = empty_dense(100, 100, 1, 1, means=True)._replace(means=means)
        buffer.size[:] = len(values), 0
        buffer.rows[0, : len(values), 0] = values
        means = bounded(buffer)
    return means[:, 0]


def test_bounds_are_far_beyond_nine_in_ten_values_that_differ():
    ones = [0.0] * 80 + [1.0] * 20
    assert bounds_of(ones)[LOWER:].tolist() == [-1024.0, 1024.0]
    assert bounds_of([*ones[:-1], NO_DATA])[LOWER:].tolist() == [-1024.0, 1024.0]
    assert bounds_of([2000.0, 2001.0, 2002.0])[LOWER:].tolist() == [2001.0 - 1024, 2001.0 + 1024]


def test_a_column_of_one_value_has_the_bounds_that_it_had():
    assert bounds_of([5.0] * 9)[LOWER:].tolist() == [-BOUND, BOUND]
    known = [4.0, 5.0, 6.0]
    assert bounds_of(known, [5.0] * 9).tolist() == bounds_of(known).tolist()
    assert bounds_of(known, [1e9] * 9)[LOWER:].tolist() == [1e9 - 2 * 1024, 1e9 + 2 * 1024]


def test_bounds_widen_by_drift_and_no_more_than_twofold():
    first = [0.0, 1.0, 2.0]
    assert bounds_of(first, [9.0, 10.0, 11.0])[UPPER] == 10.0 + 2 * 1024
    assert bounds_of(first, [1.0, 1.5, 1.0])[UPPER] == 1.0 + 0.5 * 1024
    assert bounds_of(first, [1.0, 1.0, NO_DATA])[UPPER] == 1.0 + 2 * 1024


def test_a_mean_out_of_bounds_becomes_the_median():
    buffer = empty_dense(3, 3, 1, 1, means=True)
    buffer.rows[0, :, 0], buffer.size[0] = [1.0, 2.0, 3.0], 3
    buffer.means[:2, 0] = NO_DATA, 2.5
    assert bounded(buffer)[:2, 0].tolist() == [2.0, 2.5]


def test_thresholds_are_among_scores():
    scores = np.append(np.linspace(-1.0, 1.0, 99), 1e30)
    assert are_among(5.0, scores).all()
    assert not are_among(1e29, scores).any()
    assert are_among(np.nextafter(0.0, 1.0), np.zeros(9)).all()
