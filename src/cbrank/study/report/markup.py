"""A table as Markdown and as LaTeX."""

from cbrank.study.report.tables import Cell, Row, Table

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
