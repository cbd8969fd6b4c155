"""What the columns of a stream mean: given by the user, learned from the header, kept in the model."""

import itertools
import operator
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cbrank.features.table import Table as Rectangle
from cbrank.streams import columns_state
from cbrank.streams.categories import Met, Table, tables_of, with_categories
from cbrank.streams.header import (
    as_text,
    checked_column,
    find_column,
    listed,
    named,
    refuse_twins,
    refuse_unkeepable,
)
from cbrank.streams.labels import Labels
from cbrank.streams.rows import WIDEST, Roles, Rows

_DROPPED = -1  # as in cbrank.kernels.csv, which is not imported before it is needed


class Columns:
    r"""What the columns of a stream mean: label, id, numbers and categories.

    The user says what cannot be guessed; the rest is learned from the stream (the header, the two
    labels, new categories). All of it is stored with the model, so that rows to score are matched
    by column name. Features are the numeric columns, then those of hashed and listed categories,
    then one for each one-hot category in the order in which they appeared.

    Parameters
    ----------
    label : str or int, optional
        The label column, by name or by its number from 1; CSV and Parquet need it to train.
    positive : str, optional
        The positive label. By default it is the affirmative one of the two (1, yes, true and the
        like), else the rarer one in the first chunk.
    drop : sequence of str or int, default=()
        Columns to ignore.
    id : str or int, optional
        A column that is passed on as text beside the features.
    categorical : mapping, optional
        How categorical columns, by name or number, become features: "onehot" (one feature for
        each category, added as they appear), "hash:BITS" (2^BITS features; some categories share
        one) or a list of the categories. A category that is not in the list, or not in the model,
        is all zeros.
    zero_based : bool, default=False
        Whether the indices of svmlight text start at 0 and not at 1.
    max_width : int, default=2**24
        Most features that rows may have, at most 2^31 - 1. A row with a greater svmlight index
        is malformed, so that one bad line cannot make a model of gigabytes; a category beyond the
        limit is an error.

    Attributes
    ----------
    numeric_ : sequence of str or None
        The numeric columns in order; None before the first header, and for svmlight text.
    classes_ : list of str
        The labels so far, the positive one last.
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

    AS_THEY_COME: ClassVar[bool] = False  # whether rows are tables whose columns a ranker reads

    def __init__(
        self,
        label: str | int | None = None,
        positive: str | None = None,
        *,
        drop: Sequence[str | int] = (),
        id: str | int | None = None,
        categorical: Mapping[str, str | Sequence[str]] | None = None,
        zero_based: bool = False,
        max_width: int = 2**24,
    ) -> None:
        self.label, self.id = checked_column(label, "label"), checked_column(id, "id")
        self.drop = [
            column for told in drop if (column := checked_column(told, "drop")) is not None
        ]
        self.categorical: dict[str, str | list[str]] = {
            str(name): how if isinstance(how, str) else [str(value) for value in how]
            for name, how in (categorical or {}).items()
        }
        self.zero_based, self.max_width = bool(zero_based), operator.index(max_width)
        self.decimal = "."  # the decimal mark of the text that was learned from last
        if not 1 <= self.max_width <= WIDEST:
            raise ValueError(f"max_width must lie between 1 and 2^31 - 1, got {max_width}.")
        self._refuse_many_dropped()
        self.numeric_: Sequence[str] | None = None
        self.width_ = 0
        self.labels = Labels(positive)
        self._sparse: bool | None = None
        self._nameless = False  # whether the first header names the columns of a ranker
        self._tables = tables_of(self.categorical)
        self._met = Met()

    @classmethod
    def of_ranker(cls, names: Sequence[str] | None, width: int, labels: Sequence[str]) -> Self:
        """Make the columns of a ranker that learned elsewhere.

        Parameters
        ----------
        names : sequence of str or None
            The names of its features; None if it knows none: then rows are svmlight text, or tables
            whose columns are taken in their order.
        width : int
            How many they are.
        labels : sequence of str
            The two labels, the positive one last.

        Returns
        -------
        Columns
            Columns by which files are read for it; the label's column is to be given.
        """
        columns = cls()
        columns.labels = Labels.of(*labels)
        columns._sparse = columns._nameless = names is None
        columns.numeric_ = None if names is None else [str(name) for name in names]
        columns.width_ = width
        return columns

    def have_learned(self) -> bool:
        """Say whether the columns have been learned from a file.

        Returns
        -------
        bool
            Whether other rows can be read by them.
        """
        return self._sparse is not None

    @property
    def classes_(self) -> list[str]:
        """The labels so far, the positive one last."""
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

    def pass_on(self, column: str) -> None:
        """Pass a column of files to come on as text beside the rows, as the `id`.

        Parameters
        ----------
        column : str
            Its name. Of a table that is taken as it comes it may be any.
        """
        if self.numeric_ is None:
            raise ValueError("svmlight text has no columns that could be named.")
        if column in self.numeric_:
            raise ValueError(
                f"column {column!r} is a feature of the model and cannot be the id too."
            )
        if self.id not in (None, column):
            self.drop.append(str(self.id))
        self.id = column

    def read_label(self, column: str) -> None:
        """Read the labels of files to come from this column.

        Parameters
        ----------
        column : str
            Its name.
        """
        if self.numeric_ is None and not self._nameless:
            raise ValueError("rows of svmlight text begin with the label: leave `label` out.")
        if column == self.id or column in (*(self.numeric_ or ()), *self._tables):
            what = "the id" if column == self.id else "a feature"
            raise ValueError(f"column {column!r} is {what} of the model, and cannot be its label.")
        refuse_unkeepable((), [column], "the model")
        if self.label not in (None, column):
            self.drop.append(str(self.label))
        self.drop = [dropped for dropped in self.drop if dropped != column]
        self.label = column

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

    def names_of(self, header: Sequence[str], unnamed: str = "") -> list[str]:  # noqa: ARG002
        """Return the names of the columns of a file by its header.

        Parameters
        ----------
        header : sequence of str
            The first row.
        unnamed : {"", "first", "last"}, default=""
            Where rows have a cell more than the header; of tables as they come it gets a name.

        Returns
        -------
        list of str
            The names.
        """
        return list(header)

    def expected(self) -> list[str]:
        """Return names that a header is expected to have.

        Returns
        -------
        list of str
            Names of columns; none that is given by its number.
        """
        given = [self.label, self.id, *self.drop, *self.categorical]
        given += [] if self._nameless else self.numeric_ or []
        return [name for name in given if isinstance(name, str) and not name.isdecimal()]

    def _match(
        self, header: Sequence[str], name: str, *, learn: bool, labelled: bool
    ) -> tuple[Roles, list[str]]:
        """Return the roles of the columns of a file, and notes for the user about them."""
        refuse_twins(header, name)
        if not self._nameless:
            self.expect(sparse=False, name=name, learn=learn)
        if self.label is None and labelled:
            raise ValueError(
                f"{name}: which column is the label? Give `label=...`. {listed(header)}"
            )
        notes = self._name_columns(header, name) if self._nameless else []
        if self.numeric_ is None:
            self._learn_header(header, name)
        else:
            notes += self._compare(header, name, labelled)
        label = as_text(self.label) if labelled else None
        wanted = [label, *([self.id] if self.id in header else []), *self._tables]
        texts = tuple(dict.fromkeys(str(column) for column in wanted if column is not None))
        codes = dict.fromkeys(header, _DROPPED)
        codes |= {column: number for number, column in enumerate(self.numeric_ or [])}
        codes |= {column: -2 - number for number, column in enumerate(texts)}
        roles = np.array([codes[column] for column in header], dtype=np.int64)
        return Roles(roles, len(self.numeric_ or []), texts, label), notes

    def _encode(
        self, rows: Rows, *, learn: bool, where: str
    ) -> tuple[
        Any,
        NDArray[np.int64] | None,
        list[str] | None,
        NDArray[np.int64] | None,
        list[tuple[int, str]],
    ]:
        """Return features, labels, ids, the rows kept, and those left out with a message on each."""
        y, faults, kept = None, list[tuple[int, str]](), None
        if rows.labels is not None:
            y, faults = self._labelled(rows, learn=learn, where=where)
        ids = rows.texts.get(str(self.id)) if self.id is not None else None
        X = self._features(rows, learn)
        if y is not None and (y < 0).any():
            kept = np.flatnonzero(y >= 0)
            X, y = X.take(kept) if isinstance(X, Rectangle) else X[kept], y[kept]
            ids = None if ids is None else [ids[row] for row in kept.tolist()]
        return X, y, ids, kept, faults

    def _labelled(
        self, rows: Rows, *, learn: bool, where: str
    ) -> tuple[NDArray[np.int64], list[tuple[int, str]]]:
        """Return labels as 0 and 1, -1 for neither, and a message on each row that has neither."""
        assert rows.labels is not None
        return self.labels.encode(rows.labels, learn=learn, where=where)

    def _features(self, rows: Rows, learn: bool) -> Any:
        X: Any = rows.X
        if not isinstance(X, np.ndarray):
            self.width_ = max(self.width_, X.shape[1]) if learn else self.width_
            return _of_width(X, self.width_)
        if not self._tables:
            return X
        picks = [self._picks(name, rows.texts[name], learn) for name in self._tables]
        return with_categories(X, np.column_stack(picks), self.width_)

    def _picks(self, name: str, cells: list[str], learn: bool) -> NDArray[np.int64]:
        """Return the feature of each cell of a categorical column; -1 for none."""
        table = self._tables[name]
        if table.size is None and (learn or self._met.is_sorted):
            for cell in dict.fromkeys(cells):
                if table.find(cell) < 0 and not self._recall(table, cell) and learn:
                    self._grow(table, cell)
        return np.array([table.find(cell) for cell in cells], dtype=np.int64)

    def _recall(self, table: Table, cell: str) -> bool:
        """Say whether a category is one of a large model file's; if so, add it to its table."""
        place = self._met.find(table.number, cell) if self._met.is_sorted else -1
        if place >= 0:
            table.add(cell, self.width_ - len(self._met) + place)
        return place >= 0

    def _grow(self, table: Table, cell: str) -> None:
        if self.width_ >= self.max_width:
            raise ValueError(
                f"column {table.name!r} has so many categories that rows would be wider than "
                f"`max_width={self.max_width}`; hash it, by hash:BITS in `categorical`."
            )
        table.add(cell, self.width_)
        self._met.append(table.number, cell)
        self.width_ += 1

    def take_in(self, other: "Columns") -> None:
        """Add the one-hot categories that other columns of the same table have met.

        Parameters
        ----------
        other : Columns
            Columns that were given the same parameters.
        """
        tables = list(self._tables.values())
        for number, value in other._met:
            if tables[number].find(value) < 0 and not self._recall(tables[number], value):
                self._grow(tables[number], value)

    # The header --------------------------------------------------------------------------------

    def _learn_header(self, header: Sequence[str], name: str) -> None:
        known = set(header)
        self.label = find_column(self.label, header, known, name)
        self.id = find_column(self.id, header, known, name)
        self.drop = [str(find_column(column, header, known, name)) for column in self.drop]
        self._name_categorical(header, known, name)
        self._refuse_two_roles(name)
        self._refuse_many_dropped()
        refuse_unkeepable(header, [self.label, self.id], name)
        apart = {self.label, self.id, *self.drop, *self._tables}
        self.numeric_ = [column for column in header if column not in apart]
        self._place_features()
        if self.width_ > WIDEST:
            raise ValueError(
                f"{name}: its rows would be {self.width_:,} features wide; hash categories to "
                "fewer bits."
            )

    def _refuse_many_dropped(self) -> None:
        if len(self.drop) > columns_state.MOST_DROPPED:
            raise ValueError(f"drop may name {columns_state.MOST_DROPPED:,} columns at most.")

    def _name_columns(self, header: Sequence[str], name: str) -> list[str]:
        """Take columns in their order for those of a ranker that knows no names."""
        self._nameless = False
        if self.numeric_ and {*self.numeric_} <= {*header}:
            return []
        apart = {self.label, self.id, *self.drop}
        found = [column for column in header if column not in apart]
        if len(found) != self.width_:
            raise ValueError(
                f"{name} has {len(found)} columns beside label and id. The model knows no names, "
                f"and takes {self.width_} columns in their order: leave the others out, or save a "
                f"model that learned from columns with names. {listed(header)}"
            )
        self.numeric_, self._sparse = found, False
        return [f"{name}: its columns are taken in their order, for the model knows no names."]

    def _place_features(self) -> None:
        """Give the first features to numeric columns, the next to hashed and listed categories."""
        self.width_ = len(self.numeric_ or [])
        for table in self._tables.values():
            self.width_ = table.place(self.width_)

    def _name_categorical(self, header: Sequence[str], known: set[str], name: str) -> None:
        """Replace the numbers of categorical columns by their names."""
        found: dict[str, str | list[str]] = {}
        for column, how in self.categorical.items():
            called = str(find_column(column, header, known, name))
            if called in found:
                raise ValueError(f"{name}: column {called!r} is made categorical twice; say one.")
            found[called] = how
        self.categorical, self._tables = found, tables_of(found)

    def _refuse_two_roles(self, name: str) -> None:
        """Refuse a column with two roles; only an id may be categorical too."""
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
                    f"{name} has no column {column!r}, which the model needs. {listed(header)}"
                )
        known = {*(self.numeric_ or []), *self._tables, self.label, self.id, *self.drop}
        extra = [column for column in header if column not in known]
        notes = [f"{name}: ignored {named(extra)}, which the model does not know."]
        notes = notes if extra else []
        if self.id is not None and self.id not in header:
            notes.append(f"{name} has no column {self.id!r}, so its rows have no ids.")
        return notes

    # Storing -----------------------------------------------------------------------------------

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the state, to be saved.

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
                max_width=self.max_width,
                numeric=self.numeric_,
                met=self._met,
                width=self.width_,
                sparse=self._sparse,
            )
        )

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Self:
        """Make columns from the state of `get_state`.

        Parameters
        ----------
        arrays : dict of str to ndarray
            The arrays of `get_state`.
        facts : dict
            Its facts.

        Returns
        -------
        Columns
            The columns as they were.

        Raises
        ------
        ValueError
            If the state is inconsistent.
        """
        kept = columns_state.kept_in(arrays, facts)
        columns = cls(
            kept.label,
            drop=kept.drop,
            id=kept.id,
            categorical=kept.categorical,
            zero_based=kept.zero_based,
            max_width=kept.max_width,
        )
        columns.labels.positive, columns.labels.negative = kept.positive, kept.negative
        columns.numeric_, columns._sparse = kept.numeric, kept.sparse
        if kept.numeric is not None:
            columns._refuse_two_roles("in a model file")
        columns._place_features()
        columns._meet_again(kept.met)
        if kept.numeric is None:
            columns.width_ = kept.width
        if columns.width_ != kept.width or (len(kept.met) and kept.width > kept.max_width):
            raise ValueError(f"its columns make {columns.width_} features, not {kept.width}")
        return columns

    def _meet_again(self, met: Met) -> None:
        """Give the last features to the one-hot categories of a model file."""
        tables = list(self._tables.values())
        if not met.is_sorted:
            for place, (number, value) in enumerate(met):
                if tables[number].find(value) >= 0:
                    raise ValueError(f"its columns have the category {value!r} twice")
                tables[number].add(value, self.width_ + place)
        self._met = met
        self.width_ += len(met)


def _of_width(X: Any, width: int) -> csr_array:
    if X.shape[1] > width:
        return X[:, :width]
    return csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
