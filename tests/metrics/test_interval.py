"""How sure an AUC is, against all pairs, the bootstrap and its own promise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri
from sklearn.metrics import roc_auc_score

from cbrank.metrics import auc_interval


def delong_by_pairs(y, scores):
    """DeLong's variance as the paper writes it: a kernel over all pairs."""
    above, below = scores[y == 1], scores[y == 0]
    right = (above[:, None] > below) + 0.5 * (above[:, None] == below)
    s10, s01 = right.mean(axis=1).var(ddof=1), right.mean(axis=0).var(ddof=1)
    return right.mean(), math.sqrt(s10 / len(above) + s01 / len(below))


@st.composite
def two_of_each(draw):
    labels = draw(st.lists(st.integers(0, 1), min_size=4, max_size=40))
    y = np.array([0, 0, 1, 1, *labels])
    scores = draw(st.lists(st.integers(-5, 5), min_size=len(y), max_size=len(y)))
    return y, np.array(scores) / 4


@given(two_of_each())
def test_the_interval_is_that_of_delong_over_all_pairs(rows):
    y, scores = rows
    auc, std = delong_by_pairs(y, scores)
    found = auc_interval(y, scores)
    assert found.auc == pytest.approx(auc, abs=1e-14)
    assert found.std == pytest.approx(std, abs=1e-14)
    assert found.auc == pytest.approx(roc_auc_score(y, scores), abs=1e-14)
    assert 0 <= found.low <= found.auc <= found.high <= 1
    assert auc_interval(1 - y, -scores) == pytest.approx(found, abs=1e-12)
    wider = auc_interval(y, scores, confidence=0.99)
    assert wider.low <= found.low
    assert wider.high >= found.high


def test_the_standard_deviation_agrees_with_the_bootstrap():
    random = np.random.RandomState(3)
    y = (np.arange(400) < 80).astype(int)
    scores = random.standard_normal(400) + 1.2 * y
    above, below = scores[y == 1], scores[y == 0]
    aucs = []
    for _ in range(1000):
        rows = np.concatenate([random.choice(above, above.size), random.choice(below, below.size)])
        aucs.append(roc_auc_score(y, rows))
    assert auc_interval(y, scores).std == pytest.approx(np.std(aucs), rel=0.08)


@pytest.mark.parametrize(("auc", "least"), [(0.8, 0.93), (0.95, 0.9)])
def test_the_interval_holds_the_true_auc_more_often_than_the_symmetric_one(auc, least):
    random, held, symmetric = np.random.RandomState(0), 0, 0
    shift = math.sqrt(2) * ndtri(auc)
    y = (np.arange(220) < 20).astype(int)
    for _ in range(1000):
        found = auc_interval(y, random.standard_normal(220) + shift * y)
        held += found.low <= auc <= found.high
        symmetric += abs(found.auc - auc) <= 1.96 * found.std
    assert least <= held / 1000 <= 0.97
    assert held > symmetric + 20


def test_a_perfect_ranking_is_not_called_certain():
    y = np.repeat([0, 1], [50, 10])
    found = auc_interval(y, y)
    assert (found.auc, found.high, found.std) == (1, 1, 0)
    assert found.low == pytest.approx(0.025 ** (1 / 10))
    turned = auc_interval(y, -y)
    assert (turned.auc, turned.low) == (0, 0)
    assert turned.high == pytest.approx(1 - found.low)


def test_one_row_of_a_class_gives_no_interval():
    found = auc_interval([0, 0, 1], [1.0, 3.0, 2.0])
    assert found.auc == 0.5
    assert all(map(math.isnan, found[1:]))


def test_equal_scores_are_half_right():
    assert auc_interval([0, 1, 0, 1], [7, 7, 7, 7]) == (0.5, 0.5, 0.5, 0.0)


def test_a_million_rows_take_seconds():
    random = np.random.RandomState(0)
    y = random.randint(0, 2, 10**6)
    scores = random.standard_normal(10**6) + y
    found = auc_interval(y, scores)
    assert found.auc == pytest.approx(roc_auc_score(y, scores), abs=1e-12)
    assert found.high - found.low < 0.003


@pytest.mark.parametrize("confidence", [0, 1, -0.5, math.nan])
def test_the_confidence_is_between_0_and_1(confidence):
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        auc_interval([0, 1], [0, 1], confidence=confidence)
