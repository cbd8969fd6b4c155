"""
Leaving uncertain decisions to people
=====================================

A model need not decide about every row. Where it is most uncertain, a person can.
"""

# %%
# How certain is a decision?
# --------------------------
# ``predict`` calls a row positive if its score is above zero.
# :func:`~cbrank.uncertainty.standardized_margin` is the distance of a score from zero, in standard
# deviations of the score.

import matplotlib.pyplot as plt
import numpy as np

from cbrank import CBRanker, uncertainty
from cbrank.datasets import load

X, y, facts = load("diabetes")


def decide(seed):
    """Learn from half of the rows; return which others are decided right, and how certainly."""
    random = np.random.RandomState(seed)
    order = random.permutation(len(y))
    train, test = order[:384], order[384:]
    ranker = CBRanker(random_state=seed).fit(X[train], y[train])
    scores, deviations = ranker.decision_function(X[test], return_std=True)
    margins = uncertainty.standardized_margin(ranker, X[test])
    ways = {
        "distance / deviation": margins,
        "distance alone": margins * deviations,
        "deviation alone": -deviations,
        "random": random.random_sample(len(test)),
    }
    return ranker.predict(X[test]) == y[test], ways, scores, deviations


# %%
# Keep the most certain
# ---------------------
# Sort the decisions by how certain they are and leave the last ones to people. The more are left to
# them, the more often the others are right.

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
left.set(title="Decisions that are kept", xlabel="share left to people", ylabel="accuracy")
left.legend(loc="upper left")

right, ways, scores, deviations = decide(0)
asked = ways["distance / deviation"] < np.quantile(ways["distance / deviation"], 0.2)
panel.scatter(scores[~asked], deviations[~asked], 8, label="decided")
panel.scatter(scores[asked], deviations[asked], 8, label="left to people")
panel.axvline(0.0, color="0.3", linewidth=1, linestyle="--")
panel.set(title="Which decisions are left", xlabel="score", ylabel="its standard deviation")
panel.legend()
plt.show()

# %%
# It is the distance that does the work. Dividing by the deviation gives it a unit, but hardly changes which
# rows are left: near zero, all deviations are similar. :doc:`/confidence` measures the same on
# larger data.
