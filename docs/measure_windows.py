"""Print what windows gain where columns change slowly, and what they cost elsewhere (docs/defaults.md).

    python docs/measure_windows.py > docs/_windows_table.md

Streams are real rows. *In order*: the rows of each day, a sixth of the set, come in the order of one of its columns;
the mean over its first eight columns that have many values. *Beside three*: rows come in random order, and three
columns that say nothing are added, which change slowly: one only rises, one is a wave, one a random walk. *Hours*, made
up: five columns of noise that matter, and 24 of 0 and 1 for the hour of the day, which matters too; 30% of the rows are
positive. The others come in the order of time. Every 100 rows are scored and then learned from. The first number is the mean AUC of windows of
1,000 rows of what was served, by weights that were up to 100 rows old; the second is `progressive_auc_`, by weights that
were up to 1,024 rows old.
"""

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import one_class
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score

import cbrank
from cbrank import CBRanker, parameters

RULES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "as many rows of each class": {"_TIMES": 1},
    "up to 5 times as many of the commoner": {"_TIMES": 5},
    "up to 100 times as many of the commoner": {"_TIMES": 100, "_MOST_ROWS": 5000},
}
NAMES = ["spambase", "magic04", "cod-rna", "covtype"]
HOURS = {"4 rows": 4, "60 rows": 60, "250 rows": 250}
IN_TIME = {"elec": "1", "weather": "1", "covtype": ""}
ROWS, COLUMNS, DAYS, CHUNK, WINDOW, LYING = 20_000, 8, 6, 100, 1000, 40_000


def shuffled(name):
    """Return standardised rows in random order, and their labels."""
    X, y = one_class.load(name)
    order = np.random.RandomState(0).permutation(len(y))[:ROWS]
    X = X[order]
    return (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9), y[order]


def slow_columns(name):
    """Return the columns by which the rows of a day are put in order."""
    X, _ = shuffled(name)
    return [at for at in range(X.shape[1]) if len(np.unique(X[:, at])) > 50][:COLUMNS]


def stream(kind, name, column=0):
    """Return the rows of a stream, and their labels."""
    if kind == "in order":
        X, y = shuffled(name)
        order = np.lexsort((X[:, column], np.arange(len(y)) * DAYS // len(y)))
        return X[order], y[order]
    if kind == "beside three":
        X, y = shuffled(name)
        share = np.arange(len(y)) / len(y)
        walk = np.cumsum(np.random.RandomState(1).standard_normal(len(y))) / np.sqrt(len(y))
        return np.column_stack([X, 10 * share, np.sin(40 * share), 7 * walk]), y
    if kind == "hours":
        random, hour = np.random.RandomState(0), np.arange(ROWS) // HOURS[name] % 24
        worth, X = 1.5 * random.standard_normal(24), random.standard_normal((ROWS, 5))
        odds = worth[hour] - 2.0 + 0.54 * X.sum(axis=1)
        y = (random.random_sample(ROWS) < 1.0 / (1.0 + np.exp(-odds))).astype(np.int64)
        return np.column_stack([X, np.eye(24)[hour]]), y
    if name == "covtype":
        X, y = one_class.load(name)
        return X[:LYING], y[:LYING]
    frame = pd.read_csv(Path(os.environ["CBRANK_DATA"], "tables", f"{name}.csv.xz"))
    *_, label = [each for each in frame if frame[each].nunique() == 2]
    y = (frame.pop(label).astype(str) == IN_TIME[name]).to_numpy(np.int64)
    return pd.get_dummies(frame).astype(float).to_numpy(), y


def measure(kind, name, column, rule):
    """Return the AUC of what was served, and by weights held for a block."""
    X, y = stream(kind, name, column)
    scores, ranker = np.zeros(len(y)), CBRanker(random_state=0)
    with patch.multiple(parameters, **RULES[rule]) if RULES[rule] else nullcontext():
        for begin in range(0, len(y), CHUNK):
            rows = slice(begin, begin + CHUNK)
            if begin:
                scores[rows] = ranker.decision_function(X[rows])
            ranker.partial_fit(X[rows], y[rows], classes=[0, 1])
    windows = [slice(w, w + WINDOW) for w in range(len(y) // 4, len(y) - WINDOW + 1, WINDOW)]
    both = [window for window in windows if 0 < y[window].sum() < WINDOW]
    served = np.mean([roc_auc_score(y[window], scores[window]) for window in both])
    return served, ranker.progressive_auc_


def main():
    kinds = [("in order", name) for name in NAMES] + [("beside three", name) for name in NAMES]
    kinds += [("hours", name) for name in HOURS] + [("in time", name) for name in IN_TIME]
    tasks = [
        (kind, name, column, rule)
        for kind, name in kinds
        for column in (slow_columns(name) if kind == "in order" else [0])
        for rule in RULES
    ]
    with Parallel(n_jobs=-1) as parallel:
        found = dict(zip(tasks, parallel(delayed(measure)(*task) for task in tasks), strict=True))
    print("| stream | " + " | ".join(RULES) + " |\n" + "|---" * (len(RULES) + 1) + "|")
    for kind, name in kinds:
        cells = []
        for rule in RULES:
            own = [
                each for task, each in found.items() if (*task[:2], task[3]) == (kind, name, rule)
            ]
            cells.append(" / ".join(f"{auc:.4f}" for auc in np.mean(own, axis=0)))
        words = f"hours of {name}" if kind == "hours" else f"{name}, {kind}"
        print(f"| {words} | " + " | ".join(cells) + " |")
    print(f"\ncbrank {cbrank.__version__}, NumPy {np.__version__}.")


if __name__ == "__main__":
    sys.exit(main())
