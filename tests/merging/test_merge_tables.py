"""Additive rankers that went on apart from one beginning, merged."""

import copy
from itertools import pairwise

import numpy as np
import pytest
from made_tables import people

from cbrank import AdditiveRanker, CBRanker, merge

X, y = people(4000)
T, t = people(4000, seed=1)
BASE = AdditiveRanker(random_state=0).partial_fit(X[:600], y[:600])


def gone_on(*bounds):
    parts = pairwise(bounds)
    return [copy.deepcopy(BASE).partial_fit(X[a:b], y[a:b]) for a, b in parts]


def test_halves_with_words_of_their_own_rank_as_one_ranker():
    halves, [one] = gone_on(600, 2000, 4000), gone_on(600, 4000)
    merged = merge(halves, prior=BASE)
    assert merged.score(T, t) > one.score(T, t) - 0.01
    assert merged.n_seen_.tolist() == one.n_seen_.tolist()
    names = {*merged.encoder_.get_feature_names_out()}
    for half in halves:
        assert names >= {*half.encoder_.get_feature_names_out()}
    assert {"land=se", "land=fr"} <= names


def test_values_that_come_often_are_those_of_both():
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(3000) < 0.8, 0.0, rng.uniform(1, 99, 3000))
    gain[600:1800:9], gain[1800::9] = 31.0, 62.0
    rows, labels = {"gain": gain}, (gain > 20) & (gain != 31.0)
    base = AdditiveRanker(random_state=0).partial_fit({"gain": gain[:600]}, labels[:600], [0, 1])
    parts = [
        copy.deepcopy(base).partial_fit({"gain": gain[some]}, labels[some])
        for some in (slice(600, 1800), slice(1800, 3000))
    ]
    merged = merge(parts, prior=base)
    names = merged.encoder_.get_feature_names_out().tolist()
    assert {"gain = 31", "gain = 62"} <= {*names}
    low, high = merged.decision_function({"gain": [31.0, 62.0]})
    assert low < high
    assert merged.score(rows, labels) > 0.9


def test_a_merged_ranker_goes_on_and_is_saved():
    merged = merge(gone_on(600, 2000, 3000), prior=BASE).partial_fit(X[3000:], y[3000:])
    again = AdditiveRanker.from_state(*merged.get_state())
    np.testing.assert_array_equal(again.decision_function(T), merged.decision_function(T))
    assert merged.n_seen_.sum() == 4000


@pytest.mark.parametrize("C", [0.1, "auto"])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_a_tree_and_another_order_rank_as_a_list_does(C, covariance):
    base = AdditiveRanker(C=C, covariance=covariance, forgetting=0.0, random_state=0)
    base.partial_fit(X[:600], y[:600])
    parts = [copy.deepcopy(base).partial_fit(X[a::4][300:], y[a::4][300:]) for a in range(4)]
    flat = merge(parts, prior=base)
    tree = merge([merge(parts[:2], prior=base), merge(parts[2:], prior=base)], prior=base)
    turned = merge(parts[::-1], prior=base)
    assert tree.n_seen_.tolist() == flat.n_seen_.tolist() == turned.n_seen_.tolist()
    for other in (tree, turned):
        assert other.encoder_.width_ == flat.encoder_.width_
        assert np.corrcoef(flat.decision_function(T), other.decision_function(T))[0, 1] > 0.999


def test_rankers_that_learned_nothing_more_merge_to_their_prior():
    base = AdditiveRanker(C=0.1, random_state=0).partial_fit(X[:600], y[:600])
    merged = merge([copy.deepcopy(base), copy.deepcopy(base)], prior=base)
    np.testing.assert_allclose(merged.coef_, base.coef_, atol=1e-8)
    assert merged.n_seen_.tolist() == base.n_seen_.tolist()


def test_rows_that_wait_are_learned_by_the_merged_ranker():
    waiting = [
        AdditiveRanker(random_state=0).partial_fit(X[a : a + 200], y[a : a + 200])
        for a in (0, 200, 400)
    ]
    one = AdditiveRanker(random_state=0).partial_fit(X[:600], y[:600])
    merged = merge(waiting)
    np.testing.assert_array_equal(merged.decision_function(T), one.decision_function(T))
    assert merge([BASE, waiting[0]]).n_seen_.sum() == 800


def test_rankers_that_decided_apart_are_refused_with_the_cure():
    apart = [AdditiveRanker().partial_fit(X[a : a + 400], y[a : a + 400]) for a in (0, 400)]
    with pytest.raises(ValueError, match=r"column 'age' has different knots.*cbrank\.prepare"):
        merge(apart)
    later = [each.partial_fit(X[800:1200], y[800:1200]) for each in apart]
    with pytest.raises(ValueError, match="go on from the prior"):
        merge(later, prior=BASE)
    with pytest.raises(ValueError, match="has class 'CBRanker'"):
        merge([BASE, CBRanker().partial_fit(np.zeros((2, 5)), [0, 1])])
