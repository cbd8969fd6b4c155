"""Adaptive online AUC maximisation, AdaOAM (Ding et al. 2015).

The gradient g of ``opauc``, with AdaGrad's step size per feature,

    s_i += g_i^2,    H_i = smoothing + sqrt(s_i),    w_i -= step g_i / H_i,

and then projection to the ball |w| <= 1 / sqrt(regularization), where the optimum lies. As everywhere in
AdaGrad (Duchi et al. 2011) the projection is that of the norm in which the step is taken: the point u of
the ball with the least sum of H_i (u_i - w_i)^2, which keeps weights that had large gradients.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import allocating_jit, jit, kernel
from cbrank.kernels.buffers import row_weight, store
from cbrank.kernels.confidence import EPSILON
from cbrank.kernels.opauc import count_row, gradient
from cbrank.kernels.prequential import foretell
from cbrank.kernels.steps import take_step
from cbrank.kernels.vectors import multiply

_MOST_ROUNDS = 100  # of Newton's method; a handful will do


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


@jit
def _shrunk(w, H, pull, out):
    """Write w_i H_i / (H_i + pull) to `out`; return its length, and the sum of its squares over H_i + pull."""
    square, slope = 0.0, 0.0
    for i in range(w.size):
        out[i] = w[i] / (1.0 + pull / H[i])
        square += out[i] * out[i]
        slope += out[i] * out[i] / (H[i] + pull)
    return math.sqrt(square), slope


@allocating_jit
def project(w, H, radius):
    """Replace `w` by the nearest point of the ball, distances being sums of H_i times squares.

    It is `_shrunk` with the pull at which it has the length of the radius. Newton's method finds that from
    below: 1 / length is concave in the pull, and nearly linear.
    """
    nearest, pull = np.empty_like(w), 0.0
    length, slope = _shrunk(w, H, pull, nearest)
    if length <= radius:
        return
    for _ in range(_MOST_ROUNDS):
        move = length * length * (length / radius - 1.0) / slope if slope > 0.0 else math.inf
        if not (length > radius * (1.0 + EPSILON) and pull + move < math.inf):
            break
        pull += move
        length, slope = _shrunk(w, H, pull, nearest)
    for i in range(w.size):
        w[i] = nearest[i] * min(1.0, radius / length)


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
                for i in range(g.size):
                    model.s[i] += g[i] * g[i]
                H = parameters.smoothing + np.sqrt(model.s)
                take_step(model.w, -step * g / H, model.diverged, buffer.seen.sum())
                if parameters.regularization > 0.0 and not model.diverged[0]:
                    project(model.w, H, 1.0 / math.sqrt(parameters.regularization))
