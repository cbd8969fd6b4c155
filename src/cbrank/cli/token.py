"""``cbrank token``: tokens for the service."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cbrank.cli.files import refuse_closed_output
from cbrank.cli.options import Duration

if TYPE_CHECKING:
    from cbrank.serving.tokens import Entry


@click.command(name="token")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--role",
    type=click.Choice(["score", "learn", "admin"]),
    help="What its holder may; each may what those before it may.",
)
@click.option("--name", metavar="NAME", help="Whose it is; else the role and a number.")
@click.option("--expires", type=Duration(), metavar="TIME", help="When it ends: 90d, 12h or 30m.")
@click.option("--remove", metavar="NAME", help="Remove the token of this name.")
def command(
    file: Path, role: str | None, name: str | None, expires: float | None, remove: str | None
) -> None:
    """Make a token for the service.

    With --role, it prints a new token, once: FILE has only a salted hash of it. Without, it lists
    the names, roles and ends of the tokens in FILE. A running server takes up a change of FILE when
    it gets SIGHUP.

    \b
    Examples:
      cbrank token tokens.jsonl --role score --name shop --expires 90d
      cbrank token tokens.jsonl
      cbrank token tokens.jsonl --remove shop
    """  # noqa: D301
    from cbrank.serving import tokens  # noqa: PLC0415

    refuse_closed_output()
    if role is None and (name is not None or expires is not None):
        raise click.UsageError("--name and --expires are for a new token: give --role as well.")
    if role is not None and remove is not None:
        raise click.UsageError("give --role for a new token or --remove, not both.")
    if role is not None:
        token, entry = tokens.make(file, role, name, expires)
        click.echo(token)
        _say(
            f"{entry.token.name} ({role}, ends: {_end(entry)}) is in {file}; the token is not shown again."
        )
    elif remove is not None:
        tokens.remove(file, remove)
        _say(f"{remove} is removed from {file}; a running server forgets it at SIGHUP.")
    else:
        _show(tokens.read(file))
    if note := tokens.exposure(file):
        _say(f"Note: {note}")


def _show(entries: "list[Entry]") -> None:
    from cbrank.serving.tokens import when  # noqa: PLC0415

    if not entries:
        _say("There are no tokens in it.")
        return
    rows = [("name", "role", "made", "ends")]
    rows += [(e.token.name, e.token.role, when(e.made), _end(e)) for e in entries]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


def _end(entry: "Entry") -> str:
    from cbrank.serving.tokens import when  # noqa: PLC0415

    expires = entry.token.expires
    if expires is None:
        return "never"
    return when(expires) + (" (has ended)" if expires <= time.time() else "")


def _say(sentence: str) -> None:
    click.echo(sentence, err=True)
