"""Print how curves and trees rank beside other libraries (docs/beyond.md).

    CBRANK_DATA=... python docs/measure_trees.py rare > docs/_rare_table.md
    python docs/measure_trees.py ids > docs/_ids_table.md

rare: the small sets with rare positives of the folder ``rare``, five folds and three seeds, and draws of few rows from the
tables of the folder ``tables``, two seeds. ids: made-up streams of users and items, two seeds.
"""

import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from cbrank import AdditiveRanker

LABELS = {
    "adult": ("income", ">50K"),
    "bank": ("y", 1),
    "shoppers": ("Revenue", 1),
    "hotel": ("is_canceled", 1),
    "weather": ("target", 1),
    "telco": ("Churn", "Yes"),
}
TELLING = {
    "hotel": ["reservation_status", "reservation_status_date"],
    "telco": ["CustomerSatisfactionScore", "customerID"],
}
DRAWS = (200, 15), (500, 20), (1000, 40), (2000, 60)  # rows, and how many of them are positive
METHODS = "curves", "curves and trees", "LightGBM", "random forest"
ROWS, USERS, ITEMS, AT_ONCE, WINDOW = 30_000, 400, 5000, 100, 1000


# Few rows, rare positives -------------------------------------------------------------------------


def rare(path):
    """Return the rows of a table whose last column is the label, the rarer one positive."""
    rows = pd.read_csv(path)
    labels = rows.pop(rows.columns[-1])
    return rows, (labels == labels.value_counts().index[-1]).to_numpy(int)


def table(path):
    """Return the rows of a table and its labels."""
    name = path.name.partition(".")[0]
    rows = pd.read_csv(path, sep=None, engine="python")
    label, positive = LABELS[name]
    labels = (rows.pop(label).astype(str) == str(positive)).to_numpy(int)
    return rows.drop(columns=TELLING.get(name, [])), labels


def folds(rows, labels):
    """Yield rows to learn from and the others, three times five folds."""
    for seed in range(3):
        yield from StratifiedKFold(5, shuffle=True, random_state=seed).split(rows, labels)


def draws(_, labels):
    """Yield few rows with few positives to learn from, and others of the same share of positives."""
    for size, positives in DRAWS:
        for seed in range(2):
            random = np.random.RandomState(seed)
            ones, zeros = (random.permutation(np.flatnonzero(labels == label)) for label in (1, 0))
            train = np.concatenate([ones[:positives], zeros[: size - positives]])
            others = zeros[size - positives :][:4000]
            rest = ones[positives:][: len(others) * positives // size]
            yield random.permutation(train), np.concatenate([rest, others])


def ranked(method, X, y, X_test, seed):
    """Return the scores of a method."""
    if method.startswith("curves"):
        trees = "auto" if "trees" in method else 0
        return AdditiveRanker(trees=trees, random_state=seed).fit(X, y).decision_function(X_test)
    both: Any = pd.concat([X, X_test])
    both.columns = [f"x{at}" for at in range(both.shape[1])]
    words = [name for name in both if not pd.api.types.is_numeric_dtype(both[name])]
    both[words] = both[words].astype("category")
    model: Any
    if method == "LightGBM":
        from lightgbm import LGBMClassifier  # noqa: PLC0415

        model = LGBMClassifier(n_jobs=1, verbose=-1)
    else:
        model = RandomForestClassifier(300, random_state=seed, n_jobs=1)
        both[words] = both[words].apply(lambda column: column.cat.codes)
        both = both.fillna(-999)
    model.fit(both[: len(X)], y)
    return model.predict_proba(both[len(X) :])[:, 1]


def few_rows(folder):
    """Print a line for the sets, and one for the draws."""
    groups = {
        "20 small sets, folds": (
            sorted((folder / "rare").glob("*.csv.xz")),
            rare,
            folds,
        )
    }
    tables = [path for name in LABELS if (path := folder / "tables" / f"{name}.csv.xz").exists()]
    groups[f"draws of {len(tables)} tables"] = tables, table, draws
    print("| AUC / average precision |", " | ".join(METHODS), "|")
    print("|---|" + "---|" * len(METHODS))
    for title, (paths, read, parts) in groups.items():
        found = {method: [] for method in METHODS}
        for path in paths:
            X, y = read(path)
            for at, (train, test) in enumerate(parts(X, y)):
                for method in METHODS:
                    scores = ranked(method, X.iloc[train], y[train], X.iloc[test], at)
                    found[method].append(
                        [roc_auc_score(y[test], scores), average_precision_score(y[test], scores)]
                    )
        means = ["{:.4f} / {:.4f}".format(*np.mean(found[method], axis=0)) for method in METHODS]
        print(f"| {title} |", " | ".join(means), "|", flush=True)


# Many categories ----------------------------------------------------------------------------------


def ratings(seed):
    """Make up a stream: users and items with effects of their own and of their pairs, and a number."""
    random = np.random.RandomState(seed)
    user = random.randint(USERS, size=ROWS)
    item = np.minimum((random.pareto(1.0, ROWS) * ITEMS / 60).astype(int), ITEMS - 1)
    tastes, kinds = random.normal(0, 1, (USERS, 4)), random.normal(0, 0.3, (ITEMS, 4))
    x = random.normal(size=ROWS)
    effects = random.normal(0, 0.8, USERS)[user] + random.normal(0, 0.8, ITEMS)[item]
    log_odds = effects + (tastes[user] * kinds[item]).sum(axis=1) + 0.3 * x - 1
    rows = {"user": [f"u{at}" for at in user], "item": [f"i{at}" for at in item], "x": x}
    return pd.DataFrame(rows), (random.rand(ROWS) < 1 / (1 + np.exp(-log_odds))).astype(int)


def by_cbrank(rows, labels, **parameters):
    """Return probabilities of a stream, each chunk before it is learned."""
    ranker, said = (
        AdditiveRanker(random_state=0, horizon="next", **parameters),
        np.full(len(labels), 0.5),
    )
    for begin in range(0, len(labels), AT_ONCE):
        some = slice(begin, begin + AT_ONCE)
        if begin:
            said[some] = ranker.predict_proba(rows[some])[:, 1]
        ranker.partial_fit(rows[some], labels[some], classes=[0, 1])
    return said


def by_river(rows, labels):
    """Return probabilities of River's logistic regression on one-hot columns and scaled numbers."""
    from river import compose, linear_model, preprocessing  # noqa: PLC0415

    words = compose.Select("user", "item") | preprocessing.OneHotEncoder()
    numbers = compose.Select("x") | preprocessing.StandardScaler()
    model = (words + numbers) | linear_model.LogisticRegression()
    said = np.full(len(labels), 0.5)
    for at, (row, label) in enumerate(zip(rows.to_dict("records"), labels.tolist(), strict=True)):
        if at:
            said[at] = model.predict_proba_one(row)[True]
        model.learn_one(row, bool(label))
    return said


def many_categories():
    """Print a line for each method."""
    methods = {"`AdditiveRanker()`": by_cbrank, "River, one-hot": by_river}
    print("| | AUC, windows of 1,000 | AUC, whole | seconds |\n|---|---|---|---|")
    streams = [ratings(seed) for seed in range(2)]
    by_cbrank(streams[0][0][:2000], streams[0][1][:2000])  # compiles
    for title, method in methods.items():
        found = []
        for rows, labels in streams:
            begun = perf_counter()
            said = method(rows, labels)
            seconds = perf_counter() - begun
            windows = [
                roc_auc_score(labels[begin : begin + WINDOW], said[begin : begin + WINDOW])
                for begin in range(WINDOW, ROWS, WINDOW)
            ]
            found.append([np.mean(windows), roc_auc_score(labels[WINDOW:], said[WINDOW:]), seconds])
        print(
            "| {} | {:.3f} | {:.3f} | {:.0f} |".format(title, *np.mean(found, axis=0)), flush=True
        )


if __name__ == "__main__":
    if sys.argv[1:] == ["rare"]:
        few_rows(Path(os.environ["CBRANK_DATA"]))
    elif sys.argv[1:] == ["ids"]:
        many_categories()
    else:
        raise SystemExit(__doc__)
