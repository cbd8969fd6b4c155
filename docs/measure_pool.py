"""Print what other learners of C="auto" would do on short streams (docs/defaults.md).

    python docs/measure_pool.py > docs/_pool_table.md

One pass over 80% of at most 4,000 rows of a set, raw columns, AUC on the rest, mean over ten random splits and
over all benchmark sets available. Differences are from the first line, with their standard error over sets.
"""

import sys
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import one_class
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score

import cbrank
from cbrank import CBRanker, datasets
from cbrank.learning import pool
from cbrank.learning.pool import Learner
from cbrank.rankers import cbr

SPLITS, ROWS = 10, 4000


def learners(*exponents):
    """Return the change by which C is 2 to these powers; one more learner is for streams in order."""
    every = *(Learner(2.0**each) for each in exponents), Learner(2.0**-8, pool.FORGETS)
    return cbr, "OF_LINES", every


VARIANTS = {
    "C of 2^-11 and 2^-3, as it is": [],
    "2^-11, 2^-7 and 2^-3": [learners(-11, -7, -3)],
    "2^-9 and 2^-5": [learners(-9, -5)],
    "2^-7 alone": [learners(-7)],
    "2^-4 alone": [learners(-4)],
    "a prior of variance 1 for all columns": [(CBRanker, "_front", lambda *_: None)],
    "0.005, not 0.01, of AUC weighs e times": [(pool, "_TEMPERATURE", 0.005)],
    "0.02": [(pool, "_TEMPERATURE", 0.02)],
}


def measure(name, variant, run):
    X, y = one_class.load(name)
    order = np.random.RandomState(run).permutation(len(y))[:ROWS]
    train, test = np.split(order, [len(order) * 4 // 5])
    with ExitStack() as stack:
        for change in VARIANTS[variant]:
            stack.enter_context(patch.object(*change))
        ranker = CBRanker(random_state=run).fit(X[train], y[train])
        return roc_auc_score(y[test], ranker.decision_function(X[test]))


def main():
    names = [name for name in datasets.names("benchmark") if name in datasets.available()]
    tasks = [(name, each, run) for each in VARIANTS for name in names for run in range(SPLITS)]
    with np.errstate(all="ignore"):
        found = Parallel(n_jobs=-1)(delayed(measure)(*task) for task in tasks)
    means = np.reshape(found, (len(VARIANTS), len(names), SPLITS)).mean(axis=2)
    print("| learners | mean AUC | difference | largest loss | largest gain |")
    print("|:--|--:|--:|:--|:--|")
    for variant, aucs in zip(VARIANTS, means, strict=True):
        gaps = aucs - means[0]
        cells = ["", "", ""]
        if gaps.any():
            error = gaps.std(ddof=1) / np.sqrt(len(gaps))
            cells = [f"{gaps.mean():+.4f} ± {error:.4f}"]
            cells += [f"{names[at]} {gaps[at]:+.4f}" for at in (gaps.argmin(), gaps.argmax())]
        print(f"| {variant} | {aucs.mean():.4f} | " + " | ".join(cells) + " |")
    print(f"\n{len(names)} sets. cbrank {cbrank.__version__}, NumPy {np.__version__}.")


if __name__ == "__main__":
    sys.exit(main())
