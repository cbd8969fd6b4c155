"""A study as the report sees it: its results, its learning curves and what was noted of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cbrank.datasets import registry
from cbrank.datasets.entry import Table as Kind
from cbrank.study.curves import CurvesFile, Key, Point
from cbrank.study.record import read_facts
from cbrank.study.report.names import KINDS, in_order
from cbrank.study.results import Result, read_lines
from cbrank.study.settings import SCALINGS
from cbrank.study.times_file import PLAIN, SCALING, Time, read_times


@dataclass(frozen=True, kw_only=True)
class Study:
    """All that a study left behind.

    Attributes
    ----------
    results : tuple of Result
        The runs that succeeded, in an order that does not depend on when they ended.
    failures : tuple of Result
        The others.
    curves : dict
        The points of the learning curves by data set, scaling and method; may be empty.
    facts : dict
        What ``study.json`` says; may be empty.
    times : tuple of Time
        The times of fits with the parameters of these results; may be empty.
    """

    results: tuple[Result, ...]
    failures: tuple[Result, ...]
    curves: dict[Key, list[Point]]
    facts: dict[str, Any]
    times: tuple[Time, ...] = ()

    def kinds(self) -> list[Kind]:
        """Name the kinds of data sets that have results, in the paper's order."""
        present = {result.table for result in self.results}
        return [kind for kind in KINDS if kind in present]

    def scalings(self, kind: Kind | None = None) -> list[str]:
        """Name the scalings with results, the paper's own first."""
        present = {r.scaling for r in self.results if kind in {None, r.table}}
        return in_order(present, SCALINGS)

    def cases(self) -> list[tuple[Kind, str]]:
        """Pair each kind of data sets with its scalings."""
        return [(kind, scaling) for kind in self.kinds() for scaling in self.scalings(kind)]

    def methods(self) -> set[str]:
        """Name all methods with a result, a curve or a time."""
        timed = {time.method for time in self.times}
        return {r.method for r in self.results} | {method for _, _, method in self.curves} | timed

    def chosen(self, kind: Kind, scaling: str) -> list[Result]:
        """Pick the results for this kind of data sets with this scaling."""
        return [r for r in self.results if (r.table, r.scaling) == (kind, scaling)]


def read_study(folder: Path) -> Study:
    """Read a study's folder.

    Parameters
    ----------
    folder : Path
        Has ``results.csv``, and may have ``curves.csv``, ``times.csv`` and ``study.json``.

    Returns
    -------
    Study
        Its contents.

    Raises
    ------
    ValueError
        If ``results.csv`` is missing or damaged, or no run in it succeeded.
    """
    path = folder / "results.csv"
    if not path.is_file():
        raise ValueError(f"there is no results.csv in {folder}: run the study first.")
    runs = sorted(map(Result.of, read_lines(path).values()), key=_place)
    curves = CurvesFile(folder / "curves.csv").points
    study = Study(
        results=tuple(run for run in runs if run.status == "ok"),
        failures=tuple(run for run in runs if run.status == "failed"),
        curves={key: sorted(curves[key]) for key in sorted(curves)},
        facts=read_facts(folder / "study.json"),
        times=tuple(_current(read_times(folder / "times.csv"), runs)),
    )
    if not study.kinds():
        raise ValueError(f"no run in {path} succeeded: nothing to report.")
    return study


def _current(times: list[Time], runs: list[Result]) -> list[Time]:
    """Leave out times of fits with other parameters than the results have now."""
    chosen = {(r.dataset, r.method, r.run): r.parameter for r in runs if r.scaling == SCALING}
    learners = {plain: method for method, plain in PLAIN.items()}
    return [
        time
        for time in times
        if chosen.get((time.dataset, learners.get(time.method, time.method), time.run))
        == time.parameter
    ]


def _place(result: Result) -> tuple[int, str, str, str, float]:
    names = registry.names()
    known = names.index(result.dataset) if result.dataset in names else len(names)
    return known, result.dataset, result.scaling, result.method, result.run
