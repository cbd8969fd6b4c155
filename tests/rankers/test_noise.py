"""Where there is nothing to learn, the honest record says so; where there is, its interval holds."""

import numpy as np
import pytest
from scipy.stats import binom

from cbrank import CBRanker, OAMRanker

KINDS = {
    "full": CBRanker(random_state=0),
    "diagonal": CBRanker(covariance="diagonal", random_state=0),
    "reservoir": CBRanker(policy="reservoir", random_state=0),
    "mean": CBRanker(C=1.0, average=False, random_state=0),
    "oam": OAMRanker(C=0.01, random_state=0),
}
WIDE = pytest.param(300, marks=pytest.mark.slow)


def labels_in_runs(random, rows):
    """Return labels of which about one in ten is positive, 20 alike at a time or so."""
    runs = np.repeat(random.random_sample(rows // 5) < 0.1, 1 + random.poisson(19, rows // 5))
    return runs[:rows].astype(int)


@pytest.mark.parametrize("width", [5, 50, WIDE])
@pytest.mark.parametrize("in_runs", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_called_noise(kind, in_runs, width):
    random, rows = np.random.RandomState(width), 1500 if width == 300 else 4000
    X = random.standard_normal((rows, width))
    y = labels_in_runs(random, rows) if in_runs else (random.random_sample(rows) < 0.1).astype(int)
    ranker = KINDS[kind].__class__(**KINDS[kind].get_params()).partial_fit(X, y, classes=[0, 1])
    low, high = ranker.progressive_auc_interval_
    error = (high - low) / (2 * 1.959963984540054)
    assert abs(ranker.progressive_auc_ - 0.5) < 3 * error
    low, high = ranker.recent_auc_interval_
    assert abs(ranker.recent_auc_ - 0.5) < 3 * (high - low) / (2 * 1.959963984540054)


def test_the_interval_covers_the_auc_of_weights_that_are_known():
    """One column whose weight has its sign at once: all blocks have the same AUC, Phi(1 / sqrt 2)."""
    inside, times, auc = 0, 200, 0.7602499389065233
    for seed in range(times):
        random = np.random.RandomState(seed)
        y = (random.random_sample(600) < 0.3).astype(int)
        X = random.standard_normal((600, 1)) + y[:, None]
        ranker = CBRanker(C=0.1).partial_fit(X, y)
        low, high = ranker.progressive_auc_interval_
        inside += low <= auc <= high
    assert binom.cdf(inside, times, 0.95) > 0.001
    assert binom.sf(inside - 1, times, 0.95) > 0.001
