"""What comparisons of methods share: the data, the results folder, and results as they come.

A comparison has subjects (streams or data sets) and methods, each with a ``name``, a ``title`` and
``missing()``, which says why it cannot be had on this machine.
"""

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchmarks.processes import ProcessFailed
from benchmarks.results_folder import circumstances, for_json
from cbrank import datasets
from cbrank.atomic import atomic_write_text
from cbrank.cli.progress import follow
from cbrank.datasets.store import data_folder
from cbrank.provenance import now
from cbrank.tables import Table, markdown

# Data ---------------------------------------------------------------------------------------------


def table_path(name: str) -> Path:
    """Return where the table of a name lies, or should lie."""
    return (data_folder() or Path()) / "tables" / f"{name}.csv.xz"


def why_no_table(name: str) -> str:
    """Say which table is missing and where it should lie; nothing if it is there."""
    file = f"tables/{name}.csv.xz"
    if data_folder() is None:
        return f"{file} is missing: name a folder that has it in CBRANK_DATA."
    path = table_path(name)
    return "" if path.is_file() else (
        f"{path} is missing: CBRANK_DATA names a folder without {file}."
    )  # fmt: skip


def why_no_data_set(name: str) -> str:
    """Say how to get a data set that is not on this machine; nothing if it is there."""
    return "" if name in datasets.available() else (
        f"{name} is not on this machine: get it by `cbrank datasets fetch {name}`, or name a "
        "folder that has it in CBRANK_DATA."
    )  # fmt: skip


# The folder ---------------------------------------------------------------------------------------


class Folder:
    """The files of the results; what was measured is kept as it ends.

    Parameters
    ----------
    path : Path
        The folder; it need not exist yet.
    name : str
        The comparison's name: the results are in ``NAME.json``.
    subjects, methods : sequence
        What is compared on what, in the order of tables.

    Raises
    ------
    ValueError
        If ``NAME.json`` there is something else.
    """

    def __init__(
        self, path: Path, name: str, subjects: Sequence[Any], methods: Sequence[Any]
    ) -> None:
        self.path, self.name, self.methods = path, name, methods
        self._subjects, self._file = subjects, path / f"{name}.json"
        self.facts: dict[str, Any] = {name: {}, "results": {}}
        if self._file.exists():
            self.facts = self._read()

    def _read(self) -> dict[str, Any]:
        try:
            facts = dict(json.loads(self._file.read_text(encoding="utf-8")))
            if facts.keys() >= {self.name, "results"}:
                return facts
        except ValueError:
            pass
        raise ValueError(
            f"{self._file} has no results of {self.name}: remove it or give another --out."
        )

    def result(self, subject: str, method: str) -> dict[str, Any]:
        """Return what was measured of a method on a subject; nothing if it was not."""
        found = self.facts["results"].get(subject, {}).get(method, {})
        return {name: math.nan if value is None else value for name, value in found.items()}

    def has(self, subject: Any, method: Any) -> bool:
        """Say whether nothing remains to be measured of a method on a subject."""
        return bool(self.result(subject.name, method.name))

    def about(self, subject: str) -> dict[str, Any]:
        """Return the facts of a subject."""
        return dict(self.facts[self.name][subject])

    def forget(self, subject: str, method: str) -> None:
        """Forget a result."""
        self.facts["results"].get(subject, {}).pop(method, None)

    def add(self, subject: str, facts: dict[str, Any], method: str, measured: Any) -> None:
        """Keep the facts of a subject, and what was measured of a method on it."""
        self.facts[self.name][subject] = for_json(facts)
        rounded = {name: _rounded(value) for name, value in measured.items()}
        self.facts["results"].setdefault(subject, {})[method] = for_json(rounded)
        self.facts |= circumstances() | {"finished": now()}
        self.path.mkdir(parents=True, exist_ok=True)
        atomic_write_text(self._file, json.dumps(self.facts) + "\n")

    def measured(self, subject: str, *groups: str) -> list[tuple[Any, dict[str, Any]]]:
        """Return the methods that were measured on a subject, of groups if given, with the results."""
        return [
            (method, result)
            for method in self.methods
            if (not groups or method.group in groups)
            and (result := self.result(subject, method.name))
        ]

    def subjects(self) -> list[Any]:
        """Return the subjects that something was measured on."""
        return [s for s in self._subjects if self.facts["results"].get(s.name)]


def _rounded(value: Any) -> Any:
    """Round to six digits: more would change from run to run and say nothing."""
    return [_rounded(each) for each in value] if isinstance(value, list) else round(value, 6)


# The page -----------------------------------------------------------------------------------------


def start_page(folder: Folder) -> list[str]:
    """Make ``tables/`` and ``figures/``, and return the page's first sentence."""
    for name in ("tables", "figures"):
        (folder.path / name).mkdir(parents=True, exist_ok=True)
    facts, machine = folder.facts, folder.facts["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    head = (
        f"Measured by `python -m benchmarks.{folder.name}`, finished {facts['finished']}, on "
        f"{machine['cpu']} with {machine['cpus']} cores, one thread; {versions}."
    )
    return [head]


def write_table(folder: Folder, table: Table) -> str:
    """Write a table's file and return its text."""
    text = markdown(table)
    atomic_write_text(folder.path / "tables" / f"{table.key}.md", text)
    return text.strip()


def end_page(folder: Folder, parts: Iterable[str]) -> None:
    """Write ``report.md``."""
    atomic_write_text(folder.path / "report.md", "\n\n".join(filter(None, parts)) + "\n")


def write_csv(folder: Folder, head: Sequence[str], lines: Iterable[Sequence[Any]]) -> None:
    """Write ``results.csv``; numbers that are not known are empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(head)
    for line in lines:
        writer.writerow(["" if value != value else value for value in line])  # noqa: PLR0124
    atomic_write_text(folder.path / "results.csv", file.getvalue())


# The command --------------------------------------------------------------------------------------


class Task(NamedTuple):
    """A method on a subject."""

    subject: Any
    method: Any

    def __str__(self) -> str:
        return f"{self.subject.name}, {self.method.title}"


def carry_out(
    label: str,
    folder: Folder,
    tasks: Sequence[Task],
    measure: Callable[[Task], Any],
    report: Any,
    fresh: bool,
) -> None:
    """Measure what is not in the folder yet and show all that is.

    Parameters
    ----------
    label : str
        What is measured.
    folder : Folder
        Where results are kept.
    tasks : sequence of Task
        What is wanted; ``task.method.cost`` microseconds for each of ``task.subject.size`` rows.
    measure : callable
        Measures a task and adds the result to the folder.
    report : module
        Has ``write`` and ``summary``.
    fresh : bool
        Whether to forget the results of these tasks first.
    """
    try:
        if fresh:
            for task in tasks:
                folder.forget(task.subject.name, task.method.name)
        remaining = possible([task for task in tasks if not folder.has(*task)])
        amounts = {task: task.method.cost * task.subject.size / 1e6 for task in remaining}
        follow(label, _ended(remaining, measure), amounts)
        if not folder.subjects():
            raise click.UsageError("nothing could be measured here.")
        report.write(folder)
        click.echo(report.summary(folder))
        click.echo(f"Tables and figures: {folder.path / 'report.md'}")
    except KeyboardInterrupt:
        same = "the same command" + (" without --fresh" if fresh else "")
        click.echo(f"\nInterrupted: {same} goes on from here.", err=True)
        sys.exit(130)


def possible(tasks: list[Task]) -> list[Task]:
    """Leave out what is not on this machine, and say so."""
    subjects = {task.subject.name: task.subject for task in tasks}
    methods = {task.method.name: task.method for task in tasks}
    no_subject = {name: subject.missing() for name, subject in subjects.items()}
    no_method = {name: method.missing() for name, method in methods.items()}
    for name, reason in no_subject.items():
        if reason:
            click.echo(f"Left out: {name}. {reason}", err=True)
    for name, reason in no_method.items():
        if reason:
            click.echo(f"Left out: {methods[name].title}, {reason}.", err=True)
    if find_spec("matplotlib") is None:
        click.echo("There will be no figures: pip install matplotlib.", err=True)
    return [t for t in tasks if not no_subject[t.subject.name] and not no_method[t.method.name]]


def _ended(tasks: list[Task], measure: Callable[[Task], Any]) -> Iterator[Task]:
    for task in tasks:
        try:
            measure(task)
        except ProcessFailed as reason:
            click.echo(f"\nFailed: {task}: {reason}.", err=True)
        yield task
