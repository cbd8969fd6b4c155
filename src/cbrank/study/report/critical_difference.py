"""Critical-difference diagrams: average ranks, with a bar over methods that cannot be told apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cbrank.methods import Look
from cbrank.optional import need
from cbrank.plotting import INK, WIDTH, Picture, headed, picture
from cbrank.study.report.grids import Grid, ranking
from cbrank.study.report.significance import LEVEL, Comparison, compare, obstacle
from cbrank.study.report.words import MEASURES, plural, scaling_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Group = Literal["paper", "all"]
_GROUPS: dict[Group, str] = {"paper": "the paper's methods", "all": "all online methods"}


@dataclass(frozen=True)
class Diagram:
    """A diagram with its verdict in words, or only the words why there is none."""

    title: str
    verdict: str
    picture: Picture | None = None


def diagram(
    grid: Grid,
    methods: Sequence[str],
    *,
    group: Group,
    looks: Mapping[str, Look],
    folder: Path,
) -> Diagram:
    """Compare methods over data sets.

    Parameters
    ----------
    grid : Grid
        The scores.
    methods : sequence of str
        Which to compare.
    group : {"paper", "all"}
        Whether these are the paper's methods or all.
    looks : mapping of str to Look
        How methods are drawn.
    folder : Path
        Where the files go.

    Returns
    -------
    Diagram
        Without a picture where there is too little to compare.
    """
    ranks = ranking(grid, methods)
    measure = MEASURES[grid.measure]
    title = f"{measure[0].upper()}{measure[1:]}, {grid.table} data sets: "
    title += f"{scaling_words(grid.scaling)}, {_GROUPS[group]}"
    if reason := obstacle(ranks):
        return Diagram(title, reason)
    outcome = compare(grid, ranks)
    drawn = picture(
        lambda figure: _draw(figure, outcome, looks, title),
        key=f"ranks-{grid.table}-{grid.measure}-{grid.scaling}-{group}",
        alt=f"Critical-difference diagram. {title}. {_order(outcome)}",
        size=(WIDTH, 1.5 + 0.26 * len(ranks.ranks)),
        looks=looks,
        folder=folder,
    )
    return Diagram(title, _verdict(outcome), drawn)


def _draw(figure: "Figure", outcome: Comparison, looks: Mapping[str, Look], title: str) -> None:
    axes = figure.subplots()
    names = list(outcome.ranking.ranks)
    gap = 0.01 * len(names)
    # Places, not names: the library walks through sets, and text comes out in a new order each time.
    artists = need("scikit_posthocs", "comparing methods", "report").critical_difference_diagram(
        dict(enumerate(outcome.ranking.ranks.values())),
        outcome.pairs,
        ax=axes,
        alpha=LEVEL,
        label_fmt_left="{label}",
        label_fmt_right="{label}",
        color_palette={place: looks[name].colour for place, name in enumerate(names)},
        crossbar_props={"color": INK, "linewidth": 2.5},
        text_h_margin=0.15,
    )
    for text in artists["labels"]:
        name = names[int(text.get_text())]
        text.set(text=f"{name} {outcome.ranking.ranks[name]:.2f}", color=INK)
        text.set_x(text.get_position()[0] + (-gap if text.get_ha() == "right" else gap))
    for (bar,) in artists["crossbars"]:
        bar.set_xdata(sorted(bar.get_xdata()))
    for artist in (*artists["elbows"], *artists["markers"]):
        artist.set_clip_on(False)
    axes.set(xlim=(1, len(names)), xticks=range(1, len(names) + 1))
    axes.spines["top"].set_visible(True)
    headed(figure, title.replace(": ", "\n"))
    figure.supxlabel(
        "average rank (1 is the best); bars join what cannot be told apart", fontsize=8
    )


def _order(outcome: Comparison) -> str:
    ranks = outcome.ranking
    return "Average ranks: " + ", ".join(f"{m} {ranks.ranks[m]:.2f}" for m in ranks.in_order())


def _verdict(outcome: Comparison) -> str:
    blocks = plural(len(outcome.ranking.datasets), "data set")
    verdict = f"Friedman over {blocks}: {_p(outcome.friedman)}."
    if not outcome.differ:
        return f"{verdict} No difference between the methods is shown, so no pair was tested."
    if not outcome.can_tell:
        return f"{verdict} With so few data sets no single pair can be told apart after Holm."
    return f"{verdict} {_beaten(outcome)}"


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _beaten(outcome: Comparison) -> str:
    names, first = list(outcome.ranking.ranks), outcome.ranking.in_order()[0]
    row = outcome.pairs.loc[names.index(first)]
    beaten = [name for place, name in enumerate(names) if row[place] < LEVEL]
    if not beaten:
        return f"{first} is first, but no pair with it differs at 5 %."
    return f"{first} is first and differs at 5 % from {', '.join(beaten)}."
