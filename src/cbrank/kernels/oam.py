"""Online AUC maximisation, OAM (Zhao et al. 2011): hinge loss on pairs with buffered rows.

A new row of class y meets the buffered rows b of the other class, z = x - b:

* sequential: for each pair in turn tau = min(C_t / 2, max(0, 1 - y w.z) / z.z), w += tau y z
* gradient: w += C_t / 2 times the sum of y z over the pairs with y w.z <= 1

with C_t = C max(1, N / M) for N rows of the other class so far and buffers of M.

Pairs whose z.z overflows are passed over. A step that is too long is refused, and so are all after it,
as in ``steps``.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import allocating_jit, jit, kernel
from cbrank.kernels.buffers import row_weight, store, store_sparse
from cbrank.kernels.prequential import foretell_row, foretell_sparse
from cbrank.kernels.vectors import difference, dot, dot_sparse

# Longest step of a pair, or largest weight or part of a gradient. It is below the 1e100 of ``steps``, so that
# no stream has as many rows as would carry the weights there, and they need not be looked at for each pair.
_LONGEST = 1e90


class Model(NamedTuple):
    """A linear ranker."""

    w: np.ndarray
    diverged: np.ndarray  # (1,) the row at which a step was refused, or 0


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
    halving is in public implementations of the gradient form.
    """
    unseen = max(1.0, buffer.seen[1 - label] / capacity)
    return 0.5 * parameters.C * unseen * row_weight(buffer, label, weight, parameters.balanced)


@allocating_jit
def _tau(margin, norm, most):
    """Return the passive-aggressive step for a pair whose z has the squared norm `norm`."""
    return min(most, max(0.0, 1.0 - margin) / norm) if 0.0 < norm < math.inf else 0.0


@jit
def _too_large(factor, values):
    """Say whether any of some values times a factor is too large, or not a number."""
    large = 0
    for i in range(values.size):
        large += not abs(factor * values[i]) < _LONGEST
    return large > 0


@allocating_jit
def _sweep(x, other, sign, buffer, model, most):
    """Take a passive-aggressive step for each pair in turn."""
    w = model.w
    capacity = buffer.rows.shape[1]
    for k in range(buffer.size[other]):
        b = buffer.rows[other, (buffer.oldest[other] + k) % capacity]
        margin, norm = 0.0, 0.0
        for i in range(x.size):
            z = x[i] - b[i]
            margin += w[i] * z
            norm += z * z
        tau = _tau(sign * margin, norm, most)
        if tau == 0.0:
            continue
        if not tau * math.sqrt(norm) < _LONGEST:
            model.diverged[0] = buffer.seen.sum()
            return
        for i in range(x.size):
            w[i] += tau * sign * (x[i] - b[i])


@allocating_jit
def _gradient(x, other, sign, buffer, model, most, wrong, before):
    """Take one step for all pairs whose margin, by the weights as they are, is at most 1.

    The sum of y z is split into the part of x, taken once, and those of the buffered rows.
    """
    w = model.w
    score, n_wrong = dot(w, x), 0
    for slot in range(buffer.size[other]):
        wrong[slot] = sign * (score - dot(w, buffer.rows[other, slot])) <= 1.0
        n_wrong += wrong[slot]
    if n_wrong == 0:
        return
    for i in range(x.size):
        before[i] = w[i]
        w[i] += n_wrong * most * sign * x[i]
    for slot in range(buffer.size[other]):
        if wrong[slot]:
            for i in range(x.size):
                w[i] -= most * sign * buffer.rows[other, slot, i]
    if _too_large(1.0, w):
        model.diverged[0] = buffer.seen.sum()
        for i in range(x.size):
            w[i] = before[i]


@allocating_jit
def _sweep_sparse(indices, values, other, sign, buffer, model, most, z_at, z):
    w = model.w
    capacity = buffer.length.shape[1]
    for k in range(buffer.size[other]):
        slot = (buffer.oldest[other] + k) % capacity
        length = buffer.length[other, slot]
        b_indices = buffer.indices[other, slot, :length]
        n = difference(indices, values, b_indices, buffer.values[other, slot, :length], z_at, z)
        margin = sign * dot_sparse(w, z_at[:n], z[:n])
        norm = dot(z[:n], z[:n])
        tau = _tau(margin, norm, most)
        if tau == 0.0:
            continue
        if not tau * math.sqrt(norm) < _LONGEST:
            model.diverged[0] = buffer.seen.sum()
            return
        for j in range(n):
            w[z_at[j]] += tau * sign * z[j]


@allocating_jit
def _gradient_sparse(indices, values, other, sign, buffer, model, most, wrong):
    # The parts of a step are looked at before: to keep all weights would take longer than the step.
    w = model.w
    score, n_wrong, large = dot_sparse(w, indices, values), 0, False
    for slot in range(buffer.size[other]):
        length = buffer.length[other, slot]
        b_indices = buffer.indices[other, slot, :length]
        b_values = buffer.values[other, slot, :length]
        wrong[slot] = sign * (score - dot_sparse(w, b_indices, b_values)) <= 1.0
        n_wrong += wrong[slot]
        large |= wrong[slot] and _too_large(most, b_values)
    if n_wrong == 0:
        return
    if large or _too_large(n_wrong * most, values):
        model.diverged[0] = buffer.seen.sum()
        return
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
    wrong, before = np.empty(capacity, np.bool_), np.empty_like(model.w)
    at = 0
    for row in order:
        if weights[row] > 0.0:
            x, label = X[row], labels[row]
            foretell_row(trail, at, x, label, model.w)
            store(buffer, label, x, parameters.reservoir)
            at += 1
            most = _half_penalty(buffer, label, weights[row], capacity, parameters)
            other, sign = 1 - label, 2.0 * label - 1.0
            if model.diverged[0]:
                continue
            if parameters.gradient:
                _gradient(x, other, sign, buffer, model, most, wrong, before)
            else:
                _sweep(x, other, sign, buffer, model, most)


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
            if model.diverged[0]:
                continue
            if parameters.gradient:
                _gradient_sparse(indices, values, other, sign, buffer, model, most, wrong)
            else:
                _sweep_sparse(indices, values, other, sign, buffer, model, most, z_at, z)
