"""
A stream that changes
=====================

What was learned last year may be wrong today. ``forgetting`` discounts old evidence.
"""

# %%
# A ranker that has become too certain
# ------------------------------------
# The more rows :class:`~cbrank.CBRanker` has seen, the less one more moves it. That is right while the
# stream stays as it is. Here it does not: half-way through four passes over 800 loans, the two labels are
# swapped, as if lenders had begun to like what they used to fear.

import matplotlib.pyplot as plt
import numpy as np

from cbrank import CBRanker
from cbrank.datasets import load

X, y, facts = load("german")
order = np.concatenate([np.random.RandomState(seed).permutation(800) for seed in range(4)])
rows, test = X[:800][order], X[800:]
labels = np.where(np.arange(3200) < 1600, y[:800][order], 1 - y[:800][order])

# %%
# Forget a little with every row
# ------------------------------
# ``forgetting=0.003`` forgets a share of 0.003 of the evidence with every row: a memory of about 330
# rows. The covariance grows back towards the prior, so that the mean is easier to move, and the average over
# the stream follows. With "auto", the default, one learner forgets, and weighs more where it ranks new
# rows better.

figure, (left, right) = plt.subplots(1, 2)
for forgetting in (0.0, 0.001, 0.01, "auto"):
    ranker, aucs, spread = CBRanker(forgetting=forgetting, random_state=0), [], []
    for begin in range(0, 3200, 40):
        part = slice(begin, begin + 40)
        ranker.partial_fit(rows[part], labels[part])
        truth = y[800:] if begin < 1600 else 1 - y[800:]
        aucs.append(ranker.score(test, truth))
        spread.append(ranker.decision_function(test, return_std=True)[1].mean())
    left.plot(np.arange(40, 3201, 40), aucs, label=str(forgetting))
    right.plot(np.arange(40, 3201, 40), spread, label=str(forgetting))
    before, after, end = aucs[39], aucs[49], aucs[-1]
    print(
        f"{forgetting}: AUC {before:.3f} before, {after:.3f} 400 rows after, {end:.3f} at the end"
    )
left.set(title="Ranking of rows not learned from", xlabel="rows", ylabel="AUC")
right.set(title="Uncertainty of scores", xlabel="rows", ylabel="standard deviation", yscale="log")
left.legend(title="forgetting", loc="lower left")
plt.show()

# %%
# The price is a noisier model where nothing changes; :doc:`/confidence` measures it, and what is gained
# on streams that do change, and :doc:`/streams` shows real ones. ``recent_auc_`` beside
# ``progressive_auc_`` says whether a stream has changed, and ``progressive_auc_history_`` when.
