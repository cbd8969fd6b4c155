"""svmlight text to arrays: ``label [qid:n] index:value index:value ... [# comment]``.

By hand because scikit-learn's reader takes whole files, and an error must name line and entry. The
text is bytes that end with a newline, which ends every loop: none has to compare with the length.
Numbers that ``numbers`` leaves to the caller are listed in `Parsed.slow`.
"""

from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import jit, kernel
from cbrank.kernels.numbers import INFINITE, LEFT, NONE, digits, number

ROWS, ENTRIES, SLOW, POSITION, FAULT, LINE = range(6)  # places in `tally`
# Faults: why a row cannot be read.
NO_FAULT, BAD_LABEL, BAD_INDEX, BAD_VALUE, NO_COLON, NOT_ASCENDING, OUT_OF_RANGE, TOO_LARGE = range(
    8
)

_TAB, _NEWLINE, _RETURN, _BLANK, _HASH, _COLON = 9, 10, 13, 32, 35, 58
_SMALL_D, _SMALL_I, _SMALL_Q = 100, 105, 113


class Parsed(NamedTuple):
    """Arrays for the rows of one text, which `parse` fills."""

    labels: np.ndarray  # (rows,) float64
    lines: np.ndarray  # (rows,) int64, from 0
    indptr: np.ndarray  # (rows + 1,) int64
    indices: np.ndarray  # (entries,) int32, from 0
    values: np.ndarray  # (entries,) float64
    slow: np.ndarray  # (numbers, 3) int64: entry, or -1 - row for a label; start; stop
    tally: np.ndarray  # (6,) int64: rows, entries, slow numbers, position, fault, lines


def room(size: int, rows: int) -> Parsed:
    r"""Allocate for up to `rows` rows of any text of `size` bytes, so that `parse` checks no room.

    The shortest row is ``1\n``, the shortest entry `` 1:1``; a slow number has 5 bytes or more.
    """
    rows, entries = min(rows, size // 2 + 1), size // 4 + 1
    return Parsed(
        labels=np.empty(rows),
        lines=np.empty(rows, np.int64),
        indptr=np.zeros(rows + 1, np.int64),
        indices=np.empty(entries, np.int32),
        values=np.empty(entries),
        slow=np.empty((size // 5 + 1, 3), np.int64),
        tally=np.zeros(6, np.int64),
    )


@kernel
def parse(
    text: np.ndarray, start: int, stop_at: int, rows: int, base: int, limit: int, out: Parsed
) -> None:
    """Read up to `rows` rows that begin between `start` and `stop_at`.

    Indices count from `base`, 0 or 1, and end below `limit`, at most 2^31 - 1. POSITION in `tally`
    is where to go on or, with a fault, where the faulty word begins.
    """
    labels, lines, indptr, indices, values, slow, tally = out
    at, row, entry, n_slow, fault, line = start, 0, 0, 0, NO_FAULT, 0
    while at < stop_at and row < rows:
        at = _skip_blanks(text, at)
        if _ends_line(text[at]):
            at = _next_line(text, at)
            line += 1
            continue
        labels[row], stop, how = number(text, at)
        fault = _number_fault(how, text[stop], BAD_LABEL)
        if fault != NO_FAULT:
            break
        if how == LEFT:
            n_slow = _leave(slow, n_slow, -1 - row, at, stop)
        at = _skip_query(text, _skip_blanks(text, stop))
        before = -1
        while not _ends_line(text[at]):
            index, colon = digits(text, at, 0)
            fault = _index_fault(colon > at, text[colon], index - base, before, limit)
            if fault != NO_FAULT:
                break
            before = indices[entry] = index - base
            at = colon + 1
            values[entry], stop, how = number(text, at)
            fault = _number_fault(how, text[stop], BAD_VALUE)
            if fault != NO_FAULT:
                break
            if how == LEFT:
                n_slow = _leave(slow, n_slow, entry, at, stop)
            entry += 1
            at = _skip_blanks(text, stop)
        if fault != NO_FAULT:
            break
        at = _next_line(text, at)
        lines[row] = line
        line += 1
        row += 1
        indptr[row] = entry
    tally[ROWS] = row
    tally[ENTRIES] = indptr[row]
    tally[SLOW] = n_slow
    tally[POSITION] = at
    tally[FAULT] = fault
    tally[LINE] = line


@jit
def _number_fault(how, after, fault):
    if how == NONE or not _ends_word(after):
        return fault
    return TOO_LARGE if how == INFINITE else NO_FAULT


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
def _leave(slow, place, target, start, stop):
    slow[place, 0] = target
    slow[place, 1] = start
    slow[place, 2] = stop
    return place + 1


@jit
def _skip_query(text, at):
    """Return the position behind ``qid:n`` and the blanks after it; bipartite ranking has no queries."""
    if text[at] != _SMALL_Q or text[at + 1] != _SMALL_I or text[at + 2] != _SMALL_D:
        return at
    if text[at + 3] != _COLON:
        return at
    _, stop = digits(text, at + 4, 0)
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
