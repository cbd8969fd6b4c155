"""Stream an imbalanced data set through every ranker and print how well each one ranks.

svmguide3: 1,284 rows, 21 columns, one row in four positive. Each ranker sees 1,000 rows once and
ranks the others, with columns as they come and with columns standardised. Nothing is tuned.
"""

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from cbrank import AdaOAMRanker, CBRanker, OAMRanker, OPAUCRanker, UniExpRanker
from cbrank.datasets import load

RANKERS = {
    "CBR": CBRanker(),
    "CBR, as in the paper": CBRanker(C=1.0, average=False),
    "CBR, reservoir": CBRanker(policy="reservoir"),
    "CBR-diag": CBRanker(covariance="diagonal"),
    "OAM": OAMRanker(),
    "OPAUC": OPAUCRanker(),
    "OPAUCr": OPAUCRanker(rank=10),
    "AdaOAM": AdaOAMRanker(),
    "Uni-Exp": UniExpRanker(),
}


def main():
    X, y, facts = load("svmguide3")
    order = np.random.RandomState(0).permutation(len(y))
    X, y = X[order], y[order]
    print(
        f"{facts.name}: {facts.rows} rows, {facts.features} columns, {facts.positives} positive\n"
    )
    print(f"{'ranker':<22}{'AUC raw':>10}{'AUC scaled':>12}{'seconds':>10}")
    scaled = StandardScaler().fit(X[:1000]).transform(X)
    for name, ranker in RANKERS.items():
        auc = []
        for rows in (X, scaled):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                ranker.set_params(random_state=0).fit(rows[:1000], y[:1000])
            auc.append(
                "diverged" if ranker.diverged_ else f"{ranker.score(rows[1000:], y[1000:]):.3f}"
            )
        start = time.perf_counter()
        ranker.fit(scaled[:1000], y[:1000])
        seconds = time.perf_counter() - start
        print(f"{name:<22}{auc[0]:>10}{auc[1]:>12}{seconds:>10.3f}")


if __name__ == "__main__":
    main()
