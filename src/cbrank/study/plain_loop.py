"""`cbrank.paper` as naive compiled loops, the baseline that the fast sweeps are compared with.

For each pair in turn: z, Sigma z by two loops, the step, the rank-one update; or, with a diagonal and sparse
rows, z by a merge of the two rows as OAM takes it, the step, the update. Nothing is kept from
one pair to the next and no pair is skipped early. The compiler's options are those of the kernels.
"""

from typing import NamedTuple

import numba
import numpy as np

from cbrank import paper
from cbrank.kernels.vectors import difference

# The step is the paper's function itself, compiled. The buffer and the update of Sigma are written out in loops over
# fixed arrays, in the order of `update_buffer` and `update_ranker`: Numba does not compile lists of rows, and
# `Sigma - beta * np.outer(s, s)` would make a new matrix for each pair, a slower baseline than a naive one.
_step = numba.njit(error_model="numpy", fastmath={"reassoc", "contract"})(paper.step)


class State(NamedTuple):
    """The loop's model and buffers."""

    mu: np.ndarray  # (d,)
    Sigma: np.ndarray  # (d, d)
    rows: np.ndarray  # (2, M, d) buffered rows of the two classes
    size: np.ndarray  # (2,) how many are buffered
    oldest: np.ndarray  # (2,) where a full buffer's oldest row is


def empty_state(features: int, capacity: int) -> State:
    """Return the state before the first row."""
    rows, counts = np.zeros((2, capacity, features)), np.zeros((2, 2), np.int64)
    return State(np.zeros(features), np.eye(features), rows, *counts)


@numba.njit(error_model="numpy", fastmath={"reassoc", "contract"})
def learn(X, labels, state, C, phi):
    """Stream rows through `paper.cbr`: first in first out, full covariance."""
    mu, Sigma = state.mu, state.Sigma
    d, capacity = mu.size, state.rows.shape[1]
    z, s = np.empty(d), np.empty(d)
    for row in range(X.shape[0]):
        _store(X[row], labels[row], state)
        other, sign = 1 - labels[row], 2.0 * labels[row] - 1.0
        for k in range(state.size[other]):
            slot = (state.oldest[other] + k) % capacity
            margin, variance = 0.0, 0.0
            for i in range(d):
                z[i] = X[row, i] - state.rows[other, slot, i]
                margin += mu[i] * z[i]
            for i in range(d):
                total = 0.0
                for j in range(d):
                    total += Sigma[i, j] * z[j]
                s[i] = total
                variance += total * z[i]
            alpha, beta = _step(sign * margin, variance, C, phi)
            if alpha > 0.0:
                for i in range(d):
                    mu[i] += sign * alpha * s[i]
                    for j in range(d):
                        Sigma[i, j] -= beta * s[i] * s[j]


@numba.njit(error_model="numpy")
def _store(x, label, state):
    """Put a row into the buffer of its class, as `paper.update_buffer` does with "fifo"."""
    capacity = state.rows.shape[1]
    slot = state.size[label]
    if slot < capacity:
        state.size[label] += 1
    else:
        slot = state.oldest[label]
        state.oldest[label] = (slot + 1) % capacity
    for i in range(x.size):
        state.rows[label, slot, i] = x[i]


class DiagonalState(NamedTuple):
    """The loop's model, with the diagonal G of a precision, and the places of buffered rows."""

    mu: np.ndarray  # (d,)
    G: np.ndarray  # (d,)
    places: np.ndarray  # (2, M)
    size: np.ndarray  # (2,)
    oldest: np.ndarray  # (2,)


def empty_diagonal_state(features: int, capacity: int) -> DiagonalState:
    """Return the state before the first row."""
    places, counts = np.zeros((2, capacity), np.int64), np.zeros((2, 2), np.int64)
    return DiagonalState(np.zeros(features), np.ones(features), places, *counts)


@numba.njit(error_model="numpy", fastmath={"reassoc", "contract"})
def learn_diagonal(values, columns, begins, labels, state, C, phi):
    """Stream the rows of a CSR matrix through `paper.cbr`: first in first out, diagonal covariance."""
    mu, G, capacity = state.mu, state.G, state.places.shape[1]
    room = 2 * (begins[1:] - begins[:-1]).max()
    at, z = np.empty(room, np.int32), np.empty(room)
    for row in range(labels.size):
        here = slice(begins[row], begins[row + 1])
        _keep(row, labels[row], state)
        other, sign = 1 - labels[row], 2.0 * labels[row] - 1.0
        for k in range(state.size[other]):
            old = state.places[other, (state.oldest[other] + k) % capacity]
            there = slice(begins[old], begins[old + 1])
            n = difference(columns[here], values[here], columns[there], values[there], at, z)
            margin, variance = 0.0, 0.0
            for i in range(n):
                margin += mu[at[i]] * z[i]
                variance += z[i] * z[i] / (G[at[i]] + C)
            alpha, beta = _step(sign * margin, variance, C, phi)
            if alpha > 0.0:
                for i in range(n):
                    mu[at[i]] += sign * alpha * z[i] / G[at[i]]
                    G[at[i]] += beta * z[i] * z[i]


@numba.njit
def _keep(row, label, state):
    """Put the place of a row into the buffer of its class, as `paper.update_buffer` does with "fifo"."""
    slot = state.size[label]
    if slot < state.places.shape[1]:
        state.size[label] += 1
    else:
        slot = state.oldest[label]
        state.oldest[label] = (slot + 1) % state.places.shape[1]
    state.places[label, slot] = row
