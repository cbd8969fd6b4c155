"""The tasks of these measurements: where a set has several classes, one of them against the rest.

The paper groups the classes of some of these sets in another way (docs/labels.md); figures of it
are those of the study alone.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank import datasets

CLASSES = {"covtype": 2, "segment": 1, "svmguide4": -1, "vehicle": 4}


def load(name: str) -> tuple[Any, NDArray[np.int64]]:
    """Return the rows of a data set, and 1 or 0 for each.

    Examples
    --------
    >>> X, y = load("vehicle")
    >>> X.shape, int(y.sum())
    ((846, 18), 199)
    """
    if name in CLASSES:
        X, classes, _ = datasets.load(name, labels="original")
        return X, (classes == CLASSES[name]).astype(np.int64)
    X, y, _ = datasets.load(name)
    return X, y
