"""Tables of every kind are read alike, and kept as plain arrays."""

import datetime as dt
import decimal
import itertools
import uuid
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_tables import cuts, part, tables

from cbrank.features import Table, Times, Words
from cbrank.features.containers import read_table

NAN = float("nan")


def plain(column):
    """A column as a list: numbers, words, times in seconds, None for gaps."""
    if isinstance(column, Words):
        return [None if code < 0 else column.values[code] for code in column.codes]  # noqa: PD011
    numbers = column.seconds if isinstance(column, Times) else column
    return [None if np.isnan(value) else float(value) for value in numbers]


def all_plain(table):
    return {
        name: (type(column).__name__, plain(column))
        for name, column in zip(table.names, table.columns, strict=True)
    }


COLUMNS = {
    "age": [31, 45, None, 27],
    "paid": [True, False, None, True],
    "city": ["Oslo", None, " Bergen ", "Oslo"],
    "when": [dt.datetime(2020, 1, 2, 3), None, dt.datetime(1969, 12, 31), None],
}
EXPECTED = {
    "age": ("ndarray", [31.0, 45.0, None, 27.0]),
    "paid": ("ndarray", [1.0, 0.0, None, 1.0]),
    "city": ("Words", ["Oslo", None, "Bergen", "Oslo"]),
    "when": ("Times", [1577934000.0, None, -86400.0, None]),
}


def nullable():
    kinds = {"age": "Int64", "paid": "boolean", "city": "string"}
    return pd.DataFrame(COLUMNS).astype(kinds)


def arrow():
    kinds = {
        "age": "int64[pyarrow]",
        "paid": "bool[pyarrow]",
        "city": "string[pyarrow]",
        "when": "timestamp[us][pyarrow]",
    }
    return pd.DataFrame(COLUMNS).astype(kinds)


def zoned():
    frame = pd.DataFrame(COLUMNS)
    return frame.assign(when=frame["when"].dt.tz_localize("Asia/Tokyo"))


CONTAINERS = {
    "dictionary": lambda: COLUMNS,
    "rows": lambda: [
        dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)
    ],
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas, objects": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "pandas, nullable": nullable,
    "pandas, Arrow": arrow,
    "pandas, time zone": zoned,
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars, time zone": lambda: pl.DataFrame(COLUMNS).with_columns(
        pl.col("when").dt.replace_time_zone("Asia/Tokyo")
    ),
    "Arrow": lambda: pa.table(COLUMNS),
    "Arrow, a batch": lambda: pa.RecordBatch.from_pydict(COLUMNS),
    "columns": lambda: (
        {"age": pd.Series(COLUMNS["age"]), "paid": pl.Series(COLUMNS["paid"])}
        | {"city": np.array(COLUMNS["city"], object), "when": tuple(COLUMNS["when"])}
    ),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_containers_are_read_alike(container):
    X = CONTAINERS[container]()
    assert all_plain(read_table(X)) == EXPECTED
    assert [*all_plain(read_table(X, {"city": True, "age": True}))] == ["city", "age"]


@pytest.mark.parametrize("container", ["pandas", "pandas, nullable", "pandas, Arrow", "polars"])
def test_one_row_is_read_like_many(container):
    X = CONTAINERS[container]()
    parts = [read_table(X[at : at + 1]) for at in range(4)]
    assert all_plain(Table.concatenated(parts)) == EXPECTED


def test_arrays_and_lists_are_tables_without_names():
    cells = [[1, "a"], [2.5, None], [NAN, ""]]
    expected = {"x0": ("ndarray", [1.0, 2.5, None]), "x1": ("Words", ["a", None, None])}
    for X in (cells, np.array(cells, object), pd.DataFrame(cells)):
        table = read_table(X)
        assert all_plain(table) == expected
        assert not table.named
    assert plain(read_table([[1, 2], [3, 4]]).columns[1]) == [2.0, 4.0]
    assert plain(read_table(np.array([["a"], ["b"]])).columns[0]) == ["a", "b"]
    masked = np.ma.array([[1.0], [2.0]], mask=[[False], [True]])
    assert plain(read_table(masked).columns[0]) == [1.0, None]
    named = np.array([(1, "a")], dtype=[("n", "i4"), ("w", "U3")])
    assert all_plain(read_table(named)) == {"n": ("ndarray", [1.0]), "w": ("Words", ["a"])}


def test_categories_of_the_caller_are_words():
    cells = ["b", None, "a", "b"]
    frames = [
        pd.DataFrame({"c": pd.Categorical(cells)}),
        pl.DataFrame({"c": pl.Series(cells, dtype=pl.Categorical)}),
        pl.DataFrame({"c": pl.Series(cells, dtype=pl.Enum(["a", "b"]))}),
    ]
    for X in frames:
        [column] = read_table(X).columns
        assert isinstance(column, Words)
        assert column.declared
        assert plain(column) == cells
    [column] = read_table(pd.DataFrame({"c": pd.Categorical([3, 1, 3])})).columns
    assert plain(column) == ["3", "1", "3"]


def test_cells_of_odd_types():
    cells = {
        "decimal": [decimal.Decimal("1.5"), 10**400],
        "bytes": [b"a", "a"],
        "mixed": [1, "a"],
        "date": [dt.date(1970, 1, 2), np.datetime64("1970-01-03")],
        "span": [dt.timedelta(days=1), np.timedelta64(1, "s")],
        "clock": [dt.time(3, 4), None],
        "gaps": [pd.NA, pd.NaT],
        "period": [pd.Period("1970-02"), None],
        "key": [uuid.UUID(int=1), None],
    }
    found = {name: cells for name, (_, cells) in all_plain(read_table(cells)).items()}
    assert found == {
        "decimal": [1.5, np.inf],
        "bytes": ["a", "a"],
        "mixed": ["1", "a"],
        "date": [86400.0, 172800.0],
        "span": [86400.0, 1.0],
        "clock": ["03:04:00", None],
        "gaps": [None, None],
        "period": [31 * 86400.0, None],
        "key": [str(uuid.UUID(int=1)), None],
    }


@pytest.mark.parametrize("nested", [[1, 2], {"a": 1}, (1, 2), np.ones(2), 1j])
def test_nested_cells_are_refused_with_their_place(nested):
    cells = pd.Series([1, None, None], dtype=object)
    cells[2] = nested
    for X in (pd.DataFrame({"a": [1, 2, 3], "b": cells}), {"a": [1, 2, 3], "b": [*cells]}):
        with pytest.raises(ValueError, match=r"at row 2, column 1 \('b'\)"):
            read_table(X)


TWINS = "more than one column named 'a'"


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], "Reshape your data"),
        (3.0, "Reshape your data"),
        ([[1, 2], [3]], "row 0 has 2, row 1 does not"),
        ({"a": [1, 2], "b": [1]}, "'a' has 2 rows, 'b' has 1"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), TWINS),
        (pd.DataFrame([[1, 2]] * 2, columns=["a", "a"]), TWINS),
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), TWINS),
        (pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), TWINS),
        ({1: [1], "1": [2]}, "more than one column named '1'"),
        ([{"a": 1}, {1: 1, "1": 2}], "more than one column named '1'"),
        (pl.LazyFrame({"a": [1]}), "collect it first"),
        (np.ones((2, 2)) * 1j, "Complex data not supported"),
        ({"a": np.ones((2, 2))}, "has 2 dimensions"),
    ],
)
def test_what_is_no_table_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        read_table(X)


def test_missing_columns_are_all_named():
    with pytest.raises(ValueError, match="lacks the columns 'b', 'c', from which"):
        read_table(pd.DataFrame({"a": [1]}), {"b": True, "a": True, "c": True})
    with pytest.raises(ValueError, match="row 1 of X has none of the columns"):
        read_table([{"a": 1}, {"z": 1}], {"a": True, "b": True})
    assert plain(read_table({"a": 1}, {"b": True, "a": True}).columns[0]) == [None]
    assert plain(read_table({"a": [1, 2]}, {"b": False, "a": True}).columns[0]) == [None, None]
    assert all_plain(read_table([{1: 2}, {"1": 3, 2: "a"}])) == {
        "1": ("ndarray", [2.0, 3.0]),
        "2": ("Words", [None, "a"]),
    }


def test_a_table_shares_no_memory_with_what_was_read():
    array, frame = np.ones((3, 2)), pd.DataFrame({"a": np.ones(3)})
    series, times = pl.DataFrame({"a": np.ones(3)}), np.zeros((3, 1), "M8[ns]")
    for X, cells in (
        (array, array),
        (frame, frame["a"].array),
        (series, series["a"]),
        (times, times),
    ):
        for column in read_table(X).columns:
            own = column.seconds if isinstance(column, Times) else column
            assert not np.shares_memory(own, np.asarray(cells))
    nullable_column = pd.array([1.0, 2.0], dtype="Float64")
    [column] = read_table(pd.DataFrame({"a": nullable_column}, copy=False)).columns
    nullable_column[0] = 5.0
    assert column[0] == 1.0


@given(st.data())
def test_chunks_put_together_are_the_table(data):
    columns = data.draw(tables(30))
    whole = read_table(columns)
    ends = data.draw(cuts(len(whole)))
    parts = [read_table(part(columns, b, e)) for b, e in itertools.pairwise(ends)]
    assert all_plain(Table.concatenated(parts)) == all_plain(whole)


@given(st.data())
def test_some_rows_of_a_table(data):
    table = read_table(data.draw(tables(30)))
    rows = data.draw(st.lists(st.integers(0, len(table) - 1)))
    some = table.take(np.array(rows, int))
    assert len(some) == len(rows)
    for column, taken in zip(table.columns, some.columns, strict=True):
        cells = plain(column)
        assert plain(taken) == [cells[row] for row in rows]


@given(tables(20))
def test_state_and_back(columns):
    table = read_table(columns)
    arrays = table.state()
    assert all(array.dtype.kind in "iuf" for array in arrays.values())
    assert all_plain(Table.from_state(arrays, table.names)) == all_plain(table)


def test_forged_states_are_refused():
    table = read_table(COLUMNS | {"more": ["a", "b", "a", "?"]})
    arrays = table.state()
    forged: list[dict[str, Any]] = [
        {"codes": arrays["codes"] + 1},
        {"codes": arrays["codes"] - 2},
        {"codes": arrays["codes"][0]},
        {"codes": arrays["codes"][:, :-1]},
        {"sizes": arrays["sizes"][::-1] + 1},
        {"sizes": np.array([2**62, 2**62])},
        {"numbers": arrays["numbers"][:1]},
        {"numbers": np.array(3.0)},
        {"times": arrays["times"].astype(np.float32)},
        {"text": arrays["text"][:-1]},
        {"ends": arrays["ends"][::-1]},
        {"kinds": arrays["kinds"] + 4},
        {"kinds": arrays["kinds"][:-1]},
        {"kinds": arrays["kinds"].astype(np.int64)},
        {"extra": arrays["text"]},
    ]
    for changed in forged:
        with pytest.raises(ValueError, match="its"):
            Table.from_state({**arrays, **changed}, table.names)
    with pytest.raises(ValueError, match="its waiting rows are no table"):
        Table.from_state(arrays, table.names[1:])
