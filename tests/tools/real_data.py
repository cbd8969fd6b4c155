"""Real data for the tests."""

import functools
import os

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler, normalize

from cbrank import datasets

SCALINGS = {
    "standard": lambda X: StandardScaler().fit_transform(X),
    "unit": normalize,
    "none": np.ascontiguousarray,
}


@functools.lru_cache(maxsize=8)
def loaded(name):
    """Rows and labels as they come; nobody writes into them."""
    X, y, _ = datasets.load(name)
    return X, y


def real(name, rows=None, scaling="none"):
    """Rows of a data set in a fixed random order; a test skips where the set is not here."""
    if name not in datasets.available():
        reason = f"data set {name} is not embedded, and CBRANK_DATA does not name a folder with it"
        if os.environ.get("CBRANK_DATA_REQUIRED"):
            pytest.fail(reason)
        pytest.skip(reason)
    X, y = loaded(name)
    order = np.random.RandomState(0).permutation(len(y))[:rows]
    return SCALINGS[scaling](X[order]), y[order]
