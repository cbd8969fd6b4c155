"""The paper in plain NumPy, the fast ranker that equals it, and an oracle that shares no code with either."""

import numpy as np
import oracles
import pytest
import second_reading
from real_data import SCALINGS, real
from scipy.sparse import csr_array
from sklearn.base import clone

from cbrank import CBRanker
from cbrank.kernels import blocked
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


@pytest.mark.parametrize("C", second_reading.CS)
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("columns", second_reading.COLUMNS)
def test_another_reading_of_the_paper_agrees(columns, scaling, C):
    for covariance in ("full", "diagonal"):
        for policy in ("fifo", "reservoir"):
            found = second_reading.compare(columns, scaling, C, covariance, policy)
            if found.same:
                continue
            # Dependent columns and a large C leave variances of which doubles hold few digits, or none.
            assert columns in ("copies", "sums")
            assert covariance == "full"
            assert C >= 2.0**5
            assert found.least < second_reading.VAGUE
            ours, theirs = found.exact
            # The reading's own rounding is one draw, and changes with the machine's products of matrices.
            assert ours < max(10 * theirs, 1e-4)
            assert abs(found.updates[0] - found.updates[1]) <= 0.01 * found.updates[1]
            if found.least > 1e-11:
                assert found.updates[0] == found.updates[1]
                assert ours < 1e-4


def in_chunks(ranker, X, y, cuts):
    for begin, end in zip([0, *cuts], [*cuts, len(y)], strict=True):
        ranker.partial_fit(X[begin:end], y[begin:end], classes=[0, 1])


def row_by_row(ranker, X, y):
    for x, label in zip(X, y, strict=True):
        ranker.learn_one(x, label, classes=[0, 1])


PATHS = {
    "chunks": lambda ranker, X, y: in_chunks(ranker, X, y, [1, 8, 9, 120]),
    "row by row": row_by_row,
    "sparse": lambda ranker, X, y: in_chunks(ranker, csr_array(X), y, [1, 60]),
    "blocks": lambda ranker, X, y: ranker.fit(X, y),
}


@pytest.mark.parametrize("C", [2.0**-5, 2.0**5])
@pytest.mark.parametrize("path", PATHS)
def test_another_reading_agrees_on_every_path(path, C, monkeypatch):
    monkeypatch.setattr(blocked, "WORTHWHILE", 1 if path == "blocks" else blocked.WORTHWHILE)
    X, y = second_reading.rows_of("one-hot", "standard", 200)
    for covariance in ("full", "diagonal"):
        ranker = CBRanker(C, buffer_size=50, average=False, shuffle=False, covariance=covariance)
        PATHS[path](ranker, X, y)
        read = second_reading.read(X, 2 * y - 1, C, covariance)
        assert ranker.n_updates_ == read.updates
        assert second_reading.apart(ranker, read) < 1e-9


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_columns_of_any_size_are_not_narrowed_in_the_papers_algorithm(covariance):
    X, y = real("german", 200)
    X = X * np.where(np.arange(X.shape[1]) < 3, 1e6, 1.0)
    ranker = CBRanker.paper(0.01, covariance=covariance).fit(X, y)
    read = second_reading.read(X, 2 * y - 1, 0.01, covariance)
    scores = X @ read.mu
    np.testing.assert_allclose(X @ ranker.coef_[0], scores, rtol=0, atol=1e-6 * scores.std())
    for narrowing in ({"average": True}, {"buffer_size": "auto"}):
        other = clone(ranker).set_params(**narrowing).fit(X, y)
        assert np.abs(X @ other._learned.state.models[0].mu - scores).max() > 1e-3 * scores.std()
