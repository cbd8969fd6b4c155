"""A table before it is written as HTML, Markdown or LaTeX."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

SAMPLE = "†"
FAR = "‡"
ABSENT = "–"  # noqa: RUF001


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


def marked(dataset: str, samples: Sequence[str] | frozenset[str]) -> str:
    """Name a data set, with the mark for samples."""
    return f"{dataset} {SAMPLE}" if dataset in samples else dataset


def sample_note(samples: Sequence[str] | frozenset[str]) -> str:
    """Explain the mark for samples where a table has one."""
    return f" {SAMPLE} Only a sample of the data set was at hand." if samples else ""
