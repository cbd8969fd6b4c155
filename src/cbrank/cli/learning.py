"""What ``cbrank train`` and ``cbrank update`` share: options, checkpoints, and the run itself."""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

from cbrank.cli.errors import in_flags
from cbrank.cli.files import check_outputs, refuse_overwriting
from cbrank.cli.options import QUIET, READING, Decorator, ParamType, together
from cbrank.cli.progress import Reporter, reporter
from cbrank.cli.results import ages, held_out, result, too_good

if TYPE_CHECKING:
    from cbrank.cli.column_file import ColumnFile
    from cbrank.features import Table
    from cbrank.training import Checkpoint, Model, Progress, Run

_EVERY = re.compile(r"(\d+)\s*(s|m|h|)")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


class _Every(ParamType[dict[str, int]]):
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
        help="How often to read the data.",
    ),
    click.option(
        "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
        help="Source of what is random: the order of shuffled rows, those held out, a reservoir.",
    ),
    click.option(
        "--checkpoint", type=click.Path(dir_okay=False, path_type=Path),
        help="Keep what was learned so far in this file.",
    ),
    click.option(
        "--every", type=_Every(), metavar="ROWS|TIME",
        help="How often to write the checkpoint: 100000 for rows, or 60s, 10m, 2h.  [default: 60s]",
    ),
    click.option("--resume", is_flag=True, help="Go on from the checkpoint, if there is one."),
    click.option(
        "--strict", is_flag=True, help="A word in a column of numbers is an error, not a gap."
    ),
    QUIET,
    click.option("--json", "as_json", is_flag=True, help="For machines: an object on each line."),
)  # fmt: skip


def order_of_rows(default: str) -> Decorator:
    """Return the option of the order in which rows are learned; `default` describes the default."""
    return click.option(
        "--shuffle/--in-order",
        default=None,
        help=f"Learn all rows in random order, or in the order of the input.  [default: {default}]",
    )


def learn(
    model: "Model",
    asked: dict[str, Any],
    output: Path,
    options: dict[str, Any],
    widest: int | None,
) -> None:
    """Learn from files and write the model, from the first row or from a checkpoint.

    Parameters
    ----------
    model : Model
        What learns, unless a checkpoint takes its place.
    asked : dict
        What is asked for, as JSON: what the result depends on beside the data.
    output : path
        Where the model goes.
    options : dict
        The options of the command.
    widest : int or None
        The most features that a full covariance may have.
    """
    from cbrank.training import Run  # noqa: PLC0415
    from cbrank.training.checkpoint import last_run  # noqa: PLC0415

    checkpoint = _checkpoint(asked, options)
    with (
        reporter(options["quiet"], options["as_json"]) as report,
        Stops() as stops,
        checkpoint.held() if checkpoint else contextlib.nullcontext(),
    ):
        begun, progress = _taken_up(checkpoint, options["resume"], report) or (model, None)
        run = Run(
            begun,
            options["data"],
            progress,
            passes=options["passes"],
            shuffle=options["shuffle"],
            holdout=options.get("holdout"),
            last=options.get("last", False),
            strict=options["strict"],
            seed=options["seed"],
            widest=widest,
            checkpoint=checkpoint,
            **{name: options[name] for name in READING},
        )
        _carry_out(run, report, stops, options.get("column_file"))
        if not run.model.ranker.n_seen_.all():
            report.note("only one of the two labels was seen, so there is no ranking yet.")
        for sentence in [*run.misfits.sentences(), *too_good(run.model, run.progressive_auc()[1])]:
            report.note(sentence)
        remarks = run.remarks()
        for sentence in filter(None, remarks.values()):
            report.note(in_flags(sentence))
        run.finish(output, last_run=last_run(asked, run.files))
        if options.get("column_file"):  # a run that was resumed may not have written it yet
            options["column_file"].write(run.model)
        found = result(run, output) | {name: bool(said) for name, said in remarks.items()}
        if asked["command"] == "train" and not options["quiet"]:  # it takes seconds
            found |= ages(run.model, report)
        report.done(held_out(run) | found)


def _carry_out(
    run: "Run", report: Reporter, stops: "Stops", column_file: "ColumnFile | None"
) -> None:
    report.begin(run)
    stops.ask(run.stop)
    stream = None
    with contextlib.closing(iter(run)) as steps:
        for stream in steps:
            if run.first is not None:
                tell_columns(run.model, run.first, report, column_file)
                run.first = None
            report.chunk(stream)
            if stops.received is not None:
                break
    report.end()
    if stream is not None and stream.unlabelled:
        report.note(f"{_rows(stream.unlabelled)} no label, and nothing was learned from them.")
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


def _rows(count: int) -> str:
    return "1 row has" if count == 1 else f"{count:,} rows have"


def tell_columns(
    model: "Model", rows: "Table", report: Reporter, file: "ColumnFile | None"
) -> None:
    """Report what the columns of a table are taken for, and write it to a file to edit."""
    from cbrank.cli import column_file  # noqa: PLC0415
    from cbrank.streams.header import named  # noqa: PLC0415

    columns = column_file.taken(model, rows)
    report.columns(columns)
    if all(column.taken_as == "left out" for column in columns):
        report.note(
            "all columns are left out so far: there is nothing to rank by. Say what they are "
            "by --as, such as --as 'x*=category'."
        )
    if in_order := model.ranker.encoder_.in_order_:
        report.note(
            f"the rows come in the order of {named(in_order)}. What only tells when a row came is left "
            "out; if rows to come are of the same times, shuffle them by --shuffle."
        )
    if file is not None:
        file.write(model)


# Checkpoints --------------------------------------------------------------------------------------


def check_written(output: Path, options: dict[str, Any]) -> None:
    """Refuse a model, a checkpoint, its lock or a file of columns that would be written over."""
    from cbrank.training.file_lock import lock_file  # noqa: PLC0415

    written: list[tuple[str, Path | None]] = [("-o", output)]
    if checkpoint := options["checkpoint"]:
        written += [
            ("--checkpoint", checkpoint),
            ("--checkpoint", lock_file(checkpoint)),
        ]
    columns = options.get("column_file")
    refuse_overwriting(*written, ("--columns", columns), data=options["data"])
    check_outputs(*written, ("--columns", None if columns and columns.exists() else columns))


def _checkpoint(asked: dict[str, Any], options: dict[str, Any]) -> "Checkpoint | None":
    """Return the checkpoint that the options ask for."""
    from cbrank.training import Checkpoint, Every  # noqa: PLC0415

    path = options["checkpoint"]
    if path is None:
        for name in ("every", "resume"):
            if options[name]:
                raise click.UsageError(f"--{name} needs --checkpoint PATH.")
        return None
    return Checkpoint(path, asked, Every(**options["every"] or {"seconds": 60}))


def _taken_up(
    checkpoint: "Checkpoint | None", resume: bool, report: Reporter
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
        report.note(f"going on after {found[1].rows:,} rows, from {checkpoint.path}.")
    elif resume:
        report.note(f"there is no checkpoint {checkpoint.path}: starting from the beginning.")
    return found


# Signals ------------------------------------------------------------------------------------------

_STOPS = signal.SIGINT, signal.SIGTERM
_HEARD = b"\nStopping after the rows at hand; a second signal stops at once.\n"


class Stops:
    """Catch the first SIGINT or SIGTERM while something runs that can be asked to end soon.

    A second one ends the program at once.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}
        self._ask: Callable[[], None] = lambda: None

    def ask(self, ask: Callable[[], None]) -> None:
        """Call this when a signal comes, or now if one has come."""
        self._ask = ask
        if self.received is not None:
            ask()

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._receive) for number in _STOPS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.received is not None:
            sys.exit(128 + number)
        self.received = number
        with contextlib.suppress(OSError):  # nobody may be there to read it
            os.write(2, _HEARD)
        self._ask()
