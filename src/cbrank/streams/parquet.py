"""Rows from Parquet files, by row groups."""

import contextlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cbrank.features.cells import of_any, of_list
from cbrank.features.table import Column, Table
from cbrank.streams.cells import column_of
from cbrank.streams.rows import Complaints, Roles, Rows

_BUFFER = 2**14  # bytes read ahead per column: by default PyArrow holds all of a row group
_GAP = "fill gaps or leave such rows out before ranking, or drop the column"


def import_parquet(name: str) -> tuple[Any, Any]:
    """Return PyArrow and its Parquet module; without them this file is a ValueError."""
    try:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise ValueError(
            f"{name}: Parquet files need PyArrow; pip install 'cbrank[parquet]'."
        ) from None
    return pa, parquet


@contextlib.contextmanager
def open_parquet(raw: IO[bytes], name: str) -> Iterator[Any]:
    """Open a Parquet file; errors of PyArrow about its content become ValueErrors."""
    pa, parquet = import_parquet(name)
    try:
        yield parquet.ParquetFile(raw, buffer_size=_BUFFER, pre_buffer=False)
    except (pa.ArrowException, OSError) as reason:
        if isinstance(reason, OSError) and reason.errno is not None:
            raise
        sentence = str(reason).splitlines()[0] if str(reason) else type(reason).__name__
        raise ValueError(f"{name}: damaged Parquet data: {sentence}") from reason


def read_parquet(
    file: Any, name: str, roles: Roles, start: int, rows: int, complaints: Complaints
) -> Iterator[Rows]:
    """Read `rows` rows at a time from row `start` on."""
    schema = file.schema_arrow
    names = schema.names
    numeric = [names[place] for place in np.argsort(roles.codes, kind="stable")[-roles.n_numbers :]]
    numeric = numeric if roles.n_numbers else []
    for column in numeric:
        _refuse_text(schema.field(column), name)
    for first, table in _tables(file, [*numeric, *roles.cells], start, rows):
        places = np.arange(first + 1, first + 1 + table.num_rows)
        if roles.columns is not None:
            yield _as_it_comes(table, name, roles, places, complaints)
            continue
        X = np.empty((table.num_rows, len(numeric)))
        for number, column in enumerate(numeric):
            X[:, number] = _numbers(table.column(column))
        kept = _whole(X, numeric, name, places, complaints)
        texts = {column: _texts(table.column(column), kept) for column in roles.texts}
        labels = texts.pop(roles.label) if roles.label is not None else None
        after = first + table.num_rows
        yield Rows(X[kept], labels, texts, places[kept], after, after + 1, *complaints.pop())


def _as_it_comes(
    table: Any, file: str, roles: Roles, places: NDArray[np.int64], complaints: Complaints
) -> Rows:
    """Return rows whose columns are not numbers for sure."""
    names, all_rows, after = roles.columns or (), np.arange(len(places)), int(places[-1])
    texts = {column: _texts(table.column(column), all_rows) for column in roles.texts}
    labels = texts.pop(roles.label) if roles.label is not None else None
    if roles.of_labels:
        X = Table(names, [column_of(_texts(table.column(name), all_rows)) for name in names])
    else:
        X = Table(names, [_column(table, file, name) for name in names])
    return Rows(X, labels, texts, places, after, after + 1, *complaints.pop())


def _refuse_text(field: Any, name: str) -> None:
    from pyarrow import types  # noqa: PLC0415

    kinds = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal
    if not any(is_kind(field.type) for is_kind in (*kinds, types.is_duration)):
        raise ValueError(
            f"{name}, column {field.name!r}: {field.type} is not a number; if the column holds "
            "categories, name it in `categorical`, as onehot or hash:BITS, else in `drop`."
        )


def _numbers(column: Any) -> NDArray[np.float64]:
    """Return a column as doubles, durations in seconds; missing values are NaN."""
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_duration(column.type):
        whole = column.cast(pa.duration("us"), safe=False)
        return _numbers(whole.cast(pa.int64())) / 1e6
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    return column.cast(pa.float64(), safe=False).to_numpy()  # type: ignore[no-any-return]


def _column(table: Any, file: str, name: str) -> Column:
    """Return a column as it is: numbers, times or words, whose texts may be numbers too."""
    import pyarrow as pa  # noqa: PLC0415

    column, types = table.column(name), pa.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if types.is_timestamp(kind) or types.is_date(kind):
        return _times(column, table.column_names.index(name), f"{file}, column {name!r}")
    if any(test(kind) for test in (types.is_integer, types.is_floating, types.is_boolean)):
        return np.where(np.isinf(found := _numbers(column)), np.nan, found)
    if types.is_decimal(kind) or types.is_null(kind) or types.is_duration(kind):
        return _numbers(column)
    if types.is_nested(kind):
        raise ValueError(
            f"{file}, column {name!r}: cells are {kind}, neither numbers, words nor times; name the column "
            "in `drop`."
        )
    cells = ["" if cell is None else str(cell).strip() for cell in column.to_pylist()]
    return column_of(cells)


def _times(column: Any, place: int, name: str) -> Column:
    """Return times by the clock on the wall of their zone."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import compute  # noqa: PLC0415

    zone = getattr(column.type, "tz", None)
    column = column.cast(pa.timestamp("us", zone), safe=False)
    if zone in (None, "UTC"):
        return of_any(column.to_numpy(), place, name)
    with contextlib.suppress(pa.ArrowInvalid):  # Windows has no time zones, old PyArrow no offsets
        return of_any(compute.local_timestamp(column).to_numpy(), place, name)
    try:
        return of_list(column.to_pylist(), place, name)
    except (pa.ArrowInvalid, LookupError):
        raise ValueError(
            f"{name}: the time zone {zone!r} is not known here; pip install tzdata, or name the "
            "column in `drop`."
        ) from None


def _texts(column: Any, kept: NDArray[np.int64]) -> list[str]:
    cells = column.to_pylist()
    return ["" if cells[row] is None else str(cells[row]) for row in kept.tolist()]


def _whole(
    X: NDArray[np.float64],
    names: list[str],
    name: str,
    places: NDArray[np.int64],
    complaints: Complaints,
) -> NDArray[np.int64]:
    """Return the rows whose numbers are all finite; report the others as malformed."""
    finite = np.isfinite(X)
    if finite.all():
        return np.arange(len(X))
    whole = finite.all(axis=1)
    for row in np.flatnonzero(~whole).tolist():
        column = int(finite[row].argmin())
        what = "is missing" if np.isnan(X[row, column]) else "is infinite"
        where = f"{name}, row {places[row]}, column {names[column]!r}"
        complaints.add(f"{where}: the value {what}; {_GAP}.")
    return np.flatnonzero(whole)


def _tables(file: Any, columns: list[str], start: int, rows: int) -> Iterator[tuple[int, Any]]:
    """Yield tables of `rows` rows from row `start` on, whatever the row groups."""
    import pyarrow as pa  # noqa: PLC0415

    ends = np.cumsum([file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)])
    group = int(np.searchsorted(ends, start, side="right"))
    groups = list(range(group, file.num_row_groups))
    passed = int(ends[group - 1]) if group else 0
    kept: list[Any] = []
    size, first = 0, start
    for batch in file.iter_batches(rows, row_groups=groups, columns=columns):
        piece = batch.slice(min(max(0, start - passed), batch.num_rows))
        passed += batch.num_rows
        kept.append(piece)
        size += piece.num_rows
        while size >= rows:
            table = pa.Table.from_batches(kept)
            yield first, table.slice(0, rows)
            kept = table.slice(rows).to_batches()
            first, size = first + rows, size - rows
    if size:
        yield first, pa.Table.from_batches(kept)
