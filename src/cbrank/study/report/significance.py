"""Whether methods differ over data sets: tests of average ranks and of pairs.

Friedman's test and Iman and Davenport's, which is less conservative, ask whether the methods differ
at all; Wilcoxon's with Holm's correction asks which pairs do, Nemenyi's which average ranks do. The
formulas are those of Demšar, *Statistical comparisons of classifiers over multiple data sets*,
JMLR 7, 2006.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, sqrt

import numpy as np
from scipy.stats import f, friedmanchisquare, studentized_range, wilcoxon

from cbrank.study.report.scores import Ranking, Scores

LEVEL = 0.05


@dataclass(frozen=True)
class Statistic:
    """A test's statistic and its p value."""

    value: float
    p: float


@dataclass(frozen=True)
class Comparison:
    """The outcome for the methods of a ranking.

    Attributes
    ----------
    ranking : Ranking
        The average ranks and the data sets.
    friedman, iman_davenport : Statistic
        Whether the methods differ at all.
    pairs : dict
        Wilcoxon's p values by pair, after Holm's correction; empty if the methods do not differ.
    """

    ranking: Ranking
    friedman: Statistic
    iman_davenport: Statistic
    pairs: dict[frozenset[str], float]

    @property
    def differ(self) -> bool:
        """Whether Iman and Davenport's test says that some methods differ at all."""
        return self.iman_davenport.p < LEVEL

    @property
    def can_tell(self) -> bool:
        """Whether there are data sets enough to show that a pair differs."""
        methods = len(self.ranking.ranks)
        least = 2.0 ** (1 - len(self.ranking.datasets))
        return least * methods * (methods - 1) / 2 < LEVEL

    @property
    def critical_difference(self) -> float:
        """Nemenyi's critical difference."""
        return critical_difference(len(self.ranking.ranks), len(self.ranking.datasets))

    def beaten(self) -> list[str]:
        """Name the methods from which the first differs, by the pairs' p values."""
        first, *others = self.ranking.in_order()
        return [m for m in others if self.pairs.get(frozenset({first, m}), 1.0) < LEVEL]

    def groups(self) -> list[list[str]]:
        """Name the methods whose average ranks Nemenyi's test cannot tell apart, group by group."""
        order = self.ranking.in_order()
        ranks = [self.ranking.ranks[method] for method in order]
        return [order[slice(*group)] for group in joined(ranks, self.critical_difference)]


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
        Without pairs if the methods do not differ.
    """
    columns = {m: [scores.mean(d, m) for d in ranking.datasets] for m in ranking.ranks}
    first, *others = columns.values()
    tied = all(column == first for column in others)
    found = (0.0, 1.0) if tied else friedmanchisquare(*columns.values())
    friedman = Statistic(*map(float, found))
    iman = iman_davenport(friedman.value, len(columns), len(ranking.datasets))
    pairs = _pairs(columns) if iman.p < LEVEL else {}
    return Comparison(ranking, friedman, iman, pairs)


def _pairs(columns: dict[str, list[float]]) -> dict[frozenset[str], float]:
    pairs = list(combinations(columns, 2))
    # zsplit: methods that tie on every data set get p = 1, not NaN.
    found = [wilcoxon(columns[a], columns[b], zero_method="zsplit").pvalue for a, b in pairs]
    return dict(zip(map(frozenset, pairs), holm(found), strict=True))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p values for their number, by Holm's step-down procedure.

    Parameters
    ----------
    p_values : sequence of float
        The p values of all tests.

    Returns
    -------
    list of float
        The smallest times their number, the next times one less and so on, never less than the
        one before it and at most 1; in the order given.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03, 0.005])
    [0.03, 0.06, 0.06, 0.02]
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return [float(value) for value in np.minimum(corrected, 1.0)]


def iman_davenport(friedman: float, methods: int, blocks: int) -> Statistic:
    """Turn Friedman's statistic into Iman and Davenport's.

    Parameters
    ----------
    friedman : float
        Friedman's chi-squared.
    methods, blocks : int
        How many methods were ranked, and on how many data sets.

    Returns
    -------
    Statistic
        F with ``methods - 1`` and ``(methods - 1) * (blocks - 1)`` degrees of freedom, and p.

    Examples
    --------
    Demšar's example, four methods on 14 data sets:

    >>> found = iman_davenport(9.28, methods=4, blocks=14)
    >>> print(f"F = {found.value:.2f}, p = {found.p:.3f}")
    F = 3.69, p = 0.020
    """
    left = blocks * (methods - 1) - friedman
    statistic = (blocks - 1) * friedman / left if left > 0 else inf
    free = methods - 1, (methods - 1) * (blocks - 1)
    return Statistic(statistic, float(f.sf(statistic, *free)))


def critical_difference(methods: int, blocks: int) -> float:
    """Return Nemenyi's critical difference of average ranks, at a level of 5 %.

    Parameters
    ----------
    methods, blocks : int
        How many methods were ranked, and on how many data sets.

    Returns
    -------
    float
        Average ranks that lie this far apart or more differ.

    Examples
    --------
    Demšar's example, four methods on 14 data sets:

    >>> round(critical_difference(methods=4, blocks=14), 2)
    1.25
    """
    q = float(studentized_range.ppf(1 - LEVEL, methods, inf)) / sqrt(2)
    return q * sqrt(methods * (methods + 1) / (6 * blocks))


def joined(ranks: Sequence[float], least: float) -> list[tuple[int, int]]:
    """Find the largest groups of neighbours that all lie less than `least` apart.

    Parameters
    ----------
    ranks : sequence of float
        Average ranks in increasing order.
    least : float
        The critical difference.

    Returns
    -------
    list of tuple of int
        First place of each group and the place behind its last. Groups of one are left out, and
        groups within others.

    Examples
    --------
    >>> joined([1.0, 1.5, 2.2, 4.0], least=1.25)
    [(0, 3)]
    >>> joined([1.0, 2.0, 3.0, 5.0], least=1.25)
    [(0, 2), (1, 3)]
    """
    ends = [sum(other < rank + least for other in ranks) for rank in ranks]
    return [
        (start, end)
        for start, end in enumerate(ends)
        if end - start > 1 and (start == 0 or end > ends[start - 1])
    ]
