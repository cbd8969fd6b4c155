"""Weights with their confidence, largest effect first."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.rankers._base import Ranker


class Weights(NamedTuple):
    """The weights of a ranker, in some order.

    Attributes
    ----------
    features : ndarray of int
        The numbers of the features.
    weights : ndarray of float
        Their weights.
    deviations : ndarray of float or None
        The standard deviations of the weights; None if the ranker keeps none.
    effects : ndarray of float
        How far each feature moves scores: the weight's size times the feature's standard
        deviation among the buffered rows.
    """

    features: NDArray[np.int64]
    weights: NDArray[np.float64]
    deviations: NDArray[np.float64] | None
    effects: NDArray[np.float64]

    def at(self, places: Any) -> "Weights":
        """Return some of them, by an index or a slice."""
        return Weights(*(None if array is None else array[places] for array in self))  # type: ignore[arg-type]

    def first(self, count: int) -> "Weights":
        """Return the first few of them."""
        return self.at(slice(count))

    def standardised(self) -> "Weights":
        """Return them per standard deviation of the feature, so that they compare."""
        spread = np.divide(
            self.effects,
            np.abs(self.weights),
            out=np.zeros_like(self.effects),
            where=self.weights != 0,
        )
        deviations = None if self.deviations is None else self.deviations * spread
        return self._replace(weights=self.weights * spread, deviations=deviations)


def by_effect(ranker: Ranker) -> Weights:
    """Return a ranker's weights, largest effect first.

    Features that do not vary among the buffered rows come after the others: those whose weight
    is the surest of its sign first, or the largest weights if the ranker keeps no deviations.

    Parameters
    ----------
    ranker : ranker
        One that has learned.

    Returns
    -------
    Weights
        All weights.

    Examples
    --------
    >>> from cbrank import CBRanker
    >>> ranker = CBRanker().partial_fit([[0.0, 10.0], [1.0, 30.0]], [0, 1])
    >>> by_effect(ranker).features
    array([1, 0])
    """
    weights, deviations = ranker.coef_[0], _deviations(ranker)
    effects = np.abs(weights) * _spread(ranker._buffered_rows()[1])
    surest = np.abs(weights) if deviations is None else np.abs(weights) / deviations
    order = np.lexsort((-surest, -effects))
    return Weights(np.arange(len(weights)), weights, deviations, effects).at(order)


def _deviations(ranker: Ranker) -> NDArray[np.float64] | None:
    covariance = getattr(ranker, "covariance_", None)
    if covariance is None:
        return None
    variances = covariance.diagonal() if covariance.ndim == 2 else covariance
    return np.sqrt(variances)  # type: ignore[no-any-return]


def _spread(X: Any) -> NDArray[np.float64]:
    if not X.shape[0]:
        return np.zeros(X.shape[1])
    if not sp.issparse(X):
        return np.std(X, axis=0)  # type: ignore[no-any-return]
    mean = np.asarray(X.mean(axis=0)).ravel()
    squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
    return np.sqrt(np.maximum(squares - mean**2, 0.0))  # type: ignore[no-any-return]
