"""Rows as JSON objects: cells by the names of columns, as a request or a line of events has them."""

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cbrank.features.table import GAP_WORDS, Column, Table, Words, is_gap_word, number_text
from cbrank.streams.cells import column_of, plain_number
from cbrank.streams.columns import Columns
from cbrank.streams.dialect import with_point
from cbrank.streams.labels import canonical
from cbrank.streams.rows import FIRST_FEW, Rows

Cell = float | int | bool | str | None
Row = Mapping[str, Cell]

_NUMBERS = {float, int, bool, type(None)}
_NO_LINES = np.zeros(0, np.int64)
_FIRST = np.zeros(1, np.int32)
_FIRST.flags.writeable = False
_LABEL = "label"  # the key of the label where the model knows no name for it


class Objects:
    r"""What reads rows as JSON objects by what the columns of a model mean.

    A key that a row lacks is a missing value, as null is; keys that the model does not know are left out.
    Text means what it means in the file that the columns learned from, decimal commas included.

    Parameters
    ----------
    columns : Columns
        Columns that have learned from a file.

    Attributes
    ----------
    label : str
        The key of a row's label.
    names : list of str
        The columns of numbers, or all of a table that is taken as it comes.

    Examples
    --------
    >>> import io
    >>> from cbrank.streams import TableColumns, open_stream
    >>> columns = TableColumns(label="clicked")
    >>> table = io.BytesIO(b"age,city,clicked\n31,Oslo,no\n44,Rome,yes\n")
    >>> [chunk] = open_stream(table, columns=columns)
    >>> objects = Objects(columns)
    >>> objects.features([{"age": 31, "city": "Oslo"}, {"age": "?", "planet": "Mars"}]).columns
    [array([31., nan]), Words(codes=array([ 0, -1], dtype=int32), values=('Oslo',), declared=False)]
    >>> objects.labels([{"clicked": "yes"}, {"clicked": "no"}])
    ['yes', 'no']
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.label = str(columns.label) if columns.label is not None else _LABEL
        names = [*(columns.numeric_ or ())]
        self.names, self._known = names, {*names, *columns._tables}
        self._cells = _getter(names)
        self._codes: dict[Any, str] = {}
        self.id: str | None = str(columns.id) if columns.id is not None else "id"
        if self.id in self._known or self.id == self.label:
            self.id = None

    # Checks ------------------------------------------------------------------------------------

    def _refuse_strangers(self, rows: Sequence[Row]) -> None:
        known = self._known
        _refuse(
            [
                f"row {at} has none of the model's columns: {_listed(self.names)}."
                for at, row in enumerate(rows)
                if known.isdisjoint(row)
            ]
        )

    def _bad_cells(self, rows: Sequence[Row]) -> list[str]:
        return [
            f"row {at}, column {name!r}: {_what(row.get(name))}, and the model needs a number."
            for at, row in enumerate(rows)
            for name in self.names
            if not _is_number(row.get(name))
        ]

    def _bad_entries(self, at: int, row: Row) -> list[str]:
        faults = []
        for key, cell in row.items():
            if key in (self.label, self.id):
                continue
            place = self._place(key)
            if place is None:
                faults.append(
                    f"row {at}: the key {key[:40]!r} is no index of a feature up to "
                    f"{self.columns.max_width:,}."
                )
            elif not _is_number(cell):
                faults.append(f"row {at}, feature {key}: {_what(cell)}, not a number.")
        return faults

    def _place(self, key: str) -> int | None:
        """Return the place of a feature of svmlight text."""
        if not (key.isascii() and key.isdecimal()) or len(key) > 10:
            return None
        place = int(key) - (0 if self.columns.zero_based else 1)
        return place if 0 <= place < self.columns.max_width else None

    # Rows --------------------------------------------------------------------------------------

    def features(self, rows: Sequence[Row]) -> Any:
        """Return rows as the model takes them; categories and features it does not know are left out.

        Parameters
        ----------
        rows : sequence of mapping
            The rows.

        Returns
        -------
        Table, ndarray or csr_array
            As the chunks of a stream that reads with these columns.

        Raises
        ------
        ValueError
            If rows have none of the columns, or no number where there must be one; the sentence names
            them all.
        """
        texts = {
            name: ["" if (cell := row.get(name)) is None else _text(cell) for row in rows]
            for name in self.columns._tables
        }
        read: Callable[[Sequence[Row]], Any] = self._numbers
        if self.columns.AS_THEY_COME:
            read = self._table
        elif self.columns.numeric_ is None:
            read = self._entries
        found = Rows(read(rows), None, texts, _NO_LINES, 0, 0, 0, [])
        return self.columns._features(found, learn=False)

    def _table(self, rows: Sequence[Row]) -> Table:
        try:
            cells: Iterable[Sequence[Cell]] = zip(*map(self._cells, rows), strict=True)
        except KeyError:
            self._refuse_strangers(rows)
            cells = ([row.get(name) for row in rows] for name in self.names)
        if self.columns.decimal == ",":
            cells = ([_with_point(cell) for cell in column] for column in cells)
        return Table(self.names, map(_column, cells))

    def _numbers(self, rows: Sequence[Row]) -> NDArray[np.float64]:
        shape = len(rows), len(self.names)
        try:
            cells = [*itertools.chain.from_iterable(map(self._cells, rows))]
            if {*map(type, cells)} <= _NUMBERS - {type(None)}:
                found = np.array(cells, np.float64).reshape(shape)
                if np.isfinite(found).all():
                    return found
        except (KeyError, OverflowError):
            pass
        self._refuse_strangers(rows)
        faults = self._bad_cells(rows)
        assert faults, "rows of numbers are refused for a reason"
        raise _refused(faults)

    def _entries(self, rows: Sequence[Row]) -> csr_array:
        _refuse([fault for at, row in enumerate(rows) for fault in self._bad_entries(at, row)])
        apart = {self.label, self.id}
        data, places, ends = list[float](), list[int](), [0]
        for row in rows:
            found = {
                int(place): float(cell)  # type: ignore[arg-type]
                for key, cell in row.items()
                if key not in apart and (place := self._place(key)) is not None
            }
            for place in sorted(found):
                places.append(place)
                data.append(found[place])
            ends.append(len(places))
        width = max([self.columns.width_, *(place + 1 for place in places)])
        parts = np.array(data), np.array(places, np.int32), np.array(ends, np.int32)
        return csr_array(parts, shape=(len(rows), width))

    # Labels ------------------------------------------------------------------------------------

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """Return the label of each row as the model knows it.

        Parameters
        ----------
        rows : sequence of mapping
            Rows with labels.

        Returns
        -------
        list of str
            Labels among the two of the model.

        Raises
        ------
        ValueError
            If rows have no label, or another; the sentence names them.
        """
        found, faults, key = list[str](), list[str](), self.label
        for at, row in enumerate(rows):
            if key not in row:
                faults.append(f"row {at} has no {key!r}, which is the label.")
                continue
            try:
                found.append(self.label_of(row[key]))
            except ValueError as error:
                faults.append(f"row {at}: {error}")
        _refuse(faults)
        return found

    def label_of(self, value: Cell) -> str:
        """Return a label as the model knows it; a ValueError if it is none of the two.

        Parameters
        ----------
        value : str, number or bool
            The label.

        Returns
        -------
        str
            One of the model's two labels.
        """
        kind = type(value)
        known = self._codes.get((kind, value))
        if known is not None:
            return known
        classes, found = self.columns.classes_, canonical("" if value is None else value)
        if kind is bool:
            words = found, found.lower(), str(int(bool(value)))
            found = next((word for word in words if word in classes), found)
        if found not in classes:
            if not found or found.lower() in GAP_WORDS:
                raise ValueError("the label is missing.")
            names = " nor ".join(map(repr, classes))
            raise ValueError(f"the label {found[:40]!r} is neither {names}.")
        if len(self._codes) < 100:  # a label can be written in many ways
            self._codes[kind, value] = found
        return found


def _getter(names: list[str]) -> Callable[[Row], tuple[Cell, ...]]:
    """Return what takes the cells of these columns out of a row; a KeyError if one is not there."""
    if len(names) == 1:
        [name] = names
        return lambda row: (row[name],)
    return operator.itemgetter(*names) if names else lambda _row: ()


def _column(cells: Sequence[Cell]) -> Column:
    """Return a column, as it would be read from text: infinite numbers are gaps."""
    if len(cells) == 1:
        [cell] = cells
        if type(cell) is float:
            return np.array([cell if -np.inf < cell < np.inf else np.nan])
        if isinstance(cell, str):
            return _only(cell.strip())
    kinds = {*map(type, cells)}
    if kinds == {str}:
        return column_of(map(str.strip, cells))  # type: ignore[arg-type]
    if str in kinds and all(is_gap_word(text.strip()) for text in {*filter(_is_text, cells)}):
        cells, kinds = [None if _is_text(cell) else cell for cell in cells], kinds - {str}
    if kinds <= _NUMBERS:
        numbers = np.array([_finite(cell) for cell in cells] if int in kinds else cells, np.float64)
        return np.where(np.isinf(numbers), np.nan, numbers)
    return column_of(["" if cell is None else _text(cell) for cell in cells])


def _with_point(cell: Cell) -> Cell:
    """Return a text as a table with decimal commas means it."""
    return with_point(cell.strip()) if isinstance(cell, str) else cell


def _is_text(cell: Any) -> TypeGuard[str]:
    return isinstance(cell, str)


def _only(text: str) -> Column:
    """Return a column of one text: what `column_of` returns, in a third of the time."""
    number = np.nan if is_gap_word(text) else plain_number(text)
    return Words(_FIRST, (text,)) if number is None else np.array([number])


def _finite(cell: Any) -> float | None:
    """Return a number; None for a whole number that is too large for a double."""
    try:
        return None if cell is None else float(cell)
    except OverflowError:
        return None


def _text(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell.strip()
    number = _finite(cell)
    return "" if number is None or not np.isfinite(number) else number_text(number)


def _is_number(cell: Any) -> bool:
    number = _finite(cell) if isinstance(cell, float | int) else None
    return number is not None and bool(np.isfinite(number))


def _what(cell: Cell) -> str:
    if cell is None:
        return "the value is missing"
    return f"{str(cell)[:40]!r} is a word" if isinstance(cell, str) else "the value is infinite"


def _listed(names: Sequence[str]) -> str:
    more = ", ..." if len(names) > FIRST_FEW else ""
    return ", ".join(map(repr, names[:FIRST_FEW])) + more


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        raise _refused(faults)


def _refused(faults: Sequence[str]) -> ValueError:
    """Return one error about all faults; of many, the first few and how many there are."""
    more = len(faults) - FIRST_FEW
    last = [f"There are {more:,} more."] if more > 0 else []
    return ValueError(" ".join(itertools.chain(faults[:FIRST_FEW], last)))
