"""Rows from text in svmlight (LIBSVM) form, a chunk at a time."""

import io
import operator
import re
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cbrank import kernels
from cbrank.datasets.streams import Source, open_bytes, source_name

if TYPE_CHECKING:
    from cbrank.kernels.svmlight import Parsed

_BLOCK = 2**20
_LONGEST_LINE = 2**28
_LARGEST_INDEX = 2**31 - 1
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SHOWN = 24

Chunk = tuple[csr_array, NDArray[np.float64]]


def read_svmlight_chunks(
    path: Source, rows: int = 8192, *, n_features: int | None = None, zero_based: bool = False
) -> Iterator[Chunk]:
    r"""Read a file in svmlight (LIBSVM) form a chunk of rows at a time.

    The file is never in memory as a whole. Values are those Python's ``float`` gives, to the
    last bit. Blank lines and comments (``#`` to the end of the line) are passed over, as is a
    ``qid:`` between label and features.

    Parameters
    ----------
    path : path, "-" or binary file
        The file, plain or compressed (gzip, bzip2, xz; Zstandard if a module for it is
        installed), standard input, or a file open in binary mode.
    rows : int, default=8192
        Rows of a chunk; the last chunk may have fewer.
    n_features : int, optional
        Columns of every chunk; a greater index in the file is an error. Without it a chunk is
        as wide as the greatest index so far.
    zero_based : bool, default=False
        Whether indices start at 0 and not at 1.

    Returns
    -------
    iterator of (csr_array, ndarray)
        Chunk by chunk the features, indices ascending, and the labels, both float64.

    Raises
    ------
    ValueError
        If the text is malformed: a word that is no finite number, an index that is below the
        first, too large, repeated or not in ascending order, a missing colon, a NUL byte, a
        line of more than 256 MiB. The message names file, line and column (in bytes, from 1).
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import io
    >>> text = io.BytesIO(b"1 1:0.5 3:2  # a comment\n-1 2:1e-1\n1\n")
    >>> for X, y in read_svmlight_chunks(text, rows=2):
    ...     print(X.toarray(), y)
    [[0.5 0.  2. ]
     [0.  0.1 0. ]] [ 1. -1.]
    [[0. 0. 0.]] [1.]
    """
    rows = operator.index(rows)
    if rows < 1:
        raise ValueError(f"rows must be at least 1, got {rows}.")
    limit = _LARGEST_INDEX if n_features is None else operator.index(n_features)
    if not 0 <= limit <= _LARGEST_INDEX:
        raise ValueError(f"n_features must lie between 0 and 2^31 - 1, got {n_features}.")
    return _chunks(path, rows, n_features, 0 if zero_based else 1, limit)


class _Piece(NamedTuple):
    """Rows parsed from one block of text, copied out of the parser's room."""

    labels: NDArray[np.float64]
    ends: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float64]


def _chunks(
    path: Source, rows: int, n_features: int | None, base: int, limit: int
) -> Iterator[Chunk]:
    pieces: list[_Piece] = []
    missing, width = rows, n_features or 0
    with open_bytes(path) as stream:
        reader = _Reader(source_name(path), base, limit)
        for text in _blocks(stream, reader.name):
            start = 0
            while start < len(text):
                piece, start = reader.read(text, start, missing)
                pieces.append(piece)
                missing -= len(piece.labels)
                if missing == 0:
                    width = max(width, _width(pieces))
                    yield _join(pieces, width)
                    pieces, missing = [], rows
            reader.line += text.count(b"\n")
    if missing < rows:
        yield _join(pieces, max(width, _width(pieces)))


def _blocks(stream: IO[bytes], name: str) -> Iterator[bytes]:
    """Cut a stream into whole lines, about a megabyte at a time; each ends with a newline."""
    read = stream.read1 if isinstance(stream, io.BufferedReader) else stream.read
    parts: list[bytes] = []
    size, skip = 0, _BYTE_ORDER_MARK
    while data := read(_BLOCK):
        if not isinstance(data, bytes):
            raise TypeError(f"{name} gives {type(data).__name__}, not bytes: open it with 'rb'.")
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join([*parts, data[:cut]]).removeprefix(skip)
            parts, size, skip = [], 0, b""
        parts.append(data[cut:])
        size += len(parts[-1])
        if size > _LONGEST_LINE:
            raise ValueError(f"{name}: a line of more than {_LONGEST_LINE >> 20} MiB.")
    if size:
        yield b"".join([*parts, b"\n"]).removeprefix(skip)


class _Reader:
    """A parser with its room and its place in the file."""

    def __init__(self, name: str, base: int, limit: int) -> None:
        self.name, self.base, self.limit = name, base, limit
        self.line = 1
        self.size = 2 * _BLOCK
        self.room = kernels.svmlight.room(self.size)

    def read(self, text: bytes, start: int, rows: int) -> tuple[_Piece, int]:
        """Return up to `rows` rows of `text` and the position after them."""
        svmlight = kernels.svmlight
        if len(text) > self.size:
            self.size = 2 * len(text)
            self.room = svmlight.room(self.size)
        found = self.room
        svmlight.parse(np.frombuffer(text, np.uint8), start, rows, self.base, self.limit, found)
        n_rows, n_entries, n_slow, position, fault = found.tally.tolist()
        if n_slow:
            self._finish(text, found, n_slow)
        if fault:
            raise ValueError(self._complaint(text, position, fault))
        piece = _Piece(
            found.labels[:n_rows].copy(),
            found.indptr[1 : n_rows + 1].copy(),
            found.indices[:n_entries].copy(),
            found.values[:n_entries].copy(),
        )
        return piece, position

    def _finish(self, text: bytes, found: "Parsed", n_slow: int) -> None:
        """Fill in the numbers that the kernel left to Python."""
        targets, starts, stops = found.slow[:n_slow].T
        spans = zip(starts.tolist(), stops.tolist(), strict=True)
        values = np.array([float(text[start:stop]) for start, stop in spans])
        if np.isinf(values).any():
            start = int(starts[np.isinf(values).argmax()])
            raise ValueError(f"{self._place(text, start)}: {_word(text, start)} is infinite.")
        is_label = targets < 0
        found.labels[-1 - targets[is_label]] = values[is_label]
        found.values[targets[~is_label]] = values[~is_label]

    def _place(self, text: bytes, position: int) -> str:
        line = self.line + text.count(b"\n", 0, position)
        column = position - text.rfind(b"\n", 0, position)
        return f"{self.name}, line {line}, column {column}"

    def _complaint(self, text: bytes, position: int, fault: int) -> str:
        nul = text.find(b"\0", position, text.index(b"\n", position))
        if nul >= 0:
            return f"{self._place(text, nul)}: a NUL byte; this is not text in svmlight form."
        return f"{self._place(text, position)}: {self._reason(_word(text, position), fault)}"

    def _reason(self, word: str, fault: int) -> str:
        codes = kernels.svmlight
        if fault == codes.BAD_LABEL:
            return f"the label {word} is not a finite number."
        if fault == codes.BAD_VALUE:
            return f"the value {word} is not a finite number."
        if fault == codes.NO_COLON:
            return f"{word} has no colon; expected index:value."
        if fault == codes.NOT_ASCENDING:
            return f"the index of {word} is not above the one before it."
        if fault == codes.OUT_OF_RANGE:
            return self._out_of_range(word)
        return f"{word} does not begin with an index; expected index:value."

    def _out_of_range(self, word: str) -> str:
        last = self.limit - 1 + self.base
        advice = ""
        if self.base and word.lstrip("'0").startswith(":"):
            advice = " If indices start at 0 here, say zero_based=True."
        return f"the index of {word} is not between {self.base} and {last}.{advice}"


def _word(text: bytes, start: int) -> str:
    word = re.match(rb"[^\s#]*", text[start : start + _SHOWN + 1])
    shown = word[0].decode("ascii", "backslashreplace") if word else ""
    return repr(shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}...")


def _width(pieces: list[_Piece]) -> int:
    return max((int(piece.indices.max()) + 1 for piece in pieces if piece.indices.size), default=0)


def _join(pieces: list[_Piece], width: int) -> Chunk:
    shifts = np.cumsum([0] + [len(piece.values) for piece in pieces])
    ends = [piece.ends + shift for piece, shift in zip(pieces, shifts, strict=False)]
    indptr = np.concatenate([[0], *ends])
    if shifts[-1] <= _LARGEST_INDEX:
        indptr = indptr.astype(np.int32)
    indices = np.concatenate([piece.indices for piece in pieces])
    values = np.concatenate([piece.values for piece in pieces])
    X = csr_array((values, indices, indptr), shape=(len(indptr) - 1, width))
    X.has_canonical_format = True
    return X, np.concatenate([piece.labels for piece in pieces])
