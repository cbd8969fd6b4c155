"""The study's table for a terminal."""

from math import isfinite

from cbrank.datasets.entry import Table as Kind
from cbrank.study.report.grids import Grid, grid, ranking
from cbrank.study.report.looks import CEILING, online
from cbrank.study.report.marks import marked, sample_note
from cbrank.study.report.results import Study
from cbrank.study.report.words import plural, scaling_words


def text_table(study: Study, kind: Kind) -> str:
    """Write mean AUCs, the best of each row with a star, and average ranks.

    Parameters
    ----------
    study : Study
        What was read.
    kind : {"benchmark", "high-dimensional"}
        The data sets.

    Returns
    -------
    str
        Lines of text, for the first scaling that the study has.
    """
    scores = grid(study, kind, study.scalings(kind)[0], "auc")
    ranks = ranking(scores, online(scores.methods)).ranks
    rows = [["", *scores.methods], *[_row(scores, dataset) for dataset in scores.datasets]]
    if len(ranks) > 1:
        known = [f"{ranks[m]:.2f} " if m in ranks else "- " for m in scores.methods]
        rows.append(["average rank", *known])
    runs = plural(max((score.runs for score in scores.scores.values()), default=0), "run")
    head = f"Mean AUC over {runs}, {kind} data sets, {scaling_words(scores.scaling)} (*: the best)"
    return "\n".join([head, *_aligned(rows), sample_note(scores.samples).strip()]).rstrip()


def _row(grid: Grid, dataset: str) -> list[str]:
    best = grid.best(dataset, online(grid.methods))
    row = [marked(dataset, grid.samples)]
    for method in grid.methods:
        mean = grid.mean(dataset, method)
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
