"""CBR with full covariance, a block of rows at a time: what ``full`` does, as matrix products.

All pairs of a sweep share the new row x, and few of them fire. So within a block Sigma stays as
it was and the updates wait as rows of F: the covariance is Sigma - F'F. A table T holds the
buffered rows and the block's, less an origin amid them, with P = T Sigma and A = T F'. For the pair
z = x - b then

    Sigma z = P_x - P_b - (A_x - A_b) F,    z' Sigma z = z.(P_x - P_b) - |A_x - A_b|^2,

which costs O(d) to look at and O(d |F|) to fire. In the end Sigma -= F'F and P -= A F.

Digits are lost in two ways, and both are watched, so that any columns give what ``full`` gives.
Where two rows are near each other and far from the origin (both hold a sentinel, say), P_x - P_b
cancels: such a pair is worked out from the rows themselves, as in ``full``. Where updates have eaten
most of a variance, what P holds of it is rounding: the block is settled and P computed anew.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import jit, kernel
from cbrank.kernels.buffers import row_weight, store
from cbrank.kernels.confidence import (
    EPSILON,
    ROWS,
    SMALLEST_VARIANCE,
    TIED,
    UPDATES,
    WIDEST,
    boost_of,
    count_pair,
    least_sound,
    narrow,
    narrowed,
    scw_step,
)
from cbrank.kernels.vectors import centre, dot, margin_of, multiply, multiply_two

WORTHWHILE = 128  # columns from which this is the faster way, if a sweep has some rows
FEWEST = 8
_LONGEST = 64  # rows of a block; four times as many where Sigma is far larger than a cache
_FAR_LARGER = 1000
_LASTING = 512  # rows for which P is kept up to date before it is computed anew
_LOST = 0.01  # share of a variance below which its digits are: two of sixteen may go
_NEAR = 1e-4  # share of squared sizes below which a pair is near: again two digits may go
_HUGE = 1e140  # size from which squares may overflow
_PANEL = 64  # rows of Sigma updated together
_BLUR = 8.0 * EPSILON  # a score's rounding for each column: of its sum and of the moves since
_TINY = 1e-160  # least scale of an update: its square is next to nothing, and still a number


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
    size: np.ndarray  # |T| in the variances alone: what rounding in P and A goes by
    origin: np.ndarray
    variances: np.ndarray  # (d,) when P of the buffered rows was computed
    left: np.ndarray  # (d,) and now
    s: np.ndarray  # (d,) Sigma z of a pair worked out from its rows
    z: np.ndarray  # (d,)
    found: np.ndarray  # (2, M + K + M) room for products
    n: np.ndarray  # (1,) updates that wait
    least: np.ndarray  # (1,) share of any variance that they leave
    worn: np.ndarray  # (1,) whether updates have eaten most of a variance
    blur: np.ndarray  # (1,) how far a score may be off by rounding, for a row of size 1


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
        np.empty(rows),
        np.zeros(d),
        np.empty(d),
        np.empty(d),
        np.empty(d),
        np.empty(d),
        np.empty((2, rows)),
        np.zeros(1, np.int64),
        np.ones(1),
        np.zeros(1, np.bool_),
        np.zeros(1),
    )


# The table -----------------------------------------------------------------------------------------


@jit
def _place(table, row, x):
    for i in range(x.size):
        table.T[row, i] = x[i] - table.origin[i]


@jit
def _measure(table, row):
    """Find the size of a row and a bound of its norm that rounding cannot undercut."""
    square, size = 0.0, 0.0
    for i in range(table.variances.size):
        square += table.T[row, i] * table.P[row, i]
        size += table.T[row, i] * table.T[row, i] * table.variances[i]
    rounding = EPSILON * table.variances.size**2 * size
    table.size[row], table.norm[row] = math.sqrt(size), math.sqrt(max(square, 0.0) + rounding)


@jit
def _project(table, Sigma, begin, end):
    """Compute P and the norms of some rows of the table."""
    product = np.dot(table.T[begin:end], Sigma)
    for row in range(begin, end):
        for i in range(Sigma.shape[0]):
            table.P[row, i] = product[row - begin, i]
        _measure(table, row)
        table.fresh[row] = table.norm[row]


@jit
def _first(table, buffer, label):
    """Return where the buffered rows of a class begin in the table."""
    return label * (table.T.shape[0] - buffer.rows.shape[1])


@jit
def _project_buffers(table, buffer, Sigma):
    for i in range(Sigma.shape[0]):
        table.variances[i] = table.left[i] = Sigma[i, i]
    table.worn[0] = False
    for label in range(2):
        first = _first(table, buffer, label)
        _project(table, Sigma, first, first + buffer.size[label])


@jit
def _begin(table, X, rows, buffer, Sigma):
    """Put the origin amid the rows to come, and the buffered rows into the table."""
    centre(X, rows, table.origin)
    for label in range(2):
        for slot in range(buffer.size[label]):
            _place(table, _first(table, buffer, label) + slot, buffer.rows[label, slot])
    _project_buffers(table, buffer, Sigma)


@jit
def _score(table, mu):
    """Compute the scores, and how far rounding may put them off."""
    square = 0.0
    for i in range(mu.size):
        square += mu[i] * mu[i] / table.variances[i]
    table.blur[0] = _BLUR * mu.size * math.sqrt(square)
    multiply(table.T, mu, table.score)


@jit
def _begin_block(table, X, rows, begin, model):
    """Put the rows of a block into the table."""
    for k in range(rows.size):
        _place(table, begin + k, X[rows[k]])
    _project(table, model.Sigma, begin, begin + rows.size)
    _score(table, model.mu)


@jit
def _take_in(table, row, source):
    """Copy a row of the block to its place in a buffer."""
    for i in range(table.T.shape[1]):
        table.T[row, i] = table.T[source, i]
        table.P[row, i] = table.P[source, i]
    for k in range(table.n[0]):
        table.A[row, k] = table.A[source, k]
    table.score[row], table.size[row] = table.score[source], table.size[source]
    table.norm[row], table.fresh[row] = table.norm[source], table.fresh[source]


# A pair --------------------------------------------------------------------------------------------


@jit
def _ahead(table, x, b, new, old, mu):
    """Return how far x is ahead of b, zero without rounding where the rows are equal."""
    one, other = table.score[x], table.score[b]
    doubt = TIED * (abs(one) + abs(other)) + table.blur[0] * (table.size[x] + table.size[b])
    return one - other if abs(one - other) > doubt else margin_of(mu, new, old)


@jit
def _look(table, x, b, new, old, mu):
    """Return mu.z of a pair, the square of z, and z' Sigma z at the block's start and now."""
    ahead, square, before, change = 0.0, 0.0, 0.0, 0.0
    for i in range(mu.size):
        z = new[i] - old[i]
        ahead += mu[i] * z
        square += z * z
        before += z * (table.P[x, i] - table.P[b, i])
    for k in range(table.n[0]):
        change += (table.A[x, k] - table.A[b, k]) ** 2
    return ahead, square, before, before - change


@jit
def _is_wide(table, new, old):
    """Say whether a weight is too wide for a pair."""
    wide = False
    for i in range(new.size):
        wide |= narrowed(new[i] - old[i], table.left[i]) < 1.0
    return wide


@jit
def _is_rounding(table, new, old, square, variance):
    """Say whether z' Sigma z may be rounding, as `is_rounding` does."""
    if variance >= least_sound(square):
        return False
    square = 0.0
    for i in range(new.size):
        square += (new[i] - old[i]) ** 2 * table.left[i]
    return not variance >= least_sound(square)


@jit
def _is_near(table, x, b, new, old, before):
    """Say whether rows are so near, for how far they are from the origin, that digits are lost."""
    sizes = table.size[x] + table.size[b]
    if before >= _NEAR * new.size * sizes * sizes and sizes < _HUGE:
        return False  # as |z|^2 in Sigma is at most d times that in the variances
    square = 0.0
    for i in range(new.size):
        square += (new[i] - old[i]) ** 2 * table.variances[i]
    return not (square >= _NEAR * sizes * sizes and sizes < _HUGE)


@jit
def _difference(table, new, old):
    """Write z; say whether it is not zero."""
    differ = False
    for i in range(new.size):
        table.z[i] = new[i] - old[i]
        differ |= table.z[i] != 0.0
    return differ


@jit
def _look_closely(table, new, old, Sigma):
    """Work Sigma z out from the rows of a pair; return z' Sigma z at the block's start and now."""
    z, s, F, change = table.z, table.s, table.F, 0.0
    if not _difference(table, new, old):
        return 0.0, 0.0
    multiply(Sigma, z, s)
    before = dot(z, s)
    for k in range(table.n[0]):
        c = dot(F[k], z)
        change += c * c
        for i in range(s.size):
            s[i] -= c * F[k, i]
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
def _fire(table, x, first, size, sign, alpha, beta, model, boost):
    """Update the ranker with one pair (Proposition 1), whose Sigma z is the next row of F."""
    n, scale = table.n[0], max(math.sqrt(beta), _TINY)
    f, gain, worn = table.F[n], sign * alpha / scale, False
    for i in range(f.size):
        f[i] *= scale
        model.mu[i] += gain * f[i]
        table.left[i] -= f[i] * f[i]
        worn |= table.left[i] < _LOST * table.variances[i]
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
    table.blur[0] += _BLUR * f.size**1.5 * abs(gain)  # f is at most sqrt(d) long in the variances
    table.n[0], table.worn[0] = n + 1, worn
    model.tally[UPDATES] += 1


@jit
def _meet(table, x, b, new, old, first, size, sign, C, phi, model, boost):
    """Meet the row x with a buffered one; say if the block has to be settled, to do it anew."""
    n, near = table.n[0], False
    ahead, square, before, variance = _look(table, x, b, new, old, model.mu)
    if _is_near(table, x, b, new, old, before):
        near = True
        before, variance = _look_closely(table, new, old, model.Sigma)
    if _is_rounding(table, new, old, square, variance):
        return False
    if n and before > 0.0 and not variance >= _LOST * before:
        return True
    alpha, beta = scw_step(sign * ahead, variance, C, phi)
    if alpha > 0.0:
        if square > WIDEST**2 and _is_wide(table, new, old):
            if n == 0:
                _difference(table, new, old)
                narrow(model, table.z)
            return True
        if n == table.F.shape[0]:
            return True
        if near:
            for i in range(table.s.size):
                table.F[n, i] = table.s[i]
        else:
            _sigma_z(table, x, b, table.F[n])
        _fire(table, x, first, size, sign, alpha, beta, model, boost)
        table.least[0] *= 1.0 - beta * variance
    return False


# A row ---------------------------------------------------------------------------------------------


@jit
def _sweep(table, x, new, others, first, size, oldest, k, sign, C, phi, model, boost):
    """Meet the row x with buffered ones, the k-th oldest first; return where it has to stop."""
    while k < size and not table.worn[0]:
        slot = (oldest + k) % size
        b = first + slot
        doubt = table.blur[0] * (table.size[x] + table.size[b])
        margin = sign * (table.score[x] - table.score[b]) - doubt
        if not margin >= phi * (table.norm[x] + table.norm[b]) and _meet(
            table, x, b, new, others[slot], first, size, sign, C, phi, model, boost
        ):
            return k
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
    if table.n[0] == 0:
        return
    d, least = Sigma.shape[0], max(table.least[0], EPSILON)
    columns = table.F[: table.n[0]].T.copy()
    for begin in range(0, d, _PANEL):
        end = min(begin + _PANEL, d)
        change = np.dot(columns[begin:end], columns[:end].T)
        for i in range(begin, end):
            floor = max(least * Sigma[i, i], SMALLEST_VARIANCE)
            for j in range(end):
                Sigma[i, j] -= change[i - begin, j]
            Sigma[i, i] = max(Sigma[i, i], floor)
        for j in range(end):
            for i in range(max(begin, j + 1), end):
                Sigma[j, i] = Sigma[i, j]
    table.n[0], table.least[0] = 0, 1.0


@jit
def _learn_row(table, x, new, end, label, C, buffer, model, phi):
    """Meet the row x of the table with the other class; settle the block where digits get lost."""
    other, sign, boost = 1 - label, 2.0 * label - 1.0, boost_of(model.tally[ROWS])
    own, first = _first(table, buffer, label), _first(table, buffer, other)
    others, oldest, size, k = buffer.rows[other], buffer.oldest[other], buffer.size[other], 0
    for slot in range(size):
        ahead = _ahead(table, x, first + slot, new, others[slot], model.mu)
        count_pair(model.tally, sign * ahead)
    while k < size:
        old = table.n[0]
        k = _sweep(table, x, new, others, first, size, oldest, k, sign, C, phi, model, boost)
        _spread(table, own, own + buffer.size[label], old)
        _spread(table, x + 1, end, old)
        if k < size or table.worn[0]:
            _apply(table, model.Sigma)
            _project_buffers(table, buffer, model.Sigma)
            _project(table, model.Sigma, x, end)
            _score(table, model.mu)
    model.tally[ROWS] += 1


# A block -------------------------------------------------------------------------------------------


@jit
def _follow(table, begin, end):
    """Bring P up to date with updates that wait; say whether much of it is lost to them."""
    n, lost = table.n[0], False
    change = np.dot(table.A[begin:end, :n].copy(), table.F[:n])
    for row in range(begin, end):
        for i in range(table.P.shape[1]):
            table.P[row, i] -= change[row - begin, i]
        _measure(table, row)
        lost |= not table.norm[row] ** 2 >= _LOST * table.fresh[row] ** 2
    return lost


@jit
def _end_block(table, buffer, Sigma):
    """Carry out what waits; say whether P has lost digits by it."""
    lost = False
    if table.n[0]:
        for label in range(2):
            first = _first(table, buffer, label)
            lost |= _follow(table, first, first + buffer.size[label])
        _apply(table, Sigma)
    return lost


@kernel
def learn(X, labels, weights, order, buffer, model, parameters):
    """Stream the rows `order` of `X` through CBR."""
    capacity = buffer.rows.shape[1]
    table = _new_table(X.shape[1], capacity)
    enough, longest = table.F.shape[0] - _LONGEST, table.T.shape[0] - 2 * capacity
    at, length, age = 0, 8, _LASTING
    while at < order.size:
        if age >= _LASTING:
            _begin(table, X, order[at : at + _LONGEST], buffer, model.Sigma)
            age = 0
        rows, done = order[at : at + length], 0
        _begin_block(table, X, rows, capacity, model)
        while done < rows.size and table.n[0] <= enough:
            row, x = rows[done], capacity + done
            if weights[row] > 0.0:
                label, new = labels[row], X[row]
                slot = store(buffer, label, new, parameters.reservoir)
                if slot >= 0:
                    _take_in(table, _first(table, buffer, label) + slot, x)
                C = parameters.C * row_weight(buffer, label, weights[row], parameters.balanced)
                end = capacity + rows.size
                _learn_row(table, x, new, end, label, C, buffer, model, parameters.phi)
            done += 1
        at, age = at + done, age + done
        length = max(4, min(longest, done * enough // max(table.n[0], 1)))
        if _end_block(table, buffer, model.Sigma):
            age = _LASTING
