"""Statistics of columns that are learned row by row, and rows scaled by them.

Of each feature the entries met so far have a count, a mean and a sum of squared deviations
(Welford); all other rows count as zeros, so that sparse rows cost what they store. A row is
scaled by the statistics that include it, so the result does not depend on how rows are chunked.
Whatever finite numbers come, statistics and scaled rows are finite.
"""

from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import jit, kernel

LARGEST = 1e145  # a number beyond it counts as it: the squares of 2^52 such have a finite sum

_HUGE = np.finfo(np.float64).max
_NO_VARIANCE = 1e-300


class Moments(NamedTuple):
    """What is known of each feature."""

    rows: np.ndarray  # (1,) int64, rows met
    counts: np.ndarray  # (d,) float64, entries met
    means: np.ndarray  # (d,) float64, of the entries
    squares: np.ndarray  # (d,) float64, of their deviations from the mean


@kernel
def standard(X: np.ndarray, learn: bool, known: Moments, out: np.ndarray) -> None:
    """Centre rows and divide them by the standard deviations; first learn from each if asked."""
    n_features = X.shape[1]
    for row in range(X.shape[0]):
        if learn:
            known.rows[0] += 1
            for j in range(n_features):
                _meet(known, j, X[row, j])
        rows = float(known.rows[0])
        for j in range(n_features):
            mean = known.means[j] * (known.counts[j] / rows)
            out[row, j] = (_bounded(X[row, j]) - mean) / _deviation(known, j, rows)


@kernel
def standard_sparse(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    learn: bool,
    known: Moments,
    out: np.ndarray,
) -> None:
    """Divide sparse rows by the standard deviations; first learn from each if asked."""
    for row in range(indptr.size - 1):
        if learn:
            known.rows[0] += 1
            for at in range(indptr[row], indptr[row + 1]):
                _meet(known, indices[at], values[at])
        rows = float(known.rows[0])
        for at in range(indptr[row], indptr[row + 1]):
            j = indices[at]
            deviation = _deviation(known, j, rows) if j < known.means.size else 1.0
            out[at] = _bounded(values[at]) / deviation


@kernel
def largest(
    X: np.ndarray, learn: bool, rows: np.ndarray, known: np.ndarray, out: np.ndarray
) -> None:
    """Divide rows by the largest absolute values; first learn from each if asked."""
    for row in range(X.shape[0]):
        rows[0] += learn
        for j in range(X.shape[1]):
            if learn:
                known[j] = max(known[j], abs(X[row, j]))
            out[row, j] = _finite(X[row, j] / (known[j] if known[j] > 0.0 else 1.0))


@kernel
def largest_sparse(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    learn: bool,
    rows: np.ndarray,
    known: np.ndarray,
    out: np.ndarray,
) -> None:
    """Divide sparse rows by the largest absolute values; first learn from each if asked."""
    for row in range(indptr.size - 1):
        rows[0] += learn
        for at in range(indptr[row], indptr[row + 1]):
            j = indices[at]
            if learn:
                known[j] = max(known[j], abs(values[at]))
            size = known[j] if j < known.size and known[j] > 0.0 else 1.0
            out[at] = _finite(values[at] / size)


@kernel
def unit(
    indptr: np.ndarray, values: np.ndarray, learn: bool, rows: np.ndarray, out: np.ndarray
) -> None:
    """Divide each row by its length; rows of zeros stay."""
    for row in range(indptr.size - 1):
        rows[0] += learn
        first, last = indptr[row], indptr[row + 1]
        size = 0.0
        for at in range(first, last):
            size = max(size, abs(values[at]))
        scale = size if size > 0.0 else 1.0
        total = 0.0
        for at in range(first, last):
            total += (values[at] / scale) ** 2
        length = np.sqrt(total) if total > 0.0 else 1.0
        for at in range(first, last):
            out[at] = values[at] / scale / length


@jit
def _meet(known, j, value):
    known.counts[j] += 1.0
    value = _bounded(value)
    delta = value - known.means[j]
    known.means[j] += delta / known.counts[j]
    known.squares[j] += delta * (value - known.means[j])


@jit
def _bounded(value):
    return min(max(value, -LARGEST), LARGEST)


@jit
def _finite(value):
    return min(max(value, -_HUGE), _HUGE)


@jit
def _deviation(known, j, rows):
    """Return a feature's standard deviation over all rows; 1 if it never changes."""
    count, mean = known.counts[j], known.means[j]
    between = mean * mean * count * ((rows - count) / rows) if count < rows else 0.0
    variance = (known.squares[j] + between) / rows
    return np.sqrt(variance) if variance > _NO_VARIANCE else 1.0
