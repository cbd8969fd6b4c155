"""Crosses against a slow plain reading: cells, evidence, choice and products."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from cbrank import AdditiveRanker
from cbrank.features import TableEncoder, crosses


@pytest.fixture
def encoded():
    random = np.random.RandomState(0)
    word = random.choice([*"abcdefghijk"], 900, p=[0.3, *[0.07] * 10]).astype(object)
    rows = {"n": random.standard_normal(900), "m": random.standard_normal(900), "w": word}
    rows |= {"two": random.randint(2, size=900), "same": np.ones(900)}
    encoder = TableEncoder()
    table = encoder.read(rows)
    encoder.settle(table)
    r = random.standard_normal(900) * 0.3 + 0.5 * np.sign(rows["n"] * rows["m"])
    return encoder, encoder.encode_dense(table), r, np.full(900, 0.2), rows


def evidence_of(encoder, X, r, v):
    coarse, found = encoder.coarse(), crosses.no_evidence(encoder.coarse())
    for rows in (slice(0, 300), slice(300, 310), slice(310, 900)):
        found = crosses.gathered(found, coarse, X[rows], r[rows], v[rows])
    return found


def test_knots_may_be_as_far_apart_as_numbers_go():
    encoder = TableEncoder().fit({"far": [-1.7e308, -1e300, 0.0, 3.0, 1e300, 1.7e308] * 20})
    [coarse] = encoder.coarse()
    assert 0.0 < coarse.bases < 5.0


def test_every_row_is_in_one_cell_of_each_column(encoded):
    encoder, X, _, _, rows = encoded
    for coarse in encoder.coarse():
        cells = crosses.cells_of(coarse, X, crosses.n_cells(coarse))
        assert (cells.sum(axis=1) == 1.0).all()
        if coarse.column == 0:  # cells of numbers are intervals
            order = np.argsort(rows["n"])
            assert (np.diff(cells.argmax(axis=1)[order]) >= 0).all()
    assert [each.column for each in encoder.coarse()] == [0, 1, 2, 3]


def test_pairs_are_ranked_by_the_evidence_of_their_cells(encoded):
    encoder, X, r, v, _ = encoded
    coarse = {each.column: each for each in encoder.coarse()}
    cells = {
        column: crosses.cells_of(each, X, crosses.n_cells(each)).argmax(axis=1)
        for column, each in coarse.items()
    }

    def says(rows):
        return r[rows].sum() ** 2 / (v[rows].sum() + 3.0) - (rows.sum() > 5)

    def alone(one):
        return max(sum(says(cells[one] == cell) for cell in np.unique(cells[one])), 0.0)

    expected = {}
    for one, other in itertools.combinations(coarse, 2):
        kinds = itertools.product(np.unique(cells[one]), np.unique(cells[other]))
        both = sum(says((cells[one] == a) & (cells[other] == b)) for a, b in kinds)
        expected[one, other] = both - alone(one) - alone(other)
    found = crosses.ranked_pairs(evidence_of(encoder, X, r, v))
    assert found == sorted(expected, key=lambda pair: -expected[pair])
    assert found[0] == (0, 1)


def test_features_of_crosses_are_products(encoded):
    encoder, X, r, v, rows = encoded
    evidence, before = evidence_of(encoder, X, r, v), encoder.width_
    encoder.cross(crosses.ranked_pairs(evidence), evidence, 10_000)
    wide = encoder.transform(rows).toarray()
    np.testing.assert_array_equal(wide[:, :before], X)
    np.testing.assert_array_equal(encoder.encode_dense(encoder.read(rows)), wide)
    assert len(encoder.crosses()) == 6
    for cross in encoder.crosses():
        left, right = (crosses.values_of(side, X) for side in (cross.left, cross.right))
        for at, (one, other) in enumerate(cross.chosen):
            np.testing.assert_allclose(
                wide[:, cross.first + at], left[:, one] * right[:, other], atol=1e-12
            )
    again = TableEncoder.from_state(*encoder.get_state())
    np.testing.assert_array_equal(again.transform(rows).toarray(), wide)


def test_a_budget_is_kept_and_no_pair_comes_twice(encoded):
    encoder, X, r, v, _ = encoded
    evidence = evidence_of(encoder, X, r, v)
    encoder.cross(crosses.ranked_pairs(evidence), evidence, 20)
    first = encoder.crosses_
    assert 0 < (encoder.partners_ >= 0).sum() <= 20
    encoder.cross(crosses.ranked_pairs(evidence), evidence, 10_000)
    assert encoder.crosses_[: len(first)] == first
    assert len({*encoder.crosses_}) == len(encoder.crosses_) == 6


def test_a_column_that_became_words_is_not_crossed_by_its_old_cells(encoded):
    encoder, X, r, v, _ = encoded
    evidence = evidence_of(encoder, X, r, v)
    number, _, word, _ = encoder.coarse()
    changed = word._replace(column=number.column)
    assert crosses.crossed(changed, word, evidence, 0).chosen == ()
    assert crosses.gathered(evidence, [changed, word], X, r, v).columns.size == 4


@pytest.mark.parametrize("asked", ["auto", [(0, 1)]])
def test_a_column_that_begins_to_move_is_looked_at_from_then_on(asked):
    random = np.random.RandomState(0)
    X = random.normal(size=(4000, 3))
    X[:400, 0] = 0.0
    y = (X[:, 0] * X[:, 1] + 0.2 * random.normal(size=4000) > 0).astype(int)
    ranker = AdditiveRanker(C=0.1, crosses=asked, random_state=0).partial_fit(X[:3000], y[:3000])
    assert ("x0", "x1") in ranker.encoder_.crosses_
    assert roc_auc_score(y[3000:], ranker.decision_function(X[3000:])) > 0.85
