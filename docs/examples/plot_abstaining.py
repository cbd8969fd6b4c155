"""
Leaving the unsure ones to people
=================================

A model need not decide about every row. Where it is least sure, a person can.
"""

# %%
# How sure is a decision?
# -----------------------
# ``predict`` calls a row positive from ``threshold_`` on. :func:`~cbrank.uncertainty.standardized_margin` says by
# how many of its own standard deviations a score is off that threshold.

import matplotlib.pyplot as plt
import numpy as np

from cbrank import CBRanker, uncertainty
from cbrank.datasets import load

X, y, facts = load("diabetes")


def decide(seed):
    """Learn from half of the rows; return which of the others are called right, and how surely."""
    random = np.random.RandomState(seed)
    order = random.permutation(len(y))
    train, test = order[:384], order[384:]
    ranker = CBRanker(random_state=seed).fit(X[train], y[train])
    scores, deviations = ranker.decision_function(X[test], return_std=True)
    sure = uncertainty.standardized_margin(ranker, X[test])
    ways = {
        "distance / deviation": sure,
        "distance alone": sure * deviations,
        "deviation alone": -deviations,
        "random": random.random_sample(len(test)),
    }
    return ranker.predict(X[test]) == y[test], ways, scores, deviations, ranker.threshold_


# %%
# Keep the surest
# ---------------
# Sort the decisions by how sure they are and keep the surest. What is kept is right more often, the
# more so the more is left to people.

shares = np.linspace(0.0, 0.6, 13)
accuracy = {}
for seed in range(20):
    right, ways, *_ = decide(seed)
    for name, values in ways.items():
        order = np.argsort(-values)
        rates = [right[order[: round((1 - share) * len(order))]].mean() for share in shares]
        accuracy.setdefault(name, []).append(rates)

figure, (left, panel) = plt.subplots(1, 2)
for name, rates in accuracy.items():
    left.plot(shares, np.mean(rates, axis=0), label=name)
    print(f"{name}: {np.mean(rates, axis=0)[4]:.3f} right with a fifth left out")
left.set(title="Right among what is kept", xlabel="share left to people", ylabel="accuracy")
left.legend(loc="upper left")

right, ways, scores, deviations, threshold = decide(0)
asked = ways["distance / deviation"] < np.quantile(ways["distance / deviation"], 0.2)
panel.scatter(scores[~asked], deviations[~asked], 8, label="decided")
panel.scatter(scores[asked], deviations[asked], 8, label="left to people")
panel.axvline(threshold, color="0.3", linewidth=1, linestyle="--")
panel.set(title="Which are left", xlabel="score", ylabel="its standard deviation")
panel.legend()
plt.show()

# %%
# The distance does the work. Dividing by the deviation turns it into a number with a meaning, but hardly
# changes which rows are left: near the threshold, deviations are much alike. :doc:`/confidence` measures
# the same on larger data.
