"""The CSV reader against Python's csv module, on sound, broken and arbitrary text."""

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbrank.streams import Columns, open_stream

cells = st.text(
    st.characters(blacklist_characters="\0\r", blacklist_categories=["Cs"]), max_size=6
).map(str.strip)
numbers = st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.from_regex(
    r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,2})?", fullmatch=True
)
records = st.lists(
    st.tuples(numbers, cells, numbers, st.sampled_from(["no", "yes"]), cells), max_size=12
)


def read(data, columns=None, **options):
    columns = columns or Columns("y", positive="yes")
    with open_stream(io.BytesIO(data), format="csv", columns=columns, **options) as stream:
        return list(stream), stream


def values(data, columns=None, **options):
    chunks, _ = read(data, columns, **options)
    return [row for chunk in chunks for row in chunk.X.tolist()]


@given(
    records,
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.integers(1, 5),
    st.integers(8, 90),
)
def test_reads_what_the_csv_module_writes(rows, quoting, end, final, chunk_rows, block):
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=quoting, lineterminator=end)
    writer.writerow(["a", "id", "b", "y", "notes, if any"])
    writer.writerows(rows)
    data = text.getvalue().encode()
    columns = Columns("y", positive="yes", id="id", drop=["notes, if any"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cbrank.streams.text._BLOCK", max(block, data.index(end.encode()) + 2))
        data = data if final else data.removesuffix(end.encode())
        chunks, _ = read(data, columns, chunk_rows=chunk_rows)
    found = [
        (*numbers, label, identity)
        for chunk in chunks
        for numbers, label, identity in zip(chunk.X.tolist(), chunk.y, chunk.ids, strict=True)
    ]
    assert found == [
        (float(a), float(b), label == "yes", identity) for a, identity, b, label, _ in rows
    ]


csv_like = st.text('0123456789,.-+eE"\n\r\t yesno;\0é', max_size=60).map(str.encode)


@given(st.binary(max_size=60) | csv_like, st.booleans())
def test_arbitrary_bytes_raise_nothing_but_value_error(data, skip):
    columns = Columns("y", positive="yes", id="b", categorical={"c": "onehot"})
    options = {"on_error": "skip", "max_errors": 3} if skip else {}
    chunks, complaint = [], ""
    try:
        chunks, _ = read(b"a,b,c,y\n" + data, columns, **options)
    except ValueError as error:
        complaint = str(error)
    assert complaint == "" or complaint.startswith("<stream>, line ")
    for chunk in chunks:
        assert np.isfinite(chunk.X.data).all()


HEADER = b"age,pay,y\n"


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"1,2,no\nold,2,no\n", "line 3, column 'age': 'old' is not a number; if the column holds categories, name it in `categorical`, as onehot or hash:BITS, else in `drop`."),
        (b"1,,no\n", "line 2, column 'pay': the cell is empty; fill gaps or leave such rows out"),
        (b'1,"",no\n', "line 2, column 'pay': the cell is empty; fill gaps"),
        (b"1,NaN,no\n", "line 2, column 'pay': 'NaN' is not a finite number; fill gaps"),
        (b"1,-inf,no\n", "line 2, column 'pay': '-inf' is not a finite number; fill gaps"),
        (b"1,NA,no\n", "line 2, column 'pay': 'NA' is not a finite number; fill gaps"),
        (b"1,1e999,no\n", "line 2, column 'pay': '1e999' is too large"),
        (b"1," + b"9" * 400 + b",no\n", "line 2, column 'pay': '999999999999999999999999...' is"),
        (b"1,1.7976931348623159e308,no\n", "line 2, column 'pay': '1.7976931348623159e308' is too large"),
        (b"1,17976931348623158079372897140530342e274,no\n", "line 2, column 'pay': '179769313486231580793728"),
        (b"1,0x10,no\n", "line 2, column 'pay': '0x10' is not a number"),
        (b"1,1_0,no\n", "line 2, column 'pay': '1_0' is not a number"),
        (b"1,1 2,no\n", "line 2, column 'pay': '1 2' is not a number"),
        (b"1,2\n", "line 2: 2 cells where the header names 3 columns."),
        (b"1,2,no,4\n", "line 2: more cells where the header names 3 columns."),
        (b"1,2,no,\n", "line 2: more cells where the header names 3 columns."),
        (b"1,\x002,no\n", "line 2, column 'pay': a NUL byte; this is not text."),
        (b"1,2,n\x00o\n", "line 2, column 'y': a NUL byte; this is not text."),
        (b'1,"2"3,no\n', "line 2, column 'pay': text after a closing quote"),
        (b'1,"2,no\n3,4,no\n', "line 2, column 'pay': a quote that is never closed."),
        (b"1,2,\n", "line 2, column 'y': the label is missing."),
        (b"1,2,nan\n", "line 2, column 'y': the label is missing."),
        (b"1,2,no\n1,2,yes\n1,2,maybe\n", "line 4, column 'y': the label 'maybe' is neither 'no' nor 'yes'."),
        (b"1,2,no\n1,2,yes\n1,2,\xe9\n", "line 4, column 'y': the label 'é' is neither 'no' nor 'yes'."),
        (b"1,2,no\n1,2,maybe\n", "line 3, column 'y': the label 'maybe' is one too many: no row so far is labelled 'yes'"),
        (b'"1\n","2",no\n', "line 2, column 'age': '\"1' is not a number"),
        (b'1,2,"n\no"\n1,2,"n\no"\n1,x,no\n', "line 6, column 'pay': 'x' is not a number"),
    ],
)  # fmt: skip
def test_complaints_name_file_line_column_and_cure(tmp_path, data, complaint):
    path = tmp_path / "people.csv"
    path.write_bytes(HEADER + data)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        list(open_stream(path, columns=Columns("y", positive="yes")))
    assert str(caught.value).startswith(f"{path}, {complaint}")


def test_every_malformed_row_can_be_skipped():
    data = HEADER + (
        b"1,2,no\nold,2,no\n3,4,yes\n1,\n5,6,no\n1,2,maybe\n"
        b'"7",8,"no"\n1,"2"3,no\n1,2,\xe9\n9,10,yes\n1,1.7976931348623159e308,no\n'
        b"1," + b"9" * 400 + b',no\n11,12,no\n1,"2,no\n13,14,no\n'
    )
    chunks, stream = read(data, on_error="skip", max_errors=8)
    assert [row[0] for chunk in chunks for row in chunk.X.tolist()] == [1, 3, 5, 7, 9, 11, 13]
    assert stream.position.errors == 8
    found = sorted(
        int(words.split("line ")[1].split(",")[0].split(":")[0]) for words in stream.complaints
    )
    assert found == [3, 5, 7, 9, 10, 12, 13, 15]
    with pytest.raises(ValueError, match="malformed row"):
        read(data, on_error="skip", max_errors=7)


def test_rows_that_are_skipped_are_told_without_the_way_to_skip_them():
    data, cure = HEADER + b"1,2,no\n1\n", " To leave such rows out: `on_error=skip`."
    with pytest.raises(ValueError, match=r"names 3 columns\.") as caught:
        read(data)
    assert str(caught.value).endswith(cure)
    _, stream = read(data, on_error="skip")
    assert stream.complaints == [str(caught.value).removesuffix(cure)]
    with pytest.raises(ValueError, match=r"names 3 columns\. That is one more"):
        read(data + b"1\n", on_error="skip", max_errors=1)


@pytest.mark.parametrize(
    ("header", "columns", "complaint"),
    [
        (b"a,b", Columns("y"), "has no column 'y'. Its columns are 'a', 'b'."),
        (b"a,b", Columns(3), "has no column '3'. Its columns are 'a', 'b'."),
        (
            b"a,b",
            Columns(),
            "which column is the label? Give `label=...`. Its columns are 'a', 'b'.",
        ),
        (b"a,y", Columns("y", id="z"), "has no column 'z'"),
        (b"a,y", Columns("y", drop=["z"]), "has no column 'z'"),
        (b"a,y", Columns("y", categorical={"z": "onehot"}), "has no column 'z'"),
        (b"a,a,y", Columns("y"), "has two columns named 'a'; rename one of them."),
        (b"\xe9,z", Columns("y"), "Its columns are 'é', 'z'."),
        (b'"a,y', Columns("y"), "its header line is not CSV"),
        (b"a,y\r1,2\r", Columns("y"), "its lines end in carriage returns alone"),
    ],
)
def test_headers_that_will_not_do(header, columns, complaint):
    with pytest.raises(ValueError, match=r"^<stream>") as caught:
        read(header + b"\n", columns)
    assert complaint in str(caught.value)


def test_many_columns_are_not_all_listed():
    header = ",".join(f"c{number}" for number in range(99)).encode()
    with pytest.raises(ValueError, match="'c11' and 87 more"):
        read(header + b"\n")


def test_label_and_others_may_be_told_by_number():
    columns = Columns(3, positive="yes", id=1, drop=[2])
    chunks, _ = read(b"row,junk,y,x\nr1,?,yes,5\nr2,?,no,6\n", columns)
    assert chunks[0].X.tolist() == [[5.0], [6.0]]
    assert chunks[0].ids == ["r1", "r2"]
    assert (columns.label, columns.id, columns.drop) == ("y", "row", ["junk"])


@pytest.mark.parametrize(
    "data",
    [
        HEADER + b"1,2,no\n3,4,yes\n",
        HEADER + b"1,2,no\n3,4,yes",
        HEADER.replace(b"\n", b"\r\n") + b"1,2,no\r\n3,4,yes\r\n",
        b"\xef\xbb\xbf" + HEADER + b"1,2,no\n3,4,yes\n",
        HEADER + b"\n1 ,\t2,no\n\r\n +3.0,4e0 ,yes\n\n",
        b'"age","pay","y"\n"1","2","no"\n"3","4","yes"',
        b"\n\nage , pay, y\n1,2,no\n3,4,yes",
    ],
)
def test_ways_to_write_the_same_rows(data):
    assert values(data) == [[1.0, 2.0], [3.0, 4.0]]


def test_a_line_of_ten_megabytes_is_read_and_one_of_a_hundred_refused(monkeypatch):
    note = b'"' + b"x\n" * 5_000_000 + b'"'
    columns = Columns("y", positive="yes", drop=["note"])
    assert values(b"a,note,y\n1," + note + b",no\n2,x,yes\n", columns) == [[1.0], [2.0]]
    wide = b",".join([b"1.5"] * 2_500_000)
    names = b",".join(b"%d" % number for number in range(2_500_000))
    chunks, _ = read(names + b",y\n" + wide + b",yes\n")
    assert chunks[0].X.shape == (1, 2_500_000)
    monkeypatch.setattr("cbrank.streams.text._LONGEST", 2**20)
    with pytest.raises(ValueError, match="line 2: a row of more than 1 MiB; is one of its quotes"):
        values(b"a,note,y\n1," + note + b",no\n", columns)
    with pytest.raises(ValueError, match="a line of more than 1 MiB"):
        values(b"a,note,y\n1," + b"x" * 10_000_000 + b",no\n", columns)


def test_numbers_are_those_of_python_where_rounding_is_hard():
    hard = [
        "9007199254740993",
        "1e23",
        "8.5e-318",
        "2.2250738585072011e-308",
        "0." + "0" * 30 + "1",
    ]
    hard += [str((2 * (2**52 + k) + 1) * 2**shift) for k in (1, 2, 77) for shift in (0, 3, 9)]
    hard += [f"{(2 * (2**52 + k) + 1) * 5}e-1" for k in range(9)] + ["1" * 30, "-0.0", "0e999"]
    data = HEADER + "".join(f"{word},1,no\n" for word in hard).encode()
    found = [row[0] for row in values(data)]
    assert found == [float(word) for word in hard]
    assert [math.copysign(1, value) for value in found].count(-1) == 1


@pytest.mark.parametrize("width", [1, 6000])
def test_any_number_of_numbers_may_be_left_to_python(width):
    words = [f"0.{column:05}{'3' * 25}" for column in range(width)]
    line = ",".join(words) + ",no\n"
    header = ",".join([*(f"f{column}" for column in range(width)), "y\n"])
    rows = values((header + line * (9000 // width)).encode())
    assert rows == [[float(word) for word in words]] * (9000 // width)
