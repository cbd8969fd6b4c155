"""
Which rows to label next
========================

Labels are expensive. If someone can label ten more rows, which ten? Those about which the ranker is most
uncertain, and some others at random.
"""

# %%
# A rare class, and few labels
# ----------------------------
# Segments of images of seven kinds, of which the first is the positive class; here the pool keeps about one in a hundred.
# Twenty rows are labelled to begin with, three of them positive.

import matplotlib.pyplot as plt
import numpy as np

from cbrank import CBRanker, uncertainty
from cbrank.datasets import load

X, kinds, _ = load("segment", labels="original")
y = (kinds == 1).astype(int)


def split(seed):
    """Return a pool in which one in a hundred is positive, and rows to measure on."""
    order = np.random.RandomState(seed).permutation(len(y))
    pool, test = order[:1600], order[1600:]
    negative = pool[y[pool] == 0]
    return np.append(pool[y[pool] == 1][: 3 + len(negative) // 100], negative), test


# %%
# Ten at a time
# -------------
# :func:`~cbrank.uncertainty.most_uncertain` returns the rows whose scores are the fewest standard
# deviations away from even odds. Half of each ten are such rows; the other half are random, so that the
# ranker does not see rows of one kind only.


def learn(seed, uncertain):
    """Label ten rows at a time, `uncertain` of them the most uncertain; return AUCs and positives."""
    random = np.random.RandomState(seed)
    pool, test = split(seed)
    start = np.append(pool[:3], pool[-17:])
    pool = np.setdiff1d(pool, start)
    ranker = CBRanker(random_state=seed).fit(X[start], y[start])
    aucs, found = [ranker.score(X[test], y[test])], [ranker.n_seen_[1]]
    for _ in range(18):
        first = (
            pool[uncertainty.most_uncertain(ranker, X[pool], uncertain)] if uncertain else pool[:0]
        )
        others = random.permutation(np.setdiff1d(pool, first))[: 10 - uncertain]
        chosen = np.append(first, others)
        ranker.partial_fit(X[chosen], y[chosen])
        pool = np.setdiff1d(pool, chosen)
        aucs.append(ranker.score(X[test], y[test]))
        found.append(ranker.n_seen_[1])
    return aucs, found


# %%
# Averaged over ten pools: with half of the labels chosen so, rare rows are found sooner, and the ranking is
# better sooner.

labels = np.arange(20, 201, 10)
figure, (left, right) = plt.subplots(1, 2)
for uncertain, name in [(0, "random"), (5, "half uncertain"), (10, "all uncertain")]:
    aucs, found = np.mean([learn(seed, uncertain) for seed in range(10)], axis=0)
    left.plot(labels, aucs, label=name)
    right.plot(labels, found, label=name)
    print(f"{name}: AUC {aucs[-1]:.3f} with 200 labels, {found[-1]:.1f} of them positive")
left.set(title="The ranking", xlabel="labels", ylabel="AUC on other rows")
right.set(title="Rare rows found", xlabel="labels", ylabel="positive rows labelled")
left.legend(loc="lower right")
plt.show()

# %%
# Where no class is rare the gain is small, and on noisy data there is none; labelling only the most uncertain
# rows can even do harm. :doc:`/confidence` has the measurements.
