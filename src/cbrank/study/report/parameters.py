"""The parameter that cross-validation picked in each run."""

from collections import Counter
from collections.abc import Sequence
from math import isfinite, log2
from statistics import median_low

from cbrank import datasets
from cbrank.datasets.entry import Table as Kind
from cbrank.study.report.looks import ordered
from cbrank.study.report.results import Study, in_order
from cbrank.study.report.words import plural, scaling_words
from cbrank.tables import ABSENT, Cell, Row, Table

_LOWEST, _HIGHEST = -10, 10
_STEP, _HEIGHT = 4, 14


def parameter_table(study: Study, kind: Kind, scaling: str) -> Table:
    """Show median and range as powers of two, with a strip of all runs.

    Parameters
    ----------
    study : Study
        What was read.
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
    methods = ordered({method for _, method in chosen}, kind)
    rows = in_order({dataset for dataset, _ in chosen}, datasets.names())
    return Table(
        key=f"parameters-{kind}-{scaling}",
        title=f"Parameter chosen, {kind}, {scaling_words(scaling)}",
        note="Median and, in brackets, range over runs of log2 of C (CBR, OAM, SCW, Batch LR) or "
        "of the step (the others).",
        corner="Data set",
        columns=tuple(methods),
        rows=tuple(Row(d, tuple(_cell(chosen.get((d, m), [])) for m in methods)) for d in rows),
    )


def _cell(powers: Sequence[float]) -> Cell:
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
