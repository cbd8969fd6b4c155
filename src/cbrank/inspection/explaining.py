"""What moves the scores of rows most."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.features.table import Table
from cbrank.rankers.reasons import Reason, largest
from cbrank.training.model import Model

_SparseRow = tuple[NDArray[Any], NDArray[np.float64]]  # features and their values


def rows_at(X: Any, places: Any) -> Any:
    """Return some rows of a chunk, which is a table or an array."""
    return X.take(places) if isinstance(X, Table) else X[places]


class Reasons:
    """What moves the scores of rows most, away from the average.

    Of a linear model a feature adds its weight times its value, scaled as the model scales it, and a
    typical row has the mean of the buffered rows, the classes weighed as they have come.

    Parameters
    ----------
    model : Model
        The model.
    most : int
        How many columns to name for each row.
    """

    def __init__(self, model: Model, most: int) -> None:
        self._model, self._most = model, most
        if model.takes_tables():
            return
        labels, rows = model.ranker.buffered_rows()
        shares = (model.ranker.n_seen_ / np.maximum(1, np.bincount(labels, minlength=2)))[labels]
        self._weights = np.array(model.ranker.weights())
        self._typical = np.zeros(len(self._weights))
        if len(labels):
            self._typical[:] = np.asarray(shares @ rows).ravel() / shares.sum()
        # what rows lack, by how much it matters
        absent = np.flatnonzero(self._weights * self._typical)
        sizes = np.abs(self._weights * self._typical)[absent]
        self._absent = absent[np.argsort(-sizes, kind="stable")]

    def of(self, X: Any) -> list[list[Reason]]:
        """Return the reasons of rows, the largest first.

        Parameters
        ----------
        X : Table, ndarray or csr_array of shape (n_samples, n_features)
            Rows of a stream that reads with the model's columns.

        Returns
        -------
        list of list of Reason
            For each row.
        """
        if self._model.takes_tables():
            ranker: Any = self._model.ranker
            named: list[list[Reason]] = ranker.reasons(X, self._most)
            return named
        values, scaled = _sparse_rows(X), _sparse_rows(self._model.scaled(X))
        return [*map(self._of_row, values, scaled)]

    def _of_row(self, values: _SparseRow, scaled: _SparseRow) -> list[Reason]:
        there = np.union1d(values[0], scaled[0]).astype(np.int64)
        there = there[there < len(self._weights)]
        features = np.union1d(there, self._absent[: len(there) + self._most])
        own, taken = _at(values, features), _at(scaled, features)
        added = self._weights[features] * (taken - self._typical[features])
        return [
            Reason(*self._named(int(features[at]), float(own[at])), float(added[at]))
            for at in largest(added, self._most)
        ]

    def _named(self, feature: int, value: float) -> tuple[str, float | bool]:
        columns = self._model.columns
        category = columns.numeric_ is not None and feature >= len(columns.numeric_)
        return columns.feature_name(feature), bool(value) if category else value


def _sparse_rows(X: Any) -> list[_SparseRow]:
    X = sp.csr_array(X)
    ends = X.indptr[1:-1]
    return [*zip(np.split(X.indices, ends), np.split(X.data, ends), strict=True)]


def _at(row: _SparseRow, features: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return some values of a row, by features in ascending order."""
    known = np.isin(row[0], features)
    found = np.zeros(len(features))
    found[np.searchsorted(features, row[0][known])] = row[1][known]
    return found
