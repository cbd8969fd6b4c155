"""The progress bar of a client: partitions, rows a second and the time that remains."""

import sys
import time
from collections.abc import Sequence

import click
from distributed import Client, Future, as_completed


def can_be_shown() -> bool:
    """Say whether somebody looks: whether standard error is a terminal."""
    return sys.stderr.isatty()


def follow(client: Client, label: str, counts: Sequence[Future]) -> None:
    """Show partitions as they end, until all have.

    Parameters
    ----------
    client : Client
        Whose futures these are.
    label : str
        What is being done.
    counts : sequence of Future
        The rows learned from, one for each partition.
    """
    rows, began = 0, time.monotonic()
    bar = click.progressbar(
        length=len(counts),
        label=label,
        show_pos=True,
        file=sys.stderr,
        item_show_func=lambda speed: "" if speed is None else f"{speed:,} rows/s",
    )
    with bar:
        for _, count in as_completed(counts, loop=client.loop, with_results=True):
            rows += count
            bar.update(1, round(rows / max(time.monotonic() - began, 1e-9)))
