"""
In a River pipeline
===================

`River <https://riverml.xyz>`_ learns from streams of dictionaries.
:class:`cbrank.river.RankingClassifier` makes a River classifier of any ranker, for pipelines and for
River's own progressive validation, in which each row is first predicted and then learned from. It comes
with ``pip install 'cbrank[river]'``.
"""

# %%
# Beside logistic regression
# --------------------------
# ``svmguide3`` has 1,284 rows, a quarter of them positive. Both rankers get raw columns, River's logistic
# regression gets columns that River has standardised. River's ``ROCAUC`` uses evenly spaced thresholds of
# the probability, ten by default; with more of them it is closer to the exact AUC, also where positives are
# rare and probabilities small.

import matplotlib.pyplot as plt
import numpy as np
from river import evaluate, linear_model, metrics, preprocessing, stream

from cbrank import CBRanker, OAMRanker
from cbrank.datasets import load
from cbrank.river import RankingClassifier

X, y, _ = load("svmguide3")
order = np.random.RandomState(0).permutation(len(y))
rows = list(stream.iter_array(X[order], y[order] == y.max()))

models = {
    "CBR": RankingClassifier(CBRanker()),
    "OAM": RankingClassifier(OAMRanker(random_state=0)),
    "logistic regression, standardised": preprocessing.StandardScaler()
    | linear_model.LogisticRegression(),
}
curves, probabilities = {}, {}
for name, model in models.items():
    auc = metrics.ROCAUC(n_thresholds=100)
    steps = evaluate.iter_progressive_val_score(rows, model, auc, step=1, yield_predictions=True)
    found = [(step["ROCAUC"].get(), step["Prediction"][True]) for step in steps]
    curves[name], probabilities[name] = map(list, zip(*found, strict=True))
    print(f"{name}: {auc}")

# %%
# Are the probabilities calibrated?
# ---------------------------------
# A ranking score is not a probability. The classifier makes one by a curve that rises with the score,
# learned within the pass from scores that rows had before they were learned from, and by the trend of its
# latest errors. On the right, rows are in ten groups of equal size by the probability that was predicted
# *before* they were learned from; if it is calibrated, the share of positives in a group is the mean
# probability.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for name, curve in curves.items():
    left.plot(np.arange(100, len(curve)), curve[100:], label=name)
    groups = np.array_split(np.argsort(probabilities[name], kind="stable"), 10)
    predicted = [np.mean([probabilities[name][i] for i in group]) for group in groups]
    true = [np.mean([rows[i][1] for i in group]) for group in groups]
    right.plot(predicted, true, marker="o", markersize=4, label=name)
left.set(
    xlabel="rows",
    ylabel="AUC of all predictions so far",
    title="Progressive validation",
)
left.legend()
right.axline((0, 0), slope=1, color="grey", linewidth=0.8, zorder=0)
right.set(
    xlabel="probability predicted",
    ylabel="share of positives",
    title="Ten groups of rows",
)
plt.show()

# %%
# Features that come and go
# -------------------------
# A feature gets a column when it first appears, and is zero where it is missing, so that words need
# no vocabulary beforehand. With a diagonal covariance the cost of a row is that of its features.

words = RankingClassifier(CBRanker(covariance="diagonal"))
for text, spam in [
    ("cheap pills now", True),
    ("lunch now ?", False),
    ("cheap flights", True),
    ("see you at lunch", False),
]:
    words.learn_one(dict.fromkeys(text.split(), 1.0), spam)
print(words.feature_names_)
print(words.predict_proba_one({"cheap": 1.0, "lunch": 1.0, "unheard-of": 1.0}))

# %%
# The ranker itself
# -----------------
# ``ranker_`` is a copy of the ranker as it is now. It can be saved by :func:`cbrank.save`, and it has what
# River has no attribute for: the standard deviation of each weight.

ranker = words.ranker_
deviations = np.sqrt(ranker.covariance_)
for name, weight, deviation in zip(words.feature_names_, ranker.coef_[0], deviations, strict=True):
    print(f"{name:8s} {weight:+.3f} ± {deviation:.3f}")
