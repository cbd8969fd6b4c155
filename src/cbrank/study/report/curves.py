"""Learning curves: AUC of rows not yet learned from, against rows seen, a panel for each data set."""

from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from cbrank import datasets
from cbrank.methods import Look
from cbrank.plotting import Picture, headed, log_axis, picture
from cbrank.study.report.looks import ordered
from cbrank.study.report.results import Point, Study, in_order
from cbrank.study.report.words import scaling_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ACROSS = 4
Lines = dict[str, tuple[list[float], list[float]]]


def panels(study: Study, scaling: str, looks: Mapping[str, Look], folder: Path) -> list[Picture]:
    """Draw one picture for each data set, and a file with all of them.

    Parameters
    ----------
    study : Study
        What was read.
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
    points = [point for point in study.curves if point.scaling == scaling]
    names = in_order({point.dataset for point in points}, datasets.names())
    lines = {name: _lines([p for p in points if p.dataset == name]) for name in names}
    if not names:
        return []
    _file(lines, scaling, looks, folder)
    return [_panel(name, lines[name], scaling, looks) for name in names]


def _lines(points: Sequence[Point]) -> Lines:
    lines: Lines = {}
    for method in ordered({point.method for point in points}):
        at: dict[float, list[float]] = {}
        for point in points:
            if point.method == method:
                at.setdefault(point.rows, []).append(point.auc)
        lines[method] = list(at), [fmean(values) for values in at.values()]
    return lines


def _draw(axes: "Axes", name: str, lines: Lines, looks: Mapping[str, Look]) -> None:
    for method, (rows, aucs) in lines.items():
        axes.plot(rows, aucs, color=looks[method].colour, linewidth=1.4, label=method)
    axes.set(title=name, ylabel="progressive AUC")
    log_axis(axes, "rows (log scale)")
    axes.grid(visible=True)
    axes.tick_params(length=0, labelsize=8)


def _panel(name: str, lines: Lines, scaling: str, looks: Mapping[str, Look]) -> Picture:
    def draw(figure: "Figure") -> None:
        _draw(figure.subplots(), name, lines, looks)
        figure.subplots_adjust(left=0.2, right=0.97, bottom=0.22, top=0.88)

    ends = ", ".join(f"{method} {aucs[-1]:.3f}" for method, (_, aucs) in lines.items())
    return picture(
        draw,
        key=f"curve-{scaling}-{name}",
        alt=f"Learning curves on {name}, {scaling_words(scaling)}. At the end: {ends}.",
        size=(2.9, 2.2),
        looks=looks,
        folder=None,
        layout=None,
    )


def _file(
    lines: Mapping[str, Lines], scaling: str, looks: Mapping[str, Look], folder: Path
) -> None:
    down, across = ceil(len(lines) / _ACROSS), min(len(lines), _ACROSS)

    def draw(figure: "Figure") -> None:
        grid = figure.subplots(down, across, squeeze=False).ravel()
        for axes, (name, curves) in zip(grid, lines.items(), strict=False):
            _draw(axes, name, curves, looks)
        for axes in grid[len(lines) :]:
            axes.set_visible(False)
        shown = [axes.get_legend_handles_labels() for axes in grid]
        lines_of = {
            m: line for handles, names in shown for line, m in zip(handles, names, strict=True)
        }
        methods = ordered(lines_of)
        handles = [lines_of[method] for method in methods]
        figure.legend(handles, methods, loc="lower center", ncols=6)
        headed(figure, f"Learning curves, {scaling_words(scaling)}")
        figure.subplots_adjust(0.2 / across, edge, 1 - 0.03 / across, 1 - edge, 0.35, 0.5)

    size = 2.9 * max(across, 2), 2.3 * down + 1.6
    edge = 1 / size[1]
    key = f"curves-{scaling}"
    picture(draw, key=key, alt="", size=size, looks=looks, folder=folder, layout=None)
