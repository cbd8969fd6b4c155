"""Print what other curves would do (docs/defaults.md).

    python docs/measure_curves.py > docs/_curves_table.md

`CBRANK_DATA` names the folder of the data sets and of ``tables/``. One pass over 80% of at most 3,000 rows
of a set, AUC on the rest. Constants were chosen by splits 0 to 4 of `CHOSEN_BY`, each by some of its sets and with
up to 8,000 rows; splits 5 to 9 and `OTHERS` had no say, though some of these had been looked at.
"""

import lzma
import os
import sys
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import one_class
import pandas as pd
import sklearn
import sklearn.datasets as of_sklearn
from sklearn.metrics import roc_auc_score

import cbrank
from cbrank import AdditiveRanker
from cbrank.features import curves

ROWS = 3000
SPLITS = 5
FEW_SPLITS = 2  # of sets that take seconds a fit
CHOSEN_BY = [
    "glass", "ionosphere", "german", "svmguide4", "svmguide3", "heart", "australian", "diabetes",
    "vehicle", "magic04", "covtype",
]  # fmt: skip
OTHERS = [
    "segment", "spambase", "cod-rna", "adult", "telco", "hypothyroid", "elec", "weather",
    "breast cancer", "wine", "digits", "phishing", "bananas",
]  # fmt: skip
SLOW = [
    "svmguide3",
    "magic04",
    "covtype",
    "spambase",
    "adult",
    "telco",
    "elec",
    "weather",
    "digits",
]
TABLES = {
    "adult": ("income", ">50K"),
    "telco": ("Churn", "Yes"),
    "hypothyroid": ("status", "hypothyroid"),
    "elec": ("class", "1"),
    "weather": ("target", "1"),
}
GIVES_AWAY = "CustomerSatisfactionScore"  # of telco: filled only for customers who left


def equal_steps(pieces):
    return np.linspace(0.0, 1.0, pieces + 1)


# Parameters, and names in modules with other values.
VARIANTS = {
    "curves as they are": ({}, []),
    "knots at equal steps": ({}, [(curves, "_levels", equal_steps)]),
    "4 pieces, not 8": ({"pieces": 4}, []),
    "16 pieces": ({"pieces": 16}, []),
}


# Data ---------------------------------------------------------------------------------------------


@cache
def load(name):
    """Return rows and labels, 1 for what is asked for."""
    if name in TABLES:
        label, positive = TABLES[name]
        with lzma.open(Path(os.environ["CBRANK_DATA"]) / "tables" / f"{name}.csv.xz") as file:
            table = pd.read_csv(file)
        y = (table.pop(label).astype(str) == positive).to_numpy(int)
        return table.drop(columns=GIVES_AWAY, errors="ignore"), y
    if name in {"phishing", "bananas"}:
        from river import datasets as of_river  # noqa: PLC0415 (an extra)

        rows = [*{"phishing": of_river.Phishing, "bananas": of_river.Bananas}[name]()]
        return pd.DataFrame([row for row, _ in rows]), np.array([int(y) for _, y in rows])
    if name in {"breast cancer", "wine", "digits"}:
        X, y = getattr(of_sklearn, f"load_{name.replace(' ', '_')}")(return_X_y=True)
        return X, {"breast cancer": 1 - y, "wine": y == 1, "digits": y % 2}[name].astype(int)
    X, y = one_class.load(name)
    return X, (y == y.max()).astype(int)


def split(X, y, run, most=ROWS):
    order = np.random.RandomState(run).permutation(len(y))[:most]
    cut = len(order) * 4 // 5
    rows = X.iloc if hasattr(X, "iloc") else X
    return rows[order[:cut]], y[order[:cut]], rows[order[cut:]], y[order[cut:]]


# Other curves -------------------------------------------------------------------------


def measure(X, y, run, variant):
    parameters, changes = variant
    train, labels, test, truth = split(X, y, run)
    with ExitStack() as stack:
        for module, name, value in changes:
            stack.enter_context(patch.object(module, name, value))
        begin = time.process_time()
        ranker = AdditiveRanker(trees=0, random_state=run, **parameters).fit(train, labels)
        seconds = time.process_time() - begin
        return roc_auc_score(truth, ranker.decision_function(test)), seconds


def measured(names, first):
    """Return of each set AUC and seconds, of each variant the mean over splits."""
    found = {}
    for name in names:
        X, y = load(name)
        runs = range(first, first + (FEW_SPLITS if name in SLOW else SPLITS))
        found[name] = np.array(
            [
                np.mean([measure(X, y, run, each) for run in runs], axis=0)
                for each in VARIANTS.values()
            ]
        )
        print(name, first, np.round(found[name].T, 4), file=sys.stderr)
    return found


def columns_of_sets():
    """Return the results of the three columns of the table, by set."""
    return [measured(CHOSEN_BY, 0), measured(CHOSEN_BY, SPLITS), measured(OTHERS, 0)]


def print_variants(columns):
    heads = ("splits they were chosen by", "other splits of these sets", "other sets")
    counts = [f"{head} ({len(column)})" for head, column in zip(heads, columns, strict=True)]
    print(f"|  | {' | '.join(counts)} | time |\n|:--|--:|--:|--:|--:|")
    every = [np.array([*column.values()]) for column in columns]  # (sets, variants, 2)
    seconds = sum(each[:, :, 1].sum(axis=0) for each in every)
    for at, name in enumerate(VARIANTS):
        cells = [
            f"{each[:, 0, 0].mean():.4f}" if at == 0 else difference(each[:, at, 0] - each[:, 0, 0])
            for each in every
        ]
        print(f"| {name} | {' | '.join(cells)} | {seconds[at] / seconds[0]:.2f} |")


def difference(gaps):
    return f"{gaps.mean():+.4f} ± {gaps.std(ddof=1) / np.sqrt(len(gaps)):.4f}"


def print_sets(columns):
    """Print the differences of each set, over all its splits."""
    names = [*VARIANTS]
    print(f"| | {' | '.join(names)} |\n|:--{'|--:' * len(names)}|")
    for set_name in [*columns[0], *columns[2]]:
        parts = [column[set_name][:, 0] for column in columns if set_name in column]
        aucs = np.mean(parts, axis=0)
        cells = [f"{aucs[0]:.4f}", *(f"{gap:+.4f}" for gap in aucs[1:] - aucs[0])]
        print(f"| {set_name} | {' | '.join(cells)} |")


def print_curves():
    columns = columns_of_sets()
    print_variants(columns)
    print()
    print_sets(columns)
    print(
        f"\ncbrank {cbrank.__version__}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}."
    )


if __name__ == "__main__":
    print_curves()
