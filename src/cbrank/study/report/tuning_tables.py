"""What the study chose and what it cost: parameters, edges, fits that diverged, and time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log2
from statistics import fmean, median_low

from cbrank.datasets import registry
from cbrank.datasets.entry import Table as Kind
from cbrank.study.report.names import in_order, ordered_methods, plural, scaling_name
from cbrank.study.report.study import Study
from cbrank.study.results import Result
from cbrank.tables import ABSENT, Cell, Row, Table, number

_PAPER = -10, 10  # the ends of the paper's grid, as powers of two
_WIDTH, _HEIGHT = 84, 14  # pixels of all bars, and of the highest bar


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
    every = [*_PAPER, *(round(power) for powers in chosen.values() for power in powers)]
    ends = min(every), max(every)
    return Table(
        key=f"parameters-{kind}-{scaling}",
        title=f"Parameter chosen, {kind}, {scaling_name(scaling)}",
        note="Median and, in brackets, range over runs of log2 of C (CBR, OAM, SCW, Batch LR) or "
        "of the step (the others).",
        corner="Data set",
        columns=tuple(methods),
        rows=tuple(
            Row(d, tuple(_parameter_cell(chosen.get((d, m), []), ends) for m in methods))
            for d in rows
        ),
    )


def _parameter_cell(powers: Sequence[float], ends: tuple[int, int]) -> Cell:
    if not powers:
        return Cell(text=ABSENT)
    middle, low, high = (_power(f(powers)) for f in (median_low, min, max))
    text = f"{middle} [{low}, {high}]" if low != high else middle
    return Cell(text=text, value=median_low(powers), picture=_strip(powers, ends))


def _power(power: float) -> str:
    return f"{power:.3g}".replace("-", "−")  # noqa: RUF001


def _strip(powers: Sequence[float], ends: tuple[int, int]) -> str:
    """Draw a bar for each power of two, as high as its share of the runs."""
    low, high = ends
    step = _WIDTH / (high - low + 1)
    counts = Counter(round(power) for power in powers)
    bars = "".join(
        f'<rect x="{(power - low) * step:g}" y="{_HEIGHT - tall:g}" width="{0.75 * step:g}" '
        f'height="{tall:g}"/>'
        for power, count in sorted(counts.items())
        for tall in [round(2 + (_HEIGHT - 2) * count / max(counts.values()), 1)]
    )
    label = f"{plural(len(powers), 'run')} between 2^{low} and 2^{high}"
    return (
        f'<svg class="strip" viewBox="0 0 {_WIDTH} {_HEIGHT + 1}" width="{_WIDTH}" '
        f'height="{_HEIGHT + 1}" role="img" aria-label="{label}">'
        f'<rect class="ground" y="{_HEIGHT}" width="{_WIDTH}" height="1"/>{bars}</svg>'
    )


def edge_table(study: Study) -> Table:
    """Show how many choices lie at an end of what was tried; without rows if none is known."""
    scalings = study.scalings()
    known = [result for result in study.results if isfinite(result.lowest) and result.parameter > 0]
    methods = ordered_methods({result.method for result in known})
    return Table(
        key="edges",
        title="Choices at an end of the grid",
        note="Runs whose chosen parameter is the lowest or the highest that was tried. With rows "
        "of unit length the grid is the paper's; otherwise more was tried until the best value had "
        "neighbours, up to a bound. Batch LR has standardised columns on benchmark data sets.",
        corner="Method",
        columns=tuple(scaling_name(scaling).capitalize() for scaling in scalings),
        rows=tuple(Row(m, tuple(_edge_cell(known, m, s) for s in scalings)) for m in methods),
    )


def _edge_cell(known: Sequence[Result], method: str, scaling: str) -> Cell:
    own = [result for result in known if (result.method, result.scaling) == (method, scaling)]
    if not own:
        return Cell(text=ABSENT)
    at_edge = sum(log2(r.parameter) in {r.lowest, r.highest} for r in own)
    share = at_edge / len(own)
    return Cell(text=f"{at_edge} of {len(own)}, {100 * share:.1f} %", value=share)


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
