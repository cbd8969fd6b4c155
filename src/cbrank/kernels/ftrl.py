"""FTRL-AUC (Zhou et al. 2020): FTRL-Proximal on the pairwise square loss.

The other class enters the gradient of a row only by its running mean score u,

    g = 2 q (w.x - u - y) x,    q the share of the other class so far,

so that a row costs no more than its non-zeros. Names are those of FTRL-Proximal (McMahan et al.
2013), but ``z`` is stored multiplied by the step size: the weight of a row can then be a factor of
that row's own step.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import jit, kernel
from cbrank.kernels.buffers import row_weight, store, store_sparse
from cbrank.kernels.prequential import foretell_row, foretell_sparse
from cbrank.kernels.steps import take_step, take_step_sparse
from cbrank.kernels.vectors import dot, dot_sparse


class Model(NamedTuple):
    """A linear ranker, the state of FTRL-Proximal and the mean score of each class."""

    w: np.ndarray
    diverged: np.ndarray  # (1,) the row at which a step was refused, or 0
    z: np.ndarray  # (d,) summed gradients, shifted by the weights they were taken at
    n: np.ndarray  # (d,) summed squares of the gradients
    mean_score: np.ndarray  # (2,) each row scored by the weights of its time


class Parameters(NamedTuple):
    """Hyper-parameters, as the kernels take them."""

    step: float
    l1: float
    l2: float
    beta: float
    balanced: bool


@jit
def _pull(score, label, buffer, mean_score):
    """Add the score of a row just counted to its class's mean; return the factor of x in g."""
    other, sign = 1 - label, 2.0 * label - 1.0
    mean_score[label] += (score - mean_score[label]) / buffer.seen[label]
    share = buffer.seen[other] / (buffer.seen[0] + buffer.seen[1])
    return 2.0 * share * (score - mean_score[other] - sign)


@jit
def _change(i, g, step, model, parameters):
    """Update the state of feature `i` with its gradient; return the change of its weight.

    The weight is 0 while |z| is within the L1 penalty, which is what makes FTRL sparse.
    """
    if g == 0.0:
        return 0.0
    root = math.sqrt(model.n[i] + g * g)
    model.z[i] += step * g - (root - math.sqrt(model.n[i])) * model.w[i]
    model.n[i] += g * g
    l1, l2 = parameters.step * parameters.l1, parameters.step * parameters.l2
    if abs(model.z[i]) <= l1:
        return -model.w[i]
    excess = model.z[i] - math.copysign(l1, model.z[i])
    return -excess / (parameters.beta + root + l2) - model.w[i]


@kernel
def learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the rows `order` of `X`, in that order."""
    change = np.empty_like(model.w)
    at = 0
    for row in order:
        if weights[row] > 0.0:
            x, label = X[row], labels[row]
            # The step does not need these rows: they are kept to place the threshold, and counted.
            foretell_row(trail, at, x, label, model.w)
            store(buffer, label, x, False)
            at += 1
            pull = _pull(dot(model.w, x), label, buffer, model.mean_score)
            weight = row_weight(buffer, label, weights[row], parameters.balanced)
            for i in range(x.size):
                change[i] = _change(i, pull * x[i], parameters.step * weight, model, parameters)
            take_step(model.w, change, model.diverged, buffer.seen.sum())


@kernel
def learn_sparse(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the sparse rows `order` of `X`, in that order."""
    change = np.empty(buffer.values.shape[2])
    at = 0
    for row in order:
        if weights[row] > 0.0:
            label, begin, end = labels[row], X.indptr[row], X.indptr[row + 1]
            indices, values = X.indices[begin:end], X.values[begin:end]
            foretell_sparse(trail, at, indices, values, label, model.w)
            store_sparse(buffer, label, indices, values, False)
            at += 1
            pull = _pull(dot_sparse(model.w, indices, values), label, buffer, model.mean_score)
            weight = row_weight(buffer, label, weights[row], parameters.balanced)
            for k in range(indices.size):
                g = pull * values[k]
                change[k] = _change(indices[k], g, parameters.step * weight, model, parameters)
            take_step_sparse(model.w, indices, change, model.diverged, buffer.seen.sum())
