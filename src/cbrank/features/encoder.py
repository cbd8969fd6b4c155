"""A transformer that takes tables as they come."""

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cbrank.estimator import Estimator, TransformerMixin, check_is_fitted
from cbrank.features.containers import read_table
from cbrank.features.encoding import Encoding, Known, Settings, is_text
from cbrank.features.kinds import Decision
from cbrank.features.table import MOST_TABLE_COLUMNS, Column, Table
from cbrank.locking import Owner
from cbrank.parameters import COUNT, Kind, Number, Other

_FIRST, _BLOCK = 256, 1024  # rows that `partial_fit` learns from at a time
_FIRST_OF_ALL = 512  # rows of the first block of `fit`
_MOST_PIECES = 1024
_WAITING = "waiting."


class TableEncoder(Owner, TransformerMixin, Estimator):
    """Turn tables as they come into sparse rows of numbers, which a linear ranker can learn from.

    What each column is, is decided from the first rows: a number (a line, and pieces between knots,
    whose weights make a curve), a word (a feature for each category), a time (year, month, weekday,
    hour, days since the first), free text (words and pairs of words, hashed) or an id, which is
    left out. In a stream, so are a number that only ever rises or falls and, of a time that comes in
    order, what does not come round every few hundred rows: they say when a row came, not of what
    kind it is. A gap is a feature of its own, and where one value is most of a column of numbers, so
    are others that come often. As the stream goes on, new categories get features, and
    columns that begin to move or leave their knots get curves. Features are added at the end; what
    a feature means never changes.

    Parameters
    ----------
    pieces : int, default=8
        The number of pieces of a curve.
    kinds : dict, optional
        What columns are, if you know better: "number", "word", "time", "text" or "drop", by the
        column's name or its position.
    max_categories : int, default=64
        The number of categories of a column that have features of their own; the words of a column
        with more share 32.

    Attributes
    ----------
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        Their names, if the first table had some.
    kinds_ : dict of str to str
        What each column was decided to be; "empty" as long as it has no value.
    in_order_ : list of str
        The columns that rise, or fall, with the rows of a stream.
    needs_ : dict of str to bool
        Whether each column must be there in rows to come: not so once it was left out.
    width_ : int
        The number of features so far.
    owners_ : ndarray of shape (n_encoded,)
        The column of each feature, by position.
    bends_ : ndarray of bool of shape (n_encoded,)
        Whether a feature is a piece of a curve.
    is_wide_ : bool
        Whether there is free text, which has many thousands of features.

    Examples
    --------
    >>> from cbrank.features import TableEncoder
    >>> rows = {"age": [31, 45, None, 27] * 16, "city": ["Oslo", "Bergen", "Oslo", "?"] * 16}
    >>> encoder = TableEncoder().fit(rows)
    >>> encoder.decisions()
    ['age: a number, 2 pieces between 27 and 45; 16 of 64 cells are gaps',
     'city: a word, 2 categories; 16 of 64 cells are gaps']
    >>> encoder.get_feature_names_out()
    array(['age: missing', 'age', 'age: 27 to 31', 'age: 31 to 45',
           'city: missing', 'city=Oslo', 'city=Bergen'], dtype=object)
    >>> encoder.transform({"age": [None], "city": ["Bergen"]}).toarray()
    array([[1., 0., 0., 0., 0., 0., 1.]])
    """

    _encoding: Encoding
    _waiting: list[Table]
    _settled: int
    n_features_in_: int

    KINDS: ClassVar[dict[str, tuple[Kind, ...]]] = {
        "pieces": (Number(int, 1, _MOST_PIECES, closed="both"),),
        "kinds": (Other("dict", dict), None),
        "max_categories": (COUNT,),
    }

    def __init__(
        self, pieces: int = 8, kinds: dict[Any, str] | None = None, max_categories: int = 64
    ) -> None:
        self.pieces = pieces
        self.kinds = kinds
        self.max_categories = max_categories

    # Rows ----------------------------------------------------------------------------------------

    def read(self, X: Any) -> Table:
        """Read rows; the first that are read say which columns there are.

        Parameters
        ----------
        X : array-like, dict, list of dict, pandas, polars or Arrow table
            Rows. Columns with names are found by name, in any order and among others; those that were
            left out need not be there.

        Returns
        -------
        Table
            The rows, in columns as this encoder knows them; a copy.

        Examples
        --------
        >>> TableEncoder().read({"age": [31, None], "city": ["Oslo", "Bergen"]}).shape
        (2, 2)
        """
        with self._own.lock:
            if not self.__sklearn_is_fitted__():
                table = read_table(X)
                self._begin(table)
                return table
        named = hasattr(self, "feature_names_in_")
        table = read_table(X, self.needs_ if named else None)
        if table.named != named:
            was, fitted = ("has", "without") if table.named else ("does not have valid", "with")
            warnings.warn(
                f"X {was} feature names, but TableEncoder was fitted {fitted} feature names",
                stacklevel=3,
            )
        if table.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {table.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return Table(self._encoding.settings.names, table.columns, named)

    def _begin(self, table: Table) -> None:
        """Forget everything and take the columns of a table."""
        self._validate_params()
        names = tuple(table.names)
        if len(names) > MOST_TABLE_COLUMNS:
            raise ValueError(
                f"X has {len(names):,} columns; a table may have {MOST_TABLE_COLUMNS:,} at most. "
                "Leave columns out, or rank rows of numbers by CBRanker(covariance='diagonal')."
            )
        encoding = Encoding(
            Settings.asked_for(names, self.pieces, self.max_categories, self.kinds or {})
        )
        self.__dict__.pop("feature_names_in_", None)
        if table.named:
            self.feature_names_in_ = np.array(names, object)
        self.n_features_in_ = len(names)
        self._encoding, self._waiting, self._settled = encoding, [], 0

    @classmethod
    def of_columns(cls, table: Table, *parameters: Any) -> Self:
        """Return an encoder that has learned nothing but the columns of a table."""
        encoder = cls(*parameters)
        encoder._begin(table)
        return encoder

    # The stream ----------------------------------------------------------------------------------

    def settle(self, table: Table, *, in_order: bool = True) -> None:
        """Learn from the rows of a block: what columns are, their knots, new categories.

        Blocks, unlike chunks of `partial_fit`, make a difference: all rows of one are looked at
        together.

        Parameters
        ----------
        table : Table
            Rows that `read` returned.
        in_order : bool, default=True
            Whether rows are learned from in this order, so that a number which only ever rises is left
            out, and a time in order has neither year nor days.

        Examples
        --------
        >>> encoder = TableEncoder()
        >>> encoder.settle(encoder.read({"age": [31, 45, 27]}))
        >>> encoder.settle(encoder.read({"age": [None]}))
        >>> encoder.get_feature_names_out()[-1]
        'age: missing'
        """
        with self._own.lock:
            if not self.__sklearn_is_fitted__():
                self._begin(table)
            self._encoding.settle(table, in_order=in_order)
            self._settled += len(table)

    def encode(self, table: Table) -> csr_array:
        """Return rows of features by what was learned so far.

        Parameters
        ----------
        table : Table
            Rows that `read` returned.

        Returns
        -------
        csr_array of shape (n_rows, n_encoded)
            The features, in order in each row.

        Examples
        --------
        >>> encoder = TableEncoder()
        >>> table = encoder.read({"paid": [True, False, False, None]})
        >>> encoder.settle(table)
        >>> encoder.encode(table.take([0, 3])).toarray().round(3)
        array([[0.   , 1.414],
               [1.   , 0.   ]])
        """
        return self._current().encode(table)

    def encode_dense(self, table: Table) -> NDArray[np.float64]:
        """Return the rows of `encode` as an array.

        Parameters
        ----------
        table : Table
            Rows that `read` returned.

        Returns
        -------
        ndarray of shape (n_rows, n_encoded)
            The features.
        """
        return self._current().encode_dense(table)

    @property
    def n_settled_(self) -> int:
        """The number of rows learned from."""
        return self._settled

    def known(self) -> list[Known | None]:
        """Return what is known of each column: its knots, its categories and their features.

        Returns
        -------
        list of NumberColumn, WordColumn, TimeColumn, TextColumn or None
            None for a column that is left out, or has no value so far.
        """
        return [column.known for column in self._current().columns]

    @classmethod
    def joined(
        cls, encoders: Sequence[Self], shared: Self | None
    ) -> tuple[Self, list[NDArray[np.int64]]]:
        """Return the encoder that has the features of several, and where it has those of each.

        Parameters
        ----------
        encoders : sequence of TableEncoder
            Encoders that settled their first rows together, or went on from `shared`.
        shared : TableEncoder, optional
            What they went on from.

        Returns
        -------
        TableEncoder
            An encoder that goes on from what all have seen.
        list of ndarray
            The places of each one's features.
        """
        from cbrank.features.joining import joined  # noqa: PLC0415 (only merging needs it)

        known = None if shared is None else shared._encoding
        encoding, places = joined([each._encoding for each in encoders], known)
        whole = deepcopy(encoders[0])
        begun = 0 if shared is None else shared._settled
        whole._encoding, whole._waiting = encoding, []
        whole._settled = begun + sum(each._settled - begun for each in encoders)
        return whole, places

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn anew: the first 512 rows decide, the others add to it; their order says nothing.

        Parameters
        ----------
        X : array-like, dict, list of dict, pandas, polars or Arrow table
            Rows.
        y : None
            Ignored.

        Returns
        -------
        TableEncoder
            The encoder itself.
        """
        self._validate_params()
        table = read_table(X)
        with self._own.lock:
            self._begin(table)
            ends = [0, *range(_FIRST_OF_ALL, len(table), _BLOCK), len(table)]
            for begin, end in pairwise(ends):
                self.settle(table.take(slice(begin, end)), in_order=False)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Go on learning. Any split of the rows into chunks gives the same encoder.

        Rows wait until there are 256, from then on until there are 1,024 more; `transform` before
        that goes by the rows so far.

        Parameters
        ----------
        X : array-like, dict, list of dict, pandas, polars or Arrow table
            Rows.
        y : None
            Ignored.

        Returns
        -------
        TableEncoder
            The encoder itself.

        Examples
        --------
        >>> encoder = TableEncoder()
        >>> for hour in range(300):
        ...     _ = encoder.partial_fit({"hour": hour % 24, "shop": "A" if hour % 3 else "B"})
        >>> encoder.kinds_
        {'hour': 'number', 'shop': 'word'}
        """
        with self._own.lock:
            table = self.read(X)
            waiting = [*self._waiting, table]
            count = sum(map(len, waiting))
            while count >= (size := _BLOCK if self._settled else _FIRST):
                rows = Table.concatenated(waiting)
                self.settle(rows.take(slice(0, size)))
                waiting = [rows.take(slice(size, None))]
                self._waiting, count = waiting, count - size
            self._waiting = waiting
        return self

    def transform(self, X: Any) -> csr_array:
        """Return rows of features by what was learned so far.

        Parameters
        ----------
        X : array-like, dict, list of dict, pandas, polars or Arrow table
            Rows; they are not changed.

        Returns
        -------
        csr_array of shape (n_rows, n_encoded)
            The features.
        """
        check_is_fitted(self)
        from sklearn.utils._set_output import _get_output_config  # noqa: PLC0415

        output = _get_output_config("transform", self)["dense"]
        if output != "default":
            raise ValueError(
                f"{output.capitalize()} output does not support sparse data. TableEncoder gives "
                'sparse rows: use set_output(transform="default").'
            )
        return self.encode(self.read(X))

    def _current(self) -> Encoding:
        """Return what was learned; before the first block is complete, from the rows so far."""
        check_is_fitted(self)
        with self._own.lock:
            if self._settled or not self._waiting:
                return self._encoding
            rows = sum(map(len, self._waiting))
            if self._own.known is None or self._own.known[0] != (id(self._encoding), rows):
                encoding = Encoding(self._encoding.settings)
                encoding.settle(Table.concatenated(self._waiting), in_order=True)
                self._own.known = (id(self._encoding), rows), encoding
            found: Encoding = self._own.known[1]
            return found

    # What was learned ----------------------------------------------------------------------------

    @property
    def width_(self) -> int:
        """The number of features so far."""
        return self._current().ledger.width

    @property
    def owners_(self) -> NDArray[np.int64]:
        """The column of each feature, by position."""
        return self._current().ledger.owners()

    @property
    def bends_(self) -> NDArray[np.bool_]:
        """Whether a feature is a piece of a curve."""
        return self._current().ledger.bends()

    @property
    def kinds_(self) -> dict[str, str]:
        """What each column was decided to be."""
        encoding = self._current()
        kinds = [column.decision.kind or "empty" for column in encoding.columns]
        return dict(zip(encoding.settings.names, kinds, strict=True))

    @property
    def needs_(self) -> dict[str, bool]:
        """Whether each column must be there in rows to come: not so once it was left out."""
        columns = self._encoding.columns
        needed = [column.decision.kind != "drop" for column in columns]
        return dict(zip(self._encoding.settings.names, needed, strict=True))

    @property
    def in_order_(self) -> list[str]:
        """The columns that rise, or fall, with the rows of a stream."""
        encoding = self._current()
        columns = zip(encoding.settings.names, encoding.columns, strict=True)
        return [name for name, column in columns if column.comes_in_order()]

    @property
    def is_wide_(self) -> bool:
        """Whether there is free text, which has many thousands of features."""
        return any(is_text(column.known) for column in self._current().columns)

    def names(self) -> list[str]:
        """Return the names of the columns.

        Returns
        -------
        list of str
            "x0", "x1" and so on if the first table had no names.
        """
        return [*self._encoding.settings.names]

    def decided(self) -> list[Decision]:
        """Return what each column was decided to be.

        Returns
        -------
        list of Decision
            Of each column its `kind`, how its cells are read or why it is left out (`reason`), and
            whether the caller `asked` for it.

        Examples
        --------
        >>> TableEncoder(kinds={1: "word"}).fit([[3.5, "7"], [4.5, "8"]] * 20).decided()
        [Decision(kind='number', reason='', asked=False), Decision(kind='word', reason='', asked=True)]
        """
        return [column.decision for column in self._current().columns]

    def decisions(self) -> list[str]:
        """Say what each column was decided to be.

        Returns
        -------
        list of str
            A short sentence for each column.

        Examples
        --------
        >>> TableEncoder().fit([[3.5, "7"], [4.5, "?"]] * 20).decisions()
        ['x0: a number, two values, 3.5 and 4.5',
        'x1: a number, constant so far; 20 of 40 cells are gaps']
        """
        return self._current().sentences()

    def misfits(self, table: Table) -> dict[str, NDArray[np.int64]]:
        """Return the cells that do not fit what was decided, and count as gaps.

        Parameters
        ----------
        table : Table
            Rows that `read` returned.

        Returns
        -------
        dict of str to ndarray
            By column of numbers or times, the rows that hold a word which is neither.

        Examples
        --------
        >>> encoder = TableEncoder().fit({"age": [31, 45, 27] * 10})
        >>> encoder.misfits(encoder.read({"age": [31, "old", None]}))
        {'age': array([1])}
        """
        return self._current().misfits(table)

    def as_decided(self, table: Table) -> list[Column]:
        """Return columns as what they were decided to be; cells that are not are gaps.

        Parameters
        ----------
        table : Table
            Rows that `read` returned.

        Returns
        -------
        list of ndarray, Words or Times
            The columns.

        Examples
        --------
        >>> encoder = TableEncoder().fit({"age": [31, 45, 27] * 10})
        >>> encoder.as_decided(encoder.read({"age": ["31.0", "old", None]}))
        [array([31., nan, nan])]
        """
        return self._current().as_decided(table)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features.

        Parameters
        ----------
        input_features : array-like of str, optional
            Ignored, but for a check of their number and, if columns have names, of those.

        Returns
        -------
        ndarray of str
            Such as "age", "age: 23 to 31", "age: missing", "city=Oslo", "when: weekday=Mon".
        """
        check_is_fitted(self)
        if input_features is not None:
            from sklearn.utils.validation import _check_feature_names_in  # noqa: PLC0415

            _check_feature_names_in(self, input_features, generate_names=False)
        return self._current().ledger.names()

    # In model files ------------------------------------------------------------------------------

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the state, to be saved.

        Returns
        -------
        arrays : dict of str to ndarray
            Arrays of numbers.
        facts : dict
            Values that JSON can hold.
        """
        check_is_fitted(self)
        with self._own.lock:
            settings, arrays = self._encoding.settings, self._encoding.save()
            facts: dict[str, Any] = {
                "columns": len(settings.names),
                "named": hasattr(self, "feature_names_in_"),
                "pieces": settings.pieces,
                "max_categories": settings.most_categories,
                "settled": self._settled,
            }
            if sum(map(len, self._waiting)):
                rows = Table.concatenated(self._waiting).state()
                arrays |= {_WAITING + name: array for name, array in rows.items()}
        return arrays, facts

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Self:
        """Make an encoder from the state of `get_state`.

        Parameters
        ----------
        arrays : dict of str to ndarray
            The arrays of `get_state`.
        facts : dict
            Its facts.

        Returns
        -------
        TableEncoder
            The encoder, which goes on where it stopped.

        Raises
        ------
        ValueError
            If the state is inconsistent.

        Examples
        --------
        >>> encoder = TableEncoder().fit({"city": ["Oslo", "Bergen"] * 3})
        >>> TableEncoder.from_state(*encoder.get_state()).get_feature_names_out()
        array(['city=Oslo', 'city=Bergen'], dtype=object)
        """
        match facts:
            case {
                "columns": int(columns),
                "named": bool(named),
                "pieces": int(pieces),
                "max_categories": int(most),
                "settled": int(settled),
            } if 1 <= columns <= MOST_TABLE_COLUMNS and min(pieces, most) >= 1 and settled >= 0:
                pass
            case _:
                raise ValueError("its TableEncoder makes no sense")
        own, rows = dict[str, NDArray[Any]](), dict[str, NDArray[Any]]()
        for name, array in arrays.items():
            (rows if name.startswith(_WAITING) else own)[name.removeprefix(_WAITING)] = array
        encoding = Encoding.load(own, columns, pieces, most)
        names, asked = encoding.settings.names, dict(encoding.settings.asked)
        encoder = cls(pieces, asked or None, most)
        encoder._begin(Table(names, [], named))
        encoder._encoding, encoder._settled = encoding, settled
        if rows:
            table = Table.from_state(rows, names)
            if len(table) >= (_BLOCK if settled else _FIRST):
                raise ValueError("the waiting rows of its TableEncoder do not fit")
            encoder._waiting = [table]
        return encoder

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a twin with the same array of names, which is long and never changed."""
        if (names := vars(self).get("feature_names_in_")) is not None:
            memo[id(names)] = names
        return super().__deepcopy__(memo)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_encoding")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.dict = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags
