"""Learning on a Dask cluster: each partition by a ranker of its own, all merged in a tree.

* ``ranker``: `DaskRanker`, the estimator
* ``tasks``: what workers run, from learning a partition to the merge tree
* ``blocks``, ``files``: partitions in memory and on disk
* ``cluster``: the client, its progress bar, and what workers report to it
"""

try:
    import distributed as _distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"learning on a cluster needs {error.name}: pip install 'cbrank[dask]'.", name=error.name
    ) from error

from cbrank.dask.files import Files
from cbrank.dask.ranker import DaskRanker

__all__ = ["DaskRanker", "Files"]
