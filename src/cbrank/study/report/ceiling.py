"""How far each method stays below batch logistic regression, the ceiling of a linear scorer."""

from dataclasses import dataclass
from math import isfinite, nan
from statistics import fmean

from cbrank.datasets.entry import Table as Kind
from cbrank.study.report.grids import Grid, grid
from cbrank.study.report.looks import CEILING, online
from cbrank.study.report.marks import marked, sample_note
from cbrank.study.report.results import Study
from cbrank.study.report.words import scaling_words
from cbrank.tables import Row, Table, difference, number


@dataclass(frozen=True)
class Distance:
    """Mean AUCs, seen from the ceiling."""

    grid: Grid

    @property
    def datasets(self) -> list[str]:
        """The data sets with a ceiling."""
        return [d for d in self.grid.datasets if (d, CEILING) in self.grid.scores]

    def difference(self, dataset: str, method: str) -> float:
        """Take the ceiling's mean AUC from a method's."""
        return self.grid.mean(dataset, method) - self.grid.mean(dataset, CEILING)

    def mean(self, method: str) -> float:
        """Average the differences over the data sets that a method has."""
        known = [self.difference(dataset, method) for dataset in self.datasets]
        known = [value for value in known if isfinite(value)]
        return fmean(known) if known else nan


def distances(study: Study, kind: Kind) -> list[Distance]:
    """Take every scaling that has a ceiling and something below it."""
    found = [Distance(grid(study, kind, s, "auc")) for s in study.scalings(kind)]
    return [distance for distance in found if distance.datasets and online(distance.grid.methods)]


def ceiling_table(distance: Distance) -> Table:
    """Show the differences, and the ceiling itself in the last column."""
    ours = distance.grid
    methods = online(ours.methods)
    mean = fmean(ours.mean(dataset, CEILING) for dataset in distance.datasets)
    means = [difference(distance.mean(method)) for method in methods]
    return Table(
        key=f"ceiling-{ours.table}-{ours.scaling}",
        title=f"AUC less that of {CEILING}, {ours.table}, {scaling_words(ours.scaling)}",
        note="Below zero: worse than the ceiling." + sample_note(ours.samples),
        corner="Data set",
        columns=(*methods, CEILING),
        rows=tuple(_row(distance, dataset, methods) for dataset in distance.datasets),
        foot=(Row("Mean", (*means, number(mean))),),
    )


def _row(distance: Distance, dataset: str, methods: list[str]) -> Row:
    cells = [difference(distance.difference(dataset, method)) for method in methods]
    ceiling = number(distance.grid.mean(dataset, CEILING))
    return Row(marked(dataset, distance.grid.samples), (*cells, ceiling))
