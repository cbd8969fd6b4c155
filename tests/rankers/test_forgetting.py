"""Evidence that fades, for streams that change."""

from typing import Any

import numpy as np
import oracles
import pytest
from click.testing import CliRunner
from hostile import HOSTILE, assert_sound, hostile_forms, table
from hypothesis import given, settings
from hypothesis import strategies as st
from learners import assert_same
from real_data import real
from scipy import sparse

import cbrank
from cbrank import CBRanker, CBRankerCV, kernels
from cbrank.cli import main
from cbrank.kernels.confidence import ROWS

FORMS = {
    "full": {},
    "paper": {"covariance": "diagonal"},
    "precision": {"covariance": "diagonal", "diagonal_update": "precision"},
    "drop": {"covariance": "diagonal", "diagonal_update": "drop"},
}
KINDS: dict[str, dict[str, Any]] = {
    "full": {"C": 0.1},
    "diagonal": {"C": 0.1, "covariance": "diagonal"},
    "auto": {"policy": "reservoir"},
    "auto-diagonal": {"covariance": "diagonal"},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def forgetful(kind, **parameters):
    return CBRanker(**{"forgetting": 0.01, "random_state": 0} | KINDS[kind] | parameters)


@pytest.mark.parametrize("forgetting", [0.003, 0.02, 0.15])
@pytest.mark.parametrize("form", FORMS)
def test_it_is_what_a_plain_reading_of_the_formula_gives(form, forgetting):
    X, y = real("german", 250, "standard")
    weights = np.random.RandomState(3).choice([0.0, 0.3, 1.0, 2.0], len(y))
    ranker = CBRanker(
        C=0.1, forgetting=forgetting, buffer_size=9, class_weight="balanced", **FORMS[form]
    )
    ranker.partial_fit(X, y, sample_weight=weights)
    options = {"weights": weights, "balanced": True, "buffer_size": 9, "forgetting": forgetting}
    if form == "full":
        expected = oracles.cbr_full(X, y, 0.1, **options)
        np.testing.assert_allclose(ranker.covariance_, expected.Sigma, atol=1e-11)
    else:
        expected = oracles.cbr_diagonal(X, y, 0.1, form=form, **options)
        np.testing.assert_allclose(ranker.covariance_, 1.0 / expected.G, rtol=1e-9)
    np.testing.assert_allclose(ranker._learned.state.models[0].mu, expected.mu, atol=1e-10)
    np.testing.assert_allclose(ranker.coef_[0], expected.average, atol=1e-10)


@every_kind
@settings(max_examples=6)
@given(cuts=st.lists(st.integers(1, 199), max_size=5))
def test_any_chunking_gives_the_same_model(kind, cuts):
    X, y = real("german", 200, "standard")
    chunked = forgetful(kind)
    for rows in np.split(np.arange(200), sorted(set(cuts))):
        chunked.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert_same(chunked, forgetful(kind).partial_fit(X, y))


@every_kind
def test_row_by_row_is_one_chunk(kind, german):
    X, y = german
    ranker = forgetful(kind)
    for row, label in zip(X[:150], y[:150], strict=True):
        ranker.learn_one(row, label, classes=[0, 1])
    assert_same(ranker, forgetful(kind).partial_fit(X[:150], y[:150]))


@every_kind
def test_sparse_rows_are_dense_rows(kind):
    X, y = real("svmguide3", 700, "unit")
    X[np.random.RandomState(0).random_sample(X.shape) < 0.5] = 0.0
    dense, thin = (
        forgetful(kind).partial_fit(rows, y, sample_weight=np.arange(700) % 3)
        for rows in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(thin.covariance_, dense.covariance_, rtol=1e-8, atol=1e-12)


@pytest.mark.slow
def test_blocks_of_wide_rows_forget_as_single_pairs_do():
    X, y = real("german", 300, "standard")
    wide = np.hstack([X, np.zeros((300, kernels.blocked.WORTHWHILE))])
    narrow, wide = forgetful("full").partial_fit(X, y), forgetful("full").partial_fit(wide, y)
    np.testing.assert_allclose(wide.coef_[0, :24], narrow.coef_[0], atol=1e-10)
    np.testing.assert_allclose(wide.covariance_[:24, :24], narrow.covariance_, atol=1e-10)
    np.testing.assert_array_equal(wide.covariance_[24:, 24:], np.eye(kernels.blocked.WORTHWHILE))


@every_kind
def test_swapping_labels_mirrors_the_model(kind, german):
    X, y = german
    one, other = forgetful(kind).partial_fit(X, y), forgetful(kind).partial_fit(X, 1 - y)
    np.testing.assert_allclose(one.coef_, -other.coef_, rtol=1e-9, atol=1e-12)


@every_kind
def test_rows_of_weight_zero_are_absent(kind, german):
    X, y = german
    kept = np.arange(len(y)) % 3 > 0
    weighted = forgetful(kind).partial_fit(X, y, sample_weight=kept)
    assert_same(weighted, forgetful(kind).partial_fit(X[kept], y[kept]))


@every_kind
@pytest.mark.parametrize("cut", [150, 192])
def test_saved_and_loaded_goes_on_to_the_bit(kind, cut, german, tmp_path):
    X, y = german
    straight = forgetful(kind).partial_fit(X[:cut], y[:cut])
    cbrank.save(straight, tmp_path / "it")
    loaded = cbrank.load(tmp_path / "it")
    assert loaded.forgetting == 0.01
    assert_same(loaded.partial_fit(X[cut:], y[cut:]), straight.partial_fit(X[cut:], y[cut:]))


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_every_learner_of_a_pool_forgets_as_it_would_alone(covariance, german):
    X, y = german
    options = {"forgetting": 0.01, "covariance": covariance, "buffer_size": 50}
    pool = CBRanker(**options).partial_fit(X, y)
    assert pool.forgetting_ == 0.01
    state = pool._learned.state
    learners = pool._method(state).learners[: len(state.models)]
    assert len(state.models) == {"full": 2, "diagonal": 3}[covariance]
    assert {learner.forgetting for learner in learners} == {0.01}
    rows = X if state.front is None else X * state.front.inverse
    for learner, model in zip(learners, state.models, strict=True):
        alone = CBRanker(learner.C, **options).partial_fit(rows, y)
        for ours, theirs in zip(model, alone._learned.state.models[0], strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_nothing_is_forgotten_unless_asked_for(german, monkeypatch):
    X, y = german
    monkeypatch.delattr(kernels.forgetting, "forget")
    assert CBRanker(C=0.1).partial_fit(X, y)._learned.state.models[0].tally[ROWS] == len(y)
    with pytest.raises(AttributeError):
        forgetful("full").partial_fit(X, y)


def test_the_covariance_never_exceeds_its_start_and_stays_positive():
    rng = np.random.RandomState(0)
    scale = 10.0 ** np.array([-6, -3, 0, 3, 6, 9])
    ranker = CBRanker(C=1.0, forgetting=0.02, buffer_size=5)
    for begin in range(0, 100_000, 20_000):
        X = rng.standard_normal((20_000, 6)) @ rng.standard_normal((6, 6))  # correlated columns
        X[:, begin // 20_000] = 0.0  # and for a time one that says nothing
        y = (X[:, 5] + rng.standard_normal(20_000) > 2.0).astype(int)
        ranker.partial_fit(X * scale, y, classes=[0, 1])
        Sigma = ranker.covariance_
        np.testing.assert_array_equal(Sigma, Sigma.T)
        assert np.linalg.eigvalsh(Sigma)[-1] <= 1.0 + 1e-12
        deviations = np.sqrt(np.diag(Sigma))
        assert np.linalg.eigvalsh(Sigma / np.outer(deviations, deviations))[0] > 0.0


def test_a_covariance_that_rounding_has_spoilt_is_mended():
    model = CBRanker(C=1.0).partial_fit(np.eye(3), [0, 1, 0])._learned.state.models[0]
    model.Sigma[...] = np.diag([1.0, 1e-3, 0.0])
    model.Sigma[1:, 1:] += [[0.0, 1e-9], [1e-9, 0.0]]
    assert np.linalg.eigvalsh(model.Sigma)[0] < 0.0
    [(array, Sigma)] = kernels.forgetting.forget(model, 0.01)
    assert array is model.Sigma
    deviations = np.sqrt(np.diag(Sigma))
    assert np.linalg.eigvalsh(Sigma / np.outer(deviations, deviations))[0] > 0.0
    np.testing.assert_allclose(np.diag(Sigma)[:2], [1.0, 1e-3 / 0.99**64], rtol=1e-3)


@hostile_forms
@pytest.mark.parametrize("columns", HOSTILE)
def test_hostile_columns_are_forgotten_soundly(columns, covariance, as_rows):
    X, y = table(columns, rows=400)
    for C, share in ((2.0**-6, 0.001), (1e3, 0.05)):
        ranker = CBRanker(C, covariance=covariance, forgetting=share)
        assert_sound(ranker.partial_fit(as_rows(X), y))


def test_a_small_variance_is_not_taken_for_rounding():
    model = CBRanker(C=1.0).partial_fit(np.eye(3), [0, 1, 0])._learned.state.models[0]
    scale = np.array([1.0, 1e-30, 1e-140])
    spoilt = np.array([[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])  # singular
    model.Sigma[...] = spoilt * np.outer(scale, scale)
    [(_, Sigma)] = kernels.forgetting.forget(model, 0.01)
    np.testing.assert_allclose(np.sqrt(np.diag(Sigma))[1:] / scale[1:], 1.0, atol=0.4)


@every_kind
def test_all_can_be_forgotten_within_a_few_rows(kind, german):
    X, y = german
    ranker = forgetful(kind, forgetting=0.999).partial_fit(X[:640], y[:640])
    variances = ranker.covariance_.diagonal() if kind in ("full", "auto") else ranker.covariance_
    front = ranker._learned.state.front  # its prior has unit variance in the units of the columns
    prior = 1.0 if front is None else front.inverse**2
    np.testing.assert_allclose(variances, prior * np.ones(X.shape[1]), rtol=0.01)
    assert ranker.score(X[640:], y[640:]) > 0.6


def test_it_can_be_changed_in_the_middle_of_a_stream(german):
    X, y = german
    ranker = CBRanker(C=0.1).partial_fit(X[:500], y[:500])
    before = ranker.covariance_.trace()
    ranker.set_params(forgetting=0.01).partial_fit(X[500:], y[500:])
    assert ranker.covariance_.trace() > 2.0 * before
    ranker.set_params(forgetting=0.0).partial_fit(X, y)
    assert ranker.n_seen_.sum() == 2000


def test_a_stream_that_turns_round_is_followed():
    X, y = real("german", scaling="standard")
    y = np.where(np.arange(1000) < 500, y, 1 - y)
    aucs = [
        CBRanker(C, forgetting=f).partial_fit(X[:800], y[:800]).score(X[800:], y[800:])
        for C, f in ((0.0625, 0.0), (0.0625, 0.01), ("auto", "auto"))
    ]
    assert aucs[0] < 0.6
    assert aucs[1] > 0.7
    assert aucs[2] > 0.7


def test_no_learner_forgets_once_that_is_asked_for(german, monkeypatch):
    X, y = german
    ranker = CBRanker().partial_fit(X, y).partial_fit(X[:700], y[:700])
    forgets = [learner.forgetting for learner in ranker._method().learners]
    assert forgets == [0.0, 0.0, 0.001]
    assert len(ranker._learned.state.models) == 3
    monkeypatch.delattr(kernels.forgetting, "forget")
    ranker.set_params(forgetting=0.0).partial_fit(X[700:], y[700:])
    assert ranker.forgetting_ == 0.0
    with pytest.raises(AttributeError):
        ranker.set_params(forgetting="auto").partial_fit(X, y)


def test_cross_validation_forgets_too(german):
    X, y = german
    chosen = CBRankerCV(Cs=[0.01, 0.1], forgetting=0.01, random_state=0).fit(X, y)
    alone = CBRanker(chosen.C_, forgetting=0.01, random_state=0).fit(X, y)
    np.testing.assert_array_equal(chosen.covariance_, alone.covariance_)


@pytest.mark.parametrize("forgetting", [-0.1, 1.0, "much", np.nan])
def test_a_share_is_between_0_and_1(forgetting):
    told = r"The 'forgetting' parameter of CBRanker must be .* or a float in the range \[0.0, 1.0\)"
    with pytest.raises(ValueError, match=told):
        CBRanker(forgetting=forgetting).partial_fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("covariance", ["full", "diagonal", "diagonal, sparse"])
@pytest.mark.parametrize("turn", [np.pi, np.pi / 2])
def test_streams_that_change_are_followed(covariance, turn):
    kind, _, is_sparse = covariance.partition(", ")
    for seed in range(4):
        random = np.random.RandomState(seed)
        X = random.randn(5000, 4)
        angle = np.where(np.arange(5000) < 3000, 0.0, turn)
        ease = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]
        y = (2 * ease - 1 + random.logistic(size=5000) > 0).astype(int)
        rows = sparse.csr_array(X) if is_sparse else X
        ranker = CBRanker(covariance=kind, random_state=0).partial_fit(rows[:4000], y[:4000])
        assert ranker.score(rows[4000:], y[4000:]) > 0.8


def test_the_smallest_share_forgets_nothing(german):
    X, y = german
    forgetful, keen = (CBRanker(0.1, forgetting=share).partial_fit(X, y) for share in (5e-324, 0.0))
    np.testing.assert_array_equal(forgetful.covariance_, keen.covariance_)


def test_the_command_line_forgets(tmp_path):
    X, y = real("german", 300)
    data, model = tmp_path / "german.csv", str(tmp_path / "it.model")
    table = np.column_stack([y, X])
    np.savetxt(data, table, "%g", ",", header=",".join(f"c{i}" for i in range(25)), comments="")
    learn = ["train", str(data), "--label", "c0", "--C", "0.1", "--scale", "none", "-o", model]
    learn += ["--in-order"]
    told = CliRunner().invoke(main, [*learn, "--forgetting", "0.01"])
    assert told.exit_code == 0, told.output
    ranker, expected = cbrank.load(model), forgetful("full").partial_fit(X, y)
    np.testing.assert_allclose(ranker.covariance_, expected.covariance_, rtol=1e-9, atol=1e-12)
    assert CliRunner().invoke(main, [*learn, "--forgetting", "1"]).exit_code == 2
