"""Bad input gets an error that names what and where, and leaves the model as it was."""

import copy
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from learners import RANKERS, arrays, assert_same, make
from scipy import sparse

from cbrank.streams import StreamScaler

every_ranker = pytest.mark.parametrize("name", RANKERS)


def with_cell(value, row=3, column=2):
    X = np.ones((5, 4))
    X[row, column] = value
    return X


Y = [0, 1, 0, 1, 0]
GOOD = np.random.RandomState(0).standard_normal((5, 4))
TEXT = pd.DataFrame({"a": [1.0, 2, 3, 4, 5], "b": [1, 2, "x7", 4, 5], "c": 1.0, "d": 2.0})

BAD: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "NaN": (with_cell(np.nan), Y, {}, r"contains NaN at row 3, column 2 "),
    "infinity": (with_cell(-np.inf), Y, {}, r"contains infinity at row 3, column 2 "),
    "sparse NaN": (sparse.csr_array(with_cell(np.nan)), Y, {}, r"NaN at row 3, column 2 "),
    "frame NaN": (
        pd.DataFrame(with_cell(np.nan), columns=list("pqrs")),
        Y,
        {},
        r"NaN at row 3, column 2 \('r'\)",
    ),
    "text": (TEXT, Y, {}, r"'x7' at row 2, column 1 \('b'\), which is not a number"),
    "empty": (np.empty((0, 4)), [], {}, "0 sample"),
    "no columns": (np.empty((5, 0)), Y, {}, "0 feature"),
    "one row flat": (np.ones(4), [1], {}, "Expected 2D array"),
    "complex": (GOOD + 1j, Y, {}, "Complex data not supported"),
    "lengths": (GOOD, Y[:4], {}, "inconsistent numbers of samples: .5, 4"),
    "three classes": (GOOD, [0, 1, 2, 1, 0], {}, "there are 3 classes, 0, 1, 2|y has 2 at row 2"),
    "y missing text": (
        GOOD,
        pd.Series(["a", "b", None, "a", "b"], dtype="string"),
        {},
        "y contains NaN at row 2",
    ),
    "sparse index": (
        sparse.csr_matrix(([1.0, 2.0], [0, 1], [0, 1, 2, 2, 2, 2]), (5, 4)),
        Y,
        {},
        "4 columns and a column index 99 at row 1",
    ),
    "y NaN": (GOOD, [0, 1, 0, np.nan, 0], {}, "y contains NaN at row 3"),
    "y None": (GOOD, np.array(["a", "b", None, "a", "b"], object), {}, "y contains NaN at row 2"),
    "y infinite": (GOOD, [0, 1, 0, np.inf, 0], {}, "y contains infinity at row 3"),
    "y missing": (GOOD, None, {}, "target y is None"),
    "y continuous": (GOOD, [0.1, 0.2, 0.3, 0.4, 0.5], {}, "continuous"),
    "negative weight": (GOOD, Y, {"sample_weight": [1, 1, -1, 1, 1]}, "-1.0 at row 2 "),
    "NaN weight": (GOOD, Y, {"sample_weight": [1, 1, 1, 1, np.nan]}, "nan at row 4 "),
    "weights 2D": (GOOD, Y, {"sample_weight": np.ones((5, 2))}, "1D"),
    "few weights": (GOOD, Y, {"sample_weight": [1, 1]}, r"\(2,\), expected \(5,\)"),
    "masked X": (
        np.ma.array(GOOD, mask=np.arange(20).reshape(5, 4) % 9 == 6),
        Y,
        {},
        r"X is masked at row 1, column 2 \(2 such values in all\)",
    ),
    "masked y": (GOOD, np.ma.array(Y, mask=[0, 0, 1, 0, 0]), {}, "y is masked at row 2 "),
    "masked weight": (
        GOOD,
        Y,
        {"sample_weight": np.ma.array(np.ones(5), mask=[0, 0, 0, 1, 0])},
        "sample_weight is masked at row 3 ",
    ),
    "y mixed": (
        GOOD,
        np.array([0, "b", 0, "b", 0], object),
        {},
        "y holds int, str: use numbers alone",
    ),
    "ragged": ([[1.0, 2.0], [3.0], [1.0], [2.0], [3.0]], Y, {}, "list, is no table of numbers"),
    "lazy": (pl.DataFrame(GOOD).lazy(), Y, {}, "X is a LazyFrame.*collect it"),
}


BAD["sparse index"][0].indices[1] = 99


def unsound(kind, **changes):
    """A sparse matrix whose arrays were changed after scipy had looked at them."""
    X = kind(np.arange(1.0, 21.0).reshape(5, 4))
    for name, (place, value) in changes.items():
        array = getattr(X, name).copy()
        array[place] = value
        setattr(X, name, array)
    return X


def cut(X, name, size):
    setattr(X, name, getattr(X, name)[:size])
    return X


UNSOUND = {
    "negative index": (unsound(sparse.csr_array, indices=(7, -1)), "column index -1 at row 1"),
    "large index": (unsound(sparse.csr_matrix, indices=(0, 10**8)), "column index 100000000 at"),
    "falling": (unsound(sparse.csr_array, indptr=(2, 18)), "indptr falls at row 2"),
    "beyond": (unsound(sparse.csr_array, indptr=(5, 10**9)), "do not go together"),
    "first": (unsound(sparse.csr_array, indptr=(0, 2)), "do not go together"),
    "short data": (cut(unsound(sparse.csr_array), "data", 3), "do not go together"),
    "short indptr": (cut(unsound(sparse.csr_array), "indptr", 3), "do not go together"),
    "rows of columns": (unsound(sparse.csc_array, indices=(1, 99)), "row index 99 at column 0"),
    "falling columns": (unsound(sparse.csc_array, indptr=(1, 19)), "indptr falls at column 1"),
    "entries": (unsound(sparse.coo_matrix, col=(3, 44)), "column index 44 at entry 3"),
    "blocks": (unsound(lambda X: sparse.bsr_array(X, blocksize=(1, 2)), indices=(1, 9)), "ind"),
}


@pytest.mark.parametrize("kind", UNSOUND)
def test_sparse_matrices_that_lead_out_of_their_arrays_are_refused(kind):
    X, words = UNSOUND[kind]
    begun = make("cbr-diagonal").partial_fit(sparse.csr_array(GOOD), Y)
    scaler = StreamScaler().fit(sparse.csr_array(GOOD))
    for take in (
        lambda X: make("cbr-diagonal").fit(X, Y),
        lambda X: begun.partial_fit(X, Y),
        begun.decision_function,
        scaler.transform,
        *(StreamScaler(kind).learn_transform for kind in ("standard", "maxabs", "unit", "none")),
    ):
        with pytest.raises(ValueError, match=words):
            take(X)
    assert begun.n_seen_.sum() == scaler.n_rows_seen_ == 5


@every_ranker
def test_what_a_sparse_matrix_says_of_itself_is_not_believed(name):
    table = np.arange(1.0, 21.0).reshape(5, 4)
    X = sparse.csr_array(table)
    assert X.has_canonical_format
    X.indices[:4], X.data[:4] = [3, 2, 1, 0], [4.0, 3.0, 2.0, 1.0]
    expected = make(name).partial_fit(sparse.csr_array(table), Y).coef_
    np.testing.assert_array_equal(make(name).partial_fit(X, Y).coef_, expected)


@every_ranker
@pytest.mark.parametrize("form", ["f4", ">f8", ">f4", "i2", "?", object])
def test_numbers_of_any_kind_and_order_are_taken(name, form):
    table = (GOOD * 3).round().astype(form)
    expected = make(name).partial_fit(table.astype(np.float64), Y)
    labels = np.array(Y, ">i4")
    for rows in (table, np.asfortranarray(table), np.flip(np.flip(table, 0).copy(), 0)):
        ranker = make(name).partial_fit(rows, labels, sample_weight=np.ones(5, ">f4"))
        np.testing.assert_array_equal(ranker.coef_, expected.coef_)
        one = make(name).partial_fit(rows[:4], labels[:4]).learn_one(rows[4], labels[4])
        np.testing.assert_array_equal(one.coef_, expected.coef_)


@every_ranker
def test_masked_arrays_with_nothing_masked_are_plain_ones(name):
    expected = make(name).partial_fit(GOOD, Y).learn_one(GOOD[0], 1)
    masked = make(name).partial_fit(np.ma.array(GOOD, mask=np.zeros((5, 4), bool)), np.ma.array(Y))
    masked.learn_one(np.ma.array(GOOD[0]), 1)
    np.testing.assert_array_equal(masked.coef_, expected.coef_)


@every_ranker
@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("bad", BAD)
def test_error_says_what_and_where_and_nothing_is_lost(name, bad):
    X, y, more, message = BAD[bad]
    fresh, begun = make(name), make(name).partial_fit(GOOD, Y)
    fitted = make(name).fit(GOOD, Y)
    for ranker, learn in (
        (fresh, fresh.fit),
        (fresh, fresh.partial_fit),
        (begun, begun.partial_fit),
        (begun, begun.fit),
        (fitted, fitted.fit),
    ):
        before, known = copy.deepcopy(ranker.__dict__), hasattr(ranker, "_model")
        held = arrays(ranker) if known else {}
        with pytest.raises(ValueError, match=message):
            learn(X, y, **more)
        assert ranker.__dict__.keys() == before.keys()
        for fact in ("n_features_in_", "classes_", "_intercept", "feature_names_in_"):
            np.testing.assert_array_equal(ranker.__dict__.get(fact), before.get(fact))
        for key, array in held.items():
            np.testing.assert_array_equal(arrays(ranker)[key], array)


@every_ranker
def test_width_and_classes_must_stay(name):
    ranker = make(name).partial_fit(GOOD, Y)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        ranker.partial_fit(GOOD[:, :3], Y)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        ranker.learn_one(GOOD[0, :3], 1)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        ranker.decision_function(GOOD[:, :3])
    with pytest.raises(ValueError, match="7 at row 1, which is neither of the classes 0 and 1"):
        ranker.partial_fit(GOOD[:2], [0, 7])
    with pytest.raises(ValueError, match="7 at row 0, which is neither"):
        ranker.learn_one(GOOD[0], 7)
    with pytest.raises(ValueError, match="NaN at row 0, column 1"):
        ranker.learn_one([0.0, np.nan, 0.0, 0.0], 1)
    for learn in (ranker.partial_fit, lambda X, y, **more: ranker.learn_one(X[0], y[0], **more)):
        with pytest.raises(ValueError, match="is not the classes of the first call"):
            learn(GOOD, Y, classes=[0, 2])
        with pytest.raises(ValueError, match="missing label"):
            learn(GOOD, Y, classes=[0, np.nan])


@every_ranker
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_learn_one_takes_one_row_and_checks_it(name):
    frame = pd.DataFrame(GOOD, columns=list("abcd"))
    ranker = make(name).partial_fit(frame, Y)
    expected = make(name).partial_fit(frame, Y).partial_fit(frame[:1], [1])
    for row in (GOOD[0], GOOD[0].tolist(), GOOD[:1], frame.iloc[0], frame[:1], pl.Series(GOOD[0])):
        again = copy.deepcopy(ranker)
        again.learn_one(row, np.array(1))
        np.testing.assert_array_equal(again.coef_, expected.coef_)
    with pytest.raises(ValueError, match="takes one row, and x has 3"):
        ranker.learn_one(GOOD[:3], 1)
    with pytest.raises(ValueError, match="takes one row, and x has 3"):
        ranker.learn_one(sparse.csr_array(GOOD[:3]), 1)
    with pytest.raises(ValueError, match="feature names should match"):
        ranker.learn_one(frame.iloc[:1, ::-1], 1)
    with pytest.raises(ValueError, match="Complex data not supported"):
        ranker.learn_one(GOOD[0] + 1j, 1)
    with pytest.raises(ValueError, match=r"x is a dictionary.*cbrank\.river"):
        ranker.learn_one(dict(zip("abcd", GOOD[0], strict=True)), 1)
    with pytest.raises(ValueError, match="masked at row 0, column 3"):
        ranker.learn_one(np.ma.array(GOOD[0], mask=[0, 0, 0, 1]), 1)
    with pytest.raises(ValueError, match="NaN at row 0, column 1"):
        ranker.learn_one(pl.Series([1.0, None, 2.0, 3.0]), 1)


@every_ranker
def test_one_class_is_not_enough_to_start(name):
    for learn in (make(name).fit, make(name).partial_fit):
        with pytest.raises(ValueError, match="one class only"):
            learn(GOOD, np.ones(5))
    with pytest.raises(ValueError, match="one class only"):
        make(name).learn_one(GOOD[0], 1)
    with pytest.raises(ValueError, match="one class only"):
        make(name).fit(GOOD, Y, sample_weight=Y)
    with pytest.raises(ValueError, match="All sample weights are zero"):
        make(name).fit(GOOD, Y, sample_weight=np.zeros(5))
    with pytest.raises(ValueError, match="one class only or none"):
        make(name).partial_fit(GOOD, Y, classes=[])
    with pytest.raises(ValueError, match="one class only"):
        make(name, class_weight={0: 0.0}).fit(GOOD, Y)


@every_ranker
def test_parameters_are_checked_by_name(name):
    for bad in (
        {"n_passes": 0},
        {"class_weight": "heavy"},
        {"class_weight": {0: -1.0}},
        {"class_weight": {5: 1.0}},
        {"shuffle": "yes"},
        {"C" if hasattr(make(name), "C") else "step": -1},
    ):
        with pytest.raises(ValueError, match=next(iter(bad))):
            make(name, **bad).fit(GOOD, Y)
        with pytest.raises(ValueError, match=next(iter(bad))):
            make(name, **bad).partial_fit(GOOD, Y)


@pytest.mark.parametrize("bad", [{"eta": 0.5}, {"buffer_size": 0}, {"policy": "x"}, {"average": 3}])
def test_cbr_parameters_are_checked_by_name(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        make("cbr", **bad).fit(GOOD, Y)


def test_one_row_of_huge_numbers_is_learned_without_a_warning():
    ranker = make("cbr").partial_fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    assert np.isfinite(ranker.learn_one(np.array([1e200, 1.0]), 1).coef_).all()


@pytest.mark.parametrize("name", ["cbr", "oam"])
def test_a_label_of_weight_zero_is_as_good_as_absent(name):
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 7, 1])
    weights = np.array([1.0, 1.0, 0.0, 1.0])
    without = make(name).fit(X[weights > 0], y[weights > 0])
    assert_same(make(name).fit(X, y, sample_weight=weights), without)
    streamed = make(name).partial_fit(X[:2], y[:2]).partial_fit(X[2:], y[2:], None, weights[2:])
    assert streamed.n_seen_.tolist() == [1, 2]
    with pytest.raises(ValueError, match="y has 7 at row 2"):
        make(name).partial_fit(X[:2], y[:2]).partial_fit(X, y)


def test_learn_one_takes_one_label():
    ranker = make("cbr").partial_fit([[0.0], [1.0]], [0, 1])
    for labels in ([1, 0, 0], []):
        with pytest.raises(ValueError, match="y must be one label"):
            ranker.learn_one([1.0], labels)


def test_the_buffer_keeps_its_policy():
    ranker = make("cbr").partial_fit([[0.0], [1.0]], [0, 1]).set_params(policy="reservoir")
    with pytest.raises(ValueError, match="policy was 'fifo' when this stream began"):
        ranker.partial_fit([[2.0]], [1])


def test_a_stream_that_begins_anew_forgets_the_names_of_its_features():
    ranker, classes = make("cbr"), np.array([0, 1])
    ranker.feature_names_in_ = np.array(["age"], dtype=object)
    assert not hasattr(ranker.start(2, classes), "feature_names_in_")
    classes[0] = 9
    assert ranker.classes_.tolist() == [0, 1]
