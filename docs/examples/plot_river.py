"""
In a River pipeline
===================

`River <https://riverml.xyz>`_ learns from streams of dictionaries.
:class:`cbrank.river.RankingClassifier` makes a River classifier of any ranker, so that it takes its
place in pipelines and is measured by River's own progressive validation: each row is first
predicted, then learned from. It comes with ``pip install 'cbrank[river]'``.
"""

# %%
# Beside logistic regression
# --------------------------
# ``svmguide3`` has 1,284 rows, a quarter of them positive. Its columns
# come as they are to both rankers, and standardised by River to its logistic
# regression. River's ``ROCAUC`` looks at evenly spaced thresholds of the probability, ten unless
# told otherwise; more of them show the ranking as it is, also where positives are rare and
# probabilities small.

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
# What the probabilities are worth
# --------------------------------
# A ranking score is no probability. The classifier makes one by Platt's method: a logistic curve
# through the scores of the rows that the ranker has in its buffers, at the class shares of the
# stream. On the right, rows are put into ten groups of equal size by the probability that was
# predicted *before* they were learned from; in an honest group the share of positives is what was
# said.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for name, curve in curves.items():
    left.plot(np.arange(100, len(curve)), curve[100:], label=name)
    groups = np.array_split(np.argsort(probabilities[name], kind="stable"), 10)
    said = [np.mean([probabilities[name][i] for i in group]) for group in groups]
    true = [np.mean([rows[i][1] for i in group]) for group in groups]
    right.plot(said, true, marker="o", markersize=4, label=name)
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
# A feature gets its column when it first appears and is zero where it is missing, so words need
# no dictionary beforehand. With a diagonal covariance a row costs what it has in it.

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
# ``ranker_`` is a copy of what has been learned, to be saved by :func:`cbrank.save`, or asked for
# what River has no word for: how sure it is of each weight.

ranker = words.ranker_
deviations = np.sqrt(ranker.covariance_)
for name, weight, deviation in zip(words.feature_names_, ranker.coef_[0], deviations, strict=True):
    print(f"{name:8s} {weight:+.3f} ± {deviation:.3f}")
