"""Standard deviations of scores: sqrt(x' Sigma x) of each row x."""

import math

import numpy as np

from cbrank.kernels._jit import kernel


@kernel
def deviations(X, Sigma, std):
    """Write sqrt(x' Sigma x) of each row into `std`, by the features that are not zero.

    Rows of curves and words have few: of d features k, and then k^2 / 2 terms in the place of d^2.
    A row's own does not depend on those beside it.
    """
    n_rows, width = X.shape
    at = np.empty(width, np.int64)
    held = np.empty(width)
    for row in range(n_rows):
        count = 0
        for j in range(width):
            if X[row, j] != 0.0:
                at[count] = j
                held[count] = X[row, j]
                count += 1
        total = 0.0
        for a in range(count):
            line, part = Sigma[at[a]], 0.0
            for b in range(a):
                part += line[at[b]] * held[b]
            total += held[a] * (2.0 * part + held[a] * line[at[a]])
        std[row] = math.sqrt(max(total, 0.0))
