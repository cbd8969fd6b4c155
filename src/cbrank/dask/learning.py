"""What a worker does with one partition. Nothing that is handed in is changed.

So a task that is done again, after a worker was lost, gives the same to the last bit.
"""

from collections.abc import Generator
from copy import deepcopy
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cbrank.dask.compiling import one_at_a_time
from cbrank.rankers import CBRanker

CHUNK_ROWS = 8192

Chunk = tuple[Any, NDArray[Any], NDArray[np.float64] | None]  # rows, labels, weights


class Partition(Protocol):
    """Some of the rows, on a worker."""

    number: int

    def chunks(
        self, random: np.random.Generator | None, width: int
    ) -> Generator[Chunk, None, None]:
        """Yield the rows in chunks, shuffled by `random` if there is one."""

    def make_room(self, ranker: CBRanker, width: int) -> None:
        """Widen a ranker to rows of this width, where rows may widen."""

    def explained(self, error: ValueError, prior: CBRanker) -> ValueError:
        """Return an error in reading or learning from these rows as one that says where it is."""


class Form(NamedTuple):
    """What must be known of rows before the first is learned from."""

    classes: NDArray[Any]
    width: int
    sparse: bool
    names: NDArray[Any] | None = None


class Seed(NamedTuple):
    """Where chance comes from, and whether it orders the rows."""

    number: int
    shuffle: bool

    def of(self, partition: Partition, prior: CBRanker) -> np.random.Generator:
        """Return the generator of a partition; each round and call has others."""
        return np.random.default_rng([self.number, int(prior.n_seen_.sum()), partition.number])


def start(ranker: CBRanker, form: Form) -> CBRanker:
    """Return the ranker before its first row."""
    ranker = deepcopy(ranker)
    ranker.start(form.width, form.classes, sparse=form.sparse)
    if form.names is not None:
        ranker.feature_names_in_ = form.names
    return ranker


def learn(partition: Partition, prior: CBRanker, seed: Seed) -> CBRanker:
    """Return what `prior` becomes by learning from a partition."""
    random, ranker = seed.of(partition, prior), deepcopy(prior)
    ranker.reseed(int(random.integers(1, 2**63)))
    order = random if seed.shuffle else None
    try:
        for _ in range(ranker.n_passes):
            for chunk in partition.chunks(order, ranker.n_features_in_):
                learn_chunk(partition, ranker, *chunk)
    except ValueError as error:
        raise partition.explained(error, prior) from None
    return ranker


def learn_chunk(
    partition: Partition,
    ranker: CBRanker,
    X: Any,
    y: NDArray[Any],
    weights: NDArray[np.float64] | None,
) -> None:
    """Learn from a chunk of a partition."""
    partition.make_room(ranker, X.shape[1])
    with one_at_a_time(type(ranker).__name__):
        ranker.partial_fit(X, y, sample_weight=weights)


def rows_since(prior: CBRanker, ranker: CBRanker) -> int:
    """Return how many rows were learned from."""
    return int((ranker.n_seen_ - prior.n_seen_).sum())
