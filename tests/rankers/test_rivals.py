"""The later rivals: against their formulas, and what is theirs alone."""

from typing import Any

import numpy as np
import pytest
import rival_oracles
from real_data import real
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from cbrank import FTRLAUCRanker, SCWRanker, SPAUCRanker

# A ranker, its oracle and what the oracle is told, by a short name.
ORACLES: dict[str, tuple[Any, Any, dict[str, float]]] = {
    "scw": (SCWRanker(class_weight=None), rival_oracles.scw_full, {"C": 0.25}),
    "scw-diagonal": (
        SCWRanker(C=0.1, eta=0.9, covariance="diagonal", class_weight=None),
        rival_oracles.scw_diagonal,
        {"C": 0.1, "eta": 0.9},
    ),
    "ftrl": (FTRLAUCRanker(), rival_oracles.ftrl_auc, {"step": 1 / 32}),
    "ftrl-sparse": (
        FTRLAUCRanker(step=0.1, l1=2.0, l2=3.0, beta=0.5),
        rival_oracles.ftrl_auc,
        {"step": 0.1, "l1": 2.0, "l2": 3.0, "beta": 0.5},
    ),
    "spauc": (SPAUCRanker(), rival_oracles.spauc, {"step": 1 / 256}),
    "spauc-ridge": (
        SPAUCRanker(step=0.01, regularization=0.5),
        rival_oracles.spauc,
        {"step": 0.01, "regularization": 0.5},
    ),
}
# The forms that take weights as factors of C or of the step alone, as all behaviour tests ask.


def apart(ours, theirs):
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scaling", ["standard", "unit"])
@pytest.mark.parametrize("table", ["german", "svmguide3", "spambase"])
@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("weighted", [False, True])
def test_rivals_are_their_papers(name, table, scaling, as_rows, weighted):
    X, y = real(table, 200, scaling)
    weights = np.random.RandomState(3).choice([0.0, 0.5, 1.0], len(y)) if weighted else None
    ranker, learn, options = ORACLES[name]
    ranker = clone(ranker).set_params(class_weight="balanced" if weighted else None)
    ranker.partial_fit(as_rows(X), y, sample_weight=weights)
    expected = learn(X, y, weights=weights, balanced=weighted, **options)
    assert apart(ranker.coef_[0], expected.w) < 1e-8
    if hasattr(ranker, "covariance_"):
        assert apart(ranker.covariance_, expected.covariance) < 1e-8


@pytest.mark.parametrize("name", ORACLES)
def test_sparse_rows_with_gaps(name):
    X, y = real("svmguide3", 300, "unit")
    X[np.random.RandomState(0).random_sample(X.shape) < 0.7] = 0.0
    ranker, learn, options = ORACLES[name]
    ranker = clone(ranker).partial_fit(sparse.csr_array(X), y)
    assert apart(ranker.coef_[0], learn(X, y, **options).w) < 1e-8


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("C", [2.0**-10, 1.0, 2.0**10])
@pytest.mark.parametrize("scaling", ["standard", "none"])
def test_scw_never_diverges_and_its_covariance_only_shrinks(scaling, C, covariance):
    X, y = real("diabetes", scaling=scaling)
    ranker = SCWRanker(C=C, covariance=covariance)
    before = np.ones(X.shape[1])
    for begin in range(0, len(y), 100):
        ranker.partial_fit(X[begin : begin + 100], y[begin : begin + 100])
        held = ranker.covariance_
        variances = np.diag(held) if covariance == "full" else held
        assert np.isfinite(ranker.coef_).all()
        assert (variances > 0).all()
        assert (variances <= before).all()
        np.testing.assert_array_equal(held, held.T)
        before = variances.copy()
    assert not ranker.diverged_


def test_scw_is_balanced_unless_told_otherwise(german):
    X, y = german
    counts = np.bincount(y)
    one = SCWRanker(shuffle=False).fit(X, y)
    other = SCWRanker(class_weight=None, shuffle=False)
    other.fit(X, y, sample_weight=(len(y) / (2 * counts))[y])
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-12)
    with pytest.raises(ValueError, match="eta"):
        SCWRanker(eta=0.5).fit(X, y)


def test_ftrl_without_penalties_is_a_gradient_step_per_feature(german):
    X, y = german
    ranker = FTRLAUCRanker(step=0.1).partial_fit(X[:500], y[:500])
    x, model = X[500], ranker._learned.state.models[0]
    label = y[500]
    share = ranker.n_seen_[1 - label] / 501
    g = 2 * share * (x @ ranker.coef_[0] - model.mean_score[1 - label] - (2 * label - 1)) * x
    expected = ranker.coef_[0] - 0.1 * g / (1 + np.sqrt(model.n + g**2))
    ranker.learn_one(x, label)
    np.testing.assert_allclose(ranker.coef_[0], expected, rtol=1e-9)


def test_ftrl_l1_leaves_out_features_and_keeps_the_ranking():
    X, y = real("spambase", scaling="standard")
    dense = FTRLAUCRanker(random_state=0).fit(X[:3000], y[:3000])
    lean = FTRLAUCRanker(l1=150.0, random_state=0).fit(X[:3000], y[:3000])
    assert np.count_nonzero(dense.coef_) == X.shape[1]
    assert 0 < np.count_nonzero(lean.coef_) < X.shape[1] * 2 / 3
    assert lean.score(X[3000:], y[3000:]) > dense.score(X[3000:], y[3000:]) - 0.05
    tight = FTRLAUCRanker(l2=1e6, random_state=0).fit(X[:3000], y[:3000])
    assert np.abs(tight.coef_).max() < np.abs(dense.coef_).max() / 10


def test_spauc_converges_to_the_least_squares_ranking(german):
    X, y = german
    means = X[y == 0].mean(axis=0), X[y == 1].mean(axis=0)
    within = sum(np.cov(X[y == label].T, bias=True) for label in (0, 1))
    best = X @ np.linalg.solve(within, means[1] - means[0])
    ranker = SPAUCRanker(step=2.0**-10, regularization=0.0, n_passes=30, random_state=0).fit(X, y)
    assert ranker.score(X, y) == pytest.approx(roc_auc_score(y, best), abs=0.002)
    for label in (0, 1):
        np.testing.assert_allclose(
            ranker._learned.state.models[0].mean[label], means[label], atol=1e-12
        )
