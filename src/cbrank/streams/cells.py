"""From cells of text to columns: of numbers, if all are written as Python writes them, else of words.

So no text is lost, and a column means the same wherever a chunk ends: a number tells how it was written.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.features.table import Column, Words, is_gap_word, number_text

_FOREIGN = "cp1252"


class Cells:
    r"""What turns the cells of a column into a `Column`.

    Parameters
    ----------
    translate : callable, optional
        What each cell goes through first that is not empty and no whole number.

    Attributes
    ----------
    foreign : str or None
        The first cell that was not UTF-8, as it was read.

    Examples
    --------
    >>> text = b'5,"x y"\n?,5\n'
    >>> Cells().column(text, np.array([[0, 1], [8, 9]]))
    array([ 5., nan])
    >>> Cells().column(text, np.array([[2, 7], [10, 11]]))
    Words(codes=array([0, 1], dtype=int32), values=('x y', '5'), declared=False)
    """

    def __init__(self, translate: Callable[[str], str] | None = None) -> None:
        self.translate = translate
        self.foreign: str | None = None

    def column(self, text: bytes, spans: NDArray[np.int64]) -> Column:
        """Return the column of cells that start and stop at these places."""
        values, kinds = np.empty(len(spans)), np.empty(len(spans), np.int64)
        kernels.csv.plain_numbers(np.frombuffer(text, np.uint8), spans, values, kinds)
        is_other = kinds == kernels.csv.OTHER
        if self.translate is not None:  # a point may mean something else
            is_other |= np.floor(values) < values
        others = np.flatnonzero(is_other)
        codes, found = _different(sliced(text, spans[others]))
        words = [self._read(cell) for cell in found]
        numbers = [np.nan if word is None else plain_number(word) for word in words]
        if not any(number is None for number in numbers):
            values[others] = np.array([*numbers, np.nan], np.float64)[codes]
            return values
        codes, found = _different(sliced(text, spans))
        return _words(codes, [self._read(cell) for cell in found])

    def texts(self, text: bytes, spans: NDArray[np.int64]) -> list[str]:
        """Return cells as they are, without quotes."""
        codes, found = _different(sliced(text, spans))
        words = [self.decoded(cell) for cell in found]
        return [words[code] for code in codes.tolist()]

    def _read(self, cell: bytes) -> str | None:
        """Return the text of a cell, or None for a gap."""
        text = self.decoded(cell).strip()
        if is_gap_word(text):
            return None
        return self.translate(text) if self.translate else text

    def decoded(self, cell: bytes) -> str:
        """Return a cell without its quotes; what is not UTF-8 is read as Windows-1252."""
        if cell[:1] == b'"':
            cell = cell[1:-1].replace(b'""', b'"')
        try:
            return cell.decode()
        except UnicodeDecodeError:
            text = cell.decode(_FOREIGN, "replace")
            self.foreign = self.foreign or text
            return text


def column_of(cells: Iterable[str]) -> Column:
    """Return the column of cells that are text already.

    Examples
    --------
    >>> column_of(["5", "NA"])
    array([ 5., nan])
    """
    codes, found = _different(cells)
    words = [None if is_gap_word(cell) else cell for cell in found]
    numbers = [np.nan if word is None else plain_number(word) for word in words]
    if any(number is None for number in numbers):
        return _words(codes, words)
    return np.array([*numbers, np.nan], np.float64)[codes]


def sliced(text: bytes, spans: NDArray[np.int64]) -> list[bytes]:
    """Return the cells that start and stop at these places."""
    return [text[start:stop] for start, stop in spans.tolist()]


def plain_number(text: str) -> float | None:
    """Return the number of a text, None unless Python would write it so.

    Examples
    --------
    >>> plain_number("0.5"), plain_number("007"), plain_number("nan")
    (0.5, None, None)
    """
    if text[:1] not in "-0123456789" or not text[-1:].isdigit():
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < np.inf and number_text(value) == text else None


def _different(cells: Iterable[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    """Return the place of each cell among the different ones, and these."""
    cells = [*cells]
    places = {cell: at for at, cell in enumerate(dict.fromkeys(cells))}
    return np.fromiter(map(places.__getitem__, cells), np.int64, len(cells)), [*places]


def _words(codes: NDArray[np.int64], found: list[str | None]) -> Words:
    places: dict[str, int] = {}
    moved = [-1 if text is None else places.setdefault(text, len(places)) for text in found]
    return Words(np.array(moved, np.int32)[codes], tuple(places))


def without(column: Column, gaps: Iterable[str]) -> Column:
    """Return a column with gaps for cells that are written, or as numbers are worth, one of these.

    Examples
    --------
    >>> without(np.array([1.0, -999.0]), ["-999"])
    array([ 1., nan])
    """
    told = {*gaps}
    values = {float(text) for text in told if _is_number(text)}
    if isinstance(column, Words):
        kept = [
            -1 if text in told or (_is_number(text) and float(text) in values) else at
            for at, text in enumerate(column.values)
        ]
        return Words(np.array([*kept, -1], np.int32)[column.codes], column.values, column.declared)
    if isinstance(column, np.ndarray) and values:
        return np.where(np.isin(column, [*values]), np.nan, column)
    return column


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
