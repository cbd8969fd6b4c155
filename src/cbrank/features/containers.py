"""Reading tables of every kind: arrays, lists, dictionaries, pandas, polars and Arrow.

No library of tables is imported: a table is known by the methods it has. What is read is a copy.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Number, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.features.table import Column, Table, Times, Words, number_text, time_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_table(X: Any, wanted: Sequence[str] | None = None) -> Table:
    """Return the rows of `X` as a `Table`.

    Parameters
    ----------
    X : array-like, dict, list of dict, pandas, polars or Arrow table
        Rows. A dictionary holds columns, or the cells of one row.
    wanted : list of str, optional
        If `X` names its columns: those to read, in this order. A column that is not there is
        an error, a key that rows as dictionaries lack is a gap.

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
    if hasattr(X, "to_pydict"):
        X = X.to_pydict()
    if isinstance(X, Mapping):
        if not all(map(_is_column, X.values())):
            return _of_dictionaries([X], wanted)
        return _of_columns([*X], lambda at: X[at], wanted, _of_any)
    if hasattr(X, "collect_schema") and not hasattr(X, "get_columns"):
        raise ValueError("X is a LazyFrame, which has no rows yet: collect it first.")
    if hasattr(X, "get_columns") and hasattr(X, "columns"):
        return _of_columns(X.columns, X.get_column, wanted, _of_polars)
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return _of_pandas(X, wanted)
    if sp.issparse(X):
        raise TypeError(
            "Sparse data was passed for X, but dense data is required: use X.toarray(), or rank "
            "sparse rows by CBRanker, which takes them as they are."
        )
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        return _of_dictionaries(X, wanted)
    return _of_array(X, wanted)


def _is_column(values: Any) -> bool:
    return isinstance(values, list | tuple | np.ndarray) or (
        hasattr(values, "__len__")
        and hasattr(values, "__getitem__")
        and not isinstance(values, str | bytes | Mapping)
    )


# Containers --------------------------------------------------------------------------------------


def _of_columns(names: list[Any], get: Any, wanted: Sequence[str] | None, read: Any) -> Table:
    """Return a table of named columns."""
    texts = [str(name) for name in names]
    if len({*texts}) < len(texts):
        twins = sorted({name for name in texts if texts.count(name) > 1})
        raise ValueError(
            f"X has more than one column named {_listed(twins)}: give each a name of its own."
        )
    keys = dict(zip(texts, names, strict=True))
    if wanted is None:
        wanted = texts
    elif missing := [name for name in wanted if name not in keys]:
        raise ValueError(
            f"X lacks the column{'s' * (len(missing) > 1)} {_listed(missing)}, from which this "
            "encoder learned: add what is missing (empty cells will do), or fit anew."
        )
    columns = [read(get(keys[name]), place, name) for place, name in enumerate(wanted)]
    lengths = [*map(len, columns)]
    if len({*lengths}) > 1:
        odd = next(at for at, length in enumerate(lengths) if length != lengths[0])
        raise ValueError(
            f"the columns of X differ in length: {wanted[0]!r} has {lengths[0]} rows, "
            f"{wanted[odd]!r} has {lengths[odd]}."
        )
    return Table(wanted, columns)


def _of_pandas(X: Any, wanted: Sequence[str] | None) -> Table:
    names = X.columns.tolist()
    texts = sum(isinstance(name, str) for name in names)
    if texts == len(names):
        return _of_columns(names, X.__getitem__, wanted, _of_series)
    if texts:
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your "
            "input has names of other types too: use X.columns = X.columns.astype(str)."
        )
    columns = [_of_series(series, at, f"x{at}") for at, (_, series) in enumerate(X.items())]
    return _unnamed(columns)


def _of_dictionaries(rows: Sequence[Mapping[Any, Any]], wanted: Sequence[str] | None) -> Table:
    if wanted is None:
        names = [*dict.fromkeys(str(key) for row in rows for key in row)]
    else:
        names = [*wanted]
        known = {*names}
        for at, row in enumerate(rows):
            if known.isdisjoint(row):
                raise ValueError(
                    f"row {at} of X has none of the columns from which this encoder learned: "
                    f"{_listed(names[:5])}{' and others' * (len(names) > 5)}."
                )
    if len(rows) == 1 and all(isinstance(name, str) for name in rows[0]):
        get = rows[0].get
        return Table(names, [_of_cell(get(name), at, name) for at, name in enumerate(names)])
    texts = [
        row if all(map(_is_text, row)) else {str(k): v for k, v in row.items()} for row in rows
    ]
    columns = [
        _of_list([row.get(name) for row in texts], at, name) for at, name in enumerate(names)
    ]
    return Table(names, columns)


def _of_array(X: Any, wanted: Sequence[str] | None) -> Table:
    cells = X if isinstance(X, np.ndarray) else _as_array(X)
    if cells.dtype.names:
        return _of_columns([*cells.dtype.names], lambda name: cells[name], wanted, _of_any)
    if cells.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {'scalar' if cells.ndim == 0 else f'{cells.ndim}D'} array "
            "instead. Reshape your data: X is a table, one row for each sample."
        )
    if cells.dtype.kind in "biuf" and not isinstance(cells, np.ma.MaskedArray):
        with np.errstate(over="ignore"):
            return _unnamed([*np.array(cells.T, np.float64, order="C")])
    return _unnamed([_of_any(column, at, f"x{at}") for at, column in enumerate(cells.T)])


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


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


# Columns -----------------------------------------------------------------------------------------


def _of_any(values: Any, place: int, name: str) -> Column:
    """Read a column of any type; `place` and `name` are for messages."""
    if isinstance(values, np.ndarray):
        return _of_vector(values, place, name)
    if hasattr(values, "iloc") and hasattr(values, "dtype"):
        return _of_series(values, place, name)
    if hasattr(values, "to_list") and hasattr(values, "dtype"):
        return _of_polars(values, place, name)
    return _of_list([*values], place, name)


def _of_vector(values: NDArray[Any], place: int, name: str) -> Column:
    if values.ndim != 1:
        raise ValueError(f"column {name!r} of X has {values.ndim} dimensions, not one.")
    kind = values.dtype.kind
    if kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} of X has {values.dtype}.")
    if isinstance(values, np.ma.MaskedArray):
        return _of_list(values.tolist(), place, name)
    if kind in "biuf":
        with np.errstate(over="ignore"):
            return values.astype(np.float64)
    if kind == "M":
        return Times(_seconds(values))
    if kind == "m":
        return _seconds(values)
    return _of_list(values.tolist(), place, name)


def _seconds(values: NDArray[Any]) -> NDArray[np.float64]:
    whole = values.astype(f"{values.dtype.kind}8[us]")
    return np.where(np.isnat(whole), np.nan, whole.astype(np.int64) / 1e6)


def _of_series(series: Any, place: int, name: str) -> Column:
    """Read a column of pandas; types are known by what they have."""
    dtype = series.dtype
    if hasattr(dtype, "categories") and hasattr(series, "cat"):
        codes = series.cat.codes.to_numpy()
        return _of_codes(codes, series.cat.categories.tolist(), place, name, declared=True)
    kind = getattr(dtype, "kind", "O")
    if isinstance(dtype, np.dtype) and kind != "O":
        return _of_vector(series.to_numpy(), place, name)
    if kind in "biuf":
        return np.array(series.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "M" and hasattr(series, "dt"):
        zone = getattr(dtype, "tz", None) or getattr(series.dt, "tz", None)
        local = series.dt.tz_localize(None) if zone is not None else series
        return Times(_seconds(local.to_numpy(dtype="datetime64[us]")))
    try:
        codes, uniques = series.factorize()
    except TypeError:
        return _of_list(series.tolist(), place, name)
    return _of_codes(codes, uniques.tolist(), place, name)


def _of_polars(series: Any, place: int, name: str) -> Column:
    dtype = str(series.dtype).partition("(")[0]
    if dtype in ("Datetime", "Date", "Duration"):
        local = series.dt.replace_time_zone(None) if dtype == "Datetime" else series
        return _of_vector(local.to_numpy(), place, name)
    if dtype in ("Boolean", "Decimal", "Null") or series.dtype.is_numeric():
        return np.array(series.cast(float).to_numpy(), np.float64)
    column = _of_list(series.to_list(), place, name)
    if dtype in ("Categorical", "Enum") and isinstance(column, Words):
        return Words(column.codes, column.values, declared=True)
    return column


def _of_cell(cell: Any, place: int, name: str) -> Column:
    """Read the only cell of a column."""
    if type(cell) is float or type(cell) is int or cell is None:
        try:
            return np.array([cell], np.float64)
        except OverflowError:
            pass
    if type(cell) is str and (text := cell.strip()):
        return Words(np.zeros(1, np.int32), (text,))
    return _of_list([cell], place, name)


def _of_list(cells: list[Any], place: int, name: str) -> Column:
    kinds = {*map(type, cells)}
    if kinds <= {float, int, bool}:
        try:
            return np.array(cells, np.float64)
        except OverflowError:
            pass
    places: dict[Any, int] = {}
    try:
        codes = [places.setdefault(cell, len(places)) for cell in cells]
    except TypeError:
        row = next(at for at, cell in enumerate(cells) if not _hashable(cell))
        raise _no_cell(cells[row], row, place, name) from None
    return _of_codes(np.array(codes, np.int32), [*places], place, name)


def _hashable(cell: Any) -> bool:
    try:
        hash(cell)
    except TypeError:
        return False
    return True


def _no_cell(cell: Any, row: int, place: int, name: str) -> ValueError:
    shown = repr(cell)
    return ValueError(
        f"X has {shown[:60]}{'...' * (len(shown) > 60)} at row {row}, column {place} ({name!r}), "
        "which is no number, word or time: take nested cells apart into columns of their own."
    )


def _of_codes(
    codes: NDArray[Any], found: list[Any], place: int, name: str, declared: bool = False
) -> Column:
    """Return a column, given its different cells and the place of each row's among them."""
    read: list[float | str | datetime | None] = []
    for at, cell in enumerate(found):
        try:
            read.append(_read_cell(cell))
        except TypeError:
            row = int(np.flatnonzero(codes == at)[0]) if (codes == at).any() else 0
            raise _no_cell(cell, row, place, name) from None
    kinds = {*map(type, read)} - {type(None)}
    if not declared and kinds <= {float}:
        numbers = [np.nan if value is None else value for value in read]
        cells: Column = np.array([*numbers, np.nan], np.float64)[codes]
        return cells
    if not declared and kinds == {datetime}:
        moments = [np.nan if value is None else _since_1970(value) for value in read]
        return Times(np.array([*moments, np.nan])[codes])
    texts: dict[str, int] = {}
    places = [
        -1 if text is None else texts.setdefault(text, len(texts)) for text in map(_text, read)
    ]
    moved = np.array([*places, -1], np.int32)[codes]
    return Words(moved, tuple(texts), declared)


def _text(value: float | str | datetime | None) -> str | None:
    if isinstance(value, float):
        return number_text(value)
    return time_text(_since_1970(value)) if isinstance(value, datetime) else value


def _since_1970(moment: Any) -> float:
    return float((moment.replace(tzinfo=UTC) - _EPOCH).total_seconds())


def _read_cell(cell: Any) -> float | str | datetime | None:
    """Return a cell as a number, a word, a time or, if it is empty, None."""
    if isinstance(cell, str):
        return cell.strip() or None
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, np.generic) and not isinstance(cell, bytes):
        return _read_cell(cell.item()) if cell.dtype.kind in "biuf" else _read_scalar(cell)
    if isinstance(cell, Real | Decimal):
        return _read_number(cell)
    if isinstance(cell, bytes | bytearray):
        return bytes(cell).decode("utf-8", "surrogateescape").strip() or None
    return _read_moment(cell)


def _read_number(cell: Any) -> float | None:
    try:
        value = float(cell)
    except OverflowError:
        value = np.inf if cell > 0 else -np.inf
    return None if value != value else value  # noqa: PLR0124


def _read_scalar(cell: Any) -> float | str | datetime | None:
    if cell.dtype.kind in "Mm":
        seconds = float(_seconds(np.array([cell]))[0])
        if np.isnan(seconds) or cell.dtype.kind == "m":
            return None if np.isnan(seconds) else seconds
        return _EPOCH.replace(tzinfo=None) + timedelta(seconds=seconds)
    raise TypeError


def _read_moment(cell: Any) -> float | str | datetime | None:
    if isinstance(cell, datetime):
        parts = cell.year, cell.month, cell.day, cell.hour, cell.minute, cell.second
        return datetime(*parts, cell.microsecond)
    if isinstance(cell, date):
        return datetime(cell.year, cell.month, cell.day)
    if isinstance(cell, timedelta):
        return float(cell.total_seconds())
    if isinstance(cell, time):
        return cell.isoformat()
    if isinstance(cell, Iterable | Number):
        raise TypeError
    return str(cell).strip() or None
