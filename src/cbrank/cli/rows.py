"""Rows read with a model's columns, and notes on them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli.options import READING

if TYPE_CHECKING:
    from cbrank.streams import Chunk
    from cbrank.training import Model

QUIET = click.option("--quiet", is_flag=True, help="Tell nothing but errors.")


def rows_for(
    model: "Model", data: Sequence[str], options: dict[str, Any], *, labels: bool
) -> Iterator["Chunk"]:
    """Read chunks of rows by a model's columns; tell on standard error what is odd about them."""
    from cbrank.streams import open_stream  # noqa: PLC0415

    how = {name: options[name] for name in READING}
    told: set[str] = set()
    with open_stream(data, columns=model.columns, learn=False, labels=labels, **how) as stream:
        for chunk in stream:
            yield chunk
            _tell([*stream.notes, *stream.complaints], told, options["quiet"])
        if not stream.position.rows:
            stream.notes.append("there are no rows.")
        _tell([*stream.notes, *stream.complaints], told, options["quiet"])


def _tell(sentences: list[str], told: set[str], quiet: bool) -> None:
    for sentence in sentences:
        if sentence not in told and not quiet:
            click.echo(f"Note: {sentence}", err=True)
        told.add(sentence)
