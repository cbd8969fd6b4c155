"""What a column is, by its first rows: a number, a word, a time, free text, or of no use."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from math import isnan, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank.features.dates import parsed_time
from cbrank.features.table import Column, Times, Words, in_words, is_empty, is_gap_word, number_text
from cbrank.features.words import without_gap_words

KINDS = ("number", "word", "time", "text", "drop")

_MOST = 0.9  # of the cells decide
_LONG_TEXT = 4  # words a cell
_FEW_ROWS = 8  # cells: of fewer, nothing can be said of how different they are
_MANY_ROWS = 32  # cells, all of them different: so many make an id of words
_LONGEST_ID = 40  # letters
IN_ORDER = "from row to row, as an id or a time does"
_FEW_STEPS = 4  # different numbers: of fewer, it is no wonder if they come in order

# "id", "customerID", "user_id" and what exports call their first column; not "paid", not "humid".
_ID_NAME = re.compile(
    r"(?i:id|uuid|guid|index|row|row[ _]?(id|number|names?)|unnamed: 0|.*[ _.-](id|uuid|guid))"
    r"|.*[a-z](ID|Id)"
)
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
_WITH_UNIT = re.compile(r"([-+]?)\s?[$€£¥]?\s?([-+]?\d[\d.,]*|[-+]?\.\d+)\s?[%$€£¥]?")
_Readings = dict[str, Callable[[str], float]]
_TRUTH = {"true": 1.0, "false": 0.0}


class Decision(NamedTuple):
    """What a column is, and why."""

    kind: str  # one of KINDS, or "" as long as all cells are empty
    reason: str = ""
    asked: bool = False  # by the caller


def decided(name: str, column: Column, *, in_order: bool) -> Decision:
    """Decide what a column is from its first rows, which may come in the order of a stream."""
    if isinstance(column, Words):
        return _decided_words(name, column, in_order)
    if is_empty(column):
        return Decision("")
    if isinstance(column, Times):
        return Decision("time")
    return _decided_numbers(name, column, "", in_order)


def _decided_words(name: str, column: Words, in_order: bool) -> Decision:
    if column.declared:
        return Decision("word" if (column.codes >= 0).any() else "")
    column = without_gap_words(column)
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.values))
    cells = int(counts.sum())
    if not cells:
        return Decision("")
    values = [(value, int(n)) for value, n in zip(column.values, counts, strict=True) if n]
    if all(value.lower() in _TRUTH for value, _ in values):
        return Decision("number", _IN_WORDS)  # as booleans are numbers, from wherever they come
    share, how = _best_reading(_READINGS["number"], values)
    if share >= _MOST:
        said = "" if how == _IN_WORDS and _are_plain(value for value, _ in values) else how
        return _decided_numbers(name, numbers_of(column, how), said, in_order)
    share, how = _best_reading(_LONG_YEARS, values)
    if share >= _MOST:
        return Decision("time", how)
    share, how = _best_reading(_SHORT_YEARS, values)
    if share >= _MOST and _has_more_days_than_years((value for value, _ in values), how):
        return Decision("time", how)
    if cells >= _FEW_ROWS and len(values) >= cells / 2:
        if sum(n * len(value.split()) for value, n in values) / cells >= _LONG_TEXT:
            return Decision("text")
        short = _share(values, lambda value: " " not in value and len(value) <= _LONGEST_ID)
        named = len(values) == cells and _is_id_name(name)
        if named or (cells >= _MANY_ROWS and len(values) >= _MOST * cells and short >= _MOST):
            return Decision("drop", _id_reason(len(values), cells))
    return Decision("word")


def _has_more_days_than_years(values: Iterable[str], how: str) -> bool:
    """Say whether dates with years of two digits are dates, with the year last.

    Codes such as 01.02.03 count on at their end, and so do dates such as 24/03/29 that begin with the year.
    """
    read = np.array([_SHORT_YEARS[how](value) for value in values])
    days = read[~np.isnan(read)].astype("M8[s]").astype("M8[D]")
    days_of_month = days - days.astype("M8[M]")
    return len(np.unique(days_of_month)) > len(np.unique(days.astype("M8[Y]")))


def _are_plain(values: Iterable[str]) -> bool:
    """Say whether all words that are numbers are written as numbers are.

    So it makes no difference whether the numbers of a column came as numbers or in words.
    """
    read = ((value, parsed_number(value)) for value in values)
    return all(isnan(number) or number_text(number) == value for value, number in read)


def asked_for(kind: str, column: Column) -> Decision:
    """Return the decision of the caller, with how the words of a column are read."""
    if not isinstance(column, Words) or kind not in _READINGS or not column.values:
        return Decision(kind, asked=True)
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.values))
    values = [*zip(column.values, counts.tolist(), strict=True)]
    return Decision(kind, _best_reading(_READINGS[kind], values)[1], asked=True)


def _best_reading(readings: _Readings, values: list[tuple[str, int]]) -> tuple[float, str]:
    """Return how most cells can be read as numbers or times, and their share."""
    found = []
    for how, read in readings.items():
        good = {value for value, _ in values if not isnan(read(value))}
        found.append((_share(values, good.__contains__), how))
    return max(found, key=lambda reading: reading[0])


def _share(values: list[tuple[str, int]], test: Callable[[str], bool]) -> float:
    """Return the share of the cells that pass a test."""
    cells = sum(n for _, n in values)
    return sum(n for value, n in values if test(value)) / cells if cells else 0.0


def _decided_numbers(
    name: str, values: NDArray[np.float64], reason: str, in_order: bool
) -> Decision:
    cells = values[~np.isnan(values)]
    different = len(np.unique(cells))
    enough = len(cells) >= 2 * _FEW_ROWS
    whole = len(cells) >= _FEW_ROWS and np.isfinite(cells).all() and (cells == np.rint(cells)).all()
    if whole and different == len(cells):
        counts_up = enough and (np.diff(cells) == 1.0).all()
        if counts_up or _is_id_name(name):
            return Decision("drop", _id_reason(len(cells), len(cells)))
    if in_order and enough and different >= _FEW_STEPS and (how := _moves(cells)):
        return Decision("drop", f"it {how} {IN_ORDER}")
    return Decision("number", reason)


def _moves(cells: NDArray[np.float64]) -> str:
    """Say whether numbers only ever rise, or only ever fall; nothing if they do both.

    In a stream such a number says when a row came: see ``times`` for what a ranker would learn from it.
    """
    if (cells[1:] >= cells[:-1]).all():
        return "rises"
    return "falls" if (cells[1:] <= cells[:-1]).all() else ""


def _id_reason(distinct: int, cells: int) -> str:
    share = "every value is" if distinct == cells else f"{distinct} of {cells} values are"
    return f"an id ({share} different)"


def _is_id_name(name: str) -> bool:
    return _ID_NAME.fullmatch(name) is not None


# A column as what it was decided to be -----------------------------------------------------------


def parsed_number(text: str) -> float:
    """Return the number that a word is, NaN if it is none.

    Examples
    --------
    >>> parsed_number("1,234.5"), parsed_number("$ 12"), parsed_number("1,5"), parsed_number("12 a")
    (1234.5, 12.0, nan, nan)
    """
    if "_" in text:
        return nan
    try:
        return float(text)
    except ValueError:
        pass
    if match := _WITH_UNIT.fullmatch(text):
        text = match[1] + match[2]
    text = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text
    try:
        return float(text)
    except ValueError:
        return nan


def parsed_with_comma(text: str) -> float:
    """Return the number that a word with a decimal comma is, NaN if it is none.

    Examples
    --------
    >>> parsed_with_comma("1.234,5"), parsed_with_comma("7.5")
    (1234.5, 7.5)
    """
    if text.count(",") == 1 and "." not in text.partition(",")[2]:
        text = text.replace(".", "").replace(",", ".")
    return parsed_number(text)


_IN_WORDS = "in words"
_DAY_FIRST = "in words, the day before the month"
_LONG_YEARS: _Readings = {_IN_WORDS: parsed_time, _DAY_FIRST: partial(parsed_time, day_first=True)}
_SHORT_YEARS: _Readings = {
    f"{_IN_WORDS}, years of two digits": partial(parsed_time, short_years=True),
    f"{_DAY_FIRST}, years of two digits": partial(parsed_time, day_first=True, short_years=True),
}
_READINGS: dict[str, _Readings] = {
    "number": {_IN_WORDS: parsed_number, "in words with decimal commas": parsed_with_comma},
    "time": _LONG_YEARS | _SHORT_YEARS,
}


def numbers_of(column: Column, how: str) -> NDArray[np.float64]:
    """Return a column as numbers, words read as was decided; what is none is a gap."""
    if isinstance(column, Words):
        read = _READINGS["number"].get(how, parsed_number)
        found = [read(value) for value in column.values]
        for at, value in enumerate(found):
            if isnan(value):
                found[at] = _TRUTH.get(column.values[at].lower(), nan)
        return column.numbered(found)
    return column.seconds if isinstance(column, Times) else column


def times_of(column: Column, how: str) -> Times:
    """Return a column as times, words read as was decided; what is none is a gap."""
    if isinstance(column, Words):
        read = _READINGS["time"].get(how, parsed_time)
        return Times(column.numbered([read(value) for value in column.values]))
    return column if isinstance(column, Times) else Times(np.full(len(column), nan))


def words_of(column: Column, *, asked: bool) -> Words:
    """Return a column as words; those that stand for a gap are gaps, unless words were asked for."""
    words = in_words(column)
    return words if asked else without_gap_words(words)


def gaps_of(column: Column) -> int:
    """Return how many cells are empty, by themselves or by the word they hold."""
    if isinstance(column, Words):
        gaps = np.array([*map(is_gap_word, column.values), True])
        return int(gaps[column.codes].sum())
    return int(np.isnan(column.seconds if isinstance(column, Times) else column).sum())
