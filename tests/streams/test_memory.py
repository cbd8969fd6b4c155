"""Memory goes by the size of a chunk: neither by the file nor by how wide or long its rows are."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from cbrank.streams import Columns, open_stream

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/status").exists(),
        reason="this system does not tell the peak of memory",
    ),
]

MEASURE = """
import sys
from pathlib import Path
import pyarrow.parquet
from cbrank.streams import Columns, TableColumns, open_stream

def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024

def read(path):
    columns = TableColumns("y") if "as it comes" in sys.argv else Columns("y", positive="1")
    with open_stream(path, columns=columns, on_error="skip") as stream:
        return sum(len(chunk.y) for chunk in stream)

read(sys.argv[1])
before = peak()
print(read(sys.argv[2]), peak() - before)
"""


def measured(small, large, *how):
    """Return the rows of a file and the megabytes that reading it takes beyond those of another."""
    line = [sys.executable, "-c", MEASURE, small, large, *how]
    told = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    return map(int, told.split())


def write_csv(path, rows, width):
    """Write rows of one digit a cell, 4 times as large when they are doubles."""
    line = ",".join("0123456789"[column % 10] for column in range(width))
    with path.open("w") as file:
        file.write(",".join(f"f{column}" for column in range(width)) + ",y\n")
        file.writelines(f"{line},{row % 2}\n" for row in range(rows))
    return path


def write_parquet(path, rows, width, group):
    table = pa.table({f"f{column}": np.arange(rows) * 0.1 + column for column in range(width)})
    table = table.append_column("y", pa.array(np.arange(rows) % 2))
    parquet.write_table(table, path, row_group_size=group, use_dictionary=False, compression="none")
    return path


def test_wide_tables(tmp_path):
    small = write_csv(tmp_path / "small.csv", 100, 5000)
    rows, more = measured(small, write_csv(tmp_path / "large.csv", 3000, 5000))
    assert rows == 3000
    assert more < 180  # some chunks of 32 MiB at once, of 120 MB in all


def test_tables_as_they_come(tmp_path):
    rows = [
        f"{row},{row / 7:.3f},w{row % 50},text of row {row},{row % 2}\n" for row in range(20_000)
    ]
    for name, copies in (("small.csv", 1), ("large.csv", 20)):
        (tmp_path / name).write_text("a,b,c,d,y\n" + "".join(rows) * copies)
    rows, more = measured(tmp_path / "small.csv", tmp_path / "large.csv", "as it comes")
    assert rows == 400_000
    assert more < 30  # of 20 MB, and of 100 MB as objects


def test_parquet_files_of_one_row_group(tmp_path):
    small = write_parquet(tmp_path / "small.parquet", 50_000, 20, 10**6)
    rows, more = measured(small, write_parquet(tmp_path / "large.parquet", 600_000, 20, 10**6))
    assert rows == 600_000
    assert more < 60  # of 100 MB


def test_a_quote_that_is_never_closed(tmp_path):
    small = write_csv(tmp_path / "small.csv", 100, 50)
    large = write_csv(tmp_path / "large.csv", 200_000, 50)
    text = large.read_bytes()
    large.write_bytes(text.replace(b"\n", b'\n"', 1))
    rows, more = measured(small, large)
    assert rows == 200_000 - 1
    assert more < 100


def sizes(path, columns):
    return [len(chunk.y) for chunk in open_stream(path, columns=columns)]


def test_chunks_of_wide_rows_have_fewer_of_them(tmp_path, monkeypatch):
    assert sizes(write_csv(tmp_path / "wide.csv", 900, 10_000), Columns("y")) == [419, 419, 62]
    monkeypatch.setattr("cbrank.streams.rows.CHUNK_BYTES", 10_000)
    path = write_parquet(tmp_path / "wide.parquet", 250, 17, 100)
    assert sizes(path, Columns("y")) == [50] * 5


def test_chunks_of_long_rows_have_fewer_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr("cbrank.streams.reading.CHUNK_BYTES", 1000)
    line = " ".join(f"{index}:1" for index in range(1, 21))
    (tmp_path / "x.svm").write_text("".join(f"{row % 2} {line}\n" for row in range(25)))
    assert len(line) == 90
    assert sizes(tmp_path / "x.svm", Columns()) == [11, 11, 3]
    (tmp_path / "x.csv").write_text("id,y\n" + f"{'x' * 96},0\n{'x' * 96},1\n" * 11)
    assert sizes(tmp_path / "x.csv", Columns("y", id="id")) == [11, 11]
