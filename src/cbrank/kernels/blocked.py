"""CBR with full covariance, a block of rows at a time: what ``full`` does, as matrix products.

All pairs of a sweep share the new row x, and few of them fire. So within a block Sigma stays as
it was and the updates wait as rows of F: the covariance is Sigma - F'F. A table T holds the
buffered rows and the block's, with P = T Sigma and A = T F'. For the pair z = T_x - T_b then

    Sigma z = P_x - P_b - (A_x - A_b) F,    z' Sigma z = z.(P_x - P_b) - |A_x - A_b|^2,

which costs O(d) to look at and O(d |F|) to fire. In the end Sigma -= F'F and P -= A F. Rows of
the table are taken from an origin amid them, so that their differences lose no digits; where an
update has eaten most of a variance, the block is settled and P computed anew.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import jit, kernel
from cbrank.kernels.buffers import row_weight, store
from cbrank.kernels.confidence import (
    EPSILON,
    ROWS,
    TIED,
    UPDATES,
    boost_of,
    count_pair,
    norm_bound,
    scw_step,
)
from cbrank.kernels.vectors import centre, dot, margin_of, multiply, multiply_two

WORTHWHILE = 128  # columns from which this is the faster way, if a sweep has some rows
FEWEST = 8
_LONGEST = 64  # rows of a block; four times as many where Sigma is far larger than a cache
_FAR_LARGER = 1000
_LASTING = 512  # rows for which P is kept up to date before it is computed anew
_LOST = 0.01  # share of a variance below which its digits are
_PANEL = 64  # rows of Sigma updated together
_TINY = 1e-150  # below it, the change of Sigma is nothing and that of the mean would be lost


class _Table(NamedTuple):
    """The buffered rows of class 0, the rows of the block, the buffered rows of class 1."""

    T: np.ndarray  # (M + K + M, d) less the origin
    P: np.ndarray  # (M + K + M, d)
    A: np.ndarray  # (M + K + M, n)
    F: np.ndarray  # (n, d)
    gain: np.ndarray  # (n,) how far the mean moved along each row of F
    score: np.ndarray  # mu . T
    norm: np.ndarray  # bounds of |T| in Sigma, now
    fresh: np.ndarray  # and when P was computed
    origin: np.ndarray
    found: np.ndarray  # (2, M + K + M) room for products
    n: np.ndarray  # (1,) updates that wait
    least: np.ndarray  # (1,) share of any variance that they leave


@jit
def _new_table(d, capacity):
    waiting = _LONGEST + max(64, min(d // 4, 512))
    rows = 2 * capacity + (_LONGEST if d < _FAR_LARGER else 4 * _LONGEST)
    return _Table(
        np.empty((rows, d)),
        np.empty((rows, d)),
        np.empty((rows, waiting)),
        np.empty((waiting, d)),
        np.empty(waiting),
        np.empty(rows),
        np.empty(rows),
        np.empty(rows),
        np.zeros(d),
        np.empty((2, rows)),
        np.zeros(1, np.int64),
        np.ones(1),
    )


@jit
def _place(table, row, x):
    for i in range(x.size):
        table.T[row, i] = x[i] - table.origin[i]


@jit
def _project(table, Sigma, begin, end):
    """Compute P and the norms of some rows of the table."""
    product = np.dot(table.T[begin:end], Sigma)
    for row in range(begin, end):
        for i in range(Sigma.shape[0]):
            table.P[row, i] = product[row - begin, i]
        table.norm[row] = table.fresh[row] = norm_bound(table.T[row], table.P[row], Sigma)


@jit
def _take_in(table, row, source):
    """Copy a row of the block to its place in a buffer."""
    for i in range(table.T.shape[1]):
        table.T[row, i] = table.T[source, i]
        table.P[row, i] = table.P[source, i]
    for k in range(table.n[0]):
        table.A[row, k] = table.A[source, k]
    table.score[row] = table.score[source]
    table.norm[row], table.fresh[row] = table.norm[source], table.fresh[source]


@jit
def _ahead(table, x, b, mu):
    """Return how far x is ahead of b, zero without rounding where the rows are equal."""
    one, other = table.score[x], table.score[b]
    if abs(one - other) <= TIED * (abs(one) + abs(other)):
        return margin_of(mu, table.T[x], table.T[b])
    return one - other


@jit
def _variance(table, x, b):
    """Return z' Sigma z of a pair, at the block's start and now."""
    before, change = 0.0, 0.0
    for i in range(table.T.shape[1]):
        before += (table.T[x, i] - table.T[b, i]) * (table.P[x, i] - table.P[b, i])
    for k in range(table.n[0]):
        change += (table.A[x, k] - table.A[b, k]) ** 2
    return before, before - change


@jit
def _sigma_z(table, x, b, s):
    """Write Sigma z of a pair as it is now."""
    A, F, P, n, k = table.A, table.F, table.P, table.n[0], 0
    for i in range(s.size):
        s[i] = P[x, i] - P[b, i]
    while k + 4 <= n:
        c0, c1 = A[x, k] - A[b, k], A[x, k + 1] - A[b, k + 1]
        c2, c3 = A[x, k + 2] - A[b, k + 2], A[x, k + 3] - A[b, k + 3]
        for i in range(s.size):
            s[i] -= c0 * F[k, i] + c1 * F[k + 1, i] + c2 * F[k + 2, i] + c3 * F[k + 3, i]
        k += 4
    while k < n:
        c = A[x, k] - A[b, k]
        for i in range(s.size):
            s[i] -= c * F[k, i]
        k += 1


@jit
def _fire(table, x, b, first, size, sign, alpha, beta, model, boost):
    """Update the ranker with one pair (Proposition 1), the covariance by a row of F."""
    n, scale = table.n[0], max(math.sqrt(beta), _TINY)
    f, gain = table.F[n], sign * alpha / scale
    _sigma_z(table, x, b, f)
    for i in range(f.size):
        f[i] *= scale
        model.mu[i] += gain * f[i]
    for i in range(model.lag.size):
        model.lag[i] -= boost * gain * f[i]
    ahead = table.found[0]
    multiply(table.T[first : first + size], f, ahead)
    for k in range(size):
        table.A[first + k, n] = ahead[k]
        table.score[first + k] += gain * ahead[k]
    table.A[x, n] = dot(table.T[x], f)
    table.score[x] += gain * table.A[x, n]
    table.gain[n] = gain
    table.n[0] = n + 1
    model.tally[UPDATES] += 1


@jit
def _sweep(table, x, first, size, oldest, k, sign, C, phi, model, boost):
    """Meet the row x with buffered ones, the k-th oldest first; return where it has to stop."""
    while k < size:
        b = first + (oldest + k) % size
        margin = sign * (table.score[x] - table.score[b])
        if not margin >= phi * (table.norm[x] + table.norm[b]):
            before, variance = _variance(table, x, b)
            if table.n[0] and variance < _LOST * before and before > 0.0:
                return k
            alpha, beta = scw_step(margin, variance, C, phi)
            if alpha > 0.0:
                if table.n[0] == table.F.shape[0]:
                    return k
                _fire(table, x, b, first, size, sign, alpha, beta, model, boost)
                table.least[0] *= 1.0 - beta * variance
        k += 1
    return k


@jit
def _spread(table, begin, end, old):
    """Tell rows of the table of the updates from `old` on."""
    T, F, found, n, k = table.T[begin:end], table.F, table.found, table.n[0], old
    while k < n:
        two = k + 1 < n
        if two:
            multiply_two(T, F[k], F[k + 1], found[0], found[1])
        else:
            multiply(T, F[k], found[0])
        for j in range(1 + two):
            for row in range(begin, end):
                table.A[row, k + j] = found[j, row - begin]
                table.score[row] += table.gain[k + j] * found[j, row - begin]
        k += 2


@jit
def _apply(table, Sigma):
    """Carry out the updates that wait."""
    d, least = Sigma.shape[0], max(table.least[0], EPSILON)
    columns = table.F[: table.n[0]].T.copy()
    for begin in range(0, d, _PANEL):
        end = min(begin + _PANEL, d)
        change = np.dot(columns[begin:end], columns[:end].T)
        for i in range(begin, end):
            floor = least * Sigma[i, i]
            for j in range(end):
                Sigma[i, j] -= change[i - begin, j]
            Sigma[i, i] = max(Sigma[i, i], floor)
        for j in range(end):
            for i in range(max(begin, j + 1), end):
                Sigma[j, i] = Sigma[i, j]
    table.n[0], table.least[0] = 0, 1.0


@jit
def _follow(table, begin, end, Sigma):
    """Bring P up to date with updates that wait; say whether much of it is lost to them."""
    n, lost = table.n[0], False
    change = np.dot(table.A[begin:end, :n].copy(), table.F[:n])
    for row in range(begin, end):
        for i in range(Sigma.shape[0]):
            table.P[row, i] -= change[row - begin, i]
        table.norm[row] = norm_bound(table.T[row], table.P[row], Sigma)
        lost |= table.norm[row] ** 2 < _LOST * table.fresh[row] ** 2
    return lost


@jit
def _first(table, buffer, label):
    """Return where the buffered rows of a class begin in the table."""
    return label * (table.T.shape[0] - buffer.rows.shape[1])


@jit
def _project_buffers(table, buffer, Sigma):
    for label in range(2):
        first = _first(table, buffer, label)
        _project(table, Sigma, first, first + buffer.size[label])


@jit
def _begin(table, X, order, buffer):
    """Put the origin amid the rows to come, and the buffered rows into the table."""
    if order.size:
        centre(X, order[:_LONGEST], table.origin)
    for label in range(2):
        for slot in range(buffer.size[label]):
            _place(table, _first(table, buffer, label) + slot, buffer.rows[label, slot])


@jit
def _begin_block(table, X, rows, begin, model):
    """Put the rows of a block into the table."""
    for k in range(rows.size):
        _place(table, begin + k, X[rows[k]])
    _project(table, model.Sigma, begin, begin + rows.size)
    multiply(table.T, model.mu, table.score)


@jit
def _learn_row(table, x, end, label, C, buffer, model, phi):
    """Meet the row x of the table with the other class; settle the block where digits get lost."""
    other, sign, boost = 1 - label, 2.0 * label - 1.0, boost_of(model.tally[ROWS])
    own, first = _first(table, buffer, label), _first(table, buffer, other)
    size, k = buffer.size[other], 0
    for b in range(first, first + size):
        count_pair(model.tally, sign * _ahead(table, x, b, model.mu))
    while k < size:
        old = table.n[0]
        k = _sweep(table, x, first, size, buffer.oldest[other], k, sign, C, phi, model, boost)
        _spread(table, own, own + buffer.size[label], old)
        _spread(table, x + 1, end, old)
        if k < size:
            _apply(table, model.Sigma)
            _project_buffers(table, buffer, model.Sigma)
            _project(table, model.Sigma, x, end)
    model.tally[ROWS] += 1


@jit
def _end_block(table, buffer, Sigma):
    """Carry out what waits; say whether P has lost digits by it."""
    lost = False
    if table.n[0]:
        for label in range(2):
            first = _first(table, buffer, label)
            lost |= _follow(table, first, first + buffer.size[label], Sigma)
        _apply(table, Sigma)
    return lost


@kernel
def learn(X, labels, weights, order, buffer, model, parameters):
    """Stream the rows `order` of `X` through CBR."""
    capacity = buffer.rows.shape[1]
    table = _new_table(X.shape[1], capacity)
    enough, longest = table.F.shape[0] - _LONGEST, table.T.shape[0] - 2 * capacity
    _begin(table, X, order, buffer)
    at, length, age = 0, 8, _LASTING
    while at < order.size:
        if age >= _LASTING:
            _project_buffers(table, buffer, model.Sigma)
            age = 0
        rows, done = order[at : at + length], 0
        _begin_block(table, X, rows, capacity, model)
        while done < rows.size and table.n[0] <= enough:
            row, x = rows[done], capacity + done
            if weights[row] > 0.0:
                label = labels[row]
                slot = store(buffer, label, X[row], parameters.reservoir)
                if slot >= 0:
                    _take_in(table, _first(table, buffer, label) + slot, x)
                C = parameters.C * row_weight(buffer, label, weights[row], parameters.balanced)
                _learn_row(table, x, capacity + rows.size, label, C, buffer, model, parameters.phi)
            done += 1
        at, age = at + done, age + done
        length = max(4, min(longest, done * enough // max(table.n[0], 1)))
        if _end_block(table, buffer, model.Sigma):
            age = _LASTING
