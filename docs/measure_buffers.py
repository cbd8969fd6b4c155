"""Print what fewer learners of C="auto" and smaller buffers cost and gain (docs/defaults.md).

    python docs/measure_buffers.py > docs/_buffers_table.md

The first table is of short streams: one pass over 80% of at most 4,000 rows, AUC on the rest, mean over ten
random splits and seven sets. The sets of the first column had a say in the choice, those of the second had
none. The second table is of many rows: for sets in random order, of which some have had most positive rows left
out, the AUC on 50,000 rows after a `fit` of as many as 100,000; for streams in time order, as if they had no least
number of rows kept, the mean AUC of windows of 1,000 rows that were scored before they were learned from, the first
quarter left out.
"""

import os
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score

import cbrank
from cbrank import CBRanker, datasets, parameters
from cbrank.rankers import halving
from cbrank.rankers.halving import Arms

SPLITS, ROWS, CHUNK, WINDOW = 10, 4000, 20, 1000
SHORT = [
    ["glass", "german", "svmguide4", "heart", "diabetes", "vehicle", "spambase"],
    ["ionosphere", "svmguide3", "australian", "segment", "magic04", "cod-rna", "covtype"],
]
LEARNERS = {
    "-12, -8, -4, 0, 4": (-12, -8, -4, 0, 4),
    "-12, -10, ..., 4": tuple(range(-12, 5, 2)),
    "-10, -7, -4, -1, 2": (-10, -7, -4, -1, 2),
    "-10, -6, -2, 2": (-10, -6, -2, 2),
}
BUFFERS = {
    "200, 50, 20, 10": parameters.BUFFER_SIZES,
    "200, 50": parameters.BUFFER_SIZES[:2],
    "20 and 10 twice as late": ((0, 0, 200), (1024, 0, 50), (8192, 512, 20), (32768, 2048, 10)),
    "20 and 10 twice as soon": ((0, 0, 200), (1024, 0, 50), (2048, 128, 20), (8192, 512, 10)),
    "20 and 10 by rows alone": ((0, 0, 200), (1024, 0, 50), (4096, 0, 20), (16384, 0, 10)),
    "5 in the end": (*parameters.BUFFER_SIZES, (32768, 2048, 5)),
}
MIXED = [("covtype", None), ("cod-rna", None), ("covtype", 0.02), ("covtype", 0.002)]
IN_TIME = {"elec": "1", "weather": "1", "adult": ">50K", "covtype": ""}
LYING = 40_000  # rows of covtype in the order of its file


def short(name, exponents, run):
    """Return the AUC of a short stream with learners of these powers of 2."""
    X, y, _ = datasets.load(name)
    order = np.random.RandomState(run).permutation(len(y))[:ROWS]
    cut = len(order) * 4 // 5
    learn, rest = order[:cut], order[cut:]
    with patch.object(CBRanker, "ARMS", Arms(exponents, (0,) * len(exponents), 0)):
        ranker = CBRanker(random_state=run).fit(X[learn], y[learn])
        return roc_auc_score(y[rest], ranker.decision_function(X[rest]))


def mixed(name, share, sizes, seed):
    """Return the AUC after a long stream in random order, with this share of positive rows."""
    X, y, _ = datasets.load(name)
    random = np.random.RandomState(seed)
    order = random.permutation(len(y))
    if share is not None:
        positive, negative = order[y[order] == 1], order[y[order] == 0]
        order = random.permutation(np.r_[positive[: int(110_000 * share)], negative[:109_000]])
    learn, rest = order[50_000:150_000], order[:50_000]
    with patch.object(parameters, "BUFFER_SIZES", sizes):
        ranker = CBRanker(random_state=seed).fit(X[learn], y[learn])
        return roc_auc_score(y[rest], ranker.decision_function(X[rest]))


def table(name):
    """Return a table in time order, words as columns of 0 and 1, or covtype in that of its file."""
    if name == "covtype":
        X, y, _ = datasets.load(name)
        return X[:LYING], y[:LYING]
    frame = pd.read_csv(Path(os.environ["CBRANK_DATA"], "tables", f"{name}.csv.xz"))
    *_, label = [each for each in frame if frame[each].nunique() == 2]
    y = (frame.pop(label).astype(str) == IN_TIME[name]).to_numpy(np.int64)
    return pd.get_dummies(frame).astype(float).fillna(0.0).to_numpy(), y


def in_time(name, sizes):
    """Return the mean AUC of the windows of a stream in time order."""
    X, y = table(name)
    scores = np.zeros(len(y))
    with (
        patch.object(parameters, "BUFFER_SIZES", sizes),
        patch.object(halving, "LEAST_IN_A_STREAM", 0),
    ):
        ranker = CBRanker(random_state=0)
        for begin in range(0, len(y), CHUNK):
            rows = slice(begin, begin + CHUNK)
            if begin:
                scores[rows] = ranker.decision_function(X[rows])
            ranker.partial_fit(X[rows], y[rows], classes=[0, 1])
    windows = range(len(y) // 4, len(y) - WINDOW + 1, WINDOW)
    both = [slice(w, w + WINDOW) for w in windows if 0 < y[w : w + WINDOW].sum() < WINDOW]
    return np.mean([roc_auc_score(y[window], scores[window]) for window in both])


def print_learners(parallel):
    """Print the table of short streams."""
    print("| exponents of C | sets that had a say | other sets |\n|---|---|---|")
    first = None
    for words, exponents in LEARNERS.items():
        tasks = [(n, exponents, run) for names in SHORT for n in names for run in range(SPLITS)]
        found = np.reshape(parallel(delayed(short)(*task) for task in tasks), (2, -1, SPLITS))
        means = found.mean(axis=2)
        first = means if first is None else first
        print(f"| {words} | " + " | ".join(map(difference, means, means - first)) + " |")


def difference(aucs, gaps):
    """Return a mean AUC, and how far it is from the first with the standard error over sets."""
    if not gaps.any():
        return f"{aucs.mean():.4f}"
    return f"{aucs.mean():.4f} ({gaps.mean():+.4f} ± {gaps.std(ddof=1) / len(gaps) ** 0.5:.4f})"


def print_buffers(parallel):
    """Print the table of long streams."""
    names = [name if share is None else f"{name}, {share:.1%} positive" for name, share in MIXED]
    print(
        "\n| rows kept | " + " | ".join([*names, *(f"{name}, in time" for name in IN_TIME)]) + " |"
    )
    print("|---" * (len(names) + len(IN_TIME) + 1) + "|")
    for words, sizes in BUFFERS.items():
        tasks = [delayed(mixed)(*each, sizes, seed) for each in MIXED for seed in range(3)]
        tasks += [delayed(in_time)(name, sizes) for name in IN_TIME]
        found = parallel(tasks)
        cells = [
            *np.reshape(found[: 3 * len(MIXED)], (-1, 3)).mean(axis=1),
            *found[3 * len(MIXED) :],
        ]
        print(f"| {words} | " + " | ".join(f"{auc:.4f}" for auc in cells) + " |")


def main():
    with Parallel(n_jobs=-1) as parallel, np.errstate(all="ignore"):
        print_learners(parallel)
        print_buffers(parallel)
    print(
        f"\ncbrank {cbrank.__version__}, NumPy {np.__version__}; mixed streams: mean of 3 orders."
    )


if __name__ == "__main__":
    sys.exit(main())
