"""Rows of CSV text with a header line (RFC 4180)."""

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.features.table import Table
from cbrank.streams.cells import Cells
from cbrank.streams.dialect import Dialect, with_point
from cbrank.streams.rows import SKIP, Roles, texts_joined
from cbrank.streams.text import Fault, Piece, shown

if TYPE_CHECKING:
    from cbrank.kernels.csv import Parsed

_GAPS = {"na", "n/a", "nan", "null", "none", "?", "-", "inf", "+inf", "-inf", "infinity"}
_FILL = "fill gaps or leave such rows out before ranking, or drop the column"
_OTHERS = {
    b"PK\x03\x04": "a spreadsheet or an archive: save its sheet as CSV, or unpack it",
    b"\xd0\xcf\x11\xe0": "a spreadsheet: save its sheet as CSV",
    b"SQLite format 3": "a database: write its table as CSV",
    b'{"': "JSON: write it as CSV",
    b"[{": "JSON: write it as CSV",
}


def refuse_other_formats(text: bytes, name: str) -> None:
    """Refuse a file that is no text of rows, by its first bytes.

    Examples
    --------
    >>> refuse_other_formats(b'[{"age": 31}]', "people.json")
    Traceback (most recent call last):
    ValueError: people.json is JSON: write it as CSV.
    """
    for start, what in _OTHERS.items():
        if text.startswith(start):
            raise ValueError(f"{name} is {what}.")


def split_header(
    text: bytes, name: str, *, over: bool, separator: str = ","
) -> tuple[list[str], int, int] | None:
    r"""Return the column names, the position after the header and the number of the next line.

    A text of blank lines has no names. None means that the text ends before the header does and
    that there is more text to come (`over` is False).

    Examples
    --------
    >>> split_header(b'age,"a, b"\r\n1,2\n', "x.csv", over=True)
    (['age', 'a, b'], 12, 2)
    >>> split_header(b'age,"a\n', "x.csv", over=False)
    """
    lines = io.StringIO(text.decode("utf-8", "surrogateescape"), newline="\n")
    reader = csv.reader(lines, strict=True, delimiter=separator)
    try:
        header = next((row for row in reader if row), [])
    except csv.Error as reason:
        if not over and lines.tell() == len(lines.getvalue()):
            return None
        if b"\r" in text.partition(b"\n")[0].rstrip():
            raise ValueError(
                f"{name}: its lines end in carriage returns alone, or its header has one: write it "
                "with the line ends of today."
            ) from None
        raise ValueError(f"{name}: its header line is not CSV: {reason}.") from None
    if not header and not over:
        return None
    names = [column.strip(" \t") for column in header]
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        coded = (column.encode("utf-8", "surrogateescape") for column in names)
        names = [column.decode("cp1252", "replace") for column in coded]
    stop = 0
    for _ in range(reader.line_num):
        stop = text.index(b"\n", stop) + 1
    return names, stop, reader.line_num + 1


class _Cells(NamedTuple):
    """Rows copied out of the parser's arrays, which it uses again."""

    numbers: NDArray[np.float64]
    texts: dict[str, list[str]]
    table: Table | None


class _Late(NamedTuple):
    """A row that the kernel read and Python then found malformed."""

    row: int
    fault: Fault


class CsvParser:
    """Parser of CSV text with the given columns, in rows of up to `longest` bytes."""

    def __init__(
        self, rows: int, names: list[str], roles: Roles, longest: int, dialect: Dialect
    ) -> None:
        self.names, self.roles, self.longest = names, roles, longest
        self.separator = dialect.separator.encode()
        self.cells = Cells(with_point if dialect.decimal == "," else None)
        self.room = kernels.csv.room(rows, roles.n_numbers, len(roles.cells))

    def parse(
        self, text: bytes, start: int, stop_at: int, rows: int
    ) -> tuple[Piece, int, Fault | None]:
        """Return up to `rows` rows, where to go on, and why a row was left out, if one was."""
        found, letters = self.room, np.frombuffer(text, np.uint8)
        how = self.longest, self.separator[0], self.roles.codes, found
        kernels.csv.parse(letters, start, stop_at, rows, *how)
        n_rows, n_slow, stop, code, column, line, after, is_open = found.tally.tolist()
        fault = self._fault(text, line, stop, code, column) if code else None
        if fault and is_open:
            fault = fault._replace(begin=int(found.starts[n_rows]))
        begun, stop = n_rows + bool(fault), after if fault else stop
        late = self._finish(text, found, n_slow)
        if late and late.row < n_rows:
            n_rows, fault = late.row, late.fault
        spans = dict(zip(self.roles.cells, found.cells[:n_rows].swapaxes(0, 1), strict=True))
        texts = {name: self.cells.texts(text, spans[name]) for name in self.roles.texts}
        cells = _Cells(found.numbers[:n_rows].copy(), texts, self._table(text, spans))
        read = n_rows + bool(fault)
        stop = stop if read == begun else int(found.starts[read])
        return Piece(found.lines[:n_rows].copy(), line, cells), stop, fault

    def _table(self, text: bytes, spans: dict[str, NDArray[np.int64]]) -> Table | None:
        names = self.roles.columns
        if names is None:
            return None
        return Table(names, [self.cells.column(text, spans[name]) for name in names])

    def join(self, data: Sequence[_Cells]) -> tuple[Any, Any, dict[str, list[str]]]:
        """Return numbers or a table, labels and the other texts."""
        texts = texts_joined([piece.texts for piece in data], list(self.roles.texts))
        labels = texts.pop(self.roles.label) if self.roles.label is not None else None
        if self.roles.columns is not None:
            empty = Table(self.roles.columns, [np.empty(0) for _ in self.roles.columns])
            tables = [piece.table for piece in data if piece.table is not None]
            return (
                Table.concatenated([table for table in tables if len(table)] or [empty]),
                labels,
                texts,
            )
        nothing = np.empty((0, self.roles.n_numbers))
        return np.concatenate([nothing, *(piece.numbers for piece in data)]), labels, texts

    def _finish(self, text: bytes, found: "Parsed", n_slow: int) -> _Late | None:
        """Convert the numbers that the kernel left to Python, up to one that is infinite."""
        for row, number, start, stop in found.slow[:n_slow].tolist():
            value = found.numbers[row, number] = float(text[start:stop])
            if value in (np.inf, -np.inf):
                column = self.roles.codes.tolist().index(number)
                sentence = self._sentence(kernels.csv.TOO_LARGE, text[start:stop])
                return self._late(found, row, column, sentence)
        return None

    def _late(self, found: "Parsed", row: int, column: int, sentence: str) -> _Late:
        return _Late(row, Fault(int(found.lines[row]), self._place(column), sentence))

    def _place(self, column: int) -> str:
        return f", column {self.names[column]!r}" if column < len(self.names) else ""

    def _fault(self, text: bytes, line: int, position: int, code: int, column: int) -> Fault:
        codes = kernels.csv
        if code in (codes.TOO_FEW, codes.TOO_MANY):
            wanted = len(self.names)
            count = "more" if code == codes.TOO_MANY else f"{column}"
            sentence = f"{count} cells where the header names {wanted} columns."
            return Fault(line, "", f"{sentence}{SKIP}")
        if code == codes.TOO_LONG:
            size = f"{self.longest >> 20} MiB"
            return Fault(line, "", f"a row of more than {size}; is one of its quotes not closed?")
        cell = text[
            position : min(text.find(end, position) % len(text) for end in (self.separator, b"\n"))
        ]
        return Fault(line, self._place(column), self._sentence(code, cell.strip()))

    def _sentence(self, code: int, cell: bytes) -> str:
        codes = kernels.csv
        if code == codes.MISSING:
            return f"the cell is empty; {_FILL}."
        if code == codes.TOO_LARGE:
            return f"{shown(cell)} is too large; no number may exceed 1.8e308."
        if code == codes.AFTER_QUOTE:
            return (
                f"text after a closing quote; a quote inside a quoted cell is written twice.{SKIP}"
            )
        if code == codes.OPEN_QUOTE:
            return f"a quote that is never closed.{SKIP}"
        if code == codes.NUL:
            return "a NUL byte; this is not text."
        if cell.strip(b'"').lower().decode("latin-1") in _GAPS:
            return f"{shown(cell)} is not a finite number; {_FILL}."
        return (
            f"{shown(cell)} is not a number; if the column holds categories, name it in "
            "`categorical`, as onehot or hash:BITS, else in `drop`."
        )
