"""Print the table by which everything "auto" became the default (docs/defaults.md).

    python docs/measure_auto.py > docs/_auto_table.md

One pass over 80% of at most 8,000 rows, AUC on the rest, mean over ten random splits. CBR takes
raw columns and tunes nothing; batch logistic regression takes standardised columns
and chooses its C from 2^-10, ..., 2^10 by 3-fold cross-validation.
"""

import sys

import numpy as np
import one_class
import sklearn
from joblib import Parallel, delayed
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cbrank
from cbrank import CBRanker, datasets
from cbrank.study.ceiling import BatchRanker

RUNS = 10
ROWS = 8000
NAMES = [
    "all auto",
    "buffer_size=50",
    "C=1/16",
    "SGD, averaged, standardised",
    "batch, standardised",
]


class Batch(BatchRanker, sklearn.base.ClassifierMixin, sklearn.base.BaseEstimator):
    def __init__(self, C=1.0, random_state=0):
        super().__init__(C, random_state)

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return super().fit(X, y)


def measure(name, run):
    X, y = one_class.load(name)
    order = np.random.RandomState(run).permutation(len(y))[:ROWS]
    cut = len(order) * 4 // 5
    train, test = order[:cut], order[cut:]
    grid = {"batch__C": 2.0 ** np.arange(-10, 11)}
    batch = GridSearchCV(
        sklearn.pipeline.Pipeline([("scale", StandardScaler()), ("batch", Batch())]),
        grid,
        scoring="roc_auc",
        cv=3,
    )
    learners = [
        CBRanker(random_state=run),
        CBRanker(buffer_size=50, random_state=run),
        CBRanker(C=1 / 16, random_state=run),
        make_pipeline(
            StandardScaler(), SGDClassifier(average=True, max_iter=1, tol=None, random_state=run)
        ),
        batch,
    ]
    fitted = [learner.fit(X[train], y[train]) for learner in learners]
    return name, [roc_auc_score(y[test], each.decision_function(X[test])) for each in fitted]


def main():
    names = [name for name in datasets.names("benchmark") if name in datasets.available()]
    jobs = [(name, run) for name in names for run in range(RUNS)]
    with np.errstate(all="ignore"):
        results = Parallel(n_jobs=-1)(delayed(measure)(*job) for job in jobs)
    aucs = {name: np.array([row for each, row in results if each == name]) for name in names}
    print("| data set | " + " | ".join(NAMES) + " |")
    print("|---" * (len(NAMES) + 1) + "|")
    for name, runs in aucs.items():
        print(f"| {name} | " + " | ".join(f"{auc:.4f}" for auc in runs.mean(axis=0)) + " |")
    means = np.mean([runs.mean(axis=0) for runs in aucs.values()], axis=0)
    print("| **mean** | " + " | ".join(f"**{auc:.4f}**" for auc in means) + " |")
    gaps = np.mean([runs[:, -1] - runs[:, 0] for runs in aucs.values()], axis=0)
    error = gaps.std(ddof=1) / np.sqrt(RUNS)
    print(
        f"\nBatch logistic regression is ahead of `CBRanker()` by {gaps.mean():.4f} "
        f"(standard error {error:.4f} over {RUNS} splits).\n\n"
        f"cbrank {cbrank.__version__}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}; "
        f"splits 0 to {RUNS - 1}."
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
