"""``cbrank export``: a model for other runtimes."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli.files import check_outputs
from cbrank.cli.options import KINDS_IN_WORDS, MODEL

if TYPE_CHECKING:
    from cbrank.inspection.contents import Contents

_HEADS = "input", "type", "taken as"
_KINDS = KINDS_IN_WORDS | {
    "time": "date, in seconds since 1970",
    "bucket": "CRC-32 of the category, modulo 32",
}


@click.command(name="export")
@MODEL
@click.option(
    "--onnx",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="PATH",
    help="Where the ONNX file goes; needs cbrank[onnx].",
)
def command(model: Path, onnx: Path) -> None:
    """Write a model's scorer as an ONNX file.

    A model of a table takes its columns, one input for each, named as the column: doubles for
    numbers and dates, strings for categories, NaN or an empty string for gaps. It gives the score, the
    probability and the label. What is printed says what to feed; free text is refused.

    A linear model takes dense rows of doubles, the features in the order in which its metadata name
    them, or by index for svmlight text, and gives the score. With categorical columns it is refused.

    Scores are those of cbrank score, but for rounding.

    \b
    Example:
      cbrank export clicks.model --onnx clicks.onnx
    """  # noqa: D301
    from cbrank.atomic import atomic_write  # noqa: PLC0415
    from cbrank.inspection.contents import Contents  # noqa: PLC0415
    from cbrank.optional import need  # noqa: PLC0415
    from cbrank.rankers import AdditiveRanker  # noqa: PLC0415

    need("onnx", "--onnx", "onnx")
    check_outputs(("--onnx", onnx), model=model)
    contents = Contents.open(model)
    of_table = isinstance(contents.ranker, AdditiveRanker)
    scorer, lines = _of_table(contents) if of_table else _linear(contents)
    with atomic_write(onnx) as file:
        file.write(scorer.SerializeToString())
    click.echo("\n".join([f"{onnx}: {lines[0]}", *lines[1:]]))


def _of_table(contents: "Contents") -> tuple[Any, list[str]]:
    """Return the scorer of a model of tables, and what to say of it."""
    from cbrank.onnx import to_onnx  # noqa: PLC0415

    scorer = to_onnx(contents.ranker, contents.scaler, labels=contents.labels())
    facts = {each.key: each.value for each in scorer.metadata_props}
    inputs, left_out = json.loads(facts["columns"]), json.loads(facts["left_out"])
    rows = [_HEADS, *((i["name"], i["type"], _KINDS.get(i["kind"], i["kind"])) for i in inputs)]
    width = max(len(name) for name, _, _ in rows)
    score, proba, label = (port.name for port in scorer.graph.output)
    count = f"{len(inputs)} input" + "s" * (len(inputs) > 1)
    return scorer, [
        f"{count}, {score} double[rows], {proba} double[rows], {label} string[rows]",
        *(f"{name:<{width}}  {kind:<6}  {taken}" for name, kind, taken in rows),
        *([f"left out: {', '.join(left_out)}"] if left_out else []),
    ]


def _linear(contents: "Contents") -> tuple[Any, list[str]]:
    """Return the scorer of a linear model, and what to say of it."""
    from cbrank.onnx import to_onnx  # noqa: PLC0415

    columns, model = contents.columns, contents.path
    if columns is not None and columns.categorical:
        names = ", ".join(map(repr, columns.categorical))
        raise ValueError(
            f"{model} reads categories (column {names}), and a linear ONNX scorer takes numbers only: "
            "train a model on columns of numbers."
        )
    if columns is None and contents.scaler is not None and contents.scaler.kind == "standard":
        raise ValueError(
            f"{model} was saved from Python and does not say whether its scaler centres rows: "
            "use cbrank.onnx.to_onnx there."
        )
    scorer = to_onnx(
        contents.ranker,
        contents.scaler,
        sparse=columns is not None and columns.numeric_ is None,
        features=contents.feature_names(),
        labels=contents.labels(),
    )
    return scorer, [f"features double[rows, {contents.ranker.n_features_in_}], score double[rows]"]
