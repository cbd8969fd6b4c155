"""Parquet: row groups, types, gaps and damage."""

import gzip
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from cbrank.features import Times
from cbrank.features.containers import read_table
from cbrank.streams import Columns, TableColumns, open_stream

TABLE = {
    "whole": [1, 2, 3],
    "real": [0.5, 1.5, 2.5],
    "flag": [True, False, True],
    "city": ["Oslo", None, "Rome"],
    "y": [0, 1, 0],
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.parquet"


def write(path, **changes):
    parquet.write_table(pa.table(TABLE | changes), path)
    return path


def read(path, columns=None, **options):
    columns = columns or Columns("y", drop=["city"])
    with open_stream(path, columns=columns, **options) as stream:
        return list(stream), stream


def test_numbers_flags_and_categories(path):
    chunks, _ = read(write(path), Columns("y", categorical={"city": "onehot"}))
    expected = [[1, 0.5, 1, 1, 0, 0], [2, 1.5, 0, 0, 1, 0], [3, 2.5, 1, 0, 0, 1]]
    assert chunks[0].X.toarray().tolist() == expected
    assert chunks[0].y.tolist() == [0, 1, 0]


@pytest.mark.parametrize("kind", [Columns, TableColumns])
@pytest.mark.parametrize("name", ["x", "y"])
def test_two_columns_of_one_name_are_refused(path, kind, name):
    arrays = [pa.array([1, 2]), pa.array([0, 1]), pa.array([3, 4])]
    parquet.write_table(pa.Table.from_arrays(arrays, names=["x", "y", name]), path)
    with pytest.raises(ValueError, match=f"has two columns named '{name}'; rename one of them"):
        read(path, kind("y"))


def test_a_column_may_have_no_name(path):
    parquet.write_table(pa.table({"": [1, 2], "y": [0, 1]}), path)
    [chunk], _ = read(path, TableColumns("y"))
    assert (chunk.X.names, chunk.X.columns[0].tolist()) == ([""], [1.0, 2.0])


def test_dictionaries_decimals_and_small_numbers_are_numbers_too(path):
    changes = {
        "whole": pa.array([1, 2, 3], pa.decimal128(5, 1)),
        "real": pa.array([1, 2, 3], pa.uint8()),
        "flag": pa.array([1, 2, 3], pa.float32()),
        "city": pa.array(["a", "b", "a"]).dictionary_encode(),
    }
    chunks, _ = read(write(path, **changes), Columns("y", id="city"))
    assert chunks[0].X.tolist() == [[1] * 3, [2] * 3, [3] * 3]
    assert chunks[0].ids == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"real": [0.5, None, 1.0]}, "row 2, column 'real': the value is missing; fill gaps"),
        ({"whole": [1, None, 1]}, "row 2, column 'whole': the value is missing; fill gaps"),
        ({"real": [0.5, 1.0, float("nan")]}, "row 3, column 'real': the value is missing"),
        ({"real": [float("-inf"), 1.0, 2.0]}, "row 1, column 'real': the value is infinite"),
        ({"y": [0, 1, 7]}, "row 3, column 'y': the label '7' is neither '0' nor '1'."),
        ({"y": [0, None, 1]}, "row 2, column 'y': the label is missing."),
        ({"y": [0.0, 1.0, float("nan")]}, "row 3, column 'y': the label is missing."),
    ],
)
def test_bad_rows_are_named_or_skipped(path, changes, complaint):
    columns = Columns("y", positive="1", drop=["city"])
    columns.labels.negative = "0"
    with pytest.raises(ValueError, match=r"x\.parquet, row") as caught:
        read(write(path, **changes), columns)
    assert str(caught.value).startswith(f"{path}, {complaint}")
    chunks, stream = read(path, columns, on_error="skip")
    assert len(chunks[0].y) == 2
    assert stream.complaints == [str(caught.value)]
    assert stream.position.errors == 1


def test_columns_that_are_no_numbers_are_refused(path):
    with pytest.raises(ValueError, match=r"column 'city': (large_)?string is not a number; if the"):
        read(write(path), Columns("y"))
    when = np.array(["2026-01-01"] * 3, "datetime64[ns]")
    with pytest.raises(ValueError, match=r"column 'real': timestamp\[ns\] is not a number"):
        read(write(path, real=when))


NOON = [43200, None, 15768000 + 43200]  # of a winter's and a summer's day, in UTC


@pytest.mark.parametrize("has_zones", [True, False])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Oslo", "-03:30"])
def test_times_are_those_of_the_clock_on_the_wall_as_in_python(path, monkeypatch, zone, has_zones):
    def no_zones(column):
        raise pa.ArrowInvalid(f"Cannot locate timezone {zone!r}: Timezone database not found")

    if not has_zones:
        monkeypatch.setattr("pyarrow.compute.local_timestamp", no_zones)
    when = pa.array(NOON, pa.timestamp("s", zone))
    [chunk], _ = read(write(path, when=when), TableColumns("y"))
    [expected] = read_table(pa.table({"when": when})).columns
    assert isinstance(expected, Times)
    np.testing.assert_array_equal(chunk.X.columns[-1].seconds, expected.seconds)


def test_a_zone_that_nobody_knows_is_named(path):
    write(path, when=pa.array(NOON, pa.timestamp("s", "Mars/Base")))
    with pytest.raises(
        ValueError, match=r"x\.parquet, column 'when': the time zone 'Mars/Base' is"
    ):
        read(path, TableColumns("y"))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_are_seconds_as_in_python(path, unit):
    span = pa.array([1_500_000_000, None, -3_000_000], pa.duration(unit))
    [chunk], _ = read(write(path, span=span), TableColumns("y"))
    [expected] = read_table(pa.table({"span": span}).to_pandas()).columns
    assert expected[0] == 1_500_000_000 / 1000 ** ["s", "ms", "us", "ns"].index(unit)
    np.testing.assert_array_equal(chunk.X.columns[-1], expected)
    changes = {"real": span.fill_null(0), "flag": [1, 2, 3]}
    [chunk], _ = read(write(path, **changes))
    assert chunk.X[:, 1].tolist() == [expected[0], 0.0, expected[2]]


def test_damage_is_a_value_error(path):
    data = write(path).read_bytes()
    for damaged in (data[:-9], data[:40], b"PAR1", data[:60] + b"\xff" * 60 + data[120:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"x\.parquet"):
            read(path)


def test_parquet_in_a_pipe_or_compressed_is_refused(path, tmp_path):
    compressed = tmp_path / "x.parquet.gz"
    compressed.write_bytes(gzip.compress(write(path).read_bytes()))
    with pytest.raises(ValueError, match="Parquet is read from plain files only"):
        read(compressed)


def test_without_pyarrow_the_extra_is_named(path, monkeypatch):
    write(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"pip install 'cbrank\[parquet\]'"):
        read(path)
