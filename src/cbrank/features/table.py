"""Tables inside the package: named columns of numbers, words or times, whatever they came from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cbrank.texts import Texts, has_twins

Numbers = NDArray[np.float64]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What people write into a cell that they leave empty, in small letters.
GAP_WORDS = frozenset({"", "?", "na", "n/a", "#n/a", "null", "none", "nan", "nat", "<na>", "-"})

# Columns of a table that an encoder takes: what is known of one takes some kilobytes, and nearly one in a
# forged model file, which takes a hundred bytes there.
MOST_TABLE_COLUMNS = 2**18

_NUMBERS, _WORDS, _TIMES, _DECLARED = range(4)  # kinds of columns in a model file


@dataclass(frozen=True, slots=True)
class Words:
    """A column of words: a code for each row and the words themselves.

    Parameters
    ----------
    codes : ndarray of int32
        The place of each row's word among `values`; -1 for a gap.
    values : tuple of str
        Different words, none of them blank, without blanks at their ends.
    declared : bool, default=False
        Whether the caller's own type says that these are categories.
    """

    codes: NDArray[np.int32]
    values: tuple[str, ...]
    declared: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> "Words":
        codes = self.codes[rows]
        if len(self.values) <= 2 * len(codes) + 8:
            return Words(codes, self.values, self.declared)
        used, places = np.unique(codes, return_inverse=True)
        gaps = int(used.size > 0 and used[0] < 0)
        values = tuple([self.values[at] for at in used[gaps:].tolist()])
        return Words((places - gaps).astype(np.int32), values, self.declared)

    def numbered(self, numbers: Sequence[float]) -> Numbers:
        """Return a number for each row, given those of the words; NaN for a gap."""
        return np.array([*numbers, np.nan])[self.codes]


@dataclass(frozen=True, slots=True)
class Times:
    """A column of times.

    Parameters
    ----------
    seconds : ndarray of float64
        Seconds since 1970 of the clock on the wall, without a time zone; NaN for a gap.
    """

    seconds: Numbers

    def __len__(self) -> int:
        return len(self.seconds)

    def __getitem__(self, rows: Any) -> "Times":
        return Times(self.seconds[rows])


Column = Numbers | Words | Times


class Table:
    """Rows of a table as columns, which nobody changes.

    Parameters
    ----------
    names : list of str
        The columns' names, all different.
    columns : list of ndarray, Words or Times
        The columns; an array holds numbers, with NaN for gaps.
    named : bool, default=True
        Whether the caller named the columns; if not, they are "x0", "x1" and so on.

    Examples
    --------
    >>> table = Table(["age", "city"], [np.array([31, np.nan]), Words(np.array([0, 0]), ("Oslo",))])
    >>> table.shape, len(table.take([1]))
    ((2, 2), 1)
    """

    __slots__ = ("columns", "named", "names")

    def __init__(self, names: Iterable[str], columns: Iterable[Column], named: bool = True) -> None:
        self.names, self.columns, self.named = [*names], [*columns], named

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # nobody changes it

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        return len(self), len(self.columns)

    def plain(self) -> "Table":
        """Return the rows without what a subclass knows of them."""
        return self

    def take(self, rows: Any) -> "Table":
        """Return some of the rows: places, a mask or a slice."""
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
        return Table(self.names, [column[rows] for column in self.columns], self.named)

    @classmethod
    def concatenated(cls, tables: Sequence["Table"]) -> "Table":
        """Return the rows of all tables, which have the same columns, one after the other."""
        if len(tables) == 1:
            return tables[0]
        parts = zip(*(table.columns for table in tables), strict=True)
        return cls(tables[0].names, map(_joined, parts), tables[0].named)

    # In model files ------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        """Return arrays without objects, from which `from_state` restores it, given the names."""
        rows = len(self)
        words = [_in_order(column) for column in self.columns if isinstance(column, Words)]
        times = [column.seconds for column in self.columns if isinstance(column, Times)]
        numbers = [column for column in self.columns if isinstance(column, np.ndarray)]
        texts = Texts.of(value for column in words for value in column.values)
        return {
            "kinds": np.array([*map(_kind, self.columns)], np.uint8),
            "numbers": _stacked(numbers, rows, np.float64),
            "times": _stacked(times, rows, np.float64),
            "codes": _stacked([column.codes for column in words], rows, np.int32),
            "sizes": np.array([len(column.values) for column in words], np.int64),
            **texts.arrays(),
        }

    @classmethod
    def from_state(
        cls, arrays: Mapping[str, NDArray[Any]], names: Sequence[str], named: bool = True
    ) -> Self:
        """Make the table of `state`; a forged or inconsistent state raises a ValueError."""
        kinds = arrays.get("kinds", np.zeros(0))
        if (
            arrays.keys() != {"kinds", "numbers", "times", "codes", "sizes", "text", "ends"}
            or kinds.dtype != np.uint8
            or kinds.shape != (len(names),)
            or (kinds > _DECLARED).any()
        ):
            raise ValueError("its waiting rows are no table")
        rows, counts = arrays["codes"].shape[-1:], np.bincount(kinds, minlength=_DECLARED + 1)
        words = int(counts[_WORDS] + counts[_DECLARED])
        for name, count, kind in (
            ("numbers", counts[_NUMBERS], np.float64),
            ("times", counts[_TIMES], np.float64),
            ("codes", words, np.int32),
        ):
            if arrays[name].shape != (count, *rows) or arrays[name].dtype != kind:
                raise ValueError(f"the {name} of its waiting rows do not fit")
        values = iter(_checked_values(arrays, words))
        numbers, times, codes = (iter(arrays[name]) for name in ("numbers", "times", "codes"))
        columns: list[Column] = []
        for kind in kinds.tolist():
            if kind == _NUMBERS:
                columns.append(next(numbers))
            elif kind == _TIMES:
                columns.append(Times(next(times)))
            else:
                columns.append(Words(next(codes), next(values), kind == _DECLARED))
        return cls(names, columns, named)


def _in_order(column: Words) -> Words:
    """Return words in order of appearance, so that a file does not tell in which parts they came."""
    used, first, places = np.unique(column.codes, return_index=True, return_inverse=True)
    gaps = int(used.size > 0 and used[0] < 0)
    order = np.argsort(first[gaps:], kind="stable")
    moved = np.empty(len(used), np.int32)
    moved[:gaps], moved[gaps + order] = -1, np.arange(len(order))
    values = tuple([column.values[at] for at in used[gaps:][order].tolist()])
    return Words(moved[places].astype(np.int32), values, column.declared)


def _kind(column: Column) -> int:
    if isinstance(column, Words):
        return _DECLARED if column.declared else _WORDS
    return _TIMES if isinstance(column, Times) else _NUMBERS


def _stacked(columns: list[NDArray[Any]], rows: int, kind: Any) -> NDArray[Any]:
    return np.array(columns, kind) if columns else np.zeros((0, rows), kind)


def _checked_values(arrays: Mapping[str, NDArray[Any]], columns: int) -> list[tuple[str, ...]]:
    """Return the words of each column in a state."""
    sizes, codes = arrays["sizes"], arrays["codes"]
    texts = Texts.checked({"text": arrays["text"], "ends": arrays["ends"]})
    if (
        sizes.shape != (columns,)
        or sizes.dtype != np.int64
        or (sizes < 0).any()
        or (sizes > len(texts)).any()
        or int(sizes.sum()) != len(texts)
        or (codes < -1).any()
        or (codes >= sizes[:, None]).any()
    ):
        raise ValueError("the words of its waiting rows do not fit")
    found, begin = [], 0
    for size in sizes.tolist():
        found.append(tuple(texts[begin : begin + size]))
        begin += size
        if has_twins(found[-1]) or any(not value.strip() for value in found[-1]):
            raise ValueError("the words of its waiting rows are blank, or there twice")
    return found


# One column of several ---------------------------------------------------------------------------


def _joined(parts: tuple[Column, ...]) -> Column:
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)  # type: ignore[arg-type]
    filled = [part for part in parts if not is_empty(part)]
    if all(isinstance(part, np.ndarray) for part in filled) and filled:
        return np.concatenate([_emptied(part, np.ndarray) for part in parts])
    if all(isinstance(part, Times) for part in filled):
        return Times(np.concatenate([_emptied(part, Times) for part in parts]))
    return _joined_words([in_words(part) for part in parts])


def _emptied(part: Column, kind: type) -> Numbers:
    """Return the numbers of a column, or as many gaps if it is of another kind, and empty."""
    if not isinstance(part, kind):
        return np.full(len(part), np.nan)
    return part.seconds if isinstance(part, Times) else part  # type: ignore[return-value]


def _joined_words(parts: list[Words]) -> Words:
    places: dict[str, int] = {}
    codes = []
    for part in parts:
        moved = [places.setdefault(value, len(places)) for value in part.values]
        codes.append(np.array([*moved, -1], np.int32)[part.codes])
    declared = all(part.declared for part in parts if len(part))
    return Words(np.concatenate(codes), tuple(places), declared)


def is_empty(column: Column) -> bool:
    """Say whether a column has gaps only."""
    if isinstance(column, Words):
        return bool((column.codes < 0).all())
    return bool(np.isnan(column.seconds if isinstance(column, Times) else column).all())


def in_words(column: Column) -> Words:
    """Return numbers and times as the words that would be written for them."""
    if isinstance(column, Words):
        return column
    cells, write = (
        (column.seconds, time_text) if isinstance(column, Times) else (column, number_text)
    )
    found, codes = np.unique(cells, return_inverse=True)
    found = found[~np.isnan(found)]
    codes = np.where(np.isnan(cells), -1, codes)
    texts: dict[str, int] = {}
    places = [texts.setdefault(write(value), len(texts)) for value in found.tolist()]
    return Words(np.array([*places, -1], np.int32)[codes], tuple(texts))


def number_text(value: float) -> str:
    """Return a number as it is written; whole ones without a point.

    Examples
    --------
    >>> number_text(3.0), number_text(0.1)
    ('3', '0.1')
    """
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def time_text(seconds: float) -> str:
    """Return a time in ISO form; at midnight the date alone.

    Examples
    --------
    >>> time_text(86400.0), time_text(90000.0)
    ('1970-01-02', '1970-01-02T01:00:00')
    """
    try:
        moment = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None)
    except OverflowError:
        return number_text(seconds)
    text = moment.isoformat()
    return text.removesuffix("T00:00:00")


def is_gap_word(value: str) -> bool:
    """Say whether a word stands for an empty cell.

    Examples
    --------
    >>> is_gap_word("N/A"), is_gap_word("Oslo")
    (True, False)
    """
    return len(value) <= 5 and value.lower() in GAP_WORDS
