"""``cbrank export``: a model for other runtimes."""

from pathlib import Path

import click

from cbrank.cli.files import check_outputs
from cbrank.cli.options import MODEL


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

    It takes dense rows of doubles, the features in the order in which its metadata name them, or by
    index for svmlight text; it scales them as the model does and gives the scores of cbrank score,
    but for rounding. Models with categorical columns are refused: ONNX rows are numbers.

    \b
    Example:
      cbrank export clicks.model --onnx clicks.onnx
    """  # noqa: D301
    from cbrank.atomic import atomic_write  # noqa: PLC0415
    from cbrank.inspection.contents import Contents  # noqa: PLC0415
    from cbrank.onnx import to_onnx  # noqa: PLC0415
    from cbrank.optional import need  # noqa: PLC0415

    need("onnx", "--onnx", "onnx")
    check_outputs(("--onnx", onnx), model=model)
    contents = Contents.open(model)
    columns = contents.columns
    if columns is not None and columns.categorical:
        names = ", ".join(map(repr, columns.categorical))
        raise ValueError(
            f"{model} reads categories (column {names}), and an ONNX scorer takes numbers only: "
            "train a model on columns of numbers."
        )
    if columns is None and contents.scaler is not None and contents.scaler.kind == "standard":
        raise ValueError(
            f"{model} was saved from Python and does not say whether its scaler centres rows: "
            "use cbrank.onnx.to_onnx there."
        )
    ranker = contents.ranker
    scorer = to_onnx(
        ranker,
        contents.scaler,
        sparse=columns is not None and columns.numeric_ is None,
        features=contents.feature_names(),
        labels=contents.labels(),
    )
    with atomic_write(onnx) as file:
        file.write(scorer.SerializeToString())
    click.echo(f"{onnx}: features double[rows, {ranker.n_features_in_}], score double[rows]")
