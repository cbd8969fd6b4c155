"""The C of all partitions, where it is "auto".

Partitions cannot choose each for itself: what was learned with one C does not add up with what was
learned with another. Learners with every C take the first rows of some partitions, and the pairs
that each ranked right before it learned from them are counted over all of these.
"""

from collections.abc import Sequence
from contextlib import closing
from copy import deepcopy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cbrank.dask.learning import Partition, Seed, learn_chunk
from cbrank.rankers import CBRanker, _race

_PARTITIONS = 16  # that are looked at
_ROWS = 2**15  # in all of them

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


def tallies(
    partition: Partition, prior: CBRanker, seed: Seed, partitions: int
) -> NDArray[np.int64]:
    """Return what a learner with each C counts among the first rows of a partition."""
    order = seed.of(partition, prior) if seed.shuffle else None
    learners = [deepcopy(prior).set_params(C=C) for C in _race.grid()]
    try:
        with closing(partition.chunks(order, prior.n_features_in_)) as chunks:
            for chunk in chunks:
                X, y, weights = (_first(part, _ROWS // partitions) for part in chunk)
                for learner in learners:
                    learn_chunk(partition, learner, X, y, weights)
                break
    except ValueError as error:
        raise partition.explained(error, prior) from None
    return np.array([learner._model.tally for learner in learners])


def _first(part: Any, rows: int) -> Any:
    return None if part is None else _safe_indexing(part, slice(rows))


def race(tallies: NDArray[np.int64]) -> _race.Race:
    """Return the race that ended with these tallies, the best C first among those alive."""
    C = _race.grid()
    ended = _race.Race(C, tallies, np.arange(len(C)))
    return ended._replace(alive=_race.standings(ended))
