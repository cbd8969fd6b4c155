"""
What the ranker goes by
=======================

Every weight has a standard deviation: which columns matter, and of which is the ranker sure?
"""

# %%
# Weights that compare
# --------------------
# Columns come as they are, so weights are in the units of their columns.
# :func:`~cbrank.uncertainty.plot_weights` draws them per standard deviation of the column among the rows
# that the ranker has buffered, the largest effect on top. A bar that crosses zero is a weight whose sign
# is not sure.

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
# After fifty rows skin comes first. After all of them it does not count: glucose and mass do, the only
# ones whose bars are well clear of zero, and people with diabetes have more of both. Weights have become
# smaller too; only their order and their size beside their deviations mean something.
#
# What a bar is not
# -----------------
# The deviation is the ranker's own, under its own update rule: it shrinks with every pair that moves
# the model and depends on ``C`` and ``eta``. It says how firmly a weight is held. It is no confidence
# interval of statistics, and columns that go together share a weight between them.
#
# The command line draws the same of a model file: ``cbrank inspect MODEL --picture weights.svg``.
