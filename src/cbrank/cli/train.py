"""``cbrank train``: learn a ranker from files."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli.learning import check_written, learn, order_of_rows, running
from cbrank.cli.options import (
    COLUMNS,
    DATA,
    READING,
    TABLES,
    HeldOut,
    columns,
    columns_of,
    parameter_options,
    reading,
    scheduler,
)
from cbrank.parameters import LINEAR, OF_TABLES, SELECTION

if TYPE_CHECKING:
    from cbrank.training import Model

LEARNER = tuple(parameter.name for parameter in (*OF_TABLES, *LINEAR) if parameter.is_option)
OF_LINES = tuple(parameter.name for parameter in SELECTION)
SHAPES: dict[str, dict[str, Any]] = {
    "auto": {},
    "linear": {"pieces": 1, "trees": 0},
    "curves": {"trees": 0},
    "trees": {"pieces": 1},
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
    type=click.Choice([*SHAPES]),
    default="auto",
    show_default=True,
    help="Of effects in a table: straight lines, curves, trees beside straight lines, or trees beside curves, which is auto.",
)
@parameter_options((*OF_TABLES, *LINEAR))
@click.option(
    "--scale",
    type=click.Choice(["standard", "unit", "maxabs", "none"]),
    help="Scale rows of numbers by what was seen so far.  [default: none; unit if diagonal]",
)
@columns
@reading
@click.option(
    "--holdout",
    type=HeldOut(),
    metavar="[last-]SHARE",
    help="Never learn from this share of the rows, random ones (10%) or the last (last-10%), and rank "
    "them at the end.",
)
@order_of_rows("shuffle, and in-order for standard input")
@running
@scheduler
def command(output: Path, **options: Any) -> None:
    """Learn a ranker from files.

    DATA is a table (CSV, TSV, Parquet) or svmlight text; plain, .gz, .bz2, .xz or .zst; one file,
    several, a glob in quotes, or - for standard input. It is read in chunks, never whole.

    All rows of files are shuffled, through temporary files if they are many, because a file that is
    sorted by date, id or label teaches little in its order. --in-order learns them as they come,
    for streams in time; so does standard input.

    A table needs --label and no preparation: numbers, words, dates, free text and gaps are told from
    the first rows, and what was decided is printed. Effects become curves.

    \b
    cbrank train churn.csv --label Churn -o churn.model
    cbrank train churn.csv --label Churn --as 'zip,code*=category' --holdout 10% -o churn.model
    cbrank train 'day*.csv.gz' --label clicked --positive yes -o clicks.model
    cbrank train big.svm.zst --covariance diagonal -o big.model \\
        --checkpoint big.ckpt --every 10m --resume
    cbrank train big.svm.zst --covariance diagonal --max-features 1000 -o few.model
    cbrank train 'day*.svm.gz' --scheduler tcp://10.0.0.1:8786 -o days.model

    With --scale or --categorical a table is read as plain numbers and categories, as svmlight text
    is, and ranked by a line through them.

    With --scheduler each file is a partition: the workers of the cluster, which must find it under
    the same path, learn from their files separately, and what they learned is merged after each of
    the --passes. Rows are shuffled, and held out, within each file.
    """  # noqa: D301
    from cbrank.training.model import WIDEST_FULL  # noqa: PLC0415

    as_it_comes = options["label"] is not None and not (
        options["scale"] or options["categorical"] or options["format"] == "svmlight"
    )
    _refuse_idle(options, as_it_comes)
    options["holdout"], options["last"] = options["holdout"] or (None, False)
    check_written(output, options)
    files = _files(options["data"])
    if options["shuffle"] is None:
        options["shuffle"] = files is not None
    names = (*LEARNER, "shape", "scale", "seed", *COLUMNS, *TABLES, *READING)
    names = (*names, "passes", "holdout", "last", "strict", "shuffle")
    asked = {"command": "train"} | {name: _json(options[name]) for name in names}
    if options["column_file"]:
        asked["kinds"] = _json(_kinds_of_file(asked, options))
    model = _model(options, as_it_comes)
    if as_it_comes and files and not options["scheduler"]:
        _count_labels(model, files, options)
    widest = WIDEST_FULL if options["covariance"] is None else None
    if options["scheduler"]:
        from cbrank.cli.cluster import learn_on_cluster  # noqa: PLC0415

        learn_on_cluster(model, asked, output, options, widest)
    else:
        learn(model, asked, output, options, widest)


def _refuse_idle(options: dict[str, Any], as_it_comes: bool) -> None:
    """Refuse options that would do nothing."""
    if as_it_comes:
        given = [name for name in OF_LINES if options[name] is not None]
        if given:
            raise click.UsageError(
                f"--{given[0].replace('_', '-')}: for svmlight text, and for tables with --scale or "
                "--categorical."
            )
        return
    idle = [name for name in ("pieces", "trees", "max_categories") if options[name] is not None]
    idle += [name for name in ("kinds", "column_file", "na", "strict") if options[name]]
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


def _files(data: Sequence[str]) -> list[Path] | None:
    """Return the files to read; None if one of them is a pipe, such as standard input."""
    from cbrank.streams.sources import find_sources  # noqa: PLC0415

    sources = find_sources(data)
    files = [Path(str(source)) for source in sources]
    return files if "-" not in sources and all(file.is_file() for file in files) else None


def _kinds_of_file(asked: dict[str, Any], options: dict[str, Any]) -> Any:
    """Have the file of columns say what they are, before what --as says; return both."""
    from cbrank.cli.column_file import ColumnFile  # noqa: PLC0415
    from cbrank.streams import open_stream  # noqa: PLC0415
    from cbrank.training.checkpoint import checksum, last_run  # noqa: PLC0415

    marks = open_stream(options["data"]).position.files
    file = ColumnFile(options["column_file"], checksum(last_run(asked, marks)))
    options["column_file"] = file
    options["kinds"] = (*file.kinds(), *options["kinds"])
    return options["kinds"]


def _count_labels(model: "Model", files: list[Path], options: dict[str, Any]) -> None:
    """Learn the labels of files, so that the rarer one is known to be the positive one."""
    from cbrank.streams import TableColumns  # noqa: PLC0415
    from cbrank.training.survey import MOST_BYTES, count_labels  # noqa: PLC0415

    if sum(file.stat().st_size for file in files) > MOST_BYTES:
        return
    assert isinstance(model.columns, TableColumns)
    reading = {name: options[name] for name in READING}
    counts = count_labels(options["data"], model.columns, reading)
    if len(counts) > 1:
        model.columns.labels.learn(counts, str(files[0]))


def _json(value: Any) -> Any:
    """Return an option as JSON gives it back."""
    if isinstance(value, dict):
        return {str(name): item for name, item in value.items()}
    return [_json(item) for item in value] if isinstance(value, tuple | list) else value
