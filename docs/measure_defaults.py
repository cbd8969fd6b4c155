"""Print the tables by which the untuned defaults were chosen (docs/defaults.md).

    python docs/measure_defaults.py > docs/_defaults_table.md

One pass over 80% of at most 5,000 rows, AUC on the rest, mean over three random splits and
over all benchmark sets available. Columns raw and standardised.
"""

import sys
import warnings

import numpy as np
import one_class
import sklearn
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

import cbrank
from cbrank import (
    AdaOAMRanker,
    CBRanker,
    FTRLAUCRanker,
    OAMRanker,
    OPAUCRanker,
    SCWRanker,
    SPAUCRanker,
    UniExpRanker,
    datasets,
)

EXPONENTS = range(-12, 5, 1)
LEARNERS = {
    "CBR": (CBRanker, "C", {}),
    "CBR-diag": (CBRanker, "C", {"covariance": "diagonal"}),
    "OAM": (OAMRanker, "C", {}),
    "OPAUC": (OPAUCRanker, "step", {}),
    "AdaOAM": (AdaOAMRanker, "step", {}),
    "Uni-Exp": (UniExpRanker, "step", {}),
    "SCW": (SCWRanker, "C", {}),
    "FTRL-AUC": (FTRLAUCRanker, "step", {}),
    "SPAUC": (SPAUCRanker, "step", {}),
}


def split(name, run):
    X, y = one_class.load(name)
    order = np.random.RandomState(run).permutation(len(y))[:5000]
    cut = len(order) * 4 // 5
    train, test = X[order[:cut]], X[order[cut:]]
    scaler = StandardScaler().fit(train)
    labels = y[order[:cut]], y[order[cut:]]
    yield "raw", train, test, *labels
    yield "standardised", scaler.transform(train), scaler.transform(test), *labels


def measure(name, run):
    rows = []
    for scaling, train, test, y_train, y_test in split(name, run):
        for learner, (kind, knob, more) in LEARNERS.items():
            for exponent in EXPONENTS:
                ranker = kind(**{knob: 2.0**exponent}, **more, random_state=run)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ranker.fit(train, y_train)
                auc = 0.5 if ranker.diverged_ else ranker.score(test, y_test)
                if kind is CBRanker:
                    mean = roc_auc_score(y_test, test @ ranker.learned().models[0].mu)
                    rows.append((scaling, f"{learner}, mean", exponent, name, mean))
                    learner_name = f"{learner}, average"
                else:
                    learner_name = learner
                rows.append((scaling, learner_name, exponent, name, auc))
    return rows


def table(results, scaling):
    print(f"\n## Columns {scaling}\n")
    print("| learner |", " | ".join(f"2^{e}" for e in EXPONENTS), "| best per set |")
    print("|---" * (len(EXPONENTS) + 2) + "|")
    for learner in dict.fromkeys(row[1] for row in results):
        sets = sorted({row[3] for row in results})
        means = np.array([
            [np.mean([r[4] for r in results if r[:4] == (scaling, learner, e, s)]) for s in sets]
            for e in EXPONENTS
        ])  # fmt: skip
        cells = [f"{value:.4f}" for value in means.mean(axis=1)]
        best = int(means.mean(axis=1).argmax())
        cells[best] = f"**{cells[best]}**"
        print(f"| {learner} |", " | ".join(cells), f"| {means.max(axis=0).mean():.4f} |")


def main():
    names = [name for name in datasets.names("benchmark") if name in datasets.available()]
    jobs = [(name, run) for name in names for run in range(3)]
    results = [
        row for part in Parallel(n_jobs=-1)(delayed(measure)(*job) for job in jobs) for row in part
    ]
    print(f"Data sets: {', '.join(names)}. cbrank {cbrank.__version__}, "
          f"NumPy {np.__version__}, scikit-learn {sklearn.__version__}, seeds 0 to 2.")  # fmt: skip
    for scaling in ("raw", "standardised"):
        table(results, scaling)


if __name__ == "__main__":
    sys.exit(main())
