"""The table of the blocked sweep: rows, their products with Sigma, and pending updates.

``blocked`` says what T, P, A and F are. Functions of a private module get no wrapper for calls from
Python (see ``_jit``).
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import allocating_jit, jit
from cbrank.kernels.confidence import EPSILON, SMALLEST_VARIANCE
from cbrank.kernels.vectors import (
    SPARSE,
    centre,
    count_nonzeros,
    multiply,
    multiply_by_nonzeros,
    multiply_two,
)

# Rows of a block: enough for efficient matrix products; the cost of each pending update grows with
# the number of those before it. Where Sigma is far larger than a cache (1,000 columns take
# 8 MB) reading it is what takes the time, and blocks are four times as long.
LONGEST = 64
_FAR_LARGER = 1000
# Share of a variance: with less of it left, more than two of its sixteen digits are lost.
LOST = 0.01
_PANEL = 64  # rows of Sigma updated by one product: all at once would need a second Sigma
# Rounding error of a score per column: of the sum mu.t, and of the updates added to it since.
BLUR = 8.0 * EPSILON


class Table(NamedTuple):
    """The working memory: M buffered rows of class 0, K rows of the block, M of class 1.

    This order makes the rows of the other class, and the rows yet to come, contiguous.
    """

    T: np.ndarray  # (M + K + M, d) rows less the origin
    P: np.ndarray  # (M + K + M, d) T Sigma
    A: np.ndarray  # (M + K + M, n) T F'
    F: np.ndarray  # (n, d) pending updates sqrt(beta) Sigma z: the covariance is Sigma - F'F
    gain: np.ndarray  # (n,) the mean moved by gain * F[k] in update k
    score: np.ndarray  # (M + K + M,) T mu
    norm: np.ndarray  # (M + K + M,) upper bounds of sqrt(t' Sigma t), now
    fresh: np.ndarray  # (M + K + M,) the same when P was computed
    size: np.ndarray  # (M + K + M,) sqrt(sum t_i^2 Sigma_ii): rounding in P and A is relative to it
    origin: np.ndarray  # (d,)
    variances: np.ndarray  # (d,) diagonal of Sigma when P of the buffered rows was computed
    left: np.ndarray  # (d,) diagonal of Sigma - F'F now
    s: np.ndarray  # (d,) Sigma z of a near pair
    z: np.ndarray  # (d,) and its z
    found: np.ndarray  # (2, M + K + M) scratch space for products
    n: np.ndarray  # (1,) number of pending updates
    least: np.ndarray  # (1,) lower bound of the share of any variance that they leave
    worn: np.ndarray  # (1,) whether they have left less than LOST of a weight's variance
    blur: np.ndarray  # (1,) bound of the rounding error of a score, for a row of size 1


@allocating_jit
def new_table(d, capacity):
    # Room in F. A block goes on until all but LONGEST of it are taken, so that a row seldom has
    # to apply updates in the middle of its sweep. More room makes for longer products, but
    # update k costs O(d k): a quarter of the columns, within bounds.
    waiting = LONGEST + max(64, min(d // 4, 512))
    rows = 2 * capacity + (LONGEST if d < _FAR_LARGER else 4 * LONGEST)
    return Table(
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


@jit
def place(table, row, x):
    for i in range(x.size):
        table.T[row, i] = x[i] - table.origin[i]


@jit
def measure(table, row):
    """Compute the size of a row and an upper bound of its norm, rounding included as in ``_reaches``."""
    square, size = 0.0, 0.0
    for i in range(table.variances.size):
        square += table.T[row, i] * table.P[row, i]
        size += table.T[row, i] * table.T[row, i] * table.variances[i]
    rounding = EPSILON * table.variances.size**2 * size
    table.size[row], table.norm[row] = math.sqrt(size), math.sqrt(max(square, 0.0) + rounding)


@allocating_jit
def project(table, Sigma, begin, end):
    """Compute P, sizes and norms of the rows from `begin` to `end`."""
    count = 0
    for row in range(begin, end):
        count += count_nonzeros(table.T[row])
    if count <= SPARSE * (end - begin) * Sigma.shape[0]:
        for row in range(begin, end):
            multiply_by_nonzeros(Sigma, table.T[row], table.P[row])
    else:
        product = np.dot(table.T[begin:end], Sigma)
        for row in range(begin, end):
            for i in range(Sigma.shape[0]):
                table.P[row, i] = product[row - begin, i]
    for row in range(begin, end):
        measure(table, row)
        table.fresh[row] = table.norm[row]


@jit
def first_row(table, buffer, label):
    """Return the first row of a class's buffer in the table."""
    return label * (table.T.shape[0] - buffer.rows.shape[1])


@jit
def part_of(table, buffer, label, part):
    """Return where in the table one of two parts of a class's buffered rows begins and ends.

    The first goes up to the last slot at the most; a queue goes on in its first slots.
    """
    first, room = first_row(table, buffer, label), buffer.rows.shape[1]
    end = buffer.oldest[label] + buffer.size[label]
    if part:
        return first, first + max(end - room, 0)
    return first + buffer.oldest[label], first + min(end, room)


@jit
def project_buffers(table, buffer, Sigma):
    for i in range(Sigma.shape[0]):
        table.variances[i] = table.left[i] = Sigma[i, i]
    table.worn[0] = False
    for label in range(2):
        for part in range(2):
            begin, end = part_of(table, buffer, label, part)
            project(table, Sigma, begin, end)


@allocating_jit
def begin_table(table, rows, buffer, Sigma):
    """Place the origin amid the next rows, and write the buffered rows to the table."""
    centre(rows, np.arange(len(rows)), table.origin)
    for label in range(2):
        first = first_row(table, buffer, label)
        for part in range(2):
            begin, end = part_of(table, buffer, label, part)
            for row in range(begin, end):
                place(table, row, buffer.rows[label, row - first])
    project_buffers(table, buffer, Sigma)


@jit
def score(table, mu):
    """Compute the scores and the bound of their rounding error.

    By Cauchy-Schwarz |mu.t| <= sqrt(sum mu_i^2 / Sigma_ii) sqrt(sum t_i^2 Sigma_ii), and the
    second factor is the size of t.
    """
    square = 0.0
    for i in range(mu.size):
        square += mu[i] * mu[i] / table.variances[i]
    table.blur[0] = BLUR * mu.size * math.sqrt(square)
    multiply(table.T, mu, table.score)


@jit
def begin_block(table, rows, begin, model):
    """Write the rows of a block to the table."""
    for k in range(len(rows)):
        place(table, begin + k, rows[k])
    project(table, model.Sigma, begin, begin + len(rows))
    score(table, model.mu)


@jit
def take_in(table, row, source):
    """Copy a row of the block to its slot in the buffer, with all that is known of it."""
    for i in range(table.T.shape[1]):
        table.T[row, i] = table.T[source, i]
        table.P[row, i] = table.P[source, i]
    for k in range(table.n[0]):
        table.A[row, k] = table.A[source, k]
    table.score[row], table.size[row] = table.score[source], table.size[source]
    table.norm[row], table.fresh[row] = table.norm[source], table.fresh[source]


@jit
def spread_buffer(table, buffer, label, old):
    """Bring the buffered rows of a class up to date."""
    for part in range(2):
        begin, end = part_of(table, buffer, label, part)
        spread(table, begin, end, old)


@jit
def spread(table, begin, end, old):
    """Bring A and the scores of some rows up to date with the updates from `old` on.

    Done once a sweep, two updates at a time, not at each update: T is read half as often.
    """
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


@allocating_jit
def apply_pending(table, Sigma):
    """Apply the pending updates: Sigma -= F'F.

    Panel by panel, and only the part up to the diagonal, which is then mirrored: half the work,
    and Sigma stays exactly symmetric. The floor of the diagonal is that of `shrink`.
    """
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


@allocating_jit
def follow(table, begin, end):
    """Apply the pending updates to P: P -= A F. Say whether a norm has lost its digits by that."""
    n, lost = table.n[0], False
    change = np.dot(table.A[begin:end, :n].copy(), table.F[:n])
    for row in range(begin, end):
        for i in range(table.P.shape[1]):
            table.P[row, i] -= change[row - begin, i]
        measure(table, row)
        lost |= not table.norm[row] ** 2 >= LOST * table.fresh[row] ** 2
    return lost


@jit
def end_block(table, buffer, Sigma):
    """Apply the pending updates to P and Sigma; say whether P has to be computed anew."""
    lost = False
    if table.n[0]:
        for label in range(2):
            for part in range(2):
                begin, end = part_of(table, buffer, label, part)
                lost |= end > begin and follow(table, begin, end)
        apply_pending(table, Sigma)
    return lost
