"""What an encoder has decided: the state of each column, and rows encoded by it."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from cbrank import kernels
from cbrank.features.curves import NumberColumn, Pieces, singles_of
from cbrank.features.kinds import (
    IN_ORDER,
    KINDS,
    Decision,
    asked_for,
    decided,
    gaps_of,
    numbers_of,
    times_of,
    words_of,
)
from cbrank.features.ledger import Ledger, Reader, Writer, put_ledger
from cbrank.features.table import Column, Table, Times, Words
from cbrank.features.text import TextColumn
from cbrank.features.times import TIME_MARKS, TimeColumn
from cbrank.features.words import WordColumn
from cbrank.texts import has_twins

Known = NumberColumn | WordColumn | TimeColumn | TextColumn

_CONVINCING = 128  # cells of a block that can show a decision to be wrong
# Where one value is most of a column (capital gains, mostly zero), each of the others may mean something of
# its own: where columns are few, such a column has so many times the pieces.
_FEW_COLUMNS, _FINER = 32, 4
_CELLS = 2**20  # numbers encoded at a time, so that memory stays within bounds
_FEW_ROWS = 16  # encoded at a time however wide they are: columns are looked at one by one
_KINDS = ("", *KINDS)  # as numbers in a model file
_PHRASES = {"number": "a number", "word": "a word", "time": "a time", "text": "free text"}


@dataclass(frozen=True)
class Settings:
    """What the caller has asked for."""

    names: tuple[str, ...]
    pieces: int
    most_categories: int
    asked: Mapping[str, str]

    @classmethod
    def asked_for(
        cls, names: tuple[str, ...], pieces: int, most: int, kinds: Mapping[Any, str]
    ) -> "Settings":
        """Return the settings, given kinds by name or position; refuse what makes no sense."""
        asked, known = {}, {*names}
        for column, kind in kinds.items():
            name = names[column] if column in range(len(names)) else column
            if name not in known:
                raise ValueError(f"`kinds` names column {column!r}, which X does not have.")
            if kind not in KINDS:
                raise ValueError(
                    f"`kinds` says that column {column!r} is {kind!r}: use one of "
                    f"{', '.join(map(repr, KINDS))}."
                )
            asked[name] = kind
        return cls(names, int(pieces), int(most), asked)


@dataclass(frozen=True, slots=True)
class Settled:
    """A column: what it was decided to be, and what is known of it."""

    decision: Decision
    known: Known | None = None
    rows: int = 0  # from which it was decided
    gaps: int = 0  # in those

    def comes_in_order(self) -> bool:
        """Say whether it was found to rise, or fall, with the rows."""
        if isinstance(self.known, TimeColumn):
            return self.known.mixed is False
        return self.decision.reason.endswith(IN_ORDER)

    def sentence(self, name: str) -> str:
        """Say what was decided."""
        kind, reason, asked = self.decision
        if not kind:
            return f"{name}: no value so far"
        if self.known is None:
            return f"{name}: left out, {'as asked' if asked else reason}"
        words = " ".join(filter(None, [_PHRASES[kind], reason]))
        text = f"{name}: {words}{', as asked' * asked}, {self.known.describe()}"
        return f"{text}; {self.gaps} of {self.rows} cells are gaps" if self.gaps else text


class Encoding:
    """Columns with their features; `settle` learns, `encode` uses what was learned."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.columns: list[Settled] = [
            Settled(Decision(settings.asked.get(name, ""), "", name in settings.asked))
            for name in settings.names
        ]
        self.ledger = Ledger()
        self._plan: _Plan | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a twin that shares what is known: it is replaced, and never changed."""
        return copy(self)

    # Learning ------------------------------------------------------------------------------------

    def settle(self, table: Table, *, in_order: bool) -> None:
        """Learn from the rows of a block; all columns do, or after an error none."""
        ledger = Ledger(self.ledger.entries)
        columns = [
            self._settled(place, column, values, ledger, in_order)
            for place, (column, values) in enumerate(zip(self.columns, table.columns, strict=True))
        ]
        self.__dict__.update(columns=columns, ledger=ledger, _plan=None)

    def _settled(
        self, place: int, column: Settled, values: Column, ledger: Ledger, in_order: bool
    ) -> Settled:
        if not len(values) or column.decision.kind == "drop":
            return column
        if column.known is None:
            column = self._decided(place, column, values, in_order)
        elif isinstance(values, Words) and not column.decision.asked:
            column = self._reconsidered(place, column, values)
        known = column.known
        if known is None:
            return column
        cells = _cells(column, values)
        return replace(column, known=known.settled(cells, ledger))

    def _decided(self, place: int, column: Settled, values: Column, in_order: bool) -> Settled:
        name, kind = self.settings.names[place], column.decision.kind
        if column.decision.asked:
            decision = asked_for(kind, values)
        else:
            decision = decided(name, values, in_order=in_order)
        known = self._new(place, decision.kind)
        if isinstance(known, TimeColumn) and not in_order:
            known = replace(known, mixed=True)
        return Settled(decision, known, column.rows + len(values), column.gaps + gaps_of(values))

    def _reconsidered(self, place: int, column: Settled, values: Words) -> Settled:
        """Return a column of words if it was numbers or times, and now most cells are neither."""
        known = column.known
        if not isinstance(known, NumberColumn | TimeColumn):
            return column
        cells = int((words_of(values, asked=False).codes >= 0).sum())
        found = _cells(column, values)
        read = int((~np.isnan(found.seconds if isinstance(found, Times) else found)).sum())
        if cells < _CONVINCING or 2 * read >= cells:
            return column
        words = WordColumn(place, known.name, self.settings.most_categories, gap=known.gap)
        return replace(column, decision=Decision("word", "though not at first"), known=words)

    def _new(self, place: int, kind: str) -> Known | None:
        name, settings = self.settings.names[place], self.settings
        if kind == "number":
            few = len(settings.names) <= _FEW_COLUMNS
            of_lumps = settings.pieces * (_FINER if few else 1)
            return NumberColumn(place, name, settings.pieces, of_lumps)
        if kind == "word":
            return WordColumn(place, name, settings.most_categories)
        if kind == "time":
            return TimeColumn.new(place, name, settings.pieces)
        return TextColumn(place, name) if kind == "text" else None

    # Using it ------------------------------------------------------------------------------------

    def encode(self, table: Table) -> csr_array:
        """Return rows of features; each row depends on nothing but itself and what was settled."""
        return self._planned().encoded(table, self.ledger.width)

    def encode_dense(self, table: Table) -> NDArray[np.float64]:
        """Return the same as an array."""
        return self._planned().dense(table, self.ledger.width)

    def _planned(self) -> "_Plan":
        if self._plan is None:
            self._plan = _Plan(self.columns)
        return self._plan

    def as_decided(self, table: Table) -> list[Column]:
        """Return columns as what they were decided to be; cells that are not are gaps."""
        return [*map(_cells, self.columns, table.columns)]

    def misfits(self, table: Table) -> dict[str, NDArray[np.int64]]:
        """Return the rows whose words are no number or time where the column holds such."""
        found = {}
        for column, values, name in zip(
            self.columns, table.columns, self.settings.names, strict=True
        ):
            if isinstance(values, Words) and isinstance(column.known, NumberColumn | TimeColumn):
                cells = _cells(column, values)
                read = ~np.isnan(cells.seconds if isinstance(cells, Times) else cells)
                there = words_of(values, asked=False).codes >= 0
                if (there & ~read).any():
                    found[name] = np.flatnonzero(there & ~read)
        return found

    def sentences(self) -> list[str]:
        """Return what was decided, a sentence for each column."""
        return [
            column.sentence(name)
            for column, name in zip(self.columns, self.settings.names, strict=True)
        ]

    # In model files ------------------------------------------------------------------------------

    def save(self) -> dict[str, NDArray[Any]]:
        """Return all that was decided and learned, with the names of the columns, as arrays."""
        out = Writer()
        for name, column in zip(self.settings.names, self.columns, strict=True):
            kind, reason, asked = column.decision
            out.put(_KINDS.index(kind), int(asked), column.rows, column.gaps)
            out.texts += [name, reason]
        put_ledger(out, self.ledger)
        for column in self.columns:
            if column.known is not None:
                column.known.save(out)
        return out.arrays()

    @classmethod
    def load(
        cls, arrays: Mapping[str, NDArray[Any]], columns: int, pieces: int, most_categories: int
    ) -> "Encoding":
        """Return what was saved; a ValueError if it makes no sense."""
        source = Reader(arrays, columns)
        names, decided = list[str](), list[Settled]()
        for _ in range(columns):
            name, column = _loaded(source)
            names.append(name)
            decided.append(column)
        if has_twins(names):
            raise ValueError("its encoder has two columns of one name")
        asked = {
            name: column.decision.kind
            for name, column in zip(names, decided, strict=True)
            if column.decision.asked
        }
        encoding = cls(Settings(tuple(names), pieces, most_categories, asked))
        encoding.ledger = source.get_ledger()
        encoding.columns = [
            encoding._with_known(place, column, source) for place, column in enumerate(decided)
        ]
        source.finish()
        return encoding

    def _with_known(self, place: int, column: Settled, source: Reader) -> Settled:
        known = self._new(place, column.decision.kind) if column.rows else None
        return replace(column, known=known.load(source)) if known else column


def _loaded(source: Reader) -> tuple[str, Settled]:
    """Return the name of a column, and what was decided about it."""
    kind, asked = _KINDS[source.get(0, len(_KINDS) - 1)], bool(source.get(0, 1))
    rows = source.get()
    gaps, name, reason = source.get(0, rows), source.get_text(), source.get_text()
    if (asked and not kind) or (kind and not asked and not rows):
        raise ValueError(f"its encoder has no sound decision on column {name!r}")
    return name, Settled(Decision(kind, reason, asked), None, rows, gaps)


def _cells(column: Settled, values: Column) -> Any:
    """Return a column's cells as what it was decided to be."""
    kind = column.decision.kind
    if kind == "number":
        return numbers_of(values, column.decision.reason)
    if kind == "time":
        return times_of(values, column.decision.reason)
    return words_of(values, asked=column.decision.asked)


class _Plan:
    """How rows are encoded: all columns of numbers at once, all others one by one."""

    def __init__(self, columns: list[Settled]) -> None:
        self.columns = [(at, column) for at, column in enumerate(columns) if column.known]
        curves: list[NumberColumn] = []
        for _, column in self.columns:
            if isinstance(column.known, NumberColumn):
                curves.append(column.known)
            elif isinstance(column.known, TimeColumn):
                curves += [column.known.year, column.known.days]
        self.pieces = Pieces([(curve, at) for at, curve in enumerate(curves)])
        self.curves = len(curves)
        self.ramps, self.singles = self.pieces.ramps(), singles_of(curves)
        kinds = [type(column.known) for _, column in self.columns]
        self.marks = kinds.count(WordColumn) + TIME_MARKS * kinds.count(TimeColumn)

    def encoded(self, table: Table, width: int) -> csr_array:
        rows = max(_FEW_ROWS, _CELLS // max(1, len(self.pieces.features)))
        if len(table) <= rows:
            return self._encoded(table, width)
        parts = [
            self._encoded(table.take(slice(begin, begin + rows)), width)
            for begin in range(0, len(table), rows)
        ]
        return _stacked(parts, width)

    def dense(self, table: Table, width: int) -> NDArray[np.float64]:
        """Return the rows of `encoded` as an array."""
        numbers = np.empty((len(table), self.curves))
        marks = np.empty((len(table), self.marks), np.int64)
        X, at, mark = np.zeros((len(table), width)), 0, 0
        is_one = len(table) == 1
        for place, column in self.columns:
            values, known = table.columns[place], column.known
            if isinstance(known, NumberColumn):
                numbers[:, at] = (
                    values if isinstance(values, np.ndarray) else _cells(column, values)
                )
                at += 1
            elif isinstance(known, WordColumn):
                if is_one and isinstance(values, Words):
                    marks[0, mark] = known.place(values, asked=column.decision.asked)
                else:
                    marks[:, mark] = known.places(_cells(column, values))
                mark += 1
            elif isinstance(known, TimeColumn):
                cells = _cells(column, values)
                numbers[:, at], numbers[:, at + 1], words = known.taken_apart(cells)
                marks[:, mark : mark + TIME_MARKS] = np.transpose(words)
                at, mark = at + 2, mark + TIME_MARKS
            elif isinstance(known, TextColumn):
                cells = _cells(column, values)
                X[np.flatnonzero(cells.codes < 0), known.gap] = float(known.gap >= 0)
                rows, features, found = known.entries(cells)
                X[rows, features] = found
        kernels.encoding.encode(numbers, marks, self.singles, self.ramps, X)
        return X

    def _encoded(self, table: Table, width: int) -> csr_array:
        numbers = np.empty((len(table), self.curves))
        entries, at = _Entries(len(table)), 0
        for place, column in self.columns:
            cells, known = _cells(column, table.columns[place]), column.known
            if isinstance(known, NumberColumn):
                numbers[:, at], indicators = known.parted(cells)
                at += 1
                entries.marks += indicators
            elif isinstance(known, TimeColumn):
                numbers[:, at], numbers[:, at + 1], words = known.taken_apart(cells)
                at += 2
                entries.marks += words
            elif isinstance(known, WordColumn):
                entries.marks.append(known.places(cells))
            elif isinstance(known, TextColumn):
                entries.marks.append(np.where(cells.codes < 0, known.gap, -1))
                entries.add(*known.entries(cells))
        found = self.pieces.encoded(numbers)
        nonzero = np.nonzero(found)
        entries.add(nonzero[0], self.pieces.features[nonzero[1]], found[nonzero])
        return entries.csr(width)


class _Entries:
    """Entries of sparse rows, collected column by column."""

    def __init__(self, rows: int) -> None:
        self.n_rows = rows
        self.rows: list[NDArray[Any]] = []
        self.features: list[NDArray[Any]] = []
        self.values: list[NDArray[np.float64]] = []
        self.marks: list[NDArray[Any]] = []  # the feature of each row that is 1, or -1

    def add(self, rows: NDArray[Any], features: NDArray[Any], values: NDArray[np.float64]) -> None:
        self.rows.append(rows)
        self.features.append(features)
        self.values.append(values)

    def csr(self, width: int) -> csr_array:
        """Return the rows, their features in order."""
        if self.marks:
            marks = np.array(self.marks)
            columns, rows = np.nonzero(marks >= 0)
            self.add(rows, marks[columns, rows], np.ones(len(rows)))
        rows, features = np.concatenate(self.rows), np.concatenate(self.features)
        values, shape = np.concatenate(self.values), (self.n_rows, width)
        if self.n_rows == 1:
            order = np.argsort(features)
            ends = np.array([0, len(values)], np.int32)
            return csr_array((values[order], features[order].astype(np.int32), ends), shape=shape)
        kind = np.int32 if len(values) < 2**31 else np.int64
        places = rows.astype(kind), features.astype(kind)
        found = coo_array((values, places), shape=shape).tocsr()
        found.sort_indices()
        return found


def _stacked(parts: list[csr_array], width: int) -> csr_array:
    sizes = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)])
    indices = np.concatenate([part.indices for part in parts])
    values = np.concatenate([part.data for part in parts])
    return csr_array((values, indices, np.cumsum(sizes)), shape=(len(sizes) - 1, width))


def is_text(known: Known | None) -> bool:
    """Say whether a column is free text, whose features are many."""
    return isinstance(known, TextColumn)
