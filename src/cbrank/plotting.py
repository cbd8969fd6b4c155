"""Figures: their common style, files for papers, and inline SVG for a page."""

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cbrank.atomic import atomic_write, atomic_write_text
from cbrank.methods import Look
from cbrank.optional import need

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1d2329"
GRID = "#d5dbe1"
WIDTH = 4.4  # inches: text stays readable when a phone shows it at full width
_DPI = 200

_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure on the page.

    Attributes
    ----------
    key : str
        Its file's name, without ending.
    alt : str
        What it shows, for those who cannot see it.
    svg : str
        Its drawing, which follows the page's colours.
    """

    key: str
    alt: str
    svg: str


def matplotlib(module: str = "") -> Any:
    """Import Matplotlib or one of its modules.

    Parameters
    ----------
    module : str, default=""
        Such as ``"pyplot"``; Matplotlib itself if empty.

    Returns
    -------
    module
        The module.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed; the message says what to do.
    """
    return need(f"matplotlib.{module}".rstrip("."), "drawing", "report")


def picture(
    draw: "Callable[[Figure], None]",
    *,
    key: str,
    alt: str,
    size: tuple[float, float],
    looks: Mapping[str, Look],
    folder: Path | None,
    layout: Literal["constrained"] | None = "constrained",
) -> Picture:
    """Draw a figure for the page and, with a folder, as SVG and PNG files.

    Parameters
    ----------
    draw : callable
        Fills an empty figure.
    key, alt : str
        The picture's name and description.
    size : tuple of float
        Width and height in inches.
    looks : mapping of str to Look
        The methods' colours, which the page may change for dark ground.
    folder : Path or None
        Where the files go.
    layout : "constrained" or None
        Whether to make room for all text, which takes time; else `draw` does.

    Returns
    -------
    Picture
        The drawing for the page.
    """
    with _drawn(draw, key, size, layout) as figure:
        svg = _svg(figure)
        if folder:
            atomic_write_text(folder / f"{key}.svg", svg)
            _write_png(figure, folder / f"{key}.png")
        return Picture(key=key, alt=alt, svg=_inline(svg, alt, looks))


def write_figure(draw: "Callable[[Figure], None]", path: Path, size: tuple[float, float]) -> None:
    """Draw a figure into a file, in place only when it is whole.

    Parameters
    ----------
    draw : callable
        Fills an empty figure.
    path : Path
        Where the file goes; it ends in ``.svg`` or ``.png``.
    size : tuple of float
        Width and height in inches.
    """
    with _drawn(draw, path.stem, size, "constrained") as figure:
        if path.suffix == ".svg":
            atomic_write_text(path, _svg(figure))
        else:
            _write_png(figure, path)


@contextlib.contextmanager
def _drawn(
    draw: "Callable[[Figure], None]",
    key: str,
    size: tuple[float, float],
    layout: Literal["constrained"] | None,
) -> "Iterator[Figure]":
    with matplotlib().rc_context(_STYLE | {"svg.hashsalt": key}), warnings.catch_warnings():
        # Of names with emoji: browsers have them, other readers see a box.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from", UserWarning)
        figure = matplotlib("figure").Figure(figsize=size, layout=layout)
        figure.patch.set(gid="ground", facecolor="white")
        draw(figure)
        if layout:  # once is enough, and it is slow
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
        yield figure


def _svg(figure: "Figure") -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue()


def _write_png(figure: "Figure", path: Path) -> None:
    with atomic_write(path) as file:
        figure.savefig(file, format="png", dpi=_DPI, metadata={"Software": ""})


def _inline(svg: str, alt: str, looks: Mapping[str, Look]) -> str:
    """Cut a file down to an element whose colours the page's style sheet decides."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="ground">.*?</g>', "", svg, flags=re.DOTALL)
    # These names are unique in a file, not on a page.
    svg = re.sub(r' id="([A-Za-z0-9.]+_\d+|image[0-9a-f]+)"', "", svg)
    svg = svg.replace(INK, "currentColor").replace(GRID, "var(--grid)")
    for colour in sorted({look.colour for look in looks.values()}):
        svg = svg.replace(colour, f"var(--c{colour[1:]})")
    width = re.search(r' width="([\d.]+)pt"', svg)
    limit = round(float(width[1]) * 4 / 3) if width else 640
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    label = escape(alt, quote=True)
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}" style="--w:{limit}px"', 1)


def headed(figure: "Figure", title: str) -> None:
    """Set a figure's title, from its left edge."""
    figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")


def log_axis(axes: "Axes", label: str) -> None:
    """Give the points drawn a logarithmic x axis, with plain numbers at its ticks."""
    axes.set(xscale="log", xlabel=label)
    _plain_ticks(axes.xaxis, *axes.get_xlim())
    axes.minorticks_off()


def log_y_axis(axes: "Axes", label: str) -> None:
    """Do the same with the y axis."""
    axes.set(yscale="log", ylabel=label)
    _plain_ticks(axes.yaxis, *axes.get_ylim())
    axes.minorticks_off()


def _plain_ticks(axis: Any, low: float, high: float) -> None:
    ticker = matplotlib("ticker")
    steps = (1.0,) if high > 1000 * low else (1.0, 3.0) if high > 20 * low else (1.0, 2.0, 5.0)
    axis.set_major_locator(ticker.LogLocator(subs=steps))
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))


def dots(axes: "Axes", look: Look, x: Any, y: Any, label: str) -> None:
    """Draw a method's points."""
    axes.plot(x, y, look.marker, color=look.colour, markersize=5, label=label, clip_on=False)
