"""Rows that are kept apart to test a model, and how the labels of files follow each other."""

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank.features.table import Table, in_words, is_gap_word
from cbrank.streams import Chunk, TableColumns, open_stream
from cbrank.streams.labels import canonical
from cbrank.training.order import LabelOrder

_APART = 1  # beside a seed, for draws that are not those of the order of rows


class Holdout(NamedTuple):
    """A random share of the rows of a stream: those that are never learned from.

    Parameters
    ----------
    share : float
        The share, between 0 and 1.
    seed : int
        What the choice depends on, beside a row's number.

    Examples
    --------
    >>> Holdout(0.5, seed=0).mask(2, 3)
    array([False, False,  True])
    """

    share: float
    seed: int

    def mask(self, first: int, count: int) -> NDArray[np.bool_]:
        """Return which of so many rows from a row on are kept apart."""
        source = np.random.PCG64((self.seed, _APART))
        source.advance(first)
        return np.random.Generator(source).random(count) < self.share

    def learned(self, rows: int) -> int:
        """Return how many of the first rows are learned from."""
        return sum(
            int((~self.mask(first, min(2**20, rows - first))).sum())
            for first in range(0, rows, 2**20)
        )

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


class Labels(NamedTuple):
    """The labels of files.

    Parameters
    ----------
    counts : Counter
        How many rows have each.
    sorted : bool
        Whether the rows are sorted by label, which no chance explains.
    """

    counts: Counter[str]
    sorted: bool


def labels_of(paths: Sequence[str], columns: TableColumns, reading: dict[str, Any]) -> Labels:
    r"""Read the labels of tables, and nothing else.

    Parameters
    ----------
    paths : sequence of str
        Files that can be read more than once.
    columns : TableColumns
        What their columns mean; it learns nothing here.
    reading : dict
        How to read: what `open_stream` takes.

    Returns
    -------
    Labels
        The labels.

    Examples
    --------
    >>> import io
    >>> table = io.BytesIO(b"age,clicked\n31,no\n44,yes\n27,no\n")
    >>> labels_of([table], TableColumns("clicked"), {"format": "csv"})
    Labels(counts=Counter({'no': 2, 'yes': 1}), sorted=False)
    """
    counts, order, files = Counter[str](), LabelOrder(), set[int]()
    alone = deepcopy(columns).label_alone()
    with open_stream(paths, columns=alone, labels=False, **reading) as stream:
        for chunk in stream:
            assert isinstance(chunk.X, Table)
            files.add(chunk.position.file)
            words = in_words(chunk.X.columns[0])
            known = ["" if is_gap_word(word) else canonical(word) for word in words.values]
            for label, count in zip(
                known, np.bincount(words.codes[words.codes >= 0], minlength=len(known)), strict=True
            ):
                counts[label] += int(count)
            first = next(iter(counts), "")
            is_other = np.array([label != first for label in known] + [False], np.int64)
            is_gap = np.array([not label for label in known] + [True])
            order.add(is_other[words.codes][~is_gap[words.codes]])
    del counts[""]
    return Labels(counts, order.in_words(len(files)) is not None)
