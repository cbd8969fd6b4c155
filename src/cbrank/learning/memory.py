"""A uniform sample of the rows of a stream, from all its times, in bounded memory.

Every row has a random key, a function of the seed and of its number in the stream, and the rows with the least
keys are kept. So the sample is the same however the stream is split into chunks, and samples of several streams
are merged by their keys. Rows are kept as they came: what is decided about columns can be decided again.
A `position` is that of a record: rows of all blocks that ended, and of the one that has not.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.features.table import Table, Words

Arrays = dict[str, NDArray[Any]]
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

# A fit of so many rows ranks as well as one of three times as many (docs/_keeping_table.md), and takes a second.
MOST_ROWS = 2**14
MOST_BYTES = 2**24  # of these rows, 16 MiB
_NO_LIMIT = np.iinfo(np.uint64).max
_LOOSE = 1024  # rows that may wait for the sample to be drawn anew, and a fourth of it
_LONGEST = 1024  # rows of a block
_OF_WORD = 12  # bytes of a word, beside its characters
_FIELDS = "labels", "weights", "numbers", "keys"


class Rows(NamedTuple):
    """Some rows of a stream."""

    X: Any  # an array, a CSR array or a Table
    labels: Counts
    weights: Floats
    numbers: Counts  # how many rows of the stream came before each
    keys: NDArray[np.uint64]

    def take(self, places: Any) -> "Rows":
        """Return some of the rows."""
        X = self.X.take(places) if isinstance(self.X, Table) else self.X[places]
        return Rows(X, *(array[places] for array in self[1:]))


class Block:
    """The rows of the block, in the parts in which they came; parts are added in place.

    A part is some rows, or a single one: its values, its label and its weight.
    """

    __slots__ = ("count", "parts")

    def __init__(self, parts: Sequence[tuple[Any, Counts, Floats]] = ()) -> None:
        self.parts: list[tuple[Any, Any, Any]] = [*parts]
        self.count = sum(labels.size for _, labels, _ in parts)

    def add(self, X: Any, labels: Counts, weights: Floats) -> None:
        """Add rows that are about to be learned."""
        self.parts.append((X, labels, weights))
        self.count += labels.size

    def add_row(self, x: Floats, label: int, weight: float) -> None:
        """Add a row that is about to be learned."""
        self.parts.append((x, label, weight))
        self.count += 1

    def drop_row(self) -> None:
        """Take back the row that was added last."""
        self.parts.pop()
        self.count -= 1

    def learned(self, rows: int) -> "Block":
        """Return the block without rows that an interrupt kept from being learned."""
        if self.count == rows:
            return self
        if not rows:
            return Block()
        X, labels, weights = self.whole()
        some = slice(0, rows)
        return Block(
            [(X.take(some) if isinstance(X, Table) else X[some], labels[some], weights[some])]
        )

    def whole(self) -> tuple[Any, Counts, Floats]:
        """Return all rows as one part."""
        parts = list[tuple[Any, ...]]()
        for single, group in groupby(self.parts, lambda part: type(part[1]) is int):
            some = [*group]
            parts += [tuple(map(np.array, zip(*some, strict=True)))] if single else some
        X, labels, weights = zip(*parts, strict=True)
        return stacked(X), np.concatenate(labels), np.concatenate(weights)


class Memory(NamedTuple):
    """The sample, and the rows of the block."""

    seed: int
    limit: int  # rows with greater keys are not kept
    kept: tuple[
        Rows, ...
    ]  # the sample as it was drawn last, and rows since that are within the limit
    block: Block

    def with_rows(self, filled: int, X: Any, labels: Counts, weights: Floats) -> "Memory":
        """Return the memory with rows that are about to be learned, after so many of the block."""
        block = self.block.learned(filled)
        block.add(X, labels, weights)
        return self._replace(block=block)

    def after_block(self, position: Counts) -> "Memory":
        """Return the memory at the beginning of the next block."""
        rows = self.of_block(position)
        if rows is None:
            return self
        rows = rows.take(rows.keys < self.limit)
        fresh = self._replace(
            block=Block(), kept=(*self.kept, rows) if rows.labels.size else self.kept
        )
        if not fresh.kept:
            return fresh
        loose = sum(part.labels.size for part in fresh.kept[1:])
        return fresh.drawn() if loose > _LOOSE + fresh.kept[0].labels.size // 4 else fresh

    def of_block(self, position: Counts) -> Rows | None:
        """Return the rows of the block that have been learned."""
        block = self.block.learned(int(position[1]))
        if not block.count:
            return None
        numbers = int(position[0]) + np.arange(block.count)
        return Rows(*block.whole(), numbers, keys_of(self.seed, numbers))

    def drawn(self) -> "Memory":
        """Return the memory with its sample in one part."""
        if len(self.kept) < 2:
            return self
        rows = joined(self.kept)
        order = np.argsort(rows.keys, kind="stable")
        within = np.cumsum(_sizes(rows.X)[order[:MOST_ROWS]]) <= MOST_BYTES
        count = int(within.sum())
        limit = int(rows.keys[order[count]]) if count < order.size else self.limit
        return self._replace(limit=limit, kept=(rows.take(np.sort(order[:count])),))

    def rows(self, position: Counts) -> Rows | None:
        """Return the sample of all rows learned so far, in their order."""
        block = self.of_block(position)
        parts = self.kept if block is None else (*self.kept, block)
        known = self._replace(kept=parts).drawn().kept
        return known[0] if known else None


def begin(seed: int) -> Memory:
    """Return the memory before the first row."""
    return Memory(seed, int(_NO_LIMIT), (), Block())


def keys_of(seed: int, numbers: Counts) -> NDArray[np.uint64]:
    """Return the random keys of rows (the mixing function of SplitMix64)."""
    with np.errstate(over="ignore"):
        mixed = np.uint64(seed % 2**64) + (numbers.astype(np.uint64) + 1) * np.uint64(
            0x9E3779B97F4A7C15
        )
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), np.uint64)


def stacked(parts: Sequence[Any]) -> Any:
    """Return the rows of several tables or arrays; features that some do not have are 0 there."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], Table):
        return Table.concatenated(parts)
    width = max(part.shape[1] for part in parts)
    if sp.issparse(parts[0]):
        return sp.vstack([_widened(part, width) for part in parts], format="csr")
    return np.concatenate(
        [
            np.pad(part, ((0, 0), (0, width - part.shape[1]))) if part.shape[1] < width else part
            for part in parts
        ]
    )


def _widened(rows: Any, width: int) -> Any:
    return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], width))


def joined(parts: Sequence[Rows]) -> Rows:
    """Return several parts as one."""
    X, *others = zip(*parts, strict=True)
    return Rows(stacked(X), *map(np.concatenate, others))


def _sizes(X: Any) -> Any:
    """Return about how many bytes each row takes; this does not depend on the rows beside it."""
    if sp.issparse(X):
        return 8 + 12 * np.diff(X.indptr).astype(np.int64)
    if not isinstance(X, Table):
        return np.full(len(X), 8 * X.shape[1])
    total = np.zeros(len(X), np.int64)
    for column in X.columns:
        if isinstance(column, Words):
            lengths = [_OF_WORD + len(value) for value in column.values]
            total += np.array([*lengths, _OF_WORD])[column.codes]
        else:
            total += 8
    return total


def merged(
    memories: Sequence[Memory | None], positions: Sequence[Counts], known: int
) -> Memory | None:
    """Return the memory of rankers that learned apart, in this order, after `known` rows that all have."""
    own = [memory for memory in memories if memory is not None]
    if not own:
        return None
    begun = [int(position[0]) for position in positions]
    limit, parts, first = min(memory.limit for memory in own), list[Rows](), known
    last = (
        known + sum(rows - known for rows in begun) - 1
    )  # rows of blocks count as those before them
    for place, (memory, position) in enumerate(zip(own, positions, strict=True)):
        block = memory.of_block(position)
        for rows in (*memory.kept, *([] if block is None or last < 0 else [block])):
            some = rows.take((rows.keys < limit) & ((rows.numbers >= known) | (place == 0)))
            moved = some.numbers + np.where(some.numbers < known, 0, first - known)
            moved = np.minimum(moved, max(first + begun[place] - known - 1, 0))
            parts.append(some._replace(numbers=np.minimum(moved, last)))
        first += begun[place] - known
    return Memory(own[0].seed, limit, tuple(parts), Block()).drawn()


# In files -----------------------------------------------------------------------------------------


def taken_out(memory: Memory, position: Counts) -> tuple[Arrays, dict[str, Any]]:
    """Return arrays and facts for files."""
    memory, block = memory.drawn(), memory.of_block(position)
    parts = [*memory.kept, *([] if block is None else [block])]
    facts = {"seed": memory.seed, "limit": memory.limit, "kind": "none"}
    if not parts:
        return {}, facts
    rows = joined(parts)
    arrays = {name: getattr(rows, name) for name in _FIELDS}
    if isinstance(rows.X, Table):
        kind, own = "table", rows.X.state()
    elif sp.issparse(rows.X):
        kind, own = (
            "sparse",
            {"data": rows.X.data, "indices": rows.X.indices, "indptr": rows.X.indptr},
        )
    else:
        kind, own = "dense", {"values": rows.X}
    return arrays | {f"rows.{name}": array for name, array in own.items()}, facts | {"kind": kind}


def from_arrays(
    arrays: Arrays, facts: Any, names: Sequence[str] | None, position: Counts
) -> Memory:
    """Return a saved memory; `names` are those of the columns of tables. Refuse what is not sound."""
    match facts:
        case {"seed": int(seed), "limit": int(limit), "kind": str(kind)} if (
            0 <= limit <= int(_NO_LIMIT)
        ):
            memory = Memory(seed, limit, (), Block())
        case _:
            raise ValueError("it has no sound memory of rows")
    if kind == "none":
        if arrays:
            raise ValueError("its memory has rows and says that it has none")
        return memory
    own = {
        name.removeprefix("rows."): array for name, array in arrays.items() if name not in _FIELDS
    }
    X = _rows_from(kind, own, names)
    labels, weights, numbers, keys = (arrays.get(name, np.zeros(0)) for name in _FIELDS)
    begun, filled = position.tolist()
    if not (
        labels.shape == weights.shape == numbers.shape == keys.shape == (X.shape[0],)
        and labels.dtype == numbers.dtype == np.int64
        and weights.dtype == np.float64
        and keys.dtype == np.uint64
        and np.isin(labels, [0, 1]).all()
        and np.isfinite(weights).all()
        and (weights > 0.0).all()
        and (np.diff(numbers) >= 0).all()
        and 0 < numbers.size <= MOST_ROWS + _LONGEST
        and numbers[0] >= 0
        and numbers[-1] < begun + filled
    ):
        raise ValueError("the rows of its memory have no sound labels or numbers")
    rows = Rows(X, labels, weights, numbers, keys)
    old = numbers < begun
    if not np.array_equal(numbers[~old], begun + np.arange(filled)):
        raise ValueError("it has not the rows of its block")
    if not np.array_equal(keys[~old], keys_of(seed, numbers[~old])):
        raise ValueError("the rows of its block have other keys")
    kept, block = rows.take(old), rows.take(~old)
    memory = memory._replace(kept=(kept,) if kept.labels.size else ())
    return memory._replace(block=Block([block[:3]] if filled else []))


def _rows_from(kind: str, arrays: Arrays, names: Sequence[str] | None) -> Any:
    if kind == "table" and names is not None:
        return Table.from_state(arrays, names)
    if kind == "dense" and names is None and arrays.keys() == {"values"}:
        values = arrays["values"]
        if values.ndim == 2 and values.dtype == np.float64 and np.isfinite(values).all():
            return values
    if kind == "sparse" and names is None and arrays.keys() == {"data", "indices", "indptr"}:
        data, indices, indptr = (arrays[name] for name in ("data", "indices", "indptr"))
        if (
            data.ndim == indices.ndim == indptr.ndim == 1
            and data.dtype == np.float64
            and np.isfinite(data).all()
            and data.size == indices.size
            and indices.dtype.kind == indptr.dtype.kind == "i"
            and indptr.size
            and indptr[0] == 0
            and indptr[-1] == data.size
            and (np.diff(indptr) >= 0).all()
            and (indices >= 0).all()
        ):
            width = int(indices.max(initial=0)) + 1
            rows = sp.csr_array((data, indices, indptr), shape=(indptr.size - 1, width))
            if rows.has_canonical_format:
                return rows
    raise ValueError("the rows of its memory make no sense")
