"""Print the gain of choosing rows to label, and of abstaining, by uncertainty (docs/confidence.md).

    python docs/measure_confidence.py > docs/_confidence_table.md

Rows to label: 20 labelled rows, 5 of them of the rarer class, then ten at a time from 2,000 of a pool
of 70% of the rows, until 320 are labelled; AUC on the other 30%. In pools of 1 in 100, rows of the
rarer class are left out. Abstaining: learn from half of the rows, 3,000 at most, leave a fifth of the
others to people, and measure on the rest. Raw columns; means over random splits.
"""

import sys

import numpy as np
import one_class

import cbrank
from cbrank import CBRanker, datasets
from cbrank.metrics.roc import auc_of
from cbrank.uncertainty import standardized_margin

SEEDS, ROWS = 20, 30_000
LABELS, BATCH, OFFERED = 320, 10, 2000
SMALL = ["german", "diabetes", "svmguide3", "vehicle"]
LARGE = ["spambase", "magic04", "covtype", "cod-rna"]


# Rows to label next -------------------------------------------------------------------------------


def from_even(ranker, X):
    """Return the distance of scores from even odds, whatever their deviations."""
    return np.abs(ranker.decision_function(X) - ranker.even_odds())


def uncertain(ranker, X):
    """Return that distance in standard deviations, by which `most_uncertain` goes."""
    return from_even(ranker, X) / ranker.decision_function(X, return_std=True)[1]


CHOICES = {  # by which measure, and how many of the rows; the others at random
    "random": (uncertain, 0),
    "most uncertain": (uncertain, BATCH),
    "half most uncertain": (uncertain, BATCH // 2),
    "half nearest": (from_even, BATCH // 2),
}


def choose(values, n, random):
    """Return a batch of places: those of the `n` smallest values, and others at random."""
    order = np.argsort(values, kind="stable")
    return np.append(order[:n], random.permutation(order[n:])[: BATCH - n])


def labelled(X, y, seed, choice, imbalance):
    """Return the AUC after choosing rows to label, and how many of them were positive."""
    random = np.random.RandomState(seed)
    order = random.permutation(len(y))
    cut = len(order) * 7 // 10
    pool, test = order[:cut], order[cut:]
    if imbalance:
        positive, negative = pool[y[pool] == 1], pool[y[pool] == 0]
        pool = random.permutation(np.append(positive[: len(negative) // imbalance], negative))
    start = np.append(pool[y[pool] == 1][:5], pool[y[pool] == 0][:15])
    pool = np.setdiff1d(pool, start)
    ranker = CBRanker(random_state=seed).fit(X[start], y[start])
    for _ in range((LABELS - len(start)) // BATCH):
        offered = random.permutation(pool)[:OFFERED]
        measure, n = choice
        chosen = offered[choose(measure(ranker, X[offered]), n, random)]
        ranker.partial_fit(X[chosen], y[chosen])
        pool = np.setdiff1d(pool, chosen)
    return ranker.score(X[test], y[test]), ranker.n_seen_[1]


def label_row(name, imbalance):
    X, y = rows_of(name)
    found = np.array(
        [
            [labelled(X, y, seed, choice, imbalance) for seed in range(SEEDS)]
            for choice in CHOICES.values()
        ]
    )
    aucs, positives = found[..., 0], found[..., 1].mean(axis=1)
    told = [f"{aucs[0].mean():.3f}", *(gain(each - aucs[0]) for each in aucs[1:])]
    pool = "1 in 100" if imbalance else f"{y.mean():.0%}"
    counts = " / ".join(f"{count:.0f}" for count in positives[:3])
    print(f"| {name} | {pool} | " + " | ".join(told) + f" | {counts} |", flush=True)


# Abstaining ---------------------------------------------------------------------------------------


def distance(ranker, X):
    """Return the distance of scores from the operating point, whatever their deviations."""
    return np.abs(ranker.decision_function(X))


def kept(X, y, seed):
    """Return accuracy and AUC of what is kept at random, by distance and by standardized_margin."""
    random = np.random.RandomState(seed)
    order = random.permutation(len(y))
    cut = min(len(order) // 2, 3000)
    train, test = order[:cut], order[cut:]
    ranker = CBRanker(random_state=seed).fit(X[train], y[train])
    scores, right = ranker.decision_function(X[test]), ranker.predict(X[test]) == y[test]
    at_random, measured = random.random_sample(len(test)), []
    for value in (at_random, distance(ranker, X[test]), standardized_margin(ranker, X[test])):
        stays = value > np.quantile(value, 0.2)
        auc = auc_of(y[test][stays] == 1, scores[stays], np.ones(stays.sum()))
        measured += [right[stays].mean(), auc]
    return measured


def abstain_row(name):
    X, y = rows_of(name)
    found = np.array([kept(X, y, seed) for seed in range(SEEDS)])
    accuracy, auc = found[:, ::2], found[:, 1::2]
    told = []
    for measure in (accuracy, auc):
        told += [f"{measure[:, 0].mean():.3f}"]
        told += [gain(measure[:, at] - measure[:, 0]) for at in (1, 2)]
    print(f"| {name} | " + " | ".join(told) + " |", flush=True)


# Both ---------------------------------------------------------------------------------------------


def rows_of(name):
    """Return rows and labels, the rarer class positive."""
    X, y = one_class.load(name)
    order = np.random.RandomState(0).permutation(len(y))[:ROWS]
    return X[order], y[order] if y.mean() <= 0.5 else 1 - y[order]


def gain(differences):
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return f"{differences.mean():+.3f} ± {error:.3f}"


def main():
    names = [name for name in (*SMALL, *LARGE) if name in datasets.available()]
    print(
        f"**Rows to label.** AUC after {LABELS} labels, gain over random choice ± standard error:\n"
    )
    print("| data set | positive | random | most uncertain | half most uncertain | half nearest, "
          "without deviation | positives found: random / most uncertain / half |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    for name in names:
        label_row(name, imbalance=0)
    for name in names:
        if name in LARGE:
            label_row(name, imbalance=100)
    print("\n**Abstaining.** A fifth of the rows is left to people; accuracy and AUC on the others, gain "
          "over leaving random rows:\n")  # fmt: skip
    print("| data set | accuracy, random | by distance | by distance / deviation | AUC, random | by "
          "distance | by distance / deviation |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    for name in names:
        abstain_row(name)
    print(f"\nMeans of {SEEDS} splits. cbrank {cbrank.__version__}, NumPy {np.__version__}.")


if __name__ == "__main__":
    sys.exit(main())
