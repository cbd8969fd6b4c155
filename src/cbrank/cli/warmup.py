"""``cbrank warmup``: compile everything now."""

import time
from collections.abc import Callable, Iterator

import click

from cbrank.cli.options import several
from cbrank.cli.progress import follow


def _step(name: str) -> str:
    from cbrank.warmup import steps  # noqa: PLC0415

    if name not in steps():
        raise ValueError(f"unknown step {name!r}: there are {', '.join(steps())}.")
    return name


@click.command(name="warmup")
@several("--only", _step, "Steps such as cbr, oam or reading; else all.")
def command(only: list[str]) -> None:
    """Compile everything now, so that later starts are fast.

    cbrank's learners and readers are compiled for this machine at their first use, which takes
    some seconds each time, and kept on disk. This does it at once, for example while an image is
    built. It writes nothing else.

    \b
    Examples:
      cbrank warmup
      cbrank warmup --only cbr,reading
      NUMBA_CACHE_DIR=/shared/cache cbrank warmup
    """  # noqa: D301
    import logging  # noqa: PLC0415

    from cbrank import warmup  # noqa: PLC0415

    logging.getLogger("cbrank").addFilter(lambda record: "compiling" not in record.getMessage())
    steps = {name: step for name, step in warmup.steps().items() if name in only or not only}
    begin = time.perf_counter()
    follow("Compiling", _done(steps), dict.fromkeys(steps, 1))
    seconds = time.perf_counter() - begin
    place = warmup.folder()
    kept = f"kept in {place}" if place else "not kept: set NUMBA_CACHE_DIR to a writable folder"
    click.echo(f"Compiled in {seconds:.1f} s, {kept}.")


def _done(steps: dict[str, Callable[[], None]]) -> Iterator[str]:
    for name, step in steps.items():
        step()
        yield name
