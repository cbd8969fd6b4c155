"""Targets, tables, figures and the page that shows them."""

import math
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks.beyond.measuring import MEASURES, Data, Results
from benchmarks.beyond.methods import Method
from benchmarks.comparison import end_page, start_page, write_csv, write_table
from benchmarks.tables import target_table
from benchmarks.targets import Target, short
from cbrank.methods import Look
from cbrank.plotting import WIDTH, dots, headed, log_axis, write_figure
from cbrank.tables import ABSENT, Cell, Row, Table, difference, fixed, signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OURS, _LINE = "trees", "line"
_STREAM = {
    "window_auc": "AUC, windows",
    "auc": "AUC, whole",
    "average_precision": "average precision",
    "microseconds": "µs a row",
    "mib": "MiB added",
}
_LOOKS = {
    "line": Look("#56b4e9", "#8fd0f5", "s"),
    "curves": Look("#332288", "#9a92ea", "d"),
    "trees": Look("#0072b2", "#4ea3dd", "o"),
    "lightgbm": Look("#009e73", "#2cc79b", "D"),
    "hgb": Look("#e69f00", "#f0b432", "^"),
    "xgboost": Look("#999933", "#ddcc77", "<"),
    "catboost": Look("#aa4499", "#e07bd0", ">"),
    "forest": Look("#882255", "#d97bab", "X"),
    "ebm": Look("#cc79a7", "#e29dc3", "P"),
    "river-arf": Look("#5b6570", "#a9b3bd", "*"),
    "vw-pairs": Look("#d55e00", "#ff8a3d", "v"),
}
_OTHER = Look("#5b6570", "#a9b3bd", "o")


# What was measured --------------------------------------------------------------------------------


def mean(folder: Results, data: Data, method: str, measure: str = "auc") -> float:
    """Return the mean of a measure over splits, or that of a stream; NaN if not measured."""
    value = folder.result(data.name, method).get(measure, math.nan)
    return fmean(value) if isinstance(value, list) else float(value)


def above(folder: Results, data: Data, one: str, other: str, measure: str = "auc") -> float:
    """Return how far a method is above another, in the mean of the splits that both have."""
    values = [folder.result(data.name, name).get(measure, []) for name in (one, other)]
    gaps = [a - b for a, b in zip(*values, strict=False)]
    return fmean(gaps) if gaps else math.nan


def _of(folder: Results, *groups: str) -> list[Data]:
    return [data for data in folder.subjects() if data.group in groups]


def _methods(folder: Results, sets: list[Data]) -> list[Method]:
    """Return the methods that were measured on some sets, best first.

    They are sorted by how far they are above the line on the sets and splits that both have.
    """
    known = [m for m in folder.methods if any(folder.result(d.name, m.name) for d in sets)]
    return sorted(known, key=lambda m: -_known_mean(above(folder, d, m.name, _LINE) for d in sets))


def _known_mean(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return fmean(known) if known else math.nan


def _all_mean(values: Iterable[float]) -> float:
    values = list(values)
    return fmean(values) if values else math.nan


# The page -----------------------------------------------------------------------------------------


def write(folder: Results) -> None:
    """Write ``results.csv``, ``tables/``, ``figures/`` and ``report.md``, which shows them.

    Without Matplotlib there are no figures.
    """
    parts = start_page(folder)
    for table in _tables(folder):
        parts += [f"## {table.title}", write_table(folder, table)]
        if find_spec("matplotlib") and table.key in _FIGURES:
            parts.append(_FIGURES[table.key](folder))
    end_page(folder, parts)
    write_csv(folder, ["set", "method", "split", *MEASURES], _lines(folder))


def _lines(folder: Results) -> Iterator[list[Any]]:
    """Return a line for each split; a stream has one, with the seconds of all its rows."""
    for data in folder.subjects():
        for method, result in folder.measured(data.name):
            if data.group == "streams":
                seconds = result["microseconds"] * folder.about(data.name)["rows"] / 1e6
                one = [
                    result["auc"],
                    result["average_precision"],
                    "",
                    round(seconds, 6),
                    result["mib"],
                ]
                yield [data.name, method.name, 0, *one]
                continue
            for run, values in enumerate(zip(*[result[name] for name in MEASURES], strict=True)):
                yield [data.name, method.name, run, *values]


def _tables(folder: Results) -> list[Table]:
    sets, tables = _of(folder, "benchmark"), _of(folder, "tables", "large")
    made = [
        target_table([aim for aim in targets(folder) if not math.isnan(aim.measured)]),
        mean_table(folder, sets),
        set_table(folder, sets, "auc", "AUC of each set", "sets-auc"),
        gap_table(folder, [*sets, *tables]),
        set_table(folder, tables, "auc", "Tables and many rows: AUC", "tables-auc"),
        *[stream_table(folder, data) for data in _of(folder, "streams")],
        set_table(
            folder, [*sets, *tables], "average_precision", "Average precision", "average-precision"
        ),
        cost_table(folder, [*sets, *tables]),
    ]
    return [table for table in made if table.rows]


def mean_table(folder: Results, sets: list[Data]) -> Table:
    """Set the methods side by side, in the mean of the benchmark sets."""
    rows = []
    for method in _methods(folder, sets):
        known = [d for d in sets if folder.result(d.name, method.name)]
        gaps = [above(folder, d, method.name, _LINE) for d in known]
        most, least = max(gaps), min(gaps)
        cells = (
            *[
                Cell(text=fixed(fmean(mean(folder, d, method.name, name) for d in known), 4))
                for name in ("auc", "average_precision", "log_loss")
            ],
            Cell(text=signed(_known_mean(gaps), 4)),
            Cell(text=f"{signed(least)} to {signed(most)}"),
            Cell(text=short(fmean(mean(folder, d, method.name, "seconds") for d in known))),
            Cell(text=f"{max(mean(folder, d, method.name, 'mib') for d in known):.0f}"),
            Cell(text=_counts(folder, known, method)),
        )
        rows.append(Row(method.title, cells))
    return Table(
        key="means",
        title="The benchmark sets, on average",
        note=(
            "One fit to four fifths of a set, of at most 8,000 rows, and the AUC of the others. How "
            "far a method is above the line is the mean over the splits that both have."
        ),
        corner="",
        columns=(
            "AUC",
            "average precision",
            "log loss",
            "above the line",
            "worst to best set",
            "seconds a fit",
            "MiB added, most",
            "sets × splits",  # noqa: RUF001
        ),
        rows=tuple(rows),
    )


def _counts(folder: Results, sets: list[Data], method: Method) -> str:
    counts = {len(folder.result(d.name, method.name)["auc"]) for d in sets}
    splits = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else f"{min(counts)}"
    return f"{len(sets)} × {splits}"  # noqa: RUF001


def set_table(folder: Results, sets: list[Data], measure: str, title: str, key: str) -> Table:
    """Show a measure of every method on every set."""
    methods = _methods(folder, sets)

    def row(data: Data) -> Row:
        values = [mean(folder, data, m.name, measure) for m in methods]
        best = max(value for value in values if not math.isnan(value))
        return Row(data.name, tuple(Cell(text=fixed(v, 4), bold=v == best) for v in values))

    means = [_all_mean(mean(folder, d, m.name, measure) for d in sets) for m in methods]
    foot = Row("mean", tuple(Cell(text=fixed(value, 4)) for value in means))
    return Table(
        key=key,
        title=title,
        note="The mean over splits.",
        corner="",
        columns=tuple(method.title for method in methods),
        rows=tuple(row(data) for data in sets),
        foot=(foot,) if len(sets) > 1 else (),
    )


def gap_table(folder: Results, sets: list[Data]) -> Table:
    """Show how far curves and trees are above each other method, the worst sets first."""
    others = [m for m in _methods(folder, sets) if m.name != _OURS]
    known = [data for data in sets if folder.result(data.name, _OURS)]

    def worst(data: Data) -> float:
        gaps = [above(folder, data, _OURS, m.name) for m in others]
        return min((gap for gap in gaps if not math.isnan(gap)), default=0.0)

    return Table(
        key="gaps",
        title="Where curves and trees lose",
        note=(
            "AUC of curves and trees less that of each other method, over the splits that both "
            "have; the sets by their worst difference."
        ),
        corner="",
        columns=tuple(method.title for method in others),
        rows=tuple(
            Row(data.name, tuple(difference(above(folder, data, _OURS, m.name)) for m in others))
            for data in sorted(known, key=worst)
        )
        if others
        else (),
    )


def cost_table(folder: Results, sets: list[Data]) -> Table:
    """Show time and memory of a fit."""
    methods = _methods(folder, sets)

    def cell(data: Data, method: Method) -> Cell:
        if not folder.result(data.name, method.name):
            return Cell(text=ABSENT)
        seconds = mean(folder, data, method.name, "seconds")
        mib = max(folder.result(data.name, method.name)["mib"])
        return Cell(text=f"{short(seconds)} s", below=f"{mib:.0f} MiB")

    return Table(
        key="cost",
        title="Time and memory",
        note="Seconds of a fit, the mean over splits, and below it the most MiB that one added.",
        corner="",
        columns=tuple(method.title for method in methods),
        rows=tuple(Row(data.name, tuple(cell(data, m) for m in methods)) for data in sets),
    )


def stream_table(folder: Results, data: Data) -> Table:
    """Set the methods side by side on a stream, by their AUC in windows."""
    lines = sorted(folder.measured(data.name), key=lambda line: -line[1]["window_auc"])
    facts = folder.about(data.name)

    def cell(name: str, value: float) -> Cell:
        return Cell(text=short(value) if name in {"microseconds", "mib"} else fixed(value, 4))

    return Table(
        key=f"stream-{data.name}",
        title=f"{data.name}, predicted before it is learned",
        note=(
            f"{facts['rows']:,} rows of {facts['features']} columns in the order of time. LightGBM "
            "and HistGradientBoosting are fitted anew each 1,000 rows, to all rows so far."
        ),
        corner="",
        columns=tuple(_STREAM.values()),
        rows=tuple(
            Row(method.title, tuple(cell(name, result[name]) for name in _STREAM))
            for method, result in lines
        ),
    )


# Targets ------------------------------------------------------------------------------------------


def targets(folder: Results) -> Iterator[Target]:
    """Compare what was measured with what is aimed at."""
    every = {data.name: data for data in folder.subjects()}
    sets = _of(folder, "benchmark")

    def auc(name: str, measure: str = "auc") -> float:
        return mean(folder, every[name], _OURS, measure) if name in every else math.nan

    def ratio(name: str, one: str, other: str, measure: str) -> float:
        if name not in every:
            return math.nan
        data = every[name]
        return mean(folder, data, one, measure) / mean(folder, data, other, measure)

    for title, measure, limit in (
        ("AUC", "auc", 0.0),
        ("average precision", "average_precision", -0.003),
    ):
        gap = _all_mean(above(folder, d, _OURS, "lightgbm", measure) for d in sets)
        yield Target(f"Benchmark sets: {title} above LightGBM", "≥", limit, gap)
    worst = min((above(folder, d, _OURS, "curves") for d in sets), default=math.nan)
    yield Target("Benchmark sets: AUC above curves alone, worst set", "≥", -0.004, worst)
    for name, limit in (("adult", 0.927), ("telco-no-score", 0.845), ("hypothyroid", 0.988)):
        yield Target(f"{name}: AUC", "≥", limit, auc(name))
    for name in ("adult", "covtype-100k"):
        gap = above(folder, every[name], "lightgbm", _OURS) if name in every else math.nan
        yield Target(f"{name}: AUC below LightGBM", "≤", 0.008, gap)
    for name in ("adult", "spambase", "magic04", "covtype-100k"):
        yield Target(
            f"{name}: time of a fit / LightGBM's",
            "≤",
            3.0,
            ratio(name, _OURS, "lightgbm", "seconds"),
        )
    for name, limit in (("elec", 0.932), ("weather", 0.851)):
        yield Target(f"{name}: AUC, windows", "≥", limit, auc(name, "window_auc"))
    yield Target(
        "elec: time, curves and trees / River ARF",
        "≤",
        0.1,
        ratio("elec", _OURS, "river-arf", "microseconds"),
    )


# Figures ------------------------------------------------------------------------------------------


def _pareto(folder: Results) -> str:
    """Draw mean AUC against the time of a fit; return the Markdown."""
    sets = _of(folder, "benchmark")

    def average(method: Method, measure: str) -> float:
        return _all_mean(mean(folder, data, method.name, measure) for data in sets)

    known = [m for m in _methods(folder, sets) if not math.isnan(average(m, "auc"))]
    points = [(method, average(method, "seconds"), average(method, "auc")) for method in known]
    if not points:
        return ""

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for method, seconds, auc in points:
            look = _LOOKS.get(method.name, _OTHER)
            dots(axes, look, [seconds], [auc], label=method.title)
        headed(figure, "AUC against time, mean of the benchmark sets")
        log_axis(axes, "seconds of a fit (log scale)")
        axes.set_ylabel("AUC")
        axes.grid(visible=True)
        figure.legend(loc="outside lower left", ncols=2, handletextpad=0.2, columnspacing=1)

    write_figure(draw, folder.path / "figures" / "pareto.svg", (WIDTH, 4.2))
    told = ", ".join(f"{method.title} {auc:.3f} in {short(s)} s" for method, s, auc in points)
    return f"![Mean AUC and seconds of a fit: {told}](figures/pareto.svg)"


def _gains(folder: Results) -> str:
    """Draw how far methods are above the line on each set; return the Markdown."""
    sets = [d for d in _of(folder, "benchmark", "tables", "large") if folder.result(d.name, _LINE)]
    sets = [data for data in sets if _gaps(folder, data)]
    if not sets:
        return ""
    sets.sort(key=lambda data: _known_mean(_gaps(folder, data).values()))

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.axvline(0, color="#5b6570", linewidth=0.8)
        for name, look in _LOOKS.items():
            gaps = [(_gaps(folder, data).get(name), at) for at, data in enumerate(sets)]
            known = [(gap, at) for gap, at in gaps if gap is not None]
            if known:
                title = next(m.title for m in folder.methods if m.name == name)
                x, y = zip(*known, strict=True)
                dots(axes, look, x, y, label=title)
        axes.set(yticks=range(len(sets)), yticklabels=[data.name for data in sets])
        axes.set_xlabel("AUC above the line")
        axes.grid(visible=True)
        headed(figure, "What bending gains")
        figure.legend(loc="outside lower left", ncols=2, handletextpad=0.2, columnspacing=1)

    write_figure(draw, folder.path / "figures" / "gains.svg", (WIDTH, 1.4 + 0.24 * len(sets)))
    return "![AUC above the line by set, as in the table of each set](figures/gains.svg)"


def _gaps(folder: Results, data: Data) -> dict[str, float]:
    left_out = {_LINE, "river-arf", "vw-pairs"}
    names = [name for name in _LOOKS if name not in left_out]
    gaps = {name: above(folder, data, name, _LINE) for name in names}
    return {name: gap for name, gap in gaps.items() if not math.isnan(gap)}


_FIGURES: dict[str, Callable[[Results], str]] = {"means": _pareto, "sets-auc": _gains}


def summary(folder: Results) -> str:
    """Return what a terminal shows: the targets, then a line for each set and method."""
    lines = [
        f"{aim.text:<50}{short(aim.measured):>9} {aim.sign} {short(aim.limit):<8} {aim.verdict}"
        for aim in targets(folder)
        if not math.isnan(aim.measured)
    ]
    lines.append(f"{'set':<16}{'method':<24}{'AUC':>8}{'AP':>8}{'seconds':>10}")
    for data in folder.subjects():
        for method, _ in folder.measured(data.name):
            auc, precision, seconds = (mean(folder, data, method.name, m) for m in MEASURES[:3])
            lines.append(
                f"{data.name:<16}{method.title:<24}{auc:>8.4f}{precision:>8.4f}{short(seconds):>10}"
            )
    return "\n".join(lines)
