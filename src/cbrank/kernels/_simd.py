"""Eight doubles at a time, for rows that are padded to multiples of eight.

The compiler makes SIMD code of plain loops too, but it must first ask, at each loop, whether arrays
overlap and how many numbers are left over: for rows of fifty numbers that takes as long as the numbers
themselves. A machine with shorter vectors takes several for eight doubles.

The functions mean what they say in Python, which is what runs with ``NUMBA_DISABLE_JIT=1``.
"""

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


def fused(a, b, c):
    """Return a b + c."""
    return a * b + c


def fused_minus(a, b, c):
    """Return c - a b."""
    return c - a * b


def minus(a, b):
    """Return a - b."""
    return a - b


def larger(a, b):
    """Return the larger of the numbers of a and b, place by place."""
    return np.maximum(a, b)


def total(eight):
    """Return the sum of eight numbers."""
    return eight.sum()


# What is compiled in their place ------------------------------------------------------------------


class _Eight(types.Type):
    def __init__(self) -> None:
        super().__init__(name="cbrank.eight_doubles")


_EIGHT, _VECTOR = _Eight(), ir.VectorType(ir.DoubleType(), WIDTH)


@register_model(_Eight)
class _EightModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, _VECTOR)


def _place(context: Any, builder: Any, signature: Any, row: Any, index: Any) -> Any:
    """Return where eight numbers of a row lie."""
    array = context.make_array(signature.args[0])(context, builder, row)
    return builder.bitcast(builder.gep(array.data, [index]), _VECTOR.as_pointer())


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
        return _multiply_add(builder, *args)

    return _EIGHT(_EIGHT, _EIGHT, _EIGHT), emit


@intrinsic
def _fused_minus(typing, a, b, c):  # noqa: ARG001
    def emit(context, builder, signature, args):  # noqa: ARG001
        a, b, c = args
        return _multiply_add(builder, builder.fneg(a), b, c)

    return _EIGHT(_EIGHT, _EIGHT, _EIGHT), emit


@intrinsic
def _minus(typing, a, b):  # noqa: ARG001
    def emit(context, builder, signature, args):  # noqa: ARG001
        return builder.fsub(*args)

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


if not config.DISABLE_JIT:  # type: ignore[attr-defined]
    load, store, splat, total = _load, _store, _splat, _total  # type: ignore[assignment]
    fused, fused_minus = _fused, _fused_minus  # type: ignore[assignment]
    minus, larger = _minus, _larger  # type: ignore[assignment]
