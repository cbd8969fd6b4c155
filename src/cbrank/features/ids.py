"""Columns of many categories (users, items, devices): each category has a weight of its own, in a table of bounded size.

Categories are hashed to places of the table. Beside them are the encoder's features, so that what categories add is
learned together with what the other columns do.
"""

import zlib
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.features.encoder import TableEncoder
from cbrank.features.table import Column, Table, Words
from cbrank.texts import coded

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

SIZE = 2**18  # places of the table
_FIRST = 256  # rows that tell whether a column has many categories
_MOST_WORDS = 64  # categories that have features in the encoder by default
_SHARE_OF_WORDS, _SHARE_OF_NUMBERS = 8, 2


class Ids(NamedTuple):
    """Columns whose categories have places in a table."""

    columns: Places
    others: int  # features of the encoder

    @property
    def width(self) -> int:
        """Number of features."""
        return SIZE + self.others

    def encode(self, encoder: TableEncoder, rows: Table) -> sp.csr_array:
        """Return rows as features."""
        parts = [_placed(int(at), rows.columns[at]) for at in self.columns]
        places = np.column_stack(parts) if parts else np.zeros((len(rows), 0), np.int64)
        places.sort(axis=1)
        # Two columns may have one place: a feature is there once.
        known = (places >= 0) & (np.diff(places, axis=1, prepend=-1) != 0)
        ends = np.append(0, np.cumsum(known.sum(axis=1)))
        own = sp.csr_array((np.ones(ends[-1]), places[known], ends), shape=(len(rows), SIZE))
        others = encoder.encode(rows)[:, : self.others]
        others.resize((len(rows), self.others))
        return sp.csr_array(sp.hstack([own, others], format="csr"))

    def centred(self, weights: Floats) -> tuple[Floats, float]:
        """Return weights as they are, and that nothing is taken from scores."""
        return weights, 0.0

    # In model files

    def arrays(self) -> Arrays:
        """Return the arrays."""
        return {"columns": self.columns, "others": np.array([self.others])}

    @classmethod
    def from_arrays(cls, arrays: Arrays, encoder: TableEncoder) -> "Ids":
        """Return saved columns; refuse what makes no sense."""
        columns, others = arrays["columns"], arrays.get("others", np.zeros(0))
        if not (
            arrays.keys() == {"columns", "others"}
            and columns.dtype == others.dtype == np.int64
            and columns.ndim == 1
            and others.shape == (1,)
            and np.isin(columns, np.arange(encoder.n_features_in_)).all()
            and 0 <= others[0] <= encoder.width_
        ):
            raise ValueError("its columns of many categories make no sense")
        return cls(columns, int(others[0]))


def found(encoder: TableEncoder, rows: Table) -> Ids | None:
    """Return the columns that have many categories by some rows, the first of which count; None if none has."""
    pairs = zip(encoder.decided(), rows.columns, strict=True)
    many = [
        at
        for at, (decision, column) in enumerate(pairs)
        if not decision.asked
        and decision.kind in ("word", "drop", "number")
        and _are_many(column)
        or (decision.asked and decision.kind == "word" and _are_many(column))
    ]
    return Ids(np.array(many, np.int64), encoder.width_) if many else None


def _are_many(column: Column) -> bool:
    """Say whether a column has many categories that may come again: words, or whole numbers like those of ids."""
    if isinstance(column, Words):
        first, every = column.codes[:_FIRST], column.codes
        first, every = first[first >= 0], every[every >= 0]
        few = min(_MOST_WORDS, first.size // _SHARE_OF_WORDS)
    elif isinstance(column, np.ndarray):
        first, every = column[:_FIRST], column
        first, every = first[~np.isnan(first)], every[~np.isnan(every)]
        if not (every == np.round(every)).all() or (np.diff(every) >= 0).all():
            return False
        few = first.size // _SHARE_OF_NUMBERS
    else:
        return False
    distinct = np.unique(every).size
    return np.unique(first).size > few and (every.size <= _FIRST or distinct < every.size)


def _placed(at: int, column: Column) -> Places:
    """Return the place of each category of a column, -1 for missing values."""
    if isinstance(column, Words):
        values, codes = column.values, column.codes
    else:
        numbers = column if isinstance(column, np.ndarray) else column.seconds
        distinct, codes = np.unique(numbers, return_inverse=True)
        values = tuple(f"{value:.0f}" if value == round(value) else repr(value) for value in distinct[~np.isnan(distinct)].tolist())
        codes = np.where(np.isnan(numbers), -1, codes)
    places = [zlib.crc32(coded(value), at) % SIZE for value in values]
    return np.array([*places, -1], np.int64)[codes]
