"""``cbrank evaluate``: how well a model ranks labelled rows."""

import shlex
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli import files
from cbrank.cli.options import (
    AS_JSON,
    DATA,
    LABEL,
    MODEL,
    QUIET,
    RowsOrShare,
    Share,
    picture,
    reading,
)

if TYPE_CHECKING:
    from cbrank.inspection.evaluation import Evaluation
    from cbrank.inspection.groups import Grouping
    from cbrank.training import Model

_LABEL = 19


@click.command(name="evaluate")
@MODEL
@DATA
@click.option(
    "--at",
    type=RowsOrShare(),
    multiple=True,
    metavar="ROWS|SHARE",
    help="Look at so many of the first rows too, such as 500 or 2%; may be repeated.",
)
@click.option(
    "--precision",
    type=Share(),
    multiple=True,
    help="Find the threshold of this precision, such as 90%, and its recall; may be repeated.",
)
@click.option(
    "--recall",
    type=Share(),
    multiple=True,
    help="Find the threshold of this recall and its precision; may be repeated.",
)
@click.option("--by", metavar="COLUMN", help="The AUC within each group of rows, by this column.")
@LABEL
@AS_JSON
@picture("--roc", "Draw the ROC curve with both thresholds")
@picture("--pr", "Draw the precision-recall curve")
@picture("--calibration", "Draw shares of positives by probabilities")
@picture("--html", "Write a page with all of it, and the curves of the model", endings=(".html",))
@reading
@QUIET
def command(
    model: Path,
    data: tuple[str, ...],
    at: tuple[int | Fraction, ...],
    precision: tuple[Fraction, ...],
    recall: tuple[Fraction, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Measure how well a model ranks the labelled rows of DATA.

    Prints the AUC with its 95% confidence interval (DeLong), the average precision, and how good the
    probabilities are; then precision, recall and lift of the first rows, what thresholds do, and a
    table of the tenths of the ranking. The threshold of the model is what using it would give; the
    best one for these very rows flatters. Rows of one score are counted as if in random order.
    Scores and probabilities are held, 16 bytes a row; rows are not.

    \b
    Examples:
      cbrank evaluate clicks.model tomorrow.csv
      cbrank evaluate clicks.model tomorrow.csv --at 500 --precision 90% --by city
      cbrank evaluate clicks.model tomorrow.csv --roc roc.png --html clicks.html
      cbrank evaluate clicks.model 'week/*.csv.gz' --json
    """  # noqa: D301
    from cbrank.inspection.evaluation import evaluate  # noqa: PLC0415
    from cbrank.inspection.scoring import both_labels  # noqa: PLC0415
    from cbrank.training import Model  # noqa: PLC0415

    files.refuse_closed_output()
    opened = Model.open(model).for_later()
    if options["label"] is not None:
        opened.columns.read_label(options["label"])
    outputs = {option: options[option] for option in ("roc", "pr", "calibration", "html")}
    written = [(f"--{option}", path) for option, path in outputs.items()]
    files.check_outputs(*written, model=model, data=data)
    label = both_labels(opened)[1]
    by = _grouping(opened, options["by"])
    rows = _scored(opened, data, options, by)
    precisions, recalls = [*map(float, precision)], [*map(float, recall)]
    found = evaluate(*rows, at=at, precisions=precisions, recalls=recalls, by=by)
    _draw(outputs, found)
    if outputs["html"]:
        from cbrank.inspection.page import write_page  # noqa: PLC0415

        asked = {"--at": at, "--precision": precision, "--recall": recall}
        options_again = [
            *_again(asked, by),
            *(["--label", options["label"]] if options["label"] else []),
        ]
        again = shlex.join(["cbrank", "evaluate", str(model), *data, *options_again])
        write_page(
            outputs["html"], found, label, model=model.name, command=again, ranker=opened.ranker
        )
    facts = {"positive": label} | found.facts()
    click.echo(files.as_json(facts) if as_json else _text(found, label))


def _again(asked: dict[str, tuple[int | Fraction, ...]], by: "Grouping | None") -> Iterator[str]:
    """Return the options that were given, as they may be given again."""
    for option, values in asked.items():
        for value in values:
            share = isinstance(value, Fraction)
            yield from (option, f"{float(100 * value):.12g}%" if share else str(value))
    if by is not None:
        yield from ("--by", by.column)


def _grouping(model: "Model", column: str | None) -> "Grouping | None":
    """Have a column's cells read beside the features, to group rows by."""
    from cbrank.inspection.groups import Grouping  # noqa: PLC0415

    if column is None:
        return None
    if column == model.columns.label:
        raise ValueError(f"column {column!r} is the label: group rows by another.")
    numbers = () if model.takes_tables() else model.columns.numeric_ or ()
    if column in numbers:
        raise ValueError(
            f"column {column!r} is a feature of the model: rows are not grouped by it."
        )
    model.columns.pass_on(column)
    return Grouping(column)


def _scored(
    model: "Model", data: tuple[str, ...], options: dict[str, Any], by: "Grouping | None"
) -> tuple[Any, Any, Any]:
    """Return labels, scores and probabilities; refuse rows of one class."""
    import numpy as np  # noqa: PLC0415

    from cbrank.inspection.scoring import judge  # noqa: PLC0415

    labels, scores, chances = [np.zeros(0, np.int8)], [np.zeros(0)], [np.zeros(0)]
    for chunk in files.read_chunks(model, data, options, labels=True):
        assert chunk.y is not None
        labels.append(chunk.y.astype(np.int8))
        judged = judge(model, chunk.X)
        scores.append(judged.scores)
        chances.append(judged.probabilities)
        if by is not None:
            if chunk.ids is None:
                name = chunk.position.files[chunk.position.file].name
                raise ValueError(f"{name} has no column {by.column!r} to group rows by.")
            by.add(chunk.ids)
    y = np.concatenate(labels)
    if not len(y):
        raise ValueError("there are no rows to evaluate.")
    if y.min() == y.max():
        only = model.columns.classes_[y[0]]
        raise ValueError(f"all {len(y)} rows are labelled {only!r}: an AUC needs both labels.")
    return y, np.concatenate(scores), np.concatenate(chances)


def _draw(outputs: dict[str, Path | None], found: "Evaluation") -> None:
    if not any(outputs.values()):
        return
    from cbrank.inspection.pictures import PICTURES, draw  # noqa: PLC0415

    for option in PICTURES:
        path = outputs[option]
        if path:
            draw(path, option, found)


def _text(found: "Evaluation", label: str) -> str:
    from cbrank.inspection.summary import measures, remarks, tables  # noqa: PLC0415
    from cbrank.tables import plain  # noqa: PLC0415

    parts = ["\n".join(f"{name:<{_LABEL}}{text}" for name, text in measures(found, label))]
    for table in tables(found):
        told = remarks(found) if table.key == "thresholds" else []
        parts.append("\n".join([plain(table), *told]))
    return "\n\n".join(parts)
