"""The paper in plain NumPy, the fast ranker that equals it, and an oracle that shares no code with either."""

import numpy as np
import oracles
import pytest
import second_reading
from real_data import SCALINGS, real
from sklearn.base import clone

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


def one_hot(X, most=5):
    """Rows, and beside them a column for each value of every column that has few."""
    few = [values for values in X.T if len(np.unique(values)) <= most]
    return np.column_stack([X, *(values == value for values in few for value in np.unique(values))])


def copied(X):
    """Rows, and beside them copies of three columns and the sum of four."""
    return np.column_stack([X, X[:, :3], X[:, 3:7].sum(axis=1)])


COLUMNS = {
    "german": ("german", lambda X: X),
    "svmguide3": ("svmguide3", lambda X: X),
    "one-hot": ("german", one_hot),
    "copies and a sum": ("diabetes", copied),
}


@pytest.mark.parametrize("C", [2.0**-10, 2.0**-5, 1.0, 2.0**5, 2.0**10])
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_another_reading_of_the_paper_agrees(columns, scaling, C):
    name, add = COLUMNS[columns]
    X, y = real(name, 200)
    X = SCALINGS[scaling](add(X).astype(float))
    for covariance in ("full", "diagonal"):
        for policy in ("fifo", "reservoir"):
            ranker = CBRanker.paper(C, policy, covariance).set_params(random_state=0).fit(X, y)
            signs, state = 2 * y - 1, reservoir_state(ranker)
            read = second_reading.read(X, signs, C, covariance, policy, state)
            # With a share of 1e-10 a variance has six of its sixteen digits left.
            digits = 1e-6 if read.least > 1e-10 else 1e-4
            if read.least <= 1e-10:
                assert (columns, scaling, covariance) == ("copies and a sum", "none", "full")
                assert C >= 2.0**5
            if read.least < 1e-12:  # taken for rounding error
                assert ranker.n_updates_ < read.updates
                continue
            assert ranker.n_updates_ == read.updates
            own = ranker.covariance_ if covariance == "full" else 1 / ranker.covariance_
            for ours, theirs in ((ranker.coef_[0], read.mu), (own, read.spread)):
                assert np.abs(ours - theirs).max() <= digits * np.abs(theirs).max()


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_columns_of_any_size_are_not_narrowed_in_the_papers_algorithm(covariance):
    X, y = real("german", 200)
    X = X * np.where(np.arange(X.shape[1]) < 3, 1e6, 1.0)
    ranker = CBRanker.paper(0.01, covariance=covariance).fit(X, y)
    read = second_reading.read(X, 2 * y - 1, 0.01, covariance, "fifo", 0)
    scores = X @ read.mu
    np.testing.assert_allclose(X @ ranker.coef_[0], scores, rtol=0, atol=1e-6 * scores.std())
    for narrowing in ({"average": True}, {"buffer_size": "auto"}):
        other = clone(ranker).set_params(**narrowing).fit(X, y)
        assert np.abs(X @ other._learned.state.models[0].mu - scores).max() > 1e-3 * scores.std()


def reservoir_state(ranker):
    """Return the first of the random numbers that a ranker's reservoir uses."""
    new = clone(ranker)
    new.start(ranker.n_features_in_, ranker.classes_)
    return new._learned.state.buffer.random[0]
