"""Print how honest `progressive_auc_` and `predict_proba` are (docs/defaults.md).

    python docs/measure_honest.py > docs/_honest_table.md

Noise: 4,000 rows of normal columns, 10% positive, or labels that come in runs of 50 rows on average, 30%
of them positive; 20 streams each. Tables of noise: the same with `AdditiveRanker`;
40 streams, and 3,000 fresh rows. Data sets: one pass over 80% of at most 8,000 rows, raw columns, ten
random splits; rows of the other 20% test. The adult table (its words one-hot) is read from the folder
`tables` of CBRANK_DATA if it is there. The expected calibration error is over 15 groups of equally many
rows of all splits together: part of it is chance, as the column for logistic regression shows.
"""

import os
import sys
from pathlib import Path

import numpy as np
import one_class
import pandas as pd
import sklearn
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cbrank
from cbrank import AdditiveRanker, CBRanker, datasets

RUNS = 10
ROWS = 8000
STREAMS = 20
KINDS = {
    "full": {},
    "diagonal": {"covariance": "diagonal"},
    "reservoir": {"policy": "reservoir"},
    "C = 1/16": {"C": 1 / 16},
}
TABLES = {  # columns of numbers, of words, and of numbers that are mostly zero
    "5 of numbers": (5, 0, 0),
    "30 of numbers": (30, 0, 0),
    "4 of numbers, 6 of words": (4, 6, 0),
    "6 that are mostly zero": (0, 0, 6),
}


# Noise --------------------------------------------------------------------------------------------


def labels_of(random, rows, in_runs):
    if not in_runs:
        return (random.random_sample(rows) < 0.1).astype(int)
    runs = random.geometric(1 / 50, rows)
    return np.repeat(random.random_sample(rows) < 0.3, runs)[:rows].astype(int)


def noise(width, kind, in_runs, number):
    random = np.random.RandomState(number)
    X, y = random.standard_normal((4000, width)), labels_of(random, 4000, in_runs)
    ranker = CBRanker(**KINDS[kind], random_state=0).partial_fit(X, y, classes=[0, 1])
    low, high = ranker.progressive_auc_interval_
    return ranker.progressive_auc_, (high - low) / 3.92


def noise_table():
    print(
        "| noise, columns | labels | " + " | ".join(KINDS) + " | largest error in standard errors |"
    )
    print("|---" * (len(KINDS) + 3) + "|")
    for width in (5, 50, 300):
        for in_runs in (False, True):
            cells, worst = [], 0.0
            for kind in KINDS:
                found = np.array(
                    Parallel(-1)(
                        delayed(noise)(width, kind, in_runs, number) for number in range(STREAMS)
                    )
                )
                error = np.abs(found[:, 0] - 0.5) / found[:, 1]
                worst = max(worst, error.max())
                cells.append(f"{found[:, 0].mean():.4f}")
            order = "in runs" if in_runs else "independent"
            print(f"| {width} | {order} | " + " | ".join(cells) + f" | {worst:.1f} |")


def table_of(random, rows, numbers, words, lumps):
    columns = {f"n{number}": random.standard_normal(rows) for number in range(numbers)}
    for number in range(lumps):  # mostly zero, else one of forty values
        filled = random.random_sample(rows) < 0.3
        columns[f"l{number}"] = filled * random.randint(1, 41, rows)
    columns |= {f"w{number}": random.choice([*"abcdefghij"], rows) for number in range(words)}
    return pd.DataFrame(columns)


def noise_in_tables(columns, in_runs, number):
    random = np.random.RandomState(1000 + number)
    table, y = table_of(random, 4000, *columns), labels_of(random, 4000, in_runs)
    ranker = AdditiveRanker(trees=0, random_state=0).partial_fit(table, y, classes=[0, 1])
    low, high = ranker.progressive_auc_interval_
    fresh, labels = table_of(random, 3000, *columns), labels_of(random, 3000, False)
    auc = roc_auc_score(labels, ranker.decision_function(fresh))
    spread = ranker.predict_proba(fresh)[:, 1].std()
    return ranker.progressive_auc_, (high - low) / 3.92, auc, spread


def noise_in_tables_table():
    print(
        "\n| tables of noise | labels | progressive AUC | its error, all streams, in standard errors | "
        "largest error of one stream | AUC of fresh rows | spread of probabilities |"
    )
    print("|---" * 7 + "|")
    for what, columns in TABLES.items():
        for in_runs in (False, True):
            auc, error, fresh, spread = np.array(
                Parallel(-1)(
                    delayed(noise_in_tables)(columns, in_runs, number)
                    for number in range(2 * STREAMS)
                )
            ).T
            z = (auc - 0.5) / error
            print(
                f"| {what} | {'in runs' if in_runs else 'independent'} | {auc.mean():.4f} | "
                f"{z.sum() / np.sqrt(len(z)):+.1f} | {np.abs(z).max():.1f} | {fresh.mean():.4f} | "
                f"{spread.mean():.3f} |",
                flush=True,
            )


# Data sets ----------------------------------------------------------------------------------------


def adult():
    file = Path(os.environ.get("CBRANK_DATA", "."), "tables", "adult.csv.xz")
    if not file.exists():
        return None
    table = pd.read_csv(file)
    y = (table.pop("income").str.strip() == ">50K").to_numpy().astype(int)
    return pd.get_dummies(table).to_numpy().astype(float), y


def rows_of(name):
    if name == "adult":
        return adult()
    X, y = one_class.load(name)
    return X, (y == y.max()).astype(int)


def measure(name, run):
    X, y = rows_of(name)
    order = np.random.RandomState(run).permutation(len(y))[:ROWS]
    train, test = np.split(order, [len(order) * 4 // 5])
    ranker = CBRanker(random_state=run).fit(X[train], y[train])
    batch = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    batch.fit(X[train], y[train])
    history = ranker.progressive_auc_history_
    late = history[history["rows"] > len(train) / 2]
    auc = roc_auc_score(y[test], ranker.decision_function(X[test]))
    told = np.average(late["auc"], weights=late["weight"]) if len(late) else np.nan
    probabilities = ranker.predict_proba(X[test])[:, 1], batch.predict_proba(X[test])[:, 1]
    return name, told - auc, y[test], *probabilities


def calibration_error(y, probabilities, groups=15):
    order = np.argsort(probabilities, kind="stable")
    parts = np.array_split(order, groups)
    return sum(len(part) * abs((y - probabilities)[part].mean()) for part in parts) / len(y)


def sets_table(names):
    results = Parallel(-1)(delayed(measure)(name, run) for name in names for run in range(RUNS))
    print(
        "\n| data set | progressive AUC, late half, less test AUC | calibration error | of logistic "
        "regression | log loss | of logistic regression |"
    )
    print("|---" * 6 + "|")
    differences = []
    for name in names:
        own = [result for result in results if result[0] == name]
        difference = np.nanmean([result[1] for result in own])
        differences.append(difference)
        y, ours, batch = (np.concatenate([result[i] for result in own]) for i in (2, 3, 4))
        print(
            f"| {name} | {difference:+.4f} | {calibration_error(y, ours):.3f} | "
            f"{calibration_error(y, batch):.3f} | {log_loss(y, ours):.4f} | {log_loss(y, batch):.4f} |"
        )
    print(f"| **mean** | **{np.mean(differences):+.4f}** | | | | |")


def main():
    noise_table()
    noise_in_tables_table()
    names = [name for name in datasets.names("benchmark") if name in datasets.available()]
    sets_table(names + ([] if adult() is None else ["adult"]))
    print(
        f"\ncbrank {cbrank.__version__}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}."
    )


if __name__ == "__main__":
    sys.exit(main())
