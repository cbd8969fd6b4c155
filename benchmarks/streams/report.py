"""The results folder, its tables and figures, and the page that shows them."""

import math
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.comparison import Folder, end_page, start_page, write_csv, write_table
from benchmarks.streams import learners, measuring
from benchmarks.streams.measuring import WINDOW, Stream
from benchmarks.targets import short
from cbrank.methods import Look
from cbrank.plotting import headed, write_figure
from cbrank.tables import ABSENT, Cell, Row, Table, fixed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = {
    "window_auc": "AUC, windows",
    "auc": "AUC, whole",
    "log_loss": "log loss",
    "calibration_error": "calibration",
    "microseconds": "µs a row",
}
_LOOKS = {
    "river-hat": Look("#cc79a7", "#e29dc3", "P"),
    "vw": Look("#d55e00", "#ff8a3d", "v"),
    "sgd": Look("#e69f00", "#f0b432", "^"),
    "river-lr": Look("#009e73", "#2cc79b", "D"),
    "river-arf": Look("#5b6570", "#a9b3bd", "s"),
    "cbr": Look("#0072b2", "#4ea3dd", "o"),
}
"""The methods in the figures, the last drawn on top; those row by row would cover their own lines."""


def folder(path: Path) -> Folder:
    """Return the results in a folder."""
    return Folder(path, "streams", measuring.STREAMS, learners.METHODS)


def write(folder: Folder) -> None:
    """Write ``results.csv``, ``tables/``, ``figures/`` and ``report.md``, which shows them.

    Without Matplotlib there are no figures.

    Parameters
    ----------
    folder : Folder
        The results.
    """
    parts = start_page(folder)
    for stream in folder.subjects():
        table = stream_table(folder, stream)
        parts += [f"## {stream.title}", _figure(folder, stream), write_table(folder, table)]
    table = option_table(folder)
    if table.rows:
        parts += [f"## {table.title}", write_table(folder, table)]
    end_page(folder, parts)
    columns = [*_COLUMNS, "reported"]
    lines = [
        [stream.name, method.name, *[result[name] for name in columns]]
        for stream in folder.subjects()
        for method, result in folder.measured(stream.name)
    ]
    write_csv(folder, ["stream", "method", *columns], lines)


# Tables -------------------------------------------------------------------------------------------


def stream_table(folder: Folder, stream: Stream) -> Table:
    """Set the methods side by side on a stream, by their AUC in windows."""
    lines = folder.measured(stream.name, "cbrank", "peers")
    lines.sort(key=lambda line: -line[1]["window_auc"])
    best = {
        name: (max if name.endswith("auc") else min)(result[name] for _, result in lines)
        for name in _COLUMNS
        if lines
    }
    facts = folder.about(stream.name)
    first = "the first " if stream.most == facts["rows"] else ""
    note = (
        f"{first}{facts['rows']:,} rows of {facts['features']} columns, "
        f"{facts['positives'] / facts['rows']:.0%} positive; their order: {stream.order}."
    )
    return Table(
        key=stream.name,
        title=stream.name,
        note=note[:1].upper() + note[1:],
        corner="",
        columns=tuple(_COLUMNS.values()),
        rows=tuple(
            Row(method.title, tuple(_cell(name, result[name], best[name]) for name in _COLUMNS))
            for method, result in lines
        ),
    )


def _cell(name: str, value: float, best: float) -> Cell:
    text = short(value) if name == "microseconds" else fixed(value, 4)
    return Cell(text=text, bold=value == best)


def option_table(folder: Folder) -> Table:
    """Set options of `CBRanker` side by side, on all streams."""
    streams = folder.subjects()
    methods = [
        method
        for method in learners.METHODS
        if method.name == "cbr" or method.group == "options"
        if any(folder.result(stream.name, method.name) for stream in streams)
    ]
    return Table(
        key="options",
        title="Options of CBRanker",
        note=(
            "AUC in windows / of the whole stream, 10 at a time; below it what the ranker reports "
            "of itself, `progressive_auc_`."
        ),
        corner="",
        columns=tuple(stream.name for stream in streams),
        rows=tuple(
            Row(
                "defaults" if method.name == "cbr" else method.title,
                tuple(_option(folder.result(stream.name, method.name)) for stream in streams),
            )
            for method in methods
        )
        if len(methods) > 1
        else (),
    )


def _option(result: dict[str, Any]) -> Cell:
    if not result:
        return Cell(text=ABSENT)
    both = f"{fixed(result['window_auc'], 4)} / {fixed(result['auc'], 4)}"
    return Cell(text=both, below=f"reports {fixed(result['reported'], 4)}")


# Figures ------------------------------------------------------------------------------------------


def _figure(folder: Folder, stream: Stream) -> str:
    """Draw the AUC of every window, with the share of positive rows below; return the Markdown."""
    known = {
        method.name: (method.title, result)
        for method, result in folder.measured(stream.name, "cbrank", "peers")
    }
    lines = [(name, *known[name]) for name in _LOOKS if name in known]
    if not lines or find_spec("matplotlib") is None:
        return ""
    shares = folder.about(stream.name)["shares"]
    rows = [(window + 1) * WINDOW / 1000 for window in range(len(shares))]

    def draw(figure: "Figure") -> None:
        axes, below = figure.subplots(2, sharex=True, height_ratios=(5, 1))
        for name, title, result in lines:
            _line(axes, name, title, rows, result["windows"])
        axes.set(ylabel=f"AUC of {WINDOW:,} rows")
        axes.grid(visible=True)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(
            handles[::-1], labels[::-1], loc="outside lower left", ncols=3, handletextpad=0.4,
            columnspacing=1.5, handlelength=1.6,
        )  # fmt: skip
        below.fill_between(rows, 0, shares, color="#5b6570", alpha=0.35, linewidth=0)
        below.set(ylim=(0, 1), yticks=(0, 1), ylabel="share\npositive", xlabel="rows, in thousands")
        below.locator_params("x", integer=True)
        headed(figure, stream.title)

    write_figure(draw, folder.path / "figures" / f"{stream.name}.svg", (6.0, 4.4))
    told = ", ".join(f"{title} {result['window_auc']:.3f}" for _, title, result in reversed(lines))
    alt = f"AUC of windows of {WINDOW:,} rows of {stream.name}; on average {told}"
    return f"![{alt}](figures/{stream.name}.svg)"


def _line(axes: Any, name: str, title: str, rows: list[float], windows: list[float | None]) -> None:
    look = _LOOKS[name]
    ours = name == "cbr"
    axes.plot(
        rows,
        [math.nan if value is None else value for value in windows],
        color=look.colour,
        linewidth=1.8 if ours else 0.9,
        marker=look.marker,
        markersize=3.5 if ours else 3,
        markevery=max(len(rows) // 15, 1),
        label=title,
    )


def summary(folder: Folder) -> str:
    """Return what a terminal shows: a line for each stream and method."""
    lines = []
    for stream in folder.subjects():
        for method, result in folder.measured(stream.name):
            lines.append(
                f"{stream.name:<9}{method.title:<24}{result['window_auc']:>7.4f}"
                f"{result['auc']:>8.4f}{result['log_loss']:>8.4f}"
                f"{result['calibration_error']:>8.4f}{short(result['microseconds']):>8}"
            )
    head = (
        f"{'stream':<9}{'method':<24}{'windows':>7}{'whole':>8}{'loss':>8}{'calibr.':>8}{'µs':>8}"
    )
    return "\n".join([head, *lines])
