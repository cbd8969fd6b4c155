"""``cbrank train``: learn a ranker from files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli import column_file
from cbrank.cli.learning import learn, mixing, running
from cbrank.cli.options import (
    COLUMNS,
    DATA,
    READING,
    TABLES,
    Share,
    columns,
    columns_of,
    parameter_options,
    reading,
    scheduler,
)
from cbrank.cli.progress import reporter
from cbrank.parameters import CBR, ENCODING

if TYPE_CHECKING:
    from cbrank.training import Model

LEARNER = tuple(parameter.name for parameter in (*ENCODING, *CBR) if parameter.is_option)
SHAPES: dict[str, dict[str, Any]] = {
    "auto": {},
    "linear": {"pieces": 1, "crosses": 0},
    "curves": {"crosses": 0},
    "crosses": {},
}
_FLAGS = {"kinds": "--as", "column_file": "--columns"}


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
@click.option(
    "--shape",
    type=click.Choice(["auto", "linear", "curves", "crosses"]),
    default="auto",
    show_default=True,
    help="Of effects in a table: lines, curves, or curves and crosses of columns, which is auto.",
)
@parameter_options((*ENCODING, *CBR))
@click.option(
    "--scale",
    type=click.Choice(["standard", "unit", "maxabs", "none"]),
    help="Scale rows of numbers by what was seen so far.  [default: none; unit if diagonal]",
)
@columns
@reading
@click.option(
    "--holdout",
    type=Share(),
    metavar="SHARE",
    help="Never learn from this share of the rows, such as 10%, and rank them at the end.",
)
@running
@scheduler
def command(output: Path, **options: Any) -> None:
    """Learn a ranker from files.

    DATA is a table (CSV, TSV, Parquet) or svmlight text; plain, .gz, .bz2, .xz or .zst; one file,
    several, a glob in quotes, or - for standard input. It is read in chunks, in the order given.

    A table needs --label and no preparation: numbers, words, dates, free text and gaps are told from
    the first rows, and what was decided is printed. Effects become curves, and pairs of columns are
    crossed. Rows that are sorted by label are mixed first.

    \b
    cbrank train churn.csv --label Churn -o churn.model
    cbrank train churn.csv --label Churn --as 'zip,code*=category' --holdout 10% -o churn.model
    cbrank train 'day*.csv.gz' --label clicked --positive yes -o clicks.model
    cbrank train big.svm.zst --covariance diagonal -o big.model \\
        --checkpoint big.ckpt --every 10m --resume
    cbrank train 'day*.svm.gz' --scheduler tcp://10.0.0.1:8786 -o days.model

    With --scale or --categorical a table is read as plain numbers and categories, as svmlight text
    is, and ranked by a line through them.

    With --scheduler each file is a partition: the workers of the cluster, which must find it under
    the same path, learn from their files separately, and what they learned is merged after each of
    the --passes. Rows are mixed, and held out, within each file.
    """  # noqa: D301
    from cbrank.training.model import WIDEST_FULL  # noqa: PLC0415

    as_it_comes = options["label"] is not None and not (
        options["scale"] or options["categorical"] or options["format"] == "svmlight"
    )
    _refuse_idle(options, as_it_comes)
    if options["holdout"] is not None:
        options["holdout"] = float(options["holdout"])
        if options["holdout"] >= 1.0:
            raise click.UsageError("--holdout leaves no row to learn from: say 10%.")
    kept_in = options["column_file"]
    if kept_in and kept_in.exists():
        options["kinds"] = (*column_file.read(kept_in), *options["kinds"])
    model = _model(options, as_it_comes)
    if as_it_comes and not options["scheduler"]:
        _survey(model, options)
    names = (*LEARNER, "shape", "scale", "seed", *COLUMNS, *TABLES, *READING)
    names = (*names, "passes", "holdout", "strict")
    asked = {"command": "train"} | {name: _json(options[name]) for name in names} | mixing(options)
    widest = WIDEST_FULL if options["covariance"] is None else None
    if options["scheduler"]:
        from cbrank.cli.cluster import learn_on_cluster  # noqa: PLC0415

        learn_on_cluster(model, asked, output, options, widest)
    else:
        learn(model, asked, output, options, widest)


def _refuse_idle(options: dict[str, Any], as_it_comes: bool) -> None:
    """Refuse options that would do nothing."""
    if as_it_comes:
        return
    idle = [name for name in ("pieces", "max_categories", "crosses") if options[name] is not None]
    idle += [name for name in ("kinds", "column_file", "na", "strict") if options[name]]
    idle += ["shape"] if options["shape"] in ("curves", "crosses") else []
    given = [_FLAGS.get(name, f"--{name.replace('_', '-')}") for name in idle]
    if given:
        raise click.UsageError(
            f"{', '.join(given)}: for tables as they come, which need --label, and neither --scale "
            "nor --categorical."
        )


def _model(options: dict[str, Any], as_it_comes: bool) -> "Model":
    from cbrank.rankers import AdditiveRanker, CBRanker  # noqa: PLC0415
    from cbrank.streams import StreamScaler  # noqa: PLC0415
    from cbrank.training import Model  # noqa: PLC0415

    given = {name: options[name] for name in LEARNER if options[name] is not None}
    columns = columns_of(options, as_it_comes=as_it_comes)
    if as_it_comes:
        shaped = SHAPES[options["shape"]] | given
        return Model(AdditiveRanker(**shaped, random_state=options["seed"]), None, columns)
    ranker = CBRanker(**given, random_state=options["seed"])
    kind = options["scale"] or ("unit" if ranker.covariance == "diagonal" else "none")
    scaler = None if kind == "none" else StreamScaler(kind)
    return Model(ranker, scaler, columns)


def _survey(model: "Model", options: dict[str, Any]) -> None:
    """Learn the labels of files, and have rows mixed that are sorted by them."""
    from cbrank.streams import TableColumns  # noqa: PLC0415
    from cbrank.streams.sources import find_sources  # noqa: PLC0415
    from cbrank.training.survey import MOST_BYTES, survey  # noqa: PLC0415

    files = [Path(str(source)) for source in find_sources(options["data"])]
    if not all(file.is_file() for file in files):
        return
    if sum(file.stat().st_size for file in files) > MOST_BYTES:
        return
    assert isinstance(model.columns, TableColumns)
    reading = {name: options[name] for name in READING}
    found = survey(options["data"], model.columns, reading)
    if len(found.counts) > 1:
        model.columns.labels.learn(found.counts, str(files[0]))
    if found.sorted and options["shuffle"] is None:
        options["shuffle"] = "all"
        with reporter(options["quiet"], options["as_json"]) as report:
            report.note("rows are sorted by label, and mixed first (--shuffle all).")


def _json(value: Any) -> Any:
    """Return an option as JSON gives it back."""
    if isinstance(value, dict):
        return {str(name): item for name, item in value.items()}
    return [_json(item) for item in value] if isinstance(value, tuple | list) else value
