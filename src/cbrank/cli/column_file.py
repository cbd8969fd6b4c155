"""What columns are taken for: printed as a short table, and kept in a file that people can edit."""

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cbrank.cli.options import KINDS, KINDS_IN_WORDS

if TYPE_CHECKING:
    from cbrank.features import Table
    from cbrank.training import Model

_SHOWN = 30  # columns of the printed table
_WIDEST = 24  # letters of a cell
_WORDS = KINDS_IN_WORDS | {"empty": "empty so far", "drop": "left out"}
_INTRODUCTION = """\
# What cbrank takes columns for: "number", "category", "text", "date" or "drop".
# Edit it, and train again with --columns and this file.
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


def write(path: Path, columns: list[Taken], dropped: list[str]) -> None:
    """Write a file that `read` reads."""
    from cbrank.atomic import atomic_write  # noqa: PLC0415

    lines = [_INTRODUCTION, "[columns]"]
    for column in columns:
        kind = "drop" if column.taken_as == _WORDS["drop"] else column.taken_as
        known = kind in KINDS
        line = f"{_quoted(column.column)} = {_quoted(kind if known else 'category')}"
        lines.append(line if known else f"# {line}  ({kind})")
    lines += [f'{_quoted(column)} = "drop"' for column in dropped]
    with atomic_write(path) as file:
        file.write(("\n".join(lines) + "\n").encode())


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)


def read(path: Path) -> list[tuple[str, str]]:
    """Return the columns in a file and what they are; refuse all that makes no sense at once."""
    try:
        found: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise ValueError(f"{path} is not TOML: {reason}.") from None
    columns = found.get("columns")
    if not isinstance(columns, dict):
        raise ValueError(f'{path} has no table [columns], such as "age" = "number".')  # noqa: TRY004
    bad = [f"{name} = {kind!r}" for name, kind in columns.items() if kind not in KINDS]
    if bad:
        raise ValueError(
            f"{path} takes columns for what they cannot be: {', '.join(bad)}. Say one of "
            f"{', '.join(KINDS)}."
        )
    return [*columns.items()]
