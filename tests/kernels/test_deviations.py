"""Deviations of scores against the plain product, for rows with few and with many features."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbrank import CBRanker, kernels


def made(rows, width, share, seed):
    random = np.random.RandomState(seed)
    X = random.normal(size=(rows, width)) * (random.uniform(size=(rows, width)) < share)
    root = random.normal(size=(width, width))
    return X, root @ root.T


@given(
    st.integers(0, 9), st.integers(1, 30), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.integers(0, 99)
)
def test_the_product_with_the_covariance(rows, width, share, seed):
    X, Sigma = made(rows, width, share, seed)
    std = np.empty(rows)
    for array in (X, Sigma):
        array.flags.writeable = False
    kernels.deviations.deviations(X, Sigma, std)
    expected = [
        sum(x[i] * Sigma[i, j] * x[j] for i in range(width) for j in range(width)) for x in X
    ]
    np.testing.assert_allclose(std, np.sqrt(np.maximum(expected, 0.0)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_a_row_alone_has_the_deviation_it_has_among_others(share):
    X, _ = made(60, 40, 1.0, seed=0)
    ranker = CBRanker(C=1.0).fit(X, np.arange(60) % 2)
    rows, _ = made(50, 40, share, seed=1)
    _, together = ranker.decision_function(rows, return_std=True)
    alone = [ranker.decision_function(row[None], return_std=True)[1][0] for row in rows]
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    if share < 0.25:
        np.testing.assert_array_equal(together, alone)
