"""Bad input gets an error that names what and where, and leaves the model as it was."""

import copy

import numpy as np
import pandas as pd
import pytest
from learners import RANKERS, arrays, make
from scipy import sparse

every_ranker = pytest.mark.parametrize("name", RANKERS)


def with_cell(value, row=3, column=2):
    X = np.ones((5, 4))
    X[row, column] = value
    return X


Y = [0, 1, 0, 1, 0]
GOOD = np.random.RandomState(0).standard_normal((5, 4))
TEXT = pd.DataFrame({"a": [1.0, 2, 3, 4, 5], "b": [1, 2, "x7", 4, 5], "c": 1.0, "d": 2.0})

BAD: dict = {
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
}


BAD["sparse index"][0].indices[1] = 99


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
        for known in ("n_features_in_", "classes_", "_threshold", "feature_names_in_"):
            np.testing.assert_array_equal(ranker.__dict__.get(known), before.get(known))
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
    for row in (GOOD[0], GOOD[0].tolist(), GOOD[:1], frame.iloc[0], frame[:1]):
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
