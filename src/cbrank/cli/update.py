"""``cbrank update``: go on learning from more files."""

import hashlib
from pathlib import Path
from typing import Any

import click

from cbrank.cli.files import refuse_overwriting
from cbrank.cli.learning import check_written, learn, order_of_rows, running
from cbrank.cli.options import DATA, LABEL, MODEL, READING, reading
from cbrank.cli.progress import reporter


@click.command(name="update")
@MODEL
@DATA
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="MODEL",
    help="Where the new model goes; else it takes the place of the old one when it is whole.",
)
@LABEL
@reading
@order_of_rows("in-order")
@running
def command(model: Path, output: Path | None, **options: Any) -> None:
    """Go on learning from more files.

    MODEL is a file of cbrank train or update, or was saved from Python. It knows what columns mean
    and how rows are scaled; DATA is as for cbrank train. Rows are learned in the order of the input,
    since those of an update are mostly newer than all before.

    \b
    cbrank update clicks.model today.csv
    cbrank update clicks.model today.csv -o tomorrow.model
    cbrank update saved_from_python.model today.csv --label clicked
    """  # noqa: D301
    from cbrank import modelfile  # noqa: PLC0415
    from cbrank.training import Model  # noqa: PLC0415
    from cbrank.training.model import WIDEST_FULL  # noqa: PLC0415

    arrays, facts = modelfile.read(model)
    old = Model.restore(model, arrays, facts)
    del arrays  # the model has what it needs of them
    options["shuffle"] = bool(options["shuffle"])
    names = (*READING, "passes", "shuffle", "seed")
    asked = {"command": "update"} | {name: options[name] for name in names}
    if options["label"] is not None:
        old.columns.read_label(options["label"])
        asked["label"] = options["label"]
    refuse_overwriting(("--checkpoint", options["checkpoint"]), model=model)
    check_written(output or model, options)
    with model.open("rb") as file:
        asked["model"] = hashlib.file_digest(file, "sha256").hexdigest()
    if output is None and options["resume"] and _is_done(facts, asked, options):
        with reporter(options["quiet"], options["as_json"]) as report:
            report.note(
                f"{model} has learned from these files already; without --resume it would again."
            )
        return
    widest = max(WIDEST_FULL, old.ranker.n_features_in_)
    learn(old, asked, output or model, options, widest)


def _is_done(facts: dict[str, Any], asked: dict[str, Any], options: dict[str, Any]) -> bool:
    """Say whether a model is the result of this very run, stopped after it had written it.

    If so, remove the checkpoint that it left.
    """
    from cbrank.streams import open_stream  # noqa: PLC0415
    from cbrank.training.checkpoint import last_run  # noqa: PLC0415
    from cbrank.training.file_lock import alone  # noqa: PLC0415

    files, checkpoint = open_stream(options["data"]).position.files, options["checkpoint"]
    left = facts.get("last_run")
    if not isinstance(left, dict):
        return False
    if left | {"began_with": asked["model"]} != last_run(asked, files):
        return False
    if checkpoint is None or any(mark.size is None for mark in files):
        return False
    with alone(checkpoint):
        if checkpoint.exists() and _began_with(checkpoint) != left.get("began_with"):
            return False  # it learns from the same files once more, or is another's
        checkpoint.unlink(missing_ok=True)
    return True


def _began_with(checkpoint: Path) -> Any:
    from cbrank import modelfile  # noqa: PLC0415

    match modelfile.read(checkpoint)[1]:
        case {"run": {"asked": {"model": digest}}}:
            return digest
    raise modelfile.ModelFileError(f"{checkpoint} is not the checkpoint of an update.")
