"""The labels of tables, read before anything is learned: which is rare, and whether rows are sorted."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank.features.table import Table, Words, in_words, is_gap_word
from cbrank.streams import TableColumns, open_stream
from cbrank.streams.labels import canonical
from cbrank.training.order import LabelOrder

MOST_BYTES = 2**28  # of files on disk that are read once more for it: some seconds


class Survey(NamedTuple):
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


def survey(paths: Sequence[str], columns: TableColumns, reading: dict[str, Any]) -> Survey:
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
    Survey
        The labels.

    Examples
    --------
    >>> import io
    >>> table = io.BytesIO(b"age,clicked\n31,no\n44,yes\n27,no\n")
    >>> survey([table], TableColumns("clicked"), {"format": "csv"})
    Survey(counts=Counter({'no': 2, 'yes': 1}), sorted=False)
    """
    counts, order, files = Counter[str](), LabelOrder(), set[int]()
    with open_stream(paths, columns=columns.label_alone(), labels=False, **reading) as stream:
        for chunk in stream:
            assert isinstance(chunk.X, Table)
            files.add(chunk.position.file)
            order.add(_counted(in_words(chunk.X.columns[0]), counts))
    return Survey(counts, order.in_words(len(files)) is not None)


def _counted(words: Words, counts: Counter[str]) -> NDArray[np.int64]:
    """Count labels in; return 0 for rows of the label that came first of all, 1 for the others."""
    labels = ["" if is_gap_word(word) else canonical(word) for word in words.values]
    codes = words.codes[words.codes >= 0]
    for label, count in zip(labels, np.bincount(codes, minlength=len(labels)), strict=True):
        if label and count:
            counts[label] += int(count)
    first = next(iter(counts), "")
    is_other = np.array([label != first for label in labels], np.int64)
    is_label = np.array([label != "" for label in labels], bool)
    found: NDArray[np.int64] = is_other[codes[is_label[codes]]]
    return found
