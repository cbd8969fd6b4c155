"""C="auto": a few learners that share rows, and columns in units of their spread."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learners import assert_same
from real_data import real
from scipy import sparse

import cbrank
from cbrank import AdditiveRanker, CBRanker
from cbrank.learning.front import scales_of
from cbrank.learning.pool import mixture

PARTS = [1, 7, 63, 64, 65, 200]


def streamed(ranker, X, y, size):
    for begin in range(0, len(y), size):
        part = slice(begin, begin + size)
        ranker.partial_fit(X[part], y[part], classes=[0, 1])
    return ranker


# Learners -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
def test_every_learner_is_the_ranker_with_that_c(policy, covariance):
    X, y = real("german", 500)
    options = {"policy": policy, "covariance": covariance, "buffer_size": 60, "random_state": 0}
    options["forgetting"] = 0.0
    ranker = CBRanker(**options).partial_fit(X, y)
    state = ranker._learned.state
    assert len(state.models) == {"full": 2, "diagonal": 3}[covariance]  # none forgets here
    rows = X if state.front is None else X * state.front.inverse
    for learner, model in zip(ranker._method(state).learners, state.models, strict=False):
        alone = CBRanker(learner.C, **options).partial_fit(rows, y)._learned.state.models[0]
        for ours, theirs in zip(model, alone, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_one_more_learner_forgets_where_rows_come_in_their_order():
    X, y = real("german", 700)
    fitted, stream = CBRanker(random_state=0).fit(X, y), CBRanker().partial_fit(X, y)
    learned = copy.deepcopy(fitted).learn_shuffled(X, y)
    assert [len(r._learned.state.models) for r in (fitted, stream, learned)] == [2, 3, 2]
    assert len(fitted.partial_fit(X, y)._learned.state.models) == 3
    assert len(CBRanker(forgetting=0.0).partial_fit(X, y)._learned.state.models) == 2
    assert len(CBRanker(C=0.1).partial_fit(X, y)._learned.state.models) == 1


def test_a_readout_weighs_more_the_better_its_auc():
    evidence = np.array([[0.8, 0.79], [0.7, 0.81]])
    mix = mixture(evidence, (0, 1))
    for one in np.ndindex(2, 2):
        for other in np.ndindex(2, 2):
            ratio = math.exp((evidence[one] - evidence[other]) / 0.01)
            assert mix[one] / mix[other] == pytest.approx(ratio)
    assert mix.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(mixture(evidence, (1,)).sum(axis=0), [0.0, 1.0])


@pytest.mark.parametrize("size", PARTS)
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_any_split_of_a_stream_gives_the_same_model(covariance, size):
    X, y = real("svmguide3", 420)
    whole = CBRanker(covariance=covariance, random_state=0).partial_fit(X, y)
    parts = streamed(CBRanker(covariance=covariance, random_state=0), X, y, size)
    tolerance = {"rtol": 1e-7, "atol": 1e-9} if covariance == "diagonal" else {}
    assert_same(parts, whole, **tolerance)


@pytest.mark.parametrize("kind", [CBRanker, AdditiveRanker])
def test_c_cannot_become_auto_nor_rows_wait_in_vain(kind):
    X, y = real("german", 100)
    ranker = kind(C=0.1).partial_fit(X, y)
    with pytest.raises(ValueError, match="C was a number when this stream began"):
        ranker.set_params(C="auto").partial_fit(X, y)
    waiting = kind().partial_fit(X[:20], y[:20], classes=[0, 1])
    assert waiting.waits
    with pytest.raises(ValueError, match="C was 'auto' when this stream began"):
        waiting.set_params(C=0.1).partial_fit(X, y)


# Scales -------------------------------------------------------------------------------------------


def plain_scale(values):
    """Return the power of 2 nearest to the spread of some values, none of them far beyond the others."""
    spread = max(np.std(values), 0.25 * (max(values) - min(values)))
    spread = spread if max(values) > min(values) else 0.125 * abs(values[0])
    return 2.0 ** round(math.log2(spread)) if spread else 1.0


@given(
    st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 3)), min_size=1, max_size=40),
    st.integers(-60, 60),
)
@settings(max_examples=100, deadline=None)
def test_scales_are_the_spread_of_columns(values, exponent):
    rows = np.array(values)[:, None]
    found = scales_of(rows)[0]
    # Halfway between two powers of 2, rounding may lead to either.
    assert found / plain_scale(values) in (0.5, 1.0, 2.0)
    assert abs(math.log2(found) - math.log2(plain_scale(values))) <= 1.0
    if any(values):  # the unit of a column is the unit of its scale
        assert scales_of(np.ldexp(rows, exponent))[0] == np.ldexp(found, exponent)


def test_few_values_far_beyond_all_others_do_not_count():
    rows = np.random.RandomState(0).standard_normal((200, 1))
    wide = rows.copy()
    wide[::50] = -3.4e38
    assert scales_of(wide)[0] == scales_of(np.delete(rows, slice(None, None, 50), axis=0))[0]
    for huge in (1e307, 1e-308, 5e-324):
        assert np.isfinite(scales_of(rows * huge)).all()
    assert scales_of(np.zeros((0, 3))).tolist() == [1.0] * 3


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_units_of_columns_do_not_matter(learn):
    X, y = real("german", 600)
    units = 2.0 ** np.random.RandomState(0).randint(-30, 30, X.shape[1])
    units[X[:64].std(axis=0) == 0] = 1.0  # of a column that is 0 so far the unit is not known
    one, other = (CBRanker(random_state=0) for _ in range(2))
    getattr(one, learn)(X[:400], y[:400])
    getattr(other, learn)(X[:400] * units, y[:400])
    np.testing.assert_array_equal(one.coef_, other.coef_ * units)
    scores = (
        one.decision_function(X, return_std=True),
        other.decision_function(X * units, return_std=True),
    )
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-12)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_swapped_labels_mirror_the_weights(covariance):
    X, y = real("diabetes", 400)
    one = CBRanker(covariance=covariance).partial_fit(X, y)
    other = CBRanker(covariance=covariance).partial_fit(X, 1 - y)
    np.testing.assert_allclose(one.coef_, -other.coef_, rtol=1e-9, atol=1e-12)


# Rows that wait -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [CBRanker, AdditiveRanker])
def test_rows_that_wait_are_copies_and_are_served(make):
    X, y = real("german", 60)
    rows = X.copy()
    ranker = make(random_state=0).partial_fit(rows, y)
    assert ranker.waits
    scores = ranker.decision_function(X)
    rows[:] = np.nan
    np.testing.assert_array_equal(ranker.decision_function(X), scores)
    assert ranker.n_seen_.sum() == 60
    assert ranker.score(X, y) > 0.6


def test_rows_that_wait_are_saved_and_go_on(tmp_path):
    X, y = real("german", 300)
    ranker = CBRanker(random_state=0).partial_fit(X[:40], y[:40])
    cbrank.save(ranker, tmp_path / "it")
    loaded = cbrank.load(tmp_path / "it")
    assert loaded.waits
    np.testing.assert_array_equal(loaded.decision_function(X), ranker.decision_function(X))
    assert_same(loaded.partial_fit(X[40:], y[40:]), ranker.partial_fit(X[40:], y[40:]))


def test_sparse_rows_are_dense_rows_while_they_wait_too():
    X, y = real("german", 300)
    dense, both = CBRanker(random_state=0), CBRanker(random_state=0)
    for begin in range(0, 300, 30):
        part = slice(begin, begin + 30)
        dense.partial_fit(X[part], y[part], classes=[0, 1])
        both.partial_fit(sparse.csr_array(X[part]), y[part], classes=[0, 1])
        np.testing.assert_array_equal(dense.coef_, both.coef_)
