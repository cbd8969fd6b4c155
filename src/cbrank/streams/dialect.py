"""How a table is written: its separator, its decimal mark, and whether a header names its columns.

Told by the first rows. The standard library's sniffer guesses from single letters; here a separator is
right if it cuts the rows into equally many cells.
"""

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from cbrank.features.table import is_gap_word

SEPARATORS = (",", ";", "\t", "|")
_ROWS = 100  # that are looked at
_ABOVE = 20  # lines above a header, such as a title, that are looked at
_SAME = 0.9  # the share of rows with equally many cells from which a table is one
_NAMES = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}
_WITH_COMMA = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d*),\d+([eE][-+]?\d+)?")
_WITH_POINT = re.compile(r"[-+]?(\d{1,3}(,\d{3})+|\d*)\.\d+([eE][-+]?\d+)?")
_POINTS = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)*|[.,]\d+)([eE][-+]?\d+)?")
_SAID = re.compile(rb'"?sep=([^\r\n"])"?[ \t]*\r?\n')  # a first line for spreadsheet programs


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
    above : int
        Bytes of lines above the first row that are none of the table's.
    unnamed : {"", "first", "last"}
        Where the rows have one cell more than the header: in the first place, as R writes the names
        of rows, or in the last, which is empty.
    """

    separator: str = ","
    decimal: str = "."
    header: bool = True
    above: int = 0
    unnamed: str = ""

    def note(self, name: str) -> str | None:
        """Say what is not as usual, if anything is."""
        found = [_NAMES.get(self.separator, repr(self.separator)) + " between cells"]
        found = found if self.separator != "," else []
        found += ["decimal commas"] if self.decimal == "," else []
        found += [] if self.header else ["no header line, so that columns are numbered"]
        found += ["lines above the header, which are left out"] if self.above else []
        found += ["one more cell in each row than in the header"] if self.unnamed else []
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
    Dialect(separator=';', decimal=',', header=True, above=0, unnamed='')
    >>> told(b"39, State-gov, 77516\n50, Private, 83311\n", Asked(), ())
    Dialect(separator=',', decimal='.', header=False, above=0, unnamed='')
    """
    known, said = frozenset(known), _SAID.match(text)
    above = said.end() if said else 0
    given = said[1].decode("latin-1") if said else None
    separator = asked.separator or given or _separator(_letters(text))
    above += _above(text[above:], separator, known)
    rows = _rows(_letters(text[above:]), separator)
    decimal = asked.decimal or _decimal(rows[1:], separator)
    header = _has_header(rows, known)
    return Dialect(separator, decimal, header, above, _unnamed(rows) if header else "")


def _letters(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


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
    """Return the separator that cuts the rows, and the first of them, into equally many cells."""

    def fits(separator: str) -> tuple[bool, bool, float, float]:
        rows = _rows(text, separator)
        counts = Counter(len(row) for row in rows)
        wanted, met = counts.most_common(1)[0] if rows else (0, 0)
        if wanted < 2:
            return False, False, 0.0, 0.0
        share = met / len(rows)
        # Decimal commas cut rows as well as semicolons do: where both may be meant, commas have to
        # make twice as many cells.
        cells = wanted / 2 if separator == "," else wanted
        return share >= _SAME, len(rows[0]) == wanted, share, cells

    return max(SEPARATORS, key=fits)


def _above(text: bytes, separator: str, known: Collection[str]) -> int:
    r"""Return the bytes of the lines above a header with a known name: each has fewer cells than it.

    Examples
    --------
    >>> _above(b"Sales of May\n\nage,paid\n31,no\n", ",", ["paid"])
    14
    """
    lines, begin, most = text.split(b"\n"), 0, 0
    reader = csv.reader((_letters(line) + "\n" for line in lines), delimiter=separator)
    try:
        for row in itertools.islice(reader, _ABOVE):
            cells = [cell.strip() for cell in row]
            filled = sum(cell != "" for cell in cells)
            if any(cell in known for cell in cells):
                is_title = 0 < most < filled
                return sum(len(line) + 1 for line in lines[:begin]) if is_title else 0
            begin, most = reader.line_num, max(filled, most)
    except csv.Error:
        pass
    return 0


def _unnamed(rows: Sequence[Sequence[str]]) -> str:
    """Say where rows have a cell that the header does not name."""
    more = [row for row in rows[1:] if len(row) == len(rows[0]) + 1]
    if len(more) < max(1, _SAME * len(rows[1:])):
        return ""
    return "first" if any(row[-1] for row in more) else "last"


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
    """Return a number of a table with decimal commas as one with a point; other text as it is.

    A point then stands between thousands.

    Examples
    --------
    >>> with_point("1.234,5"), with_point("-,5"), with_point("1.234"), with_point("Oslo, Norway")
    ('1234.5', '-.5', '1234', 'Oslo, Norway')
    """
    if "," in text and _WITH_COMMA.fullmatch(text):
        return text.replace(".", "").replace(",", ".")
    return text.replace(".", "") if _POINTS.fullmatch(text) else text
