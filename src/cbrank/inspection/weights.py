"""Weights with their confidence, largest effect first."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.rankers.base import Ranker

_BLOCK = 2**16  # weights that are looked at together


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

    def joined(self, others: "Weights") -> "Weights":
        """Return them and some others of the same ranker."""
        parts = zip(self, others, strict=True)
        return Weights(*(None if one is None else np.concatenate([one, two]) for one, two in parts))  # type: ignore[arg-type]

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


def by_effect(ranker: Ranker, count: int | None = None) -> Weights:
    """Return a ranker's weights, largest effect first.

    Features that do not vary among the buffered rows come after the others: those whose weight
    is the surest of its sign first, or the largest weights if the ranker keeps no deviations.

    Parameters
    ----------
    ranker : ranker
        One that has learned.
    count : int, optional
        How many to return; else all. Few of very many take little memory.

    Returns
    -------
    Weights
        The weights.

    Examples
    --------
    >>> from cbrank import CBRanker
    >>> ranker = CBRanker().partial_fit([[0.0, 10.0], [1.0, 30.0]], [0, 1])
    >>> by_effect(ranker).features
    array([1, 0])
    >>> by_effect(ranker, 1).features
    array([1])
    """
    width = ranker.n_features_in_
    count = width if count is None else count
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        varying, spread = _spread(ranker.buffered_rows()[1])
        deviations, step = _deviations(ranker), max(_BLOCK, count)
        found = None
        for begin in range(0, width, step):
            columns = slice(begin, begin + step)
            weights = np.array(ranker.weights(columns))
            first, last = np.searchsorted(varying, (columns.start, columns.stop))
            effects = np.zeros(len(weights))
            effects[varying[first:last] - begin] = spread[first:last]
            more = Weights(
                np.arange(begin, begin + len(weights)),
                weights,
                None if deviations is None else deviations[columns],
                np.abs(weights) * effects,
            )
            found = _sorted(more if found is None else found.joined(more)).first(count)
    assert found is not None
    return found


def _sorted(found: Weights) -> Weights:
    sizes = np.abs(found.weights)
    surest = sizes if found.deviations is None else sizes / found.deviations
    return found.at(np.lexsort((-surest, -found.effects)))


def _deviations(ranker: Ranker) -> NDArray[np.float64] | None:
    covariance = getattr(ranker, "covariance_", None)
    if covariance is None:
        return None
    variances = covariance.diagonal() if covariance.ndim == 2 else covariance
    return np.sqrt(variances)  # type: ignore[no-any-return]


def _spread(X: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return features in ascending order, all others being zero, and their standard deviations."""
    if not X.shape[0]:
        return np.zeros(0, np.int64), np.zeros(0)
    if not sp.issparse(X):
        return np.arange(X.shape[1]), np.std(X, axis=0)
    features, places = np.unique(X.indices, return_inverse=True)
    mean = np.bincount(places, X.data, len(features)) / X.shape[0]
    squares = np.bincount(places, X.data**2, len(features)) / X.shape[0]
    return features.astype(np.int64), np.sqrt(np.maximum(squares - mean**2, 0.0))
