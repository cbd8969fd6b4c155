"""Real data for the tests."""

import functools
import os
from pathlib import Path

import numpy as np
import one_class
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler, normalize

from cbrank import datasets

SCALINGS = {
    "standard": lambda X: StandardScaler().fit_transform(X),
    "unit": normalize,
    "none": np.ascontiguousarray,
}


LABELS = {
    "adult": "income",
    "telco": "Churn",
    "hypothyroid": "status",
    "sms-spam": "class",
    "elec": "class",
    "weather": "target",
}


@functools.lru_cache(maxsize=8)
def loaded(name):
    """Rows, and whether each is positive: of several classes, one against the rest."""
    return one_class.load(name)


def real(name, rows=None, scaling="none"):
    """Rows of a data set in a fixed random order; a test skips where the set is not here."""
    if name not in datasets.available():
        skip(f"data set {name} is not embedded, and CBRANK_DATA does not name a folder with it")
    X, y = loaded(name)
    order = np.random.RandomState(0).permutation(len(y))[:rows]
    return SCALINGS[scaling](X[order]), y[order]


def real_table(name):
    """A table as pandas reads it, and its labels; a test skips where the table is not here."""
    path = Path(os.environ.get("CBRANK_DATA", "none"), "tables", f"{name}.csv.xz")
    if not path.exists():
        skip(f"CBRANK_DATA does not name a folder with tables/{path.name}")
    rows = pd.read_csv(path)
    return rows, rows.pop(LABELS[name])


def skip(reason):
    """Skip a test for want of data, unless all data have to be there."""
    if os.environ.get("CBRANK_DATA_REQUIRED"):
        pytest.fail(reason)
    pytest.skip(reason)
