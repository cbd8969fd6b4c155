"""Options and arguments that several commands have, and those that follow from a table."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.parameters import FLAG, Kind, Number, Other, Parameter

if TYPE_CHECKING:
    from click import ParamType as ParamType  # noqa: PLC0414

    from cbrank.streams import Columns
else:

    class ParamType(click.ParamType):
        """The base of types of options; click's own is generic only since version 8.4."""

        def __class_getitem__(cls, _):
            return cls


Command = Callable[..., None]
Decorator = Callable[[Command], Command]

MOST = 2**31 - 1  # of what is counted: arrays of more are beyond any machine


def together(*options: Decorator) -> Decorator:
    """Make one decorator of several options."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# Amounts ------------------------------------------------------------------------------------------


class Share(ParamType[Fraction]):
    """A share above 0 and up to 1, written as 0.9 or as 90%.

    Examples
    --------
    >>> Share()("2.5%"), Share()("0.9")
    (Fraction(1, 40), Fraction(9, 10))
    """

    name = "share"

    def convert(self, value: Any, param: Any, ctx: Any) -> Fraction:
        number, percent = value.removesuffix("%"), value.endswith("%")
        share = Fraction(number) if number and _DECIMAL.fullmatch(number) else Fraction(0)
        share /= 100 if percent else 1
        if not 0 < share <= 1:
            self.fail(f"{value!r} is not a share of the whole: write it as 0.9 or 90%.", param, ctx)
        return share


class HeldOut(ParamType["tuple[float, bool]"]):
    """A share of the rows, less than all of them, and whether it is the last one.

    Examples
    --------
    >>> HeldOut()("20%"), HeldOut()("last-20%")
    ((0.2, False), (0.2, True))
    """

    name = "share to hold out"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, bool]:
        share = Share().convert(value.removeprefix("last-"), param, ctx)
        if share == 1:
            self.fail("no row would be left to learn from: say 10%.", param, ctx)
        return float(share), value.startswith("last-")


class RowsOrShare(ParamType["int | Fraction"]):
    """A number of rows, or a share of them with a percent sign.

    Examples
    --------
    >>> RowsOrShare()("500"), RowsOrShare()("2%")
    (500, Fraction(1, 50))
    """

    name = "rows or share"

    def convert(self, value: Any, param: Any, ctx: Any) -> int | Fraction:
        if value.endswith("%"):
            return Share().convert(value, param, ctx)
        rows = int(value) if _DIGITS.fullmatch(value) else 0
        if not 1 <= rows <= MOST:
            self.fail(f"{value!r} is neither a number of rows nor a share such as 2%.", param, ctx)
        return rows


_DECIMAL, _DIGITS = re.compile(r"[0-9]{0,9}(\.[0-9]{1,18})?", re.ASCII), re.compile(r"[0-9]{1,10}")


class Duration(ParamType[float]):
    """A time with its unit, in seconds.

    Examples
    --------
    >>> Duration()("90d"), Duration()("500ms")
    (7776000.0, 0.5)
    """

    name = "time"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        found = _TIME.fullmatch(str(value))
        seconds = int(found[1]) * _UNITS[found[2]] if found else 0.0
        if not 0.0 < seconds <= _CENTURY:
            self.fail(f"{value!r} is not a time such as 30s, 10m, 12h or 90d.", param, ctx)
        return seconds


class Size(ParamType[int]):
    """A number of bytes, with or without a unit.

    Examples
    --------
    >>> Size()("16MiB"), Size()("4096")
    (16777216, 4096)
    """

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, int):
            return value
        found = _SIZE.fullmatch(value)
        size = int(found[1]) * 1024 ** " KMGT".index(found[2] or " ") if found else 0
        if not 0 < size < 2**60:
            self.fail(f"{value!r} is not a size such as 4096, 16MiB or 1GiB.", param, ctx)
        return size


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIME, _SIZE = re.compile(r"([0-9]{1,9})(ms|[smhd])"), re.compile(r"([0-9]{1,15})(?:([KMGT])iB)?")
_CENTURY = 100 * 365 * 86400.0  # calendars end somewhere


# From a table of parameters -----------------------------------------------------------------------


class NumberOrWord(ParamType[Any]):
    """A number in a range, or one of some words.

    Parameters
    ----------
    number : click.ParamType
        The type of the number.
    words : sequence of str
        The words.
    make : callable, optional
        What makes the parameter's value of the number; else the number itself is it.
    """

    name = "number or word"

    def __init__(
        self,
        number: ParamType[Any],
        words: Sequence[str],
        make: Callable[[Any], Any] = lambda number: number,
    ) -> None:
        self.number, self.words, self.make = number, words, make

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value in self.words:
            return value
        return self.make(self.number.convert(value, param, ctx))


def parameter_options(table: Iterable[Parameter]) -> Decorator:
    """Make an option of each parameter that is to be one, in the table's order.

    An option that is not given is None, and is left to the constructor.
    """
    return together(*(_option(parameter) for parameter in table if parameter.is_option))


def _option(parameter: Parameter) -> Decorator:
    name = parameter.name.replace("_", "-")
    flags = f"--{name}/--no-{name}" if FLAG in parameter.kinds else f"--{name}"
    text, default = parameter.help, parameter.default
    if default is not None:
        shown = {True: name, False: f"no-{name}"}[default] if type(default) is bool else default
        text += f"  [default: {shown}]"
    given: dict[str, Any] = {} if FLAG in parameter.kinds else _typed(parameter.kinds)
    return click.option(flags, parameter.name, default=None, help=text, **given)


def _typed(kinds: tuple[Kind, ...]) -> dict[str, Any]:
    """Return the type of an option, and what stands for its value in the help."""
    words = [kind for kind in kinds if isinstance(kind, str)]
    numbers = [_number(kind) for kind in kinds if isinstance(kind, Number)]
    make: Callable[[Any], Any] = lambda number: number
    if any(isinstance(kind, Other) and kind.check is dict for kind in kinds):
        numbers, make = [click.FloatRange(0, min_open=True)], _weight_of_positives
    if not numbers:
        return {"type": click.Choice(words)}
    if not words:
        return {"type": numbers[0]}
    metavar = "|".join(["NUMBER", *words])
    return {"type": NumberOrWord(numbers[0], words, make), "metavar": metavar}


def _weight_of_positives(weight: float) -> dict[int, float]:
    """Return weights of classes: on the command line that of the positive rows, against 1."""
    return {1: weight}


def _number(kind: Number) -> ParamType[Any]:
    """Return the range of a number; an open end of a count is where counting ends."""
    low: Any = kind.low
    high: Any = MOST if kind.type is int and kind.high is None else kind.high
    return (click.IntRange if kind.type is int else click.FloatRange)(
        low,
        high,
        min_open=kind.low is not None and kind.closed in ("right", "neither"),
        max_open=kind.high is not None and kind.closed in ("left", "neither"),
    )


# Input --------------------------------------------------------------------------------------------

MODEL = click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
DATA = click.argument("data", nargs=-1, required=True, metavar="DATA...")


class _Separator(ParamType[str]):
    """One character, or the name of one."""

    name = "character"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        found: str = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}.get(value, value)
        if len(found) != 1:
            self.fail(f"{value!r} is not one character: say ; or tab.", param, ctx)
        return found


# How rows are read, which is not kept with the model: keyword arguments of `open_stream`.
reading = together(
    click.option(
        "--format",
        type=click.Choice(["svmlight", "csv", "parquet"]),
        help="Else known by each file's extension or first line.",
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
    click.option(
        "--sep",
        "separator",
        type=_Separator(),
        help="What stands between cells, such as ; or tab; else the first rows tell.",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="The decimal mark; else the first rows tell.",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="Else UTF-8, UTF-16 by its mark, and Windows-1252 where a cell is neither.",
    ),
)
READING = ("format", "on_error", "max_errors", "separator", "decimal", "encoding")


class _Names(ParamType[list[str]]):
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


def several(option: str, check: Callable[[str], str], text: str) -> Decorator:
    """Make an option that takes names with commas between them, and may be repeated."""
    return click.option(
        option, type=_Names(check), multiple=True, callback=_flat, help=text, metavar="NAME,..."
    )


class _Kinds(ParamType[list[tuple[str, str]]]):
    """Columns, or patterns of them, and what they are.

    Examples
    --------
    >>> _Kinds().convert("zip,code*=category,note=drop", None, None)
    [('zip', 'category'), ('code*', 'category'), ('note', 'drop')]
    """

    name = "kinds"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[tuple[str, str]]:
        found, waiting = list[tuple[str, str]](), list[str]()
        for part in value.split(","):
            column, equals, kind = part.rpartition("=")
            waiting.append((column if equals else kind).strip())
            if equals and kind in KINDS:
                found += [(name, kind) for name in waiting if name]
                waiting = []
        if waiting or not found:
            kinds = ", ".join(KINDS)
            self.fail(f"{value!r}: write COLUMN=KIND, where KIND is one of {kinds}.", param, ctx)
        return found


# What the command line calls the kinds of columns, and what the library does.
KINDS = {"number": "number", "category": "word", "text": "text", "date": "time", "drop": "drop"}
KINDS_IN_WORDS = {kind: word for word, kind in KINDS.items()}


def kinds_of(given: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return what columns are as the library says it, by name or pattern; what was said last, last."""
    found: dict[str, str] = {}
    for column, kind in given:
        found.pop(column, None)
        found[column] = KINDS[kind]
    return found


def _joined(
    _ctx: click.Context, _param: click.Parameter, value: Sequence[list[tuple[str, str]]]
) -> list[tuple[str, str]]:
    return [each for some in value for each in some]


class _Categories(ParamType[tuple[str, str | list[str]]]):
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
    click.option(
        "--positive",
        metavar="LABEL",
        help="The positive label; else the one that affirms (1, yes, true), or the rarer one.",
    ),
    several("--drop", str, "Columns to leave out."),
    click.option("--id", metavar="COLUMN", help="A column that `score` writes beside each score."),
    click.option(
        "--as",
        "kinds",
        type=_Kinds(),
        multiple=True,
        callback=_joined,
        metavar="COLUMNS=KIND",
        help="What columns are: number, category, text, date or drop. Several with commas between "
        "them, or by patterns such as 'x*'; may be repeated.",
    ),
    click.option(
        "--columns",
        "column_file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="TOML",
        help="What columns are, from this file; if it is not there, it is written, to be edited.",
    ),
    several("--na", str, "What else stands in a cell that is a gap, such as -999."),
    click.option(
        "--categorical",
        type=_Categories(),
        multiple=True,
        metavar="COLUMN=HOW",
        help="onehot, hash:BITS, or the categories with commas between them; may be repeated.",
    ),
    click.option("--zero-based", is_flag=True, help="The indices of svmlight text start at 0."),
    click.option(
        "--max-width",
        type=click.IntRange(1, MOST),
        default=2**24,
        show_default=True,
        help="How wide rows may become.",
    ),
)
COLUMNS = ("label", "positive", "drop", "id", "categorical", "zero_based", "max_width")
TABLES = ("kinds", "na")  # of tables as they come


def columns_of(options: dict[str, Any], *, as_it_comes: bool) -> "Columns":
    """Make the meaning of the columns from options."""
    from cbrank.streams import Columns, TableColumns  # noqa: PLC0415

    if as_it_comes:
        names = ("label", "positive", "drop", "id", "na")
        return TableColumns(
            **{name: options[name] for name in names}, kinds=kinds_of(options["kinds"])
        )
    given = {name: options[name] for name in COLUMNS}
    for column, count in Counter(column for column, _ in given["categorical"]).items():
        if count > 1:
            raise click.UsageError(f"--categorical names column {column!r} {count} times.")
    return Columns(**given | {"categorical": dict(given["categorical"])})


# The label of rows for a model that was saved from Python.
LABEL = click.option(
    "--label",
    metavar="COLUMN",
    help="The label's name; else the one of training. A model saved from Python needs it.",
)


# Output -------------------------------------------------------------------------------------------

AS_JSON = click.option("--json", "as_json", is_flag=True, help="For machines.")
QUIET = click.option("--quiet", is_flag=True, help="Print nothing but errors.")


def picture(option: str, text: str, endings: Sequence[str] = (".png", ".svg")) -> Decorator:
    """Make an option that takes the path of a picture, or of a page, and needs what draws it."""

    def check(_ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
        if path is None:
            return None
        if path.suffix not in endings:
            raise click.BadParameter(f"{path} must end in {' or '.join(endings)}.")
        from cbrank.optional import need  # noqa: PLC0415

        need("matplotlib", param.opts[0], "report")
        return path

    return click.option(
        option,
        type=click.Path(dir_okay=False, path_type=Path),
        callback=check,
        metavar="PATH",
        help=f"{text}, {' or '.join(endings)}; needs cbrank[report].",
    )


# Cluster ------------------------------------------------------------------------------------------

scheduler = click.option(
    "--scheduler", metavar="ADDRESS", help="Use the Dask cluster whose scheduler is there."
)
