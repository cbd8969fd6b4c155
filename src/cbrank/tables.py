"""Tables of results, and how they are written for terminals, as Markdown and as LaTeX."""

from dataclasses import dataclass
from math import isfinite

ABSENT = "–"  # noqa: RUF001

_LATEX = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": "$-$",  # noqa: RUF001
    "–": "--",  # noqa: RUF001
    "†": r"$^\dagger$",
    "‡": r"$^\ddagger$",
    "…": r"\ldots{}",
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What stands in a cell.

    Attributes
    ----------
    text : str
        The first line.
    below : str
        A second, smaller line.
    bold : bool
        Whether the number, the first word of the text, is the best of its row.
    value : float or None
        What sorting compares.
    picture : str
        Inline SVG for the page alone.
    """

    text: str
    below: str = ""
    bold: bool = False
    value: float | None = None
    picture: str = ""


@dataclass(frozen=True)
class Row:
    """A row's name, with its marks, and its cells."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Named rows and columns.

    Attributes
    ----------
    key : str
        Its file's name, without ending.
    title, note : str
        What it shows, and how to read it.
    corner : str
        What the rows are.
    columns : tuple of str
        The names of the cells in each row.
    rows, foot : tuple of Row
        Those to sort, and those that stay below.
    """

    key: str
    title: str
    note: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    foot: tuple[Row, ...] = ()

    @property
    def caption(self) -> str:
        """The title and the note."""
        return f"{self.title}. {self.note}".strip()


def fixed(number: float, digits: int = 3) -> str:
    """Write a number with so many decimals; a dash if there is none."""
    return f"{number:.{digits}f}".replace("-", "−") if isfinite(number) else ABSENT  # noqa: RUF001


def signed(number: float, digits: int = 3) -> str:
    """Write a difference with its sign, and plain zero without."""
    if not isfinite(number):
        return ABSENT
    rounded = round(number, digits)
    text = fixed(abs(rounded), digits)
    return text if rounded == 0 else ("+" if rounded > 0 else "−") + text  # noqa: RUF001


def number(value: float, digits: int = 3) -> Cell:
    """Make a cell of a bare number."""
    return Cell(text=fixed(value, digits), value=value if isfinite(value) else None)


def difference(value: float) -> Cell:
    """Make a cell of a signed number."""
    return Cell(text=signed(value), value=value if isfinite(value) else None)


def plain(table: Table) -> str:
    """Write a table for a terminal: cells without what is below them, in columns.

    Examples
    --------
    >>> rows = (Row("Oslo", (number(2.0, 1),)), Row("Rome", (number(10.5, 1),)))
    >>> table = Table(key="", title="", note="", corner="city", columns=("km",), rows=rows)
    >>> print(plain(table))
    city    km
    Oslo   2.0
    Rome  10.5
    """
    rows = (*table.rows, *table.foot)
    lines = [
        (table.corner, *table.columns),
        *((row.name, *(c.text.replace(ABSENT, "-") for c in row.cells)) for row in rows),
    ]
    first, *others = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([f"{name:<{first}}", *(f"{c:>{w}}" for c, w in zip(cells, others, strict=True))])
        for name, *cells in lines
    )


def markdown(table: Table) -> str:
    """Write a table for Markdown readers that know pipes, such as GitHub's and MyST."""
    head = f"| {' | '.join((table.corner, *table.columns))} |"
    rule = "|".join(["", ":--", *["--:"] * len(table.columns), ""])
    body = [_markdown_row(row) for row in (*table.rows, *table.foot)]
    return "\n".join([f"**{table.title}.** {table.note}".strip(), "", head, rule, *body]) + "\n"


def _markdown_row(row: Row) -> str:
    return f"| {' | '.join((row.name, *map(_markdown_cell, row.cells)))} |"


def _markdown_cell(cell: Cell) -> str:
    text = _bold(cell, "**", "**")
    return f"{text}<br>{cell.below}" if cell.below else text


def latex(table: Table) -> str:
    """Write a table for LaTeX; the preamble needs the package booktabs."""
    head = " & ".join(_latex_name(name) for name in (table.corner, *table.columns))
    lines = [
        r"\begin{table}",
        rf"\caption{{{escape(table.caption)}}}",
        rf"\label{{tab:{table.key}}}",
        r"\centering\scriptsize",
        rf"\begin{{tabular}}{{l{'c' * len(table.columns)}}}",
        r"\toprule",
        rf"{head} \\",
        r"\midrule",
        *[line for row in table.rows for line in _latex_row(row)],
        *([r"\midrule"] if table.foot else []),
        *[line for row in table.foot for line in _latex_row(row)],
        *[r"\bottomrule", r"\end{tabular}", r"\end{table}"],
    ]
    return "\n".join(lines) + "\n"


def _latex_row(row: Row) -> list[str]:
    cells = [_latex_cell(cell) for cell in row.cells]
    lines = [" & ".join([escape(row.name), *cells]) + r" \\"]
    if any(cell.below for cell in row.cells):
        below = [rf"{{\tiny {escape(cell.below)}}}" if cell.below else "" for cell in row.cells]
        lines.append(" & ".join(["", *below]) + r" \\")
    return lines


def _latex_cell(cell: Cell) -> str:
    number, *rest = cell.text.split(" ")
    first = rf"\textbf{{{escape(number)}}}" if cell.bold else escape(number)
    return " ".join([first, *map(escape, rest)])


def _latex_name(name: str) -> str:
    """Set what follows an underscore as a subscript, as the paper does."""
    first, _, low = name.partition("_")
    return escape(first) + (rf"$_{{\mathrm{{{escape(low)}}}}}$" if low else "")


def escape(text: str) -> str:
    """Write text so that LaTeX prints it as it is."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _bold(cell: Cell, before: str, after: str) -> str:
    number, *rest = cell.text.split(" ")
    return " ".join([f"{before}{number}{after}" if cell.bold else number, *rest])
