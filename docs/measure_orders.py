"""Print what it gives to learn few rows in several orders (docs/keeping.md).

    CBRANK_DATA=... python docs/measure_orders.py > docs/_orders_table.md

Sets of at most 2,048 training rows: the paper's, and those of the folder ``rare``. Five folds; twelve seeds for the order
of the rows. The AUC is the mean over folds and seeds, the deviation is that over seeds, averaged over folds.
"""

import os
from pathlib import Path

import numpy as np
import one_class
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from cbrank import AdditiveRanker, CBRanker
from cbrank.learning import orders

PAPERS = "glass", "ionosphere", "german", "svmguide3", "heart", "australian", "diabetes", "vehicle"
SEEDS = 12
RANKERS = {
    "line": lambda seed: CBRanker(random_state=seed),
    "curves": lambda seed: AdditiveRanker(trees=0, random_state=seed),
}


def rare(path):
    """Return the rows of a table whose last column is the label, the rarer one positive."""
    rows = pd.read_csv(path)
    labels = rows.pop(rows.columns[-1])
    return pd.get_dummies(rows).to_numpy(float), (
        labels == labels.value_counts().index[-1]
    ).to_numpy(int)


def measure(X, y, kind, few):
    """Return mean AUC and deviation over orders."""
    orders.FEW = few
    aucs = [
        [
            roc_auc_score(
                y[test], RANKERS[kind](seed).fit(X[train], y[train]).decision_function(X[test])
            )
            for seed in range(SEEDS)
        ]
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    ]
    return np.mean(aucs), np.std(aucs, axis=1).mean()


if __name__ == "__main__":
    groups = {"the paper's": [one_class.load(name) for name in PAPERS]}
    paths = sorted(Path(os.environ["CBRANK_DATA"], "rare").glob("*.csv.xz"))
    groups["rare positives"] = [rare(path) for path in paths]
    print(
        "| sets | columns as | AUC, one order | four orders | deviation over orders, one | four |"
    )
    print("|:--|:--|--:|--:|--:|--:|")
    for group, sets in groups.items():
        for kind in RANKERS:
            jobs = [delayed(measure)(*data, kind, few) for few in (0, orders.FEW) for data in sets]
            one, four = np.array(Parallel(n_jobs=2)(jobs)).reshape(2, len(sets), 2).mean(axis=1)
            print(
                f"| {group}, {len(sets)} | {kind} | {one[0]:.4f} | {four[0]:.4f} | {one[1]:.4f} | {four[1]:.4f} |"
            )
