"""
Learning on a Dask cluster
==========================

:class:`~cbrank.dask.DaskCBRanker` learns from every partition of a Dask array, data frame or list
of files on the worker that holds it, and merges what was learned in a tree. Here a small cluster
lives in this process; ``Client("tcp://10.0.0.1:8786")`` would use a large one. It comes with
``pip install 'cbrank[dask]'``.
"""

import dask.array as da
import matplotlib.pyplot as plt
from dask.distributed import Client
from sklearn.model_selection import train_test_split

from cbrank import CBRanker
from cbrank.dask import DaskCBRanker
from cbrank.datasets import load

client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0")

# %%
# Rows and labels are Dask collections. The ranker has the parameters of
# :class:`~cbrank.CBRanker`; a C that is not given is chosen once, for all partitions.

X, y, facts = load("svmguide3")
X, X_test, y, y_test = train_test_split(X, y, train_size=1000, random_state=0)
rows, labels = da.from_array(X, chunks=(250, -1)), da.from_array(y, chunks=250)
ranker = DaskCBRanker(random_state=0, client=client).fit(rows, labels)
print(
    f"{ranker.n_seen_.sum()} rows, C {ranker.C_:g}, AUC {ranker.to_local().score(X_test, y_test):.3f}"
)

# %%
# Scores are lazy, in the chunks of the rows, and ``to_local()`` is a plain ranker that goes on
# learning, can be saved, and knows how sure it is.

scores = ranker.decision_function(da.from_array(X_test, chunks=(100, -1)))
print(scores)
print(client.compute(scores.max()).result().round(3))
local = ranker.to_local().partial_fit(X_test[:100], y_test[:100])

# %%
# How much is lost when no learner sees all rows? The same rows in more and more partitions, against
# one pass over them, learned from once and in three rounds, each from the merged ranker of the one
# before.


def auc(partitions, rounds):
    size = -(-len(X) // partitions)
    apart = da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size)
    fitted = DaskCBRanker(ranker.C_, rounds=rounds, random_state=0, client=client).fit(*apart)
    return fitted.to_local().score(X_test, y_test)


one_pass = CBRanker(ranker.C_, random_state=0).fit(X, y).score(X_test, y_test)
partitions = [1, 2, 4, 8, 16, 32]
fig, ax = plt.subplots(figsize=(7, 4))
for rounds in (1, 3):
    aucs = [auc(count, rounds) for count in partitions]
    ax.plot(partitions, aucs, marker="o", label=f"{rounds} round{'s' if rounds > 1 else ''}")
ax.axhline(one_pass, color="gray", linestyle="--", label="one pass over all rows")
ax.set_xscale("log", base=2)
ax.set_xticks(partitions, labels=partitions)
ax.set(xlabel="partitions", ylabel="AUC", title=f"svmguide3, {len(X):,} rows")
ax.legend()
fig.tight_layout()
plt.show()

# %%
client.close()
