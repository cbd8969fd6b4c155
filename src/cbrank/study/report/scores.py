"""Means over runs, by data set and method, and the average ranks they give."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose, isfinite, nan

from scipy.stats import rankdata

from cbrank.datasets import registry
from cbrank.datasets.entry import Table as Kind
from cbrank.study.report.names import in_order, ordered_methods
from cbrank.study.report.study import Study
from cbrank.study.results import Result


@dataclass(frozen=True)
class Score:
    """Mean and standard deviation (NaN for a single run) over so many runs."""

    mean: float
    deviation: float
    runs: int


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The scores for one kind of data sets, one scaling and one measure.

    Attributes
    ----------
    kind, scaling, measure : str
        What the scores are about.
    datasets, methods : tuple of str
        The rows and columns, in the paper's order.
    means : mapping
        Means over runs by data set and method; a pair without a successful run is missing.
    samples : frozenset of str
        Data sets of which only a sample was at hand.
    """

    kind: Kind
    scaling: str
    measure: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    means: Mapping[tuple[str, str], Score]
    samples: frozenset[str]

    def mean(self, dataset: str, method: str) -> float:
        """Give a mean, or NaN."""
        score = self.means.get((dataset, method))
        return score.mean if score else nan

    def best(self, dataset: str, methods: Sequence[str]) -> float:
        """Give the highest mean of some methods on a data set, or NaN."""
        means = [self.mean(dataset, method) for method in methods]
        return max(filter(isfinite, means), default=nan)

    def runs(self, dataset: str) -> int:
        """Count the runs of the method that has most of them."""
        return max(self.means[key].runs for key in self.means if key[0] == dataset)


@dataclass(frozen=True)
class Ranking:
    """Average ranks, 1 being the best, over the data sets where all these methods have scores."""

    ranks: dict[str, float]
    datasets: tuple[str, ...]

    def in_order(self) -> list[str]:
        """Name the methods from the best to the worst."""
        return sorted(self.ranks, key=lambda method: self.ranks[method])

    def first(self) -> list[str]:
        """Name the best, all of them on a tie."""
        best = min(self.ranks.values())
        return [method for method, rank in self.ranks.items() if isclose(rank, best)]


def _score(values: Sequence[float]) -> Score | None:
    """Sum up the finite values of a few runs; None if there are none."""
    finite = [value for value in values if isfinite(value)]
    if not finite:
        return None
    deviation = statistics.stdev(finite) if len(finite) > 1 else nan
    # Twelve digits: what is equal must not differ by the rounding of a sum.
    return Score(round(statistics.fmean(finite), 12), deviation, len(finite))


def mean_scores(study: Study, kind: Kind, scaling: str, measure: str) -> Scores:
    """Sum up a study's runs.

    Parameters
    ----------
    study : Study
        The study.
    kind : {"benchmark", "high-dimensional"}
        The kind of data sets.
    scaling : str
        How the data were scaled.
    measure : str
        A column of numbers of ``results.csv``.

    Returns
    -------
    Scores
        The means.
    """
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in study.chosen(kind, scaling):
        groups.setdefault((result.dataset, result.method), []).append(result)
    scores = {key: _score([getattr(r, measure) for r in runs]) for key, runs in groups.items()}
    present = {key: value for key, value in scores.items() if value}
    return Scores(
        kind=kind,
        scaling=scaling,
        measure=measure,
        datasets=tuple(in_order({key[0] for key in present}, registry.names())),
        methods=tuple(ordered_methods({key[1] for key in present}, kind)),
        means=present,
        samples=frozenset(r.dataset for runs in groups.values() for r in runs if r.sample == 1),
    )


def ranking(scores: Scores, methods: Sequence[str]) -> Ranking:
    """Rank methods on each data set and average.

    A method with scores for less than half of the data sets is left out, and then every data set
    where one of the others has no score.

    Parameters
    ----------
    scores : Scores
        The means; higher is better.
    methods : sequence of str
        Which to rank.

    Returns
    -------
    Ranking
        Empty if nothing can be compared.
    """
    compared = [m for m in methods if 2 * _count(scores, m) >= len(scores.datasets)]
    blocks = [d for d in scores.datasets if all((d, m) in scores.means for m in compared)]
    if not compared or not blocks:
        return Ranking({}, ())
    ranks = rankdata([[-scores.mean(d, m) for m in compared] for d in blocks], axis=1).mean(axis=0)
    return Ranking(dict(zip(compared, ranks.tolist(), strict=True)), tuple(blocks))


def _count(scores: Scores, method: str) -> int:
    return sum((dataset, method) in scores.means for dataset in scores.datasets)
