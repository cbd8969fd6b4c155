"""Load data sets as arrays."""

import sys
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cbrank.datasets.checks import check
from cbrank.datasets.convert import read_svmlight
from cbrank.datasets.entry import Grouping, Sample
from cbrank.datasets.fetching import fetch
from cbrank.datasets.registry import info
from cbrank.datasets.store import Found, Origin, find

Labels = Literal["paper", "original"]


@dataclass(frozen=True)
class Facts:
    """What was loaded, and from where.

    Parameters
    ----------
    name : str
        The data set.
    rows, features, positives : int
        Its counts; positive as in the paper's task.
    grouping : {"source", "inferred", "chosen"}
        Who says which classes are positive; see `DataSet`.
    source : {"embedded", "CBRANK_DATA", "cache", "download"}
        Where it was found.
    sample : bool
        Whether these are only some of the rows of the data set.
    note : str
        Remarks, such as why counts differ from the paper's.

    Examples
    --------
    >>> from cbrank import datasets
    >>> datasets.load("diabetes").facts.positives
    268
    """

    name: str
    rows: int
    features: int
    positives: int
    grouping: Grouping
    source: Origin
    sample: bool
    note: str


class Loaded(NamedTuple):
    """A data set.

    Parameters
    ----------
    X : ndarray or csr_array of float64
        The features as at the source, not scaled; dense for a benchmark set.
    y : ndarray of int64
        1 for a positive row, 0 for a negative one; or the classes of the source.
    facts : Facts
        Counts and origin.

    Examples
    --------
    >>> from cbrank import datasets
    >>> X, y, facts = datasets.load("german")
    >>> X.shape, facts.source
    ((1000, 24), 'embedded')
    """

    X: NDArray[np.float64] | csr_array
    y: NDArray[np.int64]
    facts: Facts


def load(name: str, *, labels: Labels = "paper") -> Loaded:
    """Load a data set of the paper.

    It is taken from the files embedded in the package, else from the folder that the
    environment variable ``CBRANK_DATA`` names, else from the cache, else from its public
    address. Where only a sample is on this machine, the sample is loaded, and `facts`
    says so; `fetch` downloads the whole. Counts are checked on every load.

    Parameters
    ----------
    name : str
        One of `names`.
    labels : {"paper", "original"}, default="paper"
        "paper" gives 1 and 0 as in the paper's task. The paper does not say how it groups more
        than two classes; ``info(name).grouping`` says where the grouping comes from. "original"
        gives the classes of the source, as they are numbered there. LIBSVM's binary version of
        covtype, for instance, has the task ``load("covtype", labels="original").y == 2``.

    Returns
    -------
    Loaded
        ``X, y, facts``.

    Raises
    ------
    ValueError
        If there is no such data set, `labels` is neither of these, or the file does not hold what
        it must.
    DownloadError
        If it is not on this machine and cannot be downloaded.

    Examples
    --------
    >>> from cbrank import datasets
    >>> X, y, facts = datasets.load("glass")
    >>> X.shape, int(y.sum()), facts.grouping
    ((214, 9), 70, 'inferred')
    >>> np.unique(datasets.load("glass", labels="original").y)
    array([1, 2, 3, 5, 6, 7])
    """
    if labels not in get_args(Labels):
        raise ValueError(f"labels must be one of {get_args(Labels)}, got {labels!r}.")
    entry = info(name)
    found = find(entry) or Found(fetch(name, progress=sys.stderr.isatty()), "download", entry)
    contents = found.contents
    X, read = read_svmlight(found.path, contents.features)
    classes, positive = check(entry, contents, X, read, str(found.path))
    facts = Facts(
        name=name,
        rows=X.shape[0],
        features=X.shape[1],
        positives=int(positive.sum()),
        grouping=contents.grouping,
        source=found.origin,
        sample=isinstance(contents, Sample),
        note=contents.note,
    )
    y = positive.astype(np.int64) if labels == "paper" else classes
    return Loaded(X.toarray() if entry.table == "benchmark" else X, y, facts)
