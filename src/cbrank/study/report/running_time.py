"""The paper's Figures 1 and 2: the time of a fit, on a log scale."""

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from cbrank import datasets
from cbrank.datasets.entry import Table as Kind
from cbrank.methods import Look
from cbrank.plotting import WIDTH, Picture, dots, headed, log_axis, picture
from cbrank.study.report.looks import ordered
from cbrank.study.report.results import Study, in_order
from cbrank.study.report.words import scaling_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: dict[Kind, int] = {"benchmark": 1, "high-dimensional": 2}


def running_time(
    study: Study, kind: Kind, scaling: str, looks: Mapping[str, Look], folder: Path
) -> Picture | None:
    """Draw the median time of a fit for each data set and method.

    Parameters
    ----------
    study : Study
        What was read.
    kind : {"benchmark", "high-dimensional"}
        The data sets.
    scaling : str
        How they were scaled.
    looks : mapping of str to Look
        How methods are drawn.
    folder : Path
        Where the files go.

    Returns
    -------
    Picture or None
        None if no time was taken.
    """
    times = _milliseconds(study, kind, scaling)
    if not times:
        return None
    rows = in_order({dataset for dataset, _ in times}, datasets.names())
    methods = ordered({method for _, method in times}, kind)
    title = f"Figure {FIGURES[kind]}: time of a fit\n{scaling_words(scaling)}"

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for method in methods:
            known = [(times[d, method], d) for d in rows if (d, method) in times]
            x, y = zip(*known, strict=True)
            dots(axes, looks[method], x, y, label=method)
        headed(figure, title)
        axes.set_ylabel("data set")
        log_axis(axes, "milliseconds, median over runs (log scale)")
        axes.set_yticks(range(len(rows)), rows)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(visible=True)
        axes.tick_params(length=0)
        figure.legend(loc="outside lower left", ncols=3, handletextpad=0.2, columnspacing=1)

    alt = ", ".join(title.splitlines()) + f". {_fastest(times, methods)}"
    size = WIDTH, 1.6 + 0.27 * len(rows) + 0.18 * (len(methods) // 3)
    key = f"figure-{FIGURES[kind]}-{scaling}"
    return picture(draw, key=key, alt=alt, size=size, looks=looks, folder=folder)


def _milliseconds(study: Study, kind: Kind, scaling: str) -> dict[tuple[str, str], float]:
    times: dict[tuple[str, str], list[float]] = {}
    for result in study.chosen(kind, scaling):
        if result.fit_seconds > 0:
            key = result.dataset, result.method
            times.setdefault(key, []).append(1000 * result.fit_seconds)
    return {key: median(values) for key, values in times.items()}


def _fastest(times: Mapping[tuple[str, str], float], methods: list[str]) -> str:
    middle = {m: median(t for (_, method), t in times.items() if method == m) for m in methods}
    order = sorted(methods, key=lambda method: middle[method])
    return (
        f"Over the data sets the median is lowest for {order[0]}, {middle[order[0]]:.3g} ms, "
        f"and highest for {order[-1]}, {middle[order[-1]]:.3g} ms."
    )
