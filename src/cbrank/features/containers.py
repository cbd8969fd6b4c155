"""Reading tables of every kind: arrays, lists, dictionaries, pandas, polars and Arrow.

No library of tables is imported: a table is known by the methods it has. What is read is a copy.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.features.cells import of_any, of_cell, of_list, of_polars, of_series
from cbrank.features.table import Column, Table

_NAMED = 5  # columns that a message lists


def read_table(X: Any, wanted: Mapping[str, bool] | None = None) -> Table:
    """Return the rows of `X` as a `Table`.

    Parameters
    ----------
    X : array-like, dict, list of dict, pandas, polars or Arrow table
        Rows. A dictionary holds columns, or the cells of one row.
    wanted : dict of str to bool, optional
        If `X` names its columns: those to read, in this order, and whether each must be there. A column
        that need not, or a key that rows as dictionaries lack, is a gap.

    Returns
    -------
    Table
        The rows; it shares no memory with `X`.

    Examples
    --------
    >>> read_table([{"age": 31, "city": "Oslo"}, {"age": None, "city": "Bergen"}]).columns
    [array([31., nan]), Words(codes=array([0, 1], dtype=int32), values=('Oslo', 'Bergen'),
    declared=False)]
    """
    table = _read(X, wanted)
    for count, what in zip(table.shape[::-1], ("feature", "sample"), strict=True):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={table.shape}) while a minimum of 1 is required."
            )
    return table


def _read(X: Any, wanted: Mapping[str, bool] | None) -> Table:
    if isinstance(X, Table):
        columns = dict(zip(X.names, X.columns, strict=True))
        found = _of_columns(X.names, columns.get, wanted, _copied)
        return Table(found.names, found.columns, X.named)
    if sp.issparse(X):
        raise TypeError(
            "Sparse data was passed for X, but dense data is required: use X.toarray(), or rank "
            "sparse rows by CBRanker, which takes them as they are."
        )
    if isinstance(X, Mapping):
        if rows := dictionaries_of(X):
            return _of_dictionaries(rows, wanted)
        return _of_columns([*X], lambda at: X[at], wanted, of_any)
    if hasattr(X, "collect_schema") and not hasattr(X, "get_columns"):
        raise ValueError("X is a LazyFrame, which has no rows yet: collect it first.")
    if hasattr(X, "get_columns") and hasattr(X, "columns"):
        return _of_columns(X.columns, X.get_column, wanted, of_polars)
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return _of_pandas(X, wanted)
    if hasattr(X, "to_pydict") and hasattr(X, "schema"):
        return _of_arrow(X, wanted)
    if rows := dictionaries_of(X):
        return _of_dictionaries(rows, wanted)
    return _of_array(X, wanted)


def dictionaries_of(X: Any) -> Sequence[Mapping[Any, Any]]:
    """Return rows that are dictionaries; none if they are anything else.

    Examples
    --------
    >>> dictionaries_of({"age": 31}), dictionaries_of({"age": [31, 32]})
    ([{'age': 31}], ())
    """
    if isinstance(X, Mapping):
        return () if all(map(_is_column, X.values())) else [X]
    return X if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping) else ()


def _is_column(values: Any) -> bool:
    return isinstance(values, list | tuple | np.ndarray) or (
        hasattr(values, "__len__")
        and hasattr(values, "__getitem__")
        and not isinstance(values, str | bytes | Mapping)
    )


# Containers --------------------------------------------------------------------------------------


def _of_columns(names: list[Any], get: Any, wanted: Mapping[str, bool] | None, read: Any) -> Table:
    """Return a table of named columns."""
    texts = [str(name) for name in names]
    _refuse_twins(texts)
    keys = dict(zip(texts, names, strict=True))
    if wanted is None:
        wanted = dict.fromkeys(texts, True)
    elif missing := [name for name, needed in wanted.items() if needed and name not in keys]:
        raise ValueError(
            f"X lacks the column{'s' * (len(missing) > 1)} {_listed(missing)}, from which this "
            "encoder learned: add what is missing (empty cells will do), or fit anew."
        )
    columns = {
        name: read(get(keys[name]), place, name)
        for place, name in enumerate(wanted)
        if name in keys
    }
    there, lengths = [*columns], [*map(len, columns.values())]
    if len({*lengths}) > 1:
        odd = next(at for at, length in enumerate(lengths) if length != lengths[0])
        raise ValueError(
            f"the columns of X differ in length: {there[0]!r} has {lengths[0]} rows, "
            f"{there[odd]!r} has {lengths[odd]}."
        )
    gaps = np.full(lengths[0] if lengths else 0, np.nan)
    return Table([*wanted], [columns.get(name, gaps) for name in wanted])


def _refuse_twins(names: list[str]) -> None:
    if len({*names}) < len(names):
        twins = sorted(name for name, count in Counter(names).items() if count > 1)
        raise ValueError(
            f"X has more than one column named {_listed(twins)}: give each a name of its own."
        )


def _copied(column: Column, place: int, name: str) -> Column:  # noqa: ARG001
    return column.copy() if isinstance(column, np.ndarray) else column[:]


def _of_pandas(X: Any, wanted: Mapping[str, bool] | None) -> Table:
    names = X.columns.tolist()
    texts = sum(isinstance(name, str) for name in names)
    if texts == len(names) and len(X) == 1 and not any(map(_is_category, X.dtypes)):
        # To get hold of columns takes pandas longer than to read the cells of one row.
        cells = dict(zip(names, X.to_numpy(dtype=object)[0], strict=True))
        return _of_columns(names, cells.__getitem__, wanted, of_cell)
    if texts == len(names):
        return _of_columns(names, X.__getitem__, wanted, of_series)
    if texts:
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your "
            "input has names of other types too: use X.columns = X.columns.astype(str)."
        )
    columns = [of_series(series, at, f"x{at}") for at, (_, series) in enumerate(X.items())]
    return _unnamed(columns)


def _of_arrow(X: Any, wanted: Mapping[str, bool] | None) -> Table:
    """Read a table or a record batch by the places of its columns: two may have one name."""
    names = X.schema.names
    places = {name: at for at, name in enumerate(names)}
    return _of_columns(names, lambda name: X.column(places[name]).to_pylist(), wanted, of_any)


def _of_dictionaries(rows: Sequence[Mapping[Any, Any]], wanted: Mapping[str, bool] | None) -> Table:
    keys = dict.fromkeys(chain.from_iterable(rows))
    if not all(isinstance(key, str) for key in keys):
        for row in rows:
            _refuse_twins([*map(str, row)])
        rows = [{str(key): cell for key, cell in row.items()} for row in rows]
    names = [*(dict.fromkeys(map(str, keys)) if wanted is None else wanted)]
    known = {*names}
    for at, row in enumerate(rows if wanted is not None else ()):
        if known.isdisjoint(row):
            raise ValueError(
                f"row {at} of X has none of the columns from which this encoder learned: "
                f"{_listed(names)}."
            )
    if len(rows) == 1:
        get = rows[0].get
        return Table(names, [of_cell(get(name), at, name) for at, name in enumerate(names)])
    columns = [of_list([row.get(name) for row in rows], at, name) for at, name in enumerate(names)]
    return Table(names, columns)


def _of_array(X: Any, wanted: Mapping[str, bool] | None) -> Table:
    cells = X if isinstance(X, np.ndarray) else _as_array(X)
    if cells.dtype.names:
        return _of_columns([*cells.dtype.names], lambda name: cells[name], wanted, of_any)
    if cells.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {'scalar' if cells.ndim == 0 else f'{cells.ndim}D'} array "
            "instead. Reshape your data: X is a table, one row for each sample."
        )
    if cells.dtype.kind in "biuf" and not isinstance(cells, np.ma.MaskedArray):
        with np.errstate(over="ignore"):
            return _unnamed([*np.array(cells.T, np.float64, order="C")])
    return _unnamed([of_any(column, at, f"x{at}") for at, column in enumerate(cells.T)])


def _as_array(X: Any) -> NDArray[Any]:
    """Return lists of rows as an array of two dimensions; rows of several types as objects."""
    if hasattr(X, "__array__") or not isinstance(X, list | tuple):
        return np.asarray(X)
    lengths = {len(row) if isinstance(row, list | tuple | np.ndarray) else -1 for row in X}
    if len(lengths) != 1 or -1 in lengths:
        if lengths == {-1} or not lengths:
            return np.asarray(X)
        raise ValueError(
            f"the rows of X differ in length: row 0 has {_length(X[0])}, row "
            f"{next(at for at, row in enumerate(X) if _length(row) != _length(X[0]))} does not."
        )
    cells = np.empty((len(X), lengths.pop()), object)
    for at, row in enumerate(X):
        cells[at] = row
    return cells


def _length(row: Any) -> int:
    return len(row) if isinstance(row, list | tuple | np.ndarray) else -1


def _unnamed(columns: list[Column]) -> Table:
    return Table([f"x{at}" for at in range(len(columns))], columns, named=False)


def _listed(names: Sequence[str]) -> str:
    others = f" and {len(names) - _NAMED:,} others" if len(names) > _NAMED else ""
    return ", ".join(map(repr, names[:_NAMED])) + others


def _is_category(dtype: Any) -> bool:
    return hasattr(dtype, "categories")
