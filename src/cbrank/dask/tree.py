"""Merging in a tree whose shape depends on nothing but the number of partitions."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from cbrank.merging import merge, tempered
from cbrank.rankers import CBRanker

_BRANCHES = 4


def reduced(items: Sequence[Any], combine: Callable[[list[Any]], Any]) -> Any:
    """Combine neighbours, and what came of them, until one is left.

    Examples
    --------
    >>> reduced(["a", "b", "c", "d", "e", "f"], lambda some: f"({''.join(some)})")
    '((abcd)(ef))'
    """
    items = list(items)
    while len(items) > 1:
        some = [items[begin : begin + _BRANCHES] for begin in range(0, len(items), _BRANCHES)]
        items = [combine(few) if len(few) > 1 else few[0] for few in some]
    return items[0]


def merged(rankers: Sequence[CBRanker], prior: CBRanker) -> CBRanker:
    """Merge rankers that learned from `prior` on; narrow ones have the prior's variance beyond."""
    width = max(ranker.n_features_in_ for ranker in (*rankers, prior))
    return merge([_widened(ranker, width) for ranker in rankers], prior=_widened(prior, width))


def calmed(ranker: CBRanker, prior: CBRanker, partitions: int) -> CBRanker:
    """Return a merged ranker, tempered if it went on from what was learned before."""
    if partitions == 1 or not prior.n_seen_.any():
        return ranker
    return tempered(ranker, _widened(prior, ranker.n_features_in_), partitions)


def _widened(ranker: CBRanker, width: int) -> CBRanker:
    if ranker.n_features_in_ == width:
        return ranker
    ranker = deepcopy(ranker)
    ranker.resize(width)
    return ranker
