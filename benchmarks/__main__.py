"""``make bench``, or ``python -m benchmarks``: the options, and measurements as they end."""

import shlex
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click

from benchmarks import history, measurements, report
from benchmarks.measurements import Measurement
from benchmarks.processes import ProcessFailed
from benchmarks.results_folder import Results, ResultsFolder
from benchmarks.targets import targets
from cbrank.cli.options import several
from cbrank.cli.progress import follow


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@several(
    "--only",
    measurements.check_name,
    "Workloads, groups of them or other measurements; all if not given.",
)
@click.option("--quick", is_flag=True, help="Some of it with fewer rows, in a few minutes.")
@click.option("--seed", default=0, show_default=True, help="Seed of the rows.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("bench"),
    show_default=True,
    help="Folder of the results; a benchmark found there goes on.",
)
@click.option("--fresh", is_flag=True, help="Start anew: forget the results in the folder.")
@click.option(
    "--compare",
    is_flag=True,
    help="Measure nothing: say which ratios in the folder are worse than those of the benchmark "
    "before on the same kind of machine, and exit with 1 if there are any.",
)
def main(only: list[str], quick: bool, seed: int, out: Path, fresh: bool, compare: bool) -> None:
    """Measure speed, memory and AUC beside scikit-learn, River, Vowpal Wabbit and LibAUC.

    Each peer learns in a process of its own, with one thread, from the same rows; peers alternate
    chunk by chunk. Those that are not installed are named with the reason. Leave the machine
    alone meanwhile: it takes about 30 minutes.

    Finished measurements are kept in the folder, so the same command goes on where an
    interrupted one stopped. Unless --quick is given, the ratios are added to history.csv there.
    """
    try:
        if compare:
            _compare(ResultsFolder(out))
            return
        folder = _run(out, {"seed": seed, "quick": quick}, only, fresh)
        if not quick:
            history.record(folder, targets(Results(folder)))
        click.echo(report.summary(folder))
        report.write(folder)
        click.echo(f"Tables and figures: {folder.path / 'report.md'}")
    except KeyboardInterrupt:
        same = "the same command" + (" without --fresh" if fresh else "")
        click.echo(f"\nInterrupted: {same} goes on from here.", err=True)
        sys.exit(130)
    except (ImportError, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error


def _run(out: Path, settings: dict[str, int], only: list[str], fresh: bool) -> ResultsFolder:
    _tell_what_is_missing(only)
    planned = measurements.plan(settings["seed"], bool(settings["quick"]), only)
    if not planned:
        raise click.UsageError("none of these measurements can be done here, or none is quick.")
    if fresh:
        (out / "bench.json").unlink(missing_ok=True)
    folder = ResultsFolder(out)
    folder.start(settings, shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]))
    remaining = [each for each in planned if folder.measured(each.name) is None]
    done = len(planned) - len(remaining)
    click.echo(f"Measurements: {len(planned)}, done before: {done}.", err=True)
    follow("Measurements", _measured(folder, remaining), {each: each.work for each in remaining})
    folder.finish()
    return folder


def _compare(folder: ResultsFolder) -> None:
    """Say what became worse, and exit with 1 if anything did."""
    if not folder.facts:
        raise ValueError(f"{folder.path} has no benchmark to compare: run one with --out first.")
    aims = targets(Results(folder))
    last = history.before(folder, aims)
    if last is None:
        click.echo("There is no benchmark before this one on the same kind of machine.")
        return
    found = history.worse(folder, aims)
    click.echo("\n".join(found) or f"Nothing is worse than at {last.commit or last.started}.")
    if found:
        sys.exit(1)


def _tell_what_is_missing(only: list[str]) -> None:
    if absent := measurements.missing_data(only):
        click.echo(
            f"Left out, not on this machine: {', '.join(absent)}. Get them by "
            f"`cbrank datasets fetch {' '.join(absent)}`, or name a folder that has them in "
            "CBRANK_DATA.",
            err=True,
        )
    if find_spec("matplotlib") is None:
        click.echo(
            "There will be no figures: they need matplotlib (pip install matplotlib).", err=True
        )


def _measured(folder: ResultsFolder, remaining: list[Measurement]) -> Iterator[Measurement]:
    for measurement in remaining:
        try:
            folder.add(measurement.name, measurement.run())
        except ProcessFailed as reason:
            folder.add(measurement.name, {"failed": str(reason)})
        yield measurement


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
