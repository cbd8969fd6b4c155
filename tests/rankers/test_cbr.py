"""What CBR alone has: confidence, and the promises about it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from learners import CBR, assert_same, make
from oracles import precision_gain
from oracles import scw_step as letter
from real_data import real
from scipy import sparse
from scipy.stats import norm

from cbrank import CBRanker
from cbrank.kernels.confidence import scw_information, scw_step

every_form = pytest.mark.parametrize("name", CBR)
sizes = st.floats(1e-6, 1e6)


@given(margin=st.floats(-1e6, 1e6), variance=sizes, C=sizes, eta=st.floats(0.51, 0.999))
def test_the_step_is_proposition_1(margin, variance, C, eta):
    phi = norm.ppf(eta)
    alpha, beta = scw_step(margin, variance, C, phi)
    assert 0 <= alpha <= C
    assert 0 <= beta * variance <= 1
    exact = letter(*(np.longdouble(number) for number in (margin, variance, C, phi)))
    if alpha > 0 or exact[0] > 1e-12 * max(abs(margin) / variance, 1):
        assert alpha == pytest.approx(float(exact[0]), rel=1e-9, abs=1e-12 * abs(margin) / variance)
    if alpha > 0:
        assert beta == pytest.approx(float(exact[1]), rel=1e-6)
        added = precision_gain(*(np.longdouble(number) for number in (alpha, variance, phi)))
        assert scw_information(alpha, variance, phi) == pytest.approx(float(added), rel=1e-9)


@given(
    variance=sizes,
    eta=st.floats(0.51, 0.999),
    share=st.floats(-10, 0.999),
    near=st.floats(-1e-9, 1e-9),
)
def test_a_step_about_as_long_as_C_is_proposition_1(variance, eta, share, near):
    phi = norm.ppf(eta)
    margin = share * phi * np.sqrt(variance)
    C = scw_step(margin, variance, np.inf, phi)[0] * (1 + near)
    alpha, beta = scw_step(margin, variance, C, phi)
    exact = letter(*(np.longdouble(number) for number in (margin, variance, C, phi)))
    assert alpha <= C
    assert [alpha, beta] == pytest.approx([float(size) for size in exact], rel=1e-11)


@given(variance=sizes, eta=st.floats(0.51, 0.999), share=st.floats(-10, 0.999))
def test_an_unbounded_step_reaches_the_wanted_confidence(variance, eta, share):
    phi = norm.ppf(eta)
    margin = share * phi * np.sqrt(variance)
    alpha, beta = scw_step(margin, variance, np.inf, phi)
    after_mean, after_variance = margin + alpha * variance, variance - beta * variance**2
    assert after_mean == pytest.approx(phi * np.sqrt(after_variance), rel=1e-6)


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("margin", [0.0, -1.0, 1.0, np.nan])
def test_nonsense_never_moves_the_model(margin, variance):
    assert scw_step(margin, variance, 1.0, 0.5) == (0.0, 0.0)
    assert scw_step(np.nan, 1.0, 1.0, 0.5) == (0.0, 0.0)


def covariances(ranker, X, y, every=25):
    for begin in range(0, len(y), every):
        rows = slice(begin, begin + every)
        yield ranker.partial_fit(X[rows], y[rows], classes=[0, 1]).covariance_


@every_form
@pytest.mark.parametrize("C", [2.0**-7, 1.0, 2.0**10])
@pytest.mark.parametrize("scaling", ["standard", "unit", "none"])
def test_covariance_stays_symmetric_positive_and_only_shrinks(name, scaling, C):
    X, y = real("diabetes", 400, scaling)
    last = np.eye(X.shape[1]) if make(name).covariance == "full" else np.ones(X.shape[1])
    for now in covariances(make(name, C=C), X, y):
        if now.ndim == 2:
            np.testing.assert_array_equal(now, now.T)
            assert np.linalg.eigvalsh(now).min() > -1e-14
            assert np.linalg.eigvalsh(last - now).min() > -1e-14
        before, after = (np.diag(each) if each.ndim == 2 else each for each in (last, now))
        assert np.all(after > 0)
        assert np.all(after <= before)
        last = now


@given(
    X=hnp.arrays(np.float64, (30, 3), elements=st.floats(-1e9, 1e9, width=32)),
    y=hnp.arrays(np.int64, 30, elements=st.integers(0, 1)),
    C=st.sampled_from([2.0**-10, 1.0, 2.0**10]),
)
@pytest.mark.parametrize("name", ["cbr", "cbr-paper", "cbr-diagonal", "cbr-precision", "cbr-drop"])
def test_cbr_stays_finite_on_any_rows(name, X, y, C):
    ranker = make(name, C=C).partial_fit(X, y, classes=[0, 1])
    assert np.isfinite(ranker.coef_).all()
    variances = ranker.covariance_ if ranker.covariance_.ndim == 1 else np.diag(ranker.covariance_)
    assert np.all(variances > 0)
    assert np.all(variances <= 1)


@every_form
def test_equal_rows_teach_nothing(name):
    X = np.tile(np.arange(5.0), (100, 1))
    ranker = make(name).partial_fit(X, np.arange(100) % 2)
    assert not ranker.coef_.any()
    assert ranker.n_updates_ == 0
    assert np.isnan(ranker.progressive_auc_)  # no weights have been tested yet
    np.testing.assert_allclose(ranker.predict_proba(X), 0.5, atol=0.05)


@every_form
def test_standard_deviation_of_a_score(name, german):
    X, y = german
    ranker = make(name).fit(X, y)
    scores, std = ranker.decision_function(X, return_std=True)
    np.testing.assert_array_equal(scores, ranker.decision_function(X))
    cov = ranker.covariance_ if ranker.covariance_.ndim == 2 else np.diag(ranker.covariance_)
    np.testing.assert_allclose(std, [np.sqrt(x @ cov @ x) for x in X])
    np.testing.assert_allclose(ranker.decision_function(sparse.csr_array(X), True)[1], std)


@every_form
def test_preference_is_a_probability_that_knows_order(name, german):
    X, y = german
    ranker = make(name).fit(X, y)
    A, B = X[:500], X[500:]
    forth, back = ranker.preference_proba(A, B), ranker.preference_proba(B, A)
    np.testing.assert_allclose(forth + back, 1.0)
    ahead = ranker.decision_function(A) > ranker.decision_function(B)
    np.testing.assert_array_equal(forth > 0.5, ahead)
    np.testing.assert_array_equal(ranker.preference_proba(A, A), 0.5)
    z = A[0] - B[0]
    cov = ranker.covariance_ if ranker.covariance_.ndim == 2 else np.diag(ranker.covariance_)
    expected = norm.cdf(ranker.coef_[0] @ z / np.sqrt(z @ cov @ z))
    assert forth[0] == pytest.approx(expected)
    np.testing.assert_allclose(
        ranker.preference_proba(sparse.csr_array(A), sparse.csr_array(B)), forth
    )
    with pytest.raises(ValueError, match="A has 500 rows and B has 499"):
        ranker.preference_proba(A, B[1:])


def test_average_and_mean_come_from_the_same_run(german):
    X, y = german
    mean, average = make("cbr", average=False).fit(X, y), make("cbr").fit(X, y)
    np.testing.assert_array_equal(
        mean._learned.state.models[0].mu, average._learned.state.models[0].mu
    )
    assert np.any(mean.coef_ != average.coef_)


def test_the_mean_can_be_asked_for_at_any_time(german):
    X, y = german
    ranker = make("cbr").fit(X, y).set_params(average=False)
    np.testing.assert_array_equal(ranker.coef_[0], ranker._learned.state.models[0].mu)
    begun = make("cbr", average=False).fit(X, y).set_params(average=True)
    np.testing.assert_array_equal(begun.coef_, make("cbr").fit(X, y).coef_)


def test_progressive_auc_of_an_ordered_stream():
    X = np.repeat([[0.0], [1.0]], 50, axis=0)
    ranker = CBRanker(C=1.0).partial_fit(X[[0, 50]], [0, 1])
    ranker.partial_fit(X[[51, 1]], [1, 0])
    assert ranker.n_pairs_ == 1 + 1 + 2
    assert np.isnan(ranker.progressive_auc_)
    mixed = np.random.RandomState(0).permutation(100)
    ranker.partial_fit(X[mixed], (mixed >= 50).astype(int))
    assert ranker.progressive_auc_ == ranker.recent_auc_ == 1.0
    assert ranker.progressive_auc_interval_ == (1.0, 1.0)
    one_class = CBRanker().partial_fit(X, np.zeros(100, int), classes=[0, 1])
    for auc in (one_class.progressive_auc_, *one_class.progressive_auc_interval_):
        assert np.isnan(auc)
    assert one_class.progressive_auc_history_.size == 0


def test_a_matrix_that_does_not_fit_is_refused_with_its_cure():
    rows = sparse.csr_array(([1.0, 2.0], ([0, 1], [0, 999_999])), shape=(2, 1_000_000))
    with pytest.raises(ValueError, match=r'7450\.6 GiB.*covariance="diagonal"'):
        CBRanker(C=1.0).fit(rows, [0, 1])
    with pytest.raises(ValueError, match=r'7450\.6 GiB.*covariance="diagonal"'):
        CBRanker().fit(rows, [0, 1])
    ranker = CBRanker(covariance="diagonal").fit(rows, [0, 1])
    assert ranker.coef_[0, 999_999] > 0


def test_shared_buffers_do_not_leak_between_clones(german):
    X, y = german
    one, other = make("cbr").partial_fit(X, y), make("cbr").partial_fit(X, y)
    one.partial_fit(X[::-1], y[::-1])
    assert_same(other, make("cbr").partial_fit(X, y))


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("size", [1e152, 1e155, 1e308])
@pytest.mark.filterwarnings("error")
def test_deviations_overflow_only_where_they_are_too_large(size, covariance, as_rows):
    random = np.random.RandomState(0)
    y = np.arange(100) % 3 // 2
    X = np.column_stack([random.randn(100) + y, random.uniform(-1.0, 1.0, 100) * size])
    ranker = CBRanker(C=1.0, covariance=covariance, random_state=0).partial_fit(as_rows(X), y)
    _, found = ranker.decision_function(as_rows(X), return_std=True)
    exact, Sigma = X.astype(np.longdouble), ranker.covariance_
    Sigma = Sigma if covariance == "full" else np.diag(Sigma)
    expected = np.sqrt((exact @ Sigma.astype(np.longdouble) * exact).sum(axis=1))
    np.testing.assert_allclose(found, expected.astype(np.float64), rtol=1e-12)
    far = as_rows(np.array([[0.0, 1.7e308]]))
    one, other = ranker.preference_proba(far, -far), ranker.preference_proba(-far, far)
    assert one + other == pytest.approx(1.0)
    both = as_rows(np.full((1, 2), 1.7e308))
    assert not np.isnan(ranker.decision_function(both, return_std=True)[1])
