"""Running statistics of columns, and rows scaled by them.

For each feature: count, mean and sum of squared deviations of its stored entries, by Welford's
recursion, which does not cancel. Rows without the entry count as zeros, which are added in closed
form when a deviation is needed: a sparse row costs no more than its non-zeros. Each row is scaled by
the statistics up to and including it, so that the result does not depend on how rows are chunked.
Finite numbers of any size give finite statistics and finite rows.
"""

from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import jit, kernel

# Larger numbers count as this one: the squares of 2^52 such numbers have a finite sum.
LARGEST = 1e145

_HUGE = np.finfo(np.float64).max
_NO_VARIANCE = 1e-300  # below, a column counts as constant: dividing by its root could overflow


class Moments(NamedTuple):
    """Running statistics of each feature."""

    rows: np.ndarray  # (1,) int64, number of rows
    counts: np.ndarray  # (d,) float64, number of stored entries
    means: np.ndarray  # (d,) float64, mean of the entries
    squares: np.ndarray  # (d,) float64, sum of their squared deviations from it


@kernel
def standard(X: np.ndarray, learn: bool, known: Moments, out: np.ndarray) -> None:
    """Centre rows and divide by the standard deviations; with `learn`, update these by each first."""
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
    """Divide sparse rows by the standard deviations; with `learn`, update these by each first."""
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
    """Divide rows by the largest absolute values; with `learn`, update these by each first."""
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
    """Divide sparse rows by the largest absolute values; with `learn`, update these by each first."""
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
    """Divide each row by its Euclidean length; rows of zeros stay.

    By its largest value first, so that no square overflows.
    """
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
    """Return a feature's standard deviation over all rows; 1 if it is constant."""
    count, mean = known.counts[j], known.means[j]
    # Stored entries and zeros are two groups: the variance within the first, and that between both.
    between = mean * mean * count * ((rows - count) / rows) if count < rows else 0.0
    variance = (known.squares[j] + between) / rows
    return np.sqrt(variance) if variance > _NO_VARIANCE else 1.0
