"""What columns are taken for: printed as a short table, and kept in a file that people can edit."""

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cbrank.cli.options import KINDS, KINDS_IN_WORDS
from cbrank.training.checkpoint import checksum

if TYPE_CHECKING:
    from cbrank.features import Table
    from cbrank.training import Model

_SHOWN = 30  # columns of the printed table
_WIDEST = 24  # letters of a cell
_WORDS = KINDS_IN_WORDS | {"empty": "empty so far", "drop": "left out"}
_MOST_BYTES = 2**26  # of a file: names of a million columns and more
_INTRODUCTION = """\
# What cbrank takes columns for: "number", "category", "text", "date" or "drop".
# Edit it, and train again with --columns and this file.
# Checksum, by which cbrank knows whether it was edited: {}

"""


class Taken(NamedTuple):
    """What a column is taken for."""

    column: str
    taken_as: str
    example: str
    gaps: float  # the share of cells


def taken(model: "Model", rows: "Table") -> list[Taken]:
    """Return what the columns of a model are taken for, with examples from these rows."""
    from cbrank.features.kinds import gaps_of  # noqa: PLC0415
    from cbrank.features.table import in_words  # noqa: PLC0415

    kinds, found = model.ranker.encoder_.kinds_.values(), list[Taken]()
    for name, kind, column in zip(model.columns.numeric_ or (), kinds, rows.columns, strict=True):
        words = in_words(column[:100])
        filled = [int(code) for code in words.codes if code >= 0]
        example = words.values[filled[0]] if filled else ""
        share = gaps_of(column) / max(1, len(column))
        found.append(Taken(name, _WORDS[kind], example, round(share, 4)))
    return found


def as_table(columns: list[Taken]) -> str:
    """Return the table that is printed.

    Examples
    --------
    >>> print(as_table([Taken("age", "number", "31", 0.25), Taken("city", "category", "Oslo", 0)]))
    column  taken as  example  gaps
    age     number    31       25.0%
    city    category  Oslo
    """
    rows = [("column", "taken as", "example", "gaps")]
    for column in columns[:_SHOWN]:
        gaps = f"{column.gaps:.1%}" if column.gaps else ""
        rows.append((_short(column.column), column.taken_as, _short(column.example), gaps))
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    if more := len(columns) - _SHOWN:
        lines += [f"... and {more:,} more columns: cbrank inspect shows all"] if more > 0 else []
    return "\n".join(lines)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


class ColumnFile:
    """A file that says what columns are: read if it is there, else written, to be edited.

    A file that the same command wrote, and nobody edited, decides nothing: the rows do, as when it was
    written. So a run that is killed and resumed is the same run whether or not the file is there yet.

    Parameters
    ----------
    path : Path
        The file.
    run : str
        A checksum of what is asked for and of the data.
    """

    def __init__(self, path: Path, run: str) -> None:
        self.path, self.run = path, run

    def kinds(self) -> list[tuple[str, str]]:
        """Return the columns in the file and what they are said to be."""
        if not self.path.exists() or self._is_own():
            return []
        return read(self.path)

    def write(self, model: "Model") -> None:
        """Write what the columns of a model are taken for, unless the file is another's."""
        from cbrank.atomic import atomic_write  # noqa: PLC0415

        if self.path.exists() and not self._is_own():
            return
        names, kinds = model.columns.numeric_ or (), model.ranker.encoder_.kinds_.values()
        lines = ["[columns]", *map(_line, names, kinds)]
        lines += [_line(str(name), "drop") for name in model.columns.drop]
        body = "\n".join(lines) + "\n"
        with atomic_write(self.path) as file:
            file.write((self._introduction(body) + body).encode())

    def _is_own(self) -> bool:
        text = _text(self.path)
        return text.startswith(self._introduction(text[text.find("[columns]") :]))

    def _introduction(self, body: str) -> str:
        return _INTRODUCTION.format(checksum([self.run, body]))


def _line(name: str, kind: str) -> str:
    said = KINDS_IN_WORDS.get(kind)
    line = f"{_quoted(name)} = {_quoted(said or 'category')}"
    return line if said else f"# {line}  ({_WORDS[kind]})"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)


def read(path: Path) -> list[tuple[str, str]]:
    """Return the columns in a file and what they are; refuse all that makes no sense at once."""
    try:
        found: dict[str, Any] = tomllib.loads(_text(path))
    except RecursionError:
        raise ValueError(f"{path} is not a file of columns: its values are nested.") from None
    except ValueError as reason:  # also of numbers with too many digits
        raise ValueError(f"{path} is not TOML: {str(reason).rstrip('.')}.") from None
    columns = found.get("columns")
    if not isinstance(columns, dict):
        raise ValueError(f'{path} has no table [columns], such as "age" = "number".')  # noqa: TRY004
    bad = [name for name, kind in columns.items() if not (isinstance(kind, str) and kind in KINDS)]
    if bad:
        told = [_short(f"{name} = {columns[name]!r}") for name in bad[:_SHOWN]]
        raise ValueError(
            f"{path} takes columns for what they cannot be: {', '.join(told)}"
            f"{', ...' if len(bad) > _SHOWN else ''}. Say one of {', '.join(KINDS)}."
        )
    return [*columns.items()]


def _text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError(
            f"{path} is not a file of columns: it has more than {_MOST_BYTES:,} bytes."
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as reason:
        raise ValueError(f"{path} is not UTF-8, as TOML must be: {reason}.") from None
