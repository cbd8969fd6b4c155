"""What workers run: deciding what columns are, learning a partition, and the merge tree.

A task never changes what it is given. So one that is run again, because its worker was lost, gives
the same ranker to the last bit.
"""

import contextlib
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cbrank.dask.cluster import compiled_once
from cbrank.features.table import Table
from cbrank.merging import merge, tempered

if TYPE_CHECKING:
    from cbrank.rankers import CBRanker


CHUNK_ROWS = 8192  # as in cbrank.streams: few enough to be held beside a partition
_FIRST_PARTITIONS = 16  # at most, whose first rows decide what columns are
_FIRST_ROWS = 2**13  # of all together
_FEW_ROWS = 128  # of one partition before those of the next, where first rows are mixed
_BRANCHES = 4  # rankers merged by one task, so that no worker has to hold many of them

Item = TypeVar("Item")
Chunk = tuple[Any, NDArray[Any], NDArray[np.float64] | None]  # rows, labels, weights


class Partition(Protocol):
    """Some of the rows: a block in memory or a file."""

    number: int

    def chunks(
        self, random: np.random.Generator | None, ranker: "CBRanker | None"
    ) -> Generator[Chunk, None, None]:
        """Yield the rows in chunks, for a ranker, shuffled by `random` if it is not None."""

    def widen(self, ranker: "CBRanker", width: int) -> None:
        """Make room in a ranker for rows of this width, where rows may get wider."""

    def located(self, error: ValueError, prior: "CBRanker") -> ValueError:
        """Return an error met in these rows as one that says where."""


class Schema(NamedTuple):
    """What must be known of all rows before the first is learned from."""

    classes: NDArray[Any]
    width: int
    sparse: bool
    names: NDArray[Any] | None = None


class Seed(NamedTuple):
    """The seed of a fit, and whether rows are shuffled by it."""

    number: int
    shuffle: bool

    def generator(
        self, partition: Partition, prior: "CBRanker | None" = None
    ) -> np.random.Generator:
        """Return the generator of a partition, another one in each round and call."""
        seen = 0 if prior is None else int(prior.n_seen_.sum())
        return np.random.default_rng([self.number, seen, partition.number])


# Learning -----------------------------------------------------------------------------------------


def start(ranker: "CBRanker", schema: Schema) -> "CBRanker":
    """Return the ranker before its first row."""
    ranker = deepcopy(ranker)
    ranker.start(schema.width, schema.classes, sparse=schema.sparse)
    if schema.names is not None:
        ranker.feature_names_in_ = schema.names
    return ranker


def learn(
    partition: Partition, prior: "CBRanker", seed: Seed, again: bool = False, known: int = 0
) -> "CBRanker":
    """Return what `prior` becomes by learning from a partition, perhaps not for the first time.

    The first `known` rows are those of `head_of_table`, which it has learned from. Rows that are
    shuffled are no stream in time, so that nothing is forgotten.
    """
    random, ranker = seed.generator(partition, prior), deepcopy(prior)
    ranker.reseed(int(random.integers(1, 2**63)))
    try:
        for number in range(ranker.n_passes):
            take = ranker.learn_again if again or number else _in_order(ranker, seed)
            first = known and not again and not number
            order = (seed.generator(partition) if first else random) if seed.shuffle else None
            for X, y, weights in _after(partition.chunks(order, ranker), known if first else 0):
                partition.widen(ranker, X.shape[1])
                with compiled_once(type(ranker).__name__):
                    take(X, y, sample_weight=weights)
    except ValueError as error:
        raise partition.located(error, prior) from None
    return ranker


def _in_order(ranker: Any, seed: Seed) -> Any:
    """Return how a ranker takes rows that it has not seen, shuffled or not."""
    return ranker.learn_shuffled if seed.shuffle else ranker.partial_fit


def rows_since(prior: "CBRanker", ranker: "CBRanker") -> int:
    """Return how many rows a ranker has learned from since it was `prior`."""
    return int((ranker.n_seen_ - prior.n_seen_).sum())


# What columns of tables are -----------------------------------------------------------------------
#
# Partitions cannot decide it each for itself: rankers that cut columns at different places do not merge
# well. So one ranker learns from the first rows of some partitions, one partition after the other, and
# all partitions go on from it. Of columns of numbers only the units are decided, which merging changes.


def evenly_spaced(parts: Sequence[Item]) -> list[Item]:
    """Return the partitions whose first rows decide what columns are.

    Examples
    --------
    >>> evenly_spaced(range(64))
    [0, 4, 8, 13, 17, 21, 25, 29, 34, 38, 42, 46, 50, 55, 59, 63]
    """
    places = np.linspace(0, len(parts) - 1, min(len(parts), _FIRST_PARTITIONS)).round()
    return [parts[int(place)] for place in places]


def share_of(partitions: int) -> int:
    """Return how many rows of each partition are among the first rows."""
    return math.ceil(_FIRST_ROWS / partitions)


def _first(chunks: Iterable[Chunk], count: int) -> list[Chunk]:
    """Return the first so many rows."""
    found = list[Chunk]()
    for chunk in chunks:
        found.append(_rows_of(chunk, slice(count)))
        count -= len(chunk[1])
        if count <= 0:
            break
    return found


def _after(chunks: Iterable[Chunk], count: int) -> Iterator[Chunk]:
    """Give the rows after the first so many, in chunks that have rows."""
    for chunk in chunks:
        rows = len(chunk[1])
        if count < rows:
            yield _rows_of(chunk, slice(count, None)) if count > 0 else chunk
        count -= rows


def _rows_of(chunk: Chunk, rows: slice) -> Chunk:
    X, y, weights = chunk
    some = X.take(rows) if isinstance(X, Table) else _safe_indexing(X, rows)
    return some, y[rows], None if weights is None else weights[rows]


def head_of_table(partition: Partition, seed: Seed, partitions: int) -> list[Chunk]:
    """Return a partition's share of the rows that decide what columns are."""
    order = seed.generator(partition) if seed.shuffle else None
    with contextlib.closing(partition.chunks(order, None)) as chunks:
        return _first(chunks, share_of(partitions))


def begun(
    heads: Sequence[Sequence[Chunk]], ranker: Any, classes: Any, names: Sequence[int], seed: Seed
) -> Any:
    """Return the ranker that has learned the first rows, and so decided what columns are.

    If rows are shuffled, it takes a few of each partition at a time, since partitions may differ.
    """
    ranker = deepcopy(ranker)
    take = _in_order(ranker, seed)
    for number, (X, y, weights) in (
        _by_turns(heads, names) if seed.shuffle else _in_turn(heads, names)
    ):
        try:
            with compiled_once(type(ranker).__name__):
                take(X, y, classes=classes, sample_weight=weights)
        except ValueError as error:
            raise ValueError(f"Partition {number}: {error}") from None
    return ranker


def _in_turn(heads: Sequence[Sequence[Chunk]], names: Sequence[int]) -> Iterator[tuple[int, Chunk]]:
    """Give the rows of one partition after the other, with its number."""
    for number, head in zip(names, heads, strict=True):
        yield from ((number, chunk) for chunk in head)


def _by_turns(
    heads: Sequence[Sequence[Chunk]], names: Sequence[int]
) -> Iterator[tuple[int, Chunk]]:
    """Give the same rows, a few of each partition at a time."""
    left = [(number, chunk) for number, chunk in _in_turn(heads, names) if len(chunk[1])]
    for begin in range(0, max((len(chunk[1]) for _, chunk in left), default=0), _FEW_ROWS):
        for number, chunk in left:
            if begin < len(chunk[1]):
                yield number, _rows_of(chunk, slice(begin, begin + _FEW_ROWS))


# Merging ------------------------------------------------------------------------------------------


def tree_reduced(items: Sequence[Any], combine: Callable[[list[Any]], Any]) -> Any:
    """Combine neighbours, and what comes of them, until one is left.

    The tree depends on nothing but the number of items, so that the order of sums, and with it
    their rounding, does not depend on which worker is done first.

    Examples
    --------
    >>> tree_reduced(["a", "b", "c", "d", "e", "f"], lambda some: f"({''.join(some)})")
    '((abcd)(ef))'
    """
    items = list(items)
    while len(items) > 1:
        groups = [items[begin : begin + _BRANCHES] for begin in range(0, len(items), _BRANCHES)]
        items = [combine(group) if len(group) > 1 else group[0] for group in groups]
    return items[0]


def merged(rankers: Sequence["CBRanker"], prior: "CBRanker") -> "CBRanker":
    """Merge rankers that went on from `prior`; features that one has not met are as in the prior."""
    width = max(ranker.n_features_in_ for ranker in (*rankers, prior))
    return merge([_widened(ranker, width) for ranker in rankers], prior=_widened(prior, width))


def end_of_round(ranker: "CBRanker", prior: "CBRanker", partitions: int) -> "CBRanker":
    """Return the merged ranker of a round, tempered unless the prior had learned nothing."""
    if partitions == 1 or prior.waits or not prior.n_seen_.any():
        return ranker
    return tempered(ranker, _widened(prior, ranker.n_features_in_), partitions)


def _widened(ranker: "CBRanker", width: int) -> "CBRanker":
    if ranker.n_features_in_ == width:
        return ranker
    ranker = deepcopy(ranker)
    ranker.resize(width)
    return ranker
