"""``make streams``, or ``python -m benchmarks.streams``: the options, and results as they come."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import click

from benchmarks.processes import ProcessFailed
from benchmarks.streams import learners, measuring, report
from benchmarks.streams.learners import Method
from benchmarks.streams.measuring import Stream
from benchmarks.streams.report import Folder
from cbrank.cli.options import several
from cbrank.cli.progress import follow


class _Task(NamedTuple):
    """A method on a stream."""

    stream: Stream
    method: Method

    def __str__(self) -> str:
        return f"{self.stream.name}, {self.method.title}"


def _check_name(name: str) -> str:
    known = _names()
    if name in known:
        return name
    raise ValueError(f"unknown stream, method or group {name!r}: there are {', '.join(known)}.")


def _names() -> list[str]:
    streams = [stream.name for stream in measuring.STREAMS]
    methods = [method.name for method in learners.METHODS]
    return list(dict.fromkeys([*streams, *methods, *[m.group for m in learners.METHODS]]))


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@several(
    "--only",
    _check_name,
    "Streams, methods or groups of methods (cbrank, peers, options); all if not given.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("streams"),
    show_default=True,
    help="Folder of the results; what is found there is not measured again.",
)
@click.option("--fresh", is_flag=True, help="Measure again what is found there, if chosen.")
def main(only: list[str], out: Path, fresh: bool) -> None:
    """Let rankers and classifiers predict streams in the order of time, each row before its label.

    Every method gives probabilities for rows, then learns from them, in a process of its own with
    one thread. Methods and streams that are not on this machine are named with the reason. Leave
    the machine alone meanwhile: it takes about ten minutes.
    """
    try:
        folder = Folder(out)
        tasks = _wanted(only)
        if fresh:
            for task in tasks:
                folder.forget(task.stream.name, task.method.name)
        remaining = _possible(
            [task for task in tasks if not folder.result(task.stream.name, task.method.name)]
        )
        amounts = {
            task: task.method.cost * (task.stream.most or 30_000) / 1e6 for task in remaining
        }
        follow("Streams", _measured(folder, remaining), amounts)
        if not folder.streams():
            raise click.UsageError("nothing could be measured here.")
        report.write(folder)
        click.echo(report.summary(folder))
        click.echo(f"Tables and figures: {folder.path / 'report.md'}")
    except KeyboardInterrupt:
        same = "the same command" + (" without --fresh" if fresh else "")
        click.echo(f"\nInterrupted: {same} goes on from here.", err=True)
        sys.exit(130)
    except (ImportError, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error


def _wanted(only: list[str]) -> list[_Task]:
    """Return the methods on the streams that are chosen: all of either if none is named."""
    streams = [s for s in measuring.STREAMS if s.name in only]
    methods = [m for m in learners.METHODS if {m.name, m.group} & set(only)]
    return [
        _Task(stream, method)
        for stream in streams or measuring.STREAMS
        for method in methods or learners.METHODS
    ]


def _possible(tasks: list[_Task]) -> list[_Task]:
    """Leave out what is not on this machine, and say so."""
    streams = {task.stream: task.stream.missing() for task in tasks}
    methods = {task.method.name: (task.method, task.method.missing()) for task in tasks}
    for stream, reason in streams.items():
        if reason:
            click.echo(f"Left out: {stream.name}. {reason}", err=True)
    for method, reason in methods.values():
        if reason:
            click.echo(f"Left out: {method.title}, {reason}.", err=True)
    if find_spec("matplotlib") is None:
        click.echo("There will be no figures: pip install matplotlib.", err=True)
    return [task for task in tasks if not streams[task.stream] and not methods[task.method.name][1]]


def _measured(folder: Folder, tasks: list[_Task]) -> Iterator[_Task]:
    loaded = None
    for task in tasks:
        if loaded is None or loaded[0] != task.stream:
            loaded = (task.stream, *task.stream.load())
        _, X, y = loaded
        facts = {
            "rows": len(y),
            "features": X.shape[1],
            "positives": int(y.sum()),
            "shares": measuring.shares(y),
        }
        try:
            measured = measuring.measure(task.method, X, y)
            folder.add(task.stream.name, facts, task.method.name, measured)
        except ProcessFailed as reason:
            click.echo(f"\nFailed: {task}: {reason}.", err=True)
        yield task


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.streams")
