"""Bytes that come a few at a time, as from a slow pipe, and what a stream makes of them."""

import copy
import io
import random

import numpy as np

from cbrank.features.table import Table, Times, Words
from cbrank.streams import open_stream


class Dribble(io.RawIOBase):
    """Bytes in blocks of random sizes."""

    def __init__(self, data, largest, seed=0):
        self._data, self._at = data, 0
        self._largest, self._draw = largest, random.Random(seed)

    def readable(self):
        return True

    def read(self, size=-1):
        wanted = self._draw.randint(1, self._largest)
        block = self._data[self._at : self._at + (wanted if size < 0 else min(size, wanted))]
        self._at += len(block)
        return block


def outcome(source, columns, **options):
    """Return all that reading gives: rows, places, complaints, and how it ends."""
    chunks, columns = [], copy.deepcopy(columns)
    stream, sentence = open_stream(source, columns=columns, **options), None
    try:
        with stream:
            for chunk in stream:
                y = None if chunk.y is None else chunk.y.tolist()
                chunks.append((_plain(chunk.X), y, chunk.ids, chunk.position))
    except ValueError as error:
        sentence = str(error)
    return (
        chunks,
        stream.complaints,
        stream.notes,
        stream.position,
        sentence,
        columns.get_state()[1],
    )


def _plain(X):
    if isinstance(X, np.ndarray):
        return X.tolist()
    if isinstance(X, Table):
        return [repr(row) for row in cells_of(X)]
    return X.shape, X.data.tolist(), X.indices.tolist(), X.indptr.tolist()


def cells_of(table):
    """Return the rows of a table as tuples of cells; a gap among words is None."""
    return [*zip(*map(_cells, table.columns), strict=True)]


def _cells(column):
    if isinstance(column, Words):
        values = (*column.values, None)
        return [values[code] for code in column.codes.tolist()]
    return (column.seconds if isinstance(column, Times) else column).tolist()
