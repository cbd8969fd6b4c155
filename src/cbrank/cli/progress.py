"""Progress on standard error."""

import sys
from collections.abc import Iterable, Mapping
from typing import TypeVar

import click

Task = TypeVar("Task")


def follow(label: str, done: Iterable[Task], amounts: Mapping[Task, float]) -> None:
    """Show tasks as they end, with the time that remains.

    Parameters
    ----------
    label : str
        What they are.
    done : iterable
        Yields each task as it ends.
    amounts : mapping of task to number
        How much work each is.
    """
    bar = click.progressbar(
        length=max(1, round(sum(amounts.values()))),
        label=label,
        file=sys.stderr,
        item_show_func=lambda task: str(task or ""),
    )
    with bar:
        for task in done:
            bar.update(round(amounts[task]), task)
