"""What commands write: rows, facts for machines, pictures."""

import contextlib
import io
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import click

from cbrank.cli.options import Command

PICTURES = (".png", ".svg")


@contextlib.contextmanager
def open_output(path: Path | None) -> Iterator[IO[str]]:
    """Open standard output, or a file that is in place only when it is whole."""
    from cbrank.atomic import atomic_write  # noqa: PLC0415

    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    with atomic_write(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.detach()


def for_machines(facts: Any) -> str:
    """Return facts as JSON; numbers that JSON does not know, such as infinity, are null."""
    return json.dumps(_finite(facts), indent=2, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    """Return a number of NumPy as Python's, anything else in words."""
    return value.item() if hasattr(value, "item") else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _finite(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _picture(_ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and path.suffix not in PICTURES:
        raise click.BadParameter(f"{path} must end in {' or '.join(PICTURES)}.")
    return path


def picture(option: str, text: str) -> Callable[[Command], Command]:
    """Make an option that takes the path of a picture."""
    return click.option(
        option,
        type=click.Path(dir_okay=False, path_type=Path),
        callback=_picture,
        metavar="PATH",
        help=f"{text}, {' or '.join(PICTURES)}; needs cbrank[report].",
    )


AS_JSON = click.option("--json", "as_json", is_flag=True, help="For machines.")
MODEL = click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
