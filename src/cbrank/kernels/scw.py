"""Soft confidence-weighted learning, SCW-I (Wang et al. 2012).

CBR's step with a single row x in the place of the pair z = x - b: what CBR would be without pairs.
The diagonal form is the diagonal of the full update, as ``diagonal_update="drop"`` of CBR.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import allocating_jit, jit, kernel
from cbrank.kernels.buffers import row_weight, store, store_sparse
from cbrank.kernels.confidence import is_rounding, scw_step, shrink
from cbrank.kernels.prequential import foretell, foretell_row, foretell_sparse
from cbrank.kernels.vectors import dot, multiply

_EPSILON = np.finfo(np.float64).eps


class FullModel(NamedTuple):
    """A Gaussian over weights with full covariance."""

    mu: np.ndarray  # (d,)
    Sigma: np.ndarray  # (d, d)


class DiagonalModel(NamedTuple):
    """A Gaussian over weights with one variance per feature."""

    mu: np.ndarray
    sigma: np.ndarray  # (d,) the diagonal of Sigma


class Parameters(NamedTuple):
    """Hyper-parameters, as the kernels take them."""

    C: float
    phi: float
    balanced: bool


@allocating_jit
def _full_row(x, sign, C, phi, model, s):
    """Update the ranker with one row, if that violates its confidence constraint."""
    mu, Sigma = model.mu, model.Sigma
    multiply(Sigma, x, s)
    variance = dot(s, x)
    alpha, beta = scw_step(sign * dot(mu, x), variance, C, phi)
    if alpha > 0.0 and not is_rounding(variance, x, dot(x, x), np.diag(Sigma)):
        for i in range(mu.size):
            mu[i] += sign * alpha * s[i]
        shrink(Sigma, s, math.sqrt(beta), 1.0 - beta * variance)


@kernel
def learn_full(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the rows `order` of `X`, in that order, with full covariance."""
    s = np.empty(X.shape[1])
    at = 0
    for row in order:
        if weights[row] > 0.0:
            x, label = X[row], labels[row]
            # The step does not need these rows: they are kept to place the threshold, and counted.
            foretell(trail, at, x, label, model.mu, buffer)
            store(buffer, label, x, False)
            at += 1
            C = parameters.C * row_weight(buffer, label, weights[row], parameters.balanced)
            _full_row(x, 2.0 * label - 1.0, C, parameters.phi, model, s)


@jit
def _smaller(sigma, x, beta):
    """Return the variance of a feature after an update, kept above zero whatever the rounding."""
    return sigma * max(1.0 - beta * sigma * x * x, _EPSILON)


@jit
def _diagonal_row(x, sign, C, phi, model):
    mu, sigma = model.mu, model.sigma
    margin, variance = 0.0, 0.0
    for i in range(mu.size):
        margin += mu[i] * x[i]
        variance += sigma[i] * x[i] * x[i]
    alpha, beta = scw_step(sign * margin, variance, C, phi)
    if alpha > 0.0:
        for i in range(mu.size):
            mu[i] += sign * alpha * sigma[i] * x[i]
            sigma[i] = _smaller(sigma[i], x[i], beta)


@jit
def _diagonal_row_sparse(indices, values, sign, C, phi, model):
    mu, sigma = model.mu, model.sigma
    margin, variance = 0.0, 0.0
    for k in range(indices.size):
        i = indices[k]
        margin += mu[i] * values[k]
        variance += sigma[i] * values[k] * values[k]
    alpha, beta = scw_step(sign * margin, variance, C, phi)
    if alpha > 0.0:
        for k in range(indices.size):
            i = indices[k]
            mu[i] += sign * alpha * sigma[i] * values[k]
            sigma[i] = _smaller(sigma[i], values[k], beta)


@kernel
def learn_diagonal(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the rows `order` of `X`, in that order, with diagonal covariance."""
    at = 0
    for row in order:
        if weights[row] > 0.0:
            x, label = X[row], labels[row]
            foretell_row(trail, at, x, label, model.mu)
            store(buffer, label, x, False)
            at += 1
            C = parameters.C * row_weight(buffer, label, weights[row], parameters.balanced)
            _diagonal_row(x, 2.0 * label - 1.0, C, parameters.phi, model)


@kernel
def learn_diagonal_sparse(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the sparse rows `order` of `X`, in that order, with diagonal covariance."""
    at = 0
    for row in order:
        if weights[row] > 0.0:
            label, begin, end = labels[row], X.indptr[row], X.indptr[row + 1]
            indices, values = X.indices[begin:end], X.values[begin:end]
            foretell_sparse(trail, at, indices, values, label, model.mu)
            store_sparse(buffer, label, indices, values, False)
            at += 1
            C = parameters.C * row_weight(buffer, label, weights[row], parameters.balanced)
            _diagonal_row_sparse(indices, values, 2.0 * label - 1.0, C, parameters.phi, model)
