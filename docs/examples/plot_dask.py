"""
Learning on a Dask cluster
==========================

:class:`~cbrank.dask.DaskRanker` learns from every partition of a Dask array, data frame or list of
files on the worker that holds it, and merges the rankers of all partitions in a tree. Here a small
cluster runs in this process; ``Client("tcp://10.0.0.1:8786")`` would use a large one. It comes with
``pip install 'cbrank[dask]'``.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client

from cbrank import CBRanker
from cbrank.dask import DaskRanker
from cbrank.datasets import load

client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0")

# %%
# Rows and labels are Dask collections. The ranker inside, a :class:`~cbrank.CBRanker`, has the
# parameters of learning. With C "auto" all partitions have the same learners, and those with the same C are merged.

X, y, facts = load("german")
train, test = slice(0, 800), slice(800, None)
rows, labels = da.from_array(X[train], chunks=(200, -1)), da.from_array(y[train], chunks=200)
ranker = DaskRanker(CBRanker(random_state=0), client=client).fit(rows, labels)
auc = ranker.to_local().score(X[test], y[test])
print(f"{ranker.n_seen_.sum()} rows, AUC {auc:.3f}")

# %%
# Scores are lazy, in the chunks of the rows. ``to_local()`` gives a plain ranker, which can go on
# learning, be saved, and give standard deviations of its scores.

scores = ranker.decision_function(da.from_array(X[test], chunks=(100, -1)))
print(scores)
print(f"The highest is {client.compute(scores.max()).result():.3f}.")
local = ranker.to_local().partial_fit(X[test], y[test])

# %%
# The weights merged of four partitions have the direction of those of a pass over all rows: here are both,
# with their standard deviations. Their length differs, which does not change a ranking.
# :doc:`/merging` measures what merging costs on larger data.

one = CBRanker(random_state=0).fit(X[train], y[train])
alike = np.corrcoef(one.coef_[0], ranker.coef_[0])[0, 1]
print(f"AUC of one pass {one.score(X[test], y[test]):.3f}; correlation of the weights {alike:.2f}")

fig, ax = plt.subplots(figsize=(6, 5))
deviations = [np.sqrt(np.diag(found.covariance_)) for found in (ranker, one)]
ax.errorbar(one.coef_[0], ranker.coef_[0], *deviations, fmt="o", markersize=4, linewidth=0.7)
ax.set(xlabel="weight in one pass", ylabel="weight merged of four partitions", title="german")
plt.show()

# %%
client.close()
