"""Single rows by one compiled call: to the last bit what the checks and the general kernels make of them."""

import copy
import os
import pickle
import threading
from collections.abc import Callable
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
from disturbances import everywhere
from hypothesis import given, settings
from hypothesis import strategies as st
from learners import assert_same
from sklearn.exceptions import NotFittedError

import cbrank
from cbrank import AdditiveRanker, CBRanker, CBRankerCV, kernels
from cbrank.datasets import load
from cbrank.rankers.base import Ranker

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="Python has no addresses"
)
FORMS = {
    "full": {"C": 0.1},
    "mean": {"C": 0.1, "average": False, "buffer_size": 5},
    "reservoir": {"C": 0.1, "policy": "reservoir", "buffer_size": 5},
    "balanced": {"C": 0.1, "class_weight": "balanced"},
    "balanced-accuracy": {"C": 0.1, "class_weight": "balanced", "operating_point": "accuracy"},
    "costs": {"C": 0.1, "class_weight": {0: 1.0, 1: 3.0}, "operating_point": "accuracy"},
    "one-sided": {"C": 0.1, "class_weight": {0: 0.0}},
    "diagonal": {"C": 0.1, "covariance": "diagonal"},
    "forgetting": {"C": 0.1, "forgetting": 0.01},
    "auto": {},
    "auto-average": {"average": True, "forgetting": 0.0},
}
SAID = ("decision_function", "predict", "predict_proba")


@contextmanager
def in_general():
    """Let no row be learned or scored by the one call."""
    with (
        mock.patch.object(CBRanker, "learn_at_once", Ranker.learn_at_once),
        mock.patch.object(CBRanker, "say_at_once", Ranker.say_at_once),
    ):
        yield


def rows(count, width=4, seed=0):
    random = np.random.RandomState(seed)
    X = random.standard_normal((count, width))
    return X, (X[:, 0] + random.standard_normal(count) > 0.8).astype(int)


def pair(X, y, **parameters):
    one = CBRanker(random_state=0, **parameters).partial_fit(X, y)
    return one, copy.deepcopy(one)


def assert_say_the_same(one, other, row):
    for name in SAID:
        found = getattr(one, name)(row)
        with in_general():
            expected = getattr(other, name)(row)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_of_single_rows_is_learned_and_scored_alike(form):
    X, y, _ = load("german")
    X, y = np.tile(X, (2, 1))[:1620], np.tile(y == 1, 2)[:1620].astype(int)
    one, other = pair(X[:20], y[:20], **FORMS[form])
    original = CBRanker.learn_row
    with mock.patch.object(CBRanker, "learn_row", autospec=True, side_effect=original) as checked:
        for row, label in zip(X[20:], y[20:], strict=True):
            assert_say_the_same(one, other, row[None])
            one.learn_one(row, label)
            with in_general():
                other.learn_one(row, label)
    assert_same(one, other)
    # All but rows of weight 0 and those after which a learner forgets: every 64th, every 500th.
    others = {"diagonal": 1600, "one-sided": (y[20:] == 0).sum(), "forgetting": 25, "auto": 3}
    if form.startswith("auto"):  # of which the first 64 wait until the scales of columns are known
        others[form] = others.get(form, 0) - 44
    assert checked.call_count == 1600 + others.get(form, 0)


def saved(ranker, folder):
    cbrank.save(ranker, folder / "model")
    return cbrank.load(folder / "model")


CHANGES = {
    "chunk": lambda ranker, _: ranker.partial_fit(*rows(37, ranker.n_features_in_, 1)),
    "weights of zero": lambda ranker, _: ranker.partial_fit(
        *rows(5, ranker.n_features_in_, 1), sample_weight=np.zeros(5)
    ),
    "copy": lambda ranker, _: copy.deepcopy(ranker),
    "pickle": lambda ranker, _: pickle.loads(pickle.dumps(ranker)),
    "file": saved,
    "wider": lambda ranker, _: ranker.resize(ranker.n_features_in_ + 1) or ranker,
    "mean": lambda ranker, _: ranker.set_params(average=False),
    "average": lambda ranker, _: ranker.set_params(average=True),
    "point": lambda ranker, _: ranker.set_params(operating_point="accuracy"),
    "weights": lambda ranker, _: ranker.set_params(class_weight={0: 2.0}),
    "merged": lambda ranker, _: cbrank.merge([ranker, copy.deepcopy(ranker)]),
    "fit": lambda ranker, _: ranker.set_params(class_weight=None).fit(
        *rows(80, ranker.n_features_in_, 2)
    ),
}


@settings(max_examples=25, deadline=None)
@given(
    form=st.sampled_from([*FORMS]),
    seed=st.integers(0, 99),
    scale=st.sampled_from([1.0, 1e6, 1e200]),
    changes=st.lists(st.tuples(st.integers(1, 40), st.sampled_from([*CHANGES])), max_size=6),
)
def test_nothing_that_comes_between_makes_a_difference(
    form, seed, scale, changes, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("models")
    X, y = rows(400, 4, seed)
    X[seed % 7 :: 7] *= scale
    one, other = pair(X[:9], y[:9] | (np.arange(9) == 0), **FORMS[form])
    at = 9
    for count, change in [*changes, (20, "chunk")]:
        for short, label in zip(X[at : at + count], y[at : at + count], strict=True):
            row = np.resize(short, one.n_features_in_)
            assert_say_the_same(one, other, row[None])
            one.learn_one(row, label)
            with in_general():
                other.learn_one(row, label)
        at += count
        one = CHANGES[change](one, folder)
        with in_general():
            other = CHANGES[change](other, folder)
        assert_say_the_same(one, other, np.resize(X[0], (1, one.n_features_in_)))
    assert_same(one, other)


FORMATS: dict[str, Callable[..., np.ndarray]] = {
    "float32": lambda X: X.astype(np.float32),
    "whole numbers": lambda X: (10 * X).astype(np.int64),
    "booleans": lambda X: X > 0,
    "Fortran": np.asfortranarray,
    "every second": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "swapped bytes": lambda X: X.astype(X.dtype.newbyteorder()),
}


@pytest.mark.parametrize("form", FORMATS)
def test_numbers_of_any_kind_are_taken_and_none_are_kept(form):
    X, y = rows(60)
    one, other = pair(X[:20], y[:20], C=0.1)
    for at in range(20, 60):
        row = FORMATS[form](X[[at]])
        row.flags.writeable = at % 2 == 0
        assert_say_the_same(one, other, row)
        mine, theirs = np.require(row[0], requirements="W"), row[0].copy()
        one.learn_one(mine, y[at])
        mine[:] = 0
        with in_general():
            other.learn_one(theirs, y[at])
    assert_same(one, other)
    calls = kernels.one_row.learn, kernels.one_row.score, kernels.one_row.probabilities
    assert [len(call.signatures) for call in calls] == [1, 1, 1]


WRONG = {
    "a gap": ([0.0, np.nan, 0.0, 0.0], 1),
    "infinity": ([0.0, -np.inf, 0.0, 0.0], 1),
    "too few": ([0.0, 0.0], 1),
    "complex": ([1j, 0.0, 0.0, 0.0], 1),
    "another label": ([0.0] * 4, 2),
    "no label": ([0.0] * 4, None),
    "labels": ([0.0] * 4, [0, 1]),
    "words": (["a"] * 4, 1),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_refused_in_the_same_words_and_changes_nothing(what):
    x, label = WRONG[what]
    one, other = pair(*rows(60), C=0.1)
    one.learn_one(np.ones(4), 1)
    other.learn_one(np.ones(4), 1)

    def told(call, *args):
        with pytest.raises(ValueError) as error:  # noqa: PT011
            call(*args)
        return type(error.value), str(error.value)

    said = told(one.learn_one, np.array(x), label)
    with in_general():
        assert said == told(other.learn_one, np.array(x), label)
    if "label" not in what:
        for name in SAID:
            found = told(getattr(one, name), np.array([x]))
            with in_general():
                assert found == told(getattr(other, name), np.array([x]))
    assert_same(one, other)


def test_parameters_are_looked_at_before_each_row():
    X, y = rows(80)
    one, other = pair(X[:40], y[:40], C=0.1)
    weights = {1: 5.0}
    for at, change in enumerate([{"C": 1.0}, {"eta": 0.9}, {"class_weight": weights}, {}, {}], 40):
        if not change:
            weights[1] /= 5.0
        for ranker in (one, other):
            ranker.set_params(**change)
        one.learn_one(X[at], 1)
        with in_general():
            other.learn_one(X[at], 1)
        assert_same(one, other)
    with pytest.raises(ValueError, match="'C' parameter"):
        one.set_params(C=-1.0).learn_one(X[0], 0)
    one.decision_function(X[:1])  # scores are no matter of C
    with pytest.raises(ValueError, match="buffer_size was 'auto'"):
        one.set_params(C=0.1, buffer_size=7).learn_one(X[0], 0)


@pytest.mark.parametrize(
    ("own", "for_a_moment"),
    [({"average": True}, {"average": False}), ({"forgetting": 0.01}, {"forgetting": 0.0})],
)
@pytest.mark.parametrize("C", [1.0, "auto"])
def test_what_is_asked_under_other_parameters_leaves_no_trace(own, for_a_moment, C):
    X, y = rows(140)
    one, other = pair(X[:40], y[:40], C=C, **own)
    for x, label in zip(X[40:], y[40:], strict=True):
        one.learn_one(x, label)
        with in_general():
            other.learn_one(x, label)
        one.set_params(**for_a_moment, operating_point="accuracy").predict_proba(X[:1])
        one.set_params(**own, operating_point="balanced")
    assert_same(one, other)
    assert_say_the_same(one, other, X[:1])


def test_costs_that_make_no_sense_matter_to_those_that_need_them():
    X, y = rows(50)
    one, other = pair(X, y, C=1.0)
    one.set_params(class_weight={7: 1.0})
    np.testing.assert_array_equal(one.predict_proba(X[:1]), other.predict_proba(X[:1]))


def test_a_search_without_a_refit_has_nothing_to_say_of_one_row():
    X, y = rows(80)
    chosen = CBRankerCV(Cs=[0.5, 1.0], cv=2, random_state=0).fit(X, y)
    chosen.set_params(refit=False).fit(X, y)
    with pytest.raises(NotFittedError):
        chosen.predict_proba(X[:1])


def test_names_are_asked_for_as_ever():
    X, y = rows(60)
    ranker = CBRanker(0.1).partial_fit(X, y)
    ranker.predict(X[:1])
    ranker.feature_names_in_ = np.array(["a", "b", "c", "d"], object)
    with pytest.warns(UserWarning, match="valid feature names"):
        ranker.predict(X[:1])


def test_one_class_so_far_and_none():
    ranker = CBRanker(0.1)
    with pytest.raises(ValueError, match="not fitted"):
        ranker.predict_proba(np.zeros((1, 3)))
    ranker.learn_one(np.ones(3), 1, classes=[0, 1]).learn_one(np.ones(3), 1)
    assert_say_the_same(ranker, ranker, np.ones((1, 3)))
    assert ranker.predict(np.ones((1, 3))) == 1


def test_tables_are_read_as_ever():
    X, y = rows(400)
    ranker = AdditiveRanker(random_state=0).partial_fit(X, y)
    other = copy.deepcopy(ranker)
    assert_say_the_same(ranker, other, X[:1])
    ranker.learn_one(X[0], y[0])
    assert ranker._own.session is None


@pytest.mark.parametrize(
    "rows_before", [30, 31]
)  # the row is the last but one of a block, or the last
def test_interrupted_anywhere_a_row_is_learned_or_not(rows_before):
    X, y = rows(40)
    before = CBRanker(0.1, random_state=0).partial_fit(X[:20], y[:20])
    for row, label in zip(X[20:rows_before], y[20:rows_before], strict=True):
        before.learn_one(row, label)

    def learn(ranker):
        ranker.learn_one(X[rows_before], y[rows_before])

    after = copy.deepcopy(before)
    learn(after)
    ends = []
    for subject in everywhere(lambda: copy.deepcopy(before), learn, 1):
        ends.append(int(subject.n_seen_.sum()) - rows_before)
        assert_same(subject, after if ends[-1] else before)
    assert {*ends} == {0, 1}


def test_rows_are_scored_while_others_are_learned_and_features_come():
    X, y = rows(3000, 12)
    ranker, stop, faults = CBRanker(0.1).partial_fit(X[:40, :2], y[:40]), threading.Event(), []

    def ask():
        while not stop.is_set():
            try:
                p = ranker.predict_proba(np.ones((1, ranker.n_features_in_)))
                if not np.isfinite(p).all():
                    faults.append(p)
            except ValueError as error:
                if "features" not in str(error):  # it has become wider in between
                    faults.append(error)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for thread in askers:
        thread.start()
    for at in range(40, 3000):
        if at % 300 == 0:
            ranker.resize(ranker.n_features_in_ + 1)
        ranker.learn_one(X[at, : ranker.n_features_in_], y[at])
    stop.set()
    for thread in askers:
        thread.join()
    assert not faults
    assert ranker.n_seen_.sum() == 3000
