"""What the columns of an `AdditiveRanker` do to scores, drawn."""

import operator
from collections.abc import Callable, Sequence
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cbrank.plotting import matplotlib, write_figure
from cbrank.rankers.effects import Curve, Effects

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cbrank.rankers.additive import AdditiveRanker

_HIGH, _LOW = "#0072B2", "#D55E00"  # told apart by colour-blind readers
_LONGEST_TITLE, _LONGEST_WORD = 26, 14
_MOST_BARS = 8
_BAND = 1.96  # deviations: 95% of a Gaussian
PANEL = 2.75, 2.2  # inches
_NO_MARKS = Curve([], np.zeros(0), np.zeros(0))
_ENGINEERS = 10_000  # from here on numbers are written as 10k, 2M


class Panel(NamedTuple):
    """A term of the score, to be drawn.

    Attributes
    ----------
    name : str
        Its column or columns.
    kind : {"number", "word", "time", "pair"}
        Numbers and times are curves, words bars, pairs maps.
    moves : float
        How far it moves scores.
    curve : Curve or Map
        What it adds.
    marks : Curve
        What gaps and isolated values add; empty for words and pairs.
    """

    name: str
    kind: str
    moves: float
    curve: Any
    marks: Curve


class CurvesDisplay:
    """What columns do to scores: curves with bands, bars of words, maps of pairs.

    Numbers and times are curves, which are zero at the median, with bands of 1.96 standard deviations. Words
    are bars, zero being their mean, with error bars of the same length. Maps show what trees add for two columns
    together, beyond what they add for each. All curves have one scale, and so have all bars and all maps. Use
    `from_estimator` to make one.

    Parameters
    ----------
    panels : list of Panel
        What to draw, in order.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure.
    axes_ : ndarray of matplotlib.axes.Axes
        The axes, one for each panel.

    Examples
    --------
    >>> from cbrank import AdditiveRanker
    >>> from cbrank.datasets import load
    >>> from cbrank.inspection import CurvesDisplay
    >>> X, y, facts = load("diabetes")
    >>> ranker = AdditiveRanker(random_state=0).fit(X, y)
    >>> display = CurvesDisplay.from_estimator(ranker, columns=[1, "x5"])
    >>> [axes.get_title(loc="left") for axes in display.axes_]
    ['x1', 'x5']
    """

    figure_: "Figure"
    axes_: NDArray[Any]

    def __init__(self, panels: list[Panel]) -> None:
        self.panels = panels

    @classmethod
    def from_estimator(
        cls,
        ranker: "AdditiveRanker",
        columns: Sequence[Any] | None = None,
        X: Any = None,
        *,
        n: int = 9,
        ax: "Sequence[Axes] | None" = None,
        n_cols: int = 3,
    ) -> Self:
        """Draw what columns do.

        Parameters
        ----------
        ranker : AdditiveRanker
            One that has learned.
        columns : sequence of str, int or pairs of them, default=None
            Columns, or pairs of them, in order; the `n` that move scores most if None, those first, and up to
            three pairs.
        X : array-like, list of dict or data frame of shape (n_samples, n_columns), default=None
            Rows that say how far columns move scores; some of those learned if None.
        n : int, default=9
            How many to draw if `columns` is None.
        ax : sequence of matplotlib.axes.Axes, default=None
            Where to draw; a new figure if None.
        n_cols : int, default=3
            Panels beside each other.

        Returns
        -------
        CurvesDisplay
            The display, drawn.
        """
        panels = panels_of(ranker, columns, X, n)
        if columns is None:
            panels += maps_of(ranker)
        return cls(panels).plot(ax, n_cols=n_cols)

    def plot(self, ax: "Sequence[Axes] | None" = None, *, n_cols: int = 3) -> Self:
        """Draw.

        Parameters
        ----------
        ax : sequence of matplotlib.axes.Axes, default=None
            Where to draw, one for each panel; a new figure if None.
        n_cols : int, default=3
            Panels beside each other in a new figure.

        Returns
        -------
        CurvesDisplay
            The display itself.
        """
        if ax is None:
            size = _size(len(self.panels), n_cols)
            figure = matplotlib("pyplot").figure(figsize=size, layout="constrained")
            return self.fill(figure, n_cols=n_cols)
        self.axes_ = np.atleast_1d(np.asarray(ax, object)).ravel()
        if len(self.axes_) != len(self.panels):
            raise ValueError(
                f"`ax` has {len(self.axes_)} axes, and there are {len(self.panels)} panels to draw."
            )
        if len(self.axes_):
            self.figure_ = self.axes_[0].figure
        self._draw()
        return self

    def fill(self, figure: "Figure", *, n_cols: int = 3) -> Self:
        """Draw into an empty figure.

        Parameters
        ----------
        figure : matplotlib.figure.Figure
            The figure.
        n_cols : int, default=3
            Panels beside each other.

        Returns
        -------
        CurvesDisplay
            The display itself.
        """
        across, down = _shape(len(self.panels), n_cols)
        axes = figure.subplots(down, across, squeeze=False).ravel()
        for spare in axes[len(self.panels) :]:
            spare.remove()
        self.figure_, self.axes_ = figure, axes[: len(self.panels)]
        self._draw()
        return self

    def _draw(self) -> None:
        for panel, axes, reach in zip(self.panels, self.axes_, reaches(self.panels), strict=True):
            put_panel(axes, panel, reach)


def reaches(panels: Sequence[Panel]) -> list[float]:
    """Return how far from zero the scale of each panel goes: curves, bars and maps have one each."""
    hows = [_how(panel) for panel in panels]
    return [_reach([p for p, h in zip(panels, hows, strict=True) if h is how]) for how in hows]


def put_panel(axes: "Axes", panel: Panel, reach: float) -> None:
    """Draw a panel on axes, by a scale of `reaches`."""
    axes.set_title(_short(panel.name, _LONGEST_TITLE), loc="left", fontsize="medium")
    _how(panel)(axes, panel, reach)
    axes.tick_params(labelsize="small")


def panels_of(
    ranker: "AdditiveRanker", columns: Sequence[Any] | None = None, X: Any = None, n: int = 9
) -> list[Panel]:
    """Return what to draw; all that can be drawn, those first that move scores most, if not told.

    Parameters
    ----------
    ranker : AdditiveRanker
        One that has learned.
    columns : sequence of str, int or pairs of them, default=None
        Columns, or pairs of them.
    X : array-like, list of dict or data frame of shape (n_samples, n_columns), default=None
        Rows that say how far columns move scores; some of those learned if None.
    n : int, default=9
        How many to return if `columns` is None.

    Returns
    -------
    list of Panel
        The panels.
    """
    effects = ranker.effects()
    moves = effects.moves(None if X is None else effects.encode(effects.encoder.read(X)))
    if columns is not None:
        return [_panel(effects, column, moves) for column in columns]
    order = np.argsort(-moves, kind="stable").tolist()
    names = [effects.terms[at].name for at in order if effects.terms[at].kind not in {"text", "id"}]
    panels = (_panel(effects, name, moves) for name in names)
    return [*islice(filter(_has_values, panels), operator.index(n))]


def maps_of(ranker: "AdditiveRanker") -> list[Panel]:
    """Return up to three maps to draw: those of the pairs of columns that trees add most for together.

    Parameters
    ----------
    ranker : AdditiveRanker
        One that has learned.

    Returns
    -------
    list of Panel
        The maps.
    """
    effects = ranker.effects()
    return [_panel(effects, pair, np.zeros(0)) for pair in effects.pairs(3)]


def _panel(effects: Effects, column: Any, moves: NDArray[np.float64]) -> Panel:
    if isinstance(column, tuple | list):
        name, found = " x ".join(effects.term(each).name for each in column), effects.pair(*column)
        return Panel(name, "pair", float(found.effect.std()), found, _NO_MARKS)
    term = effects.term(column)
    size = float(moves[effects.terms.index(term)])
    return Panel(term.name, term.kind, size, effects.curve(term.name), effects.marks(term.name))


def _has_values(panel: Panel) -> bool:
    """Say whether there is anything to draw: not so if a column had gaps only."""
    return bool(panel.curve.effect.size or panel.marks.effect.size)


def ends_of(panel: Panel) -> list[tuple[str, float]]:
    """Return where a term adds least and most to scores, in words, and what it adds there.

    Parameters
    ----------
    panel : Panel
        The term.

    Returns
    -------
    list of two pairs of str and float
        The lowest and the highest.
    """
    effect = np.append(panel.curve.effect, panel.marks.effect)
    grids = (map(_word, grid) for grid in panel.curve[: panel.curve.effect.ndim])
    names = [*map(", ".join, product(*grids)), *panel.marks.grid]
    return [(names[at], float(effect[at])) for at in (int(effect.argmin()), int(effect.argmax()))]


def draw_curves(path: Path, panels: list[Panel]) -> None:
    """Draw panels into a file.

    Parameters
    ----------
    path : Path
        Where the picture goes, ``.svg`` or ``.png``.
    panels : list of Panel
        What to draw.
    """

    def draw(figure: "Figure") -> None:
        CurvesDisplay(panels).fill(figure)

    write_figure(draw, path, _size(len(panels), 3))


def _how(panel: Panel) -> "Callable[[Axes, Panel, float], None]":
    """Return what draws a panel."""
    if panel.kind == "pair":
        return _put_map
    return _put_bars if panel.kind == "word" or len(panel.curve.grid) <= 2 else _put_curve


def _shape(count: int, n_cols: int) -> tuple[int, int]:
    across = max(1, min(n_cols, count))
    return across, max(1, -(-count // across))


def _size(count: int, n_cols: int) -> tuple[float, float]:
    across, down = _shape(count, n_cols)
    return PANEL[0] * across, PANEL[1] * down


def _reach(panels: list[Panel]) -> float:
    """Return how far from zero effects with their bands reach, but for bands much wider than all."""
    effects, bands = [0.0], [0.0]
    for panel in panels:
        for curve in (panel.curve, panel.marks):
            size = np.abs(curve.effect)
            effects.append(float(size.max(initial=0.0)))
            if isinstance(curve, Curve):
                bands.append(float((size + _BAND * curve.deviation).max(initial=0.0)))
    return 1.05 * min(max(*effects, *bands), 2.0 * max(effects)) or 1.0


def _put_curve(axes: "Axes", panel: Panel, reach: float) -> None:
    grid, effect, deviation = panel.curve
    band = _BAND * deviation
    axes.axhline(0.0, color=matplotlib().rcParams["axes.edgecolor"], linewidth=0.6)
    axes.fill_between(grid, effect - band, effect + band, color=_HIGH, alpha=0.22, linewidth=0)
    axes.plot(grid, effect, color=_HIGH, linewidth=1.6)
    axes.set_ylim(-reach, reach)
    axes.grid(visible=True, axis="y")
    _number_axis(axes.xaxis, grid)
    _put_marks(axes, panel)


def _put_marks(axes: "Axes", panel: Panel) -> None:
    """Draw what gaps and isolated values add right of the curve."""
    names, effects, deviations = panel.marks
    if not names:
        return
    first, last = panel.curve.grid[0], panel.curve.grid[-1]
    span = last - first
    for at, (effect, deviation) in enumerate(zip(effects, deviations, strict=True), 1):
        place = last + 0.1 * at * span if panel.kind == "number" else last + at * span // 10
        axes.errorbar(
            [place],
            [effect],
            [_BAND * deviation],
            fmt="o",
            color=_LOW,
            markersize=4,
            elinewidth=1.2,
        )
    label = ", ".join(_short(name, _LONGEST_WORD) for name in names)
    axes.text(
        1.01,
        0.5,
        label,
        transform=axes.transAxes,
        rotation=90,
        ha="left",
        va="center",
        fontsize="small",
    )


def _put_bars(axes: "Axes", panel: Panel, reach: float) -> None:
    """Draw bars, of many categories those that are farthest from zero."""
    names = [*map(_word, panel.curve.grid)]
    effect, deviation = panel.curve.effect, panel.curve.deviation
    if panel.marks.grid:
        names = [*names, *panel.marks.grid]
        effect = np.append(effect, panel.marks.effect)
        deviation = np.append(deviation, panel.marks.deviation)
    shown = np.arange(len(names))
    if len(names) > _MOST_BARS:
        shown = np.sort(np.argsort(-np.abs(effect), kind="stable")[:_MOST_BARS])
        axes.set_xlabel(f"{_MOST_BARS} of {len(names)} categories", fontsize="small")
    places = np.arange(len(shown))
    ink = matplotlib().rcParams["text.color"]
    axes.barh(places, effect[shown], height=0.62, color=_HIGH, alpha=0.75)
    axes.errorbar(
        effect[shown], places, xerr=_BAND * deviation[shown], fmt="none", ecolor=ink, elinewidth=0.9
    )
    axes.axvline(0.0, color=matplotlib().rcParams["axes.edgecolor"], linewidth=0.6)
    axes.set_yticks(places, [_short(names[at], _LONGEST_WORD) for at in shown])
    axes.set(xlim=(-reach, reach), ylim=(max(3, len(shown)) - 0.5, -0.5))
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(matplotlib("ticker").MaxNLocator(5))


def _put_map(axes: "Axes", panel: Panel, reach: float) -> None:
    grid, other, effect = panel.curve
    grid, effect = _fewer(grid, effect)
    other, effect = _fewer(other, effect.T)
    colours = matplotlib("colors").LinearSegmentedColormap.from_list("", [_LOW, "#f7f7f7", _HIGH])
    edges = [_edges(values) for values in (grid, other)]
    drawn = axes.pcolormesh(*edges, effect, cmap=colours, vmin=-reach, vmax=reach, rasterized=True)
    for axis, values in zip((axes.xaxis, axes.yaxis), (grid, other), strict=True):
        if isinstance(values, list):
            longest = 6 if axis is axes.xaxis else _LONGEST_WORD
            axis.set_ticks(range(len(values)), [_short(word, longest) for word in values])
            if axis is axes.xaxis and len(values) > 3:
                axes.tick_params(axis="x", rotation=90)
        else:
            _number_axis(axis, values)
    one, _, two = panel.name.partition(" x ")
    axes.set_xlabel(_short(one, _LONGEST_TITLE), fontsize="small")
    axes.set_ylabel(_short(two, _LONGEST_TITLE - 6), fontsize="small")
    axes.grid(visible=False)
    bar = axes.figure.colorbar(drawn, ax=axes, aspect=14, pad=0.03)
    bar.ax.tick_params(labelsize="small", length=2)
    bar.locator = matplotlib("ticker").MaxNLocator(4)
    bar.update_ticks()
    bar.outline.set_visible(False)


def _fewer(words: Any, effect: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
    """Return of many categories those whose effects, in a line each, are farthest from zero."""
    if not isinstance(words, list) or len(words) <= _MOST_BARS:
        return words, effect
    shown = np.sort(np.argsort(-np.abs(effect).max(axis=1), kind="stable")[:_MOST_BARS])
    return [words[at] for at in shown], effect[shown]


def _edges(values: Any) -> Any:
    if isinstance(values, list):
        return np.arange(len(values) + 1) - 0.5
    return np.concatenate([values[:1], values[:-1] + np.diff(values) / 2, values[-1:]])


def _number_axis(axis: Any, values: Any) -> None:
    """Give an axis few ticks, short ones."""
    if values.dtype.kind == "M":
        dates = matplotlib("dates")
        locator = dates.AutoDateLocator(minticks=2, maxticks=4)
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator))
        return
    ticker = matplotlib("ticker")
    axis.set_major_locator(ticker.MaxNLocator(4))
    if np.abs(values).max() >= _ENGINEERS:
        axis.set_major_formatter(ticker.EngFormatter(sep=""))


def _word(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return str(value.astype("M8[D]"))
    return value if isinstance(value, str) else f"{value:.4g}"


def _short(name: str, longest: int) -> str:
    """Return a name that is not too long, in which matplotlib sees no formula."""
    name = name if len(name) <= longest else name[: longest - 1] + "…"
    return name.replace("$", r"\$")
