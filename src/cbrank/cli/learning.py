"""What ``cbrank train`` and ``cbrank update`` share: options, checkpoints, and the run itself."""

import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli.files import is_same, refuse_overwriting
from cbrank.cli.options import READING, together
from cbrank.cli.signals import Stops
from cbrank.cli.telling import Teller, teller

if TYPE_CHECKING:
    from cbrank.streams import FileMark
    from cbrank.training import Checkpoint, Model, Progress, Run

_EVERY = re.compile(r"(\d+)\s*(s|m|h|)")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


class _Every(click.ParamType[dict[str, int]]):
    """Rows or time."""

    name = "every"

    def convert(self, value: Any, param: Any, ctx: Any) -> dict[str, int]:
        found = _EVERY.fullmatch(value)
        if not found or not int(found[1]):
            self.fail(
                f"{value!r} is neither a number of rows nor a time: say 100000 or 60s.", param, ctx
            )
        number, unit = int(found[1]), found[2]
        return {"seconds": number * _SECONDS[unit]} if unit else {"rows": number}


running = together(
    click.option(
        "--passes", type=click.IntRange(1), default=1, show_default=True,
        help="How often to read the data, in the same order.",
    ),
    click.option(
        "--checkpoint", type=click.Path(dir_okay=False, path_type=Path),
        help="Keep what was learned in this file meanwhile.",
    ),
    click.option(
        "--every", type=_Every(), metavar="ROWS|TIME",
        help="How often: 100000 for rows, or 60s, 10m, 2h.  [default: 60s]",
    ),
    click.option("--resume", is_flag=True, help="Go on from the checkpoint, if there is one."),
    click.option("--quiet", is_flag=True, help="Tell nothing but errors."),
    click.option("--json", "as_json", is_flag=True, help="For machines: an object on each line."),
)  # fmt: skip


def learn(
    asked: dict[str, Any],
    output: Path,
    options: dict[str, Any],
    begin: Callable[[], "Model"],
    widest: int | None,
) -> None:
    """Learn from files and write the model, from the first row or from a checkpoint.

    Parameters
    ----------
    asked : dict
        What is asked for, as JSON: what the model depends on beside the data.
    output : path
        Where the model goes.
    options : dict
        The options of the command.
    begin : callable
        What gives the model to begin with.
    widest : int or None
        The most features that a full covariance may have.
    """
    from cbrank.training import Run  # noqa: PLC0415

    refuse_overwriting(("-o", output), data=options["data"])
    checkpoint = _checkpoint(asked, output, options)
    refuse_unwritable(output)
    with (
        teller(options["quiet"], options["as_json"]) as tell,
        Stops() as stops,
        checkpoint.held() if checkpoint else nullcontext(),
    ):
        model, progress = _taken_up(checkpoint, options["resume"], tell) or (begin(), None)
        run = Run(
            model,
            options["data"],
            progress,
            passes=options["passes"],
            widest=widest,
            checkpoint=checkpoint,
            **{name: options[name] for name in READING},
        )
        _carry_out(run, tell, stops)
        if not run.model.ranker.n_seen_.all():
            tell.note("only one of the two labels was seen, so there is no ranking yet.")
        run.finish(output, last_run=last_run(asked, run.files))
        tell.done(_result(run, output))


def last_run(asked: dict[str, Any], files: Sequence["FileMark"]) -> dict[str, Any]:
    """Return what a model file says of the run that wrote it, however many files it read."""
    from cbrank.training.checkpoint import checksum, in_brief  # noqa: PLC0415

    told = {name: value for name, value in asked.items() if name != "model"}
    marks = checksum([[mark.size, mark.head] for mark in files])
    return {"asked": in_brief(told), "files": marks, "began_with": asked.get("model")}


def _carry_out(run: "Run", tell: Teller, stops: Stops) -> None:
    tell.begin(run)
    stops.ask(run.stop)
    with closing(iter(run)) as steps:
        for stream in steps:
            tell.chunk(stream)
            if stops.received is not None:
                break
    tell.end()
    if stops.received is None:
        return
    run.keep()
    rows = f"Stopped after {run.progress.rows:,} rows."
    if not run.model.ranker.__sklearn_is_fitted__():
        how = "Nothing is learned yet."
    elif run.checkpoint:
        how = f"They are in {run.checkpoint.path}: the same command with --resume goes on."
    else:
        how = "Nothing is kept, since there is no --checkpoint."
    click.echo(f"{rows} {how}", err=True)
    sys.exit(128 + stops.received)


def _result(run: "Run", output: Path) -> dict[str, Any]:
    ranker, progress = run.model.ranker, run.progress
    pairs, auc = run.progressive_auc()
    return {
        "rows": progress.rows,
        "positives": progress.positives,
        "skipped": run.skipped,
        "progressive_auc": round(auc, 6) if pairs else None,
        "features": int(ranker.n_features_in_),
        "C": getattr(ranker, "C_", getattr(ranker, "C", None)),
        "model": str(output),
    }


# Checkpoints --------------------------------------------------------------------------------------


def _checkpoint(
    asked: dict[str, Any], output: Path, options: dict[str, Any]
) -> "Checkpoint | None":
    """Return the checkpoint that the options ask for; refuse what makes no sense."""
    from cbrank.training import Checkpoint, Every  # noqa: PLC0415
    from cbrank.training.lock import lock_file  # noqa: PLC0415

    path = options["checkpoint"]
    if path is None:
        for name in ("every", "resume"):
            if options[name]:
                raise click.UsageError(f"--{name} needs --checkpoint PATH.")
        return None
    for file in (path, lock_file(path)):
        if is_same(file, output):
            raise click.UsageError("the checkpoint and the model must be two files.")
        refuse_overwriting(("--checkpoint", file), data=options["data"])
    refuse_unwritable(path)
    return Checkpoint(path, asked, Every(**options["every"] or {"seconds": 60}))


def _taken_up(
    checkpoint: "Checkpoint | None", resume: bool, tell: Teller
) -> "tuple[Model, Progress] | None":
    """Return the model of a checkpoint and how far it is, if it is to go on and is there."""
    if checkpoint is None:
        return None
    if checkpoint.path.exists() and not resume:
        raise click.ClickException(
            f"{checkpoint.path} is there, from a run that did not end: go on with it by --resume, "
            "or remove it."
        )
    found = checkpoint.open()
    if found:
        tell.note(f"going on after {found[1].rows:,} rows, from {checkpoint.path}.")
    elif resume:
        tell.note(f"there is no checkpoint {checkpoint.path}: starting from the beginning.")
    return found


def refuse_unwritable(path: Path) -> None:
    """Refuse a place where nothing can be written, before hours of learning."""
    folder = path.resolve().parent
    if path.is_dir():
        raise click.ClickException(f"{path} is a folder: give a file in it.")
    if not folder.is_dir():
        raise click.ClickException(f"{path} cannot be written: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise click.ClickException(f"{path} cannot be written: the folder {folder} is read-only.")
