"""The figures that lie more than two of the paper's standard deviations from the paper's."""

from cbrank.study.report import paper
from cbrank.study.report.grids import grid
from cbrank.study.report.marks import marked
from cbrank.study.report.results import Study
from cbrank.study.report.scores import Gap, gaps
from cbrank.tables import Cell, Row, Table, difference, fixed, number


def far_table(study: Study) -> Table:
    """List them by table and size; without rows if there are none."""
    return Table(
        key="far-from-paper",
        title="Figures more than two of the paper's standard deviations from the paper's",
        note="Rows of unit length; † only a sample of the data set was at hand.",
        corner="Data set and method",
        columns=("Table", "Ours", "Paper's", "Difference"),
        rows=tuple(row for table in paper.TABLES for row in _rows(study, table)),
    )


def _rows(study: Study, table: paper.PaperTable) -> list[Row]:
    scores = grid(study, table.table, "unit", table.measure)
    far = [gap for gap in gaps(scores, table).values() if gap.far]
    far.sort(key=lambda gap: -abs(gap.difference))
    return [_row(gap, table.number, marked(gap.dataset, scores.samples)) for gap in far]


def _row(gap: Gap, place: int, dataset: str) -> Row:
    theirs = f"{fixed(gap.paper)} ± {fixed(gap.deviation)}"
    cells = (
        Cell(text=str(place), value=place),
        number(gap.ours),
        Cell(text=theirs, value=gap.paper),
        difference(gap.difference),
    )
    return Row(f"{dataset}, {gap.method}", cells)
