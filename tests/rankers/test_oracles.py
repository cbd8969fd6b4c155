"""Every learner against an independent plain-NumPy reading of the paper, on real data."""

import functools
import inspect

import numpy as np
import oracles
import pytest
from learners import CBR, REGISTERED, make
from real_data import real
from record_oracles import honest_auc
from scipy import sparse
from sklearn.base import clone

from cbrank import AdaOAMRanker, CBRanker, OPAUCRanker, UniExpRanker, kernels
from cbrank.kernels import blocked

FORMS = ["full", "paper", "precision", "drop"]
TABLES = ["german", "svmguide3", "spambase"]
READ_ELSEWHERE = {*CBR, "scw", "scw-diagonal", "ftrl", "spauc"}  # above, and in test_rivals.py
WINDOWED = [(form, np.asarray) for form in FORMS] + [(form, sparse.csr_array) for form in FORMS[1:]]
READ_HERE = [name for name in REGISTERED if name not in READ_ELSEWHERE]


def reading(form):
    """Return the plain-NumPy reading of a registered form, or of the ranker that it is a form of."""
    names = form.replace("-", "_"), form.partition("-")[0]
    return next(getattr(oracles, name) for name in names if hasattr(oracles, name))


def cbr(X, y, form, C, **parameters):
    if form != "full":
        parameters |= {"covariance": "diagonal", "diagonal_update": form}
    parameters = {"average": False, "shuffle": False} | parameters
    return CBRanker(C=C, **parameters).partial_fit(X, y, classes=[0, 1])


@functools.cache
def oracle(name, scaling, form, C, dtype=np.float64):
    X, y = real(name, 150, scaling)
    if form == "full":
        return oracles.cbr_full(X, y, C, dtype=dtype)
    return oracles.cbr_diagonal(X, y, C, form=form, dtype=dtype)


def apart(ours, theirs):
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def parts(learned):
    return learned.mu, learned.Sigma if hasattr(learned, "Sigma") else learned.G


@pytest.mark.parametrize("C", [2.0**-7, 1.0])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scaling", ["standard", "unit"])
@pytest.mark.parametrize("name", TABLES)
def test_cbr_is_the_paper_to_1e_8(name, scaling, form, C):
    X, y = real(name, 150, scaling)
    ranker = cbr(X, y, form, C)
    expected = oracle(name, scaling, form, C)
    for ours, theirs in zip(parts(ranker._learned.state.models[0]), parts(expected), strict=True):
        assert apart(ours, theirs) < 1e-8
    assert ranker.n_pairs_ == expected.n_pairs
    auc = honest_auc(X, y, expected.mu_before)
    assert ranker.progressive_auc_ == pytest.approx(auc, abs=1e-12)


@pytest.mark.parametrize("C", [2.0**-7, 2.0**10])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scaling", ["standard", "unit", "none"])
@pytest.mark.parametrize("name", ["german", "diabetes", "spambase"])
def test_rounding_is_no_worse_than_the_papers_own(name, scaling, form, C):
    X, y = real(name, 150, scaling)
    ranker = cbr(X, y, form, C)
    plain = oracle(name, scaling, form, C)
    exact = oracle(name, scaling, form, C, np.longdouble)
    for ours, theirs, truth in zip(
        parts(ranker._learned.state.models[0]), parts(plain), parts(exact), strict=True
    ):
        assert apart(ours, truth) < 10 * max(apart(theirs, truth), 1e-13)
    ours, theirs = (
        oracles.auc(y, X @ ranker._learned.state.models[0].mu),
        oracles.auc(y, X @ plain.mu),
    )
    assert ours == pytest.approx(theirs, abs=1e-6)


def random_state_of(ranker, X):
    """Return the state of a ranker's own generator before its first row."""
    begun = clone(ranker)
    begun._start(X, np.array([0, 1]), np.random.RandomState(ranker.random_state), shuffled=False)
    return int(begun._learned.state.buffer.random[0])


@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
@pytest.mark.parametrize("form", FORMS)
def test_buffers_average_weights_and_balance(form, policy):
    X, y = real("german", 300, "standard")
    weights = np.random.RandomState(3).choice([0.0, 0.3, 1.0, 2.0], len(y))
    options = {"buffer_size": 7, "policy": policy, "random_state": 5}
    ranker = CBRanker(C=0.1, class_weight="balanced", **options)
    if form != "full":
        ranker.set_params(covariance="diagonal", diagonal_update=form)
    state = random_state_of(ranker, X)
    ranker.partial_fit(X, y, sample_weight=weights)
    options = {"buffer_size": 7, "policy": policy, "weights": weights, "balanced": True}
    learn = oracles.cbr_full if form == "full" else oracles.cbr_diagonal
    if form != "full":
        options["form"] = form
    expected = learn(X, y, 0.1, state=state, **options)
    for ours, theirs in zip(parts(ranker._learned.state.models[0]), parts(expected), strict=True):
        assert apart(ours, theirs) < 1e-10
    assert apart(ranker.coef_[0], expected.average) < 1e-10
    for label in (0, 1):
        held = ranker._learned.state.buffer.rows[label]
        held = np.roll(held, -ranker._learned.state.buffer.oldest[label], axis=0)
        np.testing.assert_array_equal(held, expected.buffer.rows(label))


@pytest.mark.parametrize("chunk", [1, 23, 400])
@pytest.mark.parametrize("worthwhile", [1, 10**6])
@pytest.mark.parametrize("kept", [(3, 40), (7, 20), (7, 7)])
@pytest.mark.parametrize(("form", "as_rows"), WINDOWED)
def test_windows_hold_both_classes_since_the_same_time(
    form, as_rows, kept, worthwhile, chunk, monkeypatch
):
    monkeypatch.setattr(blocked, "WORTHWHILE", worthwhile)
    monkeypatch.setattr(blocked, "FEWEST", 1)
    X, y = real("german", 400, "standard")
    order = np.argsort(X[:, 0] + np.sin(np.arange(400)), kind="stable")  # classes come in runs
    X, y = X[order], y[order]
    weights = np.random.RandomState(3).choice([0.0, 0.3, 1.0, 2.0], len(y))
    if chunk == 1:
        weights = np.ones(len(y))  # single rows have none
    ranker = CBRanker(C=0.1, buffer_size=kept[1])
    if form != "full":
        ranker.set_params(covariance="diagonal", diagonal_update=form)
    ranker.start(X.shape[1], np.array([0, 1]), sparse=sparse.issparse(as_rows(X)))
    begun = ranker._learned.state
    buffer = kernels.buffers.with_room(begun.buffer, *kept, reservoir=False)
    ranker._learned.state = begun._replace(buffer=buffer)
    for begin in range(0, len(y), chunk):
        part = slice(begin, begin + chunk)
        if chunk == 1:
            ranker.learn_one(X[begin] if as_rows is np.asarray else as_rows(X[part]), y[begin])
        else:
            ranker.partial_fit(as_rows(X[part]), y[part], sample_weight=weights[part])
    learn = oracles.cbr_full if form == "full" else oracles.cbr_diagonal
    options = {"buffer_size": kept, "weights": weights} | ({} if form == "full" else {"form": form})
    expected = learn(X, y, 0.1, **options)
    assert ranker.n_pairs_ == expected.n_pairs
    for ours, theirs in zip(parts(ranker._learned.state.models[0]), parts(expected), strict=True):
        assert apart(ours, theirs) < 1e-9
    labels, rows = ranker.buffered_rows()
    rows = rows.toarray() if sparse.issparse(rows) else rows
    for label in (0, 1):
        held = np.array(expected.buffer.rows(label))
        np.testing.assert_array_equal(np.sort(rows[labels == label], 0), np.sort(held, 0))


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scaling", ["standard", "unit"])
@pytest.mark.parametrize("name", ["german", "svmguide3"])
@pytest.mark.parametrize("form", READ_HERE)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_ranker_is_its_plain_reading(form, name, scaling, as_rows, weighted):
    X, y = real(name, 150, scaling)
    weights = np.random.RandomState(3).choice([0.0, 0.5, 1.0], len(y)) if weighted else None
    ranker = make(form, random_state=1, class_weight="balanced" if weighted else None)
    if hasattr(ranker, "buffer_size"):
        ranker.set_params(buffer_size=9)
    learn = reading(form)
    asked = inspect.signature(learn).parameters
    options = {name: value for name, value in ranker.get_params().items() if name in asked}
    if "state" in asked:
        options["state"] = random_state_of(ranker, as_rows(X))
    ranker.partial_fit(as_rows(X), y, sample_weight=weights)
    expected = learn(X, y, weights=weights, balanced=weighted, **options)
    assert apart(ranker.coef_[0], expected.w) < 1e-8


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scaling", ["standard", "unit", "none"])
@pytest.mark.parametrize("name", TABLES)
def test_uni_exp_diverges_where_plain_numpy_overflows(name, scaling, as_rows):
    X, y = real(name, 300, scaling)
    said = []
    for step in [2.0**k for k in range(-10, 11, 2)] + [2.0**-30]:
        ranker = UniExpRanker(step).partial_fit(as_rows(X), y)
        expected = oracles.uniexp(X, y, step).w
        said.append(ranker.diverged_)
        assert ranker.diverged_ == (not np.isfinite(expected).all())
        assert np.isfinite(ranker.decision_function(as_rows(X))).all()
        if not ranker.diverged_:
            assert apart(ranker.coef_[0], expected) < 1e-8
        mirrored = UniExpRanker(step).partial_fit(as_rows(X), 1 - y)
        np.testing.assert_array_equal(mirrored.coef_, -ranker.coef_)
        assert mirrored.diverged_ == ranker.diverged_
    assert any(said)
    assert not all(said)


@pytest.mark.parametrize("regularization", [1e-4, 1.0, 100.0])
@pytest.mark.parametrize("step", [2.0**-3, 2.0**10])
@pytest.mark.parametrize("scaling", ["standard", "unit", "none"])
def test_adaoam_is_projected_in_the_norm_of_its_steps(scaling, step, regularization):
    X, y = real("german", 200, scaling)
    ranker = AdaOAMRanker(step, regularization=regularization).partial_fit(X, y)
    expected = oracles.adaoam(X, y, step, regularization)
    assert apart(ranker.coef_[0], expected.w) < 1e-8
    assert np.linalg.norm(ranker.coef_) <= regularization**-0.5 * (1 + 1e-12)
    mirrored = AdaOAMRanker(step, regularization=regularization).partial_fit(X, 1 - y)
    np.testing.assert_array_equal(mirrored.coef_, -ranker.coef_)


@pytest.mark.parametrize("scale", [1e-90, 1.0, 1e90])
@pytest.mark.parametrize("spread", [0.0, 1.0, 100.0])
def test_no_point_of_the_ball_is_nearer(scale, spread):
    random = np.random.RandomState(0)
    H, w = np.exp(spread * random.randn(6)), scale * random.randn(6)
    nearest, radius = w.copy(), 0.3 * np.linalg.norm(w)
    kernels.adaoam.project(nearest, H, radius)
    np.testing.assert_allclose(np.linalg.norm(nearest), radius, rtol=1e-12)
    others = random.randn(10_000, 6)
    others *= radius * random.rand(10_000, 1) / np.linalg.norm(others, axis=1, keepdims=True)
    others = np.concatenate([others, nearest + 1e-3 * others])
    others *= np.minimum(1, radius / np.linalg.norm(others, axis=1, keepdims=True))
    least = H @ ((nearest - w) / scale) ** 2
    assert (((others - w) / scale) ** 2 @ H >= least * (1 - 1e-12)).all()
    inside = w.copy()
    kernels.adaoam.project(inside, H, 1.1 * np.linalg.norm(w))
    np.testing.assert_array_equal(inside, w)


@pytest.mark.parametrize("H", [[np.inf, 1.0], [np.inf, np.inf], [1e300, 1e-300]])
def test_projection_ends_where_gradients_overflow(H):
    w = np.array([3e90, 4e90])
    kernels.adaoam.project(w, np.array(H), 1.0)
    assert np.isfinite(w).all()
    assert np.linalg.norm(w) <= 1 + 1e-12


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scaling", ["standard", "unit"])
@pytest.mark.parametrize("rank", [1, 8, 50])
@pytest.mark.parametrize("sketch", ["published", "centred"])
def test_both_sketches_are_their_plain_readings(sketch, rank, scaling, as_rows):
    X, y = real("svmguide3", 150, scaling)
    ranker = OPAUCRanker(2.0**-9, rank=rank, sketch=sketch, random_state=2)
    state = random_state_of(ranker, as_rows(X))
    ranker.partial_fit(as_rows(X), y)
    expected = oracles.opauc_sketch(X, y, 2.0**-9, rank=rank, sketch=sketch, state=state).w
    assert apart(ranker.coef_[0], expected) < 1e-8
    mirrored = OPAUCRanker(2.0**-9, rank=rank, sketch=sketch, random_state=2)
    mirrored.partial_fit(as_rows(X), 1 - y)
    np.testing.assert_array_equal(mirrored.coef_, -ranker.coef_)


def test_the_published_sketch_is_near_second_moments_and_the_centred_one_near_the_covariance():
    random = np.random.RandomState(0)
    X, y = random.randn(4000, 4) + 3.0, np.arange(4000) % 2
    state = OPAUCRanker(rank=400, random_state=0).partial_fit(X, y)._learned.state.models[0]
    rows = X[y == 1]
    Z, h, centre = state.Z[1], state.h[1], state.mean[1]
    published = Z @ Z.T / len(rows) - h @ h * np.outer(centre, centre)
    off = Z - len(rows) * np.outer(centre, h)
    np.testing.assert_allclose(published, rows.T @ rows / len(rows), atol=2.5)
    np.testing.assert_allclose(off @ off.T / len(rows), np.cov(rows.T, bias=True), atol=0.3)


def test_opauc_keeps_means_and_covariances_of_the_classes(german):
    X, y = german
    model = OPAUCRanker().fit(X, y)._learned.state.models[0]
    for label in (0, 1):
        np.testing.assert_allclose(model.mean[label], X[y == label].mean(axis=0), atol=1e-12)
        covariance = np.cov(X[y == label].T, bias=True)
        np.testing.assert_allclose(model.Gamma[label], covariance, atol=1e-12)
