"""``cbrank warmup``: compile everything now."""

import time

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
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
def command(only: list[str], jobs: int) -> None:
    """Compile everything now, so that later starts are fast.

    cbrank's learners and readers are compiled for this machine at their first use, which takes
    up to half a minute each, and kept on disk. This does it at once, for example while an image is
    built. It writes nothing else.

    \b
    Examples:
      cbrank warmup
      cbrank warmup --jobs 2
      cbrank warmup --only cbr,reading
      NUMBA_CACHE_DIR=/shared/cache cbrank warmup
    """  # noqa: D301
    from cbrank import warmup  # noqa: PLC0415

    steps = [name for name in warmup.steps() if name in only or not only]
    begin = time.perf_counter()
    follow("Compiling", warmup.compile_all(steps, jobs), dict.fromkeys(steps, 1))
    seconds = time.perf_counter() - begin
    place = warmup.folder()
    kept = f"kept in {place}" if place else "not kept: set NUMBA_CACHE_DIR to a writable folder"
    click.echo(f"Compiled in {seconds:.1f} s, {kept}.")
