"""Features of rows of a table: lines and pieces of curves, and indicators."""

from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import exact_jit, exact_kernel


class Singles(NamedTuple):
    """Values that have a feature of their own, and what gaps have, for each column of numbers."""

    gaps: np.ndarray  # the feature of a gap, or -1
    starts: np.ndarray  # of each column's values among all; the last is their number
    values: np.ndarray  # rising within a column
    features: np.ndarray
    hides: np.ndarray  # whether the value counts as a gap for the curve


class Ramps(NamedTuple):
    """Features of numbers: (clip((x * scale - low) / run, least, most) - base) * height."""

    features: np.ndarray
    places: np.ndarray  # the column of x
    scale: np.ndarray
    low: np.ndarray
    run: np.ndarray
    least: np.ndarray
    most: np.ndarray
    base: np.ndarray
    height: np.ndarray


@exact_kernel
def encode(numbers, marks, singles, ramps, X):
    """Write the features of rows into `X`, which is zero.

    `numbers` has a column for each of a table's; NaN is a gap. `marks` has features that are 1, or -1.
    """
    seen = np.empty(numbers.shape[1])
    for row in range(numbers.shape[0]):
        x = X[row]
        for column in range(numbers.shape[1]):
            seen[column] = _indicate(numbers[row, column], column, singles, x)
        for k in range(ramps.features.size):
            value = seen[ramps.places[k]]
            share = (value * ramps.scale[k] - ramps.low[k]) / ramps.run[k]
            share = min(max(share, ramps.least[k]), ramps.most[k])
            if not (np.isnan(value) or np.isnan(share)):
                x[ramps.features[k]] = (share - ramps.base[k]) * ramps.height[k]
        for k in range(marks.shape[1]):
            if marks[row, k] >= 0:
                x[marks[row, k]] = 1.0


@exact_jit
def _indicate(value, column, singles, x):
    """Mark a gap, or a value with a feature of its own; return the number that the curve sees."""
    if np.isnan(value):
        if singles.gaps[column] >= 0:
            x[singles.gaps[column]] = 1.0
        return value
    low, high = singles.starts[column], singles.starts[column + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if singles.values[middle] < value:
            low = middle + 1
        else:
            high = middle
    seen = value
    while low < end and singles.values[low] == value:
        x[singles.features[low]] = 1.0
        if singles.hides[low]:
            seen = np.nan
        low += 1
    return seen
