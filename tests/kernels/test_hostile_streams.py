"""Sentinels, ids, timestamps and their like: any sweep and any split give the same sound model."""

import hostile_streams
import numpy as np
import oracles
import pytest
from hostile_streams import HOSTILE, learned
from scipy import sparse

from cbrank import CBRanker, kernels


# 261: a column of 1e100 has covariances next to the least of doubles.
@pytest.mark.parametrize("seed", [*range(24), 261])
def test_blocks_pairs_and_splits_agree(seed):
    found, _ = hostile_streams.faults(seed)
    assert not found


def with_hostile_column(kind, d, n, seed=0, copies=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    y = (X[:, 3:].sum(axis=1) + rng.normal(size=n) > 0).astype(int)
    X[:, :copies] = HOSTILE[kind](rng, n)[:, None]
    return X, y


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("kind", HOSTILE)
def test_every_kernel_is_that_of_long_doubles(kind, average):
    X, y = with_hostile_column(kind, 6, 150)
    centred = X - np.median(X, axis=0)
    for covariance, form in [
        ("full", "paper"),
        *(("diagonal", f) for f in kernels.confidence.DIAGONAL_FORMS),
    ]:
        parameters = {
            "C": 0.1,
            "covariance": covariance,
            "diagonal_update": form,
            "average": average,
        }
        exact = (
            oracles.cbr_full(X, y, 0.1, dtype=np.longdouble)
            if covariance == "full"
            else oracles.cbr_diagonal(X, y, 0.1, form=form, dtype=np.longdouble)
        )
        weights = np.asarray(exact.average if average else exact.mu, float)
        for rows in [X, sparse.csr_array(X)] if covariance == "diagonal" else [X]:
            ours = CBRanker(**parameters).partial_fit(rows, y).coef_[0]
            for some in [[0], list(range(1, 6))]:
                scores = centred[:, some] @ weights[some]
                gap = np.abs(centred[:, some] @ ours[some] - scores).max()
                assert gap <= 1e-8 * max(scores.std(), 1e-290), (covariance, form, type(rows))


@pytest.mark.parametrize("of_the_paper", [False, True])
@pytest.mark.parametrize("d", [12, 200])
@pytest.mark.parametrize("kind", HOSTILE)
def test_copies_of_hostile_columns_do_not_diverge(kind, d, of_the_paper):
    X, y = with_hostile_column(kind, d, 250, copies=3)
    parameters = {"C": 0.1} | ({"average": False, "buffer_size": 50} if of_the_paper else {})
    whole, split = learned(X, y, **parameters), learned(X, y, [1, 40, 41, 200], **parameters)
    for ranker in (whole, split):
        assert np.isfinite(ranker.covariance_).all()
        assert np.abs(ranker.coef_).max() < 100
    ordinary = X[:, 3:] @ whole.coef_[0, 3:], X[:, 3:] @ split.coef_[0, 3:]
    np.testing.assert_allclose(*ordinary, rtol=0, atol=3e-3 * ordinary[0].std())


@pytest.mark.parametrize(
    "kind", ["64-bit id", "float32's no data", "nanoseconds or never", "1e100"]
)
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_one_column_does_not_drown_the_others(kind, covariance):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 10))
    y = (X.sum(axis=1) + rng.normal(size=3000) > 2).astype(int)
    alone = CBRanker(covariance=covariance, random_state=0).partial_fit(X[:2000], y[:2000])
    X = np.column_stack([X, HOSTILE[kind](rng, 3000)])
    ranker = CBRanker(covariance=covariance, random_state=0).partial_fit(X[:2000], y[:2000])
    gained = alone.score(X[2000:, :10], y[2000:]) - ranker.score(X[2000:], y[2000:])
    assert gained < 0.02


def test_rows_of_both_signs_fire_in_sparse_sweeps_too():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(120, 4)) * (rng.random((120, 4)) < 0.5)
        y = rng.integers(0, 2, 120)
        dense, thin = (
            CBRanker(1.0, covariance="diagonal").partial_fit(rows, y)
            for rows in (X, sparse.csr_array(X))
        )
        assert dense.n_updates_ == thin.n_updates_
        np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("C", [1e154, 1e300, 1.7e308])
@pytest.mark.parametrize("weight", [1.0, 1e-320, 1.7e308])
@pytest.mark.parametrize("scale", [5e-324, 1e-160, 1.0, 1e153, 1.7e308])
def test_any_C_weight_and_scale_stay_finite(covariance, C, weight, scale):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (60, 3)) * scale, np.arange(60) % 2
    rankers = [
        CBRanker(C, covariance=covariance, diagonal_update=form)
        for form in kernels.confidence.DIAGONAL_FORMS
    ]
    for ranker in [*rankers, CBRanker.paper(C, covariance=covariance)]:
        ranker.partial_fit(X, y, sample_weight=np.full(60, weight))
        assert np.isfinite(ranker.coef_).all()
        assert np.isfinite(ranker.covariance_).all()
        variances = (
            ranker.covariance_ if covariance == "diagonal" else ranker.covariance_.diagonal()
        )
        assert (variances > 0).all()
