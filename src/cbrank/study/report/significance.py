"""Whether methods differ over data sets: tests, and diagrams of average ranks.

Friedman's test asks whether the methods differ at all, Wilcoxon's with Holm's correction which
pairs do. A bar in a critical-difference diagram joins methods that cannot be told apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from scipy.stats import friedmanchisquare

from cbrank.methods import Look
from cbrank.optional import can_import, need
from cbrank.plotting import INK, WIDTH, Picture, headed, picture
from cbrank.study.report.names import MEASURE_NAMES, plural, scaling_name
from cbrank.study.report.scores import Ranking, Scores, ranking

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.05

Group = Literal["paper", "all"]
_GROUPS: dict[Group, str] = {"paper": "the paper's methods", "all": "all online methods"}


@dataclass(frozen=True)
class Comparison:
    """The outcome: average ranks, Friedman's p and a frame of the pairs' corrected p values.

    There is no frame where scikit-posthocs is not installed.
    """

    ranking: Ranking
    friedman: float
    pairs: Any

    @property
    def differ(self) -> bool:
        """Whether Friedman's test says that some methods differ at all."""
        return self.friedman < LEVEL

    @property
    def can_tell(self) -> bool:
        """Whether there are data sets enough to show that a pair differs."""
        methods = len(self.ranking.ranks)
        least = 2.0 ** (1 - len(self.ranking.datasets))
        return least * methods * (methods - 1) / 2 < LEVEL


def obstacle(ranking: Ranking) -> str:
    """Say why these ranks cannot be compared; empty if they can."""
    blocks, methods = len(ranking.datasets), len(ranking.ranks)
    if blocks >= 3 and methods >= 3:
        return ""
    return (
        "Not drawn: a comparison takes at least 3 data sets and 3 methods, "
        f"and there are {blocks} and {methods}."
    )


def compare(scores: Scores, ranking: Ranking) -> Comparison:
    """Test the methods of a ranking; the blocks are data sets, each its mean over runs.

    Parameters
    ----------
    scores : Scores
        The scores.
    ranking : Ranking
        The methods and data sets to compare, at least three of each.

    Returns
    -------
    Comparison
        The pairs' rows and columns are the methods' places in ``ranking.ranks``.
    """
    columns = [[scores.mean(d, method) for d in ranking.datasets] for method in ranking.ranks]
    tied = all(column == columns[0] for column in columns)
    friedman = 1.0 if tied else float(friedmanchisquare(*columns).pvalue)
    pairs = _pairs(columns) if can_import("scikit_posthocs") else None
    if pairs is not None and friedman >= LEVEL:  # then no single pair counts as different
        pairs = pairs * 0 + 1
    return Comparison(ranking, friedman, pairs)


def _pairs(columns: list[list[float]]) -> Any:
    # zsplit: methods that tie on every data set get p = 1, not NaN.
    pairs = _posthocs().posthoc_wilcoxon(columns, zero_method="zsplit", p_adjust="holm")
    pairs.index = pairs.columns = range(len(columns))
    return pairs


def _posthocs() -> Any:
    return need("scikit_posthocs", "comparing pairs of methods", "report")


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
        Without a picture where there is too little to compare, or no library to do it.
    """
    ranks = ranking(scores, methods)
    measure = MEASURE_NAMES[scores.measure]
    title = f"{measure[0].upper()}{measure[1:]}, {scores.kind} data sets: "
    title += f"{scaling_name(scores.scaling)}, {_GROUPS[group]}"
    if reason := obstacle(ranks):
        return Diagram(title, reason)
    outcome = compare(scores, ranks)
    if outcome.pairs is None or folder is None:
        return Diagram(title, _verdict(outcome))
    drawn = picture(
        lambda figure: _draw(figure, outcome, looks, title),
        key=f"ranks-{scores.kind}-{scores.measure}-{scores.scaling}-{group}",
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
    artists = _posthocs().critical_difference_diagram(
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
    if outcome.pairs is None:
        return f"{verdict} Pairs were not tested: scikit-posthocs is not installed."
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
