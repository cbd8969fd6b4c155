"""CBRankerCV chooses what a plain loop over CBRanker would, faster and over one copy of the rows."""

import copy
import threading
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest
from learners import assert_same
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from threadpoolctl import threadpool_info

from cbrank import CBRanker, CBRankerCV, load, save

CS = [2.0**-8, 2.0**-2, 2.0**4]


def plain_scores(ranker, splits, X, y, weights=None, scoring=None):
    """Scores of the plain double loop: clone, fit, score."""

    def score(C, fit, held):
        by_row = [{} if weights is None else {"sample_weight": weights[k]} for k in (fit, held)]
        fitted = clone(ranker).set_params(C=C).fit(X[fit], y[fit], **by_row[0])
        if scoring is None:
            return fitted.score(X[held], y[held], **by_row[1])
        return get_scorer(scoring)(fitted, X[held], y[held], **by_row[1])

    return np.array([[score(C, fit, held) for C in CS] for fit, held in splits])


def minus_errors(ranker, X, y):
    return -np.mean((ranker.decision_function(X) > 0) != y)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"average": False, "shuffle": False},
        {"policy": "reservoir", "buffer_size": 10, "n_passes": 2},
        {"class_weight": "balanced", "random_state": np.random.RandomState(7)},
        {"class_weight": {1: 3.0}, "eta": 0.9},
        {"covariance": "diagonal"},
        {"covariance": "diagonal", "diagonal_update": "drop", "policy": "reservoir"},
    ],
)
@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
def test_chooses_what_the_plain_loop_does(as_rows, parameters, n_jobs, german):
    X, y = as_rows(german[0][:500]), german[1][:500]
    weights = np.random.RandomState(1).randint(0, 4, len(y)).astype(float)
    parameters = {"random_state": 0} | parameters
    splits = list(StratifiedKFold(3).split(X, y))
    for sample_weight in (None, weights):
        ranker = CBRanker(**clone(CBRanker(**parameters)).get_params())
        expected = plain_scores(ranker, splits, X, y, sample_weight)
        chosen = CBRankerCV(CS, n_jobs=n_jobs, **copy.deepcopy(parameters))
        chosen.fit(X, y, sample_weight=sample_weight)
        np.testing.assert_array_equal(chosen.scores_, expected)
        assert CS.index(chosen.C_) == expected.mean(axis=0).argmax()
        assert chosen.best_score_ == expected.mean(axis=0).max()
        again = ranker.set_params(C=chosen.C_).fit(X, y, sample_weight=sample_weight)
        assert_same(chosen, again)
        assert chosen.intercept_ == again.intercept_


@pytest.mark.parametrize(
    "scoring", ["roc_auc", "balanced_accuracy", "average_precision", minus_errors]
)
def test_any_scoring_sees_the_ranker_of_the_plain_loop(scoring, german):
    X, y = german
    expected = plain_scores(
        CBRanker(random_state=0), StratifiedKFold(3).split(X, y), X, y, scoring=scoring
    )
    chosen = CBRankerCV(CS, scoring=scoring, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(chosen.scores_, expected)


def test_weights_reach_the_scorer(german):
    X, y = german
    weights = np.random.RandomState(1).uniform(0.5, 2.0, len(y))
    splits = StratifiedKFold(3).split(X, y)
    expected = plain_scores(CBRanker(random_state=0), splits, X, y, weights, "balanced_accuracy")
    chosen = CBRankerCV(CS, scoring="balanced_accuracy", random_state=0).fit(X, y, weights)
    np.testing.assert_array_equal(chosen.scores_, expected)


def masks(X, y):
    fold = np.arange(len(y)) % 4
    return [(fold != k, fold == k) for k in range(4)]


@pytest.mark.parametrize(
    "folds",
    [
        lambda X, y: StratifiedKFold(4).split(X, y),
        lambda X, y: KFold(3, shuffle=True, random_state=3).split(X, y),
        lambda X, y: GroupKFold(3).split(X, y, np.arange(len(y)) // 10),
        masks,
        lambda X, y: [([*range(300), *range(300)], range(300, 400))],
    ],
)
def test_any_folds(folds, german):
    X, y = german
    splits = list(folds(X, y))
    expected = plain_scores(CBRanker(random_state=0), splits, X, y)
    for cv in (splits, iter(splits)):
        chosen = CBRankerCV(CS, cv=cv, random_state=0).fit(X, y)
        np.testing.assert_array_equal(chosen.scores_, expected)


def test_a_number_of_folds_and_a_splitter(german):
    X, y = german
    five = CBRankerCV(CS, cv=5, random_state=0).fit(X, y)
    assert five.scores_.shape == (5, 3)
    same = CBRankerCV(CS, cv=StratifiedKFold(5), random_state=0).fit(X, y)
    np.testing.assert_array_equal(same.scores_, five.scores_)


def test_the_default_grid_is_the_papers(german):
    X, y = german[0][:60], german[1][:60]
    chosen = CBRankerCV(random_state=0).fit(X, y)
    assert chosen.Cs_.tolist() == [2.0**k for k in range(-10, 11)]
    assert chosen.scores_.shape == (3, 21)
    fewer = CBRankerCV(np.int64(5), random_state=0).fit(X, y)
    np.testing.assert_allclose(fewer.Cs_, [2.0**k for k in range(-10, 11, 5)])


def test_the_smallest_of_equals_wins():
    X, y = np.array([[0.0], [1.0]] * 9), np.array([0, 1] * 9)
    chosen = CBRankerCV([1.0, 0.25, 4.0]).fit(X, y)
    assert chosen.scores_.tolist() == [[1.0] * 3] * 3
    assert chosen.C_ == 0.25
    assert chosen.Cs_.tolist() == [1.0, 0.25, 4.0]


def test_what_has_no_score_ranks_last(german):
    X, y = german

    def only_large(ranker, X, y):
        return 0.5 if ranker.C > 1 else np.nan

    chosen = CBRankerCV(CS, scoring=only_large).fit(X, y)
    assert CS.index(chosen.C_) == 2
    with pytest.raises(ValueError, match="No C has a score in every fold"):
        CBRankerCV(CS[:1], scoring=only_large).fit(X, y)


def test_scores_that_are_not_finite_count_as_none():
    y = np.array([0, 1] * 30)
    X = np.repeat(0.1 * y, 16).reshape(-1, 16)
    X[1] = 1.7e308
    chosen = CBRankerCV([1e-6, 16.0]).fit(X, y)
    assert np.argwhere(np.isnan(chosen.scores_)).tolist() == [[0, 1]]
    assert chosen.C_ == 1e-6


def test_the_fits_run_in_threads_with_blas_held_to_one(german):
    X, y = german
    two_at_once, blas = threading.Barrier(2, timeout=60), []

    def meet(ranker, X, y):
        two_at_once.wait()
        blas.extend(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")
        return 0.0

    CBRankerCV(CS, cv=2, scoring=meet, n_jobs=2).fit(X, y)
    assert set(blas) <= {1}


def test_the_rows_are_never_copied():
    X = np.random.RandomState(0).standard_normal((15_000, 150))
    y = (X[:, 0] > 1).astype(int)
    ranker = CBRankerCV(CS, covariance="diagonal", buffer_size=1, n_jobs=2)
    ranker.fit(X[:100], y[:100])
    tracemalloc.start()
    ranker.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 5


def test_a_stream_goes_on_with_the_c_chosen(german):
    X, y = german
    chosen = CBRankerCV(CS, random_state=0).fit(X[:300], y[:300])
    plain = CBRanker(chosen.C_, random_state=0).fit(X[:300], y[:300])
    for ranker in (chosen, plain):
        ranker.partial_fit(X[300:350], y[300:350]).learn_one(X[350], y[350])
    assert_same(chosen, plain)
    np.testing.assert_array_equal(chosen.predict(X), plain.predict(X))
    np.testing.assert_array_equal(
        chosen.decision_function(X, return_std=True), plain.decision_function(X, return_std=True)
    )
    np.testing.assert_array_equal(
        chosen.preference_proba(X[:9], X[9:18]), plain.preference_proba(X[:9], X[9:18])
    )


def test_a_saved_one_goes_on_as_the_ranker_it_chose(german, tmp_path):
    X, y = german
    chosen = CBRankerCV(CS, cv=KFold(3), scoring=minus_errors, random_state=0).fit(X, y)
    save(chosen, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.get_params() == CBRanker(chosen.C_, random_state=0).get_params()
    assert loaded.intercept_ == chosen.intercept_
    assert_same(loaded.partial_fit(X[:90], y[:90]), chosen.partial_fit(X[:90], y[:90]))
    with pytest.raises(NotFittedError, match="learned nothing yet"):
        save(chosen.set_params(refit=False).fit(X, y), tmp_path / "model")


def test_without_refit_it_only_chooses(german):
    X, y = german
    chosen = CBRankerCV(CS, random_state=0).fit(X, y)
    scores = chosen.scores_
    chosen.set_params(refit=False).fit(X, y)
    np.testing.assert_array_equal(chosen.scores_, scores)
    assert not hasattr(chosen, "coef_")
    with pytest.raises(NotFittedError):
        chosen.predict(X)
    chosen.partial_fit(X, y)
    assert_same(chosen, CBRanker(chosen.C_, random_state=0).partial_fit(X, y))


def test_there_is_no_stream_before_c_is_chosen():
    for method in ("partial_fit", "C_"):
        assert not hasattr(CBRankerCV(), method)
    with pytest.raises(ValueError, match="CBRankerCV chooses C in fit: call fit first"):
        CBRankerCV().partial_fit([[0.0]], [0], classes=[0, 1])
    with pytest.raises(ValueError, match="CBRankerCV chooses C in fit: call fit first"):
        CBRankerCV().learn_one([0.0], 0, classes=[0, 1])


def test_the_width_of_the_rows_stays(german):
    X, y = german
    chosen = CBRankerCV(CS).fit(X, y)
    for method in (chosen.predict, chosen.decision_function):
        with pytest.raises(ValueError, match="X has 1 features, but CBRankerCV is expecting 24"):
            method(X[:, :1])
    for learn in (chosen.score, chosen.partial_fit):
        with pytest.raises(ValueError, match="X has 1 features, but CBRankerCV is expecting 24"):
            learn(X[:, :1], y)


def test_it_has_every_parameter_of_cbranker_but_c():
    ours, plain = CBRankerCV().get_params(), CBRanker().get_params()
    own = {"Cs": 21, "cv": 3, "scoring": None, "n_jobs": None, "refit": True}
    assert ours == own | {
        name: value for name, value in plain.items() if name not in {"C", "horizon"}
    }


def test_frames_keep_their_names(german):
    X, y = german
    frame = pd.DataFrame(X, columns=[f"column {k}" for k in range(X.shape[1])])
    chosen = CBRankerCV(CS, random_state=0).fit(frame, y)
    assert chosen.feature_names_in_.tolist() == frame.columns.tolist()
    np.testing.assert_array_equal(
        chosen.decision_function(frame),
        CBRankerCV(CS, random_state=0).fit(X, y).decision_function(X),
    )


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "one class to measure": (
        {"cv": [([0, 1, 2, 3], [0, 2])]},
        r"Fold 0 of cv has rows of one class only, or none, to measure: \[0\]; use fewer folds",
    ),
    "one class to fit": (
        {"cv": [([0, 1], [2, 3]), ([1, 3], [0, 1])]},
        r"Fold 1 of cv has rows of one class only, or none, to fit: \[1\]; use fewer folds",
    ),
    "nothing to measure": ({"cv": [([0, 1], [])]}, r"to measure: \[\]"),
    "no folds": ({"cv": []}, "cv gives no folds"),
    "more folds than rows": ({"cv": 9}, "n_splits=9 greater than the number of samples"),
    "no C": ({"Cs": []}, r"Cs must be finite numbers above 0, at least one; got \[\]"),
    "negative C": ({"Cs": [1.0, -1.0]}, "Cs must be finite numbers above 0"),
    "NaN C": ({"Cs": [1.0, np.nan]}, "Cs must be finite numbers above 0"),
    "table of C": ({"Cs": [[1.0]]}, "Cs must be finite numbers above 0"),
    "zero C": ({"Cs": 0}, "'Cs' parameter"),
    "no such scoring": ({"scoring": "rocauc"}, "'scoring' parameter"),
    "class without weight": ({"class_weight": {0: 0.0}}, "Ranking needs two classes"),
}


@pytest.mark.parametrize("bad", BAD)
def test_an_error_names_the_cure_and_nothing_is_lost(bad):
    X, y = np.random.RandomState(0).standard_normal((8, 2)), np.array([0, 1] * 4)
    parameters, message = BAD[bad]
    ranker = CBRankerCV([1.0], cv=2, random_state=0).fit(X, y)
    before = copy.deepcopy(ranker.__dict__)
    with pytest.raises(ValueError, match=message):
        ranker.set_params(**parameters).fit(X, y)
    ranker.set_params(**{name: before[name] for name in parameters})
    assert ranker.__dict__.keys() == before.keys()
    assert_same(ranker, CBRanker(1.0, random_state=0).fit(X, y))


def test_rows_of_no_weight_do_not_make_a_class():
    X, y = np.random.RandomState(0).standard_normal((12, 2)), np.array([0, 1] * 6)
    with pytest.raises(ValueError, match="Fold 0 of cv has rows of one class only"):
        CBRankerCV([1.0]).fit(X, y, sample_weight=[1, 0, 1, 0] + [1] * 8)


def test_a_function_of_ranker_rows_and_labels_can_score_weighted_rows(german):
    X, y = german
    chosen = CBRankerCV([0.5, 1.0], scoring=lambda ranker, X, y: ranker.score(X, y), random_state=0)
    chosen.fit(X, y, sample_weight=np.full(len(y), 2.0))
    plain = CBRankerCV([0.5, 1.0], random_state=0).fit(X, y, sample_weight=np.full(len(y), 2.0))
    np.testing.assert_allclose(chosen.scores_, plain.scores_)
