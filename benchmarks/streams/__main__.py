"""``make streams``, or ``python -m benchmarks.streams``: the options, and results as they come."""

from pathlib import Path
from typing import Any

import click

from benchmarks.comparison import Folder, Task, carry_out
from benchmarks.streams import learners, measuring, report
from cbrank.cli.options import several


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
        folder = report.folder(out)
        carry_out("Streams", folder, _wanted(only), _Measuring(folder), report, fresh)
    except (ImportError, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error


def _wanted(only: list[str]) -> list[Task]:
    """Return the methods on the streams that are chosen: all of either if none is named."""
    streams = [s for s in measuring.STREAMS if s.name in only]
    methods = [m for m in learners.METHODS if {m.name, m.group} & set(only)]
    return [
        Task(stream, method)
        for stream in streams or measuring.STREAMS
        for method in methods or learners.METHODS
    ]


class _Measuring:
    """Measures tasks, a stream after the other, so that each is read once."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.stream: Any = None

    def __call__(self, task: Task) -> None:
        stream, method = task
        if self.stream != stream:
            self.stream, (self.X, self.y) = stream, stream.load()
        facts = measuring.facts(self.X, self.y)
        measured = measuring.measure(method.make, self.X, self.y)
        self.folder.add(stream.name, facts, method.name, measured)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.streams")
