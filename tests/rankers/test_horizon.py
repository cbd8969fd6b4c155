"""What is said of rows that come much later than those of a stream, and of the rows that come next."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from cbrank import AdditiveRanker, CBRanker, merge
from cbrank.learning import blocks, orders
from cbrank.modelfile import gather, restore


def months(seed, rows=12_000):
    """Ordinary columns, and indicators that walk from month to month: curves of the first month are of no use."""
    random = np.random.RandomState(seed)
    X, month = random.randn(rows, 3), np.arange(rows) // 1000
    walks = (np.cumsum(random.randn(rows // 1000, 3), axis=0) * 0.5 + 5 * random.randn(3))[month]
    score = X @ [1.0, -0.7, 0.5] + (walks - walks.mean(axis=0)) @ random.randn(3) * 0.5
    y = (random.random_sample(rows) < 1 / (1 + np.exp(-score))).astype(int)
    return np.column_stack([X, walks]), y


def chunks(ranker, X, y, size=500):
    for begin in range(0, len(y), size):
        ranker.partial_fit(X[begin : begin + size], y[begin : begin + size], classes=[0, 1])
    return ranker


KINDS = {
    "line": lambda **options: CBRanker(random_state=0, **options),
    "diagonal": lambda **options: CBRanker(covariance="diagonal", random_state=0, **options),
    "curves": lambda **options: AdditiveRanker(random_state=0, **options),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize("seed", range(3))
def test_a_stream_that_is_put_away_ranks_later_rows_as_a_fit_does(seed):
    X, y = months(seed)
    train, later = slice(0, 9000), slice(9000, None)
    for kind in ("line", "curves"):
        learned = chunks(KINDS[kind](), X[train], y[train])
        fitted = KINDS[kind]().fit(X[train], y[train])
        assert learned.score(X[later], y[later]) > fitted.score(X[later], y[later]) - 0.02


@every_kind
def test_many_rows_of_a_call_are_of_later_and_few_are_the_next(kind):
    X, y = months(0, 9000)
    ranker = chunks(KINDS[kind](), X[:8000], y[:8000])
    following, late = copy.deepcopy(ranker), copy.deepcopy(ranker)
    following.horizon, late.horizon = "next", "later"
    np.testing.assert_array_equal(
        ranker.decision_function(X[8000:]), following.decision_function(X[8000:])
    )
    np.testing.assert_array_equal(ranker.decision_function(X), late.decision_function(X))
    assert not np.array_equal(following.decision_function(X), late.decision_function(X))
    np.testing.assert_array_equal(ranker.predict_proba(X), late.predict_proba(X))
    np.testing.assert_array_equal(ranker.predict(X), late.predict(X))
    one = late.decision_function(X[:1])  # whatever rows are beside it
    np.testing.assert_array_equal(one, late.decision_function(X)[:1])
    np.testing.assert_array_equal(
        following.decision_function(X[:1]), following.decision_function(X)[:1]
    )


@every_kind
def test_later_rows_are_ranked_by_what_the_sample_teaches(kind):
    X, y = months(1, 6000)
    one, other = (chunks(KINDS[kind](horizon="later"), X, y, size) for size in (500, 777))
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    opened = restore("model", *copy.deepcopy(gather(model=one)))
    pickled = pickle.loads(pickle.dumps(one))
    for again in (opened, pickled, copy.deepcopy(one)):
        np.testing.assert_array_equal(again.decision_function(X), one.decision_function(X))
    before = one.decision_function(X)
    one.partial_fit(X[:3000], 1 - y[:3000])
    assert not np.array_equal(one.decision_function(X), before)


@every_kind
def test_after_a_fit_or_shuffled_rows_there_is_one_answer(kind):
    X, y = months(2, 5000)
    for ranker in (KINDS[kind]().fit(X, y), KINDS[kind]().learn_shuffled(X, y)):
        expected = ranker.decision_function(X)
        for horizon in ("next", "later"):
            np.testing.assert_array_equal(
                ranker.set_params(horizon=horizon).decision_function(X), expected
            )


def test_short_streams_have_one_answer():
    X, y = months(0, 4000)
    ranker = CBRanker(random_state=0).partial_fit(X[:3000], y[:3000])
    following = copy.deepcopy(ranker).set_params(horizon="next")
    np.testing.assert_array_equal(ranker.decision_function(X), following.decision_function(X))


def test_a_model_for_later_explains_itself():
    X, y = months(3, 6000)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    ranker = chunks(KINDS["curves"](horizon="later"), frame, y)
    parts = ranker.contributions(frame)
    scores = ranker.decision_function(frame)
    np.testing.assert_allclose(parts.sum(axis=1) + ranker.intercept_, scores, atol=1e-9)
    assert ranker.coef_.shape[1] == ranker.encoder_.width_ == ranker.covariance_.shape[0]
    [[reason]] = ranker.reasons(frame[:1], most=1)
    assert reason.column in frame.columns
    grid, effect, deviation = ranker.curve("a")
    assert len(grid) == len(effect) == len(deviation)
    assert ranker.progressive_auc_ == ranker.set_params(horizon="next").progressive_auc_


def test_merged_streams_rank_later_rows():
    X, y = months(4)
    parts = [chunks(CBRanker(random_state=at), X[at:9000:3], y[at:9000:3]) for at in range(3)]
    merged = merge(parts).set_params(horizon="later")
    fitted = CBRanker(random_state=0).fit(X[:9000], y[:9000])
    assert merged.score(X[9000:], y[9000:]) > fitted.score(X[9000:], y[9000:]) - 0.02


@pytest.mark.parametrize("seed", range(2))
def test_ages_of_noise_are_one_half(seed):
    random = np.random.RandomState(seed)
    X, y = random.randn(8000, 5), random.randint(0, 2, 8000)
    for kind in ("line", "curves"):
        ages = chunks(KINDS[kind](), X, y).auc_by_age_
        assert len(ages) == 4
        assert (np.diff(ages[:, 0]) > 0).all()
        assert (np.abs(ages[:, 1] - 0.5) < 4 * ages[:, 2]).all()


def test_ages_say_what_rows_held_out_say():
    X, y = months(5)
    ranker = chunks(KINDS["curves"](), X[:9000], y[:9000])
    held = roc_auc_score(y[9000:], ranker.decision_function(X[9000:]))
    rows, auc, error = ranker.auc_by_age_[-1]
    assert 3000 < rows < 4500
    assert abs(auc - held) < 3 * error + 0.02


def test_ages_of_a_fit_do_not_matter():
    X, y = months(6, 6000)
    ages = CBRanker(random_state=0).fit(X, y).auc_by_age_
    assert np.ptp(ages[:, 1]) < 4 * ages[:, 2].max()
    assert ages.shape[1] == 3


def test_few_rows_are_learned_in_several_orders(german):
    X, y = german
    rows = np.random.RandomState(0).permutation(len(y))
    train, test = rows[:700], rows[700:]
    aucs = {few: [] for few in (0, orders.FEW)}
    for few, found in aucs.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(orders, "FEW", few)
            for seed in range(8):
                ranker = CBRanker(random_state=seed).fit(X[train], y[train])
                found.append(ranker.score(X[test], y[test]))
                assert ranker.n_seen_.sum() == 700
                assert np.linalg.eigvalsh(ranker.covariance_).min() > 0
    assert np.std(aucs[orders.FEW]) < 0.75 * np.std(aucs[0])


def test_the_mean_of_orders_is_that_of_the_passes():
    X, y = (part[:300] for part in months(0, 1000))
    passes, learn = [], blocks.learn

    def kept(cell, *args, **options):
        learn(cell, *args, **options)
        passes.append(cell.state.models[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "learn", kept)
        model = CBRanker(random_state=0).fit(X, y)._learned.state.models[0]
    assert len(passes) == 4
    np.testing.assert_allclose(model.mu, np.mean([each.mu for each in passes], axis=0))
    np.testing.assert_allclose(model.Sigma, np.mean([each.Sigma for each in passes], axis=0))
