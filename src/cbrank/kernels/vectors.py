"""Products and differences of dense and sparse rows.

Loops rather than ``np.dot``: Numba inlines them into the sweeps, and their sums do not depend on
the number of BLAS threads.
"""

import numpy as np

from cbrank.kernels._jit import allocating_jit, jit

# Rows whose median is taken as the origin: the median of nine stands up to four outliers, and more
# rows would cost more in each call.
_FEW = 9
# Share of non-zeros up to which products by the non-zeros alone are the faster ones, and the numbers
# from which it pays to count them. At 600 columns a row in ten non-zeros takes a tenth of the time.
SPARSE = 0.4
_SHORTEST = 24


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
    """Return mu . (x - b).

    Not as mu . x - mu . b: equal rows then have a margin of exactly zero, which is a tie, and rows
    that share a huge value lose no digits to it.
    """
    total = 0.0
    for i in range(mu.size):
        total += mu[i] * (x[i] - b[i])
    return total


@allocating_jit
def centre(X, rows, origin):
    """Write to `origin` the median, by column, of a few rows evenly spread over `rows`.

    The bounds |x - b| <= |x - r| + |b - r| of the sweeps are tight if the origin r lies amid the
    rows. A mean would follow an outlier or a sentinel value away from them.
    """
    few = min(rows.size, _FEW)
    values, picked = np.empty(few), np.empty(few, np.int64)
    for k in range(few):
        picked[k] = rows[k * (rows.size - 1) // max(few - 1, 1)]
    for i in range(origin.size):
        for k in range(few):
            value, place = X[picked[k], i], k
            # Insertion sort, as np.median would allocate an array for every column.
            while place > 0 and values[place - 1] > value:
                values[place] = values[place - 1]
                place -= 1
            values[place] = value
        origin[i] = values[few // 2]


@jit
def multiply(matrix, vector, out):
    """Write matrix . vector to `out`.

    Four rows at a time: each number of the vector is then loaded once for four products.
    """
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
def count_nonzeros(vector):
    """Return how many numbers are not zero."""
    count = 0
    for i in range(vector.size):
        count += vector[i] != 0.0
    return count


@allocating_jit
def multiply_by_nonzeros(Sigma, z, out):
    """Write Sigma . z to `out` as the sum of the rows of a symmetric Sigma where z is not zero.

    Four rows at a time: each number of `out` is then read and written once for four.
    """
    places, n = np.empty(z.size + 1, np.int64), 0
    for i in range(z.size):
        places[n] = i
        n += z[i] != 0.0
    for i in range(out.size):
        out[i] = 0.0
    k = 0
    while k + 4 <= n:
        p, q, r, s = places[k], places[k + 1], places[k + 2], places[k + 3]
        a, b, c, d = z[p], z[q], z[r], z[s]
        for i in range(out.size):
            out[i] += a * Sigma[p, i] + b * Sigma[q, i] + c * Sigma[r, i] + d * Sigma[s, i]
        k += 4
    while k < n:
        p = places[k]
        for i in range(out.size):
            out[i] += z[p] * Sigma[p, i]
        k += 1


@jit
def multiply_symmetric(Sigma, z, out):
    """Write Sigma . z to `out` for a symmetric Sigma, by the non-zeros of z where they are few."""
    if z.size >= _SHORTEST and count_nonzeros(z) <= SPARSE * z.size:
        multiply_by_nonzeros(Sigma, z, out)
    else:
        multiply(Sigma, z, out)


@jit
def multiply_two(matrix, one, other, out, other_out):
    """Write the products of a matrix with two vectors.

    Three rows at a time: the six running sums stay in registers, and each number of the matrix is
    loaded once for both vectors.
    """
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
    """Write the indices and values of x - b for two sparse rows; return how many there are.

    A merge of two sorted lists: indices of a row ascend.
    """
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
