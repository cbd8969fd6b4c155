"""Products and differences of dense and sparse rows."""

import numpy as np

from cbrank.kernels._jit import jit

_FEW = 9  # rows whose median is an origin: four of them may be outliers


@jit
def dot(a, b):
    """Return a . b."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@jit
def dot_sparse(weights, indices, values):
    """Return weights . x of a sparse row x."""
    total = 0.0
    for k in range(indices.size):
        total += weights[indices[k]] * values[k]
    return total


@jit
def margin_of(mu, x, b):
    """Return mu . (x - b)."""
    total = 0.0
    for i in range(mu.size):
        total += mu[i] * (x[i] - b[i])
    return total


@jit
def centre(X, rows, origin):
    """Write, column by column, the median of a few of the rows: outliers cannot drag it away."""
    few = min(rows.size, _FEW)
    values = np.empty(few)
    for i in range(origin.size):
        for k in range(few):
            value, place = X[rows[k * (rows.size - 1) // max(few - 1, 1)], i], k
            while place > 0 and values[place - 1] > value:
                values[place] = values[place - 1]
                place -= 1
            values[place] = value
        origin[i] = values[few // 2]


@jit
def multiply(matrix, vector, out):
    """Write matrix . vector, four rows at a time so that each number of the vector is read once."""
    n, i = matrix.shape[0], 0
    while i + 4 <= n:
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for j in range(vector.size):
            a += matrix[i, j] * vector[j]
            b += matrix[i + 1, j] * vector[j]
            c += matrix[i + 2, j] * vector[j]
            d += matrix[i + 3, j] * vector[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, d
        i += 4
    while i < n:
        out[i] = dot(matrix[i], vector)
        i += 1


@jit
def multiply_two(matrix, one, other, out, other_out):
    """Write the products of a matrix with two vectors."""
    n, i = matrix.shape[0], 0
    while i + 3 <= n:
        a, b, c, d, e, f = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(one.size):
            a += matrix[i, j] * one[j]
            b += matrix[i + 1, j] * one[j]
            c += matrix[i + 2, j] * one[j]
            d += matrix[i, j] * other[j]
            e += matrix[i + 1, j] * other[j]
            f += matrix[i + 2, j] * other[j]
        out[i], out[i + 1], out[i + 2] = a, b, c
        other_out[i], other_out[i + 1], other_out[i + 2] = d, e, f
        i += 3
    while i < n:
        out[i], other_out[i] = dot(matrix[i], one), dot(matrix[i], other)
        i += 1


@jit
def difference(x_indices, x_values, b_indices, b_values, indices, values):
    """Write x - b of two sparse rows; return how many features it touches."""
    i, k, n = 0, 0, 0
    while i < x_indices.size or k < b_indices.size:
        if k == b_indices.size or (i < x_indices.size and x_indices[i] < b_indices[k]):
            indices[n], values[n] = x_indices[i], x_values[i]
            i += 1
        elif i == x_indices.size or b_indices[k] < x_indices[i]:
            indices[n], values[n] = b_indices[k], -b_values[k]
            k += 1
        else:
            indices[n], values[n] = x_indices[i], x_values[i] - b_values[k]
            i += 1
            k += 1
        n += 1
    return n
