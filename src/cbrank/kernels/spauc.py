"""Stochastic proximal AUC maximisation, SPAUC (Lei and Ying 2021).

The square loss of all pairs is a sum of three terms: the variance of the scores within each class,
of which each row is a sample, and the square loss of the two class means. With the class means
m+ and m- and the share p of positives so far, a positive row has the gradient

    g = (1 - p) w.(x - m+) (x - m+) + p (1 - p) (1 + w.(m- - m+)) (m- - m+),

a negative one p and m- in the first term. The step is proximal in the L2 penalty, which divides
instead of subtracting and cannot overshoot.
"""

from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import allocating_jit, kernel
from cbrank.kernels.buffers import row_weight, store, store_sparse
from cbrank.kernels.prequential import foretell_row, foretell_sparse
from cbrank.kernels.steps import take_step


class Model(NamedTuple):
    """A linear ranker with the mean of each class."""

    w: np.ndarray
    diverged: np.ndarray  # (1,) the row at which a step was refused, or 0
    mean: np.ndarray  # (2, d)


class Parameters(NamedTuple):
    """Hyper-parameters, as the kernels take them."""

    step: float
    regularization: float
    balanced: bool


@allocating_jit
def _row(x, label, weight, buffer, model, parameters, change):
    """Update the mean of a class with a row just counted, and take its step."""
    w, own, mean = model.w, model.mean[label], model.mean
    spread, gap = 0.0, 0.0
    for i in range(x.size):
        own[i] += (x[i] - own[i]) / buffer.seen[label]
        spread += w[i] * (x[i] - own[i])
        gap += w[i] * (mean[0, i] - mean[1, i])
    if buffer.seen[1 - label] == 0:
        return
    rows = buffer.seen[0] + buffer.seen[1]
    share, both = buffer.seen[1 - label] / rows, buffer.seen[0] / rows * buffer.seen[1] / rows
    step = parameters.step * row_weight(buffer, label, weight, parameters.balanced)
    # The proximal step is w <- (w - step g) / (1 + step regularization), here as a change of w.
    shrinking = 1.0 + step * parameters.regularization
    for i in range(x.size):
        g = share * spread * (x[i] - own[i]) + both * (1.0 + gap) * (mean[0, i] - mean[1, i])
        change[i] = -step * (g + parameters.regularization * w[i]) / shrinking
    take_step(w, change, model.diverged, rows)


@kernel
def learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the rows `order` of `X`, in that order."""
    change = np.empty_like(model.w)
    at = 0
    for row in order:
        if weights[row] > 0.0:
            # The step does not need these rows: they are kept to place the threshold, and counted.
            foretell_row(trail, at, X[row], labels[row], model.w)
            store(buffer, labels[row], X[row], False)
            at += 1
            _row(X[row], labels[row], weights[row], buffer, model, parameters, change)


@kernel
def learn_sparse(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the sparse rows `order` of `X`, in that order.

    Each row is written into a dense one and wiped out again: a step changes all weights anyway.
    """
    x, change = np.zeros_like(model.w), np.empty_like(model.w)
    at = 0
    for row in order:
        if weights[row] > 0.0:
            begin, end = X.indptr[row], X.indptr[row + 1]
            indices, values = X.indices[begin:end], X.values[begin:end]
            foretell_sparse(trail, at, indices, values, labels[row], model.w)
            store_sparse(buffer, labels[row], indices, values, False)
            at += 1
            for k in range(indices.size):
                x[indices[k]] = values[k]
            _row(x, labels[row], weights[row], buffer, model, parameters, change)
            for k in range(indices.size):
                x[indices[k]] = 0.0
