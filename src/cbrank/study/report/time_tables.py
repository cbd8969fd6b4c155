"""The times of kernels as tables."""

from math import isfinite, nan
from statistics import fmean, geometric_mean

from cbrank.datasets import registry
from cbrank.datasets.entry import Table as Kind
from cbrank.study.report.names import in_order, marked, ordered_methods, sample_note
from cbrank.study.report.study import Study
from cbrank.tables import Cell, Row, Table, fixed, number

MEASURED = (
    "One call of a method's compiled kernel for all training rows, in one thread, with the chosen "
    "parameter: no checks of input, no probabilities, no threshold, no tuning. In all kernels alike, each "
    "row is also scored before it is learned from, and the call itself takes time, which counts most for "
    "the fastest methods and the smallest data sets. The plain loops "
    "compute CBR_FIFO and CBR-diag_FIFO pair by pair as the paper writes them, compiled alike, without "
    "what the kernels skip or do for several pairs at once: beside them, one can tell the algorithm "
    "from its optimisation. The paper used MATLAB on another machine and shows times as pictures "
    "only: the order can be compared, not the milliseconds."
)


def mean_times(study: Study, kind: Kind) -> dict[tuple[str, str], float]:
    """Average the seconds of a fit over runs, by data set and method.

    Parameters
    ----------
    study : Study
        The study.
    kind : {"benchmark", "high-dimensional"}
        The data sets.

    Returns
    -------
    dict
        Empty if no times were taken.
    """
    times: dict[tuple[str, str], list[float]] = {}
    for time in study.times:
        if time.table == kind:
            times.setdefault((time.dataset, time.method), []).append(time.seconds)
    return {key: fmean(seconds) for key, seconds in times.items()}


def time_table(study: Study, kind: Kind) -> Table:
    """Show the milliseconds of a fit.

    Parameters
    ----------
    study : Study
        The study.
    kind : {"benchmark", "high-dimensional"}
        The data sets.

    Returns
    -------
    Table
        Without rows if no times were taken.
    """
    times = mean_times(study, kind)
    sets = in_order({dataset for dataset, _ in times}, registry.names())
    methods = ordered_methods({method for _, method in times}, kind)
    samples = {r.dataset for r in study.results if r.sample == 1 and r.dataset in sets}
    means = [_over_sets([times.get((d, m), nan) for d in sets]) for m in methods]
    return Table(
        key=f"times-{kind}",
        title=f"Milliseconds of a fit on {kind} data sets",
        note="Rows of unit length, the parameters that were chosen: one call of the compiled kernel for all "
        "training rows, the shortest of at least three, averaged over runs. Bold: the shortest."
        + sample_note(samples),
        corner="Data set",
        columns=tuple(methods),
        rows=tuple(_row(times, d, methods, marked(d, samples)) for d in sets),
        foot=(Row("Geometric mean", tuple(means)),) if sets else (),
    )


def _row(times: dict[tuple[str, str], float], dataset: str, methods: list[str], name: str) -> Row:
    seconds = [times.get((dataset, method), nan) for method in methods]
    least = min(s for s in seconds if isfinite(s))
    return Row(name, tuple(_cell(s, bold=s == least) for s in seconds))


def _cell(seconds: float, *, bold: bool = False) -> Cell:
    text = fixed(1000 * seconds, 2)
    return Cell(text=text, bold=bold, value=seconds if isfinite(seconds) else None)


def _over_sets(seconds: list[float]) -> Cell:
    known = all(map(isfinite, seconds))
    return _cell(geometric_mean(seconds)) if known else number(nan)
