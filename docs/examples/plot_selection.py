"""
Few features of many
====================

A ranker that chooses its features while it learns, and what is proved of a stream that was learned.
"""

# %%
# Useful columns among noise
# --------------------------
# The 19 columns of segment, standardised, and 1,000 columns of noise. With ``max_features=K`` a ranker serves K
# weights at the most; ``get_support`` says which.

import matplotlib.pyplot as plt
import numpy as np

from cbrank import CBRanker
from cbrank.certificates import certificate
from cbrank.datasets import load

X, y, facts = load("segment")
random = np.random.RandomState(0)
order = random.permutation(len(y))
X, y = ((X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9))[order], y[order]
noisy = np.hstack([X, random.randn(len(y), 1000)])
train, test = slice(0, 1500), slice(1500, None)

every = CBRanker(covariance="diagonal", random_state=0).fit(noisy[train], y[train])
counts, aucs, useful = [5, 10, 20, 50, 200], [], []
for K in counts:
    ranker = CBRanker(covariance="diagonal", max_features=K, random_state=0)
    ranker.fit(noisy[train], y[train])
    aucs.append(ranker.score(noisy[test], y[test]))
    useful.append(int(ranker.get_support()[:19].sum()))

figure, (left, right) = plt.subplots(1, 2)
left.semilogx(counts, aucs, marker="o")
left.axhline(every.score(noisy[test], y[test]), linestyle="--", color="grey")
left.set(xlabel="features", ylabel="AUC", title="AUC (dashed: all 1,019)")
right.loglog(counts, counts, linestyle="--", color="grey")
right.loglog(counts, useful, marker="o")
right.set(xlabel="features", ylabel="of them no noise", title="Useful columns")
plt.show()
print(
    f"best with {counts[int(np.argmax(aucs))]} features: {max(aucs):.3f}, with all {every.score(noisy[test], y[test]):.3f}"
)

# %%
# Where there is noise, few features rank better than all.
#
# What a stream has lost
# ----------------------
# :func:`~cbrank.certificates.certificate` learns a stream pair by pair. The loss is exactly the reference's, here that of batch logistic
# regression, plus three positive terms, less what remains; without the last it is a bound.

rows = [50, 100, 200, 400]
found = [certificate(X[:n], y[:n], C=0.03) for n in rows]
figure, axes = plt.subplots()
axes.plot(rows, [each.bound for each in found], marker="o", label="bound")
axes.plot(rows, [each.loss for each in found], marker="o", label="loss")
axes.plot(rows, [each.reference_loss for each in found], marker="o", label="of it the reference")
axes.set(xlabel="rows", ylabel="cumulative loss", title="Segment, C = 0.03")
axes.legend()
plt.show()
print(f"after {rows[-1]} rows: loss {found[-1].loss:.1f}, bound {found[-1].bound:.1f}")
