"""Rows in random order: within a window that moves along the stream, or all of them."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import IO, Any, Self

import numpy as np
from numpy.lib.format import read_array, write_array
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cbrank.arrays import refuse_unsound
from cbrank.features.table import Table, cells_of, table_of
from cbrank.streams.rows import CHUNK_BYTES

Row = tuple[Any, ...]  # its label, its values, and their indices if it is sparse
Labelled = tuple[Any, NDArray[np.int64]]  # rows, dense or sparse or of a table, and their labels
Arrays = dict[str, NDArray[Any]]

AT_ONCE = 8192  # rows that are given at a time once all are read; as in the chunks of a stream

_BUCKETS = 64  # at a level: two levels of them hold 128 GiB
_IN_MEMORY = 2**19  # bytes of a bucket from which on it is a file: those in memory take 32 MiB
# Rows in a checkpoint: types and dimensions of their arrays.
_LABELS = ("<i8", 1)
_DENSE = {"dense": ("<f8", 2), "labels": _LABELS}
_SPARSE = {"values": ("<f8", 1), "indices": ("<i4", 1), "counts": ("<i8", 1), "labels": _LABELS}
_UNFIT = "The rows that wait in the checkpoint do not fit its columns: start anew, without it."


class Window:
    """Rows that were read and not yet learned from: as one comes, a random one leaves.

    The draw for a row that leaves depends on the seed and on how many left before it. So the
    order depends neither on chunks nor on where a run stopped.

    Parameters
    ----------
    size : int
        How many rows may wait.
    seed : tuple of int
        What the order depends on.

    Examples
    --------
    >>> window = Window(2, (0,))
    >>> window.exchange(np.arange(5.0).reshape(-1, 1), np.array([1, 1, 0, 0, 0]))[0].tolist()
    [[1.0], [0.0], [3.0]]
    >>> window.leave(1)[0].tolist(), len(window)
    ([[4.0], [2.0]], 0)
    """

    def __init__(self, size: int, seed: tuple[int, ...]) -> None:
        self.size, self.seed = size, seed
        self._rows: list[Row] = []
        self._left = 0  # rows that have left

    def __len__(self) -> int:
        return len(self._rows)

    def exchange(self, X: Any, y: NDArray[np.int64]) -> Labelled:
        """Take rows in, and give one for each that there is no room for."""
        rows, given = _apart(X, y), list[Row]()
        room = max(0, self.size - len(self))
        self._rows += rows[:room]
        for draw, row in zip(self._draws(len(rows) - room), rows[room:], strict=True):
            place = int(draw * self.size)
            given.append(self._rows[place])
            self._rows[place] = row
        return _unpacked(_together(given, X.shape[1]), X.shape[1])

    def leave(self, width: int) -> Labelled:
        """Give some of the rows that wait, as so many features, and take none in."""
        given = list[Row]()
        for draw in self._draws(min(AT_ONCE, len(self))):
            place = int(draw * len(self))
            given.append(self._rows[place])
            self._rows[place] = self._rows[-1]
            self._rows.pop()
        return _unpacked(_together(given, width), width)

    def _draws(self, count: int) -> list[float]:
        """Return a number from 0 to 1 for each of the next rows that leave."""
        if count <= 0:
            return []
        source = np.random.PCG64(self.seed)
        source.advance(self._left)
        self._left += count
        draws: list[float] = np.random.Generator(source).random(count).tolist()
        return draws

    def to_arrays(self, width: int) -> Arrays:
        """Return the rows that wait, as so many features, for a checkpoint."""
        return _together(self._rows, width)

    def take_up(self, arrays: Mapping[str, NDArray[Any]], width: int, rows: int) -> None:
        """Let the rows of `to_arrays` wait, of so many read; refuse arrays that are not such rows."""
        X, y = _checked(arrays, width)
        if len(y) > min(self.size, rows):
            raise ValueError(_UNFIT)
        self._rows, self._left = _apart(X, y), rows - len(y)


class Buckets:
    """All rows of a stream, mixed in memory that does not grow with them.

    Each row goes to a random one of 64 temporary files. A file that fits in memory is mixed there; a
    larger one is spread over 64 others first. All orders of the rows are equally likely.

    Parameters
    ----------
    seed : tuple of int
        What the order depends on.

    Examples
    --------
    >>> with Buckets((0,)) as buckets:
    ...     buckets.add(np.arange(5.0).reshape(-1, 1), np.array([1, 1, 0, 0, 0]))
    ...     print([X.tolist() for X, y in buckets.mixed(1)])
    [[[3.0]], [[2.0]], [[1.0]], [[0.0]], [[4.0]]]
    """

    def __init__(self, seed: tuple[int, ...]) -> None:
        self.seed, self.rows = seed, 0
        self._draw = np.random.default_rng(seed)
        self._files = [_Bucket() for _ in range(_BUCKETS)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def add(self, X: Any, y: NDArray[np.int64]) -> None:
        """Take rows in."""
        self.rows += len(y)
        chosen = (self._draw.random(len(y)) * _BUCKETS).astype(np.int64)
        for number in np.unique(chosen).tolist():
            mine = np.flatnonzero(chosen == number)
            self._files[number].add(_some(X, mine), y[mine])

    def mixed(self, width: int) -> Iterator[Labelled]:
        """Give all rows in random order, as so many features."""
        for number, file in enumerate(self._files, 1):
            pieces = file.pieces(width)
            if file.size > CHUNK_BYTES and file.rows > 1:
                with Buckets((*self.seed, number)) as finer:
                    for piece in pieces:
                        finer.add(*piece)
                    file.close()
                    yield from finer.mixed(width)
                continue
            for X, y in pieces:
                order = self._draw.permutation(len(y))
                for begin in range(0, len(y), AT_ONCE):
                    some = order[begin : begin + AT_ONCE]
                    yield _some(X, some), y[some]
            file.close()


class _Bucket:
    """Rows in a temporary file without a name, which ends with the process however that ends."""

    def __init__(self) -> None:
        self.rows, self.size = 0, 0
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._names: list[str] = []

    def add(self, X: Any, y: NDArray[np.int64]) -> None:
        arrays = _packed(X, y)
        self._names = list(arrays)
        self.rows += len(y)
        self.size += sum(array.nbytes for array in arrays.values())
        try:
            for array in arrays.values():
                write_array(self._file, array, allow_pickle=False)
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}, where rows are mixed; the variable TMPDIR names another folder",
                tempfile.gettempdir(),
            ) from error

    def pieces(self, width: int) -> Iterator[Labelled]:
        """Give the rows in pieces as large as memory is to hold; all at once if they fit."""
        end, found, size = self._file.tell(), list[Arrays](), 0
        self._file.seek(0)
        while self._file.tell() < end:
            arrays = {name: read_array(self._file) for name in self._names}
            size += sum(array.nbytes for array in arrays.values())
            if found and size > CHUNK_BYTES:
                yield _joined(found, width)
                found, size = [], sum(array.nbytes for array in arrays.values())
            found.append(arrays)
        if found:
            yield _joined(found, width)

    def close(self) -> None:
        self._file.close()


def _joined(blocks: Sequence[Arrays], width: int) -> Labelled:
    if "kinds" in blocks[0]:
        tables, labels = zip(*(_unpacked(block, width) for block in blocks), strict=True)
        return Table.concatenated(tables), np.concatenate(labels)
    whole = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    return _unpacked(whole, width)


def _some(X: Any, rows: NDArray[np.int64]) -> Any:
    return X.take(rows) if isinstance(X, Table) else X[rows]


# Rows as arrays, and one by one -------------------------------------------------------------------


def _packed(X: Any, y: NDArray[np.int64]) -> Arrays:
    if isinstance(X, np.ndarray):
        return {"labels": y, "dense": X}
    if isinstance(X, Table):
        return {"labels": y, **X.state()}
    counts = np.diff(X.indptr).astype(np.int64)
    return {"labels": y, "values": X.data, "indices": X.indices.astype(np.int32), "counts": counts}


def _unpacked(arrays: Mapping[str, NDArray[Any]], width: int) -> Labelled:
    labels = arrays["labels"]
    if "dense" in arrays:
        return arrays["dense"], labels
    if "kinds" in arrays:
        return _table_of(arrays, width), labels
    values, indices, counts = (arrays[name] for name in ("values", "indices", "counts"))
    ends = np.concatenate([[0], np.cumsum(counts)])
    if ends[-1] < 2**31:
        ends = ends.astype(np.int32)  # as readers give them, and so the indices stay
    return csr_array((values, indices, ends), shape=(len(counts), width)), labels


def _table_of(arrays: Mapping[str, NDArray[Any]], width: int) -> Table:
    """Return the table in arrays; a ValueError if they make no sense."""
    own = {name: array for name, array in arrays.items() if name != "labels"}
    names = [str(at) for at in range(width)]  # those of the stream's columns, in their order
    table = Table.from_state(own, names, named=False)
    if len(table) != len(arrays["labels"]):
        raise ValueError(_UNFIT)
    return table


def _apart(X: Any, y: NDArray[np.int64]) -> list[Row]:
    """Return rows one by one, in memory of their own: some stay long after the others."""
    labels = y.tolist()
    if isinstance(X, Table):
        return [(label, cells) for label, cells in zip(labels, cells_of(X), strict=True)]
    if isinstance(X, np.ndarray):
        return [(label, row.copy()) for label, row in zip(labels, X, strict=True)]
    ends, indices, values = X.indptr.tolist(), X.indices, X.data
    return [
        (label, values[begin:end].copy(), indices[begin:end].copy())
        for label, (begin, end) in zip(labels, pairwise(ends), strict=True)
    ]


def _together(rows: Sequence[Row], width: int) -> Arrays:
    """Return the rows that `_apart` gave as `_packed` does."""
    labels = np.array([row[0] for row in rows], np.int64)
    if rows and isinstance(rows[0][1], tuple):
        return _packed(table_of([row[1] for row in rows]), labels)
    if not rows or len(rows[0]) == 2:
        return {"labels": labels, "dense": np.array([row[1] for row in rows]).reshape(-1, width)}
    _, values, indices = zip(*rows, strict=True)
    return {
        "labels": labels,
        "values": np.concatenate(values),
        "indices": np.concatenate(indices).astype(np.int32),
        "counts": np.array([len(part) for part in indices], np.int64),
    }


def _checked(arrays: Mapping[str, NDArray[Any]], width: int) -> Labelled:
    """Return the rows in arrays of a checkpoint; refuse what compiled code must not see."""
    kinds = {name: (array.dtype.str, array.ndim) for name, array in arrays.items()}
    if "kinds" in kinds and kinds.get("labels") == _LABELS:
        labels = arrays["labels"]
        if not np.isin(labels, (0, 1)).all():
            raise ValueError(_UNFIT)
        return _table_of(arrays, width), labels
    if kinds not in (_DENSE, _SPARSE):
        raise ValueError(_UNFIT)
    if "counts" in arrays:
        counts, stored = arrays["counts"], len(arrays["indices"])
        if ((counts < 0) | (counts > stored)).any() or sum(counts.tolist()) != stored:
            raise ValueError(_UNFIT)
    X, labels = _unpacked(arrays, width)
    if "dense" not in arrays:
        refuse_unsound("The window of the checkpoint", X)
    if X.shape != (len(labels), width) or not np.isin(labels, (0, 1)).all():
        raise ValueError(_UNFIT)
    return X, labels
