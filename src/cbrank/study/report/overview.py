"""Who comes out ahead: average rank and mean of every method, by measure and scaling."""

from dataclasses import dataclass
from math import isfinite, nan
from statistics import fmean

from cbrank.datasets.entry import Table as Kind
from cbrank.study.report.grids import Grid, Ranking, grid, ranking
from cbrank.study.report.looks import CEILING, online, ordered, papers
from cbrank.study.report.results import Study
from cbrank.study.report.words import MEASURES, plural, scaling_words
from cbrank.tables import ABSENT, Cell, Row, Table, fixed

MEASURED = ("auc", "accuracy")


@dataclass(frozen=True)
class Column:
    """Scores, and the ranks of the paper's methods and of all online ones."""

    grid: Grid
    papers: Ranking
    all: Ranking

    @property
    def name(self) -> str:
        """The measure and the scaling."""
        measure = MEASURES[self.grid.measure]
        return f"{measure[0].upper()}{measure[1:]}, {scaling_words(self.grid.scaling)}"

    @property
    def has_others(self) -> bool:
        """Whether there are methods that the paper does not have."""
        return self.papers.ranks.keys() != self.all.ranks.keys()


def overview(study: Study, kind: Kind) -> Table:
    """Sum a study up in one table.

    Parameters
    ----------
    study : Study
        What was read.
    kind : {"benchmark", "high-dimensional"}
        The data sets.

    Returns
    -------
    Table
        A row for each method; two columns for each scaling.
    """
    columns = [_column(study, kind, s, m) for s in study.scalings(kind) for m in MEASURED]
    methods = ordered({name for column in columns for name in column.grid.methods}, kind)
    others = any(column.has_others for column in columns)
    return Table(
        key=f"overview-{kind}",
        title=f"Average ranks on the {kind} data sets",
        note="1 is the best of the paper's methods; below: the mean over the same data sets"
        + " and the rank among all online methods" * others
        + ".",
        corner="Method",
        columns=tuple(column.name for column in columns),
        rows=tuple(Row(m, tuple(_cell(column, m) for column in columns)) for m in methods),
        foot=(Row("Compared on", tuple(_blocks(column.all) for column in columns)),),
    )


def _column(study: Study, kind: Kind, scaling: str, measure: str) -> Column:
    scores = grid(study, kind, scaling, measure)
    of_paper = ranking(scores, papers(scores.methods, kind))
    return Column(scores, of_paper, ranking(scores, online(scores.methods)))


def _cell(column: Column, method: str) -> Cell:
    mean = mean_score(column.grid, column.all, method)
    if not isfinite(mean):
        return Cell(text=ABSENT)
    below = f"mean {fixed(mean)}"
    if column.has_others and method in column.all.ranks:
        below += f", {fixed(column.all.ranks[method], 2)} of all"
    rank = column.papers.ranks.get(method)
    if rank is None:
        return Cell(text="ceiling" if method == CEILING else ABSENT, below=below)
    bold = method in column.papers.first()
    return Cell(text=fixed(rank, 2), below=below, bold=bold, value=rank)


def mean_score(grid: Grid, ranking: Ranking, method: str) -> float:
    """Average a method's scores over the data sets of a ranking; NaN if it lacks one."""
    means = [grid.mean(dataset, method) for dataset in ranking.datasets]
    return fmean(means) if means else nan


def _blocks(ranking: Ranking) -> Cell:
    return Cell(text=plural(len(ranking.datasets), "set"))
