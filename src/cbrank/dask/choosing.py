"""The C of all partitions, where it is "auto".

Partitions cannot choose each for itself: what was learned with one C does not add up with what was
learned with another, and a short partition tells too little. So one `CBRanker(C="auto")` takes the
first rows of some partitions, one after the other, and its C goes for all.
"""

import contextlib
import itertools
import math
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import TypeVar

import numpy as np
from sklearn.utils import _safe_indexing

from cbrank.dask.compiling import one_at_a_time
from cbrank.dask.learning import Chunk, Partition, Seed
from cbrank.rankers import CBRanker

_PARTITIONS = 16  # that are looked at
_ROWS = 2**13  # in all of them: twice what a race takes where no class is rare

Item = TypeVar("Item")


def some(parts: Sequence[Item]) -> list[Item]:
    """Return the partitions to look at, spread evenly.

    Examples
    --------
    >>> some(range(64))
    [0, 4, 8, 13, 17, 21, 25, 29, 34, 38, 42, 46, 50, 55, 59, 63]
    """
    places = np.linspace(0, len(parts) - 1, min(len(parts), _PARTITIONS)).round()
    return [parts[int(place)] for place in places]


def first_rows(partition: Partition, prior: CBRanker, seed: Seed, partitions: int) -> list[Chunk]:
    """Return the first rows of a partition, as one chunk or none."""
    order = seed.of(partition, prior) if seed.shuffle else None
    rows = slice(math.ceil(_ROWS / partitions))
    try:
        with contextlib.closing(partition.chunks(order, prior.n_features_in_)) as chunks:
            return [
                (_safe_indexing(X, rows), y[rows], None if weights is None else weights[rows])
                for X, y, weights in itertools.islice(chunks, 1)
            ]
    except ValueError as error:
        raise partition.explained(error, prior) from None


def race(heads: Iterable[Sequence[Chunk]], prior: CBRanker) -> CBRanker:
    """Return what `prior` becomes by the first rows of partitions.

    Rows that cannot be learned from are passed over here: learning from all will say what is wrong.
    """
    ranker = deepcopy(prior)
    for X, y, weights in itertools.chain.from_iterable(heads):
        if X.shape[1] > ranker.n_features_in_:
            ranker.resize(X.shape[1])
        with one_at_a_time(type(ranker).__name__), contextlib.suppress(ValueError):
            ranker.partial_fit(X, y, sample_weight=weights)
    return ranker
