"""Rows as the readers give them, before `Columns` makes features of them."""

from typing import TYPE_CHECKING, NamedTuple, Union

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

if TYPE_CHECKING:
    from cbrank.features.table import Table

FIRST_FEW = 10  # malformed rows that are reported one by one; the others are only counted
# Of text, or of numbers: with wide rows a chunk has fewer rows than asked for, so that memory does not
# depend on the width. Up to five chunks exist at a time.
CHUNK_BYTES = 2**25
WIDEST = 2**31 - 1  # features: indices of sparse rows are int32
MOST_COLUMNS = 2**22  # of a table: a limit to the memory that a forged model file can take
SKIP = " To leave such rows out: `on_error=skip`."  # at the end of messages, unless they are
_NUMBER, _TEXT = 8, 64  # bytes of a number; of a short string as a Python object


class Roles(NamedTuple):
    """What a reader does with each column of one file."""

    codes: NDArray[np.int64]  # k for numeric column k, -1 to ignore, -2 - k for text column k
    n_numbers: int
    texts: tuple[str, ...]  # names of the columns that are given as text: label, id, categories
    label: str | None  # the text column that is the label
    columns: tuple[str, ...] | None = None  # those given as a table, which decides what they are
    of_labels: bool = False  # whether these are labels, in the words that `texts` would have

    @property
    def cells(self) -> tuple[str, ...]:
        """The names of all columns that are not numbers for sure, in the order of their codes."""
        return tuple(dict.fromkeys([*self.texts, *(self.columns or ())]))


class Rows(NamedTuple):
    """Rows of one file, and the position after them."""

    X: Union[NDArray[np.float64], csr_array, "Table"]
    labels: NDArray[np.float64] | list[str] | None
    texts: dict[str, list[str]]  # the cells of id and categorical columns
    lines: NDArray[np.int64]  # where each row stands in its file, from 1
    offset: int  # bytes of text, or rows of a Parquet file, read so far
    line: int  # the next one's number
    errors: int  # rows left out since the chunk before
    complaints: list[str]  # about the first few of them


class Complaints:
    """Malformed rows: counted up to a limit, with messages about the first few.

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
        """Count a malformed row, or raise its message if the limit is reached."""
        if self.total >= self.limit:
            raise ValueError(self._told(sentence) + self._too_many())
        self.total += 1
        self.count += 1
        if self.total <= FIRST_FEW:
            self._sentences.append(self._told(sentence))

    def count_in(self, others: int) -> None:
        """Add malformed rows that were reported elsewhere."""
        self.total += others
        if self.total > self.limit:
            raise ValueError(f"There are more malformed rows than the {self.limit} allowed.")

    def pop(self) -> tuple[int, list[str]]:
        """Return the count and the messages since the last call."""
        found = self.count, self._sentences
        self.count, self._sentences = 0, []
        return found

    def _told(self, sentence: str) -> str:
        return sentence.removesuffix(SKIP) if self.limit else sentence

    def _too_many(self) -> str:
        if self.limit == 0:
            return ""
        return f" That is one more malformed row than the {self.limit} allowed."


def rows_that_fit(rows: int, n_numbers: int, n_texts: int) -> int:
    """Return the number of rows of a chunk: as many as asked for, or as fit in `CHUNK_BYTES`.

    Examples
    --------
    >>> rows_that_fit(8192, 10, 2), rows_that_fit(8192, 10_000, 0)
    (8192, 419)
    """
    width = max(1, _NUMBER * n_numbers + _TEXT * n_texts)
    return max(1, min(rows, CHUNK_BYTES // width))


def texts_joined(pieces: list[dict[str, list[str]]], names: list[str]) -> dict[str, list[str]]:
    """Join the text columns of several pieces.

    Examples
    --------
    >>> texts_joined([{"a": ["x"]}, {"a": ["y"]}], ["a"])
    {'a': ['x', 'y']}
    """
    return {name: [cell for piece in pieces for cell in piece[name]] for name in names}
