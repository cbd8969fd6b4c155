"""What every ranker must do, whatever it learns."""

import copy
import gc
import itertools
import pickle
import warnings
import weakref
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from learners import RANKERS, SPARSE, arrays, assert_same, least_auc, make
from real_data import real
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.metrics import roc_auc_score

import cbrank
from cbrank import kernels
from cbrank.learning.served import Anchor
from cbrank.rankers.operating_point import intercept_of_fit

every_ranker = pytest.mark.parametrize("name", RANKERS)
sparse_ranker = pytest.mark.parametrize("name", SPARSE)


def stream(ranker, X, y, cuts=()):
    """Learn rows in chunks that end at `cuts`."""
    for begin, end in itertools.pairwise([0, *sorted(cuts), len(y)]):
        if end > begin:
            ranker.partial_fit(X[begin:end], y[begin:end], classes=[0, 1])
    return ranker


@every_ranker
def test_memory_is_freed_with_the_last_reference(name):
    X, y = real("svmguide3", 300, "standard")
    ranker = stream(make(name), X, y, [20, 90])
    ranker.learn_one(X[0], y[0])
    ranker.predict_proba(X)
    gone = weakref.ref(ranker)
    gc.disable()
    try:
        del ranker
        assert gone() is None
    finally:
        gc.enable()


HONEST = (
    "progressive_auc_",
    "progressive_auc_interval_",
    "recent_auc_",
    "recent_auc_interval_",
    "intercept_",
)


def assert_says_the_same(one, other, X, **tolerance):
    """Check that two rankers say the same of themselves and of rows."""
    tolerance = tolerance or {"rtol": 0.0}
    for name in HONEST:
        ours, theirs = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(ours, theirs, err_msg=name, **tolerance)
    for ours, theirs in zip(
        one.progressive_auc_history_.tolist(), other.progressive_auc_history_.tolist(), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, **tolerance)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), **tolerance)


@every_ranker
def test_learns_to_rank(name, german):
    X, y = german
    ranker = make(name).fit(X[:800], y[:800])
    assert ranker.score(X[800:], y[800:]) > least_auc(name)
    assert ranker.score(X, y) == pytest.approx(roc_auc_score(y, ranker.decision_function(X)))
    expected = X @ ranker.coef_[0] + ranker.intercept_[0]
    np.testing.assert_allclose(ranker.decision_function(X), expected, atol=1e-14)
    assert ranker.intercept_.shape == (1,)


def test_score_is_the_auc_and_says_where_there_is_none(german):
    X, y = german
    ranker, weights = make("cbr").fit(X, y), np.random.RandomState(0).randint(0, 3, len(y))
    expected = roc_auc_score(y, ranker.decision_function(X), sample_weight=weights)
    assert ranker.score(X, y, sample_weight=weights) == pytest.approx(expected)
    with pytest.warns(UndefinedMetricWarning, match="one class"):
        assert np.isnan(ranker.score(X[y == 1], y[y == 1]))


@every_ranker
@given(cuts=st.lists(st.integers(0, 120), max_size=6))
def test_any_chunking_gives_the_same_model(name, cuts):
    X, y = real("german", 120, "standard")
    one, other = stream(make(name), X, y, cuts), stream(make(name), X, y)
    assert_same(one, other)
    assert_says_the_same(one, other, X)


@every_ranker
def test_row_by_row_is_one_chunk(name, german):
    X, y = german[0][:150], german[1][:150]
    ranker = make(name)
    for row, label in zip(X, y, strict=True):
        assert ranker.learn_one(row, label, classes=[0, 1]) is ranker
    assert_same(ranker, stream(make(name), X, y))
    assert_says_the_same(ranker, stream(make(name), X, y), X)


@every_ranker
def test_fit_in_order_is_partial_fit(name, german):
    X, y = german
    X, y = (X[:64], y[:64]) if name == "cbr-auto" else (X, y)  # which decide the scales of a stream
    fitted = make(name, shuffle=False).fit(X, y)
    if name == "cbr-auto":  # in a stream one more learner forgets
        streamed = make(name, forgetting=0.0).partial_fit(X, y)
        np.testing.assert_array_equal(
            streamed._learned.state.models[0].mu, fitted._learned.state.models[0].mu
        )
        return
    assert_same(fitted, make(name).partial_fit(X, y))


@every_ranker
def test_a_second_pass_learns_and_tests_nothing(name, german):
    X, y = german
    begun = make(name, shuffle=False, **({"forgetting": 0.0} if "auto" in name else {}))
    once, twice = clone(begun).fit(X, y), clone(begun).set_params(n_passes=2).fit(X, y)
    for field, array in once._learned.state.record._asdict().items():
        np.testing.assert_array_equal(
            array, getattr(twice._learned.state.record, field), err_msg=field
        )
    if "auto" in name or "selected" in name:
        return  # whose columns have other scales in a stream, or are no more selected from: see test_pool.py
    learner = clone(begun).partial_fit(X, y).partial_fit(X, y)
    bounds = slice(kernels.buffers.LOWER, None)  # which blocks of tested rows decide
    for each in (twice, learner):
        if hasattr(each._learned.state.buffer, "means"):
            each._learned.state.buffer.means[bounds] = 0.0
    one, other = twice._learned.state, learner._learned.state
    for ours, theirs in ((one.models[0], other.models[0]), (one.buffer, other.buffer)):
        for pair in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(*pair)


@every_ranker
def test_sparse_rows_are_dense_rows(name):
    X, y = real("svmguide3", 300, "unit")
    X[np.random.RandomState(0).random_sample(X.shape) < 0.5] = 0.0
    dense = stream(make(name), X, y)
    for kind in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array):
        rows = kind(X)
        ranker = make(name).partial_fit(rows, y)
        np.testing.assert_allclose(ranker.coef_, dense.coef_, rtol=1e-8, atol=1e-10)
        scores = dense.decision_function(X)
        np.testing.assert_allclose(ranker.decision_function(rows), scores, rtol=1e-7, atol=1e-9)
        assert_says_the_same(ranker, dense, X, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(ranker.predict_proba(rows), ranker.predict_proba(X), atol=1e-12)


@every_ranker
def test_chunks_may_change_between_dense_and_sparse(name):
    X, y = real("svmguide3", 200, "unit")
    expected = stream(make(name), X, y).coef_
    for first, then in ((np.asarray, sparse.csr_array), (sparse.csr_array, np.asarray)):
        ranker = make(name).partial_fit(first(X[:100]), y[:100])
        ranker.partial_fit(then(X[100:150]), y[100:150])
        for row, label in zip(X[150:], y[150:], strict=True):
            ranker.learn_one(then(row.reshape(1, -1)) if then is sparse.csr_array else row, label)
        np.testing.assert_allclose(ranker.coef_, expected, rtol=1e-8, atol=1e-10)


@sparse_ranker
def test_sparse_chunks_of_any_width_give_the_same_model(name):
    X, y = real("svmguide3", 120, "unit")
    X[np.random.RandomState(0).random_sample(X.shape) < np.linspace(0.95, 0, 120)[:, None]] = 0.0
    rows = sparse.csr_array(X)
    one, many = stream(make(name), rows, y), stream(make(name), rows, y, range(0, 120, 7))
    np.testing.assert_array_equal(one.coef_, many.coef_)


@every_ranker
def test_swapping_labels_mirrors_the_model(name, german):
    X, y = german
    one, other = stream(make(name), X, y), stream(make(name), X, 1 - y)
    np.testing.assert_allclose(one.coef_, -other.coef_, rtol=1e-9, atol=1e-12)


@every_ranker
def test_any_two_labels_will_do(name, german):
    X, y = german
    words = np.array(["bad", "good"])[y]
    ranker = make(name).fit(X, words)
    assert_same(ranker, make(name).fit(X, y))
    assert ranker.classes_.tolist() == ["bad", "good"]
    assert set(ranker.predict(X)) <= {"bad", "good"}
    assert ranker.score(X, words) == make(name).fit(X, y * 2.0 - 1.0).score(X, y * 2.0 - 1.0)


@every_ranker
@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
def test_the_callers_rows_are_neither_changed_nor_kept(name, as_rows, german):
    X, y = as_rows(german[0]), german[1]
    before = X.copy()
    ranker = make(name).partial_fit(X, y)
    assert (before != X).sum() == 0
    learned = make(name).partial_fit(before, y)
    (X.data if sparse.issparse(X) else X)[:] = 7.0
    assert_same(ranker, learned)
    assert_says_the_same(ranker, learned, before)


@every_ranker
def test_read_only_and_unaligned_and_strided_rows(name, german):
    X, y = german
    expected = make(name).fit(X, y)
    frozen = X.copy()
    frozen.flags.writeable = False
    crooked = np.zeros(X.nbytes + 1, np.uint8)[1:].view(np.float64).reshape(X.shape)
    crooked[:] = X
    for rows in (frozen, crooked, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        assert_same(make(name).fit(rows, y), expected)


@every_ranker
def test_a_row_of_weight_zero_is_as_good_as_absent(name, german):
    X, y = german
    weights = np.random.RandomState(1).choice([0.0, 0.5, 1.0], len(y))
    kept = weights > 0
    for balance in (None, "balanced"):
        for shuffle in (False, True):
            one = make(name, class_weight=balance, shuffle=shuffle)
            other = make(name, class_weight=balance, shuffle=shuffle)
            one.fit(X, y, sample_weight=weights)
            other.fit(X[kept], y[kept], sample_weight=weights[kept])
            assert_same(one, other)
            assert_says_the_same(one, other, X)
        one = make(name, class_weight=balance).partial_fit(X, y, sample_weight=weights)
        other = make(name, class_weight=balance).partial_fit(
            X[kept], y[kept], sample_weight=weights[kept]
        )
        assert_same(one, other)
        assert_says_the_same(one, other, X)


def saved(ranker, folder):
    """All that a model file has of a ranker."""
    cbrank.save(ranker, folder / "ranker")
    return (folder / "ranker").read_bytes()


def long_rows(count, width):
    """Rows that no model would stay unmoved by, and longer than any sparse row before them."""
    return np.full((count, width), 1e5)


BOTH = [(name, np.asarray) for name in RANKERS] + [(name, sparse.csr_array) for name in SPARSE]
dense_and_sparse = pytest.mark.parametrize(("name", "as_rows"), BOTH)


@dense_and_sparse
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0}])
def test_rows_of_weight_zero_change_no_bit(name, as_rows, class_weight, tmp_path):
    X, y = real("svmguide3", 200, "standard")
    X[np.random.RandomState(0).random_sample(X.shape) < 0.7] = 0.0
    nothing = as_rows(long_rows(3, X.shape[1])), [0, 1, 0]
    ranker = make(name, class_weight=class_weight)
    for learn in (ranker.partial_fit, ranker.fit):
        learn(as_rows(X), y)
        before, known = saved(ranker, tmp_path), {*vars(ranker)}
        intercept, probabilities = ranker.intercept_, ranker.predict_proba(X)
        ranker.partial_fit(*nothing, sample_weight=[0.0, 0.0, 0.0])
        assert saved(ranker, tmp_path) == before
        assert {*vars(ranker)} == known
        assert ranker.intercept_ == intercept
        np.testing.assert_array_equal(ranker.predict_proba(X), probabilities)


@dense_and_sparse
def test_rows_of_weight_zero_among_others_change_no_bit(name, as_rows, tmp_path):
    X, y = real("svmguide3", 200, "standard")
    X[np.random.RandomState(0).random_sample(X.shape) < 0.7] = 0.0
    weights = np.where(np.arange(200) % 3 == 1, 0.0, 1.5)
    kept = weights > 0
    full = np.where(kept[:, None], X, long_rows(200, X.shape[1]))
    for learn in ("partial_fit", "fit"):
        one, other = make(name), make(name)
        getattr(one, learn)(as_rows(full), y, sample_weight=weights)
        getattr(other, learn)(as_rows(X[kept]), y[kept], sample_weight=weights[kept])
        assert saved(one, tmp_path) == saved(other, tmp_path)


@dense_and_sparse
def test_rows_of_a_class_of_weight_zero_change_no_bit(name, as_rows, tmp_path):
    X, y = real("svmguide3", 60, "standard")
    ranker = make(name, class_weight={0: 0.0}).partial_fit(as_rows(X), y)
    only = make(name, class_weight={0: 0.0}).partial_fit(as_rows(X[y == 1]), y[y == 1], [0, 1])
    before = saved(ranker, tmp_path)
    assert before == saved(only, tmp_path)
    ranker.partial_fit(as_rows(long_rows(2, X.shape[1])), [0, 0]).learn_one(X[0], 0)
    assert before == saved(ranker, tmp_path)


@every_ranker
def test_a_stream_begins_with_its_first_row_of_weight(name, tmp_path):
    X, y = real("german", 50, "standard")
    ranker, known = make(name), {*vars(make(name))}
    ranker.partial_fit(sparse.csr_array(X[:, :3]), y, sample_weight=np.zeros(50))
    ranker.partial_fit(X, ["a"] * 50, classes=["a", "b"], sample_weight=np.zeros(50))
    ranker.set_params(class_weight={0: 0.0}).learn_one(X[0], 0, classes=[0, 1])
    assert {*vars(ranker)} == known
    ranker.set_params(class_weight=None).partial_fit(X, y)
    assert saved(ranker, tmp_path) == saved(make(name).partial_fit(X, y), tmp_path)
    with pytest.raises(ValueError, match="one class only"):
        make(name).partial_fit(X[:2], [0, 1], sample_weight=[1.0, 0.0])
    with pytest.raises(ValueError, match="NaN at row 0, column 1"):
        make(name).partial_fit([[0.0, np.nan]], [0], sample_weight=[0.0])


@pytest.mark.parametrize("name", [name for name in RANKERS if "auto" not in name])
def test_weights_scale_the_step(name, german):
    X, y = german
    step = "C" if hasattr(make(name), "C") else "step"
    double = make(name, **{step: 2 * getattr(make(name), step)})
    weighted = make(name).partial_fit(X, y, sample_weight=np.full(len(y), 2.0))
    assert_same(weighted, double.partial_fit(X, y), rtol=1e-12)
    doubled = make(name, class_weight={0: 2.0, 1: 2.0}).partial_fit(X[:900], y[:900])
    for row, label in zip(X[900:], y[900:], strict=True):
        doubled.learn_one(row, label)
    assert_same(doubled, weighted)


@every_ranker
def test_balanced_goes_by_running_counts_in_a_stream(name, german):
    X, y = german
    seen = np.cumsum(np.stack([y == 0, y == 1]), axis=1)
    weights = seen.sum(axis=0) / (2 * np.where(y == 1, seen[1], seen[0]))
    one = stream(make(name, class_weight="balanced"), X, y, [1, 77, 500])
    other = make(name).partial_fit(X, y, sample_weight=weights)
    assert_same(one, other, but={"memory.weights"}, rtol=1e-12)  # rows are kept with their own


@every_ranker
def test_copies_and_pickles_go_on_as_if_never_stopped(name, german):
    X, y = german
    straight = stream(make(name), X, y)
    begun = stream(make(name), X[:400], y[:400])
    for again in (pickle.loads(pickle.dumps(begun)), copy.deepcopy(begun)):
        assert_same(again.partial_fit(X[400:], y[400:]), straight)
        assert_says_the_same(again, straight, X)
    assert not hasattr(clone(straight), "coef_")


@every_ranker
def test_fit_starts_anew_and_depends_on_the_seed_alone(name, german):
    X, y = german
    ranker = make(name).fit(X, y)
    first = copy.deepcopy(ranker)
    assert_same(ranker.fit(X, y), first)
    other = make(name, random_state=1).fit(X, y)
    assert np.any(other.coef_ != first.coef_)


@every_ranker
def test_frames_give_their_column_names(name, german):
    X, y = german
    columns = [f"f{i}" for i in range(X.shape[1])]
    expected = make(name).fit(X, y)
    for frame in (pd.DataFrame(X, columns=columns), pl.DataFrame(X, schema=columns)):
        ranker = make(name).fit(frame, y)
        assert ranker.feature_names_in_.tolist() == columns
        assert_same(ranker, expected)
        np.testing.assert_array_equal(
            ranker.decision_function(frame), expected.decision_function(X)
        )
    with pytest.raises(ValueError, match="feature names should match"):
        ranker.decision_function(pd.DataFrame(X, columns=columns[::-1]))


@every_ranker
def test_zero_is_the_best_operating_point_of_the_training_rows(name, german):
    X, y = german
    ranker = make(name, operating_point="accuracy").fit(X, y)
    accuracy = np.mean(ranker.predict(X) == y)
    scores = ranker.decision_function(X)
    np.testing.assert_array_equal(ranker.predict(X), scores > 0)
    assert accuracy == max(np.mean((scores >= t) == y) for t in [*scores, np.inf])
    costly = make(name, operating_point="accuracy", class_weight={1: 50.0}).fit(X, y)
    assert np.mean(costly.predict(X)) > 0.85


def balance(called, y):
    return called[y == 1].mean() - called[y == 0].mean()


@every_ranker
def test_zero_balances_the_training_rows_as_well_as_chance_can_tell(name, german):
    X, y = german
    scores = make(name).fit(X, y).decision_function(X)
    best = max(balance(scores >= t, y) for t in scores)
    error = np.sqrt(0.25 / y.sum() + 0.25 / (1 - y).sum())
    assert balance(scores > 0, y) >= best - error
    costly = make(name, class_weight={1: 50.0}).fit(X, y)
    assert np.mean(costly.predict(X)) > 0.85


@every_ranker
def test_the_zero_of_a_stream(name, german):
    X, y = german
    ranker = make(name).partial_fit(X[y == 0][:5], y[y == 0][:5], classes=[0, 1])
    assert ranker.predict(X).max() == 0
    ranker.partial_fit(X, y)
    assert balance(ranker.predict(X), y) > 0.2
    mirrored = make(name).partial_fit(X[y == 1][:5], y[y == 1][:5], classes=[0, 1])
    assert mirrored.predict(X).min() == 1


def wanted_log_odds(ranker):
    """Return the log odds from which rows are to be called positive, by costs and recent shares."""
    costs = np.ones(2)
    if ranker.operating_point == "accuracy" or isinstance(ranker.class_weight, dict):
        costs = ranker.class_weights(ranker.classes_, ranker.n_seen_)
    share = ranker._learned.state.record.share + 0.5
    odds = share[1] / share[0] if ranker.operating_point == "balanced" else 1.0
    return np.log(odds * costs[0] / costs[1])


@every_ranker
def test_zero_follows_whatever_changes_in_a_stream(name, german):
    X, y = german
    ranker, costs = make(name).partial_fit(X[:200], y[:200]), {1: 1.2}
    changes = [
        lambda: ranker.partial_fit(X[200:300], y[200:300]),
        lambda: ranker.learn_one(X[300], y[300]),
        lambda: ranker.set_params(class_weight=costs),
        lambda: costs.update({1: 1.5}),
        lambda: ranker.set_params(class_weight="balanced"),
        lambda: ranker.set_params(operating_point="accuracy"),
        lambda: ranker.set_params(**({"average": False} if hasattr(ranker, "average") else {})),
        lambda: ranker.fit(X[1:301], y[1:301]).learn_one(X[0], y[0]),
    ]
    for change in changes:
        change()
        for _ in range(2):
            [at_zero] = ranker.log_odds(-ranker.intercept_)
            assert at_zero == pytest.approx(wanted_log_odds(ranker), abs=1e-6)


@every_ranker
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_probabilities_are_ordered_as_scores_are(name, scores):
    X, y = real("german", 300, "standard")
    ranker = make(name).partial_fit(X, y)
    log_odds = ranker.log_odds(np.sort(scores))
    assert np.isfinite(log_odds).all()
    assert (np.diff(log_odds) >= 0).all()


@every_ranker
def test_odd_sparse_matrices_are_read_right(name):
    X, y = real("svmguide3", 120, "unit")
    X[np.random.RandomState(0).random_sample(X.shape) < 0.5] = 0.0
    expected = make(name).partial_fit(sparse.csr_array(X), y).coef_
    rows = sparse.csr_matrix(X)
    shuffled = rows.copy()
    for begin, end in itertools.pairwise(rows.indptr):
        shuffled.indices[begin:end] = rows.indices[begin:end][::-1]
        shuffled.data[begin:end] = rows.data[begin:end][::-1]
    shuffled.has_sorted_indices = False
    halves = sparse.csr_matrix(
        (np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), rows.indptr * 2), rows.shape
    )
    wide = rows.copy()
    wide.indices, wide.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    for odd in (shuffled, halves, wide, rows.tocoo()):
        before = odd.copy()
        np.testing.assert_array_equal(make(name).partial_fit(odd, y).coef_, expected)
        assert (before != odd).nnz == 0
    single = rows.astype(np.float32)
    np.testing.assert_array_equal(
        make(name).partial_fit(single, y).coef_,
        make(name).partial_fit(single.astype(np.float64), y).coef_,
    )


@every_ranker
def test_models_mapped_read_only_go_on_learning(name, german, tmp_path):
    X, y = german
    begun = make(name).partial_fit(X[:400], y[:400])
    joblib.dump(begun, tmp_path / "ranker")
    mapped = joblib.load(tmp_path / "ranker", mmap_mode="r")
    assert_same(mapped.partial_fit(X[400:], y[400:]), make(name).partial_fit(X, y))


@every_ranker
def test_what_shapes_a_model_cannot_change_in_a_stream(name, german):
    X, y = german
    for parameter, value in {"buffer_size": 3, "covariance": "diagonal", "rank": 5}.items():
        ranker = make(name).partial_fit(X, y)
        if getattr(ranker, parameter, value) != value:
            ranker.set_params(**{parameter: value})
            with pytest.raises(ValueError, match=f"{parameter} was .* cannot become"):
                ranker.partial_fit(X, y)


WRONG: dict[str, list[Any]] = {
    "C": [-1.0, np.nan, np.inf, "much"],
    "step": [0.0, np.nan],
    "eta": [1.0, 0.2],
    "policy": ["lifo"],
    "update": ["none"],
    "diagonal_update": ["x"],
    "forgetting": [1.0, -1.0],
    "average": ["no"],
    "class_weight": [{1: np.nan}, {1: -3.0}, {"other": 3.0}, {1: np.inf}, "heavy"],
}


@every_ranker
def test_parameters_that_become_wrong_in_a_stream_are_refused_by_every_method(name, german):
    X, y = german[0][:60], german[1][:60]
    for parameter, values in WRONG.items():
        for value in values if hasattr(make(name), parameter) else ():
            ranker = make(name).partial_fit(X, y).learn_one(X[0], y[0])
            before = arrays(ranker)
            setattr(ranker, parameter, value)
            with pytest.raises(ValueError, match=parameter) as of_one:
                ranker.learn_one(X[0], y[0])
            with pytest.raises(ValueError, match=parameter) as of_many:
                ranker.partial_fit(X[:1], y[:1])
            assert str(of_one.value) == str(of_many.value)
            for key, array in arrays(ranker).items():
                np.testing.assert_array_equal(array, before[key])


@every_ranker
def test_parameters_that_change_in_a_stream_count_from_the_next_row(name, german):
    X, y = german
    weights = {0: 1.0, 1: 1.0}
    changes = [{"class_weight": weights}, {"class_weight": "balanced"}, {"class_weight": None}]
    step = "C" if getattr(make(name), "C", "auto") != "auto" else "step"
    if hasattr(make(name), step):
        changes.append({step: getattr(make(name), step) / 2})
    rows, chunks = (
        make(name).partial_fit(X[:200], y[:200]),
        make(name).partial_fit(X[:200], y[:200]),
    )
    for at, change in enumerate(changes, 2):
        rows.set_params(**change)
        chunks.set_params(**change)
        for place in range(100 * at, 100 * at + 100):
            weights[1] = 1.0 + place % 3  # a dictionary changes within
            rows.learn_one(X[place], y[place])
            chunks.partial_fit(X[[place]], y[[place]])
    assert_same(rows, chunks)


def test_weights_whose_product_is_infinite_are_refused(german):
    X, y = german
    ranker = make("cbr", class_weight={1: 1e200})
    for learn in (ranker.fit, ranker.partial_fit):
        with pytest.raises(ValueError, match="sample_weight times class_weight is infinite at row"):
            learn(X, y, sample_weight=np.full(len(y), 1e200))


@pytest.mark.parametrize("point", ["balanced", "accuracy"])
@every_ranker
def test_weights_whose_sum_overflows_are_weights(name, point, german):
    X, y = german
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranker = make(name, operating_point=point).fit(X, y, sample_weight=np.full(len(y), 1e307))
        assert np.isfinite(ranker.intercept_).all()
        scores = X[:, 0]
        one, other = (
            intercept_of_fit(
                ranker._learned.state,
                Anchor(0.0, 1.0),
                (y == 1, scores, np.full(len(y), weight)),
                np.ones(2),
                point == "balanced",
            )
            for weight in (1.0, 2.0**1020)
        )
    assert one == other


@every_ranker
def test_nothing_is_known_before_the_first_row(name):
    for attribute in (
        "coef_",
        "n_seen_",
        "diverged_",
        "classes_",
        *HONEST,
        "progressive_auc_history_",
    ):
        assert not hasattr(make(name), attribute)


@every_ranker
def test_a_rows_score_does_not_depend_on_its_neighbours(name, german):
    X, y = german
    ranker = make(name).fit(X, y)
    alone = np.concatenate([ranker.decision_function(row.reshape(1, -1)) for row in X])
    np.testing.assert_array_equal(alone, ranker.decision_function(X))


@every_ranker
def test_counts(name, german):
    X, y = german
    ranker = stream(make(name), X, y, [1, 10])
    np.testing.assert_array_equal(ranker.n_seen_, np.bincount(y))
    ranker.coef_[:] = 0
    ranker.n_seen_[:] = 0
    assert ranker.score(X, y) > 0.6


@pytest.mark.parametrize("name", RANKERS)
def test_features_that_come_later_are_as_if_they_had_been_zero(name):
    X, y = real("german", 300, "standard")
    X[:100, -5:] = 0.0
    for kind in (np.asarray, sparse.csr_array):
        whole = make(name).partial_fit(kind(X[:100]), y[:100]).partial_fit(kind(X[100:]), y[100:])
        grown = make(name).partial_fit(kind(X[:100, :-5]), y[:100])
        grown.resize(X.shape[1])
        assert_same(grown.partial_fit(kind(X[100:]), y[100:]), whole, rtol=1e-9, atol=1e-12)
