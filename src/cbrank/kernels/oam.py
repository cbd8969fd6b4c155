"""Online AUC maximisation, OAM (Zhao et al. 2011): hinge loss on pairs with buffered rows.

A new row of class y meets the buffered rows b of the other class, z = x - b:

* sequential: for each pair in turn tau = min(C_t / 2, max(0, 1 - y w.z) / z.z), w += tau y z
* gradient: w += C_t / 2 times the sum of y z over the pairs with y w.z <= 1

with C_t = C max(1, N / M) for N rows of the other class so far and buffers of M.
"""

from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import allocating_jit, kernel
from cbrank.kernels.buffers import row_weight, store, store_sparse
from cbrank.kernels.prequential import foretell_row, foretell_sparse
from cbrank.kernels.vectors import difference, dot, dot_sparse


class Model(NamedTuple):
    """A linear ranker."""

    w: np.ndarray


class Parameters(NamedTuple):
    """Hyper-parameters, as the kernels take them."""

    C: float
    gradient: bool  # one step for all pairs of a row, else one for each in turn
    reservoir: bool
    balanced: bool


@allocating_jit
def _half_penalty(buffer, label, weight, capacity, parameters):
    """Return C_t / 2 for a row just counted.

    A buffered row stands for all those that the buffer has not kept, hence the factor N / M. The
    halving is in the authors' code and not in every text.
    """
    unseen = max(1.0, buffer.seen[1 - label] / capacity)
    return 0.5 * parameters.C * unseen * row_weight(buffer, label, weight, parameters.balanced)


@allocating_jit
def _tau(margin, norm, most):
    """Return the passive-aggressive step for a pair whose z has the squared norm `norm`."""
    return min(most, max(0.0, 1.0 - margin) / norm) if norm > 0.0 else 0.0


@allocating_jit
def _sweep(x, other, sign, buffer, w, most):
    """Take a passive-aggressive step for each pair in turn."""
    capacity = buffer.rows.shape[1]
    for k in range(buffer.size[other]):
        b = buffer.rows[other, (buffer.oldest[other] + k) % capacity]
        margin, norm = 0.0, 0.0
        for i in range(x.size):
            z = x[i] - b[i]
            margin += w[i] * z
            norm += z * z
        tau = _tau(sign * margin, norm, most)
        for i in range(x.size):
            w[i] += tau * sign * (x[i] - b[i])


@allocating_jit
def _gradient(x, other, sign, buffer, w, most, wrong):
    """Take one step for all pairs whose margin, by the weights as they are, is at most 1.

    The sum of y z is split into the part of x, taken once, and those of the buffered rows.
    """
    score, n_wrong = dot(w, x), 0
    for slot in range(buffer.size[other]):
        wrong[slot] = sign * (score - dot(w, buffer.rows[other, slot])) <= 1.0
        n_wrong += wrong[slot]
    for i in range(x.size):
        w[i] += n_wrong * most * sign * x[i]
    for slot in range(buffer.size[other]):
        if wrong[slot]:
            for i in range(x.size):
                w[i] -= most * sign * buffer.rows[other, slot, i]


@allocating_jit
def _sweep_sparse(indices, values, other, sign, buffer, w, most, z_at, z):
    capacity = buffer.length.shape[1]
    for k in range(buffer.size[other]):
        slot = (buffer.oldest[other] + k) % capacity
        length = buffer.length[other, slot]
        b_indices = buffer.indices[other, slot, :length]
        n = difference(indices, values, b_indices, buffer.values[other, slot, :length], z_at, z)
        margin = sign * dot_sparse(w, z_at[:n], z[:n])
        tau = _tau(margin, dot(z[:n], z[:n]), most)
        for j in range(n):
            w[z_at[j]] += tau * sign * z[j]


@allocating_jit
def _gradient_sparse(indices, values, other, sign, buffer, w, most, wrong):
    score, n_wrong = dot_sparse(w, indices, values), 0
    for slot in range(buffer.size[other]):
        length = buffer.length[other, slot]
        b_indices = buffer.indices[other, slot, :length]
        b_score = dot_sparse(w, b_indices, buffer.values[other, slot, :length])
        wrong[slot] = sign * (score - b_score) <= 1.0
        n_wrong += wrong[slot]
    for j in range(indices.size):
        w[indices[j]] += n_wrong * most * sign * values[j]
    for slot in range(buffer.size[other]):
        if wrong[slot]:
            for j in range(buffer.length[other, slot]):
                w[buffer.indices[other, slot, j]] -= most * sign * buffer.values[other, slot, j]


@kernel
def learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the rows `order` of `X`, in that order."""
    capacity = buffer.rows.shape[1]
    wrong = np.empty(capacity, np.bool_)
    at = 0
    for row in order:
        if weights[row] > 0.0:
            x, label = X[row], labels[row]
            foretell_row(trail, at, x, label, model.w)
            store(buffer, label, x, parameters.reservoir)
            at += 1
            most = _half_penalty(buffer, label, weights[row], capacity, parameters)
            other, sign = 1 - label, 2.0 * label - 1.0
            if parameters.gradient:
                _gradient(x, other, sign, buffer, model.w, most, wrong)
            else:
                _sweep(x, other, sign, buffer, model.w, most)


@kernel
def learn_sparse(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the sparse rows `order` of `X`, in that order."""
    # z = x - b has no more entries than both rows together.
    capacity, room = buffer.length.shape[1], 2 * buffer.values.shape[2]
    z_at, z, wrong = np.empty(room, np.int32), np.empty(room), np.empty(capacity, np.bool_)
    at = 0
    for row in order:
        if weights[row] > 0.0:
            label, begin, end = labels[row], X.indptr[row], X.indptr[row + 1]
            indices, values = X.indices[begin:end], X.values[begin:end]
            foretell_sparse(trail, at, indices, values, label, model.w)
            store_sparse(buffer, label, indices, values, parameters.reservoir)
            at += 1
            most = _half_penalty(buffer, label, weights[row], capacity, parameters)
            other, sign = 1 - label, 2.0 * label - 1.0
            if parameters.gradient:
                _gradient_sparse(indices, values, other, sign, buffer, model.w, most, wrong)
            else:
                _sweep_sparse(indices, values, other, sign, buffer, model.w, most, z_at, z)
