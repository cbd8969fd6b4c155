"""Columns of many categories (users, items, devices): each category has a weight of its own, in a table of bounded size.

Categories are hashed to places of the table. Beside them are the encoder's features, so that what categories add is
learned together with what the other columns do.
"""

import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.features.table import Column, Table, Words
from cbrank.texts import coded

if TYPE_CHECKING:
    from cbrank.features.encoder import TableEncoder

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

SIZE = 2**18  # places of the table
_FIRST = 256  # rows that tell whether a column has many categories
_MOST_WORDS, _SHARE = 64, 8  # more categories than that, or than this share of fewer rows, are many
_LEAST_AGAIN = (
    1 / 16
)  # share of rows whose category is that of another row; less is an id that does not come again


class Ids(NamedTuple):
    """Columns whose categories have places in a table."""

    columns: Places
    others: int  # features of the encoder

    @property
    def kind(self) -> str:
        """How its features are learned: the field of a method."""
        return "ids"

    @property
    def width(self) -> int:
        """Number of features."""
        return SIZE + self.others

    def encode(self, encoder: "TableEncoder", rows: Table) -> sp.csr_array:
        """Return rows as features."""
        places = self.places(rows)
        places.sort(axis=1)
        known = places >= 0
        ends = np.append(0, np.cumsum(known.sum(axis=1)))
        own = sp.csr_array((np.ones(ends[-1]), places[known], ends), shape=(len(rows), SIZE))
        own.sum_duplicates()  # two columns may have one place
        others = encoder.encode(rows)[:, : self.others]
        others.resize((len(rows), self.others))
        return sp.csr_array(sp.hstack([own, others], format="csr"))

    def places(self, rows: Table) -> Places:
        """Return the place of each row's category in each of the columns, -1 for a missing value."""
        return np.column_stack([_placed(int(at), rows.columns[at]) for at in self.columns])

    # In model files

    def arrays(self) -> Arrays:
        """Return the arrays."""
        return {"columns": self.columns, "others": np.array([self.others])}

    @classmethod
    def from_arrays(cls, arrays: Arrays, encoder: "TableEncoder") -> "Ids":
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


def found(encoder: "TableEncoder", rows: Table) -> Ids | None:
    """Return the columns that have many categories by some rows, the first of which count; None if none has."""
    many = [
        at
        for at, (decision, column) in enumerate(zip(encoder.decided(), rows.columns, strict=True))
        if decision.kind in {"word", "drop"}
        and (decision.asked if isinstance(column, np.ndarray) else isinstance(column, Words))
        and not (decision.asked and decision.kind == "drop")
        and _are_many(column)
    ]
    return Ids(np.array(many, np.int64), encoder.width_) if many else None


def _are_many(column: Any) -> bool:
    """Say whether a column of words, or of numbers that stand for words, has many categories that may come again."""
    if isinstance(column, Words):
        codes: Any = column.codes
    else:
        codes = np.where(np.isnan(column), -1, np.unique(column, return_inverse=True)[1])
    first, every = (part[part >= 0] for part in (codes[:_FIRST], codes))
    _, counts = np.unique(every, return_counts=True)
    return bool(
        np.unique(first).size > min(_MOST_WORDS, first.size // _SHARE)
        and counts[counts > 1].sum() > _LEAST_AGAIN * every.size
    )


def _placed(at: int, column: Column) -> Places:
    """Return the place of each category of a column, -1 for missing values."""
    if isinstance(column, Words):
        values, codes = column.values, column.codes
    else:
        numbers = column if isinstance(column, np.ndarray) else column.seconds
        distinct, places_of = np.unique(numbers, return_inverse=True)
        values = tuple(
            f"{value:.0f}" if value == round(value) else repr(value)
            for value in distinct[~np.isnan(distinct)].tolist()
        )
        codes = np.where(np.isnan(numbers), -1, places_of).astype(np.int32)
    places = [zlib.crc32(coded(value), at) % SIZE for value in values]
    return np.array([*places, -1], np.int64)[codes]
