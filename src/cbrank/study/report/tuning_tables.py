"""What the study chose and what it cost: parameters, fits that diverged, and time by method."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log2
from statistics import fmean, median_low

from cbrank.datasets import registry
from cbrank.datasets.entry import Table as Kind
from cbrank.study.report.names import in_order, ordered_methods, plural, scaling_name
from cbrank.study.report.study import Study
from cbrank.tables import ABSENT, Cell, Row, Table, number

_LOWEST, _HIGHEST = -10, 10  # the paper's grid, as powers of two
_STEP, _HEIGHT = 4, 14  # pixels from bar to bar, and of the highest bar


def parameter_table(study: Study, kind: Kind, scaling: str) -> Table:
    """Show median and range as powers of two, with a strip of all runs.

    Parameters
    ----------
    study : Study
        The study.
    kind : {"benchmark", "high-dimensional"}
        The data sets.
    scaling : str
        How they were scaled.

    Returns
    -------
    Table
        Without rows if no run has a parameter.
    """
    chosen: dict[tuple[str, str], list[float]] = {}
    for result in study.chosen(kind, scaling):
        if isfinite(result.parameter) and result.parameter > 0:
            key = result.dataset, result.method
            chosen.setdefault(key, []).append(log2(result.parameter))
    methods = ordered_methods({method for _, method in chosen}, kind)
    rows = in_order({dataset for dataset, _ in chosen}, registry.names())
    return Table(
        key=f"parameters-{kind}-{scaling}",
        title=f"Parameter chosen, {kind}, {scaling_name(scaling)}",
        note="Median and, in brackets, range over runs of log2 of C (CBR, OAM, SCW, Batch LR) or "
        "of the step (the others).",
        corner="Data set",
        columns=tuple(methods),
        rows=tuple(
            Row(d, tuple(_parameter_cell(chosen.get((d, m), [])) for m in methods)) for d in rows
        ),
    )


def _parameter_cell(powers: Sequence[float]) -> Cell:
    if not powers:
        return Cell(text=ABSENT)
    middle, low, high = (_power(f(powers)) for f in (median_low, min, max))
    text = f"{middle} [{low}, {high}]" if low != high else middle
    return Cell(text=text, value=median_low(powers), picture=_strip(powers))


def _power(power: float) -> str:
    return f"{power:.3g}".replace("-", "−")  # noqa: RUF001


def _strip(powers: Sequence[float]) -> str:
    """Draw a bar for each power of two, as high as its share of the runs."""
    low, high = min(_LOWEST, *map(round, powers)), max(_HIGHEST, *map(round, powers))
    counts = Counter(round(power) for power in powers)
    bars = "".join(
        f'<rect x="{(power - low) * _STEP}" y="{_HEIGHT - tall:g}" width="3" height="{tall:g}"/>'
        for power, count in sorted(counts.items())
        for tall in [round(2 + (_HEIGHT - 2) * count / max(counts.values()), 1)]
    )
    width = (high - low + 1) * _STEP
    label = f"{plural(len(powers), 'run')} between 2^{low} and 2^{high}"
    return (
        f'<svg class="strip" viewBox="0 0 {width} {_HEIGHT + 1}" width="{width}" '
        f'height="{_HEIGHT + 1}" role="img" aria-label="{label}">'
        f'<rect class="ground" y="{_HEIGHT}" width="{width}" height="1"/>{bars}</svg>'
    )


def diverged_table(study: Study) -> Table:
    """Show the mean number by method and scaling; without rows if no fit diverged."""
    scalings = study.scalings()
    methods = ordered_methods({result.method for result in study.results if result.diverged > 0})
    return Table(
        key="diverged",
        title="Fits that diverged while the parameter was tuned",
        note="Mean number in a run, over all data sets. Such a value of the parameter ranks last.",
        corner="Method",
        columns=tuple(scaling_name(scaling).capitalize() for scaling in scalings),
        rows=tuple(Row(m, tuple(_diverged_cell(study, m, s) for s in scalings)) for m in methods),
    )


def _diverged_cell(study: Study, method: str, scaling: str) -> Cell:
    counts = [
        result.diverged
        for result in study.results
        if (result.method, result.scaling) == (method, scaling) and result.diverged >= 0
    ]
    if not counts:
        return Cell(text=ABSENT)
    return Cell(text=f"{fmean(counts):.1f}", value=fmean(counts))


@dataclass(frozen=True)
class TimeSpent:
    """A method's runs, and the seconds they spent on tuning and on the final fit."""

    method: str
    runs: int
    tuning: float
    fitting: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.tuning + self.fitting


def time_spent(study: Study) -> list[TimeSpent]:
    """Add up the time of all runs, the longest first."""
    methods = {}
    for name in study.methods():
        runs = [result for result in study.results if result.method == name]
        tuning = sum(r.tune_seconds for r in runs if isfinite(r.tune_seconds))
        fitting = sum(r.fit_seconds for r in runs if isfinite(r.fit_seconds))
        methods[name] = TimeSpent(name, len(runs), tuning, fitting)
    return sorted(methods.values(), key=lambda time: (-time.total, time.method))


def time_table(times: list[TimeSpent]) -> Table:
    """Show the seconds."""
    whole = sum(time.total for time in times) or 1.0
    return Table(
        key="study-time",
        title="Time of the study by method",
        note="Seconds of computing, added up over all runs, data sets and scalings.",
        corner="Method",
        columns=("Runs", "Tuning", "Final fits", "Share"),
        rows=tuple(_time_row(time, whole) for time in times),
    )


def _time_row(time: TimeSpent, whole: float) -> Row:
    runs = Cell(text=f"{time.runs:,}", value=time.runs)
    share = Cell(text=f"{100 * time.total / whole:.1f} %", value=time.total)
    return Row(time.method, (runs, number(time.tuning, 1), number(time.fitting, 1), share))
