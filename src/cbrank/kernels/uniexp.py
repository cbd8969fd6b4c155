"""Online Uni-Exp: the weighted univariate exponential loss (Kotlowski et al. 2011).

A loss of single rows, not pairs, whose regret bounds that of the ranking: with the share p of the
row's class so far, w += step y exp(-y w.x) / (2 p) x. The exponent has no bound: one step that is too
long ranks some row wrong by so much that the next overflows, and `take_step` refuses it.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import allocating_jit, kernel
from cbrank.kernels.buffers import row_weight, store, store_sparse
from cbrank.kernels.prequential import foretell_row, foretell_sparse
from cbrank.kernels.steps import take_step, take_step_sparse
from cbrank.kernels.vectors import dot, dot_sparse


class Model(NamedTuple):
    """A linear ranker."""

    w: np.ndarray
    diverged: np.ndarray  # (1,) the row at which a step was refused, or 0


class Parameters(NamedTuple):
    """Hyper-parameters, as the kernels take them."""

    step: float
    balanced: bool


@allocating_jit
def _pull(score, label, weight, buffer, parameters):
    """Return the factor of x in the step for a row just counted."""
    sign = 2.0 * label - 1.0
    share = buffer.seen[label] / (buffer.seen[0] + buffer.seen[1])
    step = parameters.step * row_weight(buffer, label, weight, parameters.balanced)
    return sign * step * math.exp(-sign * score) / (2.0 * share)


@kernel
def learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the rows `order` of `X`, in that order."""
    at = 0
    for row in order:
        if weights[row] > 0.0:
            x, label = X[row], labels[row]
            # The step does not need these rows: they are kept to place the threshold, and counted.
            foretell_row(trail, at, x, label, model.w)
            store(buffer, label, x, False)
            at += 1
            pull = _pull(dot(model.w, x), label, weights[row], buffer, parameters)
            take_step(model.w, pull * x, model.diverged, buffer.seen.sum())


@kernel
def learn_sparse(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the sparse rows `order` of `X`, in that order."""
    at = 0
    for row in order:
        if weights[row] > 0.0:
            label, begin, end = labels[row], X.indptr[row], X.indptr[row + 1]
            indices, values = X.indices[begin:end], X.values[begin:end]
            foretell_sparse(trail, at, indices, values, label, model.w)
            store_sparse(buffer, label, indices, values, False)
            at += 1
            score = dot_sparse(model.w, indices, values)
            pull = _pull(score, label, weights[row], buffer, parameters)
            take_step_sparse(model.w, indices, pull * values, model.diverged, buffer.seen.sum())
