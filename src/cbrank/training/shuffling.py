"""All rows of a stream in random order."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import IO, Any, Self

import numpy as np
from numpy.lib.format import read_array, write_array
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cbrank.features.table import Table
from cbrank.streams.rows import CHUNK_BYTES

Labelled = tuple[Any, NDArray[np.int64]]  # rows, dense or sparse or of a table, and their labels
Arrays = dict[str, NDArray[Any]]

AT_ONCE = (
    2**14
)  # rows that are given at a time once all are read; the first are learned as `fit` does

_BUCKETS = 64  # at a level: two levels of them hold 128 GiB
_IN_MEMORY = 2**19  # bytes of a bucket from which on it is a file: those in memory take 32 MiB


class Buckets:
    """All rows of a stream, shuffled in memory that does not grow with them.

    Each row goes to a random one of 64 temporary files. A file that fits in memory is shuffled there; a
    larger one is spread over 64 others first. All orders of the rows are equally likely.

    Parameters
    ----------
    seed : tuple of int
        What the order depends on.

    Examples
    --------
    >>> with Buckets((0,)) as buckets:
    ...     buckets.add(np.arange(5.0).reshape(-1, 1), np.array([1, 1, 0, 0, 0]))
    ...     print([X.ravel().tolist() for X, y in buckets.shuffled(1)])
    [[3.0, 1.0, 4.0, 0.0, 2.0]]
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
        """Take rows in, with their labels and what else is to stay with them, as columns of `y`."""
        self.rows += len(y)
        chosen = (self._draw.random(len(y)) * _BUCKETS).astype(np.int64)
        for number in np.unique(chosen).tolist():
            mine = np.flatnonzero(chosen == number)
            self._files[number].add(_some(X, mine), y[mine])

    def shuffled(self, width: int) -> Iterator[Labelled]:
        """Give all rows in random order, as so many features."""
        for number, files in enumerate(self._groups(), 1):
            if files[0].size > CHUNK_BYTES and files[0].rows > 1:
                with Buckets((*self.seed, number)) as finer:
                    for piece in files[0].pieces():
                        finer.add(*_joined(piece, width))
                    files[0].close()
                    yield from finer.shuffled(width)
                continue
            pieces = chain.from_iterable(file.pieces() for file in files)
            X, y = _joined([*chain.from_iterable(pieces)], width)
            order = self._draw.permutation(len(y))
            for begin in range(0, len(y), AT_ONCE):
                some = order[begin : begin + AT_ONCE]
                yield _some(X, some), y[some]
            for file in files:
                file.close()

    def _groups(self) -> Iterator[list["_Bucket"]]:
        """Give the files with rows, as many at a time as make up a chunk: few rows are in small files."""
        group: list[_Bucket] = []
        for file in filter(lambda file: file.rows, self._files):
            rows = file.rows + sum(other.rows for other in group)
            size = file.size + sum(other.size for other in group)
            if group and (rows > AT_ONCE or size > CHUNK_BYTES):
                yield group
                group = []
            group = [*group, file]
        if group:
            yield group


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
                f"{error.strerror}, where rows are shuffled; the variable TMPDIR names another folder",
                tempfile.gettempdir(),
            ) from error

    def pieces(self) -> Iterator[list[Arrays]]:
        """Give the rows in pieces as large as memory is to hold; all at once if they fit."""
        end, found, size = self._file.tell(), list[Arrays](), 0
        self._file.seek(0)
        while self._file.tell() < end:
            arrays = {name: read_array(self._file) for name in self._names}
            size += sum(array.nbytes for array in arrays.values())
            if found and size > CHUNK_BYTES:
                yield found
                found, size = [], sum(array.nbytes for array in arrays.values())
            found.append(arrays)
        if found:
            yield found

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


# Rows as arrays -------------------------------------------------------------------------------------


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
    return Table.from_state(own, names, named=False)
