"""Compare what a file holds with the counts of the registry."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cbrank.datasets.entry import Contents, DataSet, Sample
from cbrank.datasets.labels import positive_rows

_LARGEST_LABEL = 2**31


def check(
    entry: DataSet, contents: Contents, X: csr_array, labels: NDArray[np.float64], where: str
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Check all counts; return the labels as integers and which rows are positive.

    Raises
    ------
    ValueError
        If a count differs; the message names the file, what was expected and what was found.
    """
    _compare(entry.name, where, "rows", contents.rows, X.shape[0])
    if not isinstance(contents, Sample):
        _compare(
            entry.name, where, "features", contents.features, int(X.indices.max(initial=-1)) + 1
        )
    if (np.abs(labels) > _LARGEST_LABEL).any() or (labels != np.rint(labels)).any():
        raise ValueError(f"{where}: expected labels that are whole numbers.")
    whole = labels.astype(np.int64)
    _compare(entry.name, where, "classes", contents.classes, len(np.unique(whole)))
    positive = positive_rows(whole, contents.positive, entry.name)
    if contents.positives is not None:
        _compare(entry.name, where, "positive rows", contents.positives, int(positive.sum()))
    return whole, positive


def _compare(name: str, where: str, what: str, expected: int, found: int) -> None:
    if found != expected:
        raise ValueError(f"{where}: expected {expected} {what} for {name}, found {found}.")
