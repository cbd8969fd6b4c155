"""``cbrank evaluate``: how well a model ranks labelled rows."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli import files
from cbrank.cli.options import AS_JSON, DATA, MODEL, QUIET, picture, reading

if TYPE_CHECKING:
    from cbrank.inspection.evaluation import Decision, Evaluation
    from cbrank.training import Model


@click.command(name="evaluate")
@MODEL
@DATA
@AS_JSON
@picture("--roc", "Draw the ROC curve with both thresholds")
@reading
@QUIET
def command(
    model: Path, data: tuple[str, ...], as_json: bool, roc: Path | None, **options: Any
) -> None:
    """Measure how well a model ranks the labelled rows of DATA.

    Prints the AUC with its 95% confidence interval (DeLong), the average precision, and the accuracy
    at two thresholds: the model's own, which is what using it would give, and the best one for these
    very rows, which flatters. Scores are held, 8 bytes a row; rows are not.

    \b
    Examples:
      cbrank evaluate clicks.model tomorrow.csv
      cbrank evaluate clicks.model tomorrow.csv --roc roc.png
      cbrank evaluate clicks.model 'week/*.csv.gz' --json
    """  # noqa: D301
    from cbrank.inspection.evaluation import evaluate  # noqa: PLC0415
    from cbrank.inspection.scoring import both_labels  # noqa: PLC0415
    from cbrank.training import Model  # noqa: PLC0415

    files.refuse_closed_output()
    opened = Model.open(model)
    files.check_outputs(("--roc", roc), model=model, data=data)
    label = both_labels(opened)[1]
    y, scores = _scored(opened, data, options)
    found = evaluate(y, scores)
    if roc:
        from cbrank.inspection.pictures import draw_roc  # noqa: PLC0415

        draw_roc(roc, y, scores, found)
    click.echo(files.as_json(_facts(found, label)) if as_json else _text(found, label))


def _scored(model: "Model", data: tuple[str, ...], options: dict[str, Any]) -> tuple[Any, Any]:
    """Return labels and scores; refuse rows of one class."""
    import numpy as np  # noqa: PLC0415

    from cbrank.inspection.scoring import finite_scores  # noqa: PLC0415

    labels, scores = [np.zeros(0, np.int8)], [np.zeros(0)]
    for chunk in files.read_chunks(model, data, options, labels=True):
        assert chunk.y is not None
        labels.append(chunk.y.astype(np.int8))
        scores.append(finite_scores(model, chunk.X)[0])
    y = np.concatenate(labels)
    if not len(y):
        raise ValueError("there are no rows to evaluate.")
    if y.min() == y.max():
        only = model.columns.classes_[y[0]]
        raise ValueError(f"all {len(y)} rows are labelled {only!r}: an AUC needs both labels.")
    return y, np.concatenate(scores)


def _text(found: "Evaluation", label: str) -> str:
    share = found.positives / found.rows
    return "\n".join(
        [
            f"rows               {found.rows}",
            f"positives          {found.positives} ({share:.2%}), labelled {label!r}",
            f"AUC                {found.auc.auc:.4f}, {found.interval()}",
            f"average precision  {found.average_precision:.4f}",
            f"accuracy           {_decision(found.own, 'the threshold of the model')}",
            f"                   {_decision(found.best, 'the best threshold for these rows')}",
        ]
    )


def _decision(point: "Decision", name: str) -> str:
    return (
        f"{point.accuracy:.4f} at {name}, {point.threshold:.6g}: finds {point.tpr:.1%} of the "
        f"positives, with {point.fpr:.1%} of the negatives"
    )


def _facts(found: "Evaluation", label: str) -> dict[str, Any]:
    from dataclasses import asdict  # noqa: PLC0415

    return {
        "rows": found.rows,
        "positives": found.positives,
        "positive": label,
        "auc": found.auc.auc,
        "auc_low": found.auc.low,
        "auc_high": found.auc.high,
        "auc_std": found.auc.std,
        "average_precision": found.average_precision,
        "at_model_threshold": asdict(found.own),
        "at_best_threshold": asdict(found.best),
    }
