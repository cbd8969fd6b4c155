"""Print how well few features rank (docs/selection.md).

    python docs/measure_selection.py > docs/_selection_table.md

AUC on a fifth of the rows after one pass over the others, mean over three random splits. Rows of text have unit
length; columns of the other sets are standardised, and 1,000 columns of noise are added. OFS (Wang et al. 2014) and
SOFS (Wu et al. 2017) learn single rows and keep K weights after each; their step is the best of a grid on the test rows,
or 0.2 on planted columns.
Batch L1 is logistic regression with the weakest penalty that leaves at most K weights.
"""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from unittest.mock import patch

import numba
import numpy as np
import one_class
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler, normalize

import cbrank
from cbrank import CBRanker
from cbrank.learning import record, slots

TEXT = "farm-ads", "reuters", "rcv1", "sector", "news20"
DENSE = "german", "spambase", "svmguide3", "segment"
SPLITS, FEATURES, FEW = 3, (10, 50, 200, 1000, 5000), (5, 10, 20, 50)
NOISE, C, DECAY = 1000, 2.0**-5, 0.01
PLANTED, WORDS, COLUMNS, CHUNK = 20, 10_000, 10**8, 5000


def ranker(K=None, run=0, **options):
    return CBRanker(covariance="diagonal", max_features=K, random_state=run, **options)


def cut(weights, strengths, K):
    """Return the weights of the K strongest features, and 0 for others."""
    kept = np.argsort(-strengths, kind="stable")[:K]
    few = np.zeros_like(weights)
    few[kept] = weights[kept]
    return few


# The methods --------------------------------------------------------------------------------------


def online(X, y, K, run):
    return ranker(K, run).fit(X, y).coef_[0]


def with_8_K(X, y, K, run):
    with patch.object(slots, "FLOOR", 0):
        return online(X, y, K, run)


def after_the_pass(X, y, K, run):
    learned = ranker(run=run).fit(X, y)
    weights = learned.coef_[0]
    return cut(weights, np.abs(weights) / np.sqrt(learned.covariance_), K)


def batch_l1(X, y, K, _):
    weak, best = -4.0, np.zeros(X.shape[1])
    steps = (4.0, 2.0, 1.0, 0.5, 0.25, 0.125)
    for step in (
        steps if sp.issparse(X) else steps[1:]
    ):  # dense ones of noise take very long beyond C = 1
        model = LogisticRegression(l1_ratio=1.0, solver="liblinear", C=10.0 ** (weak + step))
        weights = model.fit(X, y).coef_[0]
        if np.count_nonzero(weights) <= K:
            weak, best = weak + step, weights
    return best


def published(X, y, K, step, *, second):
    """Learn by OFS, or by SOFS if `second`; `step` is the learning rate, or the noise variance r."""
    X, w = sp.csr_array(X), np.zeros(X.shape[1])
    learn_rows(X.data, X.indices, X.indptr, np.where(y, 1.0, -1.0), K, step, second, w)
    return w


@numba.njit
def learn_rows(data, indices, indptr, signs, K, step, second, w):
    """Take gradient steps on the hinge loss, or those of AROW with a diagonal; K weights are left after each."""
    variances, used = np.ones(w.size), np.zeros(0, np.int64)
    for row in range(signs.size):
        at, x = indices[indptr[row] : indptr[row + 1]], data[indptr[row] : indptr[row + 1]]
        loss = 1.0 - signs[row] * np.sum(w[at] * x)
        if loss <= 0.0:
            continue
        fresh = at[w[at] == 0.0].astype(np.int64)
        if second:
            w[at] += loss / (np.sum(variances[at] * x * x) + step) * signs[row] * variances[at] * x
            variances[at] /= 1.0 + variances[at] * x * x / step
        else:
            w[used] *= 1.0 - DECAY * step
            w[at] += step * signs[row] * x
        used = np.concatenate((used, fresh))
        if not second:
            w[used] *= min(1.0, 1.0 / np.sqrt(DECAY * np.sum(w[used] ** 2)))
        if used.size > K:
            order = np.argsort(variances[used] if second else -np.abs(w[used]))
            w[used[order[K:]]] = 0.0
            used = used[order[:K]]


METHODS = {"`max_features=K`": online, "cut after the pass": after_the_pass, "batch L1": batch_l1}
PUBLISHED = {
    "OFS": (partial(published, second=False), (0.05, 0.2, 0.8)),
    "SOFS": (partial(published, second=True), (0.1, 1.0, 10.0)),
}


# The tables ---------------------------------------------------------------------------------------


def split(name, run):
    """Return training rows, their labels, test rows and theirs."""
    X, y = one_class.load(name)
    order = np.random.RandomState(run).permutation(len(y))
    train, test = np.split(order, [len(order) * 4 // 5])
    if sp.issparse(X):
        X = normalize(X)
    else:
        noise = np.random.RandomState(1000 + run).randn(len(y), NOISE)
        X = np.hstack([StandardScaler().fit(X[train]).transform(X), noise])
    return X[train], y[train], X[test], y[test]


def auc(X, y, weights):
    return roc_auc_score(y, X @ weights)


def line(name, what, cells):
    print(f"| {name} | {what} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |", flush=True)


def heading(first, Ks):
    print(f"\n| {first} | | " + " | ".join(f"{K:,}" for K in Ks) + " | all |")
    print("|:--|:--|" + "--:|" * (len(Ks) + 1))


def compare(names, Ks):
    """Print the AUC of all methods on some sets."""
    heading("set", Ks)
    for name in names:
        splits = [split(name, run) for run in range(SPLITS)]
        for label, learn in METHODS.items():
            found = [
                [auc(Xt, yt, learn(X, y, K, run)) for K in (*Ks, X.shape[1])]
                for run, (X, y, Xt, yt) in enumerate(splits)
            ]
            line(name, label, np.mean(found, axis=0))
        for label, (learn, grid) in PUBLISHED.items():
            found = [
                [[auc(Xt, yt, learn(X, y, K, step)) for K in (*Ks, X.shape[1])] for step in grid]
                for X, y, Xt, yt in splits
            ]
            line(name, label, np.mean(found, axis=0).max(axis=0))


TRIALS = {
    "K, after each row": (1, 0, "evidence", 1),
    "K, at the end of blocks": (1, 0, "evidence", record.LONGEST),
    "8 K": (8, 0, "evidence", record.LONGEST),
    "8 K, at least 4,096: as it is": (8, 4096, "evidence", record.LONGEST),
    "8 K, at least 16,384": (8, 16384, "evidence", record.LONGEST),
    "as it is, by weight": (8, 4096, "weight", record.LONGEST),
    "as it is, by confidence": (8, 4096, "confidence", record.LONGEST),
}


def trials():
    """Print the AUC by what is kept beside the K features, with one number for C."""
    heading("features kept", FEATURES[:4])
    for label, (reserve, floor, rule, longest) in TRIALS.items():
        for name in TEXT[:4]:
            found = []
            for run in range(SPLITS):
                X, y, Xt, yt = split(name, run)
                with ExitStack() as stack:
                    stack.enter_context(patch.object(slots, "RESERVE", reserve))
                    stack.enter_context(patch.object(slots, "FLOOR", floor))
                    stack.enter_context(patch.object(record, "LONGEST", longest))
                    stack.enter_context(patch.object(record, "SHORTEST", min(32, longest)))
                    few = [
                        ranker(K, run, C=C, selection=rule).fit(X, y).coef_[0]
                        for K in (*FEATURES[:4], X.shape[1])
                    ]
                found.append([auc(Xt, yt, weights) for weights in few])
            line(label, name, np.mean(found, axis=0))


def planted(kind, run):
    """Return rows of 10,000 columns, labels and the 20 columns that decide them; of "normal" ones a twentieth is not 0."""
    random = np.random.RandomState(run)
    if kind == "normal":
        X = sp.random_array(
            (5000, WORDS), density=0.05, rng=random, data_sampler=random.standard_normal
        )
        X, support = sp.csr_array(X), np.arange(PLANTED)
    else:
        chances = 1.0 / np.arange(1.0, WORDS + 1)
        drawn = random.choice(WORDS, (8000, 60), p=chances / chances.sum())
        at = np.repeat(np.arange(8000), 60), drawn.ravel()
        X, support = sp.csr_array((np.ones(drawn.size), at), shape=(8000, WORDS)), None
        X.sum_duplicates()
        support = random.permutation(400)[:PLANTED]
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    weights = np.zeros(WORDS)
    weights[support] = random.choice([-3.0, 3.0], PLANTED)
    scores = X @ weights
    y = scores - np.median(scores) + random.logistic(size=len(scores)) > 0.0
    return sp.csr_array(X), y, support


def recover():
    """Print how many of the columns that matter are found."""
    print("\n| rows | method | AUC | selected | recall | precision |\n|:--|:--|--:|--:|--:|--:|")
    small = {"`max_features=K`, 8 K kept": with_8_K}
    methods = METHODS | small | {label: pair[0] for label, pair in PUBLISHED.items()}
    for kind in ("normal", "words"):
        for label, learn in methods.items():
            found = []
            for run in range(SPLITS):
                X, y, support = planted(kind, run)
                end = X.shape[0] * 4 // 5
                weights = learn(X[:end], y[:end], PLANTED, 0.2 if label in PUBLISHED else run)
                chosen = np.flatnonzero(weights)
                hits = np.isin(chosen, support).sum()
                part = auc(X[end:], y[end:], weights), chosen.size
                found.append([*part, hits / PLANTED, hits / max(chosen.size, 1)])
            cells = np.mean(found, axis=0)
            print(
                f"| {kind} | {label} | {cells[0]:.3f} | {cells[1]:.0f} | {cells[2]:.2f} | {cells[3]:.2f} |"
            )


def stream(rows, seed):
    """Return rows of 60 hashed words, of which 200 frequent ones tell the classes apart."""
    random = np.random.RandomState(seed)
    y = random.randint(0, 2, rows)
    words = (random.pareto(0.25, (rows, 60)) * 100).clip(max=1e15).astype(np.int64)
    words[:, :6] = 2 * random.randint(0, 100, (rows, 6)) + (
        y[:, None] ^ (random.rand(rows, 6) < 0.3)
    )
    hashed = (words.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) % np.uint64(
        COLUMNS
    )
    at = np.repeat(np.arange(rows), 60), hashed.astype(np.int64).ravel()
    X = sp.csr_array((np.ones(rows * 60), at), shape=(rows, COLUMNS))
    X.sum_duplicates()
    return normalize(X), y


def very_wide():
    """Print speed and memory on a stream of 10^8 hashed columns, each learner in a process of its own."""
    print(
        "\n| learner | rows | rows a second | memory, MiB | progressive AUC |\n|:--|--:|--:|--:|--:|",
        flush=True,
    )
    for learn in (by_few_features, by_vowpal_wabbit):
        process = multiprocessing.get_context("spawn").Process(target=learn)
        process.start()
        process.join()


def tell(name, rows, speed, auc):
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {name} | {rows:,} | {speed:,.0f} | {memory:,.0f} | {auc:.3f} |", flush=True)


def by_few_features():
    learned, spent = ranker(10_000, C=C), 0.0
    for chunk in range(50):
        X, y = stream(CHUNK, chunk)
        begin = time.perf_counter()
        learned.partial_fit(X, y)
        spent += time.perf_counter() - begin if chunk else 0.0
        if chunk + 1 in (2, 5, 10, 20, 50):
            speed = CHUNK * chunk / spent
            tell("`max_features=10_000`", CHUNK * (chunk + 1), speed, learned.recent_auc_)


def by_vowpal_wabbit():
    """Learn the same rows by Vowpal Wabbit; they are parsed before the clock starts."""
    try:
        import vowpalwabbit  # noqa: PLC0415
    except ImportError:
        print("\nVowpal Wabbit is not installed: pip install vowpalwabbit", file=sys.stderr)
        return
    options = f"--loss_function logistic -b {COLUMNS.bit_length()} --quiet"
    workspace, spent = vowpalwabbit.Workspace(options), 0.0
    for chunk in range(10):
        X, y = stream(CHUNK, chunk)
        examples = []
        for row, label in enumerate(y):
            cells = slice(X.indptr[row], X.indptr[row + 1])
            numbers = zip(X.indices[cells], X.data[cells], strict=True)
            text = " ".join(f"{index}:{value:.9g}" for index, value in numbers)
            examples.append(workspace.parse(f"{2 * label - 1} | {text}"))
        begin = time.perf_counter()
        for example in examples:
            workspace.learn(example)
        spent += time.perf_counter() - begin if chunk else 0.0
        said = [example.get_simplelabel_prediction() for example in examples]
        for example in examples:
            workspace.finish_example(example)
        if chunk + 1 in (2, 10):
            auc = roc_auc_score(y[-1000:], said[-1000:])
            tell("Vowpal Wabbit", CHUNK * (chunk + 1), CHUNK * chunk / spent, auc)


PARTS: dict[str, Callable[[], None]] = {
    f"A stream of {COLUMNS:,} hashed columns, K = 10,000, C = {C}:": very_wide,
    "Text:": partial(compare, TEXT, FEATURES),
    "Dense sets and 1,000 columns of noise:": partial(compare, DENSE, FEW),
    f"What is kept beside the K features, C = {C}:": trials,
    "Planted support, 20 of 10,000 columns:": recover,
}


def main():
    asked = [int(number) for number in sys.argv[1:]]  # some of the tables
    for number, (title, part) in enumerate(PARTS.items()):
        if number in asked or not asked:
            print(f"\n**{title}**", flush=True)
            part()
    print(f"\ncbrank {cbrank.__version__}, NumPy {np.__version__}.")


if __name__ == "__main__":
    sys.exit(main())
