"""The paper's CBR as a naive compiled loop: what the fast sweeps are measured against.

One pair at a time, z, Sigma z by two loops, the step, the rank-one update: nothing is kept from
one pair to the next and no pair is passed over early. The options of the compiler are those of
the kernels.
"""

from typing import NamedTuple

import numba
import numpy as np

from cbrank.kernels.confidence import scw_step


class State(NamedTuple):
    """All that the loop remembers."""

    mu: np.ndarray  # (d,)
    Sigma: np.ndarray  # (d, d)
    rows: np.ndarray  # (2, M, d) buffered rows of the two classes
    size: np.ndarray  # (2,) how many are buffered
    oldest: np.ndarray  # (2,) where a full buffer's oldest row is


def start(features: int, capacity: int) -> State:
    """Return the state before the first row."""
    rows, counts = np.zeros((2, capacity, features)), np.zeros((2, 2), np.int64)
    return State(np.zeros(features), np.eye(features), rows, *counts)


@numba.njit(error_model="numpy", fastmath={"reassoc", "contract"})
def learn(X, labels, state, C, phi):
    """Stream rows through Algorithms 1 and 3, first in first out."""
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
            alpha, beta = scw_step(sign * margin, variance, C, phi)
            if alpha > 0.0:
                for i in range(d):
                    mu[i] += sign * alpha * s[i]
                    for j in range(d):
                        Sigma[i, j] -= beta * s[i] * s[j]


@numba.njit(error_model="numpy")
def _store(x, label, state):
    capacity = state.rows.shape[1]
    slot = state.size[label]
    if slot < capacity:
        state.size[label] += 1
    else:
        slot = state.oldest[label]
        state.oldest[label] = (slot + 1) % capacity
    for i in range(x.size):
        state.rows[label, slot, i] = x[i]
