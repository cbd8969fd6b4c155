"""Where the study's time went, by method."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from cbrank.methods import Look
from cbrank.plotting import WIDTH, Picture, headed, picture
from cbrank.study.report.results import Study
from cbrank.tables import Cell, Row, Table, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Spent:
    """A method's runs, and the seconds they spent on tuning and on the final fit."""

    method: str
    runs: int
    tuning: float
    fitting: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.tuning + self.fitting


def spent(study: Study) -> list[Spent]:
    """Add up the time of all runs, the longest first."""
    methods = {}
    for name in study.methods():
        runs = [result for result in study.results if result.method == name]
        tuning = sum(r.tune_seconds for r in runs if isfinite(r.tune_seconds))
        fitting = sum(r.fit_seconds for r in runs if isfinite(r.fit_seconds))
        methods[name] = Spent(name, len(runs), tuning, fitting)
    return sorted(methods.values(), key=lambda spent: (-spent.total, spent.method))


def time_table(times: list[Spent]) -> Table:
    """Show the seconds."""
    whole = sum(time.total for time in times) or 1.0
    return Table(
        key="study-time",
        title="Time of the study by method",
        note="Seconds of computing, added up over all runs, data sets and scalings.",
        corner="Method",
        columns=("Runs", "Tuning", "Final fits", "Share"),
        rows=tuple(_row(time, whole) for time in times),
    )


def _row(time: Spent, whole: float) -> Row:
    runs = Cell(text=f"{time.runs:,}", value=time.runs)
    share = Cell(text=f"{100 * time.total / whole:.1f} %", value=time.total)
    return Row(time.method, (runs, number(time.tuning, 1), number(time.fitting, 1), share))


def time_picture(times: list[Spent], looks: Mapping[str, Look], folder: Path) -> Picture:
    """Draw a bar for each method: tuning pale, the final fits full."""
    title = "Time of the study by method"

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for place, time in enumerate(times):
            colour = looks[time.method].colour
            axes.barh(place, time.tuning, color=colour, alpha=0.55)
            axes.barh(place, time.fitting, left=time.tuning, color=colour)
        headed(figure, title)
        axes.set(xlabel="seconds (pale: tuning, full: final fits)", ylabel="method")
        axes.set_yticks(range(len(times)), [time.method for time in times])
        axes.invert_yaxis()
        axes.grid(visible=True, axis="x")
        axes.tick_params(length=0)

    first = times[0]
    alt = f"{title}. {first.method} took most, {first.total:.0f} seconds."
    size = WIDTH, 1.1 + 0.26 * len(times)
    return picture(draw, key="study-time", alt=alt, size=size, looks=looks, folder=folder)
