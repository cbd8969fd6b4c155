"""Tables that sum a study up: average ranks, the distance from the ceiling, and one for terminals."""

from dataclasses import dataclass
from math import isfinite, nan
from statistics import fmean

from cbrank.datasets.entry import Table as Kind
from cbrank.study.report.names import (
    CEILING,
    MEASURE_NAMES,
    marked,
    online_methods,
    ordered_methods,
    paper_methods,
    plural,
    sample_note,
    scaling_name,
)
from cbrank.study.report.scores import Ranking, Scores, mean_scores, ranking
from cbrank.study.report.study import Study
from cbrank.tables import ABSENT, Cell, Row, Table, difference, fixed, number

MEASURED = ("auc", "accuracy")


@dataclass(frozen=True)
class Column:
    """Scores, and the ranks of the paper's methods and of all online ones."""

    scores: Scores
    paper: Ranking
    all: Ranking

    @property
    def name(self) -> str:
        """The measure and the scaling."""
        measure = MEASURE_NAMES[self.scores.measure]
        return f"{measure[0].upper()}{measure[1:]}, {scaling_name(self.scores.scaling)}"

    @property
    def has_others(self) -> bool:
        """Whether there are methods that the paper does not have."""
        return self.paper.ranks.keys() != self.all.ranks.keys()


def overview(study: Study, kind: Kind) -> Table:
    """Sum a study up in one table.

    Parameters
    ----------
    study : Study
        The study.
    kind : {"benchmark", "high-dimensional"}
        The data sets.

    Returns
    -------
    Table
        A row for each method; two columns for each scaling.
    """
    columns = [_column(study, kind, s, m) for s in study.scalings(kind) for m in MEASURED]
    methods = ordered_methods({name for column in columns for name in column.scores.methods}, kind)
    others = any(column.has_others for column in columns)
    return Table(
        key=f"overview-{kind}",
        title=f"Average ranks on the {kind} data sets",
        note="1 is the best of the paper's methods; below: the mean over the same data sets"
        + " and the rank among all online methods" * others
        + ".",
        corner="Method",
        columns=tuple(column.name for column in columns),
        rows=tuple(Row(m, tuple(_overview_cell(column, m) for column in columns)) for m in methods),
        foot=(Row("Compared on", tuple(_blocks(column.all) for column in columns)),),
    )


def _column(study: Study, kind: Kind, scaling: str, measure: str) -> Column:
    scores = mean_scores(study, kind, scaling, measure)
    of_paper = ranking(scores, paper_methods(scores.methods, kind))
    return Column(scores, of_paper, ranking(scores, online_methods(scores.methods)))


def _overview_cell(column: Column, method: str) -> Cell:
    mean = mean_score(column.scores, column.all, method)
    if not isfinite(mean):
        return Cell(text=ABSENT)
    below = f"mean {fixed(mean)}"
    if column.has_others and method in column.all.ranks:
        below += f", {fixed(column.all.ranks[method], 2)} of all"
    rank = column.paper.ranks.get(method)
    if rank is None:
        return Cell(text="ceiling" if method == CEILING else ABSENT, below=below)
    bold = method in column.paper.first()
    return Cell(text=fixed(rank, 2), below=below, bold=bold, value=rank)


def mean_score(scores: Scores, ranking: Ranking, method: str) -> float:
    """Average a method's scores over the data sets of a ranking; NaN if it lacks one."""
    means = [scores.mean(dataset, method) for dataset in ranking.datasets]
    return fmean(means) if means else nan


def _blocks(ranking: Ranking) -> Cell:
    return Cell(text=plural(len(ranking.datasets), "set"))


@dataclass(frozen=True)
class Distance:
    """Mean AUCs, seen from the ceiling."""

    scores: Scores

    @property
    def datasets(self) -> list[str]:
        """The data sets with a ceiling."""
        return [d for d in self.scores.datasets if (d, CEILING) in self.scores.means]

    def difference(self, dataset: str, method: str) -> float:
        """Take the ceiling's mean AUC from a method's."""
        return self.scores.mean(dataset, method) - self.scores.mean(dataset, CEILING)

    def mean(self, method: str) -> float:
        """Average the differences over the data sets that a method has."""
        known = [self.difference(dataset, method) for dataset in self.datasets]
        known = [value for value in known if isfinite(value)]
        return fmean(known) if known else nan


def distances(study: Study, kind: Kind) -> list[Distance]:
    """Take every scaling that has a ceiling and something below it."""
    found = [Distance(mean_scores(study, kind, s, "auc")) for s in study.scalings(kind)]
    return [
        distance
        for distance in found
        if distance.datasets and online_methods(distance.scores.methods)
    ]


def ceiling_table(distance: Distance) -> Table:
    """Show the differences, and the ceiling itself in the last column."""
    ours = distance.scores
    methods = online_methods(ours.methods)
    mean = fmean(ours.mean(dataset, CEILING) for dataset in distance.datasets)
    means = [difference(distance.mean(method)) for method in methods]
    return Table(
        key=f"ceiling-{ours.kind}-{ours.scaling}",
        title=f"AUC less that of {CEILING}, {ours.kind}, {scaling_name(ours.scaling)}",
        note="Below zero: worse than the ceiling." + sample_note(ours.samples),
        corner="Data set",
        columns=(*methods, CEILING),
        rows=tuple(_ceiling_row(distance, dataset, methods) for dataset in distance.datasets),
        foot=(Row("Mean", (*means, number(mean))),),
    )


def _ceiling_row(distance: Distance, dataset: str, methods: list[str]) -> Row:
    cells = [difference(distance.difference(dataset, method)) for method in methods]
    ceiling = number(distance.scores.mean(dataset, CEILING))
    return Row(marked(dataset, distance.scores.samples), (*cells, ceiling))


def text_table(study: Study, kind: Kind) -> str:
    """Write mean AUCs, the best of each row with a star, and average ranks.

    Parameters
    ----------
    study : Study
        The study.
    kind : {"benchmark", "high-dimensional"}
        The data sets.

    Returns
    -------
    str
        Lines of text, for the first scaling that the study has.
    """
    scores = mean_scores(study, kind, study.scalings(kind)[0], "auc")
    ranks = ranking(scores, online_methods(scores.methods)).ranks
    rows = [["", *scores.methods], *[_text_row(scores, dataset) for dataset in scores.datasets]]
    if len(ranks) > 1:
        known = [f"{ranks[m]:.2f} " if m in ranks else "- " for m in scores.methods]
        rows.append(["average rank", *known])
    runs = plural(max((score.runs for score in scores.means.values()), default=0), "run")
    head = f"Mean AUC over {runs}, {kind} data sets, {scaling_name(scores.scaling)} (*: the best)"
    return "\n".join([head, *_aligned(rows), sample_note(scores.samples).strip()]).rstrip()


def _text_row(scores: Scores, dataset: str) -> list[str]:
    best = scores.best(dataset, online_methods(scores.methods))
    row = [marked(dataset, scores.samples)]
    for method in scores.methods:
        mean = scores.mean(dataset, method)
        star = "*" if mean == best and method != CEILING else " "
        row.append(f"{mean:.3f}{star}" if isfinite(mean) else "- ")
    return row


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *texts in rows:
        cells = [f"{text:>{width}}" for text, width in zip(texts, widths[1:], strict=True)]
        lines.append("  ".join([f"{name:<{widths[0]}}", *cells]).rstrip())
    return lines
