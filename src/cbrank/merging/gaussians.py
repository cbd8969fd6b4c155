"""The product of Gaussians that began with one prior, which is counted once.

With precisions L = inverse(Sigma), those of the prior L0 and mu0,

    L = L0 + sum (Lk - L0),    L mu = L0 mu0 + sum (Lk muk - L0 mu0).

All of it is done in weights divided by powers of two near the least deviation that any model gives
them: that costs no rounding, and neither a precision of 1e300 nor its sums overflow.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank.kernels import covariances
from cbrank.kernels.confidence import ROWS, FullModel, SparseModel, averaged_mean, boost_after

Floats = NDArray[np.float64]

_TINY = np.finfo(np.float64).tiny


def merged(models: Sequence[Any], priors: Sequence[Any], prior: Any) -> Any:
    """Return the model of all rows that each model learned from after its own of `priors`."""
    unit = _units([prior, *models])
    precision, tally = _precision(prior, unit), prior.tally.copy()
    mean = average = shift = _times(precision, prior.mu / unit)
    before, last = precision.copy(), prior
    for model, begun in zip(models, priors, strict=True):
        if begun is not last:
            before, last = _precision(begun, unit), begun
            shift = _times(before, begun.mu / unit)
        own = _at_least(before, _precision(model, unit))
        precision += own - before
        mean = mean + _times(own, model.mu / unit) - shift
        average = average + _times(own, _average_since(model, begun) / unit) - shift
        tally += model.tally - begun.tally
        del own  # as large as a model, like those to come
    del before, shift
    covariance = _inverse(precision)
    del precision
    mu, since = unit * _times(covariance, mean), unit * _times(covariance, average)
    del mean, average
    return _model(prior, mu, since, _in_units(covariance, unit), tally)


def tempered(model: Any, prior: Any, shards: int) -> Any:
    """Return a model whose mean is moved less far from the prior's, as sure as it was.

    Of `shards` equal moves this leaves, where they tell little that is new, sqrt(shards).
    """
    unit = _units([prior, model])
    own, before = _precision(model, unit), _precision(prior, unit)
    slower = _inverse(own + (math.sqrt(shards) - 1.0) * before)
    mu, since = (
        prior.mu + unit * _times(slower, _times(own, (moved - prior.mu) / unit))
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
        features = np.zeros_like(prior.features)
        features[:, 0], features[:, 1], features[:, 2] = mu, covariance, lag
        return SparseModel(features, tally)
    confidence = covariance if isinstance(prior, FullModel) else 1.0 / covariance
    return type(prior)(mu, confidence, lag, tally)


def _share_left(prior: Any, rows: int) -> float:
    """Return the weight that the prior's average still has in the average after so many rows."""
    return boost_after(prior.tally[ROWS]) / boost_after(rows) if rows else 1.0


def _average_since(model: Any, prior: Any) -> Floats:
    """Return the average of the means since the prior."""
    share = _share_left(prior, model.tally[ROWS])
    if share == 1.0:
        return model.mu  # type: ignore[no-any-return]
    return (averaged_mean(model) - share * averaged_mean(prior)) / (1.0 - share)


def variances(model: Any) -> Floats:
    """Return the variances of a model's weights; in a diagonal 0 stands for what is very small."""
    if isinstance(model, FullModel):
        return np.diag(model.Sigma)
    return np.maximum(model.variances, _TINY)  # type: ignore[no-any-return]


def _units(models: Sequence[Any]) -> Floats:
    return covariances.scales(np.minimum.reduce([variances(model) for model in models]))


def _precision(model: Any, unit: Floats) -> Floats:
    """Return the precision of the weights divided by their units."""
    if isinstance(model, FullModel):
        scale, inverse = covariances.inverse(model.Sigma)
        return _in_units(inverse, unit / scale)
    if isinstance(model, SparseModel):
        return unit / variances(model) * unit
    return np.minimum(model.G, 1.0 / _TINY) * unit * unit  # type: ignore[no-any-return]


def _times(matrix: Floats, vector: Floats) -> Floats:
    return matrix @ vector if matrix.ndim == 2 else matrix * vector


def _inverse(matrix: Floats) -> Floats:
    """Return the inverse of a positive matrix, symmetric to the bit, or of a diagonal."""
    if matrix.ndim == 1:
        return 1.0 / matrix
    scale, inverse = covariances.inverse(matrix)
    return _in_units(inverse, 1.0 / scale)


def _in_units(matrix: Floats, unit: Floats) -> Floats:
    """Return a covariance, or a diagonal, of weights times their units; no variance gets lost."""
    if matrix.ndim == 1:
        return np.maximum(matrix * unit * unit, _TINY)
    whole = matrix * unit
    whole *= unit[:, None]
    np.fill_diagonal(whole, np.maximum(np.diag(whole), _TINY))
    return whole


def _at_least(prior: Floats, precision: Floats) -> Floats:
    """Return a precision whose diagonal is at least the prior's, since learning only adds to it.

    Kernels keep variances above a least one, which those of a merged prior may be below.
    """
    if precision.ndim == 1:
        return np.maximum(prior, precision)
    np.fill_diagonal(precision, np.maximum(np.diag(prior), np.diag(precision)))
    return precision
