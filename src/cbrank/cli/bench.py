"""``cbrank bench``: speed and AUC beside what users would pick instead."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cbrank.cli.options import several
from cbrank.cli.progress import follow

if TYPE_CHECKING:
    from cbrank.bench.record import Record
    from cbrank.bench.steps import Step


def _measurement(name: str) -> str:
    from cbrank.bench.steps import find  # noqa: PLC0415

    return find(name)


@click.command(name="bench")
@several("--only", _measurement, "Workloads, groups of them or other measurements; else all.")
@click.option("--quick", is_flag=True, help="Some of it with fewer rows, in a few minutes.")
@click.option("--seed", default=0, show_default=True, help="What decides the rows.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("bench"),
    show_default=True,
    help="Folder of the results; a benchmark found there goes on.",
)
@click.option("--fresh", is_flag=True, help="Start anew: forget the results in the folder.")
def command(only: list[str], quick: bool, seed: int, out: Path, fresh: bool) -> None:
    """Measure speed and AUC beside scikit-learn, River, Vowpal Wabbit and LibAUC.

    Every peer learns in a process of its own, with one thread, from the same rows, chunk by
    chunk in turns. Peers come with pip install 'cbrank[bench]'; those that are missing are named
    with the reason. Leave the machine alone meanwhile: it takes about 25 minutes.

    Finished measurements are kept in the folder, so the same command goes on where an
    interrupted one stopped.
    """
    try:
        _show(_run(out, {"seed": seed, "quick": quick}, only, fresh))
    except KeyboardInterrupt:
        same = "the same command" + (" without --fresh" if fresh else "")
        click.echo(f"\nInterrupted: {same} goes on from here.", err=True)
        sys.exit(130)
    except (ImportError, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error


def _run(out: Path, settings: dict[str, int], only: list[str], fresh: bool) -> "Record":
    from cbrank.bench import steps  # noqa: PLC0415
    from cbrank.bench.record import Record  # noqa: PLC0415

    if absent := steps.absent(only):
        click.echo(
            f"Left out, not on this machine: {', '.join(absent)}. Get them by "
            f"`cbrank datasets fetch {' '.join(absent)}`, or name a folder that has them in "
            "CBRANK_DATA.",
            err=True,
        )
    planned = steps.plan(settings["seed"], bool(settings["quick"]), only)
    if not planned:
        raise click.UsageError("none of these measurements can be done here, or none is quick.")
    if fresh:
        (out / "bench.json").unlink(missing_ok=True)
    record = Record(out)
    record.start(settings, shlex.join(["cbrank", *sys.argv[1:]]))
    remaining = [step for step in planned if record.step(step.name) is None]
    done = len(planned) - len(remaining)
    click.echo(f"Measurements: {len(planned)}, done before: {done}.", err=True)
    follow("Measurements", _measured(record, remaining), {step: step.work for step in remaining})
    record.finish()
    return record


def _measured(record: "Record", steps: list["Step"]) -> Iterator["Step"]:
    from cbrank.bench.worker import Failed  # noqa: PLC0415

    for step in steps:
        try:
            record.add(step.name, step.run())
        except Failed as reason:
            record.add(step.name, {"failed": str(reason)})
        yield step


def _show(record: "Record") -> None:
    from cbrank.bench import report  # noqa: PLC0415

    click.echo(report.summary(record))
    report.write(record)
    click.echo(f"Tables and figures: {record.folder / 'report.md'}")
