"""Decimal numbers in text to doubles, correctly rounded: the doubles of Python's ``float``.

By hand because Numba has no ``float(text)``, and calling Python for each number would take most of
the time of reading a file. Of three methods the first that applies is taken:

1. Clinger's fast path: digits and power of ten are both exact doubles, so that one multiplication or
   division is rounded once. Nearly all numbers in files are of this kind.
2. Lemire, "Number parsing at a gigabyte per second", 2021: the product of the digits with 128 bits of
   the power of five, of which the leading 64 bits decide the rounding in all but rare cases.
3. ``LEFT``: the caller converts it with Python's ``float`` (more than 19 digits, subnormal results).

The text ends with a newline, which ends every loop: none has to compare with the length.
"""

import numpy as np

from cbrank.kernels._jit import jit

NONE, DONE, LEFT, INFINITE = range(4)  # no number; converted; left to the caller; too large

PLUS, MINUS, POINT, ZERO = 43, 45, 46, 48
CAPITAL_E, SMALL_E = 69, 101

_EXACT_DIGITS = 2**53  # whole numbers up to it are exact doubles
_FEW_DIGITS, _MOST_DIGITS = 18, 19  # so many fit an int64 whatever they are; and a uint64
_POWERS = np.array([10.0**k for k in range(23)])  # 10^22 is the last that is an exact double
# Powers of ten: with 19 digits, 10^-343 times them is below half the least subnormal number, and
# 10^309 above the largest double.
_LEAST, _GREATEST = -342, 308


def _powers_of_five() -> np.ndarray:
    """Return the leading 128 bits of 5^q, in two halves: truncated for q >= 0, else rounded up.

    10^q = 5^q 2^q, and the power of two is only the exponent of the double.
    """
    halves = np.empty((_GREATEST - _LEAST + 1, 2), np.uint64)
    for row, q in enumerate(range(_LEAST, _GREATEST + 1)):
        if q >= 0:
            power = 5**q
            bits = power.bit_length()
            leading = power << (128 - bits) if bits <= 128 else power >> (bits - 128)
        else:
            power = 5**-q
            leading = (1 << (power.bit_length() + 127)) // power + 1
        halves[row] = leading >> 64, leading & (2**64 - 1)
    return halves


_FIVES = _powers_of_five()
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)
_ALL_ONES = np.uint64(2**64 - 1)
_UNSURE_BITS = np.uint64(0x1FF)  # the bits below the 55 that rounding needs: a carry may go through
_HIDDEN_BIT = np.uint64(2**52)  # the leading 1 of a significand, which a double does not store


@jit
def number(text, start):
    """Read a number; return its value, the position after it, and NONE, DONE, LEFT or INFINITE."""
    negative = text[start] == MINUS
    first = start + (negative or text[start] == PLUS)
    mantissa, at = _few_digits(text, first, 0, first + _FEW_DIGITS)
    power, point = 0, 0
    if text[at] == POINT:
        fraction, point = at + 1, 1
        mantissa, at = _few_digits(text, fraction, mantissa, first + _FEW_DIGITS + 1)
        power = fraction - at
    if at == first + point:
        return 0.0, start, NONE
    if _is_digit(text[at]):
        value, at, how = _long_number(text, first)
        return -value if negative else value, at, how
    if text[at] == SMALL_E or text[at] == CAPITAL_E:
        exponent, at = _exponent(text, at)
        power += exponent
    if mantissa <= _EXACT_DIGITS and abs(power) < _POWERS.size:
        value, how = _exact(mantissa, power), DONE
    else:
        value, how = _rounded(np.uint64(mantissa), power)
    return -value if negative else value, at, how


@jit
def _long_number(text, first):
    """Read a number of more than 18 digits; the first 19 from the first non-zero one fit 64 bits."""
    mantissa, n_digits, at = _many_digits(text, first, np.uint64(0), 0)
    power = 0
    if text[at] == POINT:
        first = at + 1
        mantissa, n_digits, at = _many_digits(text, first, mantissa, n_digits)
        power = first - at
    if text[at] == SMALL_E or text[at] == CAPITAL_E:
        exponent, at = _exponent(text, at)
        power += exponent
    if n_digits <= _MOST_DIGITS:
        value, how = _rounded(mantissa, power)
        return value, at, how
    if n_digits + power > _GREATEST + 1:
        return np.inf, at, INFINITE
    return 0.0, at, LEFT


@jit
def _few_digits(text, at, value, last):
    digit = np.int64(text[at]) - ZERO
    while 0 <= digit <= 9 and at < last:
        value = value * 10 + digit
        at += 1
        digit = np.int64(text[at]) - ZERO
    return value, at


@jit
def _is_digit(byte):
    return 0 <= np.int64(byte) - ZERO <= 9


@jit
def digits(text, at, value):
    """Append digits to a whole number; beyond 2^53 it stays as it is, being too large anyway."""
    digit = np.int64(text[at]) - ZERO
    while 0 <= digit <= 9:
        if value <= _EXACT_DIGITS:
            value = value * 10 + digit
        at += 1
        digit = np.int64(text[at]) - ZERO
    return value, at


@jit
def _many_digits(text, at, mantissa, n_digits):
    digit = np.int64(text[at]) - ZERO
    while 0 <= digit <= 9:
        if n_digits < _MOST_DIGITS:
            mantissa = mantissa * np.uint64(10) + np.uint64(digit)
        n_digits += mantissa > 0
        at += 1
        digit = np.int64(text[at]) - ZERO
    return mantissa, n_digits, at


@jit
def _exponent(text, letter):
    """Read an exponent from its ``e`` on; if no digits follow, the position stays at the ``e``."""
    negative = text[letter + 1] == MINUS
    first = letter + 1 + (negative or text[letter + 1] == PLUS)
    exponent, at = digits(text, first, 0)
    return -exponent if negative else exponent, letter if at == first else at


@jit
def _exact(mantissa, power):
    value = float(mantissa)
    if power == 0:
        return value
    return value / _POWERS[-power] if power < 0 else value * _POWERS[power]


@jit
def _rounded(mantissa, power):
    """Return mantissa * 10^power by Lemire's algorithm; the names of the steps are his."""
    if mantissa == 0:
        return 0.0, DONE
    if power > _GREATEST:
        return np.inf, INFINITE
    if power < _LEAST:
        return 0.0, LEFT
    zeros = _leading_zeros(mantissa)
    mantissa <<= np.uint64(zeros)
    # 64 bits of the power of five decide in nearly all cases; the other 64 only if a carry from them
    # could run through all bits below those that matter.
    high, low = _product(mantissa, _FIVES[power - _LEAST, 0])
    if high & _UNSURE_BITS == _UNSURE_BITS:
        added, _ = _product(mantissa, _FIVES[power - _LEAST, 1])
        room = _ALL_ONES - low
        if added > room:
            high, low = high + _ONE, added - room - _ONE
        else:
            low += added
    top = high >> np.uint64(63)
    shift = top + np.uint64(9)
    bits = high >> shift
    # 217706 / 2^16 is log2(10), exact enough for the floor of power * log2(10) in this range.
    exponent = ((217706 * power) >> 16) + np.int64(top) - zeros + 1086
    if exponent <= 0 or low == _ALL_ONES:  # subnormal, or not decided by 128 bits
        return 0.0, LEFT
    # Exactly halfway between two doubles: round to even. Only these powers can be halfway.
    halfway = bits << shift == high and low <= _ONE and bits & np.uint64(3) == _ONE
    if halfway and -5 < power < 24:
        bits -= _ONE
    bits = (bits + (bits & _ONE)) >> _ONE
    if bits == _HIDDEN_BIT << _ONE:  # rounded up to the next power of two
        bits = _HIDDEN_BIT
        exponent += 1
    if exponent >= 0x7FF:
        return np.inf, INFINITE
    fraction, exponent_bits = bits - _HIDDEN_BIT, np.uint64(exponent) << np.uint64(52)
    return np.uint64(fraction | exponent_bits).view(np.float64), DONE


@jit
def _product(a, b):
    """Return the upper and lower 64 bits of a product, from four products of halves."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW_HALF, b >> _HALF, b & _LOW_HALF
    low = a_low * b_low
    middle = a_high * b_low + (low >> _HALF)
    other = a_low * b_high + (middle & _LOW_HALF)
    high = a_high * b_high + (middle >> _HALF) + (other >> _HALF)
    return high, (other << _HALF) | (low & _LOW_HALF)


@jit
def _leading_zeros(value):
    zeros = 0
    while value >> np.uint64(56) == 0:
        value <<= np.uint64(8)
        zeros += 8
    while value >> np.uint64(63) == 0:
        value <<= _ONE
        zeros += 1
    return zeros
