"""Rows read with a model's columns, and notes on them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli.options import READING
from cbrank.cli.telling import Teller, Words

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
    with (
        Teller() if options["quiet"] else Words() as teller,
        open_stream(data, columns=model.columns, learn=False, labels=labels, **how) as stream,
    ):
        for chunk in stream:
            yield chunk
            teller.notes(stream)
        teller.notes(stream)
