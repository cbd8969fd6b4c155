"""Print rows per second of every ranker beside scikit-learn's SGDClassifier, one thread.

python docs/bench.py
"""

import time

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier

from cbrank import AdaOAMRanker, CBRanker, OAMRanker, OPAUCRanker, UniExpRanker

RANKERS = {
    "SGDClassifier": SGDClassifier(average=True),
    "CBR, 50 buffered": CBRanker(),
    "CBR, 10 buffered": CBRanker(buffer_size=10),
    "CBR-diag, 50 buffered": CBRanker(covariance="diagonal"),
    "OAM": OAMRanker(),
    "OPAUC": OPAUCRanker(),
    "AdaOAM": AdaOAMRanker(),
    "Uni-Exp": UniExpRanker(),
}


def seconds(ranker, X, y):
    ranker.partial_fit(X[:100], y[:100], classes=[0, 1])
    start = time.perf_counter()
    ranker.partial_fit(X, y)
    return time.perf_counter() - start


def main():
    for d in (10, 54, 200):
        rng = np.random.RandomState(0)
        X = rng.standard_normal((5000, d))
        y = (X @ rng.standard_normal(d) + 0.5 * np.sqrt(d) * rng.standard_normal(5000) > d**0.5) * 1
        print(f"\n{len(y)} rows, {d} columns, {y.mean():.0%} positive")
        print(f"{'':<24}{'rows/s':>12}{'time / SGD':>14}")
        base = None
        for name, ranker in RANKERS.items():
            taken = min(seconds(clone(ranker), X, y) for _ in range(3))
            base = base or taken
            print(f"{name:<24}{len(y) / taken:>12,.0f}{taken / base:>13.1f}x")


if __name__ == "__main__":
    main()
