"""Print how well rankers of a stream rank rows that come much later (docs/keeping.md).

    CBRANK_DATA=... python docs/measure_keeping.py > docs/_keeping_table.md

Rows of real tables, in time order, sorted by month or sorted by a column, and of made-up streams whose indicators
walk from month to month. The first three quarters are learned by `partial_fit` in the order of the rows, 1,000 at a
time, or by `fit`; the last quarter is ranked by what was learned for the next rows and for rows of later. Means over
five seeds, which decide the sample, the order of a `fit` and the made-up rows.
"""

import os
from pathlib import Path

import numpy as np
import one_class
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score

from cbrank import AdditiveRanker, CBRanker

SEEDS, CHUNK = 5, 1000
TABLES = {
    "elec": ("class", 1),
    "weather": ("target", 1),
    "bank": ("y", 1),
    "hotel": ("is_canceled", 1),
    "shoppers": ("Revenue", 1),
    "adult": ("income", ">50K"),
}
LEAKS = ["reservation_status", "reservation_status_date"]  # of hotel, which know the label
SORTED = ("age", "education_num", "relationship")
RANKERS = {
    "line": lambda seed: CBRanker(random_state=seed),
    "curves": lambda seed: AdditiveRanker(trees=0, random_state=seed),
}


def table(name):
    """Return the rows of a table and whether each is positive."""
    label, positive = TABLES[name]
    path = Path(os.environ["CBRANK_DATA"], "tables", f"{name}.csv.xz")
    rows = pd.read_csv(path, sep=";" if name == "bank" else ",")
    y = (rows.pop(label) == positive).astype(int).to_numpy()
    return rows.drop(columns=LEAKS, errors="ignore"), y


def made_up(seed, rows=20_000):
    """Return five ordinary columns and four indicators, random walks with one step a month of 1,000 rows."""
    random = np.random.RandomState(seed)
    X, month = random.randn(rows, 5), np.arange(rows) // 1000
    walks = (np.cumsum(random.randn(rows // 1000, 4), axis=0) / 2 + 5 * random.randn(4))[month]
    score = X @ random.randn(5) + np.sin(2 * X[:, 0])
    score += (walks - walks.mean(axis=0)) @ random.randn(4) / 2
    y = (random.random_sample(rows) < 1 / (1 + np.exp(1 - score))).astype(int)
    return pd.DataFrame(np.column_stack([X, walks])).add_prefix("x"), y


def stream(name, seed):
    """Return the rows of a stream in its order."""
    if name == "made up":
        return made_up(seed)
    if name == "covtype":
        X, y = one_class.load("covtype")
        return pd.DataFrame(X[:60_000]).add_prefix("x"), np.asarray(y[:60_000])
    base, _, column = name.partition(" by ")
    rows, y = table(base)
    order = np.argsort(rows[column].rank(), kind="stable") if column else np.arange(len(y))
    return rows.iloc[order].reset_index(drop=True), y[order]


def measure(name, kind, seed):
    """Return the AUC of the last quarter: for the next rows, for later ones, and by a fit."""
    rows, y = stream(name, seed)
    if kind == "line":
        rows = rows.select_dtypes("number").fillna(-1).astype(float)
    end = len(y) * 3 // 4
    learned, fitted = RANKERS[kind](seed), RANKERS[kind](seed).fit(rows[:end], y[:end])
    for begin in range(0, end, CHUNK):
        chunk = slice(begin, min(begin + CHUNK, end))
        learned.partial_fit(rows[chunk], y[chunk], classes=[0, 1])
    scores = [
        learned.set_params(horizon=h).decision_function(rows[end:]) for h in ("next", "later")
    ]
    return [roc_auc_score(y[end:], s) for s in (*scores, fitted.decision_function(rows[end:]))]


if __name__ == "__main__":
    names = [*list(TABLES)[:-1], "covtype", *(f"adult by {column}" for column in SORTED), "made up"]
    tasks = [(name, kind, seed) for name in names for kind in RANKERS for seed in range(SEEDS)]
    found = Parallel(n_jobs=2)(delayed(measure)(*task) for task in tasks)
    print("| stream | rows | columns as | in order, next rows | later rows | `fit` |")
    print("|:--|--:|:--|--:|--:|--:|")
    means = {kind: [] for kind in RANKERS}
    for name in names:
        for kind in RANKERS:
            aucs = np.array([f for t, f in zip(tasks, found, strict=True) if t[:2] == (name, kind)])
            means[kind].append(aucs.mean(axis=0))
            cells = [
                f"{mean:.3f} ± {spread:.3f}"
                for mean, spread in zip(aucs.mean(axis=0), aucs.std(axis=0), strict=True)
            ]
            print(f"| {name} | {len(stream(name, 0)[1]):,} | {kind} | {' | '.join(cells)} |")
    for kind, rows in means.items():
        cells = [f"{value:.3f}" for value in np.mean(rows, axis=0)]
        print(f"| mean | | {kind} | {' | '.join(cells)} |")
