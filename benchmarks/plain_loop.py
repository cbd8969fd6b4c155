"""`cbrank.paper` as a naive compiled loop, the baseline that the fast sweeps are compared with.

For each pair in turn: z, Sigma z by two loops, the step, the rank-one update. Nothing is kept from
one pair to the next and no pair is skipped early. The compiler's options are those of the kernels.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmarks.peers import CLASSES, Learner, has_learned
from cbrank import CBRanker, paper

# The step is the paper's function itself, compiled. The buffer and the update of Sigma are written out in loops over
# fixed arrays, in the order of `update_buffer` and `update_ranker`: Numba does not compile lists of rows, and
# `Sigma - beta * np.outer(s, s)` would make a new matrix for each pair, a slower baseline than a naive one.
_step = numba.njit(error_model="numpy", fastmath={"reassoc", "contract"})(paper.step)

_PRODUCTS = 3e9  # multiplications for Sigma z in a chunk; more would take many seconds


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


class PlainLoop(Learner):
    """The loop as a peer, which checks `CBRanker` as it goes.

    Both learn from the same rows. Each chunk the loop starts from `CBRanker`'s model, so that
    rounding differences do not add up, and after its rows the two models are compared. Where a
    chunk would take the loop too long, it learns from the first rows only, and `CBRanker`, not
    timed, from the rest.
    """

    def __init__(self, C: float, buffer_size: int) -> None:
        self.C = C
        self.ranker = CBRanker(C=C, buffer_size=buffer_size, average=False)
        self.buffer_size = buffer_size
        self.buffered: list[list[NDArray[np.float64]]] = [[], []]  # as the ranker's, by class
        self.largest = 0.0  # difference so far
        self.state: Any = None
        self.pending: Any = ()  # the chunk that the ranker has not learned from yet
        self.whole = True  # whether the loop has learned from all rows

    def prepare(self, X: Any, y: NDArray[np.int64]) -> Any:
        """Bring ranker and loop to the same state, and choose the rows that the loop gets."""
        self._compare()
        self.state = self._ranker_state(X.shape[1])
        most = int(_PRODUCTS / (self.buffer_size * X.shape[1] ** 2))
        head = slice(0, max(most, 3))
        self.pending = X, y
        self.learned = len(y[head])
        self.whole = self.whole and self.learned == len(y)
        return X[head], y[head]

    def learn(self, rows: Any) -> None:
        """Learn from the rows."""
        X, y = rows
        learn(X, y, self.state, self.C, float(ndtri(self.ranker.eta)))

    def scores(self, X: Any) -> NDArray[np.float64] | None:
        """Return the scores by the loop's mean, if it has learned from all rows."""
        return np.asarray(X @ self.state.mu) if self.whole else None

    def difference(self) -> float:
        """Return the largest relative difference between the two so far."""
        self._compare()
        return self.largest

    def _ranker_state(self, features: int) -> State:
        state = empty_state(features, self.buffer_size)
        if not has_learned(self.ranker):
            return state
        for label, rows in enumerate(self.buffered):
            state.rows[label, : len(rows)] = rows
            state.size[label] = len(rows)
        return state._replace(mu=self.ranker.coef_[0].copy(), Sigma=self.ranker.covariance_)

    def _compare(self) -> None:
        """Let the ranker learn what the loop has learned, and compare the two."""
        if self.state is None or not self.pending:
            return
        (X, y), cut = self.pending, self.learned or 0
        self.ranker.partial_fit(X[:cut], y[:cut], classes=CLASSES)
        for ours, its in (
            (self.ranker.coef_[0], self.state.mu),
            (self.ranker.covariance_, self.state.Sigma),
        ):
            gap = float(np.abs(ours - its).max() / max(np.abs(its).max(), np.finfo(float).tiny))
            self.largest = max(self.largest, gap)
        if cut < len(y):
            self.ranker.partial_fit(X[cut:], y[cut:])
        for label, rows in enumerate(self.buffered):
            rows.extend(X[y == label][-self.buffer_size :])
            del rows[: -self.buffer_size]
        self.pending = ()
