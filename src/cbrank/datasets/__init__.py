"""The paper's data sets, and a reader for any other in svmlight form.

Nothing here is heavy to import. The environment variable ``CBRANK_DATA`` names a folder with
files such as ``covtype.svm.xz``; ``CBRANK_CACHE`` names the folder for downloads.
"""

from cbrank.datasets.download import DownloadError
from cbrank.datasets.entry import DataSet, Part, Sample
from cbrank.datasets.fetching import fetch
from cbrank.datasets.loading import Facts, Loaded, load
from cbrank.datasets.registry import info, names
from cbrank.datasets.store import available
from cbrank.streams.svmlight import read_svmlight_chunks

__all__ = [
    "DataSet",
    "DownloadError",
    "Facts",
    "Loaded",
    "Part",
    "Sample",
    "available",
    "fetch",
    "info",
    "load",
    "names",
    "read_svmlight_chunks",
]
