"""``cbrank reproduce``: the paper's study."""

import sys
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank import methods
from cbrank.cli.options import scheduler, several
from cbrank.cli.progress import follow
from cbrank.study.settings import CUTS, SCALINGS, Cut, Scaling, Settings, quick

if TYPE_CHECKING:
    from cbrank.study.runner import StudyRun
    from cbrank.study.tasks import Task


def _dataset(name: str) -> str:
    from cbrank import datasets  # noqa: PLC0415

    return datasets.info(name).name


def _scaling(name: str) -> Scaling:
    for scaling in SCALINGS:
        if name == scaling:
            return scaling
    raise ValueError(f"unknown scaling {name!r}: there are {', '.join(SCALINGS)}.")


@click.command(name="reproduce")
@click.option("--runs", type=click.IntRange(1), help="Runs of each; else 10, and 5 for text.")
@several("--datasets", _dataset, "Data sets; else all that are on this machine.")
@several("--methods", methods.find, "Methods; else the paper's and batch logistic regression.")
@several("--scaling", _scaling, "unit, standard or none; else all three, and unit for text.")
@click.option("--rivals/--no-rivals", help=f"Also run {', '.join(methods.names('rival'))}.")
@click.option("--quick", is_flag=True, help="2 runs, a coarse grid, at most 1000 rows.")
@click.option(
    "--cut",
    type=click.Choice(CUTS),
    default="training",
    show_default=True,
    help="What is cut to 8000 rows (2000 of text): the training rows, or all before the split.",
)
@click.option("--seed", default=0, show_default=True, help="Master seed.")
@click.option("--jobs", type=click.IntRange(1), help="Processes; else one on each core.")
@click.option("--backend", default="loky", show_default=True, help="Where joblib runs the tasks.")
@scheduler
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("study"),
    show_default=True,
    help="Folder of the results; a study found there goes on.",
)
@click.option("--fresh", is_flag=True, help="Start anew: remove the results in the folder.")
@click.option("--times", is_flag=True, help="Then time the kernels; nothing else should run.")
@click.option("--report/--no-report", default=True, help="Write the page with tables and figures.")
def command(out: Path, seed: int, cut: Cut, fresh: bool, report: bool, **options: Any) -> None:
    """Run the paper's study and write its tables, figures and report.

    Finished tasks are kept in the folder, so the same command goes on where an interrupted one
    stopped. Numbers depend on the seed alone, not on jobs or interruptions.
    """
    same = "the same command" + (" without --fresh" if fresh else "")
    try:
        if report:
            _say_what_is_left_out()
        settings = quick(seed, cut) if options["quick"] else Settings(seed, cut=cut)
        study = _run(out, settings, fresh, options)
        _show(study, report)
    except KeyboardInterrupt:
        click.echo(f"\nInterrupted: {same} goes on from here.", err=True)
        sys.exit(130)
    except BrokenProcessPool as error:
        raise click.ClickException(
            f"a process ended suddenly, perhaps for want of memory: {same} goes on from here; "
            "give it fewer --jobs."
        ) from error


def _run(out: Path, settings: Settings, fresh: bool, options: dict[str, Any]) -> "StudyRun":
    from cbrank.study.runner import StudyRun  # noqa: PLC0415
    from cbrank.study.tasks import work  # noqa: PLC0415
    from cbrank.workers import Workers  # noqa: PLC0415

    tasks, workers = _plan(options), Workers(options["jobs"] or -1, options["backend"])
    amounts = {task: work(task, settings) for task in tasks}
    with _cluster(options["backend"], options["scheduler"]):
        study = StudyRun(out, settings, fresh)
        study.start(["cbrank", *sys.argv[1:]])
        remaining = study.results.remaining(tasks)
        click.echo(f"Tasks: {len(tasks)}, done before: {len(tasks) - len(remaining)}.", err=True)
        follow("Tasks", study.run(remaining, workers), {task: amounts[task] for task in remaining})
        curves = study.curves_of(tasks)
        lengths = {task: amounts[task] for task in curves}
        follow("Learning curves", study.draw(curves, workers), lengths)
        timed = study.timed(tasks) if options["times"] else []
        if timed:
            follow("Times", study.time(timed), {task: amounts[task] for task in timed})
    study.record.finish()
    return study


def _say_what_is_left_out() -> None:
    """Tell before the work, not after it, what the report will lack."""
    from cbrank.study.report import what_is_left_out  # noqa: PLC0415

    if sentence := what_is_left_out():
        click.echo(sentence, err=True)


def _cluster(backend: str, address: str | None) -> AbstractContextManager[Any]:
    """Connect to the cluster that joblib's backend is to use, if it is Dask."""
    if (backend == "dask") != (address is not None):
        raise click.UsageError("--backend dask and --scheduler ADDRESS need each other.")
    if address is None:
        return nullcontext()
    from cbrank.dask.cluster import connected  # noqa: PLC0415

    return connected(address)


def _plan(options: dict[str, Any]) -> list["Task"]:
    from cbrank.study.tasks import plan  # noqa: PLC0415

    groups: list[methods.Group] = ["paper", "ceiling"]
    if options["rivals"]:
        groups.append("rival")
    runs = options["runs"] or (2 if options["quick"] else None)
    chosen = options["methods"] or methods.names(*groups)
    tasks = plan(_here(options["datasets"]), chosen, options["scaling"], runs)
    if not tasks:
        raise click.UsageError("none of these methods is for any of these data sets.")
    return tasks


def _here(wanted: list[str]) -> list[str]:
    """Return the data sets that are on this machine; tell of the others."""
    from cbrank import datasets  # noqa: PLC0415

    wanted, here = wanted or datasets.names(), datasets.available()
    if absent := [name for name in wanted if name not in here]:
        click.echo(
            f"Left out, not on this machine: {', '.join(absent)}. Get them by "
            f"`cbrank datasets fetch {' '.join(absent)}`, or name a folder that has them in "
            "CBRANK_DATA.",
            err=True,
        )
    if not set(wanted) - set(absent):
        raise click.ClickException("none of the data sets is on this machine.")
    return [name for name in wanted if name in here]


def _show(study: "StudyRun", report: bool) -> None:
    from cbrank.study import report as reporting  # noqa: PLC0415

    if failures := study.results.failures():
        lines = [f"  {task}: {error}" for task, error in failures.items()]
        click.echo(
            "\n".join(["These tasks failed; the next run tries them again:", *lines]), err=True
        )
    page = reporting.write(study.folder) if report else None
    click.echo(reporting.summary(study.folder))
    if page:
        click.echo(f"Report: {page}")
    if failures:
        raise click.ClickException(f"{len(failures)} tasks failed.")
