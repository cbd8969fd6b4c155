"""Options that several commands have."""

from collections.abc import Callable, Sequence
from typing import Any

import click

Command = Callable[..., None]


class _Names(click.ParamType[list[str]]):
    """Names with commas between them, each checked."""

    name = "names"

    def __init__(self, check: Callable[[str], str]) -> None:
        self.check = check

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        try:
            return [self.check(name.strip()) for name in value.split(",") if name.strip()]
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _flat(_ctx: click.Context, _param: click.Parameter, value: Sequence[list[str]]) -> list[str]:
    return list(dict.fromkeys(name for names in value for name in names))


def several(option: str, check: Callable[[str], str], text: str) -> Callable[[Command], Command]:
    """Make an option that takes names with commas between them, and may be repeated."""
    return click.option(
        option, type=_Names(check), multiple=True, callback=_flat, help=text, metavar="NAME,..."
    )
