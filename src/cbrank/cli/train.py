"""``cbrank train``: learn a ranker from files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli.cluster import learn_on_cluster, scheduler
from cbrank.cli.learning import learn, running
from cbrank.cli.options import COLUMNS, READING, columns, columns_of, data, reading, together

if TYPE_CHECKING:
    from cbrank.training import Model


class _C(click.ParamType[float | str]):
    """A number above 0, or "auto"."""

    name = "C"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        if value == "auto":
            return "auto"
        return click.FloatRange(0, min_open=True).convert(value, param, ctx)


class _ClassWeight(click.ParamType[dict[int, float] | str]):
    """The weight of positive rows, or "balanced"."""

    name = "weight"

    def convert(self, value: Any, param: Any, ctx: Any) -> dict[int, float] | str:
        if value == "balanced":
            return "balanced"
        return {1: click.FloatRange(0, min_open=True).convert(value, param, ctx)}


def _one_of(*names: str) -> Any:
    return click.Choice(names)


# Those that are not given are left to the constructor; a test compares the defaults told here.
_LEARNER = ("C", "eta", "buffer_size", "policy", "covariance", "diagonal_update", "average",
            "forgetting", "class_weight")  # fmt: skip
_learner = together(
    click.option(
        "--C", "C", type=_C(), metavar="NUMBER|auto",
        help="How far one pair may move the weights; auto tries several at once and keeps the best.  [default: auto]",
    ),
    click.option(
        "--eta", type=click.FloatRange(0.5, 1, min_open=True, max_open=True),
        help="Confidence that a pair is ranked right.  [default: 0.7]",
    ),
    click.option(
        "--buffer-size", type=click.IntRange(1, 2**31 - 1),
        help="Rows kept of each class.  [default: 50]",
    ),
    click.option(
        "--policy", type=_one_of("fifo", "reservoir"),
        help="Keep the latest rows, or a sample of all.  [default: fifo]",
    ),
    click.option(
        "--covariance", type=_one_of("full", "diagonal"),
        help="Full takes features squared; diagonal suits many features.  [default: full]",
    ),
    click.option(
        "--diagonal-update", type=_one_of("paper", "precision", "drop"),
        help="Form of the diagonal update.  [default: paper]",
    ),
    click.option(
        "--average/--no-average", default=None,
        help="Average the weights over the stream, or take the last.  [default: average]",
    ),
    click.option(
        "--forgetting", type=click.FloatRange(0, 1, max_open=True),
        help="Share of the evidence forgotten per row: 0.001 remembers about 1,000.  [default: 0.0]",
    ),
    click.option(
        "--class-weight", type=_ClassWeight(), metavar="NUMBER|balanced",
        help="Weight of positive rows against 1; balanced goes by the running counts.",
    ),
    click.option(
        "--scale", type=_one_of("standard", "unit", "maxabs", "none"),
        help="Scale rows by what was seen so far.  [default: none; unit if diagonal]",
    ),
    click.option("--seed", default=0, show_default=True, help="Source of the reservoir."),
)  # fmt: skip


@click.command(name="train")
@data
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="MODEL",
    help="Where the model goes.",
)
@_learner
@columns
@reading
@running
@scheduler
def command(output: Path, **options: Any) -> None:
    """Learn a ranker from files.

    DATA is svmlight text, CSV or Parquet; plain, .gz, .bz2, .xz or .zst; one file, several, a
    glob in quotes, or - for standard input. It is read in chunks, in the order given.

    \b
    cbrank train clicks.svm -o clicks.model
    cbrank train 'day*.csv.gz' --label clicked --positive yes -o clicks.model
    cbrank train big.svm.zst --covariance diagonal -o big.model \\
        --checkpoint big.ckpt --every 10m --resume
    cbrank train 'day*.svm.gz' --scheduler tcp://10.0.0.1:8786 -o days.model

    With --scheduler each file is a partition: workers, who must find it under the same path, learn
    from it apart, and what they learned is merged; --passes is how often.
    """  # noqa: D301
    from cbrank.training.run import WIDEST_FULL  # noqa: PLC0415

    told = (*_LEARNER, "scale", "seed", *COLUMNS, *READING, "passes")
    asked = {"command": "train"} | {name: _json(options[name]) for name in told}
    widest = WIDEST_FULL if options["covariance"] is None else None
    where = learn_on_cluster if options["scheduler"] else learn
    where(asked, output, options, lambda: _model(options), widest)


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
