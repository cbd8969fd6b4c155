"""Adaptive online AUC maximisation, AdaOAM (Ding et al. 2015).

The gradient g of ``opauc``, with AdaGrad's step size per feature,

    s_i += g_i^2,    w_i -= step g_i / (smoothing + sqrt(s_i)),

and then projection to the ball |w| <= 1 / sqrt(regularization), where the optimum lies.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import allocating_jit, kernel
from cbrank.kernels.buffers import row_weight, store
from cbrank.kernels.opauc import count_row, gradient
from cbrank.kernels.prequential import foretell
from cbrank.kernels.steps import take_step
from cbrank.kernels.vectors import dot, multiply


class Model(NamedTuple):
    """A linear ranker, the mean and covariance of each class, and sums of squared gradients."""

    w: np.ndarray
    diverged: np.ndarray  # (1,) the row at which a step was refused, or 0
    mean: np.ndarray  # (2, d)
    Gamma: np.ndarray  # (2, d, d)
    s: np.ndarray  # (d,)


class Parameters(NamedTuple):
    """Hyper-parameters, as the kernel takes them."""

    step: float
    regularization: float
    smoothing: float
    balanced: bool


@allocating_jit
def _adaptive_step(g, step, smoothing, s):
    """Add to the sums of squared gradients; return the change of every weight."""
    s += g * g
    return -step * g / (smoothing + np.sqrt(s))


@allocating_jit
def _project(w, radius):
    norm = math.sqrt(dot(w, w))
    if norm > radius:
        w *= radius / norm


@kernel
def learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the rows `order` of `X`, in that order."""
    Gamma_w = np.empty_like(model.w)
    at = 0
    for row in order:
        if weights[row] > 0.0:
            x, label = X[row], labels[row]
            other, sign = 1 - label, 2.0 * label - 1.0
            # The step does not need these rows: they are kept to place the threshold, and counted.
            foretell(trail, at, x, label, model.w, buffer)
            store(buffer, label, x, False)
            at += 1
            count_row(x, buffer.seen[label], model.mean[label], model.Gamma[label])
            if buffer.seen[other] > 0:
                multiply(model.Gamma[other], model.w, Gamma_w)
                g = gradient(
                    model.w, x, sign, model.mean[other], Gamma_w, parameters.regularization
                )
                step = parameters.step * row_weight(
                    buffer, label, weights[row], parameters.balanced
                )
                change = _adaptive_step(g, step, parameters.smoothing, model.s)
                take_step(model.w, change, model.diverged, buffer.seen.sum())
                if parameters.regularization > 0.0:
                    _project(model.w, 1.0 / math.sqrt(parameters.regularization))
