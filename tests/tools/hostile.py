"""Tables with columns as they come: ids, timestamps, sentinels, copies, and numbers near the ends."""

import numpy as np
import pytest
from scipy import sparse

hostile_forms = pytest.mark.parametrize(
    ("covariance", "as_rows"),
    [("full", np.asarray), ("diagonal", np.asarray), ("diagonal", sparse.csr_array)],
)

HOSTILE = {
    "sentinels": lambda X: np.where(
        np.arange(len(X))[:, None] % 7 == np.array([0, 1, 9, 9, 9]), -3.4e38, X
    ),
    "ids": lambda X: X + np.array([1e9, 0, 2.0**52, 0, 0]),
    "timestamps": lambda X: X + np.arange(len(X))[:, None] * np.array([0, 60, 1e9, 0, 0]) + 1.7e18,
    "huge": lambda X: X * 1e150,
    "largest": lambda X: X * 1.3e154,
    "tiny": lambda X: X * 1e-160,
    "far apart": lambda X: X * 10.0 ** np.array([-150, -10, 0, 80, 150]),
    "one huge cell": lambda X: np.where(np.arange(X.size).reshape(X.shape) == 52, 1e150, X),
    "copies": lambda X: np.hstack([X, X, 1e6 * X[:, :1]]),
    "constant": lambda X: np.hstack([X, np.full((len(X), 3), [1e6, 0.0, -1.0])]),
}


def table(kind, seed=0, rows=150):
    """Return rows and labels."""
    random = np.random.RandomState(seed)
    X = random.standard_normal((rows, 5))
    y = (X[:, 0] + random.standard_normal(rows) > 0).astype(int)
    return HOSTILE[kind](X), y


def assert_sound(ranker):
    """Check that a ranker is finite, its covariance symmetric to the bit and its variances positive."""
    covariance, model = ranker.covariance_, ranker._learned.state.models[0]
    for array in (ranker.coef_, covariance, model.mu, model.lag):
        assert np.isfinite(array).all()
    if covariance.ndim == 2:
        np.testing.assert_array_equal(covariance, covariance.T)
        covariance = np.diag(covariance)
    assert (covariance > 0).all()
    assert (covariance < 1 + 1e-5).all()
