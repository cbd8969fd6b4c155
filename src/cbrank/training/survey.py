"""What is counted before anything is learned: the labels of tables, and rows."""

from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from cbrank.features.table import Table, Words, in_words, is_gap_word
from cbrank.streams import Columns, Stream, TableColumns, open_stream
from cbrank.streams.labels import canonical

MOST_BYTES = 2**28  # of files on disk that are read once more for it: some seconds


def count_labels(
    paths: Sequence[str], columns: TableColumns, reading: dict[str, Any]
) -> Counter[str]:
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
    Counter
        How many rows have each label.

    Examples
    --------
    >>> import io
    >>> table = io.BytesIO(b"age,clicked\n31,no\n44,yes\n27,no\n")
    >>> count_labels([table], TableColumns("clicked"), {"format": "csv"})
    Counter({'no': 2, 'yes': 1})
    """
    counts = Counter[str]()
    with open_stream(paths, columns=columns.label_alone(), labels=False, **reading) as stream:
        for chunk in stream:
            assert isinstance(chunk.X, Table)
            _count(in_words(chunk.X.columns[0]), counts)
    return counts


def count_rows(
    paths: Sequence[str],
    columns: Columns,
    reading: dict[str, Any],
    opened: Callable[[Stream], None] = lambda _: None,
) -> int:
    r"""Count the rows that are learned from: those with a label, but not malformed ones that are skipped.

    Parameters
    ----------
    paths : sequence of str
        Files that can be read more than once.
    columns : Columns
        What their columns mean; it learns nothing here.
    reading : dict
        How to read: what `open_stream` takes.
    opened : callable, optional
        Is given the stream before it is read, perhaps to stop it later.

    Returns
    -------
    int
        The rows of all files.

    Examples
    --------
    >>> import io
    >>> count_rows([io.BytesIO(b"1 1:2\n-1 1:1\n1 1:3\n")], Columns(), {})
    3
    """
    with open_stream(paths, columns=deepcopy(columns), **reading) as stream:
        opened(stream)
        for _ in stream:
            pass
        return stream.position.rows


def _count(words: Words, counts: Counter[str]) -> None:
    rows = np.bincount(words.codes[words.codes >= 0], minlength=len(words.values))
    for word, count in zip(words.values, rows.tolist(), strict=True):
        if count and not is_gap_word(word):
            counts[canonical(word)] += count
