"""Print the AUC that merging loses against one pass over all rows (docs/merging.md).

    python docs/measure_merging.py > docs/_merging_table.md

The reference is a pass over 80% of the rows in random order with C="auto"; AUC on the other 20%. The
same rows, cut into shards, are learned apart, with C="auto" too, and the rankers are merged, or their weights
averaged. Raw columns; text in rows of unit length with a diagonal covariance.
"""

import sys
from copy import deepcopy

import numpy as np
import one_class
import scipy
from joblib import Parallel, delayed
from sklearn.preprocessing import normalize

import cbrank
from cbrank import CBRanker, datasets, merge
from cbrank.merging import tempered
from cbrank.metrics.roc import auc_of

SHARDS = (2, 4, 8, 16, 32, 64)
ROUNDS = 3
LARGE = 50_000  # rows, from which fewer splits do


def rows(name):
    return len(one_class.load(name)[1])


def runs(name):
    return 2 if rows(name) > LARGE else 10


def split(name, run):
    X, y = one_class.load(name)
    sparse = not isinstance(X, np.ndarray)
    order = np.random.RandomState(run).permutation(len(y))
    X, y = (normalize(X) if sparse else X)[order], y[order]
    cut = len(y) * 4 // 5
    return X[:cut], y[:cut], X[cut:], y[cut:], "diagonal" if sparse else "full"


def measure(name, run):
    """Return the AUC of one pass, then for each number of shards merged, averaged and in rounds."""
    X, y, X_test, y_test, covariance = split(name, run)
    whole = CBRanker(covariance=covariance, random_state=run).partial_fit(X, y)
    fresh = CBRanker(covariance=covariance, random_state=run)
    found = [[whole.score(X_test, y_test)] * (1 + ROUNDS)]
    for shards in SHARDS:
        parts = np.array_split(np.arange(len(y)), shards)
        rankers = [deepcopy(fresh).partial_fit(X[p], y[p], classes=[0, 1]) for p in parts]
        weights = np.mean([ranker.coef_[0] for ranker in rankers], axis=0)
        aucs = [auc_of(y_test == 1, np.asarray(X_test @ weights), np.ones(len(y_test)))]
        merged = merge(rankers)
        aucs.append(merged.score(X_test, y_test))
        for _ in range(ROUNDS - 1):
            rankers = [deepcopy(merged).partial_fit(X[p], y[p]) for p in parts]
            merged = tempered(merge(rankers, merged), merged, shards)
            aucs.append(merged.score(X_test, y_test))
        found.append(aucs)
    return np.array(found)


def table(title, losses, column):
    print(f"\n{title}\n")
    print("| data set | rows | one pass | " + " | ".join(f"{n} shards" for n in SHARDS) + " |")
    print("|---" * (len(SHARDS) + 3) + "|")
    for name, found in losses.items():
        mean = found.mean(axis=0)
        cells = " | ".join(f"{auc - mean[0, 0]:+.4f}" for auc in mean[1:, column])
        print(f"| {name} | {rows(name):,} | {mean[0, 0]:.4f} | {cells} |")


def main():
    names = [name for name in datasets.names() if name in datasets.available()]
    jobs = [(name, run) for name in names for run in range(runs(name))]
    found = Parallel(n_jobs=-1, batch_size=1)(delayed(measure)(*job) for job in jobs)
    losses = {
        name: np.array([each for job, each in zip(jobs, found, strict=True) if job[0] == name])
        for name in names
    }
    table("AUC against one pass, **merged**:", losses, 1)
    table("AUC against one pass, **weights averaged**:", losses, 0)
    for rounds in range(2, ROUNDS + 1):
        table(f"AUC against one pass, merged in {rounds} rounds:", losses, rounds)
    print(
        f"\nMeans of 10 random splits, of 2 beyond {LARGE:,} rows. cbrank {cbrank.__version__}, NumPy "
        f"{np.__version__}, SciPy {scipy.__version__}; `python docs/measure_merging.py`, seeds 0 to 9."
    )


if __name__ == "__main__":
    sys.exit(main())
