"""A covariance on its way through a sweep: pairs in groups of eight, updates that wait.

Within a group Sigma stays as it is and the updates wait as the rows of F, so that the covariance is
Sigma - F'F. What an update changes for the pairs to come, their margins and variances, is told by the
products of its Sigma z with all z of the group at once: a step waits for no sum over columns.

The products Sigma z are computed two at a time and updates applied four, or two, at a time: each number of
Sigma is then loaded, and stored, once for several. That is what limits a sweep of up to some hundred
columns, whose Sigma lies in a fast cache.

All rows are padded with zeros for SIMD. Sums are added up in one order whatever is computed beside
them, so that a pair has the same bits in any company: which pairs a sweep skips, and that depends on
how a stream is cut into calls, changes nothing.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._awake import aligned
from cbrank.kernels._jit import allocating_jit, jit, outlined_jit
from cbrank.kernels._simd import (
    WIDTH,
    fused,
    fused_minus,
    larger,
    load,
    load_strip,
    load_tile,
    lowest_bit,
    minus,
    no_tile,
    not_inlined,
    splat,
    store,
    store_strip,
    times,
    total,
    totals,
)
from cbrank.kernels.confidence import EPSILON, SMALLEST_VARIANCE

# Pairs of a group: one tile. With more, more updates wait and all that follow are corrected for them: 16 take
# as long, and 32 longer.
GROUP = WIDTH
# Share of non-zeros up to which products by the non-zeros alone are the faster ones, and the numbers
# from which it pays to count them.
_SPARSE = 0.5
_SHORTEST = 24


class Pending(NamedTuple):
    """The covariance, and the pairs of a group."""

    Sigma: np.ndarray  # (D, D) without the updates that wait
    left: np.ndarray  # (D,) variances of the weights now
    Z: np.ndarray  # (GROUP, D) x - b of the pairs of the group
    S: np.ndarray  # (GROUP, D) Sigma z, where it is needed, without the updates that wait
    F: np.ndarray  # (GROUP, D) the updates that wait
    products: np.ndarray  # (GROUP, GROUP) s.z of each update that waits, with all pairs
    weighed: np.ndarray  # (GROUP, GROUP) beta times that
    margin: np.ndarray  # (GROUP,) y mu.z of each pair now
    reach: np.ndarray  # (GROUP,) of each pair (see ``_reaches``)
    variance: np.ndarray  # (GROUP,) z' Sigma z now, where S is known
    square: np.ndarray  # (GROUP,) z.z, likewise
    own: np.ndarray  # (GROUP,) the pairs of the updates that wait
    n: np.ndarray  # (1,) how many wait
    every: np.ndarray  # (d,) all places; unsigned, so that no loop asks whether one is below 0
    places: np.ndarray  # (d,) scratch


@jit
def padded(d):
    """Return how many numbers a row of d is stored in."""
    return max(1, (d + WIDTH - 1) // WIDTH) * WIDTH


@allocating_jit
def begin(Sigma, d):
    """Return a padded covariance of d weights as one to which updates can be made."""
    D = Sigma.shape[0]
    room, pairs = aligned(3 * GROUP + 1, D), aligned(2 * GROUP + 4, GROUP)
    for i in range(d):
        room[-1, i] = Sigma[i, i]
    return Pending(
        Sigma,
        room[-1],
        room[:GROUP],
        room[GROUP : 2 * GROUP],
        room[2 * GROUP : -1],
        pairs[:GROUP],
        pairs[GROUP : 2 * GROUP],
        pairs[-4],
        pairs[-3],
        pairs[-2],
        pairs[-1],
        np.empty(GROUP, np.uint64),
        np.zeros(1, np.int64),
        np.arange(d).astype(np.uint64),
        np.empty(d + 1, np.uint64),
    )


@jit
def subtract(x, b, z):
    """Write x - b to `z`."""
    for i in range(0, z.size, WIDTH):
        store(z, i, minus(load(x, i), load(b, i)))


# Products -----------------------------------------------------------------------------------------


@outlined_jit
def _multiply_two(Sigma, z, y, places, s, r):
    """Write Sigma z and Sigma y, as sums of the rows `places` of a symmetric Sigma.

    The sums of two to four vectors of columns stay in registers: that many are needed for one step not
    to wait for the one before.
    """
    i, D = 0, s.size
    if D == WIDTH:
        s0 = r0 = splat(0.0)
        for k in range(places.size):
            row, one, other = Sigma[places[k]], splat(z[places[k]]), splat(y[places[k]])
            s0, r0 = fused(one, load(row, 0), s0), fused(other, load(row, 0), r0)
        store(s, 0, s0)
        store(r, 0, r0)
        return
    while D - i >= 6 * WIDTH or D - i == 4 * WIDTH:
        s0 = s1 = s2 = s3 = r0 = r1 = r2 = r3 = splat(0.0)
        for k in range(places.size):
            row, one, other = Sigma[places[k]], splat(z[places[k]]), splat(y[places[k]])
            c = load(row, i)
            s0, r0 = fused(one, c, s0), fused(other, c, r0)
            c = load(row, i + WIDTH)
            s1, r1 = fused(one, c, s1), fused(other, c, r1)
            c = load(row, i + 2 * WIDTH)
            s2, r2 = fused(one, c, s2), fused(other, c, r2)
            c = load(row, i + 3 * WIDTH)
            s3, r3 = fused(one, c, s3), fused(other, c, r3)
        store(s, i, s0)
        store(s, i + WIDTH, s1)
        store(s, i + 2 * WIDTH, s2)
        store(s, i + 3 * WIDTH, s3)
        store(r, i, r0)
        store(r, i + WIDTH, r1)
        store(r, i + 2 * WIDTH, r2)
        store(r, i + 3 * WIDTH, r3)
        i += 4 * WIDTH
    if D - i == 3 * WIDTH or D - i == 5 * WIDTH:
        s0 = s1 = s2 = r0 = r1 = r2 = splat(0.0)
        for k in range(places.size):
            row, one, other = Sigma[places[k]], splat(z[places[k]]), splat(y[places[k]])
            c = load(row, i)
            s0, r0 = fused(one, c, s0), fused(other, c, r0)
            c = load(row, i + WIDTH)
            s1, r1 = fused(one, c, s1), fused(other, c, r1)
            c = load(row, i + 2 * WIDTH)
            s2, r2 = fused(one, c, s2), fused(other, c, r2)
        store(s, i, s0)
        store(s, i + WIDTH, s1)
        store(s, i + 2 * WIDTH, s2)
        store(r, i, r0)
        store(r, i + WIDTH, r1)
        store(r, i + 2 * WIDTH, r2)
        i += 3 * WIDTH
    if D - i == 2 * WIDTH:
        s0 = s1 = r0 = r1 = splat(0.0)
        for k in range(places.size):
            row, one, other = Sigma[places[k]], splat(z[places[k]]), splat(y[places[k]])
            c = load(row, i)
            s0, r0 = fused(one, c, s0), fused(other, c, r0)
            c = load(row, i + WIDTH)
            s1, r1 = fused(one, c, s1), fused(other, c, r1)
        store(s, i, s0)
        store(s, i + WIDTH, s1)
        store(r, i, r0)
        store(r, i + WIDTH, r1)


@outlined_jit
def _multiply_one(Sigma, z, places, s):
    """Write Sigma z, with the same sums as `_multiply_two`.

    Eight vectors of columns at a time, of which those beyond the end of a row are of no use: with fewer, a
    step would wait for the one before.
    """
    not_inlined()
    for i in range(0, s.size, WIDTH * WIDTH):
        sums = no_tile()
        for k in range(places.size):
            sums = fused(splat(z[places[k]]), load_strip(Sigma[places[k]], i), sums)
        store_strip(s, i, sums)


@jit
def _find_places(pending, z, y):
    """Return how many places there are where one of two vectors is not zero; -1 if most are not."""
    places, n, d = pending.places, 0, pending.every.size
    if d < _SHORTEST:
        return -1
    for i in range(d):
        n += (z[i] != 0.0) | (y[i] != 0.0)
    if n > _SPARSE * d:
        return -1
    n = 0
    for i in range(d):
        places[n] = i
        n += (z[i] != 0.0) | (y[i] != 0.0)
    return n


@jit
def multiply(pending, z, y, s, r):
    """Write Sigma z and Sigma y, but for the updates that wait."""
    few = _find_places(pending, z, y)
    places = pending.every if few < 0 else pending.places[:few]
    _multiply_two(pending.Sigma, z, y, places, s, r)


@jit
def multiply_one(pending, z, s):
    """Write Sigma z, but for the updates that wait."""
    few = _find_places(pending, z, z)
    places = pending.every if few < 0 else pending.places[:few]
    _multiply_one(pending.Sigma, z, places, s)


@jit
def look_at(pending, pairs):
    """Compute Sigma z and variance of some pairs of the group, which are the bits of a number."""
    Z, S = pending.Z, pending.S
    while pairs:
        k = lowest_bit(pairs)
        pairs &= pairs - 1
        if pairs:
            m = lowest_bit(pairs)
            pairs &= pairs - 1
            multiply(pending, Z[k], Z[m], S[k], S[m])
            _note_variance(pending, m)
        else:
            multiply_one(pending, Z[k], S[k])
        _note_variance(pending, k)


@jit
def _note_variance(pending, k):
    """Note variance and z.z of a pair whose Sigma z is known, as updates one by one would have it."""
    z, s, n = pending.Z[k], pending.S[k], pending.n[0]
    variance = square = splat(0.0)
    for i in range(0, z.size, WIDTH):
        here = load(z, i)
        variance, square = fused(load(s, i), here, variance), fused(here, here, square)
    pending.square[k], pending.variance[k] = total(square), total(variance)
    if n:
        variance, scratch = splat(pending.variance[k]), pending.products[n]
        for q in range(n):
            less, across = load(pending.weighed[q], 0), load(pending.products[q], 0)
            variance = fused_minus(less, across, variance)
        store(scratch, 0, variance)
        pending.variance[k] = scratch[k]


@jit
def products_with(w, pending):
    """Return w.z of all pairs of the group."""
    sums = no_tile()
    for i in range(0, w.size, WIDTH):
        sums = fused(load(w, i), load_tile(pending.Z, 0, i), sums)
    return totals(sums)


# Updates ------------------------------------------------------------------------------------------


@jit
def update(pending, k, model, sign, alpha, beta, boost):
    """Update the model by a pair of the group; the change of Sigma waits.

    Margins and variances of the other pairs follow.
    """
    S, n, margin, variance = pending.S, pending.n[0], pending.margin, pending.variance
    s, least = S[k], 1.0 - beta * variance[k]
    if n:
        for i in range(0, s.size, WIDTH):
            here = load(s, i)
            for q in range(n):
                here = fused_minus(splat(pending.weighed[q, k]), load(S[pending.own[q]], i), here)
            store(s, i, here)
    across = products_with(s, pending)
    less = times(splat(beta), across)
    store(margin, 0, fused(splat(alpha), across, load(margin, 0)))
    store(variance, 0, fused_minus(less, across, load(variance, 0)))
    store(pending.products[n], 0, across)
    store(pending.weighed[n], 0, less)
    _move(pending, s, model, sign * alpha, boost, math.sqrt(beta), least)
    pending.own[n] = k
    pending.n[0] = n + 1


@jit
def _move(pending, s, model, step, boost, scale, least):
    """Move the mean by step times s, the Sigma z of a pair; let (scale s)(scale s)' wait for Sigma.

    In exact arithmetic no variance falls below the share `least` of what it was; that floor keeps
    rounding from making one negative.
    """
    f, left, mu, lag = pending.F[pending.n[0]], pending.left, model.mu, model.lag
    least, smallest = splat(max(least, EPSILON)), splat(SMALLEST_VARIANCE)
    ahead, behind, scaled = splat(step), splat(boost * step), splat(scale)
    for i in range(0, s.size, WIDTH):
        here, variance = load(s, i), load(left, i)
        store(mu, i, fused(ahead, here, load(mu, i)))
        store(lag, i, fused_minus(behind, here, load(lag, i)))
        change = times(scaled, here)
        store(f, i, change)
        floor = larger(times(least, variance), smallest)
        store(left, i, larger(fused_minus(change, change, variance), floor))


# Two vectors of columns stay in registers while the rows pass; of an odd number the last is alone. All
# leave Sigma exactly symmetric.


@outlined_jit
def _apply_one(Sigma, e, d):
    """Subtract ee'."""
    for i in range(d):
        row, a = Sigma[i], splat(e[i])
        for j in range(0, e.size, WIDTH):
            store(row, j, fused_minus(a, load(e, j), load(row, j)))


@outlined_jit
def _apply_two(Sigma, e, f, d):
    """Subtract ee' + ff'."""
    j, k, D = 0, WIDTH, e.size
    while k < D:
        e0, f0, e1, f1 = load(e, j), load(f, j), load(e, k), load(f, k)
        for i in range(d):
            row, a, b = Sigma[i], splat(e[i]), splat(f[i])
            store(row, j, fused_minus(b, f0, fused_minus(a, e0, load(row, j))))
            store(row, k, fused_minus(b, f1, fused_minus(a, e1, load(row, k))))
        j, k = j + 2 * WIDTH, k + 2 * WIDTH
    if j < D:
        e0, f0 = load(e, j), load(f, j)
        for i in range(d):
            row, a, b = Sigma[i], splat(e[i]), splat(f[i])
            store(row, j, fused_minus(b, f0, fused_minus(a, e0, load(row, j))))


@outlined_jit
def _apply_four(Sigma, e, f, g, h, d):
    """Subtract ee' + ff' + gg' + hh'."""
    j, k, D = 0, WIDTH, e.size
    while k < D:
        e0, f0, g0, h0 = load(e, j), load(f, j), load(g, j), load(h, j)
        e1, f1, g1, h1 = load(e, k), load(f, k), load(g, k), load(h, k)
        for i in range(d):
            row, a, b, p, q = Sigma[i], splat(e[i]), splat(f[i]), splat(g[i]), splat(h[i])
            first = fused_minus(b, f0, fused_minus(a, e0, load(row, j)))
            second = fused_minus(b, f1, fused_minus(a, e1, load(row, k)))
            store(row, j, fused_minus(q, h0, fused_minus(p, g0, first)))
            store(row, k, fused_minus(q, h1, fused_minus(p, g1, second)))
        j, k = j + 2 * WIDTH, k + 2 * WIDTH
    if j < D:
        e0, f0, g0, h0 = load(e, j), load(f, j), load(g, j), load(h, j)
        for i in range(d):
            row, a, b, p, q = Sigma[i], splat(e[i]), splat(f[i]), splat(g[i]), splat(h[i])
            first = fused_minus(b, f0, fused_minus(a, e0, load(row, j)))
            store(row, j, fused_minus(q, h0, fused_minus(p, g0, first)))


@jit
def apply(pending):
    """Apply the updates that wait."""
    Sigma, F, n, d, q = pending.Sigma, pending.F, pending.n[0], pending.every.size, 0
    while q < n:
        if q + 1 == n:
            _apply_one(Sigma, F[q], d)
        elif q + 2 == n:
            _apply_two(Sigma, F[q], F[q + 1], d)
        else:
            for k in range(n, q + 4):
                for i in range(0, F.shape[1], WIDTH):
                    store(F[k], i, splat(0.0))
            _apply_four(Sigma, F[q], F[q + 1], F[q + 2], F[q + 3], d)
        q += 4
    if n:
        for i in range(d):
            Sigma[i, i] = pending.left[i]
    pending.n[0] = 0
