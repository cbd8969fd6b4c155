"""What moved the scores of rows most, away from the average."""

from collections.abc import Sequence
from math import floor, log10
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank.features.table import Column, Table, Words, in_words, number_text
from cbrank.rankers.effects import Effects, Term
from cbrank.rankers.grids import OTHER

MOST_NAMED = 5  # terms of a sentence
_SLIGHT = 0.05  # of the largest: what moves a row less is not in its sentence
_ROUNDING = 1e-12  # of the largest
_LONGEST = 24  # letters of a value in words; a longer one is cut
_LONGEST_NUMBER = 8  # letters; a longer one is rounded

Value = float | str | bool | None


class Reason(NamedTuple):
    """A part of a row's score.

    Attributes
    ----------
    column : str
        The column's name, ``"when: month"`` for a part of a time.
    value : float, str, bool or None
        What the row has there: a number, a word, a date; None for a gap. Of a feature that says
        whether a row has a category it is True or False.
    contribution : float
        What it adds to the score, more than it adds on average.
    """

    column: str
    value: Value
    contribution: float

    def phrase(self) -> str:
        """Return the column and its value.

        Returns
        -------
        str
            Such as ``"tenure=2"``.

        Examples
        --------
        >>> Reason("tenure", 2.0, 1.5).phrase(), Reason("city", None, 0.5).phrase()
        ('tenure=2', 'city missing')
        """
        match self.value:
            case None:
                return f"{self.column} missing"
            case bool(has):
                return self.column if has else f"not {self.column}"
            case str(text):
                text = " ".join(text.split())
                short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
                return f"{self.column}={short}"
            case number:
                text = number_text(number)
                return f"{self.column}={text if len(text) <= _LONGEST_NUMBER else f'{number:.6g}'}"

    def __str__(self) -> str:
        return f"{self.phrase()} {self.contribution:+.3g}"


def reasons_of(effects: Effects, table: Table, most: int) -> list[list[Reason]]:
    """Return what moved the scores of rows most.

    Parameters
    ----------
    effects : Effects
        What columns do to scores.
    table : Table
        The rows.
    most : int
        How many terms to name for each row.

    Returns
    -------
    list of list of Reason
        For each row the terms that add or take most, the largest first; none that adds nothing.
    """
    cells = [_Cells(column) for column in effects.encoder.as_decided(table)]
    rows = effects.encode(table)
    names = [_name(effects, term, table) for term in effects.terms]
    return [
        [
            Reason(
                names[at], _value(effects, effects.terms[at], cells, rows.X, row), float(added[at])
            )
            for at in largest(added, most)
        ]
        for row, added in enumerate(effects.added(rows))
    ]


def _name(effects: Effects, term: Term, table: Table) -> str:
    """Return the name of a term by those of the table, for a ranker may know none."""
    name = table.names[term.column]
    return name + term.name[term.name.rindex(": ") :] if effects.is_part_of_time(term) else name


def largest(added: NDArray[np.float64], most: int) -> list[int]:
    """Return the places of the largest numbers by size, the first of equal ones first.

    Zeros are left out, and what differs from zero by rounding.

    Examples
    --------
    >>> largest(np.array([0.5, 0.0, -2.0, 1e-17, 0.5]), 9)
    [2, 0, 4]
    """
    sizes = np.abs(added)
    order = np.argsort(-sizes, kind="stable")[:most]
    places: list[int] = order[sizes[order] > _ROUNDING * sizes.max(initial=0.0)].tolist()
    return places


def sentence(reasons: Sequence[Reason]) -> str:
    """Return reasons as a sentence, those left out that hardly matter.

    Examples
    --------
    >>> sentence([Reason("tenure", 2.0, 1.23), Reason("contract", "Monthly", 0.8)])
    'tenure=2 +1.2, contract=Monthly +0.8'
    """
    if not reasons:
        return "as on average"
    size = abs(reasons[0].contribution)
    digits = max(0, 1 - floor(log10(size)))
    return ", ".join(
        f"{reason.phrase()} {reason.contribution:+.{digits}f}"
        for reason in reasons
        if abs(reason.contribution) >= _SLIGHT * size
    )


class _Cells:
    """The cells of a column as values; times in words."""

    def __init__(self, column: Column) -> None:
        self._numbers = column if isinstance(column, np.ndarray) else None
        words = in_words(column) if self._numbers is None else Words(np.zeros(0, np.int32), ())
        self._codes, self._words = words.codes, words.values

    def __getitem__(self, row: int) -> Value:
        if self._numbers is not None:
            number = float(self._numbers[row])
            return None if np.isnan(number) else number
        code = int(self._codes[row])
        return None if code < 0 else self._words[code]


def _value(effects: Effects, term: Term, cells: list[_Cells], rows: Any, row: int) -> Value:
    """Return what a row has in a term."""
    value = cells[term.column][row]
    if value is None or not effects.is_part_of_time(term):
        return value
    words = {place: word for word, place in term.known.features.items()}
    on = [words.get(place, OTHER) for place in term.places.tolist() if rows[row, place] != 0.0]
    return on[0] if on else None
