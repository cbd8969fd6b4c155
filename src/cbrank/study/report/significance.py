"""Whether methods differ over data sets: Friedman's test, then Wilcoxon's with Holm's correction."""

from dataclasses import dataclass
from typing import Any

from scipy.stats import friedmanchisquare

from cbrank.optional import need
from cbrank.study.report.grids import Grid, Ranking

LEVEL = 0.05


@dataclass(frozen=True)
class Comparison:
    """The outcome: average ranks, Friedman's p and a frame of the pairs' corrected p values."""

    ranking: Ranking
    friedman: float
    pairs: Any

    @property
    def differ(self) -> bool:
        """Whether Friedman's test says that some methods differ at all."""
        return self.friedman < LEVEL

    @property
    def can_tell(self) -> bool:
        """Whether so few data sets could ever show that a pair differs."""
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


def compare(grid: Grid, ranking: Ranking) -> Comparison:
    """Test the methods of a ranking; the blocks are data sets, each its mean over runs.

    Parameters
    ----------
    grid : Grid
        The scores.
    ranking : Ranking
        The methods and data sets to compare, at least three of each.

    Returns
    -------
    Comparison
        The pairs' rows and columns are the methods' places in ``ranking.ranks``.
    """
    columns = [[grid.mean(d, method) for d in ranking.datasets] for method in ranking.ranks]
    # zsplit: methods that tie on every data set get p = 1, not NaN.
    pairs = need("scikit_posthocs", "comparing methods", "report").posthoc_wilcoxon(
        columns, zero_method="zsplit", p_adjust="holm"
    )
    pairs.index = pairs.columns = range(len(columns))
    tied = all(column == columns[0] for column in columns)
    friedman = 1.0 if tied else float(friedmanchisquare(*columns).pvalue)
    return Comparison(ranking, friedman, pairs if friedman < LEVEL else pairs * 0 + 1)
