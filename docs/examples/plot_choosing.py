r"""
Choosing covariance, buffer and C
=================================

``CBRanker()`` is meant to be used with its defaults. This page shows what the parameters do, on four data
sets that come with the package, so that you know when to change them:

.. list-table::
   :header-rows: 1
   :widths: 2 3

   * - if
     - then
   * - nothing is known
     - ``CBRanker()``: full covariance, a mixture of learners with several C
   * - there are over 2,000 columns, or rows are sparse
     - ``covariance="diagonal"``, and rows of unit length
   * - time is short
     - ``buffer_size=10``, and a number for C, such as ``2**-4``
   * - the stream drifts
     - ``policy="fifo"``, the default: the buffer holds the latest rows
   * - rows come sorted
     - ``policy="reservoir"``: the buffer holds a uniform sample of all rows so far
   * - columns vary by far less than 1
     - leave C at "auto", or scale them; see the end of this page

Every point below is the AUC on a fifth of the rows after one pass over the others, the mean of five
random splits. The columns are raw.
"""

import functools
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cbrank import CBRanker
from cbrank.datasets import load

SETS = ["glass", "german", "diabetes", "svmguide3"]
DATA = {name: load(name) for name in SETS}
SPLITS = ShuffleSplit(5, test_size=0.2, random_state=0)


def mean_auc(ranker, X, y):
    return np.mean([ranker.fit(X[a], y[a]).score(X[b], y[b]) for a, b in SPLITS.split(X)])


@functools.cache
def auc(name, **parameters):
    X, y, _ = DATA[name]
    return mean_auc(CBRanker(random_state=0, **parameters), X, y)


# %%
# C: how far one pair may move the weights
# ----------------------------------------
# Solid lines are fixed values of C. Dashed lines are ``C="auto"``: two learners, one with a small and one with a
# large C, share the pass and its buffers, and the ranking is their mixture, weighed by how they ranked rows before
# they learned from them. Over a wide range C hardly matters; too small a C learns too slowly, too large a C follows
# noise, and where the range lies depends on the data. A number for C saves the time of the second learner, and in a
# stream that of a third, which forgets.

Cs = 2.0 ** np.arange(-12, 5, 2)
figure, axes = plt.subplots(1, 4, figsize=(7.4, 2.7), sharex=True)
for panel, name in zip(axes, SETS, strict=True):
    panel.plot(Cs, [auc(name, C=C) for C in Cs], "o-", markersize=3.5)
    chosen = auc(name)
    panel.axhline(chosen, color="C1", linewidth=1.2, linestyle="--")
    panel.set(title=name, xscale="log", xlabel="C")
    panel.set_xticks([2**-12, 2**-4, 2**4], ["$2^{-12}$", "$2^{-4}$", "$2^{4}$"], minor=False)
    panel.minorticks_off()
    middle = np.mean(panel.get_ylim())
    panel.set_ylim(middle - 0.045, middle + 0.045)
    print(f"{name}: auto {chosen:.3f}")
axes[0].set_ylabel("AUC")
axes[0].text(2**-12, auc("glass") + 0.002, "auto", color="C1")
plt.show()

# %%
# Buffer: with how many rows of the other class a new row is paired
# -----------------------------------------------------------------
# More buffered rows give more pairs for each new row, and take time in proportion. Ten are nearly enough,
# and on long streams fifty are no better than ten.

sizes = [1, 2, 5, 10, 20, 50, 100]
figure, (left, right) = plt.subplots(1, 2)
seconds = np.zeros(len(sizes))
for name in SETS:
    found = []
    for place, size in enumerate(sizes):
        began = perf_counter()
        found.append(auc(name, C=2**-4, buffer_size=size))
        seconds[place] += perf_counter() - began
    left.plot(sizes, np.array(found) - found[-1], "o-", markersize=3.5, label=name)
left.set(title="AUC, minus that with 100", xlabel="buffered rows of each class", xscale="log")
left.set_xticks(sizes, sizes)
left.minorticks_off()
left.legend(loc="lower right")
right.bar(range(len(sizes)), seconds, width=0.6)
right.set(title="Time of these fits", xlabel="buffered rows of each class", ylabel="seconds")
right.set_xticks(range(len(sizes)), sizes)
plt.show()

# %%
# Covariance: full or diagonal
# ----------------------------
# The full covariance holds the correlations of the weights, so that it learns the scale of the columns and
# their correlations; it takes d x d numbers. The diagonal keeps one variance per column. On raw columns the
# full covariance is ahead on all four sets, as it scales columns too; for text with tens of thousands of columns
# only the diagonal fits in memory (:doc:`plot_text`). How time grows with the number of columns is measured
# in :doc:`/speed`.

figure, panel = plt.subplots(figsize=(7, 2.4))
for place, name in enumerate(SETS):
    full, diagonal = auc(name), auc(name, covariance="diagonal")
    panel.plot([diagonal, full], [place, place], color="0.8", linewidth=3, zorder=1)
    panel.scatter(diagonal, place, color="C1", label="diagonal" if not place else None)
    panel.scatter(full, place, color="C0", label="full" if not place else None)
    print(f"{name}: full {full:.3f}, diagonal {diagonal:.3f}")
panel.set_yticks(range(len(SETS)), SETS)
panel.set(title="AUC by covariance", xlabel="AUC", ylim=(-0.6, 3.6))
panel.grid(visible=False, axis="y")
panel.legend(loc="lower left", ncols=2)
plt.show()

# %%
# eta: the confidence that a pair should have
# -------------------------------------------
# A pair updates the model unless it is ranked right with a probability of at least eta. The paper's 0.7 is a
# good value; near 1 the model shrinks its covariance at every pair, and becomes certain too soon.

etas = [0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]
figure, panel = plt.subplots(figsize=(7, 2.8))
for name in SETS:
    panel.plot(
        etas, [auc(name, C=2**-4, eta=eta) for eta in etas], "o-", markersize=3.5, label=name
    )
panel.set(title="AUC by eta", xlabel="eta", ylabel="AUC")
panel.legend(loc="lower left", ncols=2)
plt.show()

# %%
# Scaling: columns that hardly vary
# ---------------------------------
# With a number for C, weights have a prior standard deviation of 1 per unit of their column, as in the paper. A
# column that varies by far *more* than 1 is no problem, as the covariance shrinks to its scale. One that varies by
# far *less* would need a large weight, which is out of reach of many small steps. With ``C="auto"`` and a full
# covariance the prior follows the spread of each column, and its unit does not matter. Below, only the most
# informative column of german, its first, is multiplied by a factor. With a number for C, or a diagonal covariance,
# use a scaler: ``make_pipeline(StandardScaler(), CBRanker(1 / 16))``, or ``--scale standard`` on the command line.

X, y, _ = DATA["german"]
factors = 10.0 ** np.arange(-5, 4)
figure, panel = plt.subplots(figsize=(7, 3))
for C in ["auto", 1 / 16]:
    found = []
    for factor in factors:
        changed = X.copy()
        changed[:, 0] *= factor
        found.append(mean_auc(CBRanker(C, random_state=0), changed, y))
    panel.plot(factors, found, "o-", markersize=3.5, label=f"C = {C}")
    print(f"C = {C}: {found[0]:.3f} with a factor of {factors[0]:g}, {max(found):.3f} at best")
scaled = mean_auc(make_pipeline(StandardScaler(), CBRanker(1 / 16, random_state=0)), X, y)
panel.axhline(scaled, color="C2", linestyle="--", linewidth=1.2, label="C = 0.0625, scaled")
panel.set(title="One column in other units", xscale="log", ylabel="AUC")
panel.set_xlabel("factor of the first column of german")
panel.legend(loc="lower right")
plt.show()
