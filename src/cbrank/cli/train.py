"""``cbrank train``: learn a ranker from files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli.learning import learn, mixing, running
from cbrank.cli.options import (
    COLUMNS,
    DATA,
    READING,
    columns,
    columns_of,
    parameter_options,
    reading,
    scheduler,
)
from cbrank.parameters import CBR

if TYPE_CHECKING:
    from cbrank.training import Model

_LEARNER = tuple(parameter.name for parameter in CBR if parameter.is_option)


@click.command(name="train")
@DATA
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="MODEL",
    help="Where the model goes.",
)
@parameter_options(CBR)
@click.option(
    "--scale",
    type=click.Choice(["standard", "unit", "maxabs", "none"]),
    help="Scale rows by what was seen so far.  [default: none; unit if diagonal]",
)
@columns
@reading
@running
@scheduler
def command(output: Path, **options: Any) -> None:
    """Learn a ranker from files.

    DATA is svmlight text, CSV or Parquet; plain, .gz, .bz2, .xz or .zst; one file, several, a
    glob in quotes, or - for standard input. It is read in chunks, in the order given; rows that are
    sorted by label should be mixed, by --shuffle.

    \b
    cbrank train clicks.svm -o clicks.model
    cbrank train 'day*.csv.gz' --label clicked --positive yes -o clicks.model
    cbrank train big.svm.zst --covariance diagonal -o big.model \\
        --checkpoint big.ckpt --every 10m --resume
    cbrank train 'day*.svm.gz' --scheduler tcp://10.0.0.1:8786 -o days.model

    With --scheduler each file is a partition: the workers of the cluster, which must find it under
    the same path, learn from their files separately, and what they learned is merged after each of
    the --passes.
    """  # noqa: D301
    from cbrank.training.model import WIDEST_FULL  # noqa: PLC0415

    names = (*_LEARNER, "scale", "seed", *COLUMNS, *READING, "passes")
    asked = {"command": "train"} | {name: _json(options[name]) for name in names} | mixing(options)
    widest = WIDEST_FULL if options["covariance"] is None else None
    if options["scheduler"]:
        from cbrank.cli.cluster import learn_on_cluster  # noqa: PLC0415

        learn_on_cluster(_model(options), asked, output, options, widest)
    else:
        learn(_model(options), asked, output, options, widest)


def _model(options: dict[str, Any]) -> "Model":
    from cbrank.rankers import CBRanker  # noqa: PLC0415
    from cbrank.streams import StreamScaler  # noqa: PLC0415
    from cbrank.training import Model  # noqa: PLC0415

    given = {name: options[name] for name in _LEARNER if options[name] is not None}
    ranker = CBRanker(**given, random_state=options["seed"])
    kind = options["scale"] or ("unit" if ranker.covariance == "diagonal" else "none")
    scaler = None if kind == "none" else StreamScaler(kind)
    return Model(ranker, scaler, columns_of(options))


def _json(value: Any) -> Any:
    """Return an option as JSON gives it back."""
    if isinstance(value, dict):
        return {str(name): item for name, item in value.items()}
    return [_json(item) for item in value] if isinstance(value, tuple | list) else value
