"""Critical-difference diagrams: average ranks on an axis, and whether they differ in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cbrank.methods import Look
from cbrank.plotting import INK, WIDTH, Picture, headed, picture
from cbrank.study.report.names import MEASURE_NAMES, listed, plural, scaling_name
from cbrank.study.report.scores import Scores, ranking
from cbrank.study.report.significance import Comparison, Statistic, compare, obstacle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
    scores: Scores,
    methods: Sequence[str],
    *,
    group: Group,
    looks: Mapping[str, Look],
    folder: Path | None,
) -> Diagram:
    """Compare methods over data sets.

    Parameters
    ----------
    scores : Scores
        The scores.
    methods : sequence of str
        Which to compare.
    group : {"paper", "all"}
        Whether these are the paper's methods or all.
    looks : mapping of str to Look
        How methods are drawn.
    folder : Path or None
        Where the files go; without one, nothing is drawn.

    Returns
    -------
    Diagram
        Without a picture where there is too little to compare, or no folder.
    """
    ranks = ranking(scores, methods)
    measure = MEASURE_NAMES[scores.measure]
    title = f"{measure[0].upper()}{measure[1:]}, {scores.kind} data sets: "
    title += f"{scaling_name(scores.scaling)}, {_GROUPS[group]}"
    if reason := obstacle(ranks):
        return Diagram(title, reason)
    outcome = compare(scores, ranks)
    if folder is None:
        return Diagram(title, verdict(outcome))
    drawn = picture(
        lambda figure: _draw(figure, outcome, looks, title),
        key=f"ranks-{scores.kind}-{scores.measure}-{scores.scaling}-{group}",
        alt=f"Critical-difference diagram. {title}. {_order(outcome)}",
        size=(WIDTH, 1.55 + _STEP * (_levels(outcome) + len(outcome.groups()) / 2)),
        looks=looks,
        folder=folder,
    )
    return Diagram(title, verdict(outcome), drawn)


_STEP = 0.24  # inches from label to label


def _levels(outcome: Comparison) -> int:
    return (len(outcome.ranking.ranks) + 1) // 2


def _draw(figure: "Figure", outcome: Comparison, looks: Mapping[str, Look], title: str) -> None:
    """Draw the axis, each method's mark with its label at a side, and bars between them."""
    axes = figure.subplots()
    ranks, order, bars = outcome.ranking.ranks, outcome.ranking.in_order(), outcome.groups()
    highest, left = len(order), _levels(outcome)
    for bar, group in enumerate(bars):
        ends = [ranks[group[0]] - 0.03, ranks[group[-1]] + 0.03]
        axes.plot(ends, [-(bar + 1) / 2] * 2, color=INK, linewidth=2.5, solid_capstyle="butt")
    for place, method in enumerate(order):
        at_left = place < left
        level = -len(bars) / 2 - (place if at_left else highest - 1 - place) - 0.7
        end = 1 - 0.02 * highest if at_left else highest + 0.02 * highest
        colour, rank = looks[method].colour, ranks[method]
        axes.plot([rank, rank, end], [0, level, level], color=colour, linewidth=1, clip_on=False)
        axes.plot(rank, 0, looks[method].marker, color=colour, markersize=5, clip_on=False)
        _label(axes, f"{method} {rank:.2f}", (end, level), "right" if at_left else "left")
    _ruler(axes, outcome, highest)
    headed(figure, title.replace(": ", "\n"))
    figure.supxlabel("average rank (1 is the best); bars join ranks less than CD apart", fontsize=8)


def _ruler(axes: "Axes", outcome: Comparison, highest: int) -> None:
    """Set the axis above the bars, and the critical difference (CD) above the axis."""
    difference, above = outcome.critical_difference, 2.0
    lowest = -len(outcome.groups()) / 2 - _levels(outcome) - 0.2
    axes.set(xlim=(1, highest), ylim=(lowest, above), xticks=range(1, highest + 1), yticks=[])
    axes.xaxis.tick_top()
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.spines["top"].set_visible(True)
    axes.spines["top"].set_position(("data", 0))
    ends = [1, 1 + difference]
    axes.plot(ends, [above] * 2, "|-", color=INK, linewidth=1, markersize=6, clip_on=False)
    _label(axes, f"CD {difference:.2f}", (1 + difference, above), "left")


def _label(axes: "Axes", text: str, place: tuple[float, float], side: str) -> None:
    axes.annotate(
        text,
        place,
        (4 if side == "left" else -4, 0),
        textcoords="offset points",
        ha=side,
        va="center",
        annotation_clip=False,
    )


def _order(outcome: Comparison) -> str:
    ranks = outcome.ranking
    return "Average ranks: " + ", ".join(f"{m} {ranks.ranks[m]:.2f}" for m in ranks.in_order())


def verdict(outcome: Comparison) -> str:
    """Say whether methods differ, and which from the first.

    Parameters
    ----------
    outcome : Comparison
        The tests.

    Returns
    -------
    str
        Some sentences.
    """
    blocks = plural(len(outcome.ranking.datasets), "data set")
    told = (
        f"Friedman over {blocks}: χ² = {_test(outcome.friedman)}; "
        f"Iman-Davenport: F = {_test(outcome.iman_davenport)}."
    )
    if not outcome.differ:
        return f"{told} No difference between the methods is shown, so no pair was tested."
    told += f" Nemenyi's critical difference is {outcome.critical_difference:.2f}."
    if not outcome.can_tell:
        return f"{told} With so few data sets no single pair can be told apart after Holm."
    first, beaten = outcome.ranking.in_order()[0], outcome.beaten()
    if not beaten:
        return f"{told} {first} is first, but by Wilcoxon and Holm no pair with it differs at 5 %."
    return f"{told} {first} is first and differs by Wilcoxon and Holm from {listed(beaten)}."


def _test(test: Statistic) -> str:
    p = "p < 0.001" if test.p < 0.001 else f"p = {test.p:.3f}"
    return f"{test.value:.2f}, {p}"
