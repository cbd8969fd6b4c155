"""OPAUCr for a whole grid of steps in one pass.

The sketch does not depend on the step, and a fit's rows are fewer than its features. So the
weights are kept as combinations of rows, ``W = X' A`` with one column of A for each step, and
every product with the sketch ``Z = X' B`` goes through the Gram matrix ``K = X X'``. With n
rows, a row costs O(n tau steps) in place of O(d tau steps). Names and formulas are the kernel's.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from cbrank import kernels

if TYPE_CHECKING:
    from cbrank.rankers import OPAUCRanker

Floats = NDArray[np.float64]

_LARGEST = 1e100  # the kernels' own bound on the sum of the weights' sizes


class GridFit(NamedTuple):
    """What a grid of steps learned.

    Attributes
    ----------
    W : ndarray of shape (n_features, n_steps)
        The weights of each step.
    diverged : ndarray of shape (n_steps,)
        Whether the step was too large; its weights are then the last sound ones.
    """

    W: Floats
    diverged: NDArray[np.bool_]


class _Sketch:
    """A class's mean ``X' u`` and sketch, as combinations of its rows so far."""

    def __init__(self, n_rows: int, tau: int, centred: bool) -> None:
        self.centred = centred
        self.rows: list[int] = []
        self.B = np.zeros((n_rows, tau))
        self.KB = np.zeros((n_rows, tau))
        self.K_sum = np.zeros(n_rows)
        self.h = np.zeros(tau)

    def count(self, row: int, k: Floats, a: Floats) -> None:
        """Take in a row, given its products with all rows and its random vector."""
        self.rows.append(row)
        self.B[row] = a
        self.KB += np.outer(k, a)
        self.K_sum += k
        self.h += (a - self.h) / len(self.rows)

    def gradient(self, row: int, k: Floats, sign: float, A: Floats) -> Floats:
        """Return the gradient of a row of the other class, less its regularisation."""
        T = len(self.rows)
        mean_W = self.K_sum @ A / T
        pull = k @ A - mean_W - sign
        inner = self.KB.T @ A
        if self.centred:
            inner -= np.outer(self.h, T * mean_W)
            centre = self.h @ inner
        else:
            centre = self.h @ self.h * mean_W
        g = np.zeros_like(A)
        g[self.rows] = self.B[self.rows] @ (inner / T) - (pull + centre) / T
        g[row] += pull
        return g


def fit_steps(ranker: "OPAUCRanker", X: Any, y: NDArray[np.int64], steps: list[float]) -> GridFit:
    """Fit ``ranker.set_params(step=s)`` for every s of `steps`, in the order of the rows.

    Parameters
    ----------
    ranker : OPAUCRanker
        With a rank; what its step is does not matter.
    X : csr_array of shape (n_samples, n_features)
        Rows.
    y : ndarray of shape (n_samples,)
        1 for a positive row, 0 for a negative one.
    steps : list of float
        The grid.

    Returns
    -------
    GridFit
        The weights that `ranker` would learn with each step, up to rounding.
    """
    K, draws = (X @ X.T).toarray(), _random_vectors(ranker, X)
    centred = ranker.sketch == "centred"
    sketches = [_Sketch(len(y), draws.shape[1], centred) for _ in range(2)]
    A, alive = np.zeros((len(y), len(steps))), np.arange(len(steps))
    kept: dict[int, Floats] = {}
    size, step = abs(X).sum(axis=1), np.array(steps)
    for row, label in enumerate(y):
        sketches[label].count(row, K[row], draws[row])
        other = sketches[1 - label]
        if not other.rows:
            continue
        g = other.gradient(row, K[row], 2.0 * label - 1.0, A) + ranker.regularization * A
        moved = A - step[alive] * g
        if (lost := _lost(moved, X, size)).any():
            kept |= {int(alive[k]): A[:, k] for k in np.flatnonzero(lost)}
            alive, moved = alive[~lost], moved[:, ~lost]
        A = moved
    return _weights(X, A, alive, kept)


def _random_vectors(ranker: "OPAUCRanker", X: Any) -> Floats:
    """Draw the random vectors of all rows as the ranker itself would."""
    random = check_random_state(ranker.random_state)
    arrays, _ = ranker.start(1, np.arange(2), sparse=True, random=random).get_state()
    state, shape = arrays["buffer.random"], (X.shape[0], arrays["model0.h"].shape[1])
    normal: Callable[..., float] = kernels.random.normal
    drawn = [normal(state) for _ in range(math.prod(shape))]
    return np.reshape(drawn, shape) / math.sqrt(shape[1])


def _lost(A: Floats, X: Any, size: Floats) -> NDArray[np.bool_]:
    """Return the steps whose weights are too large, looking closely only at suspects."""
    lost = ~(size @ np.abs(A) < _LARGEST)
    if lost.any():
        lost[lost] = ~(np.abs(X.T @ A[:, lost]).sum(axis=0) < _LARGEST)
    return lost


def _weights(X: Any, A: Floats, alive: NDArray[np.int64], kept: dict[int, Floats]) -> GridFit:
    whole = np.empty((len(A), len(alive) + len(kept)))
    whole[:, alive] = A
    for at, column in kept.items():
        whole[:, at] = column
    diverged = np.isin(np.arange(whole.shape[1]), list(kept))
    return GridFit(X.T @ whole, diverged)
