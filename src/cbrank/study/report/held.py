"""Accuracy where the threshold was chosen on training rows, which never saw the test labels."""

from cbrank.datasets.entry import Table as Kind
from cbrank.study.report.grids import Grid, grid
from cbrank.study.report.looks import CEILING, online
from cbrank.study.report.marks import marked, sample_note
from cbrank.study.report.results import Study
from cbrank.study.report.scores import rank_rows, score_cell
from cbrank.study.report.words import scaling_words
from cbrank.tables import ABSENT, Cell, Row, Table, fixed


def held_table(study: Study, kind: Kind, scaling: str) -> Table:
    """Show accuracy, and balanced accuracy below it.

    Parameters
    ----------
    study : Study
        What was read.
    kind : {"benchmark", "high-dimensional"}
        The data sets.
    scaling : str
        How they were scaled.

    Returns
    -------
    Table
        Without rows if the study has no such measure.
    """
    plain = grid(study, kind, scaling, "accuracy_held")
    balanced = grid(study, kind, scaling, "balanced_held")
    return Table(
        key=f"held-{kind}-{scaling}",
        title=f"Accuracy at a threshold chosen on training rows, {kind}, {scaling_words(scaling)}",
        note="Bold: the best accuracy of the online methods; below: balanced accuracy, the mean "
        "of the two classes' shares recognised." + sample_note(plain.samples),
        corner="Data set",
        columns=plain.methods,
        rows=tuple(_row(plain, balanced, dataset) for dataset in plain.datasets),
        foot=rank_rows(plain),
    )


def _row(plain: Grid, balanced: Grid, dataset: str) -> Row:
    best = plain.best(dataset, online(plain.methods))
    cells = [_cell(plain, balanced, dataset, method, best) for method in plain.methods]
    return Row(marked(dataset, plain.samples), tuple(cells))


def _cell(plain: Grid, balanced: Grid, dataset: str, method: str, best: float) -> Cell:
    score = plain.scores.get((dataset, method))
    beside = balanced.scores.get((dataset, method))
    below = f"balanced {fixed(beside.mean)}" if beside else f"balanced {ABSENT}"
    bold = method != CEILING and score is not None and score.mean == best
    return score_cell(score, below=below if score else "", bold=bold)
