"""How far our figures are from the paper's, in standard errors of the difference.

The paper prints means over 10 runs on benchmark data sets and over 5 on high-dimensional ones. That
what stands behind its ± is the standard deviation over these runs is inferred.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import fmean

from scipy.stats import t

from cbrank.study.report.names import (
    FAR_MARK,
    marked,
    plural,
    sample_note,
)
from cbrank.study.report.published import TABLES, PaperTable
from cbrank.study.report.scores import Score, Scores, mean_scores
from cbrank.study.report.study import Study
from cbrank.study.settings import RUNS
from cbrank.tables import ABSENT, Cell, Row, Table, difference, fixed, signed

FAR = 2.0  # standard errors
_ROUNDING = 0.001**2 / 12  # variance of what rounding to three decimals takes away


@dataclass(frozen=True)
class Gap:
    """Our mean over runs beside the paper's."""

    dataset: str
    method: str
    ours: Score
    paper: Score

    @property
    def difference(self) -> float:
        """Ours, as printed, less the paper's."""
        return round(round(self.ours.mean, 3) - self.paper.mean, 3)

    @property
    def z(self) -> float:
        """The difference in its standard errors; NaN for a single run.

        Examples
        --------
        Two means over ten runs, with a standard deviation of 0.02 each:

        >>> gap = Gap("glass", "OAM_seq", Score(0.81, 0.02, 10), Score(0.8, 0.02, 10))
        >>> print(f"{gap.z:.2f}")
        1.12
        """
        variances = [score.deviation**2 / score.runs for score in (self.ours, self.paper)]
        return (self.ours.mean - self.paper.mean) / sqrt(sum(variances) + _ROUNDING)

    @property
    def is_far(self) -> bool:
        """Whether the difference is more than two standard errors."""
        return abs(self.z) > FAR

    @property
    def chance(self) -> float:
        """How probable it is that two such means of equal distributions are not far apart."""
        return float(1 - 2 * t.sf(FAR, self.ours.runs + self.paper.runs - 2))


def paper_scores(table: PaperTable) -> Scores:
    """Read one of the paper's tables as if it were ours.

    Examples
    --------
    >>> from cbrank.study.report.published import TABLES
    >>> paper_scores(TABLES[0]).mean("glass", "OPAUC")
    0.798
    """
    return Scores(
        kind=table.kind,
        scaling="unit",
        measure=table.measure,
        datasets=tuple(dict.fromkeys(dataset for dataset, _ in table.figures)),
        methods=tuple(dict.fromkeys(method for _, method in table.figures)),
        means={key: Score(*figures, RUNS[table.kind]) for key, figures in table.figures.items()},
        samples=frozenset(),
    )


def gaps(scores: Scores, table: PaperTable) -> dict[tuple[str, str], Gap]:
    """Set our means beside the paper's, by data set and method."""
    theirs = paper_scores(table).means
    return {k: Gap(*k, score, theirs[k]) for k, score in scores.means.items() if k in theirs}


def comparable(study: Study, tables: Iterable[PaperTable] = TABLES) -> list[Gap]:
    """Collect what has a z-score: data sets that are there in full, and more than one run.

    Parameters
    ----------
    study : Study
        The study; its results with rows of unit length are compared.
    tables : iterable of PaperTable
        Of which of the paper's tables.

    Returns
    -------
    list of Gap
        In the order of the tables.
    """
    found = []
    for table in tables:
        scores = mean_scores(study, table.kind, "unit", table.measure)
        beside = gaps(scores, table).values()
        found += [g for g in beside if g.dataset not in scores.samples and isfinite(g.z)]
    return found


def agreement_table(study: Study) -> Table:
    """Count the figures that lie within two standard errors of the paper's.

    Parameters
    ----------
    study : Study
        The study.

    Returns
    -------
    Table
        A row for each of the paper's tables; without rows if there is nothing to compare.
    """
    groups = {f"Table {table.number}": comparable(study, [table]) for table in TABLES}
    groups["Tables 3 and 4"] = groups["Table 3"] + groups["Table 4"]
    return Table(
        key="agreement",
        title="How many of our figures agree with the paper's",
        note="Rows of unit length, data sets that are there in full. Agreement means that the "
        "difference is at most two of its standard errors; were there no difference but chance, "
        "the share in the last column would be expected.",
        corner="Figures of",
        columns=("Compared", "Agree", "Share", "Ours higher", "Ours lower", "By chance"),
        rows=tuple(_agreement_row(name, found) for name, found in groups.items() if found),
    )


def _agreement_row(name: str, found: list[Gap]) -> Row:
    far = [gap for gap in found if gap.is_far]
    counts = len(found), len(found) - len(far)
    higher = sum(gap.z > 0 for gap in far)
    return Row(
        name,
        (
            *map(_count, counts),
            _percent(counts[1] / counts[0]),
            *map(_count, (higher, len(far) - higher)),
            _percent(fmean(gap.chance for gap in found)),
        ),
    )


def _count(number: int) -> Cell:
    return Cell(text=str(number), value=number)


def _percent(share: float) -> Cell:
    return Cell(text=f"{100 * share:.0f} %", value=share)


def z_table(study: Study, table: PaperTable) -> Table:
    """Show the difference of each figure from the paper's, in standard errors.

    Parameters
    ----------
    study : Study
        The study.
    table : PaperTable
        One of the paper's tables.

    Returns
    -------
    Table
        Without rows if there is nothing to compare.
    """
    scores = mean_scores(study, table.kind, "unit", table.measure)
    beside = {key: gap for key, gap in gaps(scores, table).items() if isfinite(gap.z)}
    methods = [m for m in scores.methods if any(m == method for _, method in beside)]
    datasets = [d for d in scores.datasets if any(d == dataset for dataset, _ in beside)]
    in_full = [gap for gap in beside.values() if gap.dataset not in scores.samples]
    counts = [_agreeing(gap for gap in in_full if gap.method == method) for method in methods]
    rows = tuple(
        Row(
            marked(dataset, scores.samples),
            (
                *(_z_cell(beside.get((dataset, method))) for method in methods),
                _agreeing(gap for gap in beside.values() if gap.dataset == dataset),
            ),
        )
        for dataset in datasets
    )
    return Table(
        key=f"z-{table.number}",
        title=f"Table {table.number}: differences from the paper in standard errors",
        note="Ours less the paper's, divided by the standard error of the difference; rows of unit "
        "length. "
        f"{FAR_MARK} More than two." + sample_note(scores.samples & set(datasets)),
        corner="Data set",
        columns=(*methods, "Agree"),
        rows=rows,
        foot=(Row("Agree", (*counts, _agreeing(in_full))),) if in_full else (),
    )


def _z_cell(gap: Gap | None) -> Cell:
    if gap is None:
        return Cell(text=ABSENT)
    return Cell(text=signed(gap.z, 1) + FAR_MARK * gap.is_far, value=gap.z)


def _agreeing(found: Iterable[Gap]) -> Cell:
    near = [not gap.is_far for gap in found]
    return (
        Cell(text=f"{sum(near)} of {len(near)}", value=fmean(near)) if near else Cell(text=ABSENT)
    )


def far_table(study: Study) -> Table:
    """List the figures far from the paper's, by table and z-score; without rows if there are none."""
    return Table(
        key="far-from-paper",
        title="Figures more than two standard errors of the difference from the paper's",
        note="Rows of unit length; † only a sample of the data set was at hand.",
        corner="Data set and method",
        columns=("Table", "Ours", "Paper's", "Difference", "Standard errors"),
        rows=tuple(row for table in TABLES for row in _far_rows(study, table)),
    )


def _far_rows(study: Study, table: PaperTable) -> list[Row]:
    scores = mean_scores(study, table.kind, "unit", table.measure)
    far = [gap for gap in gaps(scores, table).values() if gap.is_far]
    far.sort(key=lambda gap: -abs(gap.z))
    return [
        Row(
            f"{marked(gap.dataset, scores.samples)}, {gap.method}",
            (
                _count(table.number),
                *(_mean(score) for score in (gap.ours, gap.paper)),
                difference(gap.difference),
                Cell(text=signed(gap.z, 1), value=gap.z),
            ),
        )
        for gap in far
    ]


def _mean(score: Score) -> Cell:
    return Cell(text=f"{fixed(score.mean)} ± {fixed(score.deviation)}", value=score.mean)


def agreement(study: Study) -> str:
    """Say in a sentence how many of the comparable figures of Tables 3 and 4 agree.

    Parameters
    ----------
    study : Study
        The study.

    Returns
    -------
    str
        Empty if nothing can be compared.
    """
    found = comparable(study, TABLES[:2])
    if not found:
        return ""
    far = [gap for gap in found if gap.is_far]
    near = len(found) - len(far)
    higher = sum(gap.z > 0 for gap in far)
    chance = fmean(gap.chance for gap in found)
    return (
        f"Of {plural(len(found), 'figure')} of Tables 3 and 4 that can be compared, {near} "
        f"({100 * near / len(found):.0f} %) lie within two standard errors of the paper's, where "
        f"chance alone would give {100 * chance:.0f} %; {higher} lie above and "
        f"{len(far) - higher} below."
    )
