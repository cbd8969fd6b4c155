"""Reading columns of every type: numbers, words, times, and the cells that are empty.

Types of other libraries are known by what they have. What is read is a copy.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Number, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank.features.table import Column, Times, Words, number_text, time_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def of_any(values: Any, place: int, name: str) -> Column:
    """Read a column of any type; `place` and `name` are for messages."""
    if isinstance(values, np.ndarray):
        return _of_vector(values, place, name)
    if hasattr(values, "to_series") and hasattr(values, "dtype"):  # an index
        values = values.to_series()
    if hasattr(values, "iloc") and hasattr(values, "dtype"):
        return of_series(values, place, name)
    if hasattr(values, "to_list") and hasattr(values, "dtype"):
        return of_polars(values, place, name)
    return of_list([*values], place, name)


def _of_vector(values: NDArray[Any], place: int, name: str) -> Column:
    if values.ndim != 1:
        raise ValueError(f"column {name!r} of X has {values.ndim} dimensions, not one.")
    kind = values.dtype.kind
    if kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} of X has {values.dtype}.")
    if isinstance(values, np.ma.MaskedArray):
        return of_list(values.tolist(), place, name)
    if kind in "biuf":
        with np.errstate(over="ignore"):
            return values.astype(np.float64)
    if kind == "M":
        return Times(_seconds(values))
    if kind == "m":
        return _seconds(values)
    return of_list(values.tolist(), place, name)


def _seconds(values: NDArray[Any]) -> NDArray[np.float64]:
    whole = values.astype(f"{values.dtype.kind}8[us]")
    return np.where(np.isnat(whole), np.nan, whole.astype(np.int64) / 1e6)


def of_series(series: Any, place: int, name: str) -> Column:
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
        return of_list(series.tolist(), place, name)
    return _of_codes(codes, uniques.tolist(), place, name)


def of_polars(series: Any, place: int, name: str) -> Column:
    dtype = str(series.dtype).partition("(")[0]
    if dtype in ("Datetime", "Date", "Duration"):
        local = series.dt.replace_time_zone(None) if dtype == "Datetime" else series
        return _of_vector(local.to_numpy(), place, name)
    if dtype in ("Boolean", "Decimal", "Null") or series.dtype.is_numeric():
        return np.array(series.cast(float).to_numpy(), np.float64)
    column = of_list(series.to_list(), place, name)
    if dtype in ("Categorical", "Enum") and isinstance(column, Words):
        return Words(column.codes, column.values, declared=True)
    return column


def of_cell(cell: Any, place: int, name: str) -> Column:
    """Read the only cell of a column."""
    if type(cell) is float or type(cell) is int or cell is None:
        try:
            return np.array([cell], np.float64)
        except OverflowError:
            pass
    if type(cell) is str and (text := cell.strip()):
        return Words(np.zeros(1, np.int32), (text,))
    return of_list([cell], place, name)


def of_list(cells: list[Any], place: int, name: str) -> Column:
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
    cell = getattr(cell, "start_time", cell)  # of a period
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
