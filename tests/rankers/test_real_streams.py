"""Real streams as bad as they come: every ranker stays finite, or says why it stopped."""

import warnings
from typing import Any

import numpy as np
import one_class
import pytest
from learners import CBR, RANKERS, REGISTERED, make
from real_data import real
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score


def one_against_the_rest(name, rows=None, scaling="none"):
    """Rows as `real` has them, with one class of the file's own as the positive one."""
    X, _ = real(name, rows, scaling)
    _, y = one_class.load(name)
    return X, y[np.random.RandomState(0).permutation(len(y))[:rows]]


def rare(X, y):
    """Keep so few positives that they are 1% of the rows."""
    positives = np.flatnonzero(y)[: max(2, int((y == 0).sum() / 99))]
    kept = np.sort(np.concatenate([np.flatnonzero(y == 0), positives]))
    return X[kept], y[kept]


def one_class_first(X, y):
    first = np.flatnonzero(y == 0)[:1000]
    order = np.concatenate([first, np.setdiff1d(np.arange(len(y)), first)])
    return X[order], y[order]


def with_columns(X, y, columns):
    return np.hstack([X, columns]), y


STREAMS = {
    "raw": lambda X, y: (X, y),
    "1% positives": rare,
    "one class for 1,000 rows": one_class_first,
    "duplicated rows": lambda X, y: (np.repeat(X, 3, axis=0), np.repeat(y, 3)),
    "constant columns": lambda X, y: with_columns(X, y, np.full((len(y), 2), [1.0, 1e6])),
    "columns 1e8 apart": lambda X, y: (X * np.logspace(-4, 4, X.shape[1]), y),
    "all-zero rows": lambda X, y: (X * (np.arange(len(y)) % 3 > 0)[:, None], y),
    "huge values": lambda X, y: (X * 1e152, y),
}


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("stream", STREAMS)
def test_rankers_survive(stream, name, as_rows):
    X, y = STREAMS[stream](*one_against_the_rest("segment"))
    ranker = make(name)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for begin in range(0, len(y), 700):
            rows = slice(begin, begin + 700)
            ranker.partial_fit(as_rows(X[rows]), y[rows], classes=[0, 1])
    assert np.isfinite(ranker.coef_).all()
    assert {warning.category for warning in said} <= {ConvergenceWarning}
    assert ranker.diverged_ == bool(said)
    assert not (ranker.diverged_ and name in CBR)
    if hasattr(ranker, "covariance_"):
        assert np.isfinite(ranker.covariance_).all()
    if stream != "huge values":
        assert np.isfinite(ranker.decision_function(X)).all()


@pytest.mark.parametrize("name", ["cbr", "cbr-paper", "cbr-reservoir"])
@pytest.mark.parametrize("stream", [name for name in STREAMS if name != "huge values"])
def test_full_cbr_ranks_well_on_all_of_them(stream, name):
    X, y = STREAMS[stream](*one_against_the_rest("segment"))
    ranker = make(name, C=1.0).partial_fit(X, y)
    seen = X.any(axis=1)
    assert roc_auc_score(y[seen], ranker.decision_function(X[seen])) > 0.97


@pytest.mark.parametrize("step", [2.0**k for k in range(-10, 11, 5)])
@pytest.mark.parametrize("name", ["opauc", "opauc-sketch", "adaoam", "uniexp", "ftrl", "spauc"])
def test_a_step_too_large_is_said_and_survived(name, step):
    X, y = real("german")
    ranker = make(name, step=step)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ranker.fit(X, y)
        ranker.learn_one(X[0], 1)
    assert np.isfinite(ranker.coef_).all()
    assert np.isfinite(ranker.decision_function(X)).all()
    assert 0.0 <= ranker.score(X, y) <= 1.0
    assert ranker.diverged_ == bool(said)
    assert {warning.category for warning in said} <= {ConvergenceWarning}
    assert not (ranker.diverged_ and name == "ftrl")
    if said:
        assert "diverged at row" in str(said[0].message)
        assert said[0].filename == __file__


def test_divergence_names_the_row_and_keeps_the_weights_before_it():
    X, y = real("german")
    ranker = make("opauc", step=1.0)
    with pytest.warns(ConvergenceWarning, match="OPAUCRanker diverged at row"):
        ranker.partial_fit(X, y)
    row = int(ranker._learned.state.models[0].diverged[0])
    before = make("opauc", step=1.0).partial_fit(X[: row - 1], y[: row - 1])
    assert not before.diverged_
    np.testing.assert_array_equal(ranker.coef_, before.coef_)


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", REGISTERED)
@pytest.mark.parametrize("size", [1e101, 1e155, 1e308])
def test_numbers_near_the_largest_leave_finite_weights(size, name, as_rows):
    random = np.random.RandomState(0)
    y = np.arange(300) % 3 // 2
    X = np.column_stack([random.randn(300) + y, random.choice([-size, size], 300)])
    for settings in ({}, {"sample_weight": np.full(300, 1e307)}):
        ranker = make(name)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ranker.partial_fit(as_rows(X), y, **settings)
        assert np.abs(ranker.coef_).max() < (
            1e100 if hasattr(ranker._learned.state.models[0], "diverged") else np.inf
        )
        assert ranker.diverged_ == bool(said)
        assert {warning.category for warning in said} <= {ConvergenceWarning}


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
def test_oam_refuses_a_step_too_long_and_all_after_it(as_rows):
    X, y = real("german")
    X[100:] *= 1e95
    ranker = make("oam-gradient")
    with pytest.warns(ConvergenceWarning, match="OAMRanker diverged at row 101"):
        ranker.partial_fit(as_rows(X), y)
    before = make("oam-gradient").partial_fit(as_rows(X[:100]), y[:100])
    np.testing.assert_array_equal(ranker.coef_, before.coef_)
    with pytest.warns(ConvergenceWarning, match="OAMRanker diverged at row"):
        ranker = make("oam", C=1e300).partial_fit(as_rows(X[:100] * 1e-95), y[:100])
    assert not ranker.coef_.any()


@pytest.mark.parametrize("name", CBR)
def test_cbr_never_diverges_over_the_whole_grid(name):
    X, y = real("diabetes")
    for C in 2.0 ** np.arange(-10, 11):
        ranker = make(name, C=C).fit(X, y)
        assert np.isfinite(ranker.coef_).all()
        assert np.isfinite(ranker.covariance_).all()


@pytest.mark.parametrize("name", REGISTERED)
def test_a_large_stream(name):
    X, y = one_against_the_rest("covtype", 20_000, "standard")
    ranker = make(name).partial_fit(X, y)
    assert np.isfinite(ranker.coef_).all()
    assert ranker.score(X, y) > 0.6


EXTREME: dict[str, Any] = {
    "one column": lambda X: X[:, :1],
    "constant": lambda X: np.full_like(X, 3.0),
    "zero": np.zeros_like,
    "huge": lambda X: X * 1e300,
    "tiny": lambda X: X * 1e-300,
    "one huge cell": lambda X: np.where(np.arange(X.size).reshape(X.shape) == 700, 1e300, X),
}


@pytest.mark.parametrize("kind", EXTREME)
@pytest.mark.parametrize("name", RANKERS)
def test_what_rankers_say_is_finite_on_any_finite_rows(name, kind):
    X, y = real("german", 600, "standard")
    X = EXTREME[kind](X)
    ranker = make(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranker.partial_fit(X, y)
    assert np.isfinite(ranker.coef_).all()
    assert np.isfinite(ranker.intercept_).all()
    with np.errstate(over="ignore", invalid="ignore"):
        probabilities = ranker.predict_proba(X)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    for array in ranker._learned.state.record:
        assert np.isfinite(array).all()
    auc = ranker.progressive_auc_
    assert np.isnan(auc) or 0.0 <= auc <= 1.0
