"""Print the gain of `forgetting` where a stream changes, and its cost where it does not.

    python docs/measure_drift.py > docs/_drift_table.md

Streams are real rows with raw columns. Half-way, nothing changes, or the columns are shuffled, or the
two labels are swapped; covtype in the order of its file changes by itself, from one kind of forest to
the next. Every 100 rows are scored by the ranker as it is and then learned from. The AUC is that of
each such block, since scores of different times cannot be compared, averaged over the second half.
"""

import sys

import numpy as np
import one_class
from joblib import Parallel, delayed

import cbrank
from cbrank import CBRanker, datasets

SHARES = [0.0, 1e-4, 1e-3, 3e-3, 1e-2, "auto"]
SETTINGS = {f"`{share}`": {"forgetting": share} for share in SHARES}
SETTINGS |= {
    f"diagonal, `{share}`": {"forgetting": share, "covariance": "diagonal"}
    for share in (0.0, "auto")
}
ROWS, SEEDS, BLOCK = 8000, 3, 100
NAMES = ["german", "spambase", "magic04", "covtype"]
CHANGES = ["nothing", "columns", "labels"]
LONG = 40_000  # rows of covtype in the order of its file


def stream(name, change, seed):
    """Return rows and labels, with the change half-way."""
    X, y = one_class.load(name)
    if change == "by itself":
        return X[:LONG], y[:LONG]
    random = np.random.RandomState(seed)
    order, shuffled = random.permutation(len(y))[:ROWS], random.permutation(X.shape[1])
    X, y, half = X[order], y[order], len(order) // 2
    if change == "columns":
        X[half:] = X[half:][:, shuffled]
    elif change == "labels":
        y[half:] = 1 - y[half:]
    return X, y


def progressive(ranker, X, y):
    """Return the AUC of every block before it is learned from, nan where it has one class."""
    aucs = []
    for begin in range(0, len(y), BLOCK):
        rows = slice(begin, begin + BLOCK)
        both = begin > 0 and 0 < y[rows].sum() < len(y[rows])
        aucs.append(ranker.score(X[rows], y[rows]) if both else np.nan)
        ranker.partial_fit(X[rows], y[rows], classes=[0, 1])
    return np.array(aucs)


def measure(name, change, setting, seed):
    X, y = stream(name, change, seed)
    aucs = progressive(CBRanker(random_state=seed, **SETTINGS[setting]), X, y)
    return np.nanmean(aucs[len(aucs) // 2 :])


def row(name, change):
    seeds = [0] if change == "by itself" else range(SEEDS)
    tasks = [(name, change, setting, seed) for setting in SETTINGS for seed in seeds]
    found = Parallel(-1)(delayed(measure)(*task) for task in tasks)
    aucs = np.reshape(found, (len(SETTINGS), len(seeds))).mean(axis=1)
    told = [f"{auc:.3f}" for auc in aucs]
    told = [f"**{auc}**" if auc == max(told) else auc for auc in told]
    rows = len(stream(name, change, 0)[1])
    return f"| {name}, {rows:,} rows | {change} | " + " | ".join(told) + " |"


def main():
    names = [name for name in NAMES if name in datasets.available()]
    print("| stream | what changes | " + " | ".join(SETTINGS) + " |")
    print("|---" * (len(SETTINGS) + 2) + "|")
    for change in CHANGES:
        for name in names:
            print(row(name, change), flush=True)
    if "covtype" in names:
        print(row("covtype", "by itself"))
    print(
        f"\nMean AUC of the blocks of {BLOCK} rows in the second half, by `forgetting`; mean of "
        f"{SEEDS} orders.\n\ncbrank {cbrank.__version__}, NumPy {np.__version__}."
    )


if __name__ == "__main__":
    sys.exit(main())
