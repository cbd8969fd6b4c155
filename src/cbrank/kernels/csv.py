"""CSV text to arrays: the values of numeric columns, and the positions of text cells.

By hand because rows must depend on the bytes alone, never on where a block of text ends, and an error
must name line and column; readers of whole tables give neither. Quotes are as in RFC 4180: in a cell
in double quotes a quote is doubled, and separators and newlines are text. The separator is a byte
of the caller's: a comma, a semicolon, a tab.

The text is bytes that end with a newline, which ends every loop: none has to compare with the length.
"""

from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import jit, kernel
from cbrank.kernels.numbers import INFINITE, LEFT, MINUS, NONE, POINT, ZERO, number

ROWS, SLOW, POSITION, FAULT, COLUMN, LINE, AFTER, OPEN = range(8)  # places in `tally`
(  # faults: why a row cannot be read
    NO_FAULT,
    BAD_NUMBER,
    MISSING,
    TOO_LARGE,
    TOO_FEW,
    TOO_MANY,
    AFTER_QUOTE,
    OPEN_QUOTE,
    NUL,
    TOO_LONG,
) = range(10)
DROPPED = -1  # the role of a column that is not read; -2 and below are text columns

# Room for numbers that are left to the caller to convert (see ``numbers``): enough that parsing seldom
# has to stop for them.
_FEW = 4096

_NINE = 57
_EXACT = 15  # digits that every double keeps
_LEAST = 1e-4  # smaller numbers are written with an exponent

_NUL, _TAB, _NEWLINE, _RETURN, _BLANK, _QUOTE = 0, 9, 10, 13, 32, 34


class Parsed(NamedTuple):
    """Arrays for the rows of one text, which `parse` fills."""

    numbers: np.ndarray  # (rows, numeric columns) float64
    cells: np.ndarray  # (rows, text columns, 2) int64: start and stop, quotes included
    lines: np.ndarray  # (rows,) int64, from 0
    starts: np.ndarray  # (rows,) int64
    slow: np.ndarray  # (numbers, 4) int64, left to the caller: row, numeric column, start, stop
    tally: np.ndarray  # (8,) int64: rows, slow numbers, position, fault, column, lines, after, open


def room(rows: int, n_numbers: int, n_cells: int) -> Parsed:
    """Allocate for up to `rows` rows; numbers left to the caller fit for one row at the least."""
    return Parsed(
        numbers=np.empty((rows, n_numbers)),
        cells=np.empty((rows, n_cells, 2), np.int64),
        lines=np.empty(rows, np.int64),
        starts=np.empty(rows, np.int64),
        slow=np.empty((n_numbers + _FEW, 4), np.int64),
        tally=np.zeros(8, np.int64),
    )


@kernel
def parse(
    text: np.ndarray,
    start: int,
    stop_at: int,
    rows: int,
    longest: int,
    separator: int,
    roles: np.ndarray,
    out: Parsed,
) -> None:
    """Read up to `rows` rows that begin between `start` and `stop_at`.

    The role of a column is the number of a numeric column, `DROPPED`, or -2 minus the number of a
    text column. Results beside the arrays are in `tally`:

    * POSITION: where to go on or, with a fault, where the faulty cell begins.
    * AFTER: where to go on behind a faulty row. That is its end, or the end of its first line if
      its quotes do not match or it has more than `longest` bytes: nobody knows then where it ends.
    * OPEN: whether the text ends within a quoted cell of the faulty row. More text may then show
      that the row is not faulty.
    """
    numbers, cells, lines, starts, slow, tally = out
    at, row, n_slow, fault, line, column, begin, after = start, 0, 0, NO_FAULT, 0, 0, start, start
    is_open = False
    while at < stop_at and row < rows and n_slow + numbers.shape[1] <= slow.shape[0]:
        begin = _skip_blanks(text, at, separator)
        if text[begin] == _NEWLINE:
            at = begin + 1
            line += 1
            continue
        starts[row] = at
        lines[row] = line
        column, after = 0, at - 1
        while column == 0 or text[after] == separator:
            begin = _skip_blanks(text, after + 1, separator)
            role = roles[column] if column < roles.size else DROPPED
            if role >= 0:
                numbers[row, role], first, stop, after, how, fault = _numeric_cell(
                    text, begin, separator
                )
                if how == LEFT:
                    n_slow = _leave(slow, n_slow, row, role, first, stop)
            else:
                stop, after, fault = _cell(text, begin, separator)
                if role < DROPPED:
                    cells[row, -2 - role, 0] = begin
                    cells[row, -2 - role, 1] = stop
            if fault != NO_FAULT:
                break
            if text[begin] == _QUOTE:
                line += _newlines(text, begin, stop)
            column += 1
        if after - at > longest:
            fault = TOO_LONG
        elif fault == NO_FAULT and column != roles.size:
            fault = TOO_FEW if column < roles.size else TOO_MANY
        if fault != NO_FAULT:
            after, is_open = _row_end(text, at, longest, separator)
            line = lines[row]
            break
        line += 1
        at = after + 1
        row += 1
    tally[ROWS] = row
    tally[SLOW] = n_slow
    tally[POSITION] = at if fault == NO_FAULT else begin
    tally[FAULT] = fault
    tally[COLUMN] = column
    tally[LINE] = line
    tally[AFTER] = after + 1
    tally[OPEN] = is_open


EMPTY, PLAIN, OTHER = range(3)  # what a cell holds


@kernel
def plain_numbers(
    text: np.ndarray, cells: np.ndarray, values: np.ndarray, kinds: np.ndarray
) -> None:
    """Read the cells of a column that are written as Python would write their numbers.

    So no text is lost: the number tells how it was written. All others are left to the caller.

    Parameters
    ----------
    text : ndarray of uint8
        The text.
    cells : ndarray of int64 of shape (n_rows, 2)
        Start and stop of each cell, quotes included.
    values, kinds : ndarray of shape (n_rows,)
        The number of each cell, and whether it is `EMPTY`, `PLAIN` or `OTHER`.
    """
    for row in range(cells.shape[0]):
        begin, stop = cells[row]
        if stop - begin >= 2 and text[begin] == _QUOTE:
            begin += 1
            stop -= 1
        values[row], kinds[row] = np.nan, EMPTY
        if stop > begin:
            values[row], kinds[row] = _plain_number(text, begin, stop)


@jit
def _plain_number(text, begin, stop):
    """Return a number with at most 15 digits, so that it is exact, without needless ones."""
    negative = text[begin] == MINUS
    first = begin + negative
    whole = first
    mantissa = 0
    while whole < stop and ZERO <= text[whole] <= _NINE:
        mantissa = 10 * mantissa + (text[whole] - ZERO)
        whole += 1
        if whole - first > _EXACT:
            return np.nan, OTHER
    if whole == first or (text[first] == ZERO and whole - first > 1):
        return np.nan, OTHER
    if whole == stop:
        if negative and mantissa == 0:
            return np.nan, OTHER
        return -float(mantissa) if negative else float(mantissa), PLAIN
    if text[whole] != POINT or stop - first - 1 > _EXACT or text[stop - 1] == ZERO:
        return np.nan, OTHER
    scale = 1.0
    for at in range(whole + 1, stop):
        if not ZERO <= text[at] <= _NINE:
            return np.nan, OTHER
        mantissa = 10 * mantissa + (text[at] - ZERO)
        scale *= 10.0
    value = mantissa / scale
    if stop - whole == 1 or value < _LEAST:
        return np.nan, OTHER
    return -value if negative else value, PLAIN


@jit
def _numeric_cell(text, begin, separator):
    """Return a cell's value, start and stop of its digits, its end, how it was read and a fault."""
    value, stop, how = number(text, begin)
    # The usual case: a number and then a separator or newline, with neither quotes nor blanks.
    if how != NONE and (text[stop] == separator or text[stop] == _NEWLINE):
        return value, begin, stop, stop, how, TOO_LARGE if how == INFINITE else NO_FAULT
    end, after, fault = _cell(text, begin, separator)
    if fault != NO_FAULT:
        return 0.0, begin, end, after, NONE, fault
    quoted = text[begin] == _QUOTE
    if quoted:
        value, stop, how = number(text, begin + 1)
    if end == begin + 2 * quoted:
        fault = MISSING
    elif how == NONE or stop != end - quoted:
        fault = BAD_NUMBER
    elif how == INFINITE:
        fault = TOO_LARGE
    return value, begin + quoted, stop, after, how if fault == NO_FAULT else NONE, fault


@jit
def _cell(text, begin, separator):
    """Return where a cell's text stops, the position of its separator or newline, and a fault."""
    if text[begin] == _QUOTE:
        stop = _closing_quote(text, begin)
        if stop < 0:
            return text.size - 1, text.size - 1, OPEN_QUOTE
        after = _skip_blanks(text, stop + 1, separator)
        if text[after] != separator and text[after] != _NEWLINE:
            return stop + 1, after, AFTER_QUOTE
        return stop + 1, after, NUL if _has_nul(text, begin, stop) else NO_FAULT
    after = begin
    while text[after] != separator and text[after] != _NEWLINE:
        after += 1
    stop = after
    while stop > begin and _is_blank(text[stop - 1], separator):
        stop -= 1
    return stop, after, NUL if _has_nul(text, begin, stop) else NO_FAULT


@jit
def _closing_quote(text, begin):
    """Return the position of the quote that ends a cell, or -1 if the text ends before it."""
    at = begin + 1
    while at < text.size:
        if text[at] == _QUOTE:
            if at + 1 == text.size or text[at + 1] != _QUOTE:
                return at
            at += 1
        at += 1
    return -1


@jit
def _row_end(text, start, longest, separator):
    """Return the position of the newline that ends a row, and whether a quote is open at the end.

    If quotes do not match, or the row has more than `longest` bytes, it is the first newline.
    """
    at, is_open = start, False
    while True:
        _, after, fault = _cell(text, _skip_blanks(text, at, separator), separator)
        if after - start > longest or fault == AFTER_QUOTE:
            break
        if fault == OPEN_QUOTE:
            is_open = True
            break
        if text[after] == _NEWLINE:
            return after, False
        at = after + 1
    while text[start] != _NEWLINE:
        start += 1
    return start, is_open


@jit
def _has_nul(text, start, stop):
    found = False  # no early exit: without one the loop vectorises
    for at in range(start, stop):
        found |= text[at] == _NUL
    return found


@jit
def _newlines(text, start, stop):
    n = 0
    for at in range(start, stop):
        n += text[at] == _NEWLINE
    return n


@jit
def _leave(slow, place, row, column, start, stop):
    slow[place, 0] = row
    slow[place, 1] = column
    slow[place, 2] = start
    slow[place, 3] = stop
    return place + 1


@jit
def _skip_blanks(text, at, separator):
    while _is_blank(text[at], separator):
        at += 1
    return at


@jit
def _is_blank(byte, separator):
    return byte in (_BLANK, _TAB, _RETURN) and byte != separator
