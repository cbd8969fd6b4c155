"""Print certificates of the paper's sets, how AROW ranks, and what a buffer costs (docs/proofs.md).

    python docs/measure_certificates.py > docs/_certificates_table.md

Columns are standardised, rows of text have unit length; at most 600 rows of a set, of text 200. For buffers
6,000 rows of a stream are learned, and the last two thirds of them ranked before they are learned from.
"""

import itertools
import sys

import numpy as np
import one_class
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler, normalize

import cbrank
from cbrank import CBRanker, datasets
from cbrank.certificates import certificate

ROWS, OF_TEXT, C, R, SPLITS = 600, 200, 2.0**-5, 1.0, 5
CS, RS = 2.0 ** np.arange(-9, 4, 3), 10.0 ** np.arange(-1, 4)
SIZES, STREAM, TESTED, EVERY, SEEDS = (5, 10, 20, 50, 100, 200, 400), 6000, 4000, 10, 2


def some(name, run, rows):
    """Return some rows in random order, as dense ones."""
    X, y = one_class.load(name)
    order = np.random.RandomState(run).permutation(len(y))[:rows]
    X, y = X[order], y[order]
    if sp.issparse(X):
        X = normalize(X)
        return X[:, np.flatnonzero(np.diff(sp.csc_array(X).indptr))].toarray(), y
    return StandardScaler().fit_transform(X), y


def bounds(names):
    """Print what happened beside what is proved."""
    print(
        "| set | covariance | pairs | updates | loss | bound | of it the reference | remainder | misranked, AROW | updates, AROW | bound of misranked |"
    )
    print("|:--|:--|" + "--:|" * 9)
    for name in names:
        text = sp.issparse(one_class.load(name)[0])
        X, y = some(name, 0, OF_TEXT if text else ROWS)
        kind = "diagonal" if text else "full"
        found = certificate(X, y, C=C, covariance=kind)
        assert found.loss <= found.bound * (1 + 1e-9), name
        cells = f"{found.pairs:,} | {found.updates:,} | {found.loss:.2f} | {found.bound:.2f} | {found.reference_loss:.2f} | {found.remainder:.2f}"
        own = ["", "", "not covered"]
        if not text:
            arow = certificate(X, y, update="arow", r=R)
            assert arow.misranked <= arow.misranked_bound, name
            own = [f"{n:,.0f}" for n in (arow.misranked, arow.updates, arow.misranked_bound)]
        print(f"| {name} | {kind} | {cells} | {' | '.join(own)} |", flush=True)


def steps(names):
    """Print the AUC of the two steps, each with the best of its grid on a fourth of the training rows."""
    print("\n| set | SCW | AROW | difference |\n|:--|--:|--:|--:|")
    means = []
    for name in names:
        found = []
        for run in range(SPLITS):
            X, y = some(name, run, ROWS)
            end, inner = len(y) * 4 // 5, len(y) * 3 // 5
            for options in ([{"C": C} for C in CS], [{"update": "arow", "r": r} for r in RS]):
                tried = [auc_of(X, y, inner, slice(inner, end), each) for each in options]
                best = options[int(np.argmax(tried))]
                found.append(auc_of(X, y, end, slice(end, None), best))
        scw, arow = np.reshape(found, (SPLITS, 2)).mean(axis=0)
        means.append((scw, arow))
        print(f"| {name} | {scw:.4f} | {arow:.4f} | {arow - scw:+.4f} |", flush=True)
    (scw, arow), gaps = np.mean(means, axis=0), np.diff(means)[:, 0]
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    print(f"| mean | {scw:.4f} | {arow:.4f} | {arow - scw:+.4f} ± {error:.4f} |")


def auc_of(X, y, end, part, options):
    weights = certificate(X[:end], y[:end], np.ones(X.shape[1]), **options).weights
    return roc_auc_score(y[part], X[part] @ weights)


def gap(X, y, Xt, yt, size, policy, seed):
    """Return how much better a stream ranks a row against its buffer, before it learns, than fresh pairs."""
    learned = CBRanker(C=C, buffer_size=size, policy=policy, average=False, random_state=seed)
    in_buffer, fresh = [], []
    for begin, end in itertools.pairwise(range(0, len(y) + 1, EVERY)):
        if begin >= len(y) // 3:
            labels, rows = learned.buffered_rows()
            w = learned.coef_[0]
            against = rows[labels != y[begin]] @ w
            ahead = (2 * y[begin] - 1) * (X[begin] @ w - against)
            in_buffer.append(np.mean(ahead > 0) + 0.5 * np.mean(ahead == 0))
            if begin % (50 * EVERY) == 0:
                fresh.append(roc_auc_score(yt, Xt @ w))
        learned.partial_fit(X[begin:end], y[begin:end], classes=[0, 1])
    return np.mean(in_buffer), np.mean(fresh)


def buffers():
    """Print the gap by the size of the buffer."""
    print("\n| stream | buffer | | " + " | ".join(map(str, SIZES)) + " |")
    print("|:--|:--|:--|" + "--:|" * len(SIZES))
    for name, policy, shuffled in itertools.product(
        ("magic04", "spambase", "covtype"), ("fifo", "reservoir"), (True, False)
    ):
        if name != "covtype" and not shuffled:
            continue
        found = []
        for size, seed in itertools.product(SIZES, range(SEEDS)):
            X, y = one_class.load(name)
            random = np.random.RandomState(seed)
            if shuffled:
                order = random.permutation(len(y))
                learned, tested = order[:STREAM], order[STREAM:][:TESTED]
                learned = learned if len(order) > STREAM else order[: len(order) * 3 // 5]
                tested = order[len(learned) :][:TESTED]
            else:  # the lines of the file
                first = 20_000 + 10_000 * seed
                learned = np.arange(first, first + STREAM)
                tested = random.permutation(np.arange(first + STREAM, first + STREAM + TESTED))
            scaler = StandardScaler().fit(X[learned])
            rows, others = scaler.transform(X[learned]), scaler.transform(X[tested])
            found.append(gap(rows, y[learned], others, y[tested], size, policy, seed))
        inside, outside = np.reshape(found, (len(SIZES), SEEDS, 2)).mean(axis=1).T
        what = f"{name}, {'shuffled' if shuffled else 'lines of the file'} | {policy}"
        rate = (inside - outside)[0] * np.sqrt(SIZES[0] / np.array(SIZES))
        lines = {
            "AUC in the buffer": inside,
            "AUC of fresh rows": outside,
            "gap": inside - outside,
            "rate of the bound": rate,
        }
        for label, numbers in lines.items():
            print(
                f"| {what} | {label} | " + " | ".join(f"{number:.4f}" for number in numbers) + " |",
                flush=True,
            )


def main():
    names = [name for name in datasets.names() if name in datasets.available()]
    dense = [name for name in names if not sp.issparse(one_class.load(name)[0])]
    print(f"**Certificates**, C = {C}, r = {R:g}:\n")
    bounds(names)
    print("\n**How AROW ranks**, full covariance:")
    steps(dense)
    print(f"\n**What a buffer costs**, C = {C}:")
    buffers()
    print(f"\ncbrank {cbrank.__version__}, NumPy {np.__version__}.")


if __name__ == "__main__":
    sys.exit(main())
