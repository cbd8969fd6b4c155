"""C chosen within the pass: learners that share rows and buffers, half of them dropped at a time."""

import numpy as np
import pytest
from learners import assert_same
from real_data import real
from scipy import sparse

import cbrank
from cbrank import CBRanker
from cbrank.kernels.confidence import ROWS


def auto(**parameters):
    return CBRanker(C="auto", **{"random_state": 0} | parameters)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
@pytest.mark.parametrize("name", ["german", "svmguide3"])
def test_the_winner_is_the_ranker_with_that_c(name, policy, covariance):
    X, y = real(name)
    ranker = auto(policy=policy, covariance=covariance).fit(X, y)
    alone = CBRanker(
        C=ranker.C_, policy=policy, covariance=covariance, random_state=0
    ).fit(X, y)  # fmt: skip
    np.testing.assert_array_equal(ranker.coef_, alone.coef_)
    np.testing.assert_array_equal(ranker.covariance_, alone.covariance_)
    assert ranker.progressive_auc_ == alone.progressive_auc_
    assert ranker.threshold_ == alone.threshold_


def test_the_winner_has_the_best_progressive_auc():
    X, y = real("german", 500)
    ranker = auto().fit(X, y)
    alone = [CBRanker(C=C, random_state=0).fit(X, y).progressive_auc_ for C in ranker.Cs_]
    np.testing.assert_array_equal(ranker.progressive_auc_path_, alone)
    assert ranker.progressive_auc_ == max(alone)
    assert ranker.Cs_[np.argmax(alone)] == ranker.C_


def test_the_better_half_goes_on():
    X, y = real("magic04", 4200)
    ranker, left = auto(), {}
    for end in range(100, 4201, 100):
        ranker.partial_fit(X[end - 100 : end], y[end - 100 : end], classes=[0, 1])
        left[end] = len(ranker._halving.alive)
    ends = (500, 600, 1000, 1100, 2000, 2100, 4000, 4100)
    assert [left[end] for end in ends] == [9, 5, 5, 3, 3, 2, 2, 1]
    rows = ranker._halving.tally[:, ROWS]
    assert sorted(rows.tolist()) == [512] * 4 + [1024] * 2 + [2048] + [4096] + [4200]


@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_dropping_does_not_depend_on_chunks(covariance, rows):
    X, y = real("svmguide3", 1200)
    weights = np.random.RandomState(0).choice([0.0, 1.0, 2.0], len(y))
    whole = auto(covariance=covariance).partial_fit(rows(X), y, sample_weight=weights)
    chunked = auto(covariance=covariance)
    for begin in range(0, len(y), 77):
        part = slice(begin, begin + 77)
        chunked.partial_fit(rows(X)[part], y[part], classes=[0, 1], sample_weight=weights[part])
    assert chunked.C_ == whole.C_
    np.testing.assert_array_equal(chunked.progressive_auc_path_, whole.progressive_auc_path_)
    np.testing.assert_allclose(chunked.coef_, whole.coef_, rtol=1e-10)


def test_every_learner_meets_the_same_buffered_rows():
    X, y = real("german", 700)
    ranker = auto(policy="reservoir").partial_fit(X, y)
    alone = CBRanker(C=1.0, policy="reservoir", random_state=0).partial_fit(X, y)
    for ours, theirs in zip(ranker._buffer, alone._buffer, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_stream_keeps_the_way_its_c_is_found(german):
    X, y = german
    for go_on in (
        lambda ranker: ranker.partial_fit(X, y),
        lambda ranker: ranker.learn_one(X[0], y[0]),
    ):
        with pytest.raises(ValueError, match="C was 'auto' when this stream began"):
            go_on(auto().partial_fit(X, y).set_params(C=1.0))
        with pytest.raises(ValueError, match="C was a number when this stream began"):
            go_on(CBRanker(C=1.0).partial_fit(X, y).set_params(C="auto"))
    assert auto().fit(X, y).set_params(C=1.0).C_ == auto().fit(X, y).C_
    assert not hasattr(CBRanker(C=1.0).fit(X, y), "Cs_")
    assert CBRanker(C=1.0).fit(X, y).C_ == 1.0


def test_features_that_come_late_reach_every_learner():
    X, y = real("german", 300, "standard")
    X[:100, -5:] = 0.0
    whole = auto(covariance="diagonal").partial_fit(sparse.csr_array(X), y)
    grown = auto(covariance="diagonal").partial_fit(sparse.csr_array(X[:100, :-5]), y[:100])
    grown.resize(X.shape[1])
    grown.partial_fit(sparse.csr_array(X[100:]), y[100:])
    for ranker in (grown, whole):
        ranker._others.features[:] = ranker._others.features[np.argsort(ranker._halving.alive[1:])]
    np.testing.assert_allclose(grown._others.features, whole._others.features, rtol=1e-9)


def test_nobody_leaves_without_evidence():
    X, y = real("german", scaling="standard")
    negatives = X[y == 0]
    ranker = auto().partial_fit(
        np.tile(negatives, (8, 1)), np.zeros(8 * len(negatives), int), [0, 1]
    )
    assert len(ranker._halving.alive) == 9
    assert ranker.C_ == 2.0**-4
    rare = np.flatnonzero(y == 1)[:15]
    assert len(ranker.partial_fit(X[rare], y[rare])._halving.alive) == 9
    ranker.learn_one(X[y == 1][20], 1)
    assert len(ranker._halving.alive) == 5


def test_wide_rows_that_repeat_do_not_depend_on_chunks():
    rng = np.random.RandomState(0)
    kinds = rng.standard_normal((4, 130))
    which = rng.randint(4, size=600)
    y = (which + rng.randint(4, size=600) > 3).astype(int)
    whole, chunked = auto().partial_fit(kinds[which], y), auto()
    for begin in range(0, 600, 37):
        chunked.partial_fit(kinds[which][begin : begin + 37], y[begin : begin + 37], [0, 1])
    np.testing.assert_array_equal(chunked.progressive_auc_path_, whole.progressive_auc_path_)
    np.testing.assert_allclose(chunked.coef_, whole.coef_, rtol=1e-6)


def test_a_number_for_C_leaves_nothing_of_the_choice_behind(german, tmp_path):
    X, y = german
    ranker = CBRanker(random_state=0).fit(X, y).set_params(C=1.0).fit(X, y)
    assert_same(ranker, CBRanker(C=1.0, random_state=0).fit(X, y))
    cbrank.save(ranker, tmp_path / "model")
    assert cbrank.load(tmp_path / "model").C_ == 1.0


def test_the_C_of_a_choice_that_was_not_made_is_not_there(german):
    ranker = CBRanker(C=1.0).fit(*german).set_params(C="auto")
    with pytest.raises(AttributeError, match='only if C was "auto" when it began'):
        _ = ranker.C_
