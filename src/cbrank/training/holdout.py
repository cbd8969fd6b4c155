"""Rows that are kept apart to test a model."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank.features.table import Table
from cbrank.streams import Chunk, open_stream

_APART = 1  # beside a seed, for draws that are not those of the order of rows


class Holdout(NamedTuple):
    """A share of the rows of a stream that is never learned from: random rows, or the last ones.

    Parameters
    ----------
    share : float
        The share, between 0 and 1.
    seed : int
        What the choice of random rows depends on, beside a row's number.
    begin : int, optional
        The number of the first of the last rows; if None, random rows are kept apart.

    Examples
    --------
    >>> Holdout(0.5, seed=0).mask(2, 3)
    array([False, False,  True])
    >>> Holdout(0.5, 0, first_of_last(0.5, 8)).mask(2, 3)
    array([False, False,  True])
    """

    share: float
    seed: int
    begin: int | None = None

    def mask(self, first: int, count: int) -> NDArray[np.bool_]:
        """Return which of so many rows from a row on are kept apart."""
        if self.begin is not None:
            return np.arange(first, first + count) >= self.begin
        source = np.random.PCG64((self.seed, _APART))
        source.advance(first)
        return np.random.Generator(source).random(count) < self.share

    def parted(self, chunk: Chunk, *, held: bool) -> Chunk:
        """Return the rows of a chunk that are kept apart, or the others."""
        assert chunk.y is not None
        first = chunk.position.rows - len(chunk.y)
        some = np.flatnonzero(self.mask(first, len(chunk.y)) == held)
        X = chunk.X.take(some) if isinstance(chunk.X, Table) else chunk.X[some]
        lines = None if chunk.lines is None else chunk.lines[some]
        return chunk._replace(X=X, y=chunk.y[some], ids=None, lines=lines)

    def rows(self, paths: Sequence[str], columns: Any, reading: dict[str, Any]) -> Iterator[Chunk]:
        """Read the rows that were kept apart, in chunks."""
        with open_stream(paths, columns=columns, learn=False, **reading) as stream:
            for chunk in stream:
                part = self.parted(chunk, held=True)
                if part.y is not None and len(part.y):
                    yield part


def first_of_last(share: float, rows: int) -> int:
    """Return the number of the first row of the last share of so many rows."""
    return rows - int(share * rows + 0.5)
