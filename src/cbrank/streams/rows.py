"""Rows as a reader gives them, before the columns have a meaning."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

FIRST_FEW = 10
CHUNK_BYTES = 2**25  # of text, or of numbers: wide rows come in chunks of fewer than asked for
WIDEST = 2**31 - 1  # columns whose numbers an int32 can hold
_NUMBER, _TEXT = 8, 64  # bytes of a cell; of a short text, with what Python keeps beside it


class Rows(NamedTuple):
    """Rows of one file and the place after them."""

    X: NDArray[np.float64] | csr_array
    labels: NDArray[np.float64] | list[str] | None
    texts: dict[str, list[str]]  # the cells of id and categorical columns
    lines: NDArray[np.int64]  # where each row stands in its file, from 1
    offset: int  # bytes of text, or rows of a Parquet file, read so far
    line: int  # the next one's number
    errors: int  # rows left out since the chunk before
    complaints: list[str]  # about the first few of them


class Complaints:
    """Rows that could not be read: counted up to a limit, the first few in words.

    Examples
    --------
    >>> complaints = Complaints(limit=1)
    >>> complaints.add("x.csv, line 2: bad.")
    >>> complaints.add("x.csv, line 5: bad.")
    Traceback (most recent call last):
    ValueError: x.csv, line 5: bad. That is one more malformed row than the 1 allowed.
    """

    def __init__(self, limit: int, total: int = 0) -> None:
        self.limit, self.total = limit, total
        self.count = 0
        self._sentences: list[str] = []

    def add(self, sentence: str) -> None:
        """Count a row, or raise the sentence if no more may be left out."""
        if self.total >= self.limit:
            raise ValueError(sentence + self._too_many())
        self.total += 1
        self.count += 1
        if self.total <= FIRST_FEW:
            self._sentences.append(sentence)

    def count_in(self, others: int) -> None:
        """Count rows of which someone else complained."""
        self.total += others
        if self.total > self.limit:
            raise ValueError(f"There are more malformed rows than the {self.limit} allowed.")

    def pop(self) -> tuple[int, list[str]]:
        """Return the count and the sentences since the last time."""
        found = self.count, self._sentences
        self.count, self._sentences = 0, []
        return found

    def _too_many(self) -> str:
        if self.limit == 0:
            return ""
        return f" That is one more malformed row than the {self.limit} allowed."


def rows_that_fit(rows: int, n_numbers: int, n_texts: int) -> int:
    """Return the rows of a chunk: as many as are asked for, or as fit in `CHUNK_BYTES`.

    Examples
    --------
    >>> rows_that_fit(8192, 10, 2), rows_that_fit(8192, 10_000, 0)
    (8192, 419)
    """
    width = max(1, _NUMBER * n_numbers + _TEXT * n_texts)
    return max(1, min(rows, CHUNK_BYTES // width))


def texts_joined(pieces: list[dict[str, list[str]]], names: list[str]) -> dict[str, list[str]]:
    """Join columns of text.

    Examples
    --------
    >>> texts_joined([{"a": ["x"]}, {"a": ["y"]}], ["a"])
    {'a': ['x', 'y']}
    """
    return {name: [cell for piece in pieces for cell in piece[name]] for name in names}
