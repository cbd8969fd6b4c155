"""The history of the ratios, ``history.csv``: a line for each ratio of each benchmark.

The file is kept under version control, so that a commit that made something slower shows.
"""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.results_folder import ResultsFolder
from benchmarks.targets import Target
from cbrank.atomic import atomic_write_text

COLUMNS = ("started", "version", "commit", "machine", "what", "measured")


class Run(NamedTuple):
    """The ratios of a benchmark.

    Attributes
    ----------
    started, version, commit, machine : str
        When, of what and on what it was measured.
    ratios : dict of str to float
        What was measured, by the texts of targets.
    """

    started: str
    version: str
    commit: str
    machine: str
    ratios: dict[str, float]


def read(path: Path) -> list[Run]:
    """Return the benchmarks in a folder's history, the oldest first."""
    file = path / "history.csv"
    if not file.exists():
        return []
    runs: dict[str, Run] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            new = Run(line["started"], line["version"], line["commit"], line["machine"], {})
            ratios = runs.setdefault(new.started, new).ratios
            ratios[line["what"]] = float(line["measured"])
    return sorted(runs.values(), key=lambda run: run.started)


def current(folder: ResultsFolder, targets: Sequence[Target]) -> Run:
    """Return what is in a benchmark's folder as a line of history."""
    facts, machine = folder.facts, folder.facts["machine"]
    return Run(
        facts["started"],
        facts["versions"]["cbrank"],
        facts.get("commit", ""),
        f"{machine['cpu']}, {machine['cpus']} cores",
        {aim.text: aim.measured for aim in targets if not math.isnan(aim.measured)},
    )


def record(folder: ResultsFolder, targets: Sequence[Target]) -> None:
    """Add what is in a benchmark's folder to its history, or bring up to date what is there of it."""
    new = current(folder, targets)
    runs = [run for run in read(folder.path) if run.started != new.started]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run in [*runs, new]:
        writer.writerows([*run[:4], what, f"{value:.4g}"] for what, value in run.ratios.items())
    atomic_write_text(folder.path / "history.csv", file.getvalue())


def before(folder: ResultsFolder, targets: Sequence[Target]) -> Run | None:
    """Return the last benchmark on the same kind of machine before that in the folder."""
    new = current(folder, targets)
    same = [run for run in read(folder.path) if run.machine == new.machine]
    return next((run for run in reversed(same) if run.started < new.started), None)


def worse(folder: ResultsFolder, targets: Sequence[Target]) -> list[str]:
    """Say what is worse than in the benchmark before on the same kind of machine, beyond noise."""
    last = before(folder, targets)
    if last is None:
        return []
    return [
        f"Worse than at {last.commit or last.started}: {aim.text}: {aim.measured:.3g}, was "
        f"{last.ratios[aim.text]:.3g} (noise: {aim.noise:.1%})."
        for aim in targets
        if aim.text in last.ratios and aim.worse(last.ratios[aim.text])
    ]
