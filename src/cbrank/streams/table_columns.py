"""What the columns of a table mean that is taken as it comes."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cbrank.features.table import GAP_WORDS, MOST_TABLE_COLUMNS, Table
from cbrank.streams import cells
from cbrank.streams.columns import Columns
from cbrank.streams.dialect import numbered, with_names
from cbrank.streams.header import listed, named
from cbrank.streams.labels import LONGEST
from cbrank.streams.rows import Roles, Rows

_MOST_GAPS = 100  # words for gaps: they are in the header of a model file


class TableColumns(Columns):
    r"""The columns of a table as it comes: all are passed on as they are, to a ranker of tables.

    Only the label, columns to leave out and an id are told apart; `AdditiveRanker` decides what the
    others are. Columns without a name, or with the name of another, get one of their own.

    Parameters
    ----------
    label : str or int, optional
        The label column, by name or by its number from 1.
    positive : str, optional
        The positive label; else the affirmative one of the two (1, yes, true and the like), or the
        rarer one in the first chunk.
    drop : sequence of str or int, default=()
        Columns to ignore.
    id : str or int, optional
        A column that is passed on as text beside the rows, and is none of the table's.
    kinds : mapping of str to str, optional
        What columns are ("number", "word", "time", "text" or "drop"), by name or by a pattern such
        as ``x*``; a later entry overrules an earlier one.
    na : sequence of str, default=()
        What else stands in a cell that is a gap, such as -999.
    **plain : object
        Other parameters of `Columns`, which have no effect.

    Attributes
    ----------
    numeric_ : list of str or None
        The columns of the table in order; None before the first header.
    kinds_ : dict of str to str
        What columns were said to be, by name.
    classes_ : list of str
        The labels so far, the positive one last.
    width_ : int
        The number of columns.

    Examples
    --------
    >>> import io
    >>> from cbrank.streams import TableColumns, open_stream
    >>> table = b"age;city;clicked\n31;Oslo;no\n?;Rome;yes\n27;Oslo;no\n"
    >>> columns = TableColumns(label="clicked")
    >>> (chunk,) = open_stream(io.BytesIO(table), format="csv", columns=columns)
    >>> chunk.X.columns[0], chunk.X.columns[1].values, chunk.y
    (array([31., nan, 27.]), ('Oslo', 'Rome'), array([0, 1, 0]))
    """

    AS_THEY_COME: ClassVar[bool] = True

    def __init__(
        self,
        label: str | int | None = None,
        positive: str | None = None,
        *,
        drop: Sequence[str | int] = (),
        id: str | int | None = None,
        kinds: Mapping[str, str] | None = None,
        na: Sequence[str] = (),
        **plain: Any,
    ) -> None:
        super().__init__(label, positive, drop=drop, id=id, **plain)
        self.kinds, self.na = dict(kinds or {}), [str(word) for word in na]
        self.kinds_: dict[str, str] = {}
        self.spare: frozenset[str] = frozenset()  # columns that the model does without
        self._alone = False
        if len(self.na) > _MOST_GAPS or any(len(word) > LONGEST for word in self.na):
            raise ValueError(f"na may have {_MOST_GAPS} words, of {LONGEST:,} letters at most.")

    @classmethod
    def of_ranker(cls, names: Sequence[str] | None, width: int, labels: Sequence[str]) -> Self:
        columns = super().of_ranker(names, width, labels)
        if names is None:
            columns.numeric_, columns._sparse = numbered(width), False
        return columns

    def label_alone(self) -> "TableColumns":
        """Return columns that read the label as the only column of the table.

        Returns
        -------
        TableColumns
            Fresh columns.
        """
        alone = TableColumns(self.label, na=self.na)
        alone._alone = True
        return alone

    def pass_on(self, column: str) -> None:
        if self.id not in (None, column):
            self.drop.append(str(self.id))
        self.id = column

    def expect(self, *, sparse: bool, name: str, learn: bool) -> None:
        if sparse and self._sparse is None:
            raise ValueError(
                f"{name} is svmlight text, which has no column {self.label!r}: leave out `label`."
            )
        super().expect(sparse=sparse, name=name, learn=learn)

    def names_of(self, header: Sequence[str], unnamed: str = "") -> list[str]:
        before, after = [""] * (unnamed == "first"), [""] * (unnamed == "last")
        return with_names([*before, *header, *after])

    def _match(
        self, header: Sequence[str], name: str, *, learn: bool, labelled: bool
    ) -> tuple[Roles, list[str]]:
        if self.numeric_ is None:
            self._name_kinds(header, name)
        found, notes = super()._match(header, name, learn=learn, labelled=labelled)
        lacking = self.spare.difference(header)
        known = tuple(column for column in self.numeric_ or () if column not in lacking)
        columns = (str(self.label),) if self._alone else known
        given = [found.label, self.id if self.id in header else None]
        texts = tuple(str(column) for column in dict.fromkeys(given) if column is not None)
        roles = Roles(found.codes, 0, texts, found.label, columns, self._alone)
        places = {column: -2 - at for at, column in enumerate(roles.cells)}
        codes = [places.get(column, -1) for column in header]
        return roles._replace(codes=np.array(codes, np.int64)), notes

    def _name_kinds(self, header: Sequence[str], name: str) -> None:
        """Find the columns that `kinds` tells of; refuse all names and patterns that fit none."""
        unknown, there = list[str](), {*header}
        for pattern, kind in self.kinds.items():
            fitting = [pattern] if pattern in there else _fitting(pattern, header)
            unknown += [] if fitting else [pattern]
            self.kinds_ |= dict.fromkeys(fitting, kind)
        if unknown:
            raise ValueError(f"{name} has no column {named(unknown)}. {listed(header)}")
        dropped = [column for column, kind in self.kinds_.items() if kind == "drop"]
        self.drop = [*dict.fromkeys([*self.drop, *dropped])]
        apart = {*self.drop, self.label}
        self.kinds_ = {column: kind for column, kind in self.kinds_.items() if column not in apart}

    def _learn_header(self, header: Sequence[str], name: str) -> None:
        super()._learn_header(header, name)
        if not self.numeric_ and not self._alone:
            raise ValueError(
                f"{name} has no column but the label {self.label!r}. {listed(header)} If cells are "
                "separated otherwise, say how by `separator=...`."
            )
        if len(self.numeric_ or ()) > MOST_TABLE_COLUMNS:
            raise ValueError(
                f"{name} has {len(self.numeric_ or ()):,} columns to learn from; a table as it comes "
                f"may have {MOST_TABLE_COLUMNS:,} at most. Leave columns out by `drop`, or rank them as "
                'plain numbers by `scale=standard` and `covariance="diagonal"`.'
            )

    def _compare(self, header: Sequence[str], name: str, labelled: bool) -> list[str]:
        there = {*header}
        needed = [*(self.numeric_ or ()), *([str(self.label)] if labelled else [])]
        missing = [column for column in needed if column not in there and column not in self.spare]
        if missing:
            them = "column" if len(missing) == 1 else f"{len(missing)} columns"
            raise ValueError(
                f"{name} lacks the {them} {named(missing)}, which the model needs; empty cells "
                f"will do. {listed(header)}"
            )
        known = {*needed, self.label, self.id, *self.drop}
        extra = [column for column in header if column not in known]
        notes = [f"{name}: ignored {named(extra)}, which the model does not know."] if extra else []
        if self.id is not None and self.id not in there:
            notes.append(f"{name} has no column {self.id!r}, so its rows have no ids.")
        return notes

    def _labelled(self, rows: Rows, *, learn: bool, where: str) -> Any:
        gaps = GAP_WORDS | {word.lower() for word in self.na}
        assert rows.labels is not None
        return self.labels.encode(rows.labels, learn=learn, where=where, gaps=gaps)

    def _features(self, rows: Rows, learn: bool) -> Any:  # noqa: ARG002
        assert isinstance(rows.X, Table)
        found = dict(zip(rows.X.names, rows.X.columns, strict=True))
        if self.na:
            found = {name: cells.without(column, self.na) for name, column in found.items()}
        if len(found) < len(self.numeric_ or ()) and not self._alone:
            found = dict.fromkeys(self.numeric_ or (), np.full(len(rows.X), np.nan)) | found
        return Table([*found], [*found.values()])

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays, facts = super().get_state()
        return arrays, facts | {"na": self.na, "decimal": self.decimal}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Self:
        columns = super().from_state(arrays, facts)
        match facts:
            case {"na": list(na), "decimal": "." | "," as decimal, "sparse": False | None} if all(
                isinstance(word, str) for word in na
            ):
                columns.na, columns.decimal = cls(na=na).na, decimal
                return columns
        raise ValueError("its columns are not those of a table")


def _fitting(pattern: str, header: Sequence[str]) -> list[str]:
    return [column for column in header if fnmatchcase(column, pattern)]
