"""The rows of a run: which are taken, which are tested on, and how they are scaled."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.preprocessing import StandardScaler, normalize

from cbrank import datasets
from cbrank.study.settings import Scaling, Settings

Labels = NDArray[np.int64]

_FOLDS = 5  # the paper's


class Split(NamedTuple):
    """Rows to learn from, in stream order, and rows to test on."""

    X: Any
    y: Labels
    X_test: Any
    y_test: Labels
    facts: datasets.Facts


def split(dataset: str, run: int, scaling: Scaling, settings: Settings, fold: int = -1) -> Split:
    """Draw the rows of a run.

    The data set is permuted and divided into five folds. One is tested on, the four others are
    learned from, in the permuted order and at most as many rows of them as the table allows.
    `settings.cut` may say that all rows are cut to as many before they are divided.

    Parameters
    ----------
    dataset : str
        Its name.
    run : int
        Number of the run.
    scaling : {"unit", "standard", "none"}
        Rows of Euclidean norm 1; columns of mean 0 and deviation 1 over the training part
        (sparse columns keep their mean); or nothing.
    settings : Settings
        Seed, sizes and what they are sizes of.
    fold : int, default=-1
        The place of the fold that is tested on, by default the last.

    Returns
    -------
    Split
        The rows. Sparse columns that are empty in the training part are left out: every
        learner here starts from zero weights and would leave theirs there.

    Raises
    ------
    ValueError
        If a part lacks one of the classes.

    Examples
    --------
    >>> rows = split("glass", 0, "unit", Settings())
    >>> rows.X.shape, rows.X_test.shape
    ((172, 9), (42, 9))
    """
    X, y, facts = _load(dataset)
    order = np.random.RandomState(settings.run_seed(dataset, run)).permutation(len(y))
    most = settings.rows(datasets.info(dataset).table)
    train, test = _divided(order[:most] if settings.cut == "all" else order, fold)
    train = train[:most]
    for part, rows in {"training part": train, "test fold": test}.items():
        if len(np.unique(y[rows])) < 2:
            raise ValueError(f"the {part} of run {run} of {dataset} lacks one of the classes.")
    X_train, X_test = _occupied(*_scaled(X[train], X[test], scaling))
    return Split(X_train, y[train], X_test, y[test], facts)


def _divided(order: Labels, fold: int) -> tuple[Labels, Labels]:
    """Take a fold out of the rows; up to four that are left over are never tested on."""
    places = np.arange(len(order) - len(order) // _FOLDS * _FOLDS, len(order))
    test = np.split(places, _FOLDS)[fold]
    return np.delete(order, test), order[test]


@lru_cache(maxsize=2)
def _load(dataset: str) -> datasets.Loaded:
    return datasets.load(dataset)


def _scaled(X: Any, X_test: Any, scaling: Scaling) -> tuple[Any, Any]:
    if scaling == "unit":
        return normalize(X), normalize(X_test)
    if scaling == "standard":
        scaler = StandardScaler(with_mean=not issparse(X)).fit(X)
        return scaler.transform(X), scaler.transform(X_test)
    return X, X_test


def _occupied(X: Any, X_test: Any) -> tuple[Any, Any]:
    if not issparse(X):
        return X, X_test
    columns = np.unique(X.indices)
    return X[:, columns], X_test[:, columns]
