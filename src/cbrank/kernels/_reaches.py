"""Which pairs cannot update the model, by an upper bound of their variance.

With rows taken from a common origin, the variance of a pair of a new row x with a buffered row b is

    (x - b)' Sigma (x - b) = x' Sigma x + b' Sigma b - 2 b . Sigma x

Updates only shrink Sigma, so b' Sigma b of some rows ago is an upper bound of what it is now. With
Sigma x of the new row, which takes O(d^2) once, a pair takes O(d). One whose margin squared is at least
phi^2 times the sum, its *reach*, meets its constraint: to skip it changes no result. Where a weight is
narrowed (see ``confidence``) a variance may grow, and nothing is known of any pair until the squares
are computed anew.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._awake import aligned
from cbrank.kernels._jit import allocating_jit, jit
from cbrank.kernels._pending import margin_of, multiply, multiply_one, subtract
from cbrank.kernels._simd import WIDTH, fused, larger, load, minus, splat, total
from cbrank.kernels.confidence import EPSILON, SMALLEST_VARIANCE
from cbrank.kernels.vectors import centre

_LARGEST = 1e300  # a reach beyond may have overflowed
# Least variance that sizes go by. The floor of a variance may be above what an update leaves of it, by
# `SMALLEST_VARIANCE` at the most: with this much, what is added for rounding covers that too.
_LEAST = SMALLEST_VARIANCE / EPSILON


class Reaches(NamedTuple):
    """What is known of buffered rows, by class and slot, and of the new row."""

    known: np.ndarray  # (1,) whether anything is
    origin: np.ndarray  # (D,)
    square: np.ndarray  # (2, M) b' Sigma b of some rows ago
    size: np.ndarray  # (2, M) root of the sum of b_i^2 Sigma_ii, likewise
    x: np.ndarray  # (2, D) rows, the new one first, less the origin
    y: np.ndarray  # (2, D) their Sigma x
    new: np.ndarray  # (2,) the square and the size of the new row


@allocating_jit
def nothing_known(D, capacity):
    """Return what is known of pairs before anything was measured."""
    vectors = aligned(5, D)
    squares, sizes = np.empty((2, capacity)), np.empty((2, capacity))
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
    x, y, square, size = reaches.x, reaches.y, reaches.square, reaches.size
    centre(rows, np.arange(len(rows)), reaches.origin)
    for label in range(2):
        last = buffer.size[label] - 1
        for slot in range(0, last + 1, 2):
            slots = slot, min(slot + 1, last)
            for k in range(2):
                subtract(buffer.rows[label, slots[k]], reaches.origin, x[k])
            multiply(pending, x[0], x[1], y[0], y[1])
            for k in range(2):
                found = _sizes(x[k], y[k], pending.left)
                square[label, slots[k]], size[label, slots[k]] = found
    reaches.known[0] = True


@jit
def look_at_new(reaches, row, pending):
    """Compute what is needed of a new row to know the reaches of its pairs."""
    x, y, new = reaches.x, reaches.y, reaches.new
    subtract(row, reaches.origin, x[0])
    multiply_one(pending, x[0], y[0])
    new[0], new[1] = _sizes(x[0], y[0], pending.left)


@jit
def keep_new(reaches, label, slot):
    """Note what is known of the new row, which was buffered."""
    reaches.square[label, slot], reaches.size[label, slot] = reaches.new[0], reaches.new[1]


@jit
def reach_and_margin(reaches, label, slot, phi, mu, x, b):
    """Return the reach of a pair, NaN if nothing is known of it, and mu . (x - b)."""
    if not reaches.known[0]:
        return np.nan, margin_of(mu, x, b)
    product, ahead, across = reaches.y[0], splat(0.0), splat(0.0)
    for i in range(0, x.size, WIDTH):
        there = load(b, i)
        ahead = fused(load(mu, i), minus(load(x, i), there), ahead)
        across = fused(load(product, i), minus(there, load(reaches.origin, i)), across)
    square = reaches.new[0] + reaches.square[label, slot] - 2.0 * total(across)
    # |Sigma_ij| <= sqrt(Sigma_ii Sigma_jj), so d times the product of two sizes bounds the sum of the
    # absolute terms of b' Sigma x, and d EPSILON times that its rounding error.
    size, d = reaches.new[1] + reaches.size[label, slot], x.size
    reach = phi * phi * (max(square, 0.0) + 4.0 * EPSILON * d * d * size * size)
    return reach if reach < _LARGEST else np.nan, total(ahead)


@jit
def is_beyond(margin, reach):
    """Say whether a pair with this margin meets its constraint whatever its variance."""
    return margin > 0.0 and margin * margin >= reach
