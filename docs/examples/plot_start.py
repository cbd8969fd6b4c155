r"""
Start here: five minutes
========================

One class is rare, and the ranking matters more than the label: which loans to look at first, which
clicks to distrust, which patient to call. `cbrank` learns such a ranking from a stream of labelled
rows, in one pass, from raw columns.

Install it from its folder with ``pip install .`` and follow along.
"""

# %%
# Rows and labels
# ---------------
# A thousand loans come with the package: 24 columns of very different scale, and 300 loans went bad.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cbrank

X, y, facts = cbrank.datasets.load("german")
print(f"{facts.rows} rows, {facts.positives} positive")
spread = X.std(axis=0)
print(f"standard deviations of the columns: {spread.min():.2f} to {spread.max():.1f}")

# %%
# Learn as rows come in
# ---------------------
# :class:`~cbrank.CBRanker` is a scikit-learn classifier. ``partial_fit`` takes a chunk of any size,
# and any split of a stream gives the same model. There is nothing to scale and nothing to tune.
# Here 800 loans come in chunks of 20.

ranker = cbrank.CBRanker(random_state=0)
rows, progressive, unseen = [], [], []
for begin in range(0, 800, 20):
    ranker.partial_fit(X[begin : begin + 20], y[begin : begin + 20])
    rows.append(begin + 20)
    progressive.append(ranker.progressive_auc_)
    unseen.append(ranker.score(X[800:], y[800:]))

print(f"AUC among the last 200 loans: {unseen[-1]:.3f}")

# %%
# ``score`` is the AUC: how often a bad loan stands above a good one. ``progressive_auc_`` needs no
# rows set aside: it is the AUC of the loans themselves, ranked *before* they were learned from, by the
# weights at the beginning of their block of rows. It is noisy until there are enough blocks, and stays a
# little lower, as it counts the first loans too, when little was known.

scores, deviations = ranker.decision_function(X[800:], return_std=True)

figure, (left, right) = plt.subplots(1, 2, width_ratios=[1.1, 1])
left.plot(rows, unseen, label="on the last 200 loans")
left.plot(rows, progressive, label="progressive")
left.set(title="The ranking gets better", xlabel="loans learned from", ylabel="AUC", xlim=(0, 800))
left.legend(loc="lower right")

bins = np.linspace(scores.min(), scores.max(), 24)
for label, name in enumerate(["good loans", "bad loans"]):
    right.hist(scores[y[800:] == label], bins, alpha=0.75, label=name)
right.axvline(0, color="0.3", linewidth=1, linestyle="--", label="predicted bad from here")
right.set(title="Bad loans stand higher", xlabel="score of a loan not learned from", ylabel="loans")
right.legend()
plt.show()

# %%
# ``predict`` calls rows positive whose score is above zero: where the true less the false positive rate is
# largest (``operating_point="accuracy"`` calls fewer loans bad). ``predict_proba`` is the probability that a
# loan is bad, learned from the scores that loans had before they were learned from.

probabilities = ranker.predict_proba(X[800:])[:, 1]
for low, high in [(0.0, 0.2), (0.2, 0.5), (0.5, 1.0)]:
    some = (probabilities >= low) & (probabilities < high)
    print(f"{some.sum():3} loans from {low} to {high}: {y[800:][some].mean():.2f} of them bad")

# %%
#
# How certain is it?
# ------------------
# The ranker is a Gaussian distribution of the weights, so each score has a standard deviation, and any two
# rows have a probability that the first belongs above the second.

top, middle, bottom = np.argsort(-scores)[[0, 100, 199]]
for first, second in [(top, bottom), (top, middle), (middle, bottom)]:
    probability = ranker.preference_proba(
        X[800 + first : 801 + first], X[800 + second : 801 + second]
    )[0]
    print(
        f"{scores[first]:6.2f} ± {deviations[first]:.2f} above "
        f"{scores[second]:6.2f} ± {deviations[second]:.2f}: {probability:.3f}"
    )

# %%
# Save it, and go on tomorrow
# ---------------------------
# A model file holds all that is needed to go on learning, and is safe to open (:doc:`/files`).

path = Path(tempfile.mkdtemp(), "loans.cbrank")
cbrank.save(ranker, path)
ranker = cbrank.load(path).partial_fit(X[800:], y[800:])
print(f"{ranker.n_seen_.sum()} loans seen, the learner with C = {ranker.C_:g} weighs most")

# %%
# The same on the command line, for files of any size (:doc:`/command_line`):
#
# .. code-block:: sh
#
#    cbrank train loans.csv --label bad -o loans.model
#    cbrank score loans.model new.csv
#
# Where next
# ----------
# * :doc:`plot_choosing`: which covariance, buffer and C, if not the defaults.
# * :doc:`plot_csv`: a rare class in a CSV file, with costs.
# * :doc:`plot_text`: streams of text.
# * :doc:`plot_algorithm`: what happens inside, in pictures.
