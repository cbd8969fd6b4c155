"""How much longer a row takes as a dictionary in River than as an array in the ranker.

``CBRANK_DATA=... python tests/tools/river_speed.py`` learns the same rows both ways, one at a time and in
turns of a hundred rows, and prints microseconds a row: of the ranker's `learn_one`, of River's, and
of a prediction after every row.
"""

import argparse
import time

import scipy.sparse as sp

from cbrank import CBRanker, FTRLAUCRanker, OAMRanker
from cbrank.datasets import load
from cbrank.river import RankingClassifier

CASES = [
    ("covtype", CBRanker(C=0.0625)),
    ("covtype", CBRanker()),
    ("spambase", CBRanker(C=0.0625, buffer_size=10)),
    ("farm-ads", CBRanker(C=0.0625, covariance="diagonal")),
    ("farm-ads", CBRanker(covariance="diagonal")),
    ("farm-ads", OAMRanker()),
    ("farm-ads", FTRLAUCRanker()),
]


def dictionaries(X):
    if not sp.issparse(X):
        return [dict(enumerate(row)) for row in X.tolist()]
    return [
        dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        for row in (X[i : i + 1] for i in range(X.shape[0]))
    ]


def spent(call, rows, labels):
    begin = time.perf_counter()
    for x, y in zip(rows, labels, strict=True):
        call(x, y)
    return time.perf_counter() - begin


def compare(name, ranker, n_rows, turn=100):
    X, y, _ = load(name)
    X, labels = X[:n_rows], (y[:n_rows] == y.max()).tolist()
    arrays = [X[i : i + 1] for i in range(len(labels))] if sp.issparse(X) else X
    rows, model = dictionaries(X), RankingClassifier(ranker)
    alone = type(ranker)(**ranker.get_params())
    alone.partial_fit(X[:turn], labels[:turn], classes=[False, True])
    spent(model.learn_one, rows[:turn], labels[:turn])
    model.predict_proba_one(rows[0])
    seconds = [0.0, 0.0, 0.0]
    for begin in range(turn, len(labels), turn):
        part = slice(begin, begin + turn)
        seconds[0] += spent(alone.learn_one, arrays[part], labels[part])
        seconds[1] += spent(model.learn_one, rows[part], labels[part])
        seconds[2] += spent(lambda x, _: model.predict_proba_one(x), rows[part], labels[part])
    own, river, predicting = (1e6 * part / (len(labels) - turn) for part in seconds)
    print(
        f"{name}, {ranker}: array {own:.0f} us, dictionary {river:.0f} us, ratio {river / own:.2f}; "
        f"prediction {predicting:.0f} us"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    options = parser.parse_args()
    for name, ranker in CASES:
        compare(name, ranker, options.rows)


if __name__ == "__main__":
    main()
