"""The columns of a table as its header names them, and messages about them."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral
from typing import Any

from cbrank.streams.labels import LONGEST
from cbrank.streams.rows import MOST_COLUMNS

_NAMED = 12  # columns that a message lists


def as_text(name: str | int | None) -> str | None:
    return None if name is None else str(name)


def checked_column(column: Any, what: str) -> str | int | None:
    """Return a column as given, by name or by number from 1, once that is checked."""
    if column is None or isinstance(column, str):
        return None if column is None else str(column)
    number = 0 if isinstance(column, bool) or not isinstance(column, Integral) else int(column)
    if 1 <= number < 2**63:
        return number
    raise ValueError(f"{what} must be a column's name, or its number from 1 on; got {column!r}.")


def find_column(
    column: str | int | None, header: Sequence[str], known: set[str], name: str
) -> str | None:
    """Return the name of a column that is given by name or by number from 1."""
    if column is None or column in known:
        return as_text(column)
    if str(column).isdecimal() and 1 <= int(column) <= len(header):
        return header[int(column) - 1]
    raise ValueError(
        f"{name} has no column {str(column)!r}.{_meant(column, header)} {listed(header)}"
    )


def _meant(column: str | int, header: Sequence[str]) -> str:
    """Ask whether another column is meant, if one has nearly that name."""
    names = {name.casefold(): name for name in reversed(header)}
    close = get_close_matches(str(column).strip().casefold(), names, 1)
    return f" Is {names[close[0]]!r} meant?" if close else ""


def listed(header: Sequence[str]) -> str:
    return f"Its columns are {named(header)}."


def named(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
    return ", ".join(repr(column) for column in columns[:_NAMED]) + more


def refuse_unkeepable(header: Sequence[str], named: Iterable[str | None], name: str) -> None:
    """Refuse columns that a model file cannot hold, before anything is learned."""
    if len(header) > MOST_COLUMNS:
        raise ValueError(
            f"{name} has {len(header):,} columns; a table may have "
            f"{MOST_COLUMNS:,} at most. svmlight text has no such limit."
        )
    for column in named:
        if column is not None and len(column) > LONGEST:
            raise ValueError(
                f"{name}: the column {column[:20]!r}... has a name of {len(column):,} characters; "
                f"the names of label and id may have {LONGEST:,} at most."
            )


def refuse_twins(header: Iterable[str], name: str) -> None:
    seen: set[str] = set()
    for column in header:
        if column in seen:
            raise ValueError(f"{name} has two columns named {column!r}; rename one of them.")
        seen.add(column)
