"""Which pairs cannot update the model, by a covariance of some rows ago.

Updates only shrink Sigma, so z' Sigma z of an earlier Sigma is an upper bound of a pair's variance. For
buffered rows b and a new row x, less a common origin, it takes O(d) for each pair once Sigma b is known:

    (x - b)' Sigma (x - b) = x' Sigma x + b' Sigma b - 2 x . Sigma b

A pair whose margin squared is at least phi^2 times that, its *reach*, meets its constraint. Skipping by
this bound changes no result. Where a weight is narrowed (see ``confidence``) a variance may grow, and
nothing is known of any pair until the norms are computed anew.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._awake import aligned
from cbrank.kernels._jit import allocating_jit, jit
from cbrank.kernels._pending import margin_of, multiply_two, subtract
from cbrank.kernels._simd import WIDTH, fused, load, minus, splat, store, total
from cbrank.kernels.confidence import EPSILON
from cbrank.kernels.vectors import centre

_LARGEST = 1e300  # a reach beyond may have overflowed


class Reaches(NamedTuple):
    """What is known of buffered rows, by class and slot, and of the new row."""

    known: np.ndarray  # (1,) whether anything is
    origin: np.ndarray  # (D,)
    Sigma: np.ndarray  # (D, D) of some rows ago
    variances: np.ndarray  # (D,)
    every: np.ndarray  # (d,)
    product: np.ndarray  # (2, M, D) Sigma b
    square: np.ndarray  # (2, M) b' Sigma b
    size: np.ndarray  # (2, M) root of the sum of b_i^2 Sigma_ii
    x: np.ndarray  # (2, D) rows, the new one first, less the origin
    y: np.ndarray  # (2, D) their Sigma x
    new: np.ndarray  # (2,) the square and the size of the new row


@allocating_jit
def nothing_known(D, d, capacity, room):
    """Return what is known of pairs before anything was measured; nothing ever will be without room."""
    D, M = (D, capacity) if room else (0, 0)
    vectors = aligned(6, D)
    return Reaches(
        np.zeros(1, np.bool_),
        vectors[0],
        aligned(D, D),
        vectors[1],
        np.arange(d),
        aligned(2 * M, D).reshape(2, M, D),
        np.zeros((2, M)),
        np.zeros((2, M)),
        vectors[2:4],
        vectors[4:],
        np.zeros(2),
    )


@jit
def _sizes(x, product, variances):
    """Return x' Sigma x, and the size of its terms: the root of the sum of x_i^2 Sigma_ii."""
    square = size = none = splat(0.0)
    for i in range(0, x.size, WIDTH):
        here = load(x, i)
        square = fused(here, load(product, i), square)
        size = fused(fused(here, here, none), load(variances, i), size)
    return total(square), math.sqrt(total(size))


@jit
def _note(reaches, label, slot, product, square, size):
    reaches.square[label, slot], reaches.size[label, slot] = square, size
    kept = reaches.product[label, slot]
    for i in range(0, product.size, WIDTH):
        store(kept, i, load(product, i))


@allocating_jit
def measure(reaches, rows, buffer, Sigma):
    """Go by the Sigma of now, for buffered rows and `rows` to come, amid which the origin is placed."""
    x, y, every, variances = reaches.x, reaches.y, reaches.every, reaches.variances
    centre(rows, np.arange(len(rows)), reaches.origin)
    for i in range(every.size):
        variances[i] = Sigma[i, i]
        for j in range(every.size):
            reaches.Sigma[i, j] = Sigma[i, j]
    for label in range(2):
        size = buffer.size[label]
        for slot in range(0, size, 2):
            slots = slot, min(slot + 1, size - 1)
            for k in range(2):
                subtract(buffer.rows[label, slots[k]], reaches.origin, x[k])
            multiply_two(reaches.Sigma, x[0], x[1], every, y[0], y[1])
            for k in range(2):
                _note(reaches, label, slots[k], y[k], *_sizes(x[k], y[k], variances))
    reaches.known[0] = True


@jit
def look_at_new(reaches, row):
    """Compute what is needed of a new row to know the reaches of its pairs."""
    x, y, new = reaches.x, reaches.y, reaches.new
    subtract(row, reaches.origin, x[0])
    multiply_two(reaches.Sigma, x[0], x[0], reaches.every, y[0], y[1])
    new[0], new[1] = _sizes(x[0], y[0], reaches.variances)


@jit
def keep_new(reaches, label, slot):
    """Note what is known of the new row, which was buffered."""
    _note(reaches, label, slot, reaches.y[0], reaches.new[0], reaches.new[1])


@jit
def reach_and_margin(reaches, label, slot, phi, mu, row, b):
    """Return the reach of a pair, NaN if nothing is known of it, and mu . (x - b)."""
    ahead = across = splat(0.0)
    if not reaches.known[0]:
        return np.nan, margin_of(mu, row, b)
    x, product = reaches.x[0], reaches.product[label, slot]
    for i in range(0, x.size, WIDTH):
        ahead = fused(load(mu, i), minus(load(row, i), load(b, i)), ahead)
        across = fused(load(x, i), load(product, i), across)
    square = reaches.new[0] + reaches.square[label, slot] - 2.0 * total(across)
    # |Sigma_ij| <= sqrt(Sigma_ii Sigma_jj), so d times the product of two sizes bounds the sum of the
    # absolute terms of x' Sigma b, and d EPSILON times that its rounding error.
    size, d = reaches.new[1] + reaches.size[label, slot], reaches.every.size
    reach = phi * phi * (max(square, 0.0) + 4.0 * EPSILON * d * d * size * size)
    return reach if reach < _LARGEST else np.nan, total(ahead)


@jit
def is_beyond(margin, reach):
    """Say whether a pair with this margin meets its constraint whatever its variance."""
    return margin > 0.0 and margin * margin >= reach
