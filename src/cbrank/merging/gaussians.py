"""The product of Gaussians that began with one prior, which is counted once.

With precisions L = inverse(Sigma), those of the prior L0 and mu0,

    L = L0 + sum (Lk - L0),    L mu = L0 mu0 + sum (Lk muk - L0 mu0).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from cbrank.kernels.confidence import ROWS, FullModel, SparseModel, averaged_mean, boost_after

Floats = NDArray[np.float64]


def merged(models: Sequence[Any], prior: Any) -> Any:
    """Return the model of all rows that the models learned from after `prior`."""
    precision, tally = _precision(prior), prior.tally.copy()
    mean = average = shift = _times(precision, prior.mu)
    before = precision.copy()
    for model in models:
        own = _precision(model)
        precision += own - before
        mean = mean + _times(own, model.mu) - shift
        average = average + _times(own, _average_since(model, prior)) - shift
        tally += model.tally - prior.tally
    covariance = _inverse(precision)
    mu, since = _times(covariance, mean), _times(covariance, average)
    return _model(prior, mu, since, covariance, tally)


def tempered(model: Any, prior: Any, shards: int) -> Any:
    """Return a model whose mean is moved less far from the prior's, as sure as it was.

    Of `shards` equal moves this leaves, where they tell little that is new, sqrt(shards).
    """
    own, before = _precision(model), _precision(prior)
    slower = _inverse(own + (math.sqrt(shards) - 1.0) * before)
    mu, since = (
        prior.mu + _times(slower, _times(own, moved - prior.mu))
        for moved in (model.mu, _average_since(model, prior))
    )
    covariance = model.Sigma if isinstance(model, FullModel) else model.variances
    return _model(prior, mu, since, covariance.copy(), model.tally.copy())


def _model(prior: Any, mu: Floats, since: Floats, covariance: Floats, tally: Any) -> Any:
    """Return a model whose means since the prior average to `since`."""
    share = _share_left(prior, tally[ROWS])
    behind = share * averaged_mean(prior) + (1.0 - share) * since - mu
    lag = boost_after(tally[ROWS]) * behind
    if isinstance(prior, SparseModel):
        return SparseModel(np.column_stack([mu, covariance, lag, np.zeros_like(mu)]), tally)
    confidence = covariance if isinstance(prior, FullModel) else 1.0 / covariance
    return type(prior)(mu, confidence, lag, tally)


def _share_left(prior: Any, rows: int) -> float:
    """Return how much of the prior's average is left in an average after so many rows."""
    return boost_after(prior.tally[ROWS]) / boost_after(rows) if rows else 1.0


def _average_since(model: Any, prior: Any) -> Floats:
    """Return the average of the means since the prior."""
    share = _share_left(prior, model.tally[ROWS])
    if share == 1.0:
        return model.mu  # type: ignore[no-any-return]
    return (averaged_mean(model) - share * averaged_mean(prior)) / (1.0 - share)


def _precision(model: Any) -> Floats:
    return _inverse(model.Sigma) if isinstance(model, FullModel) else np.array(model.G)


def _times(matrix: Floats, vector: Floats) -> Floats:
    return matrix @ vector if matrix.ndim == 2 else matrix * vector


def _inverse(matrix: Floats) -> Floats:
    """Return the inverse of a positive matrix, symmetric to the bit, or of a diagonal.

    Where rounding has made the matrix indefinite, its diagonal is raised by as little as helps.
    """
    if matrix.ndim == 1:
        return 1.0 / matrix
    diagonal, raised = np.diag(np.diag(matrix)), 0.0
    factor, failed = lapack.dpotrf(matrix, lower=True)
    while failed:
        raised = 4.0 * raised or np.finfo(np.float64).eps
        factor, failed = lapack.dpotrf(matrix + raised * diagonal, lower=True)
    inverse, _ = lapack.dpotri(factor, lower=True)
    lower: Floats = np.tril(inverse)
    return lower + np.tril(lower, -1).T
