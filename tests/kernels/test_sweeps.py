"""The fast sweeps give what the plain ones give: they skip work, never an update."""

import numpy as np
import oracles
import pytest
import record_oracles
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from real_data import real
from scipy import sparse

from cbrank import CBRanker
from cbrank.kernels import blocked, sparse_diagonal, vectors
from cbrank.parameters import ASLEEP


@pytest.fixture
def in_blocks(monkeypatch):
    """Make every full covariance learn in blocks, however few columns it has."""
    monkeypatch.setattr(blocked, "WORTHWHILE", 1)


def learned(X, y, chunk=None, **parameters):
    ranker = CBRanker(**{"C": 0.1, "random_state": 0} | parameters)
    for begin in range(0, len(y), chunk or len(y)):
        rows = slice(begin, begin + (chunk or len(y)))
        ranker.partial_fit(X[rows], y[rows], classes=[0, 1])
    return ranker


def assert_alike(one, other, tolerance=1e-10, auc=1e-3):
    assert one.n_pairs_ == other.n_pairs_
    assert one.progressive_auc_ == pytest.approx(other.progressive_auc_, abs=auc, nan_ok=True)
    for ours, theirs in [
        (one._learned.state.models[0].mu, other._learned.state.models[0].mu),
        (one.coef_, other.coef_),
        (one.covariance_, other.covariance_),
    ]:
        largest = np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(largest, 1e-300))


@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
@pytest.mark.parametrize("C", [2.0**-7, 2.0**-4, 1.0, 2.0**10])
@pytest.mark.parametrize("scaling", ["standard", "none"])
@pytest.mark.parametrize("name", ["spambase", "german", "svmguide3"])
def test_blocks_change_nothing(name, scaling, C, policy, monkeypatch):
    X, y = real(name, 1000, scaling)
    plain = learned(X, y, C=C, policy=policy)
    monkeypatch.setattr(blocked, "WORTHWHILE", 1)
    assert_alike(learned(X, y, C=C, policy=policy), plain)


@pytest.mark.parametrize("scaling", ["standard", "none"])
def test_blocks_have_not_drifted_after_10000_rows(scaling, monkeypatch):
    X, y = real("covtype", 10_000, scaling)
    plain = learned(X, y)
    monkeypatch.setattr(blocked, "WORTHWHILE", 1)
    assert_alike(learned(X, y), plain)


@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
@pytest.mark.parametrize("width", [1, 8, 20, 33, 54, 57, 66, 127, 191])
def test_any_chunks_give_the_same_bits(width, policy):
    rng = np.random.default_rng(width)
    X = rng.standard_normal((300, width)) * (rng.random((300, width)) < rng.random(width))
    X[17, 0] = 1e9  # a weight is narrowed
    y = (X[:, :5].sum(axis=1) + rng.standard_normal(300) > 0).astype(int)
    whole = learned(X, y, policy=policy)
    np.testing.assert_array_equal(whole.covariance_, whole.covariance_.T)
    for chunk in (1, 7, 40):
        cut = learned(X, y, chunk, policy=policy)
        for ours, theirs in zip(
            cut._learned.state.models[0], whole._learned.state.models[0], strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("buffer_size", [1, 3, 120])
@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_blocks_do_not_depend_on_chunks(chunk, buffer_size, in_blocks, german):
    X, y = german
    whole = learned(X, y, buffer_size=buffer_size)
    assert_alike(learned(X, y, chunk, buffer_size=buffer_size), whole)


@pytest.mark.parametrize(
    ("n_features", "n_rows"), [(192, 600), (197, 600), (240, 400), (1000, 120)]
)
def test_wide_rows_learn_in_blocks_and_alike(n_features, n_rows, monkeypatch):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((n_rows, n_features))
    y = (X[:, :9].sum(axis=1) + 3 * rng.standard_normal(n_rows) > 3).astype(int)
    assert n_features >= blocked.WORTHWHILE
    wide = learned(X, y, class_weight="balanced")
    np.testing.assert_array_equal(wide.covariance_, wide.covariance_.T)
    monkeypatch.setattr(blocked, "WORTHWHILE", 10**6)
    assert_alike(wide, learned(X, y, class_weight="balanced"))


rows = hnp.arrays(np.float64, (60, 3), elements=st.integers(-2, 2))
labels = hnp.arrays(np.int64, 60, elements=st.integers(0, 1))


@given(X=rows, y=labels, C=st.sampled_from([2.0**-7, 1.0, 2.0**10]))
def test_blocks_stand_equal_and_nearly_equal_rows(X, y, C):
    X = X + 1e-7 * np.arange(60)[:, None] % 3
    plain = learned(X, y, C=C)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocked, "WORTHWHILE", 1)
        assert_alike(learned(X, y, C=C), plain, 1e-6)


@pytest.mark.parametrize("form", ["paper", "precision", "drop"])
@pytest.mark.parametrize("C", [2.0**-7, 1.0, 2.0**10])
@pytest.mark.parametrize("scaling", ["standard", "unit", "none"])
@pytest.mark.parametrize("name", ["spambase", "german"])
def test_sparse_rows_learn_what_dense_rows_do(name, scaling, C, form):
    X, y = real(name, 1000, scaling)
    options = {"C": C, "covariance": "diagonal", "diagonal_update": form}
    assert_alike(learned(sparse.csr_array(X), y, **options), learned(X, y, **options))


@pytest.mark.parametrize("largest", [1.0, 1e9])
@pytest.mark.parametrize("lowest", [0.0, -1.0])
@pytest.mark.parametrize("chunk", [1, 40, 400])
def test_sparse_rows_of_any_weight_in_any_chunks(chunk, lowest, largest):
    """The bounds by which sparse pairs are skipped hold for steps that differ from row to row."""
    random = np.random.RandomState(0)
    X = random.uniform(lowest, 1.0, (400, 60)) * (random.random_sample((400, 60)) < 0.15)
    y = (X[:, :9].sum(axis=1) + 0.3 * random.standard_normal(400) > X[:, :9].sum(axis=1).mean()) * 1
    X[:, 0] *= largest
    weights = random.choice([0.0, 0.2, 1.0, 5.0], 400)
    parameters = {"C": 0.5, "covariance": "diagonal", "class_weight": "balanced", "random_state": 0}
    dense = CBRanker(**parameters).partial_fit(X, y, sample_weight=weights)
    ranker, rows = CBRanker(**parameters), sparse.csr_array(X)
    for begin in range(0, 400, chunk):
        part = slice(begin, begin + chunk)
        ranker.partial_fit(rows[part], y[part], classes=[0, 1], sample_weight=weights[part])
    assert_alike(ranker, dense, 1e-8)
    assert not ranker._learned.state.models[0].features[:, sparse_diagonal.PLACE].any()


@given(X=rows, y=labels, C=st.sampled_from([2.0**-7, 1.0, 2.0**10]))
def test_sparse_rows_that_are_equal_or_empty(X, y, C):
    X = X * (np.arange(60)[:, None] % 4 > 0)
    options = {"C": C, "covariance": "diagonal"}
    one, other = learned(sparse.csr_array(X), y, **options), learned(X, y, **options)
    assert_alike(one, other, auc=0.05)  # margins of zero may round to either side


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_skipping_needs_no_common_origin(covariance):
    X, y = real("german", 500, "standard")
    plain = learned(X, y, covariance=covariance, chunk=1)
    assert_alike(learned(X, y, covariance=covariance), plain)
    far = learned(X + 1e6, y, covariance=covariance)
    assert_alike(far, plain, 1e-6)


@pytest.mark.parametrize("outlier", [1e9, 1e15, 1e20])
@pytest.mark.parametrize("row", [0, 3])
def test_an_outlier_harms_blocks_no_more_than_the_plain_sweep(row, outlier, monkeypatch):
    X, y = real("german", 600, "standard")
    X[row, 0] = outlier
    plain = learned(X, y)
    monkeypatch.setattr(blocked, "WORTHWHILE", 1)
    assert_alike(learned(X, y), plain, 1e-8)


@pytest.mark.parametrize("C", [1e-307, 0.1])
@pytest.mark.parametrize("scale", [1e-150, 1e151])
def test_blocks_stay_finite_at_the_ends_of_the_numbers(scale, C, in_blocks, german):
    X, y = german
    ranker = learned(X * scale, y, C=C)
    assert np.isfinite(ranker.coef_).all()
    assert np.isfinite(ranker.covariance_).all()


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_array])
def test_equal_rows_are_ties(rows, covariance, in_blocks):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((5, 7))[rng.randint(5, size=200)]
    y = rng.randint(2, size=200)
    plain = oracle_auc(X, y)
    ranker = learned(rows(X), y, covariance=covariance)
    if covariance == "full":
        assert ranker.progressive_auc_ == pytest.approx(plain, abs=1e-12)
    dense = learned(X, y, covariance=covariance)
    assert ranker.progressive_auc_ == dense.progressive_auc_


def oracle_auc(X, y):
    """Return the AUC of a plain reading; equal rows, whose scores differ by rounding, are ties."""
    path = oracles.cbr_full(X, y, 0.1).average_before
    return record_oracles.honest_auc(X, y, path, digits=9)


# Rows of many zeros, as of words and pieces of curves ------------------------------------------------

shares = st.sampled_from([0.0, 0.05, 0.2, 0.4, 0.7])


def rows_with_zeros(seed, share, n_features):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((70, n_features)) * (rng.uniform(size=(70, n_features)) < share)
    return X, (X[:, :5].sum(axis=1) + rng.standard_normal(70) > 0.5).astype(int)


@given(seed=st.integers(0, 99), share=shares, width=st.sampled_from([1, 23, 24, 41, 130]))
def test_rows_of_many_zeros_learn_what_the_plain_oracle_does(seed, share, width):
    X, y = rows_with_zeros(seed, share, width)
    plain = oracles.cbr_full(X, y, 0.1)
    for worthwhile in (1, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blocked, "WORTHWHILE", worthwhile)
            ranker = learned(X, y)
        np.testing.assert_allclose(ranker._learned.state.models[0].mu, plain.mu, rtol=0, atol=1e-10)
        np.testing.assert_allclose(ranker.covariance_, plain.Sigma, rtol=0, atol=1e-10)
        np.testing.assert_array_equal(ranker.covariance_, ranker.covariance_.T)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_products_by_nonzeros_are_those_of_numpy(share):
    rng = np.random.RandomState(0)
    Sigma = rng.standard_normal((53, 53))
    Sigma, out = Sigma + Sigma.T, np.full(53, np.nan)
    z = rng.standard_normal(53) * (rng.uniform(size=53) < share)
    for product in (vectors.multiply_by_nonzeros, vectors.multiply_symmetric):
        product(Sigma, z, out)
        np.testing.assert_allclose(out, Sigma @ z, rtol=0, atol=1e-12)


# Weights that are asleep -----------------------------------------------------------------------------


@pytest.mark.parametrize("forgetting", [0.0, 0.01])
@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
@pytest.mark.parametrize("kept", [9, 20, 3, 0])
@pytest.mark.parametrize("worthwhile", [1, 10**6])
def test_weights_asleep_are_as_good_as_absent(worthwhile, kept, policy, forgetting, monkeypatch):
    monkeypatch.setattr(blocked, "WORTHWHILE", worthwhile)
    X, y = real("german", 400, "standard")
    awake = np.sort(np.random.RandomState(0).permutation(X.shape[1])[:kept])
    options = {"policy": policy, "forgetting": forgetting, "buffer_size": 12, "C": 0.1}
    whole = CBRanker(random_state=0, **options).partial_fit(X[:1], y[:1], classes=[0, 1])
    asleep = np.setdiff1d(np.arange(X.shape[1]), awake)
    whole._learned.state.models[0].Sigma[asleep, asleep] = ASLEEP
    for rows in np.array_split(np.arange(1, len(y)), 7):
        whole.partial_fit(X[rows], y[rows])
    assert not whole._learned.state.models[0].mu[asleep].any()
    np.testing.assert_array_equal(np.diag(whole.covariance_)[asleep], ASLEEP)
    plain = learned(X, y, **options)
    for ours, theirs in zip(whole._learned.state.buffer, plain._learned.state.buffer, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    if kept:
        some = learned(X[:, awake], y, **options)
        np.testing.assert_allclose(
            whole._learned.state.models[0].mu[awake],
            some._learned.state.models[0].mu,
            rtol=0,
            atol=1e-10,
        )
        covariance = whole.covariance_[np.ix_(awake, awake)]
        np.testing.assert_allclose(covariance, some.covariance_, rtol=0, atol=1e-10)
