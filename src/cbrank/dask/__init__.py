"""Learning on a Dask cluster: each partition by a ranker of its own, all merged in a tree.

* ``ranker``: `DaskCBRanker`
* ``blocks``, ``files``: partitions in memory and on disk
* ``learning``: what workers do with one partition; ``tree``: how what they learned is merged
* ``scoring``: scores, when they are asked for
* ``choosing``: the C of all partitions, where it is "auto"
* ``compiling``: once on each machine; ``following``: the progress bar; ``connecting``: the client
"""

try:
    import distributed as _distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"learning on a cluster needs {error.name}: pip install 'cbrank[dask]'.", name=error.name
    ) from error

from cbrank.dask.files import Files
from cbrank.dask.ranker import DaskCBRanker

__all__ = ["DaskCBRanker", "Files"]
