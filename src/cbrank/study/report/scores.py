"""The paper's tables with our scores: ours, the paper's figure beside it and the difference."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan

from cbrank.study.report.grids import Grid, Score, grid, ranking
from cbrank.study.report.looks import CEILING, online, papers
from cbrank.study.report.marks import FAR, marked, sample_note
from cbrank.study.report.paper import PaperTable
from cbrank.study.report.results import Study
from cbrank.study.report.words import scaling_words
from cbrank.tables import ABSENT, Cell, Row, Table, fixed, number, signed


@dataclass(frozen=True)
class Gap:
    """How far our mean, as printed, is from the paper's."""

    dataset: str
    method: str
    ours: float
    paper: float
    deviation: float

    @property
    def difference(self) -> float:
        """Ours less the paper's."""
        return round(self.ours - self.paper, 3)

    @property
    def far(self) -> bool:
        """Whether that is more than two of the paper's standard deviations."""
        return abs(self.difference) > round(2 * self.deviation, 3)


def gaps(grid: Grid, table: PaperTable) -> dict[tuple[str, str], Gap]:
    """Set our means beside the paper's, by data set and method."""
    return {
        key: Gap(*key, round(score.mean, 3), *table.figures[key])
        for key, score in grid.scores.items()
        if key in table.figures
    }


def score_table(study: Study, table: PaperTable, scaling: str) -> Table:
    """Fill one of the paper's tables.

    Parameters
    ----------
    study : Study
        What was read.
    table : PaperTable
        Which table; its figures are shown with ``unit`` scaling only, which is the paper's.
    scaling : str
        How the data were scaled.

    Returns
    -------
    Table
        Methods that the paper does not have are further columns.
    """
    scores = grid(study, table.table, scaling, table.measure)
    beside = gaps(scores, table) if scaling == "unit" else {}
    return Table(
        key=f"table-{table.number}-{scaling}",
        title=f"Table {table.number}, {scaling_words(scaling)}: {table.title}",
        note=_note(scores, beside),
        corner="Data set",
        columns=scores.methods,
        rows=tuple(_row(scores, dataset, beside) for dataset in scores.datasets),
        foot=rank_rows(scores),
    )


def _note(grid: Grid, beside: dict[tuple[str, str], Gap]) -> str:
    runs = max((score.runs for score in grid.scores.values()), default=0)
    spread = "Mean ± standard deviation" if runs > 1 else "Value"
    note = f"{spread} over {runs} run{'s' * (runs != 1)}; bold: the best of the online methods."
    if beside:
        note += " Below: the paper's mean and our difference from it"
    if any(gap.far for gap in beside.values()):
        note += f", {FAR} where that is more than two of the paper's standard deviations"
    return note + "." * bool(beside) + sample_note(grid.samples)


def _row(grid: Grid, dataset: str, beside: dict[tuple[str, str], Gap]) -> Row:
    best = grid.best(dataset, online(grid.methods))
    cells = []
    for method in grid.methods:
        score, gap = grid.scores.get((dataset, method)), beside.get((dataset, method))
        below = _below(score, gap, grid.runs(dataset))
        bold = method != CEILING and score is not None and score.mean == best
        cells.append(score_cell(score, below=below, bold=bold))
    return Row(marked(dataset, grid.samples), tuple(cells))


def score_cell(score: Score | None, *, below: str = "", bold: bool = False) -> Cell:
    """Make a cell of a mean and its standard deviation."""
    if score is None:
        return Cell(text=ABSENT)
    text = fixed(score.mean)
    if isfinite(score.deviation):
        text += f" ± {fixed(score.deviation)}"
    return Cell(text=text, below=below, bold=bold, value=score.mean)


def _below(score: Score | None, gap: Gap | None, runs: int) -> str:
    parts = []
    if gap:
        parts.append(f"paper {fixed(gap.paper)}, {signed(gap.difference)}{FAR * gap.far}")
    if score and score.runs < runs:
        parts.append(f"{score.runs} of {runs} runs")
    return ", ".join(parts)


def rank_rows(grid: Grid) -> tuple[Row, ...]:
    """Average the ranks: of the paper's methods, and of all where there are others too."""
    of_paper, of_all = papers(grid.methods, grid.table), online(grid.methods)
    if of_paper == of_all or not of_paper:
        return _rank_row(grid, "Average rank", of_all)
    return _rank_row(grid, "Average rank, paper's", of_paper) + _rank_row(
        grid, "Average rank, all", of_all
    )


def _rank_row(grid: Grid, name: str, methods: Sequence[str]) -> tuple[Row, ...]:
    ranks = ranking(grid, methods).ranks
    if len(ranks) < 2:
        return ()
    best = min(ranks.values())
    cells = [number(ranks.get(method, nan), 2) for method in grid.methods]
    bold = [ranks.get(method) == best for method in grid.methods]
    return (Row(name, tuple(_bolder(c, b) for c, b in zip(cells, bold, strict=True))),)


def _bolder(cell: Cell, bold: bool) -> Cell:
    return Cell(text=cell.text, value=cell.value, bold=bold)
