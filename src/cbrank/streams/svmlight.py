"""Rows of svmlight (LIBSVM) text, a chunk at a time."""

import operator
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cbrank import kernels
from cbrank.streams.rows import WIDEST, Complaints
from cbrank.streams.sources import Source, open_source, source_name
from cbrank.streams.text import Fault, Lines, Piece, Size, read_rows, shown

if TYPE_CHECKING:
    from cbrank.kernels.svmlight import Parsed

# Bytes of text up to which the parser's arrays grow by doubling; for a longer line they grow to just
# its length, as they take several times the memory of the text.
_ROOM = 2**21
_WORD = re.compile(rb"[^\s#]*")

Chunk = tuple[csr_array, NDArray[np.float64]]


def read_svmlight_chunks(
    path: Source, rows: int = 8192, *, n_features: int | None = None, zero_based: bool = False
) -> Iterator[Chunk]:
    r"""Read a file in svmlight (LIBSVM) format, a chunk of rows at a time.

    The file is never in memory as a whole. Numbers are rounded exactly as by Python's ``float``.
    Blank lines, comments (``#`` to the end of the line) and a ``qid:`` between label and features
    are ignored.

    Parameters
    ----------
    path : path, "-" or binary file
        The file, plain or compressed (gzip, bzip2, xz; Zstandard if a module for it is
        installed), standard input, or a file open in binary mode.
    rows : int, default=8192
        Rows of a chunk; the last chunk may have fewer.
    n_features : int, optional
        Columns of every chunk; a greater index in the file is an error. By default a chunk is as
        wide as the greatest index so far.
    zero_based : bool, default=False
        Whether indices start at 0 and not at 1.

    Returns
    -------
    iterator of (csr_array, ndarray)
        For each chunk the features, with ascending indices, and the labels, both float64.

    Raises
    ------
    ValueError
        If the text is malformed: a word that is no finite number, an index that is below the
        first, too large, repeated or not in ascending order, a missing colon, a NUL byte, a
        line of more than 64 MiB. The message names file, line and column (in bytes, from 1).
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
    limit = WIDEST if n_features is None else operator.index(n_features)
    if not 0 <= limit <= WIDEST:
        raise ValueError(f"n_features must lie between 0 and 2^31 - 1, got {n_features}.")
    return _chunks(path, rows, n_features, 0 if zero_based else 1, limit)


class _Entries(NamedTuple):
    """Rows copied out of the parser's arrays, which it uses again."""

    labels: NDArray[np.float64]
    ends: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float64]


def _chunks(
    path: Source, rows: int, n_features: int | None, base: int, limit: int
) -> Iterator[Chunk]:
    width = n_features or 0
    with open_source(path) as opened:
        lines = Lines(opened, source_name(path))
        parser = SvmlightParser(rows, base, limit)
        for found in read_rows(lines, lines.take(), 1, parser, Size(rows), Complaints(limit=0)):
            X: Any = found.X
            width = max(width, X.shape[1])
            X.resize(X.shape[0], width)
            yield X, found.labels  # type: ignore[misc]


class SvmlightParser:
    """Parser of svmlight text, with indices from `base` on and fewer than `limit` features."""

    def __init__(self, rows: int, base: int = 1, limit: int = WIDEST) -> None:
        self.rows, self.base, self.limit = rows, base, limit
        self.size = 0
        self.room = kernels.svmlight.room(self.size, rows)

    def parse(
        self, text: bytes, start: int, stop_at: int, rows: int
    ) -> tuple[Piece, int, Fault | None]:
        """Return up to `rows` rows, where to go on, and why a row was left out, if one was."""
        svmlight = kernels.svmlight
        if len(text) > self.size:
            self.size = max(len(text), min(2 * self.size, _ROOM))
            self.room = svmlight.room(self.size, self.rows)
        found = self.room
        letters = np.frombuffer(text, np.uint8)
        svmlight.parse(letters, start, stop_at, rows, self.base, self.limit, found)
        n_rows, n_entries, n_slow, stop, code, line = found.tally.tolist()
        too_large = self._finish(text, found, n_rows, n_slow)
        if too_large:
            n_rows, stop = too_large
            n_entries, code, line = found.indptr[n_rows], svmlight.TOO_LARGE, found.lines[n_rows]
        piece = Piece(
            found.lines[:n_rows].copy(),
            int(line),
            _Entries(
                found.labels[:n_rows].copy(),
                found.indptr[1 : n_rows + 1].copy(),
                found.indices[:n_entries].copy(),
                found.values[:n_entries].copy(),
            ),
        )
        if not code:
            return piece, stop, None
        after = text.index(b"\n", stop)
        return piece, after + 1, self._fault(text, piece.passed, stop, after, code)

    def join(
        self, data: Sequence[_Entries]
    ) -> tuple[csr_array, NDArray[np.float64], dict[str, Any]]:
        """Return features, labels and no texts."""
        shifts = np.cumsum([0] + [len(piece.values) for piece in data])
        ends = [piece.ends + shift for piece, shift in zip(data, shifts, strict=False)]
        indptr = np.concatenate([[0], *ends])
        if shifts[-1] <= WIDEST:
            indptr = indptr.astype(np.int32)
        indices = np.concatenate([np.empty(0, np.int32), *(piece.indices for piece in data)])
        values = np.concatenate([np.empty(0), *(piece.values for piece in data)])
        width = int(indices.max()) + 1 if indices.size else 0
        X = csr_array((values, indices, indptr), shape=(len(indptr) - 1, width))
        X.has_canonical_format = True
        return X, np.concatenate([np.empty(0), *(piece.labels for piece in data)]), {}

    def _finish(
        self, text: bytes, found: "Parsed", n_rows: int, n_slow: int
    ) -> tuple[int, int] | None:
        """Convert the numbers left to Python; return row and position of one that is infinite."""
        for target, start, stop in found.slow[:n_slow].tolist():
            value = float(text[start:stop])
            row = -1 - target
            if target >= 0:
                row = int(np.searchsorted(found.indptr[: n_rows + 1], target, side="right")) - 1
                found.values[target] = value
            elif row < n_rows:
                found.labels[row] = value
            if value in (np.inf, -np.inf) and row < n_rows:
                return row, start
        return None

    def _fault(self, text: bytes, line: int, position: int, after: int, code: int) -> Fault:
        nul = text.find(b"\0", position, after)
        column = (position if nul < 0 else nul) - text.rfind(b"\n", 0, position)
        place = f", column {column}"
        if nul >= 0:
            return Fault(line, place, "a NUL byte; this is not svmlight text.")
        word = _WORD.match(text, position)
        assert word
        return Fault(line, place, self._reason(shown(word[0]), code))

    def _reason(self, word: str, code: int) -> str:
        codes = kernels.svmlight
        if code == codes.BAD_LABEL:
            return f"the label {word} is not a finite number."
        if code == codes.BAD_VALUE:
            return f"the value {word} is not a finite number."
        if code == codes.TOO_LARGE:
            return f"{word} is too large; no number may exceed 1.8e308."
        if code == codes.NO_COLON:
            return f"{word} has no colon; expected index:value."
        if code == codes.NOT_ASCENDING:
            return f"the index of {word} is not above the one before it."
        if code == codes.OUT_OF_RANGE:
            return self._out_of_range(word)
        return f"{word} does not begin with an index; expected index:value."

    def _out_of_range(self, word: str) -> str:
        last = self.limit - 1 + self.base
        advice = (
            ""
            if self.limit == WIDEST
            else " If rows may be that wide, allow it by a larger `max_width`."
        )
        if self.base and word.lstrip("'0").startswith(":"):
            advice = " If indices start at 0 here, give `zero_based=True`."
        return f"the index of {word} is not between {self.base} and {last}.{advice}"
