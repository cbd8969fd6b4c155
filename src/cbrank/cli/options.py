"""Options that several commands have."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from cbrank.streams import Columns

Command = Callable[..., None]


class _Names(click.ParamType[list[str]]):
    """Names with commas between them, each checked."""

    name = "names"

    def __init__(self, check: Callable[[str], str]) -> None:
        self.check = check

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        try:
            return [self.check(name.strip()) for name in value.split(",") if name.strip()]
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _flat(_ctx: click.Context, _param: click.Parameter, value: Sequence[list[str]]) -> list[str]:
    return list(dict.fromkeys(name for names in value for name in names))


def several(option: str, check: Callable[[str], str], text: str) -> Callable[[Command], Command]:
    """Make an option that takes names with commas between them, and may be repeated."""
    return click.option(
        option, type=_Names(check), multiple=True, callback=_flat, help=text, metavar="NAME,..."
    )


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Make one decorator of several options."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# Input --------------------------------------------------------------------------------------------

data = click.argument("data", nargs=-1, required=True, metavar="DATA...")

# How rows are read, which is not kept with the model: keyword arguments of `open_stream`.
reading = together(
    click.option(
        "--format",
        type=click.Choice(["svmlight", "csv", "parquet"]),
        help="Else told by each file's extension or first line.",
    ),
    click.option(
        "--on-error",
        type=click.Choice(["raise", "skip"]),
        default="raise",
        show_default=True,
        help="What to do about a malformed row.",
    ),
    click.option(
        "--max-errors",
        type=click.IntRange(0),
        default=100,
        show_default=True,
        help="How many rows may be skipped.",
    ),
)
READING = ("format", "on_error", "max_errors")


class _Categories(click.ParamType[tuple[str, str | list[str]]]):
    """A column and how its categories become features."""

    name = "categories"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, str | list[str]]:
        column, equals, how = value.rpartition("=")
        if not equals:
            self.fail(f"{value!r} has no equals sign: write COLUMN=onehot.", param, ctx)
        return column, how.split(",") if "," in how else how


# What the columns mean, which is kept with the model: `columns_of` makes `Columns` of them.
columns = together(
    click.option("--label", metavar="COLUMN", help="The label's name or number; tables need it."),
    click.option("--positive", metavar="LABEL", help="The positive label; else the greater one."),
    several("--drop", str, "Columns to pass over."),
    click.option("--id", metavar="COLUMN", help="A column that `score` hands through."),
    click.option(
        "--categorical",
        type=_Categories(),
        multiple=True,
        metavar="COLUMN=HOW",
        help="onehot, hash:BITS, or the categories with commas between them; may be repeated.",
    ),
    click.option("--zero-based", is_flag=True, help="The indices of svmlight text start at 0."),
    click.option(
        "--max-features",
        type=click.IntRange(1, 2**31 - 1),
        default=2**24,
        show_default=True,
        help="How wide rows may become.",
    ),
)
COLUMNS = ("label", "positive", "drop", "id", "categorical", "zero_based", "max_features")


def columns_of(options: dict[str, Any]) -> "Columns":
    """Make the meaning of the columns from options."""
    from cbrank.streams import Columns  # noqa: PLC0415

    told = {name: options[name] for name in COLUMNS}
    for column, count in Counter(column for column, _ in told["categorical"]).items():
        if count > 1:
            raise click.UsageError(f"--categorical names column {column!r} {count} times.")
    return Columns(**told | {"categorical": dict(told["categorical"])})
