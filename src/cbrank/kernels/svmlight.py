"""Text in svmlight form to arrays: ``label [qid:n] index:value index:value ... [# comment]``.

The text is bytes whose last one is a newline, so every loop stops without looking at the end.
A decimal becomes a double in one exactly rounded operation where its digits and its power of
ten are both exact doubles; the others are left to the caller, listed in ``slow``.
"""

from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import jit, kernel

ROWS, ENTRIES, SLOW, POSITION, FAULT = range(5)
NO_FAULT, BAD_LABEL, BAD_INDEX, BAD_VALUE, NO_COLON, NOT_ASCENDING, OUT_OF_RANGE = range(7)

_TAB, _NEWLINE, _RETURN, _BLANK, _HASH = 9, 10, 13, 32, 35
_PLUS, _MINUS, _POINT, _ZERO, _COLON = 43, 45, 46, 48, 58
_CAPITAL_E, _SMALL_D, _SMALL_E, _SMALL_I, _SMALL_Q = 69, 100, 101, 105, 113
_EXACT_DIGITS = 2**53
_POWERS = np.array([10.0**k for k in range(23)])


class Parsed(NamedTuple):
    """Room for the rows of one text, and what was found in it."""

    labels: np.ndarray  # (rows,) float64
    indptr: np.ndarray  # (rows + 1,) int64
    indices: np.ndarray  # (entries,) int32, from 0
    values: np.ndarray  # (entries,) float64
    slow: np.ndarray  # (numbers, 3) int64: entry, or -1 - row for a label; start; stop
    tally: np.ndarray  # (5,) int64: rows, entries, slow numbers, position, fault


def room(size: int) -> Parsed:
    r"""Make room for any text of `size` bytes.

    The shortest row is ``1\n``, the shortest entry `` 1:1``, the shortest slow number ``1e99``.
    """
    rows, entries = size // 2 + 1, size // 4 + 1
    return Parsed(
        labels=np.empty(rows),
        indptr=np.zeros(rows + 1, np.int64),
        indices=np.empty(entries, np.int32),
        values=np.empty(entries),
        slow=np.empty((size // 5 + 1, 3), np.int64),
        tally=np.zeros(5, np.int64),
    )


@kernel
def parse(text: np.ndarray, start: int, rows: int, base: int, limit: int, out: Parsed) -> None:
    """Read up to `rows` rows from `start` on; indices count from `base` and end below `limit`.

    Position is then where to go on or, with a fault, where the faulty word begins.
    """
    labels, indptr, indices, values, slow, tally = out
    at, row, entry, n_slow, fault = start, 0, 0, 0, NO_FAULT
    while at < text.size and row < rows:
        at = _skip_blanks(text, at)
        if _ends_line(text[at]):
            at = _next_line(text, at)
            continue
        labels[row], stop, exact = _number(text, at)
        fault = _number_fault(stop > at, text[stop], BAD_LABEL)
        if fault != NO_FAULT:
            break
        if not exact:
            n_slow = _leave(slow, n_slow, -1 - row, at, stop)
        at = _skip_query(text, _skip_blanks(text, stop))
        before = -1
        while not _ends_line(text[at]):
            index, colon = _digits(text, at, 0)
            fault = _index_fault(colon > at, text[colon], index - base, before, limit)
            if fault != NO_FAULT:
                break
            before = indices[entry] = index - base
            at = colon + 1
            values[entry], stop, exact = _number(text, at)
            fault = _number_fault(stop > at, text[stop], BAD_VALUE)
            if fault != NO_FAULT:
                break
            if not exact:
                n_slow = _leave(slow, n_slow, entry, at, stop)
            entry += 1
            at = _skip_blanks(text, stop)
        if fault != NO_FAULT:
            break
        at = _next_line(text, at)
        row += 1
        indptr[row] = entry
    tally[ROWS] = row
    tally[ENTRIES] = entry
    tally[SLOW] = n_slow
    tally[POSITION] = at
    tally[FAULT] = fault


@jit
def _number_fault(found, after, fault):
    return NO_FAULT if found and _ends_word(after) else fault


@jit
def _index_fault(found, after, column, before, limit):
    if not found or (after != _COLON and not _ends_word(after)):
        return BAD_INDEX
    if after != _COLON:
        return NO_COLON
    if column < 0 or column >= limit:
        return OUT_OF_RANGE
    return NO_FAULT if column > before else NOT_ASCENDING


@jit
def _number(text, start):
    """Return the value, the position after it (`start` for no number) and whether it is exact."""
    negative = text[start] == _MINUS
    first = start + (negative or text[start] == _PLUS)
    digits, at = _digits(text, first, 0)
    n_digits, power = at - first, 0
    if text[at] == _POINT:
        first = at + 1
        digits, at = _digits(text, first, digits)
        power = first - at
        n_digits -= power
    if text[at] == _SMALL_E or text[at] == _CAPITAL_E:
        exponent, at = _exponent(text, at)
        power += exponent
    exact = digits <= _EXACT_DIGITS and abs(power) < _POWERS.size
    value = _scaled(digits, power) if exact else 0.0
    return -value if negative else value, at if n_digits else start, exact


@jit
def _scaled(digits, power):
    if power == 0:
        return float(digits)
    return digits / _POWERS[-power] if power < 0 else digits * _POWERS[power]


@jit
def _digits(text, at, digits):
    """Append digits to a whole number; past 2^53 its value is of no use and stays."""
    digit = np.int64(text[at]) - _ZERO
    while 0 <= digit <= 9:
        if digits <= _EXACT_DIGITS:
            digits = digits * 10 + digit
        at += 1
        digit = np.int64(text[at]) - _ZERO
    return digits, at


@jit
def _exponent(text, letter):
    """Read an exponent from its ``e`` on; without digits the position stays there."""
    negative = text[letter + 1] == _MINUS
    first = letter + 1 + (negative or text[letter + 1] == _PLUS)
    exponent, at = _digits(text, first, 0)
    return -exponent if negative else exponent, letter if at == first else at


@jit
def _leave(slow, place, target, start, stop):
    slow[place, 0] = target
    slow[place, 1] = start
    slow[place, 2] = stop
    return place + 1


@jit
def _skip_query(text, at):
    """Pass over ``qid:n`` and the blanks after it."""
    if text[at] != _SMALL_Q or text[at + 1] != _SMALL_I or text[at + 2] != _SMALL_D:
        return at
    if text[at + 3] != _COLON:
        return at
    _, stop = _digits(text, at + 4, 0)
    if stop == at + 4 or not _ends_word(text[stop]):
        return at
    return _skip_blanks(text, stop)


@jit
def _skip_blanks(text, at):
    while _is_blank(text[at]):
        at += 1
    return at


@jit
def _next_line(text, at):
    while text[at] != _NEWLINE:
        at += 1
    return at + 1


@jit
def _is_blank(byte):
    return byte in (_BLANK, _TAB, _RETURN)


@jit
def _ends_line(byte):
    return byte in (_NEWLINE, _HASH)


@jit
def _ends_word(byte):
    return _is_blank(byte) or _ends_line(byte)
