"""Print what a gate for the top of the list gains and costs (docs/proofs.md).

    python docs/measure_focus.py > docs/_focus_table.md

A negative row is learned only if its score is among the highest tenth, or twentieth, of the last 500 negative rows, so
that positive rows meet the hardest negatives alone. The first 500 rows are learned without a gate. Columns are standardised; 8,000
rows are learned and 8,000 are ranked, mean over two seeds.
"""

import itertools
import sys
from collections import deque

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.preprocessing import StandardScaler

import cbrank
from cbrank import CBRanker, datasets

FREE, REMEMBERED, SEEDS, LEARNED, RANKED, TOP = 500, 500, 2, 8_000, 8_000, 0.05
# A class against the rest, or a class of which a share is left.
RARE = {
    "covtype 3": ("covtype", [3], None),
    "covtype 5": ("covtype", [5], None),
    "covtype 6": ("covtype", [6], None),
    "covtype 7": ("covtype", [7], None),
    "magic04, 5% left": ("magic04", [1], 0.05),
    "cod-rna, 5% left": ("cod-rna", [1], 0.05),
    "spambase, 10% left": ("spambase", [1], 0.1),
}
C = 2.0**-5


def task(name, seed):
    """Return rows to learn, labels, rows to rank and theirs."""
    base, classes, left = RARE[name]
    X, own, _ = datasets.load(base, labels="original")
    y, random = np.isin(own, classes).astype(np.int64), np.random.RandomState(seed)
    if left:
        kept = (y == 0) | (random.rand(len(y)) < left * (y == 0).sum() / max(y.sum(), 1))
        X, y = X[kept], y[kept]
    order = random.permutation(len(y))
    end = min(LEARNED, len(order) * 3 // 5)
    learned, ranked = order[:end], order[end:][:RANKED]
    scaler = StandardScaler().fit(X[learned])
    return scaler.transform(X[learned]), y[learned], scaler.transform(X[ranked]), y[ranked]


def learn(X, y, focus, seed):
    learned, scores = CBRanker(C=C, random_state=seed), deque(maxlen=REMEMBERED)
    for row, (x, label) in enumerate(zip(X, y, strict=True)):
        if focus < 1.0 and row >= FREE and label == 0:
            score = float(learned.decision_function(x[None])[0] - learned.intercept_[0])
            hard = np.mean(np.array(scores) > score) < focus if scores else True
            scores.append(score)
            if not hard:
                continue
        learned.learn_one(x, label, classes=[0, 1])
    return learned.coef_[0]


def measures(y, s):
    """Return AUC, standardised partial AUC up to the false positive rate TOP, average precision, precision at 1%."""
    first = np.argsort(-s, kind="stable")[: max(1, len(y) // 100)]
    return (
        roc_auc_score(y, s),
        roc_auc_score(y, s, max_fpr=TOP),
        average_precision_score(y, s),
        y[first].mean(),
    )


def main():
    print("| set | positive | gate | AUC | partial AUC | average precision | precision at 1% |")
    print("|:--|--:|:--|--:|--:|--:|--:|")
    means = {}
    for name, focus in itertools.product(RARE, (1.0, 0.1, 0.05)):
        found, shares = [], []
        for seed in range(SEEDS):
            X, y, Xt, yt = task(name, seed)
            shares.append(yt.mean())
            found.append(measures(yt, Xt @ learn(X, y, focus, seed)))
        cells = np.mean(found, axis=0)
        means.setdefault(focus, []).append(cells)
        gate = "none" if focus == 1.0 else f"{focus:g}"
        told = " | ".join(f"{cell:.3f}" for cell in cells)
        print(f"| {name} | {np.mean(shares):.1%} | {gate} | {told} |", flush=True)
    for focus, rows in means.items():
        told = " | ".join(f"{cell:.3f}" for cell in np.mean(rows, axis=0))
        print(f"| mean | | {'none' if focus == 1.0 else f'{focus:g}'} | {told} |")
    print(f"\ncbrank {cbrank.__version__}, NumPy {np.__version__}.")


if __name__ == "__main__":
    sys.exit(main())
