"""The paper's tables with our scores, and accuracy at thresholds that never saw the test labels."""

from collections.abc import Sequence
from math import isfinite, nan

from cbrank.datasets.entry import Table as Kind
from cbrank.study.report.against_paper import Gap, gaps
from cbrank.study.report.names import (
    CEILING,
    FAR_MARK,
    marked,
    online_methods,
    paper_methods,
    sample_note,
    scaling_name,
)
from cbrank.study.report.published import PaperTable
from cbrank.study.report.scores import Score, Scores, mean_scores, ranking
from cbrank.study.report.study import Study
from cbrank.tables import ABSENT, Cell, Row, Table, fixed, number, signed


def score_table(study: Study, table: PaperTable, scaling: str) -> Table:
    """Fill one of the paper's tables.

    Parameters
    ----------
    study : Study
        The study.
    table : PaperTable
        Which table; its figures are shown with ``unit`` scaling only, which is the paper's.
    scaling : str
        How the data were scaled.

    Returns
    -------
    Table
        Methods that the paper does not have are further columns.
    """
    scores = mean_scores(study, table.kind, scaling, table.measure)
    beside = gaps(scores, table) if scaling == "unit" else {}
    return Table(
        key=f"table-{table.number}-{scaling}",
        title=f"Table {table.number}, {scaling_name(scaling)}: {table.title}",
        note=_note(scores, beside),
        corner="Data set",
        columns=scores.methods,
        rows=tuple(_row(scores, dataset, beside) for dataset in scores.datasets),
        foot=_rank_rows(scores),
    )


def _note(scores: Scores, beside: dict[tuple[str, str], Gap]) -> str:
    runs = max((score.runs for score in scores.means.values()), default=0)
    spread = "Mean ± standard deviation" if runs > 1 else "Value"
    note = f"{spread} over {runs} run{'s' * (runs != 1)}; bold: the best of the online methods."
    if beside:
        note += " Below: the paper's mean and our difference from it"
    if any(gap.is_far for gap in beside.values()):
        note += f", {FAR_MARK} where that is more than two standard errors"
    return note + "." * bool(beside) + sample_note(scores.samples)


def _row(scores: Scores, dataset: str, beside: dict[tuple[str, str], Gap]) -> Row:
    best = scores.best(dataset, online_methods(scores.methods))
    cells = []
    for method in scores.methods:
        score, gap = scores.means.get((dataset, method)), beside.get((dataset, method))
        below = _below(score, gap, scores.runs(dataset))
        bold = method != CEILING and score is not None and score.mean == best
        cells.append(_score_cell(score, below=below, bold=bold))
    return Row(marked(dataset, scores.samples), tuple(cells))


def _score_cell(score: Score | None, *, below: str = "", bold: bool = False) -> Cell:
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
        parts.append(
            f"paper {fixed(gap.paper.mean)}, {signed(gap.difference)}{FAR_MARK * gap.is_far}"
        )
    if score and score.runs < runs:
        parts.append(f"{score.runs} of {runs} runs")
    return ", ".join(parts)


def _rank_rows(scores: Scores) -> tuple[Row, ...]:
    """Average the ranks: of the paper's methods, and of all where there are others too."""
    of_paper, of_all = paper_methods(scores.methods, scores.kind), online_methods(scores.methods)
    if of_paper == of_all or not of_paper:
        return _rank_row(scores, "Average rank", of_all)
    return _rank_row(scores, "Average rank, paper's", of_paper) + _rank_row(
        scores, "Average rank, all", of_all
    )


def _rank_row(scores: Scores, name: str, methods: Sequence[str]) -> tuple[Row, ...]:
    ranks = ranking(scores, methods).ranks
    if len(ranks) < 2:
        return ()
    best = min(ranks.values())
    cells = [number(ranks.get(method, nan), 2) for method in scores.methods]
    bold = [ranks.get(method) == best for method in scores.methods]
    return (Row(name, tuple(_bolder(c, b) for c, b in zip(cells, bold, strict=True))),)


def _bolder(cell: Cell, bold: bool) -> Cell:
    return Cell(text=cell.text, value=cell.value, bold=bold)


def threshold_table(study: Study, kind: Kind, scaling: str) -> Table:
    """Show accuracy at a threshold chosen on training rows, and balanced accuracy below it.

    Parameters
    ----------
    study : Study
        The study.
    kind : {"benchmark", "high-dimensional"}
        The data sets.
    scaling : str
        How they were scaled.

    Returns
    -------
    Table
        Without rows if the study has no such measure.
    """
    plain = mean_scores(study, kind, scaling, "accuracy_held")
    balanced = mean_scores(study, kind, scaling, "balanced_held")
    return Table(
        key=f"held-{kind}-{scaling}",
        title=f"Accuracy at a threshold chosen on training rows, {kind}, {scaling_name(scaling)}",
        note="Bold: the best accuracy of the online methods; below: balanced accuracy, the mean "
        "of the two classes' shares recognised." + sample_note(plain.samples),
        corner="Data set",
        columns=plain.methods,
        rows=tuple(_threshold_row(plain, balanced, dataset) for dataset in plain.datasets),
        foot=_rank_rows(plain),
    )


def _threshold_row(plain: Scores, balanced: Scores, dataset: str) -> Row:
    best = plain.best(dataset, online_methods(plain.methods))
    cells = [_threshold_cell(plain, balanced, dataset, method, best) for method in plain.methods]
    return Row(marked(dataset, plain.samples), tuple(cells))


def _threshold_cell(
    plain: Scores, balanced: Scores, dataset: str, method: str, best: float
) -> Cell:
    score = plain.means.get((dataset, method))
    beside = balanced.means.get((dataset, method))
    below = f"balanced {fixed(beside.mean)}" if beside else f"balanced {ABSENT}"
    bold = method != CEILING and score is not None and score.mean == best
    return _score_cell(score, below=below if score else "", bold=bold)
