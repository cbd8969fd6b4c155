"""Eight doubles at a time, for rows that are padded to multiples of eight, and for eight rows at once.

The compiler makes SIMD code of plain loops too, but it must first ask, at each loop, whether arrays
overlap and how many numbers are left over: for rows of fifty numbers that takes as long as the numbers
themselves. A machine with shorter vectors takes several for eight doubles.

A *tile* is eight numbers of each of eight rows that follow one another in a matrix. Sums of eight rows
stay apart until their end, and are then added up together, which takes fewer steps than one by one. The
functions mean what they say in Python, which is what runs with ``NUMBA_DISABLE_JIT=1``.
"""

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic, models, register_model

WIDTH = 8


def load(row, i):
    """Return the eight numbers of a row from `i` on."""
    return row[i : i + WIDTH].copy()


def store(row, i, eight):
    """Write eight numbers to a row from `i` on."""
    row[i : i + WIDTH] = eight


def splat(number):
    """Return a number eight times."""
    return number


def load_tile(matrix, row, i):
    """Return the eight numbers from `i` on of each of the eight rows from `row` on."""
    return matrix[row : row + WIDTH, i : i + WIDTH].copy()


def store_tile(matrix, row, i, tile):
    """Write eight numbers of each of eight rows."""
    matrix[row : row + WIDTH, i : i + WIDTH] = tile


def load_strip(row, i):
    """Return the 64 numbers of a row from `i` on, as a tile; those beyond its end may be any."""
    return np.append(row[i : i + WIDTH**2], np.zeros(WIDTH**2))[: WIDTH**2].reshape(WIDTH, WIDTH)


def store_strip(row, i, tile):
    """Write the 64 numbers of a tile to a row from `i` on, as far as it goes."""
    row[i : i + WIDTH**2] = tile.ravel()[: len(row) - i]


def no_tile():
    """Return a tile of zeros."""
    return np.zeros((WIDTH, WIDTH))


def fused(a, b, c):
    """Return a b + c; b and c may be tiles."""
    return a * b + c


def fused_minus(a, b, c):
    """Return c - a b."""
    return c - a * b


def minus(a, b):
    """Return a - b; b may be a tile."""
    return a - b


def times(a, b):
    """Return a b."""
    return a * b


def larger(a, b):
    """Return the larger of the numbers of a and b, place by place."""
    return np.maximum(a, b)


def total(eight):
    """Return the sum of eight numbers."""
    return eight.sum()


def totals(tile):
    """Return the sums of the rows of a tile, each as `total` adds it up."""
    return tile.sum(axis=1)


def at_least(a, b):
    """Return a number whose bits say where a >= b: the lowest for the first place."""
    return int(np.dot(a >= b, 1 << np.arange(WIDTH)))


def lowest_bit(bits):
    """Return the place of the lowest bit that is set."""
    return int(bits & -bits).bit_length() - 1


def not_inlined():
    """Keep the function that calls this from being compiled into others, where it would take registers."""


# What is compiled in their place ------------------------------------------------------------------


class _Doubles(types.Type):
    def __init__(self, name: str) -> None:
        super().__init__(name=f"cbrank.{name}")


class _Eight(_Doubles):
    pass


class _Tile(_Doubles):
    pass


_EIGHT, _VECTOR = _Eight("eight_doubles"), ir.VectorType(ir.DoubleType(), WIDTH)
_TILE, _VECTORS = _Tile("tile_of_doubles"), ir.ArrayType(_VECTOR, WIDTH)


@register_model(_Eight)
class _EightModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, _VECTOR)


@register_model(_Tile)
class _TileModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, _VECTORS)


def _place(context: Any, builder: Any, signature: Any, row: Any, index: Any) -> Any:
    """Return where eight numbers of a row lie."""
    array = context.make_array(signature.args[0])(context, builder, row)
    return builder.bitcast(builder.gep(array.data, [index]), _VECTOR.as_pointer())


def _places(context: Any, builder: Any, signature: Any, matrix: Any, row: Any, index: Any) -> Any:
    """Yield where eight numbers of each of eight rows lie."""
    array = context.make_array(signature.args[0])(context, builder, matrix)
    width = cgutils.unpack_tuple(builder, array.shape, 2)[1]
    at = builder.add(builder.mul(row, width), index)
    for _ in range(WIDTH):
        yield builder.bitcast(builder.gep(array.data, [at]), _VECTOR.as_pointer())
        at = builder.add(at, width)


def _each(builder: Any, operation: Any, kind: Any, *args: Any) -> Any:
    """Return what an operation makes of vectors; where tiles are among them, a tile."""
    if kind is not _TILE:
        return operation(*args)
    tile = ir.Constant(_VECTORS, ir.Undefined)
    for k in range(WIDTH):
        own = [builder.extract_value(a, k) if a.type == _VECTORS else a for a in args]
        tile = builder.insert_value(tile, operation(*own), k)
    return tile


@intrinsic
def _load(typing, row, i):  # noqa: ARG001
    def emit(context, builder, signature, args):
        return builder.load(_place(context, builder, signature, *args), align=8)

    return _EIGHT(row, types.intp), emit


@intrinsic
def _store(typing, row, i, eight):  # noqa: ARG001
    def emit(context, builder, signature, args):
        builder.store(args[2], _place(context, builder, signature, *args[:2]), align=8)
        return context.get_dummy_value()

    return types.void(row, types.intp, _EIGHT), emit


@intrinsic
def _load_tile(typing, matrix, row, i):  # noqa: ARG001
    def emit(context, builder, signature, args):
        tile = ir.Constant(_VECTORS, ir.Undefined)
        for k, place in enumerate(_places(context, builder, signature, *args)):
            tile = builder.insert_value(tile, builder.load(place, align=8), k)
        return tile

    return _TILE(matrix, types.intp, types.intp), emit


@intrinsic
def _store_tile(typing, matrix, row, i, tile):  # noqa: ARG001
    def emit(context, builder, signature, args):
        for k, place in enumerate(_places(context, builder, signature, *args[:3])):
            builder.store(builder.extract_value(args[3], k), place, align=8)
        return context.get_dummy_value()

    return types.void(matrix, types.intp, types.intp, _TILE), emit


@intrinsic
def _load_strip(typing, row, i):  # noqa: ARG001
    def emit(context, builder, signature, args):
        place = _place(context, builder, signature, *args)
        tile = ir.Constant(_VECTORS, ir.Undefined)
        for k in range(WIDTH):
            at = builder.gep(place, [ir.Constant(ir.IntType(64), k)])
            tile = builder.insert_value(tile, builder.load(at, align=8), k)
        return tile

    return _TILE(row, types.intp), emit


@intrinsic
def _store_strip(typing, row, i, tile):  # noqa: ARG001
    def emit(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        (size,) = cgutils.unpack_tuple(builder, array.shape, 1)
        for k in range(WIDTH):
            index = builder.add(args[1], ir.Constant(ir.IntType(64), k * WIDTH))
            with builder.if_then(builder.icmp_signed("<", index, size), likely=True):
                place = _place(context, builder, signature, args[0], index)
                builder.store(builder.extract_value(args[2], k), place, align=8)
        return context.get_dummy_value()

    return types.void(row, types.intp, _TILE), emit


@intrinsic
def _no_tile(typing):  # noqa: ARG001
    def emit(context, builder, signature, args):  # noqa: ARG001
        return ir.Constant(_VECTORS, [ir.Constant(_VECTOR, [0.0] * WIDTH)] * WIDTH)

    return _TILE(), emit


@intrinsic
def _splat(typing, number):  # noqa: ARG001
    def emit(context, builder, signature, args):  # noqa: ARG001
        index = ir.Constant(ir.IntType(32), 0)
        one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), args[0], index)
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), everywhere)

    return _EIGHT(types.float64), emit


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{WIDTH}f64")
    return builder.call(function, [a, b, c])


@intrinsic
def _fused(typing, a, b, c):  # noqa: ARG001
    def emit(context, builder, signature, args):  # noqa: ARG001
        return _each(builder, partial(_multiply_add, builder), c, *args)

    return c(_EIGHT, c, c), emit


@intrinsic
def _fused_minus(typing, a, b, c):  # noqa: ARG001
    def emit(context, builder, signature, args):  # noqa: ARG001
        a, b, c = args
        return _multiply_add(builder, builder.fneg(a), b, c)

    return _EIGHT(_EIGHT, _EIGHT, _EIGHT), emit


@intrinsic
def _minus(typing, a, b):  # noqa: ARG001
    def emit(context, builder, signature, args):  # noqa: ARG001
        return _each(builder, builder.fsub, b, *args)

    return b(_EIGHT, b), emit


@intrinsic
def _times(typing, a, b):  # noqa: ARG001
    def emit(context, builder, signature, args):  # noqa: ARG001
        return builder.fmul(*args)

    return _EIGHT(_EIGHT, _EIGHT), emit


@intrinsic
def _larger(typing, a, b):  # noqa: ARG001
    def emit(context, builder, signature, args):  # noqa: ARG001
        a, b = args
        return builder.select(builder.fcmp_ordered(">", a, b), a, b)

    return _EIGHT(_EIGHT, _EIGHT), emit


@intrinsic
def _total(typing, eight):  # noqa: ARG001
    def emit(context, builder, signature, args):  # noqa: ARG001
        (left,), width = args, WIDTH
        while width > 1:  # halves are added to each other, in the same order on every machine
            width //= 2
            kind = ir.VectorType(ir.IntType(32), width)
            low, high = ([*range(begin, begin + width)] for begin in (0, width))
            parts = [
                builder.shuffle_vector(left, left, ir.Constant(kind, half)) for half in (low, high)
            ]
            left = builder.fadd(*parts)
        return builder.extract_element(left, ir.Constant(ir.IntType(32), 0))

    return types.float64(_EIGHT), emit


def _halves_added(builder: Any, one: Any, other: Any, width: int) -> Any:
    """Return the sums of both halves of every `width` numbers of one vector, and of another."""
    starts = [*range(0, 2 * WIDTH, width)]
    parts = []
    for begin in (0, width // 2):
        places = [start + begin + k for start in starts for k in range(width // 2)]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), places)
        parts.append(builder.shuffle_vector(one, other, mask))
    return builder.fadd(*parts)


@intrinsic
def _totals(typing, tile):  # noqa: ARG001
    def emit(context, builder, signature, args):  # noqa: ARG001
        rows, width = [builder.extract_value(args[0], k) for k in range(WIDTH)], WIDTH
        while width > 1:  # two rows become one, in the order of `_total`
            pairs = zip(rows[::2], rows[1::2], strict=True)
            rows = [_halves_added(builder, one, other, width) for one, other in pairs]
            width //= 2
        return rows[0]

    return _EIGHT(_TILE), emit


@intrinsic
def _at_least(typing, a, b):  # noqa: ARG001
    def emit(context, builder, signature, args):  # noqa: ARG001
        flags = builder.fcmp_ordered(">=", *args)
        return builder.zext(builder.bitcast(flags, ir.IntType(WIDTH)), ir.IntType(64))

    return types.int64(_EIGHT, _EIGHT), emit


@intrinsic
def _lowest_bit(typing, bits):  # noqa: ARG001
    def emit(context, builder, signature, args):  # noqa: ARG001
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), emit


@intrinsic
def _not_inlined(typing):  # noqa: ARG001
    def emit(context, builder, signature, args):  # noqa: ARG001
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), emit


if not config.DISABLE_JIT:  # type: ignore[attr-defined]
    load, store, splat, total = _load, _store, _splat, _total  # type: ignore[assignment]
    fused, fused_minus = _fused, _fused_minus  # type: ignore[assignment]
    minus, times, larger = _minus, _times, _larger  # type: ignore[assignment]
    load_tile, store_tile, no_tile = _load_tile, _store_tile, _no_tile  # type: ignore[assignment]
    not_inlined = _not_inlined  # type: ignore[assignment]
    load_strip, store_strip = _load_strip, _store_strip  # type: ignore[assignment]
    totals, at_least, lowest_bit = _totals, _at_least, _lowest_bit  # type: ignore[assignment]
