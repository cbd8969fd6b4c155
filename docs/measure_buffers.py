"""Print what smaller buffers cost and gain (docs/defaults.md).

    python docs/measure_buffers.py > docs/_buffers_table.md

For sets in random order, of which some have had most positive rows left out, the AUC on 50,000 rows after a
`fit` of as many as 100,000, once with curves; for streams, the mean AUC of windows of 1,000 rows that
were scored before they were learned from, the first quarter left out.
"""

import os
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import one_class
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score

import cbrank
from cbrank import AdditiveRanker, CBRanker, parameters
from cbrank.rankers import cbr

SEEDS, CHUNK, WINDOW = 3, 20, 1000
FEWER = parameters.IF_STEADY
BUFFERS = {
    "as it is": {},
    "50 however many rows": {"IF_STEADY": ()},
    "fewer twice as late": {"IF_STEADY": tuple((2 * n, 2 * rare, M) for n, rare, M in FEWER)},
    "fewer twice as soon": {"IF_STEADY": tuple((n // 2, rare // 2, M) for n, rare, M in FEWER)},
    "fewer by rows alone": {"IF_STEADY": tuple((n, 0, M) for n, _, M in FEWER)},
    "fewer however many weights": {"_WEIGHTS": 10**9},
    "20, 10 and 5 in the place of 16, 8 and 5": {
        "IF_STEADY": tuple((n, rare, M) for (n, rare, _), M in zip(FEWER, (20, 10, 5), strict=True))
    },
    "at the least 8": {"IF_STEADY": FEWER[:2]},
    "fewer where things change too": {"always": True},
}
MIXED = [("covtype", None), ("cod-rna", None), ("covtype", 0.02), ("covtype", 0.002)]
IN_TIME = {"elec": "1", "weather": "1", "adult": ">50K", "covtype": ""}
LYING = 40_000  # rows of covtype in the order of its file


def as_if_steady(rows, of_rarer, weights, **_):
    """Return how many rows of each class are kept where nothing ever changes."""
    return parameters.buffer_size_after(rows, of_rarer, weights, steady=True)


@contextmanager
def changed(*, always=False, **rule):
    """Let buffers shrink by another rule for a while, or `always` as if nothing ever changed."""
    with ExitStack() as stack:
        for name, value in rule.items():
            stack.enter_context(patch.object(parameters, name, value))
        if always:
            stack.enter_context(patch.object(cbr, "buffer_size_after", as_if_steady))
        yield


def mixed(name, share, rule, seed, ranker=CBRanker):
    """Return the AUC after a long stream in random order, with this share of positive rows."""
    X, y = one_class.load(name)
    random = np.random.RandomState(seed)
    order = random.permutation(len(y))
    if share is not None:
        positive, negative = order[y[order] == 1], order[y[order] == 0]
        order = random.permutation(np.r_[positive[: int(110_000 * share)], negative[:109_000]])
    learn, rest = order[50_000:150_000], order[:50_000]
    with changed(**rule):
        fitted = ranker(random_state=seed).fit(X[learn], y[learn])
        return roc_auc_score(y[rest], fitted.decision_function(X[rest]))


def table(name):
    """Return a table in time order, words as columns of 0 and 1, or covtype in that of its file."""
    if name == "covtype":
        X, y = one_class.load(name)
        return X[:LYING], y[:LYING]
    frame = pd.read_csv(Path(os.environ["CBRANK_DATA"], "tables", f"{name}.csv.xz"))
    *_, label = [each for each in frame if frame[each].nunique() == 2]
    y = (frame.pop(label).astype(str) == IN_TIME[name]).to_numpy(np.int64)
    return pd.get_dummies(frame).astype(float).fillna(0.0).to_numpy(), y


def in_time(name, rule):
    """Return the mean AUC of the windows of a stream in time order."""
    X, y = table(name)
    scores = np.zeros(len(y))
    with changed(**rule):
        ranker = CBRanker(random_state=0)
        for begin in range(0, len(y), CHUNK):
            rows = slice(begin, begin + CHUNK)
            if begin:
                scores[rows] = ranker.decision_function(X[rows])
            ranker.partial_fit(X[rows], y[rows], classes=[0, 1])
    windows = range(len(y) // 4, len(y) - WINDOW + 1, WINDOW)
    both = [slice(w, w + WINDOW) for w in windows if 0 < y[w : w + WINDOW].sum() < WINDOW]
    return np.mean([roc_auc_score(y[window], scores[window]) for window in both])


def print_buffers(parallel):
    """Print the table."""
    names = [name if share is None else f"{name}, {share:.1%} positive" for name, share in MIXED]
    names += ["covtype, curves", *(f"{name}, in time" for name in IN_TIME)]
    print("| rows kept | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for words, rule in BUFFERS.items():
        tasks = [delayed(mixed)(*each, rule, seed) for each in MIXED for seed in range(SEEDS)]
        tasks += [delayed(mixed)("covtype", None, rule, 0, AdditiveRanker)]
        tasks += [delayed(in_time)(name, rule) for name in IN_TIME]
        found, many = parallel(tasks), SEEDS * len(MIXED)
        cells = [*np.reshape(found[:many], (-1, SEEDS)).mean(axis=1), *found[many:]]
        print(f"| {words} | " + " | ".join(f"{auc:.4f}" for auc in cells) + " |", flush=True)


def main():
    with Parallel(n_jobs=-1) as parallel, np.errstate(all="ignore"):
        print_buffers(parallel)
    print(
        f"\ncbrank {cbrank.__version__}, NumPy {np.__version__}; mixed streams: mean of {SEEDS} orders, one of curves."
    )


if __name__ == "__main__":
    sys.exit(main())
