"""How many of the fits that tuning tried left the finite numbers."""

from statistics import fmean

from cbrank.study.report.looks import ordered
from cbrank.study.report.results import SCALINGS, Study, in_order
from cbrank.study.report.words import scaling_words
from cbrank.tables import ABSENT, Cell, Row, Table


def diverged_table(study: Study) -> Table:
    """Show the mean number by method and scaling; without rows if no fit diverged."""
    scalings = in_order({result.scaling for result in study.results}, SCALINGS)
    methods = ordered({result.method for result in study.results if result.diverged > 0})
    return Table(
        key="diverged",
        title="Fits that diverged while the parameter was tuned",
        note="Mean number in a run, over all data sets. Such a value of the parameter ranks last.",
        corner="Method",
        columns=tuple(scaling_words(scaling).capitalize() for scaling in scalings),
        rows=tuple(Row(m, tuple(_cell(study, m, s) for s in scalings)) for m in methods),
    )


def _cell(study: Study, method: str, scaling: str) -> Cell:
    counts = [
        result.diverged
        for result in study.results
        if (result.method, result.scaling) == (method, scaling) and result.diverged >= 0
    ]
    if not counts:
        return Cell(text=ABSENT)
    return Cell(text=f"{fmean(counts):.1f}", value=fmean(counts))
