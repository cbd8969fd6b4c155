"""The svmlight reader against a plain Python parser, on sound, broken and arbitrary text."""

import bz2
import gzip
import io
import itertools
import lzma
import math
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cbrank.datasets import read_svmlight_chunks
from cbrank.streams import sources
from cbrank.streams import text as text_module

TEXT = b"1 1:0.5 3:-2\n-1 2:1e-3\n+2.5 1:7 2:8 4:9\n"

numbers = st.from_regex(
    r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True
) | st.floats(allow_nan=False, allow_infinity=False).map(repr)
finite = numbers.filter(lambda word: math.isfinite(float(word)))
blanks = st.text(" \t", min_size=1, max_size=3)
comments = st.text(max_size=9).map(lambda text: "#" + text.replace("\n", " "))
line_ends = st.sampled_from(["\n", "\r\n", " \n", "\t\r\n"])


@st.composite
def lines(draw):
    columns = sorted(draw(st.sets(st.integers(1, 2**31 - 1) | st.integers(1, 9), max_size=6)))
    words = [draw(finite), *draw(st.sampled_from([[], ["qid:7"]]))]
    words += [f"{column}:{draw(finite)}" for column in columns]
    text = draw(blanks | st.just("")) + "".join(word + draw(blanks) for word in words)
    return text + draw(comments | st.just("")) + draw(line_ends)


other_lines = st.builds(lambda *parts: "".join(parts), blanks, comments | st.just(""), line_ends)
texts = st.lists(lines() | other_lines, max_size=8).map("".join)


def plain_parse(text):
    rows = []
    for line in text.split("\n"):
        label, *words = line.split("#")[0].split() or [None]
        if label is not None:
            pairs = [word.split(":") for word in words if not word.startswith("qid:")]
            rows.append((float(label), [(int(index) - 1, float(value)) for index, value in pairs]))
    return rows


def read(data, **options):
    """All rows as (label, [(column, value), ...])."""
    rows = []
    for X, y in read_svmlight_chunks(io.BytesIO(data), **options):
        assert X.dtype == y.dtype == np.float64
        assert X.indices.dtype == X.indptr.dtype == np.int32
        assert X.has_canonical_format
        X.check_format()
        for row, label in enumerate(y.tolist()):
            at = slice(X.indptr[row], X.indptr[row + 1])
            pairs = zip(X.indices[at].tolist(), X.data[at].tolist(), strict=True)
            rows.append((label, list(pairs)))
    return rows


@given(texts, st.integers(1, 9))
def test_reads_what_a_plain_parser_reads(text, rows):
    found = read(text.encode(), rows=rows)
    assert found == plain_parse(text)
    for signs in zip(flat(found), flat(plain_parse(text)), strict=True):
        assert len({math.copysign(1, value) for value in signs}) == 1


def flat(rows):
    return [number for label, pairs in rows for number in (label, *(value for _, value in pairs))]


@given(st.lists(numbers, min_size=1, max_size=20))
def test_numbers_equal_those_of_python(words):
    assume(all(math.isfinite(float(word)) for word in words))
    data = "".join(f"{word} 1:{word}\n" for word in words).encode()
    expected = [(float(word), [(0, float(word))]) for word in words]
    assert read(data) == expected


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_every_double_survives(values):
    data = "".join(f"0 1:{value!r}\n" for value in values).encode()
    assert [pairs[0][1] for _, pairs in read(data)] == values


@given(st.integers(1, 12), st.integers(1, 60))
def test_neither_chunks_nor_blocks_change_the_rows(rows, block):
    text = TEXT * 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "_BLOCK", block)
        assert read(text, rows=rows) == plain_parse(text.decode())
        sizes = [len(y) for _, y in read_svmlight_chunks(io.BytesIO(text), rows)]
    assert sizes == [min(rows, 9 - start) for start in range(0, 9, rows)]


svmlight_like = st.text("0123456789:.-+eE #\n\r\tqidnaf\0é", max_size=60).map(str.encode)


@given(st.binary(max_size=60) | svmlight_like)
def test_arbitrary_bytes_raise_nothing_but_value_error(data):
    rows, complaint = [], ""
    try:
        rows = read(data, n_features=10**6)
    except ValueError as error:
        complaint = str(error)
    assert complaint == "" or complaint.startswith("<stream>, line ")
    assert all(math.isfinite(number) for number in flat(rows))


@pytest.mark.parametrize(
    ("data", "place", "complaint"),
    [
        (b"1 1:2\nx 1:2\n", (2, 1), "the label 'x' is not a finite number"),
        (b"1,2 1:2\n", (1, 1), "the label '1,2' is not a finite number"),
        (b"nan 1:2\n", (1, 1), "the label 'nan' is not a finite number"),
        (b"E30\n", (1, 1), "the label 'E30' is not a finite number"),
        (b"1 1:-e99\n", (1, 5), "the value '-e99' is not a finite number"),
        (b"1e999\n", (1, 1), "'1e999' is too large"),
        (b"1 1:1e5 2:1e400\n", (1, 11), "'1e400' is too large"),
        (b"1 1:inf\n", (1, 5), "the value 'inf' is not a finite number"),
        (b"1 1:NaN\n", (1, 5), "the value 'NaN' is not a finite number"),
        (b"1 1:1_0\n", (1, 5), "the value '1_0' is not a finite number"),
        (b"1 1:0x1p3\n", (1, 5), "the value '0x1p3' is not a finite number"),
        (b"1 1:1e\n", (1, 5), "the value '1e' is not a finite number"),
        (b"1 1:.\n", (1, 5), "the value '.' is not a finite number"),
        (b"1 1:\n", (1, 5), "the value '' is not a finite number"),
        (b"1 1: 2\n", (1, 5), "the value '' is not a finite number"),
        (b"1 1:2 3\n", (1, 7), "'3' has no colon"),
        (b"1 1:2:3\n", (1, 5), "the value '2:3' is not a finite number"),
        (b"1 one:2\n", (1, 3), "'one:2' does not begin with an index"),
        (b"1 -1:2\n", (1, 3), "'-1:2' does not begin with an index"),
        (b"1 qid:x 1:2\n", (1, 3), "'qid:x' does not begin with an index"),
        (b"1 0:2\n", (1, 3), "is not between 1 and 2147483647. If indices start at 0"),
        (b"1 2147483648:2\n", (1, 3), "is not between 1 and 2147483647."),
        (b"1 99999999999999999999999:2\n", (1, 3), "is not between 1 and 2147483647."),
        (b"1 2:2 1:2\n", (1, 7), "the index of '1:2' is not above the one before it"),
        (b"# c\r\n\r\n1 2:2 2:3\r\n", (3, 7), "the index of '2:3' is not above"),
        (b"1 1:2\n1 1:\x002\n", (2, 5), "a NUL byte"),
        (b"\xff\xfe1\x00 \x00", (1, 4), "a NUL byte"),
        (b"1 1:2 \xc3\xa9:1", (1, 7), r"'\\xc3\\xa9:1' does not begin"),
        (b"1 1:" + b"x" * 99, (1, 5), "the value 'xxxxxxxxxxxxxxxxxxxxxxxx...' is"),
    ],
)
def test_complaints_name_file_line_and_column(tmp_path, data, place, complaint):
    path = tmp_path / "bad.svm"
    path.write_bytes(data)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        list(read_svmlight_chunks(path))
    assert str(caught.value).startswith(f"{path}, line {place[0]}, column {place[1]}: ")
    assert complaint in str(caught.value)


def test_lines_are_counted_over_blocks(monkeypatch):
    monkeypatch.setattr(text_module, "_BLOCK", 16)
    chunks = read_svmlight_chunks(io.BytesIO(b"1 1:2\n# c\n\n" * 50 + b"1 1:x\n"), rows=7)
    with pytest.raises(ValueError, match="line 151, column 5"):
        list(chunks)


def test_good_rows_come_before_the_complaint():
    chunks = read_svmlight_chunks(io.BytesIO(TEXT + b"x"), rows=1)
    assert [len(y) for _, y in itertools.islice(chunks, 3)] == [1, 1, 1]
    with pytest.raises(ValueError, match="line 4"):
        next(chunks)


def test_width_is_the_greatest_index_so_far_or_as_told():
    data = b"1\n1 2:1\n1 1:1\n"
    widths = [X.shape for X, _ in read_svmlight_chunks(io.BytesIO(data), rows=1)]
    assert widths == [(1, 0), (1, 2), (1, 2)]
    told = [X.shape for X, _ in read_svmlight_chunks(io.BytesIO(data), rows=2, n_features=5)]
    assert told == [(2, 5), (1, 5)]
    with pytest.raises(ValueError, match="'2:1' is not between 1 and 1"):
        read(data, n_features=1)


def test_indices_may_start_at_zero():
    assert read(b"1 0:5 3:6", zero_based=True) == [(1.0, [(0, 5.0), (3, 6.0)])]
    with pytest.raises(ValueError, match="is not between 0 and 2147483646"):
        read(b"1 2147483647:1", zero_based=True)


def test_byte_order_mark_is_passed_over_at_the_start_only():
    assert read(b"\xef\xbb\xbf" + TEXT) == plain_parse(TEXT.decode())
    with pytest.raises(ValueError, match="line 2, column 1"):
        read(b"1\n\xef\xbb\xbf1\n")


@pytest.mark.parametrize("data", [b"", b"\n \n", b"# nothing", b"\xef\xbb\xbf"])
def test_no_rows_make_no_chunks(data):
    assert read(data) == []


def test_long_lines_are_read_or_refused(monkeypatch):
    monkeypatch.setattr(text_module, "_BLOCK", 32)
    long = "1 " + " ".join(f"{index}:1" for index in range(1, 999))
    assert read(long.encode()) == plain_parse(long)
    monkeypatch.setattr(text_module, "_LONGEST", 100)
    with pytest.raises(ValueError, match="a line of more than"):
        read(long.encode())


def test_endless_input_is_read_as_it_comes():
    class Endless:
        def read(self, size):
            return TEXT * (size // len(TEXT))

    chunks = read_svmlight_chunks(Endless(), rows=100_000)
    assert [X.shape for X, _ in itertools.islice(chunks, 3)] == [(100_000, 4)] * 3


@pytest.mark.parametrize(("rows", "n_features"), [(0, None), (-1, None), (1, -1), (1, 2**31)])
def test_bad_arguments_are_refused_at_once(rows, n_features):
    with pytest.raises(ValueError, match="must"):
        read_svmlight_chunks(io.BytesIO(), rows, n_features=n_features)


def test_text_files_are_refused():
    with pytest.raises(TypeError, match="open it with 'rb'"):
        next(read_svmlight_chunks(io.StringIO("1 1:1")))


@pytest.mark.parametrize(
    "compress", [bytes, gzip.compress, bz2.compress, lzma.compress], ids=lambda f: f.__module__
)
class TestCompression:
    def test_compression_is_told_by_the_first_bytes(self, tmp_path, compress):
        path = tmp_path / "any.name"
        path.write_bytes(compress(TEXT) + compress(TEXT))
        total = sum(len(y) for _, y in read_svmlight_chunks(path))
        assert total == 6

    def test_standard_input_too(self, monkeypatch, compress):
        stream = io.BufferedReader(io.BytesIO(compress(TEXT)))
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        assert sum(len(y) for _, y in read_svmlight_chunks("-")) == 3
        assert not stream.closed

    def test_damage_is_a_value_error_that_names_the_file(self, tmp_path, compress):
        if compress is bytes:
            return
        path = tmp_path / "damaged"
        whole = compress(os.urandom(2000).hex().encode())
        for damaged in (whole[:-30], whole[:60] + b"damage" + whole[66:], whole[:12]):
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match="damaged: damaged compressed data"):
                list(read_svmlight_chunks(path))


def test_zstandard_needs_a_module(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_ZSTD_MODULES", ("no_such_module",))
    path = tmp_path / "x.svm.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd rest")
    with pytest.raises(ValueError, match=r"x\.svm\.zst is compressed with Zstandard.*pip install"):
        list(read_svmlight_chunks(path))


def test_zstandard_is_read(tmp_path):
    module = pytest.importorskip(
        "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd",
        reason="no module for Zstandard is installed",
    )
    path = tmp_path / "x.svm.zst"
    path.write_bytes(module.compress(TEXT) + module.compress(TEXT))
    assert sum(len(y) for _, y in read_svmlight_chunks(path)) == 6
    path.write_bytes(module.compress(TEXT)[:-6])
    with pytest.raises(ValueError, match="damaged compressed data"):
        list(read_svmlight_chunks(path))


def test_missing_files_are_os_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        next(read_svmlight_chunks(tmp_path / "none.svm"))


PROGRAM = """
import io, sys, warnings
from cbrank.datasets import read_svmlight_chunks
warnings.simplefilter("error")
for line in sys.stdin.buffer.read().split(b"\\0"):
    try:
        print([(X.toarray().tolist(), y.tolist()) for X, y in read_svmlight_chunks(io.BytesIO(line))])
    except ValueError as complaint:
        print(complaint)
"""


@pytest.mark.parametrize("setting", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
def test_plain_python_and_checked_bounds_agree_with_compiled_code(tmp_path, setting):
    cases = [
        TEXT,
        b"1 1:x",
        b"1 1:1e-300 2:" + b"9" * 30,
        b"1e99\n",
        b"-1 1:-.5e+2",
        b"1 1:2:",
        b"",
    ]
    environment = os.environ | {setting: "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(
        command, input=b"\0".join(cases), env=environment, capture_output=True, check=True
    )
    expected = []
    for case in cases:
        try:
            chunks = list(read_svmlight_chunks(io.BytesIO(case)))
            expected.append(str([(X.toarray().tolist(), y.tolist()) for X, y in chunks]))
        except ValueError as complaint:
            expected.append(str(complaint))
    assert result.stdout.decode().splitlines() == expected
