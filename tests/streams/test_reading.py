"""Streams of chunks: every format, compressed or not, whole or resumed, gives the same rows."""

import bz2
import gzip
import io
import json
import lzma
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from cbrank.streams import Columns, Position, open_stream
from cbrank.streams.ahead import read_ahead
from cbrank.streams.reading import _told_by_line, _told_by_name

N = 57
RNG = np.random.RandomState(0)
X = np.round(RNG.standard_normal((N, 3)) * (RNG.random_sample((N, 3)) < 0.7), 3)
Y = np.arange(N) % 3 == 0
CSV = "a,b,c,y\n" + "".join(
    f"{a!r},{b!r},{c!r},{'yes' if y else 'no'}\n"
    for (a, b, c), y in zip(X.tolist(), Y, strict=True)
)
SVMLIGHT = "".join(
    f"{int(y)} {' '.join(f'{j}:{value!r}' for j, value in enumerate(row, 1) if value)}\n"
    for row, y in zip(X.tolist(), Y, strict=True)
)
COMPRESSIONS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def zstd_compress(data):
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    return __import__(name, fromlist=["compress"]).compress(data)


COMPRESSIONS[".zst"] = zstd_compress


def write(path, compress=bytes):
    """Write the rows as the path's extension says."""
    if ".csv" in path.name:
        path.write_bytes(compress(CSV.encode()))
    elif ".svm" in path.name:
        path.write_bytes(compress(SVMLIGHT.encode()))
    else:
        table = pa.table(dict(zip("abc", X.T, strict=True)) | {"y": np.where(Y, "yes", "no")})
        parquet.write_table(table, path, row_group_size=20)
    return path


def columns_for(path):
    return Columns() if ".svm" in path.name else Columns("y")


def dense(chunk):
    return chunk.X if isinstance(chunk.X, np.ndarray) else chunk.X.toarray()


def read(paths, columns, **options):
    with open_stream(paths, columns=columns, **options) as stream:
        chunks = list(stream)
    return chunks, stream


def check_rows(chunks, repeats=1):
    np.testing.assert_array_equal(np.vstack([dense(c) for c in chunks]), np.vstack([X] * repeats))
    expected = np.tile(Y, repeats)
    np.testing.assert_array_equal(np.concatenate([c.y for c in chunks]), expected)


NAMES = [f"x{form}{suffix}" for form in (".svm", ".csv") for suffix in COMPRESSIONS]
every_file = pytest.mark.parametrize("name", [*NAMES, "x.parquet"])


def make(folder, name):
    return write(
        folder / name, COMPRESSIONS["." + name.rsplit(".", 1)[-1]] if name.count(".") > 1 else bytes
    )


@every_file
def test_every_format_and_compression_gives_the_rows_in_chunks(tmp_path, name):
    path = make(tmp_path, name)
    chunks, stream = read(path, columns_for(path), chunk_rows=10)
    check_rows(chunks)
    assert [len(chunk.y) for chunk in chunks] == [10, 10, 10, 10, 10, 7]
    assert stream.position == chunks[-1].position
    assert stream.position.rows == N
    assert stream.bytes_read == stream.bytes_total == path.stat().st_size
    assert stream.complaints == stream.notes == []


@every_file
def test_resumed_at_any_chunk_gives_the_remaining_chunks_to_the_bit(tmp_path, name):
    paths = [make(tmp_path, name), make(tmp_path, f"2{name}")]
    whole, _ = read(paths, columns_for(paths[0]), chunk_rows=10)
    check_rows(whole, repeats=2)
    columns = columns_for(paths[0])
    states = []
    for chunk in open_stream(paths, columns=columns, chunk_rows=10):
        arrays, facts = columns.get_state()
        states.append((arrays, json.dumps([chunk.position.to_json(), facts])))
    for number, (arrays, state) in enumerate(states, 1):
        position, facts = json.loads(state)
        rest, _ = read(
            paths,
            Columns.from_state(arrays, facts),
            chunk_rows=10,
            start=Position.from_json(position),
        )
        assert len(rest) == len(whole) - number
        for one, other in zip(rest, whole[number:], strict=True):
            assert one.position == other.position
            assert one.X.shape == other.X.shape
            assert dense(one).tobytes() == dense(other).tobytes()
            assert one.y.tobytes() == other.y.tobytes()


@given(st.integers(1, 60), st.integers(1, 200), st.sampled_from(["svm", "csv"]), st.data())
def test_neither_blocks_nor_resuming_change_the_rows(chunk_rows, block, form, data):
    text = (SVMLIGHT if form == "svm" else "\ufeff" + CSV).encode().rstrip(b"\n")
    columns = Columns(positive="1") if form == "svm" else Columns("y", positive="yes")
    form = {"svm": "svmlight"}.get(form, form)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cbrank.streams.text._BLOCK", block)
        chunks, _ = read(io.BytesIO(text), columns, format=form, chunk_rows=chunk_rows)
        check_rows(chunks)
        stop = data.draw(st.integers(0, len(chunks) - 1))
        rest, _ = read(
            io.BytesIO(text),
            columns,
            format=form,
            chunk_rows=chunk_rows,
            start=chunks[stop].position,
        )
    assert [chunk.position for chunk in rest] == [chunk.position for chunk in chunks[stop + 1 :]]
    if rest:
        check_rows([*chunks[: stop + 1], *rest])


@pytest.mark.parametrize("text", [SVMLIGHT, CSV], ids=["svmlight", "csv"])
@pytest.mark.parametrize("compress", COMPRESSIONS.values(), ids=[*COMPRESSIONS])
def test_standard_input_is_read_and_resumed_by_skipping(monkeypatch, text, compress):
    def piped():
        stream = io.BufferedReader(io.BytesIO(compress(text.encode())))
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        return "-"

    columns = Columns("y")
    chunks, stream = read(piped(), columns, chunk_rows=20)
    check_rows(chunks)
    assert stream.bytes_total is None
    rest, _ = read(piped(), columns, chunk_rows=20, start=chunks[0].position)
    check_rows([chunks[0], *rest])


def test_a_real_pipe_is_read_and_left_without_a_fatal_error():
    code = (
        "from cbrank.streams import open_stream\n"
        "stream = open_stream('-', chunk_rows=2)\n"
        "print(next(stream).y)\n"
        "raise SystemExit(7)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(b"0 1:1\n1 1:2\n1 1:3\n")  # and then its thread waits for more
    process.stdin.flush()
    assert process.wait(timeout=60) == 7
    process.stdin.close()
    assert process.stdout.read() == b"[0 1]\n"
    errors = process.stderr.read().decode().splitlines()
    assert [line for line in errors if "compiling" not in line] == []
    process.stdout.close()
    process.stderr.close()


def test_globs_are_read_in_order_of_name_and_lists_as_given(tmp_path):
    for number in (2, 10, 1):
        (tmp_path / f"part-{number:02}.svm").write_bytes(b"%d 1:%d\n" % (number % 2, number))
    chunks, _ = read([tmp_path / "part-10.svm", f"{tmp_path}/part-0*.svm"], Columns(positive="1"))
    assert [chunk.X.toarray().item() for chunk in chunks] == [10, 1, 2]


def test_paths_that_are_not_there_are_told(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.svm: there is no such file"):
        open_stream(tmp_path / "none.svm")
    with pytest.raises(ValueError, match=r"\*\.svm: no file matches"):
        open_stream(f"{tmp_path}/*.svm")
    with pytest.raises(IsADirectoryError, match="is a folder; give its files"):
        open_stream(tmp_path)
    with pytest.raises(ValueError, match="There is no input"):
        open_stream([])


@pytest.mark.parametrize("change", ["size", "head", "count"])
def test_changed_files_are_refused(tmp_path, change):
    path = write(tmp_path / "x.svm")
    chunk = next(open_stream(path, chunk_rows=10))
    paths = [path]
    if change == "size":
        path.write_text(SVMLIGHT + "1 1:1\n")
    elif change == "head":
        path.write_text("1" + SVMLIGHT[1:-2] + "9\n")
    else:
        paths = [path, path]
    sentence = {
        "size": rf"x\.svm has changed since reading stopped: its size was {len(SVMLIGHT)}",
        "head": "its first 64 KiB are different. Give the same file, or start anew",
        "count": "in a stream of 1 files, and this stream has 2",
    }[change]
    with pytest.raises(ValueError, match=sentence):
        open_stream(paths, start=chunk.position)


def test_a_pipe_that_ends_early_is_told(monkeypatch):
    position = next(open_stream(io.BytesIO(SVMLIGHT.encode()), chunk_rows=50)).position
    stream = io.BufferedReader(io.BytesIO(gzip.compress(b"1 1:1\n")))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    with pytest.raises(ValueError, match="<stdin> ends before the position where reading stopped"):
        next(open_stream("-", start=position))


@pytest.mark.parametrize("facts", [{}, {"files": 3}, {"files": [["a"]]}])
def test_what_is_no_position_is_refused(facts):
    with pytest.raises(ValueError, match="not a position"):
        Position.from_json(facts)
    good = Position(()).to_json()
    with pytest.raises(ValueError, match="not a position"):
        Position.from_json(good | {"offset": -1})


@pytest.mark.parametrize(
    ("name", "data", "form"),
    [
        ("x.CSV", b"1,y\n2,3\n", "csv"),
        ("x.csv.gz", b"", "csv"),
        ("x", b"1 1:2 3:4\n", "svmlight"),
        ("x", b"# c\n\n-1 qid:3 1:2\n", "svmlight"),
        ("x.txt", b"1\n", "svmlight"),
        ("x.txt", b"a,b\n", "csv"),
        ("x.txt", b"1,2\n", "csv"),
        ("x.txt", b"age\n", "csv"),
        ("x.txt", b"1 2\n", "csv"),
        ("x.parquet", b"", "parquet"),
    ],
)
def test_the_format_is_told_by_extension_or_first_line(name, data, form):
    assert (_told_by_name(name) or _told_by_line(data)) == form


def test_the_format_can_be_said(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(SVMLIGHT)
    check_rows(read(path, Columns(), format="svmlight")[0])
    unnamed = write(tmp_path / "x.parquet").rename(tmp_path / "y.data")
    check_rows(read(unnamed, Columns("y"))[0])
    with pytest.raises(ValueError, match="format must be one of svmlight, csv, parquet"):
        open_stream(path, format="tsv")


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("form", ["svmlight", "csv"])
def test_empty_files_have_no_rows(data, form):
    chunks, stream = read(io.BytesIO(data), Columns("y"), format=form)
    assert chunks == []
    assert stream.position.rows == 0


def test_an_empty_parquet_file_has_no_rows(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"")
    assert read(tmp_path / "x.parquet", Columns("y"))[0] == []


BAD_SVMLIGHT = b"1 1:1\n1 0:2\n0 1:1e999\n0 1:" + b"9" * 400 + b"\n7 1:1\n0 1:4\n1 2:\n"


def test_malformed_rows_are_skipped_counted_and_named():
    columns = Columns(positive="1")
    columns.labels.negative = "0"
    chunks, stream = read(io.BytesIO(BAD_SVMLIGHT), columns, on_error="skip", max_errors=5)
    assert [chunk.X.toarray().ravel().tolist() for chunk in chunks] == [[1.0, 4.0]]
    assert stream.position.errors == 5
    places = [complaint.split(": ")[0] for complaint in stream.complaints]
    assert places == [
        "<stream>, line 2, column 3",
        "<stream>, line 3, column 5",
        "<stream>, line 4, column 5",
        "<stream>, line 7, column 5",
        "<stream>, line 5, column 1",
    ]
    assert stream.complaints[-1].endswith("the label '7' is neither '0' nor '1'.")


@pytest.mark.parametrize("limit", [0, 3, 4])
def test_one_malformed_row_too_many_is_an_error(limit):
    columns = Columns(positive="1")
    columns.labels.negative = "0"
    with pytest.raises(
        ValueError, match="malformed" if limit else "line 2, column 3: the index of '0:2'"
    ):
        read(io.BytesIO(BAD_SVMLIGHT), columns, on_error="skip", max_errors=limit)


def test_only_the_first_few_complaints_are_kept_but_all_are_counted():
    data = b"1 x\n" * 3000 + b"0 1:1\n1 1:2\n" + b"1 x\n" * 3000
    chunks, stream = read(
        io.BytesIO(data), Columns(), format="svmlight", on_error="skip", max_errors=6000
    )
    assert stream.position.errors == 6000
    assert len(stream.complaints) == 10
    assert [chunk.y.tolist() for chunk in chunks] == [[0, 1]]


def test_errors_go_on_counting_after_a_resume():
    data = b"0 x\n0 1:1\n1 1:2\nx\n1 1:3\nx\n"
    columns = Columns()
    options = {"format": "svmlight", "chunk_rows": 2, "on_error": "skip", "max_errors": 2}
    stream = open_stream(io.BytesIO(data), columns=columns, **options)
    position = next(stream).position
    assert position.errors == 1
    with pytest.raises(ValueError, match=r"line 6, column 1.*than the 2 allowed"):
        next(stream)
    rest = open_stream(io.BytesIO(data), columns=columns, start=position, **options)
    with pytest.raises(ValueError, match=r"line 6, column 1.*than the 2 allowed"):
        list(rest)


@pytest.mark.parametrize("name", ["x.svm.gz", "x.csv.xz"])
def test_damage_is_an_error_even_when_skipping(tmp_path, name):
    path = make(tmp_path, name)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=rf"{name}: damaged compressed data"):
        read(path, Columns("y"), on_error="skip")


def test_svmlight_and_tables_do_not_mix(tmp_path):
    paths = [write(tmp_path / "x.svm"), write(tmp_path / "x.csv")]
    with pytest.raises(ValueError, match=r"x\.csv is a table with column names; the rows before"):
        read(paths, Columns("y"))


def test_rows_come_before_an_error_further_on():
    stream = open_stream(io.BytesIO(SVMLIGHT.encode() + b"x\n"), chunk_rows=N)
    assert len(next(stream).y) == N
    with pytest.raises(ValueError, match="line 58, column 1"):
        next(stream)


@pytest.mark.parametrize("options", [{"chunk_rows": 0}, {"max_errors": -1}, {"on_error": "ignore"}])
def test_bad_options_are_refused_at_once(options):
    with pytest.raises(ValueError, match="must be"):
        open_stream(io.BytesIO(), **options)


def open_files():
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def test_closing_stops_the_reader_and_closes_its_file(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text(SVMLIGHT * 3000)
    before = threading.active_count()
    with open_stream(path, chunk_rows=10) as stream:
        next(stream)
    assert threading.active_count() == before
    open_before = open_files()
    stream = open_stream(path, chunk_rows=10)
    next(stream)
    del stream
    assert threading.active_count() == before
    assert open_files() == open_before


def test_reading_ahead_stays_two_items_ahead():
    made = []

    def numbers():
        for number in range(100):
            made.append(number)
            yield number

    items = read_ahead(numbers())
    assert next(items) == 0
    items.close()
    assert len(made) <= 4


def test_reading_ahead_hands_errors_over_in_order():
    def broken():
        yield 1
        raise KeyError("later")

    items = read_ahead(broken())
    assert next(items) == 1
    with pytest.raises(KeyError, match="later"):
        next(items)
