"""What is compiled for eight doubles, and for eight rows of them, is what NumPy computes."""

import numba
import numpy as np
import pytest

from cbrank.kernels import _simd as simd

load, store, load_tile, store_tile = simd.load, simd.store, simd.load_tile, simd.store_tile
load_strip, store_strip, no_tile, splat = (
    simd.load_strip,
    simd.store_strip,
    simd.no_tile,
    simd.splat,
)
fused, fused_minus, minus, times = simd.fused, simd.fused_minus, simd.minus, simd.times
larger, total, totals, at_least = simd.larger, simd.total, simd.totals, simd.at_least
lowest_bit = simd.lowest_bit


@numba.njit
def _products(matrix, first, w, out):
    """Write the products of eight rows with w, all at once and one by one."""
    sums = no_tile()
    for i in range(0, w.size, 8):
        sums = fused(load(w, i), load_tile(matrix, first, i), sums)
    store(out[0], 0, totals(sums))
    for k in range(8):
        alone = splat(0.0)
        for i in range(0, w.size, 8):
            alone = fused(load(w, i), load(matrix[first + k], i), alone)
        out[1, k] = total(alone)


@numba.njit
def _differences(x, rows, out):
    for i in range(0, x.size, 8):
        store_tile(out, 1, i, minus(load(x, i), load_tile(rows, 2, i)))


@numba.njit
def _strip(row, i, factor, out):
    store_strip(out, i, fused(splat(factor), load_strip(row, i), no_tile()))


@numba.njit
def _by_place(a, b, out):
    one, other = load(a, 0), load(b, 0)
    store(out[0], 0, times(one, other))
    store(out[1], 0, larger(one, other))
    store(out[2], 0, fused_minus(one, other, splat(1.0)))
    return at_least(one, other)


@numba.njit
def _lowest(bits):
    return lowest_bit(bits)


@pytest.mark.parametrize("width", [8, 24, 56, 104])
def test_sums_of_eight_rows_are_those_of_each_to_the_bit(width):
    rng = np.random.default_rng(width)
    matrix, w, out = rng.standard_normal((11, width)), rng.standard_normal(width), np.zeros((2, 8))
    _products(matrix, 3, w, out)
    np.testing.assert_array_equal(out[0], out[1])
    np.testing.assert_allclose(out[0], matrix[3:] @ w, rtol=0, atol=1e-13)


def test_a_row_less_eight_others():
    rng = np.random.default_rng(0)
    x, rows, out = rng.standard_normal(16), rng.standard_normal((10, 16)), np.full((9, 16), 7.0)
    _differences(x, rows, out)
    np.testing.assert_array_equal(out[1:], x - rows[2:])
    np.testing.assert_array_equal(out[0], 7.0)


@pytest.mark.parametrize("width", [8, 24, 64, 72, 104])
def test_strips_end_with_their_row(width):
    room = np.random.default_rng(0).standard_normal(width + 64)
    out = np.full(width + 8, 7.0)
    for i in range(0, width, 64):
        _strip(room[:width], i, 2.0, out[:width])
    np.testing.assert_array_equal(out, [*(2.0 * room[:width]), *[7.0] * 8])


def test_place_by_place():
    a = np.array([1.0, -2.0, 3.0, 0.0, np.inf, 5.0, np.nan, -0.0])
    b = np.array([1.0, 2.0, -3.0, 0.0, 1.0, np.nan, 1.0, 0.0])
    out = np.zeros((3, 8))
    bits = _by_place(a, b, out)
    with np.errstate(invalid="ignore"):
        assert [bool(bits >> k & 1) for k in range(8)] == (a >= b).tolist()
        np.testing.assert_array_equal(out[0], a * b)
        np.testing.assert_array_equal(out[1], np.where(a > b, a, b))
        np.testing.assert_array_equal(out[2], 1.0 - a * b)


@pytest.mark.parametrize("place", [0, 1, 7, 40, 62])
def test_the_lowest_bit(place):
    assert _lowest(1 << place) == _lowest((1 << place) | (1 << 62)) == place
