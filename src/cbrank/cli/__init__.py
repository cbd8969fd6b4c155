"""The command line: one module for each command, imported when it is called."""

import gc
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click

from cbrank.cli.errors import in_one_sentence

COMMANDS = {
    "train": "Learn a ranker from files.",
    "update": "Go on learning from more files.",
    "score": "Write the score of each row.",
    "serve": "Serve a model: score rows, and go on learning from their labels.",
    "evaluate": "Measure how well a model ranks labelled rows.",
    "inspect": "Show what a model has seen and its weights.",
    "export": "Write a model as an ONNX file.",
    "replay": "Make a model from the labelled rows that a service has kept.",
    "token": "Make a token for the service.",
    "warmup": "Compile everything now, so that later starts are fast.",
    "datasets": "List, describe and fetch the paper's data sets.",
    "reproduce": "Run the paper's study and write its tables, figures and report.",
}


class _Lazy(click.Group):
    """A group that imports a command only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module: Any = importlib.import_module(f"cbrank.cli.{cmd_name}")
        return module.command  # type: ignore[no-any-return]

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with in_one_sentence():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        _open_closed_streams()
        with in_one_sentence():
            return super().invoke(ctx)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _open_closed_streams() -> None:
    """Open the null device in the place of standard streams that are closed.

    Otherwise the next file opened would get the stream's descriptor, and errors would be written
    into it. Commands that need standard input or output find out themselves that it is closed.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cbrank")
def main() -> None:
    """Learn to rank from imbalanced streams."""
    # Imports make many objects and hardly any garbage: looking for it would delay the start.
    gc.set_threshold(100_000)
