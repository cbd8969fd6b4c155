"""
Which columns matter
====================

Every weight has a standard deviation: which columns matter, and how certain is that?
"""

# %%
# Weights that can be compared
# ----------------------------
# Columns are raw, so weights are in the units of their columns.
# :func:`~cbrank.uncertainty.plot_weights` draws them per standard deviation of the column among the
# buffered rows, the largest effect on top. A bar that crosses zero is a weight whose sign is uncertain.

import matplotlib.pyplot as plt
import pandas as pd

from cbrank import CBRanker, uncertainty
from cbrank.datasets import load

X, y, facts = load("diabetes")
columns = ["pregnancies", "glucose", "pressure", "skin", "insulin", "mass", "pedigree", "age"]
frame = pd.DataFrame(X, columns=columns)

figure, axes = plt.subplots(1, 2)
for rows, panel in zip((50, 768), axes, strict=True):
    ranker = CBRanker(C=0.1, random_state=0).fit(frame[:rows], y[:rows])
    uncertainty.plot_weights(ranker, ax=panel)
    panel.set(title=f"after {rows} rows", xlabel="weight per standard deviation")
plt.show()

# %%
# After fifty rows skin comes first. After all of them it does not matter: glucose and mass do, the only
# ones whose bars are well clear of zero, and people with diabetes have more of both. Weights have become
# smaller too; only their order and their size relative to their deviations have a meaning.
#
# What a bar is not
# -----------------
# The deviation follows from the update rule: it shrinks with every update, and depends on ``C`` and
# ``eta``. It is not a standard error in the sense of statistics, and correlated columns share a weight
# between them.
#
# The command line draws the same picture of a model file: ``cbrank inspect MODEL --picture weights.svg``.
