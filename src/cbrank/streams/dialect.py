"""How a table is written: its separator, its decimal mark, and whether a header names its columns.

Told by the first rows. The standard library's sniffer guesses from single letters; here a separator is
right if it cuts the rows into equally many cells.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from cbrank.features.table import is_gap_word

SEPARATORS = (",", ";", "\t", "|")
_ROWS = 100  # that are looked at
_NAMES = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}
_WITH_COMMA = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d*),\d+([eE][-+]?\d+)?")
_WITH_POINT = re.compile(r"[-+]?(\d{1,3}(,\d{3})+|\d*)\.\d+([eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)*|[.,]\d+)([eE][-+]?\d+)?")


class Dialect(NamedTuple):
    """How a table is written.

    Parameters
    ----------
    separator : str
        What stands between cells.
    decimal : str
        The decimal mark, a point or a comma.
    header : bool
        Whether the first row names the columns.
    """

    separator: str = ","
    decimal: str = "."
    header: bool = True

    def note(self, name: str) -> str | None:
        """Say what is not as usual, if anything is."""
        found = [_NAMES.get(self.separator, repr(self.separator)) + " between cells"]
        found = found if self.separator != "," else []
        found += ["decimal commas"] if self.decimal == "," else []
        found += [] if self.header else ["no header line, so that columns are numbered"]
        return f"{name} has {' and '.join(found)}." if found else None


class Asked(NamedTuple):
    """What the caller says of how tables are written; None is left to the first rows."""

    separator: str | None = None
    decimal: str | None = None


def told(text: bytes, asked: Asked, known: Collection[str]) -> Dialect:
    r"""Tell how a table is written by its first lines.

    Parameters
    ----------
    text : bytes
        Whole lines.
    asked : Asked
        What is known already.
    known : collection of str
        Names that columns are expected to have: a first row with one of them is a header.

    Returns
    -------
    Dialect
        How the table is written.

    Examples
    --------
    >>> told(b"age;pay\n31;2,5\n40;3,25\n", Asked(), ())
    Dialect(separator=';', decimal=',', header=True)
    >>> told(b"39, State-gov, 77516\n50, Private, 83311\n", Asked(), ())
    Dialect(separator=',', decimal='.', header=False)
    """
    letters = text.decode("utf-8", "surrogateescape")
    separator = asked.separator or _separator(letters)
    rows = _rows(letters, separator)
    decimal = asked.decimal or _decimal(rows[1:], separator)
    return Dialect(separator, decimal, _has_header(rows, known))


def _rows(text: str, separator: str) -> list[list[str]]:
    """Return the first rows, those that can be read; the last may be cut and is left out."""
    reader, found = (
        csv.reader(io.StringIO(text, newline=""), delimiter=separator),
        list[list[str]](),
    )
    try:
        for row in reader:
            if row:
                found.append([cell.strip() for cell in row])
            if len(found) > _ROWS:
                break
    except csv.Error:
        pass
    return found


def _separator(text: str) -> str:
    """Return the separator that cuts most rows into as many cells as the first, and into most."""

    def fits(separator: str) -> tuple[float, int]:
        rows = _rows(text, separator)
        wanted = len(rows[0]) if rows else 0
        if wanted < 2:
            return 0.0, 0
        return sum(len(row) == wanted for row in rows) / len(rows), wanted

    return max(SEPARATORS, key=fits)


def _decimal(rows: Iterable[Sequence[str]], separator: str) -> str:
    if separator == ",":  # numbers with commas are in quotes, and each column decides for itself
        return "."
    cells = [cell for row in rows for cell in row]
    commas = [cell for cell in cells if _WITH_COMMA.fullmatch(cell)]
    points = sum(_WITH_POINT.fullmatch(cell) is not None for cell in cells)
    sure = any(_THOUSANDS.fullmatch(cell) is None for cell in commas)
    return "," if sure and len(commas) > points else "."


def _has_header(rows: Sequence[Sequence[str]], known: Collection[str]) -> bool:
    """Say whether the first row names columns: no header has a number above numbers."""
    if not rows or any(cell in known for cell in rows[0]):
        return True
    if known and all(map(is_numbered, known)):
        return False
    return not any(
        _NUMBER.fullmatch(cell) and _are_numbers(row[at] for row in rows[1:] if at < len(row))
        for at, cell in enumerate(rows[0])
    )


def _are_numbers(cells: Iterable[str]) -> bool:
    filled = [cell for cell in cells if not is_gap_word(cell)]
    return 2 * sum(_NUMBER.fullmatch(cell) is not None for cell in filled) >= len(filled)


# Names of columns ---------------------------------------------------------------------------------


def numbered(count: int) -> list[str]:
    """Return names for columns that have none.

    Examples
    --------
    >>> numbered(2)
    ['column1', 'column2']
    """
    return [f"column{at}" for at in range(1, count + 1)]


def is_numbered(name: str) -> bool:
    """Say whether a name is one of `numbered`."""
    return re.fullmatch(r"column[1-9]\d*", name) is not None


def with_names(header: Sequence[str]) -> list[str]:
    """Return a header in which each column has a name of its own.

    Examples
    --------
    >>> with_names(["age", "", "age", "pay"])
    ['age', 'column2', 'age.2', 'pay']
    """
    met, found = Counter[str](), dict[str, None]()
    for at, given in enumerate(header, 1):
        name = own = given or f"column{at}"
        met[name] += 1
        while own in found:
            own = f"{name}.{met[name]}"
            met[name] += own in found
        found[own] = None
    return [*found]


# Decimal commas -----------------------------------------------------------------------------------


def with_point(text: str) -> str:
    """Return a number with a decimal comma as one with a point; any other text as it is.

    Examples
    --------
    >>> with_point("1.234,5"), with_point("-,5"), with_point("Oslo, Norway")
    ('1234.5', '-.5', 'Oslo, Norway')
    """
    if "," not in text or not _WITH_COMMA.fullmatch(text):
        return text
    return text.replace(".", "").replace(",", ".")
