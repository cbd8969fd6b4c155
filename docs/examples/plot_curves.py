"""
Curves with bands
=================

:class:`~cbrank.AdditiveRanker` learns a curve for each column of numbers, in one pass. The covariance of its
weights gives a band around every curve.
"""

# %%
# All curves at once
# ------------------
# :class:`~cbrank.inspection.CurvesDisplay` draws what moves scores most, that first. A curve says what
# a value adds to the score, relative to the median of the column.

import matplotlib.pyplot as plt
import pandas as pd

from cbrank import AdditiveRanker
from cbrank.datasets import load
from cbrank.inspection import CurvesDisplay

X, y, facts = load("diabetes")
columns = ["pregnancies", "glucose", "pressure", "skin", "insulin", "mass", "pedigree", "age"]
frame = pd.DataFrame(X, columns=columns)

ranker = AdditiveRanker(random_state=0).fit(frame, y)
CurvesDisplay.from_estimator(ranker, columns=["glucose", "mass", "age"])
plt.show()

# %%
# More glucose and more mass, more diabetes. Age rises until about 45 and then stays level, but by less than the
# band is wide: these rows do not settle it.
#
# More rows, narrower bands
# -------------------------

figure, axes = plt.subplots(1, 2, sharey=True)
for rows, panel in zip((100, 768), axes, strict=True):
    some = AdditiveRanker(C=0.01, random_state=0).fit(frame[:rows], y[:rows])
    grid, effect, deviation = some.curve("glucose")
    panel.fill_between(grid, effect - 1.96 * deviation, effect + 1.96 * deviation, alpha=0.25)
    panel.plot(grid, effect)
    panel.set(title=f"after {rows} rows", xlabel="glucose")
plt.show()

# %%
# What a band is not
# ------------------
# The deviation follows from the update rule, as that of every weight. On the two sets where it was measured,
# bands are wider than refits on other samples of the rows would have them: see :doc:`/confidence`.
#
# The command line draws the same of a model file: ``cbrank inspect MODEL --picture curves.svg``.
