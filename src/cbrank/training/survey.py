"""The labels of tables, counted before anything is learned."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from cbrank.features.table import Table, Words, in_words, is_gap_word
from cbrank.streams import TableColumns, open_stream
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


def _count(words: Words, counts: Counter[str]) -> None:
    rows = np.bincount(words.codes[words.codes >= 0], minlength=len(words.values))
    for word, count in zip(words.values, rows.tolist(), strict=True):
        if count and not is_gap_word(word):
            counts[canonical(word)] += count
