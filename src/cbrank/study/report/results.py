"""The study's files, read back: every run, the learning curves and what was noted about it."""

import csv
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cbrank import datasets
from cbrank.datasets.entry import Table

SCALINGS = ("unit", "standard", "none")
TABLES: tuple[Table, ...] = ("benchmark", "high-dimensional")


@dataclass(frozen=True, kw_only=True)
class Result:
    """One run of one method on one data set: a line of ``results.csv``.

    Numbers that are missing there are NaN here.
    """

    table: str
    dataset: str
    scaling: str
    method: str
    status: str
    error: str
    run: float
    auc: float
    accuracy: float
    accuracy_held: float
    balanced_held: float
    parameter: float
    tune_seconds: float
    fit_seconds: float
    train_rows: float
    test_rows: float
    features: float
    positives: float
    sample: float
    diverged: float


@dataclass(frozen=True, kw_only=True)
class Point:
    """A point of a learning curve: the AUC of so many rows, each scored before it was learned from."""

    dataset: str
    scaling: str
    method: str
    rows: float
    auc: float


@dataclass(frozen=True, kw_only=True)
class Study:
    """All that a study left behind.

    Attributes
    ----------
    results : tuple of Result
        The runs that succeeded, in an order that does not depend on when they ended.
    failures : tuple of Result
        The others.
    curves : tuple of Point
        The learning curves; may be empty.
    facts : dict
        What ``study.json`` says; may be empty.
    """

    results: tuple[Result, ...]
    failures: tuple[Result, ...]
    curves: tuple[Point, ...]
    facts: dict[str, Any]

    def tables(self) -> list[Table]:
        """Name the kinds of data sets that have results, in the paper's order."""
        present = {result.table for result in self.results}
        return [table for table in TABLES if table in present]

    def scalings(self, table: Table) -> list[str]:
        """Name the scalings with results for these data sets, the paper's own first."""
        return in_order({r.scaling for r in self.results if r.table == table}, SCALINGS)

    def methods(self) -> set[str]:
        """Name all methods with a result or a curve."""
        return {r.method for r in self.results} | {point.method for point in self.curves}

    def chosen(self, table: Table, scaling: str) -> list[Result]:
        """Pick the results for these data sets with this scaling."""
        return [r for r in self.results if (r.table, r.scaling) == (table, scaling)]


def in_order(names: Iterable[str], order: Iterable[str]) -> list[str]:
    """Sort names as they stand in `order`, and those not in it behind, by the alphabet."""
    places = {name: place for place, name in enumerate(order)}
    return sorted(set(names), key=lambda name: (places.get(name, len(places)), name))


def read(folder: Path) -> Study:
    """Read a study's folder.

    Parameters
    ----------
    folder : Path
        Has ``results.csv``, and may have ``curves.csv`` and ``study.json``.

    Returns
    -------
    Study
        Its contents.

    Raises
    ------
    ValueError
        If ``results.csv`` is missing, or no run in it succeeded.
    """
    if not (folder / "results.csv").is_file():
        raise ValueError(f"there is no results.csv in {folder}: run the study first.")
    # Where a task was run again, its last line counts.
    tasks = {(r.dataset, r.scaling, r.method, r.run): r for r in _results(folder)}
    runs = sorted(tasks.values(), key=_place)
    study = Study(
        results=tuple(run for run in runs if run.status == "ok"),
        failures=tuple(run for run in runs if run.status == "failed"),
        curves=tuple(_points(folder / "curves.csv")),
        facts=_facts(folder / "study.json"),
    )
    if not study.tables():
        raise ValueError(f"no run in {folder / 'results.csv'} succeeded: nothing to report.")
    return study


def _results(folder: Path) -> Iterator[Result]:
    for line in _lines(folder / "results.csv"):
        if line.get("status") in {"ok", "failed"}:  # a line cut short by a crash has none
            yield Result(**_typed(Result, line))


def _points(path: Path) -> list[Point]:
    points = [Point(**_typed(Point, line)) for line in _lines(path)] if path.is_file() else []
    return sorted(points, key=lambda p: (p.scaling, p.dataset, p.method, p.rows))


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _typed(kind: type[Result] | type[Point], line: dict[str, str]) -> dict[str, Any]:
    return {
        field.name: _number(line.get(field.name)) if field.type is float else line[field.name]
        for field in fields(kind)
    }


def _number(text: str | None) -> float:
    if text in {"True", "False"}:
        return float(text == "True")
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan


def _facts(path: Path) -> dict[str, Any]:
    facts = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return facts if isinstance(facts, dict) else {}


def _place(result: Result) -> tuple[int, str, str, str, float]:
    names = datasets.names()
    known = names.index(result.dataset) if result.dataset in names else len(names)
    return known, result.dataset, result.scaling, result.method, result.run
