"""Confidence put to use: what is least sure, and the weights drawn."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from real_data import real
from scipy import sparse
from scipy.special import ndtr

from cbrank import CBRanker, OAMRanker
from cbrank.datasets import load
from cbrank.inspection.scoring import _reaching
from cbrank.uncertainty import most_uncertain, plot_weights, standardized_margin

mpl.use("agg")


@pytest.fixture
def ranker(german):
    X, y = german
    return CBRanker(random_state=0).fit(X[:800], y[:800])


def test_margins_are_distances_in_deviations(ranker, german):
    X = german[0][800:]
    scores, deviations = ranker.decision_function(X, return_std=True)
    expected = np.abs(scores) / deviations
    np.testing.assert_allclose(standardized_margin(ranker, X), expected)
    np.testing.assert_allclose(standardized_margin(ranker, sparse.csr_array(X)), expected)


def test_it_goes_with_the_probability_that_the_command_line_tells(ranker, german):
    told = _reaching(*ranker.decision_function(german[0], return_std=True))
    np.testing.assert_allclose(
        np.maximum(told, 1 - told), ndtr(standardized_margin(ranker, german[0]))
    )


def test_the_most_uncertain_come_first(ranker, german):
    scores, deviations = ranker.decision_function(german[0], return_std=True)
    sure = np.abs(scores - ranker.even_odds()) / deviations
    chosen = most_uncertain(ranker, german[0], 7)
    assert sure[chosen].tolist() == sorted(sure)[:7]
    assert most_uncertain(ranker, german[0][:3], 7).size == 3


@pytest.mark.parametrize("point", ["balanced", "accuracy"])
@pytest.mark.parametrize("weight", [None, "balanced", {1: 5.0}])
@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_odds_are_even_where_the_probability_is_one_half(learn, weight, point, german):
    X, y = german
    weight = dict.fromkeys(np.unique(y)[1:], 5.0) if isinstance(weight, dict) else weight
    ranker = CBRanker(random_state=0, class_weight=weight, operating_point=point)
    getattr(ranker, learn)(X[:700], y[:700])
    above = ranker.decision_function(X) > ranker.even_odds()
    np.testing.assert_array_equal(above, ranker.predict_proba(X)[:, 1] > 0.5)
    assert above.any()
    assert not above.all()


def positives_found(seed, uncertain):
    """Return how many rows of a rare class are found if so many of ten to label are the most uncertain."""
    X, kinds, _ = load("vehicle", labels="original")
    y = kinds == 4
    random = np.random.RandomState(seed)
    negative = random.permutation(np.flatnonzero(y == 0))
    pool = np.append(random.permutation(np.flatnonzero(y == 1))[:20], negative)
    labelled = np.append(pool[:3], pool[-17:])
    ranker, pool = CBRanker(random_state=0).fit(X[labelled], y[labelled]), pool[3:-17]
    for _ in range(12):
        chosen = pool[most_uncertain(ranker, X[pool], uncertain)]
        others = random.permutation(np.setdiff1d(pool, chosen))[: 10 - uncertain]
        chosen = np.append(chosen, others)
        ranker.partial_fit(X[chosen], y[chosen])
        pool = np.setdiff1d(pool, chosen)
    return ranker.n_seen_[1] - 3


def test_rows_of_a_rare_class_are_found():
    chance, half = (sum(positives_found(seed, n) for seed in range(6)) for n in (0, 5))
    assert half > 2 * chance


def test_a_row_that_says_nothing_is_the_most_uncertain(ranker, german):
    X = np.vstack([german[0][:5], np.zeros(24)])
    assert standardized_margin(ranker, X)[-1] == 0.0
    assert most_uncertain(ranker, X, 1).tolist() == [5]
    assert len(most_uncertain(ranker, X, 0)) == 0
    with pytest.raises(ValueError, match="n must be 0 or more, got -1"):
        most_uncertain(ranker, X, -1)


def test_what_is_kept_is_right_more_often():
    X, y = real("diabetes")
    ranker = CBRanker(random_state=0).fit(X[:400], y[:400])
    sure, right = standardized_margin(ranker, X[400:]), ranker.predict(X[400:]) == y[400:]
    assert right[sure > np.median(sure)].mean() > right.mean() + 0.05


def test_rankers_without_confidence_or_threshold_are_refused(german):
    X, y = german
    with pytest.raises(ValueError, match="OAMRanker keeps no confidence: use a CBRanker"):
        standardized_margin(OAMRanker().fit(X, y), X)
    with pytest.raises(ValueError, match="one class only"):
        most_uncertain(CBRanker().partial_fit(X[:1], y[:1], classes=[0, 1]), X, 1)


def test_weights_are_drawn_per_deviation_of_their_feature():
    X, y = real("diabetes")
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(8)])
    ranker = CBRanker(C=0.1, random_state=0).fit(frame, y)
    axes = plot_weights(ranker, n=3, ax=Figure().subplots())
    spread = ranker.buffered_rows()[1].std(axis=0)
    weights = ranker.coef_[0] * spread
    first = np.argsort(-np.abs(weights))[:3]
    assert [label.get_text() for label in axes.get_yticklabels()] == [f"f{i}" for i in first]
    [bars] = axes.collections[:1]
    assert isinstance(bars, LineCollection)
    ends = np.array(bars.get_segments())[:, :, 0]
    np.testing.assert_allclose(ends.mean(axis=1), weights[first])
    deviations = np.sqrt(ranker.covariance_.diagonal()) * spread
    np.testing.assert_allclose(np.diff(ends, axis=1)[:, 0] / 2, deviations[first])


def test_features_without_names_are_numbered_from_one():
    X, y = real("diabetes")
    axes = plot_weights(CBRanker(C=0.1).fit(X, y))
    assert {text.get_text() for text in axes.get_yticklabels()} == set("12345678")
    plt.close(axes.figure)
