"""The report's figures, but for those of ranks: running time, learning curves, time by method."""

from collections.abc import Mapping
from math import ceil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from cbrank.datasets import registry
from cbrank.datasets.entry import Table as Kind
from cbrank.methods import Look
from cbrank.plotting import WIDTH, Picture, dots, headed, log_axis, picture
from cbrank.study.report.names import in_order, ordered_methods, scaling_name
from cbrank.study.report.study import Study
from cbrank.study.report.time_tables import mean_times
from cbrank.study.report.tuning_tables import TimeSpent
from cbrank.study.times_file import SCALING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURES: dict[Kind, int] = {"benchmark": 1, "high-dimensional": 2}


def running_time(
    study: Study, kind: Kind, looks: Mapping[str, Look], folder: Path
) -> Picture | None:
    """Draw the time of a fit for each data set and method.

    Parameters
    ----------
    study : Study
        The study.
    kind : {"benchmark", "high-dimensional"}
        The data sets.
    looks : mapping of str to Look
        How methods are drawn.
    folder : Path
        Where the files go.

    Returns
    -------
    Picture or None
        None if no time was taken.
    """
    times = {key: 1000 * seconds for key, seconds in mean_times(study, kind).items()}
    if not times:
        return None
    rows = in_order({dataset for dataset, _ in times}, registry.names())
    methods = ordered_methods({method for _, method in times}, kind)
    title = f"Figure {FIGURES[kind]}: time of a fit\n{scaling_name(SCALING)}"

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for method in methods:
            known = [(times[d, method], d) for d in rows if (d, method) in times]
            x, y = zip(*known, strict=True)
            dots(axes, looks[method], x, y, label=method)
        headed(figure, title)
        axes.set_ylabel("data set")
        log_axis(axes, "milliseconds, mean over runs (log scale)")
        axes.set_yticks(range(len(rows)), rows)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(visible=True)
        axes.tick_params(length=0)
        figure.legend(loc="outside lower left", ncols=3, handletextpad=0.2, columnspacing=1)

    alt = ", ".join(title.splitlines()) + f". {_fastest(times, methods)}"
    size = WIDTH, 1.6 + 0.27 * len(rows) + 0.18 * (len(methods) // 3)
    key = f"figure-{FIGURES[kind]}-{SCALING}"
    return picture(draw, key=key, alt=alt, size=size, looks=looks, folder=folder)


def _fastest(times: Mapping[tuple[str, str], float], methods: list[str]) -> str:
    middle = {m: median(t for (_, method), t in times.items() if method == m) for m in methods}
    order = sorted(methods, key=lambda method: middle[method])
    return (
        f"Over the data sets the median is lowest for {order[0]}, {middle[order[0]]:.3g} ms, "
        f"and highest for {order[-1]}, {middle[order[-1]]:.3g} ms."
    )


_ACROSS = 4  # panels side by side in the file
Lines = dict[str, tuple[list[int], list[float]]]  # rows and AUCs by method


def learning_curves(
    study: Study, scaling: str, looks: Mapping[str, Look], folder: Path
) -> list[Picture]:
    """Draw one picture for each data set, and a file with all of them.

    Parameters
    ----------
    study : Study
        The study.
    scaling : str
        How the data were scaled.
    looks : mapping of str to Look
        How methods are drawn.
    folder : Path
        Where the file goes.

    Returns
    -------
    list of Picture
        Empty if there are no curves with this scaling.
    """
    present = {dataset for dataset, scaled, _ in study.curves if scaled == scaling}
    names = in_order(present, registry.names())
    lines = {name: _lines(study, name, scaling) for name in names}
    if not names:
        return []
    _all_panels(lines, scaling, looks, folder)
    return [_panel(name, lines[name], scaling, looks) for name in names]


def _lines(study: Study, dataset: str, scaling: str) -> Lines:
    curves = {
        m: points for (d, s, m), points in study.curves.items() if (d, s) == (dataset, scaling)
    }
    return {
        method: ([point.rows for point in curves[method]], [point.auc for point in curves[method]])
        for method in ordered_methods(curves)
    }


def _draw_curves(axes: "Axes", name: str, lines: Lines, looks: Mapping[str, Look]) -> None:
    for method, (rows, aucs) in lines.items():
        axes.plot(rows, aucs, color=looks[method].colour, linewidth=1.4, label=method)
    axes.set(title=name, ylabel="progressive AUC")
    log_axis(axes, "rows (log scale)")
    axes.grid(visible=True)
    axes.tick_params(length=0, labelsize=8)


def _panel(name: str, lines: Lines, scaling: str, looks: Mapping[str, Look]) -> Picture:
    def draw(figure: "Figure") -> None:
        _draw_curves(figure.subplots(), name, lines, looks)
        figure.subplots_adjust(left=0.2, right=0.97, bottom=0.22, top=0.88)

    ends = ", ".join(f"{method} {aucs[-1]:.3f}" for method, (_, aucs) in lines.items())
    return picture(
        draw,
        key=f"curve-{scaling}-{name}",
        alt=f"Learning curves on {name}, {scaling_name(scaling)}. At the end: {ends}.",
        size=(2.9, 2.2),
        looks=looks,
        folder=None,
        layout=None,
    )


def _all_panels(
    lines: Mapping[str, Lines], scaling: str, looks: Mapping[str, Look], folder: Path
) -> None:
    down, across = ceil(len(lines) / _ACROSS), min(len(lines), _ACROSS)

    def draw(figure: "Figure") -> None:
        grid = figure.subplots(down, across, squeeze=False).ravel()
        for axes, (name, curves) in zip(grid, lines.items(), strict=False):
            _draw_curves(axes, name, curves, looks)
        for axes in grid[len(lines) :]:
            axes.set_visible(False)
        shown = [axes.get_legend_handles_labels() for axes in grid]
        lines_of = {
            m: line for handles, names in shown for line, m in zip(handles, names, strict=True)
        }
        methods = ordered_methods(lines_of)
        handles = [lines_of[method] for method in methods]
        figure.legend(handles, methods, loc="lower center", ncols=6)
        headed(figure, f"Learning curves, {scaling_name(scaling)}")
        figure.subplots_adjust(0.2 / across, edge, 1 - 0.03 / across, 1 - edge, 0.35, 0.5)

    size = 2.9 * max(across, 2), 2.3 * down + 1.6
    edge = 1 / size[1]
    key = f"curves-{scaling}"
    picture(draw, key=key, alt="", size=size, looks=looks, folder=folder, layout=None)


def time_picture(times: list[TimeSpent], looks: Mapping[str, Look], folder: Path) -> Picture:
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
