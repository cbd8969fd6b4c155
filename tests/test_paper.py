"""The paper in plain NumPy, the fast ranker that equals it, and an oracle that shares no code with either."""

import numpy as np
import oracles
import pytest
from real_data import real

from cbrank import CBRanker
from cbrank.paper import cbr, update_buffer

CASES = [
    (name, covariance, C)
    for name in ("german", "diabetes")
    for covariance in ("full", "diagonal")
    for C in (2.0**-7, 1.0, 2.0**10)
]


@pytest.mark.parametrize(("name", "covariance", "C"), CASES)
def test_the_paper_the_fast_ranker_and_the_oracle_are_one(name, covariance, C):
    X, y = real(name, 150, "standard")
    mu, Sigma = cbr(zip(X, 2 * y - 1, strict=True), C, covariance=covariance)
    ranker = CBRanker.paper(C, covariance=covariance).fit(X, y)
    np.testing.assert_allclose(ranker.coef_[0], mu, rtol=1e-6, atol=1e-9 * np.abs(mu).max())
    read = oracles.cbr_full if covariance == "full" else oracles.cbr_diagonal
    expected = read(X, y, C)
    own = expected.Sigma if covariance == "full" else expected.G
    np.testing.assert_allclose(mu, expected.mu, rtol=1e-8, atol=1e-10 * np.abs(mu).max())
    np.testing.assert_allclose(Sigma, own, rtol=1e-8, atol=1e-10 * np.abs(own).max())


def test_a_reservoir_holds_every_row_with_the_same_probability():
    random, held = np.random.default_rng(0), np.zeros(40)
    for _ in range(4000):
        B = []
        for row in range(40):
            update_buffer(row, B, 10, row + 1, "reservoir", random)
        held[B] += 1
    assert len({*B}) == 10
    assert np.abs(held / 4000 - 0.25).max() < 4.5 * np.sqrt(0.25 * 0.75 / 4000)


def test_the_paper_ranks_german():
    X, y = real("german", scaling="standard")
    rows = [*zip(X, 2 * y - 1, strict=True)]
    mu, _ = cbr(rows[:700], 2.0**-7, policy="reservoir")
    assert oracles.auc(y[700:], X[700:] @ mu) > 0.75
