"""Which pairs cannot update the model, by an upper bound of their variance.

With rows taken from a common origin, the variance of a pair z = x - b of a new row x with a buffered row
b is

    z' Sigma z = b' Sigma b - x' Sigma x + 2 z . Sigma x

Updates only shrink Sigma, so b' Sigma b of some rows ago is an upper bound of what it is now. With
Sigma x of the new row, which takes O(d^2) once, a pair takes O(d). One whose margin squared is at least
phi^2 times the sum, its *reach*, meets its constraint: to skip it changes no result. Where a weight is
narrowed (see ``confidence``) a variance may grow, and nothing is known of any pair until the squares
are computed anew.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._awake import aligned, capacity_of
from cbrank.kernels._jit import allocating_jit, jit
from cbrank.kernels._pending import multiply, multiply_one, subtract
from cbrank.kernels._simd import (
    WIDTH,
    at_least,
    fused,
    larger,
    load,
    load_tile,
    minus,
    no_tile,
    splat,
    store,
    store_tile,
    times,
    total,
    totals,
)
from cbrank.kernels.confidence import EPSILON, SMALLEST_VARIANCE
from cbrank.kernels.vectors import centre

_LARGEST = 1e300  # a reach beyond may have overflowed
_TINY = np.nextafter(0.0, 1.0)  # the least margin above 0
# Least variance that sizes go by. The floor of a variance may be above what an update leaves of it, by
# `SMALLEST_VARIANCE` at the most: with this much, what is added for rounding covers that too.
_LEAST = SMALLEST_VARIANCE / EPSILON


class Reaches(NamedTuple):
    """What is known of buffered rows, by class and slot, and of the new row."""

    known: np.ndarray  # (1,) whether anything is
    origin: np.ndarray  # (D,)
    square: np.ndarray  # (2, R) b' Sigma b of some rows ago, by slot of a ring (see ``_awake``)
    size: np.ndarray  # (2, R) root of the sum of b_i^2 Sigma_ii, likewise
    x: np.ndarray  # (2, D) rows, the new one first, less the origin
    y: np.ndarray  # (2, D) their Sigma x
    new: np.ndarray  # (2,) the square and the size of the new row


@allocating_jit
def nothing_known(D, slots):
    """Return what is known of pairs before anything was measured."""
    vectors = aligned(5, D)
    squares, sizes = np.zeros((2, slots)), np.zeros((2, slots))
    known, new = np.zeros(1, np.bool_), np.empty(2)
    return Reaches(known, vectors[0], squares, sizes, vectors[1:3], vectors[3:], new)


@jit
def _sizes(x, product, variances):
    """Return x' Sigma x, and the size of its terms: the root of the sum of x_i^2 Sigma_ii."""
    square = size = none = splat(0.0)
    for i in range(0, x.size, WIDTH):
        here, variance = load(x, i), larger(load(variances, i), splat(_LEAST))
        square = fused(here, load(product, i), square)
        size = fused(fused(here, here, none), variance, size)
    return total(square), math.sqrt(total(size))


@allocating_jit
def measure(reaches, rows, buffer, pending):
    """Compute the squares of the buffered rows; place the origin amid `rows` to come."""
    x, y = reaches.x, reaches.y
    centre(rows, np.arange(len(rows)), reaches.origin)
    for label in range(2):
        oldest, last = buffer.oldest[label], buffer.size[label] - 1
        for first in range(0, last + 1, 2):
            room = capacity_of(reaches.square)
            slots = (oldest + first) % room, (oldest + min(first + 1, last)) % room
            for k in range(2):
                subtract(buffer.rows[label, slots[k]], reaches.origin, x[k])
            multiply(pending, x[0], x[1], y[0], y[1])
            for k in range(2):
                found = _sizes(x[k], y[k], pending.left)
                _note(reaches, label, slots[k], found)
    reaches.known[0] = True


@jit
def look_at_new(reaches, row, pending):
    """Compute what is needed of a new row to know the reaches of its pairs."""
    x, y, new = reaches.x, reaches.y, reaches.new
    subtract(row, reaches.origin, x[0])
    multiply_one(pending, x[0], y[0])
    new[0], new[1] = _sizes(x[0], y[0], pending.left)


@jit
def _note(reaches, label, slot, found):
    """Note the square and the size of a buffered row, in both of its slots."""
    for place in (slot, slot + capacity_of(reaches.square)):
        reaches.square[label, place], reaches.size[label, place] = found


@jit
def keep_new(reaches, label, slot):
    """Note what is known of the new row, which was buffered."""
    _note(reaches, label, slot, (reaches.new[0], reaches.new[1]))


@jit
def look_ahead(reaches, label, slot, phi, sign, mu, x, rows, pending):
    """Compute z, margin and reach of a group of pairs, with the buffered rows from `slot` on.

    A reach is NaN where nothing is known.
    """
    y, ahead, across = reaches.y[0], no_tile(), no_tile()
    for i in range(0, x.size, WIDTH):
        z = minus(load(x, i), load_tile(rows, slot, i))
        ahead, across = fused(load(mu, i), z, ahead), fused(load(y, i), z, across)
        store_tile(pending.Z, 0, i, z)
    store(pending.margin, 0, times(splat(sign), totals(ahead)))
    if not reaches.known[0]:
        store(pending.reach, 0, splat(np.nan))
        return
    new, d, two, none = reaches.new, x.size, splat(2.0), splat(0.0)
    square = fused(two, totals(across), minus(load(reaches.square[label], slot), splat(new[0])))
    # |Sigma_ij| <= sqrt(Sigma_ii Sigma_jj), so d times the product of two sizes bounds the sum of the
    # absolute terms of z . Sigma x, and d EPSILON times that its rounding error.
    size = minus(load(reaches.size[label], slot), splat(-new[1]))
    rounding = times(splat(4.0 * EPSILON * d * d), size)
    square = fused(rounding, size, larger(square, none))
    store(pending.reach, 0, times(splat(phi * phi), square))


@jit
def open_pairs(pending):
    """Return the pairs of a group, as bits, that may not meet their constraint."""
    margin, reach = load(pending.margin, 0), load(pending.reach, 0)
    met = at_least(times(margin, margin), reach) & at_least(margin, splat(_TINY))
    return ~(met & at_least(splat(_LARGEST), reach))
