"""What the columns of a stream mean, learned from its header and carried with the model."""

import itertools
import operator
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cbrank.streams import columns_state
from cbrank.streams.categories import Met, Table, tables_of
from cbrank.streams.labels import LONGEST, Labels
from cbrank.streams.rows import WIDEST, Rows

_DROPPED = -1
_NAMED = 12


class Roles(NamedTuple):
    """What a reader does with each column of one file."""

    codes: NDArray[np.int64]  # a numeric column's number, -1 to pass over, -2 - k for text k
    n_numbers: int
    texts: tuple[str, ...]
    label: str | None  # the one of the texts that is the label


class Columns:
    r"""What the columns of a stream mean: label, id, numbers and categories.

    It is told what cannot be guessed, learns the rest from the stream (the header, the two
    labels, new categories) and is stored with the model, so that the rows to score are read by
    name as the rows to train were. Numeric columns come first, then the columns of hashed and
    declared categories, then a column for each category in the order they were met.

    Parameters
    ----------
    label : str or int, optional
        The label column, by name or by its number from 1; CSV and Parquet need it to train.
    positive : str, optional
        The positive label. Without it the greater of the two is positive, and the first chunk
        must show both.
    drop : sequence of str or int, default=()
        Columns to pass over.
    id : str or int, optional
        A column that is handed through as text.
    categorical : mapping, optional
        How columns that hold categories, by name or number, become features: "onehot" (a
        feature for each category, as they appear), "hash:BITS" (2^BITS features; some categories
        share one) or the list of categories. A category that the list or the model does not know
        is all zeros.
    zero_based : bool, default=False
        Whether the indices of svmlight text start at 0 and not at 1.
    max_features : int, default=2**24
        How wide rows may become, at most 2^31 - 1. A greater svmlight index is malformed, so that
        one bad line cannot make a model of gigabytes; one category more than that is an error.

    Attributes
    ----------
    numeric_ : sequence of str or None
        The numeric columns in order; None before a header was seen and for svmlight text.
    classes_ : list of str
        The labels known so far, the positive one last.
    width_ : int
        The number of features so far.

    Examples
    --------
    >>> import io
    >>> from cbrank.streams import Columns, open_stream
    >>> table = b"age,city,clicked\n31,Oslo,no\n44,Rome,yes\n27,Oslo,no\n"
    >>> columns = Columns(label="clicked", categorical={"city": "onehot"})
    >>> (chunk,) = open_stream(io.BytesIO(table), format="csv", columns=columns)
    >>> chunk.X.toarray(), chunk.y
    (array([[31.,  1.,  0.],
           [44.,  0.,  1.],
           [27.,  1.,  0.]]), array([0, 1, 0]))
    >>> columns.feature_names(), columns.classes_
    (['age', 'city=Oslo', 'city=Rome'], ['no', 'yes'])
    """

    def __init__(
        self,
        label: str | int | None = None,
        positive: str | None = None,
        *,
        drop: Sequence[str | int] = (),
        id: str | int | None = None,
        categorical: Mapping[str, str | Sequence[str]] | None = None,
        zero_based: bool = False,
        max_features: int = 2**24,
    ) -> None:
        self.label, self.id = _told(label, "label"), _told(id, "id")
        self.drop = [column for told in drop if (column := _told(told, "drop")) is not None]
        self.categorical: dict[str, str | list[str]] = {
            str(name): how if isinstance(how, str) else [str(value) for value in how]
            for name, how in (categorical or {}).items()
        }
        self.zero_based, self.max_features = bool(zero_based), operator.index(max_features)
        if not 1 <= self.max_features <= WIDEST:
            raise ValueError(f"max_features must lie between 1 and 2^31 - 1, got {max_features}.")
        if len(self.drop) > columns_state.MOST_DROPPED:
            raise ValueError(f"drop may name {columns_state.MOST_DROPPED:,} columns.")
        self.numeric_: Sequence[str] | None = None
        self.width_ = 0
        self.labels = Labels(positive)
        self._sparse: bool | None = None
        self._tables = tables_of(self.categorical)
        self._met = Met()

    def have_learned(self) -> bool:
        """Say whether any file has told what the columns are.

        Returns
        -------
        bool
            Whether rows can be read by them.
        """
        return self._sparse is not None

    @property
    def classes_(self) -> list[str]:
        """The labels known so far, the positive one last."""
        return self.labels.known()

    def feature_names(self) -> list[str]:
        """Return a name for each feature.

        Returns
        -------
        list of str
            Column names, ``column=category``, ``column#bucket``, or the indices of svmlight text.
        """
        if self.numeric_ is None:
            return [self.feature_name(feature) for feature in range(self.width_)]
        tables = list(self._tables.values())
        fixed = (
            table.feature_name(table.first + at)
            for table in tables
            for at in range(table.size or 0)
        )
        met = (f"{tables[number].name}={value}" for number, value in self._met)
        return [*self.numeric_, *fixed, *met]

    def feature_name(self, feature: int) -> str:
        """Return the name of one feature.

        Parameters
        ----------
        feature : int
            Its number, from 0.

        Returns
        -------
        str
            As `feature_names` has it.
        """
        if self.numeric_ is None:
            return str(feature + (0 if self.zero_based else 1))
        if feature < len(self.numeric_):
            return self.numeric_[feature]
        before = self.width_ - len(self._met)
        tables = list(self._tables.values())
        if feature >= before:
            number, value = self._met[feature - before]
            return f"{tables[number].name}={value}"
        at = bisect_right(tables, feature, key=lambda table: table.first) - 1
        return tables[at].feature_name(feature)

    # Reading -----------------------------------------------------------------------------------

    def expect(self, *, sparse: bool, name: str, learn: bool) -> None:
        """Raise an error if svmlight text and tables with column names are mixed.

        Parameters
        ----------
        sparse : bool
            Whether the file to come is svmlight text.
        name : str
            The file's name.
        learn : bool
            Whether these columns may still learn what they are.
        """
        if self._sparse is None and not learn:
            raise ValueError(f"{name}: these columns have not learned from any rows yet.")
        if self._sparse not in (None, sparse):
            kinds = "svmlight text, which has no column names", "a table with column names"
            was, now = kinds if self._sparse else kinds[::-1]
            raise ValueError(f"{name} is {now}; the rows before were {was}.")
        self._sparse = sparse

    def _match(
        self, header: Sequence[str], name: str, *, learn: bool, labelled: bool
    ) -> tuple[Roles, list[str]]:
        """Return what to do with the columns of a file, and what to tell of them."""
        _refuse_twins(header, name)
        self.expect(sparse=False, name=name, learn=learn)
        notes = []
        if self.numeric_ is None:
            self._learn_header(header, name, labelled)
        else:
            notes = self._compare(header, name, labelled)
        label = _text(self.label) if labelled else None
        wanted = [label, *([self.id] if self.id in header else []), *self._tables]
        texts = tuple(dict.fromkeys(str(column) for column in wanted if column is not None))
        codes = dict.fromkeys(header, _DROPPED)
        codes |= {column: number for number, column in enumerate(self.numeric_ or [])}
        codes |= {column: -2 - number for number, column in enumerate(texts)}
        roles = np.array([codes[column] for column in header], dtype=np.int64)
        return Roles(roles, len(self.numeric_ or []), texts, label), notes

    def _encode(
        self, rows: Rows, *, learn: bool, where: str
    ) -> tuple[Any, NDArray[np.int64] | None, list[str] | None, list[tuple[int, str]]]:
        """Return features, labels, ids and the rows that are left out for their label, and why."""
        y, faults = None, list[tuple[int, str]]()
        if rows.labels is not None:
            y, faults = self.labels.encode(rows.labels, learn=learn, where=where)
        ids = rows.texts.get(str(self.id)) if self.id is not None else None
        X = self._features(rows, learn)
        if faults:
            kept = np.delete(np.arange(X.shape[0]), [row for row, _ in faults])
            X, y = X[kept], None if y is None else y[kept]
            ids = None if ids is None else [ids[row] for row in kept.tolist()]
        return X, y, ids, faults

    def _features(self, rows: Rows, learn: bool) -> Any:
        X: Any = rows.X
        if not isinstance(X, np.ndarray):
            self.width_ = max(self.width_, X.shape[1]) if learn else self.width_
            return _of_width(X, self.width_)
        if not self._tables:
            return X
        picks = [self._picks(name, rows.texts[name], learn) for name in self._tables]
        return _with_categories(X, np.column_stack(picks), self.width_)

    def _picks(self, name: str, cells: list[str], learn: bool) -> NDArray[np.int64]:
        """Return the feature of each cell of a column; -1 for none."""
        table = self._tables[name]
        if table.size is None and (learn or self._met.is_sorted):
            for cell in dict.fromkeys(cells):
                if table.find(cell) < 0 and not self._recall(table, cell) and learn:
                    self._grow(table, cell)
        return np.array([table.find(cell) for cell in cells], dtype=np.int64)

    def _recall(self, table: Table, cell: str) -> bool:
        """Say whether a category is known from a file, and let its table know it."""
        place = self._met.find(table.number, cell) if self._met.is_sorted else -1
        if place >= 0:
            table.add(cell, self.width_ - len(self._met) + place)
        return place >= 0

    def _grow(self, table: Table, cell: str) -> None:
        if self.width_ >= self.max_features:
            raise ValueError(
                f"column {table.name!r} has so many categories that rows would be wider than "
                f"max_features={self.max_features}; say hash:BITS."
            )
        table.add(cell, self.width_)
        self._met.append(table.number, cell)
        self.width_ += 1

    # The header --------------------------------------------------------------------------------

    def _learn_header(self, header: Sequence[str], name: str, labelled: bool) -> None:
        if self.label is None and labelled:
            raise ValueError(f"{name}: say which column is the label. {_listed(header)}")
        known = set(header)
        self.label = _find(self.label, header, known, name)
        self.id = _find(self.id, header, known, name)
        self.drop = [str(_find(column, header, known, name)) for column in self.drop]
        self._name_categorical(header, known, name)
        self._refuse_two_roles(name)
        _refuse_unkeepable(header, [self.label, self.id], name)
        apart = {self.label, self.id, *self.drop, *self._tables}
        self.numeric_ = [column for column in header if column not in apart]
        self._place_features()
        if self.width_ > WIDEST:
            raise ValueError(
                f"{name}: its rows would be {self.width_:,} features wide; hash categories to "
                "fewer bits."
            )

    def _place_features(self) -> None:
        """Give numeric columns the first features, and tables those that are fixed."""
        self.width_ = len(self.numeric_ or [])
        for table in self._tables.values():
            self.width_ = table.place(self.width_)

    def _name_categorical(self, header: Sequence[str], known: set[str], name: str) -> None:
        """Call categorical columns that were told by number by their names."""
        found: dict[str, str | list[str]] = {}
        for column, how in self.categorical.items():
            called = str(_find(column, header, known, name))
            if called in found:
                raise ValueError(f"{name}: column {called!r} is made categorical twice; say one.")
            found[called] = how
        self.categorical, self._tables = found, tables_of(found)

    def _refuse_two_roles(self, name: str) -> None:
        """Refuse a column that is asked to be two things, but for an id that is a feature too."""
        roles: dict[str, dict[Any, None]] = {
            "the label": {self.label: None},
            "dropped": dict.fromkeys(self.drop),
            "categorical": dict.fromkeys(self._tables),
            "the id": {self.id: None},
        }
        for (one, columns), (other, others) in itertools.combinations(roles.items(), 2):
            both = [column for column in columns if column is not None and column in others]
            if both and {one, other} != {"categorical", "the id"}:
                raise ValueError(
                    f"{name}: column {both[0]!r} cannot be {one} and {other} at once; say one of "
                    "the two."
                )

    def _compare(self, header: Sequence[str], name: str, labelled: bool) -> list[str]:
        label, there = [str(self.label)] if labelled else [], set(header)
        for column in itertools.chain(self.numeric_ or [], self._tables, label):
            if column not in there:
                raise ValueError(
                    f"{name} has no column {column!r}, which the model needs. {_listed(header)}"
                )
        known = {*(self.numeric_ or []), *self._tables, self.label, self.id, *self.drop}
        extra = [column for column in header if column not in known]
        notes = [f"{name}: passed over {_named(extra)}, which the model does not know."]
        notes = notes if extra else []
        if self.id is not None and self.id not in header:
            notes.append(f"{name} has no column {self.id!r}, so its rows have no ids.")
        return notes

    # Storing -----------------------------------------------------------------------------------

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return all that is known, to be kept.

        Returns
        -------
        arrays : dict of str to ndarray
            The arrays, not copied.
        facts : dict
            Values that JSON can hold.
        """
        return columns_state.state_of(
            columns_state.Kept(
                label=self.label,
                id=self.id,
                positive=self.labels.positive,
                negative=self.labels.negative,
                drop=self.drop,
                categorical=self.categorical,
                zero_based=self.zero_based,
                max_features=self.max_features,
                numeric=self.numeric_,
                met=self._met,
                width=self.width_,
                sparse=self._sparse,
            )
        )

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Self:
        """Return the columns of `get_state`.

        Parameters
        ----------
        arrays : dict of str to ndarray
            The arrays of `get_state`.
        facts : dict
            Its facts.

        Returns
        -------
        Columns
            What the columns mean, as it was.

        Raises
        ------
        ValueError
            If they make no sense.
        """
        kept = columns_state.kept_in(arrays, facts)
        columns = cls(
            kept.label,
            drop=kept.drop,
            id=kept.id,
            categorical=kept.categorical,
            zero_based=kept.zero_based,
            max_features=kept.max_features,
        )
        columns.labels.positive, columns.labels.negative = kept.positive, kept.negative
        columns.numeric_, columns._sparse = kept.numeric, kept.sparse
        if kept.numeric is not None:
            columns._refuse_two_roles("in a model file")
        columns._place_features()
        columns._meet_again(kept.met)
        if kept.numeric is None:
            columns.width_ = kept.width
        if columns.width_ != kept.width or (len(kept.met) and kept.width > kept.max_features):
            raise ValueError(f"its columns make {columns.width_} features, not {kept.width}")
        return columns

    def _meet_again(self, met: Met) -> None:
        """Give the categories of a file the features after all others."""
        tables = list(self._tables.values())
        if not met.is_sorted:
            for place, (number, value) in enumerate(met):
                if tables[number].find(value) >= 0:
                    raise ValueError(f"its columns have the category {value!r} twice")
                tables[number].add(value, self.width_ + place)
        self._met = met
        self.width_ += len(met)

    def cut(self, width: int) -> None:
        """Leave out the last features, which only rows that were left out have shown.

        Parameters
        ----------
        width : int
            How many features there are from now on.
        """
        fixed = 0 if self._sparse else self.width_ - len(self._met)
        if not fixed <= width <= self.width_:
            raise ValueError(f"its columns make {self.width_} features, and its ranker has {width}")
        if self._sparse:
            self.width_ = width
        elif width < self.width_:
            self._place_features()
            self._meet_again(self._met.cut(width - fixed))


def _of_width(X: Any, width: int) -> csr_array:
    if X.shape[1] > width:
        return X[:, :width]
    return csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def _with_categories(
    numbers: NDArray[np.float64], picks: NDArray[np.int64], width: int
) -> csr_array:
    """Return numbers and the features of categories as sparse rows."""
    places = np.broadcast_to(np.arange(numbers.shape[1]), numbers.shape)
    features = np.hstack([places, picks])
    values = np.hstack([numbers, np.ones(picks.shape)])
    kept = np.hstack([numbers != 0, picks >= 0])
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
    X = csr_array(
        (values[kept], features[kept].astype(np.int32), indptr), shape=(len(numbers), width)
    )
    X.sort_indices()
    return X


def _text(name: str | int | None) -> str | None:
    return None if name is None else str(name)


def _told(column: Any, what: str) -> str | int | None:
    """Return how a column is told: by its name or by its number from 1."""
    if column is None or isinstance(column, str):
        return None if column is None else str(column)
    number = 0 if isinstance(column, bool) or not isinstance(column, Integral) else int(column)
    if 1 <= number < 2**63:
        return number
    raise ValueError(f"{what} is told by a column's name or its number from 1, not by {column!r}.")


def _find(
    column: str | int | None, header: Sequence[str], known: set[str], name: str
) -> str | None:
    """Return the name of a column that is told by name or by number from 1."""
    if column is None or column in known:
        return _text(column)
    if str(column).isdecimal() and 1 <= int(column) <= len(header):
        return header[int(column) - 1]
    raise ValueError(f"{name} has no column {str(column)!r}. {_listed(header)}")


def _listed(header: Sequence[str]) -> str:
    return f"Its columns are {_named(header)}."


def _named(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
    return ", ".join(repr(column) for column in columns[:_NAMED]) + more


def _refuse_unkeepable(header: Sequence[str], named: Iterable[str | None], name: str) -> None:
    """Refuse what a model file cannot hold, before anything is learned."""
    if len(header) > columns_state.MOST_COLUMNS:
        raise ValueError(
            f"{name} has {len(header):,} columns, and a table may have "
            f"{columns_state.MOST_COLUMNS:,}: svmlight text has no such limit."
        )
    for column in named:
        if column is not None and len(column) > LONGEST:
            raise ValueError(
                f"{name}: the column {column[:20]!r}... has a name of {len(column):,} characters, "
                f"and label and id may have {LONGEST:,}."
            )


def _refuse_twins(header: Iterable[str], name: str) -> None:
    seen: set[str] = set()
    for column in header:
        if column in seen:
            raise ValueError(f"{name} has two columns named {column!r}; rename one of them.")
        seen.add(column)
