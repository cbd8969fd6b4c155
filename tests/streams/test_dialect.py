"""How tables are written: told by their first rows, whatever writes them."""

import bz2
import contextlib
import csv
import gzip
import io
import lzma

import numpy as np
import pytest
from dribble import Dribble, cells_of, outcome
from hypothesis import given
from hypothesis import strategies as st

from cbrank.modelfile import ModelFileError, gather, restore
from cbrank.streams import Columns, TableColumns, open_stream
from cbrank.streams.dialect import Asked, Dialect, told, with_names

NAMES = ["age", "pay", "note", "y"]
ROWS = [["31", "2.5", "plain", "no"], ["44", "3.25", "a, b; c|d\te", "yes"],
        ["27", "-0.125", 'says "hi"', "no"], ["5", "1e-05", "two\nlines", "no"]]  # fmt: skip
PAGES = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]


def written(rows, separator=",", end="\n", header=NAMES, decimal="."):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=separator, lineterminator=end)
    writer.writerows([header] if header else [])
    writer.writerows(
        [cell.replace(".", decimal) if cell[-1:].isdigit() else cell for cell in row]
        for row in rows
    )
    return file.getvalue().encode()


def read(data, label="y", **options):
    """Return the rows of a table, its labels and the notes about it."""
    columns = TableColumns(label)
    source = io.BytesIO(data) if isinstance(data, bytes) else data
    with open_stream(source, columns=columns, format="csv", **options) as stream:
        (chunk,) = stream
    rows = [tuple("" if cell is None else str(cell) for cell in row) for row in cells_of(chunk.X)]
    return rows, chunk.y.tolist(), stream.notes


EXPECTED = read(written(ROWS))


def test_the_plain_table():
    rows, labels, notes = EXPECTED
    assert rows[1] == ("44.0", "3.25", "a, b; c|d\te")
    assert (labels, notes) == ([0, 1, 0, 0], [])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("page", PAGES)
def test_all_ways_to_write_a_table_give_the_same_rows(separator, end, page):
    data = written(ROWS, separator, end).decode().encode(page)
    rows, labels, _ = read(data)
    expected = [(*row[:2], row[2].replace("\n", "\n")) for row in EXPECTED[0]]
    assert (rows, labels) == (expected, EXPECTED[1])


@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("header", [NAMES, None])
def test_decimal_commas(separator, header):
    data = written(ROWS, separator, decimal=",", header=header)
    rows, labels, notes = read(data, "y" if header else 4)
    assert (rows, labels) == EXPECTED[:2]
    assert "decimal commas" in notes[0]


def test_decimal_commas_in_a_table_with_commas_are_left_to_the_columns():
    rows, _, _ = read(written([["1,5", "x", "a", "no"], ["2", "y", "b", "yes"]]))
    assert rows[0][0] == "1,5"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("page", ["utf-8", "utf-16"])
def test_packed_tables(pack, page, tmp_path):
    path = tmp_path / "table.packed"
    path.write_bytes(pack(written(ROWS, ";").decode().encode(page)))
    assert read(path)[:2] == EXPECTED[:2]


@pytest.mark.parametrize("largest", [1, 7, 300])
@pytest.mark.parametrize("page", [*PAGES, "cp1252"])
def test_tables_that_come_slowly(page, largest):
    data = written([*ROWS, ["1", "2", "naïve", "no"]], ";", "\r\n").decode().encode(page)
    how = {"columns": TableColumns("y"), "format": "csv", "chunk_rows": 2}
    assert outcome(Dribble(data, largest), **how) == outcome(io.BytesIO(data), **how)


def test_windows_1252_is_noted():
    rows, _, notes = read(written([["1", "2", "Zürich", "no"], *ROWS]).decode().encode("cp1252"))
    assert rows[0][2] == "Zürich"
    assert notes == ["<stream> is not UTF-8: cells such as 'Zürich' are read as Windows-1252."]


def test_an_encoding_may_be_said():
    data = written([["1", "2", "Жук", "no"], *ROWS]).decode().encode("cp1251")
    assert read(data, encoding="cp1251")[0][0][2] == "Жук"
    with pytest.raises(ValueError, match=r"^<stream> is not ascii\. Say which encoding"):
        read(data, encoding="ascii")
    with pytest.raises(ValueError, match="'klingon' is not known"):
        read(data, encoding="klingon")


@pytest.mark.parametrize("separator", ["", "ab", '"', "\n", "é"])
def test_separators_that_will_not_do(separator):
    with pytest.raises(ValueError, match="separator must be one ASCII character"):
        read(written(ROWS), separator=separator)


# Headers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("age,y\n31,no\n", True),
        ("31,no\n44,yes\n", False),
        ("a,b\nx,y\n", True),  # nothing tells, and tables have headers
        ("2019,2020\na,b\n", True),
        ("2019,2020\n1,2\n", False),
        ("x,1\n?,2\n", False),
    ],
)
def test_headers(text, header):
    assert told(text.encode(), Asked(), ()).header is header


def test_numbers_above_numbers_are_a_header_if_one_is_a_name_that_is_asked_for():
    assert told(b"2019,2020\n1,0\n", Asked(), ["2020"]).header


def test_tables_without_a_header():
    rows, labels, notes = read(written(ROWS, header=None), 4)
    assert (rows, labels) == EXPECTED[:2]
    assert notes == ["<stream> has no header line, so that columns are numbered."]
    with pytest.raises(ValueError, match=r"no column 'y'\. Its columns are 'column1'.*no header"):
        read(written(ROWS, header=None))


@given(st.lists(st.sampled_from(["", "a", "a.2", "column1", "b"]), max_size=9))
def test_every_column_has_a_name_of_its_own(header):
    names = with_names(header)
    assert len({*names}) == len(names) == len(header)
    for given_name, name in zip(header, names, strict=True):
        assert name.startswith(given_name)
    for name in {*header} - {""}:
        assert name in names


def test_names_that_are_missing_or_there_twice():
    data = written(ROWS, header=["age", "age", "", "y"])
    columns = TableColumns("y")
    (chunk,) = open_stream(io.BytesIO(data), columns=columns, format="csv")
    assert columns.numeric_ == ["age", "age.2", "column3"]
    assert chunk.X.names == columns.numeric_


@pytest.mark.parametrize(
    ("above", "note"),
    [
        ("# made in May\n", True),
        ("Sales of May, all\n\n", True),
        ("\n\r\n", False),
        ("sep=,\n", True),
        ('"sep=,"\r\n', True),
    ],
)
def test_lines_above_the_header(above, note):
    data = above.encode() + written(ROWS)
    rows, labels, notes = read(data)
    assert (rows, labels) == EXPECTED[:2]
    assert bool(notes) is note
    faulty = data + b"1,2\n"
    last = faulty.count(b"\n")
    with pytest.raises(ValueError, match=f"line {last}: 2 cells"):
        read(faulty)


def test_a_line_that_says_the_separator():
    data = b"sep=;\n" + written(ROWS, ";")
    assert read(data)[:2] == EXPECTED[:2]
    no_header = b"sep=|\n" + written(ROWS, "|", header=None)
    assert read(no_header, 4)[:2] == EXPECTED[:2]


def test_a_cell_with_the_name_of_the_label_is_no_header():
    with pytest.raises(ValueError, match="no column 'y'"):
        read(b"a,b\nx,y\nz,w\n")


@pytest.mark.parametrize(("unnamed", "name"), [("first", "column1"), ("last", "column4")])
def test_rows_with_one_cell_more_than_the_header(unnamed, name):
    cells = "r{0},{0},x,{1}\n" if unnamed == "first" else "{0},x,{1},\n"
    data = "a,b,y\n" + "".join(cells.format(row, "yes" if row % 3 else "no") for row in range(9))
    columns = TableColumns("y")
    (chunk,) = open_stream(io.BytesIO(data.encode()), columns=columns, format="csv")
    assert columns.numeric_ is not None
    assert {*columns.numeric_} == {"a", "b", name}
    assert chunk.X.columns[columns.numeric_.index("a")].tolist() == [*range(9)]
    with pytest.raises(ValueError, match="more cells where the header names 3 columns"):
        next(
            open_stream(
                io.BytesIO(data.encode()), columns=Columns("y", drop=["a", "b"]), format="csv"
            )
        )


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b'[{"a": 1, "y": 0}]', "JSON: write it as CSV"),
        (b'{"a": 1}\n', "JSON"),
        (b"PK\x03\x04" + bytes(99), "a spreadsheet or an archive: save its sheet as CSV"),
        (b"a,y\r1,no\r2,yes\r", "lines end in carriage returns alone"),
    ],
)
def test_what_is_no_table(data, what):
    with pytest.raises(ValueError, match=what):
        read(data)


def test_svmlight_text_has_no_columns_to_name():
    with pytest.raises(ValueError, match="is svmlight text, which has no column 'y': leave out"):
        next(open_stream(io.BytesIO(b"1 1:2\n0 1:3\n"), columns=TableColumns("y")))


@given(st.binary(max_size=60), st.sampled_from([None, ",", ";", "x"]))
def test_something_is_told_of_any_bytes(text, separator):
    found = told(text + b"\n", Asked(separator), ["y"])
    assert isinstance(found, Dialect)
    assert separator in (None, found.separator)
    assert 0 <= found.above <= len(text)


# Labels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        ("0 1 1 1", "1"), ("-1 1 1 1", "1"), ("no yes yes", "yes"), ("False True True", "True"),
        ("f t t", "t"), ("N Y Y", "Y"), ("negative positive positive", "positive"),
        ("1 2 2", "1"), ("1 2 1", "2"), ("ham ham spam", "spam"), ("bad good good", "bad"),
        ("1.0 0.0 1", "1"), ("+1 -1 +1", "1"), ("NO YES YES", "YES"),
        (">50K <=50K >50K", "<=50K"),
    ],
)  # fmt: skip
def test_the_positive_label(labels, positive):
    columns = TableColumns("y")
    rows = "".join(f"{at},{label}\n" for at, label in enumerate(labels.split()))
    (chunk,) = open_stream(io.BytesIO(f"a,y\n{rows}".encode()), columns=columns, format="csv")
    assert columns.classes_[-1] == positive
    assert chunk.y.sum() == sum(
        float(label) == float(positive)
        if positive == "1" and "2" not in labels
        else label == positive
        for label in labels.split()
    )


def test_rows_without_a_label_are_left_out_and_counted():
    labels = ["yes", "", "no", "?", "NA", "no", "-999"]
    data = "a,y\n" + "".join(f"{at},{label}\n" for at, label in enumerate(labels))
    columns = TableColumns("y", na=["-999"])
    with open_stream(io.BytesIO(data.encode()), columns=columns, format="csv") as stream:
        (chunk,) = stream
    assert chunk.y.tolist() == [1, 0, 0]
    assert chunk.X.columns[0].tolist() == [0.0, 2.0, 5.0]
    assert chunk.lines.tolist() == [2, 4, 7]
    assert stream.unlabelled == 4
    assert stream.position.rows == 3


# Model files --------------------------------------------------------------------------------------


def test_columns_are_restored():
    columns = TableColumns("y", na=["-999"], drop=["pay"])
    list(open_stream(io.BytesIO(written(ROWS)), columns=columns, format="csv"))
    again = TableColumns.from_state(*columns.get_state())
    assert again.get_state()[1] == columns.get_state()[1]
    assert (again.na, again.numeric_, again.classes_) == (["-999"], ["age", "note"], ["no", "yes"])


@pytest.mark.parametrize(
    "nonsense", [{"na": "x"}, {"na": [1]}, {"na": None}, {"na": ["x"] * 101}, {"sparse": True},
                 {"na": ["x" * 2000]}, {"numeric": 5}, {"label": {}}],
)  # fmt: skip
def test_forged_columns_are_refused(nonsense):
    columns = TableColumns("y")
    list(open_stream(io.BytesIO(written(ROWS)), columns=columns, format="csv"))
    arrays, facts = columns.get_state()
    assert "na" in facts
    known = {name: value for name, value in nonsense.items() if name in facts}
    if not known:
        pytest.skip(f"files have no {', '.join(nonsense)}")
    with pytest.raises(ValueError, match=r".") as caught:
        TableColumns.from_state(arrays, facts | known)
    assert "\n" not in str(caught.value)


def test_files_without_some_of_it():
    columns = TableColumns("y")
    list(open_stream(io.BytesIO(written(ROWS)), columns=columns, format="csv"))
    arrays, facts = gather(columns=columns)
    own = facts["columns"]
    for name in own:
        with contextlib.suppress(ModelFileError):
            restore("columns", arrays, {"columns": {key: own[key] for key in own if key != name}})
    for name in arrays:
        with pytest.raises(ModelFileError):
            restore("columns", {key: arrays[key] for key in arrays if key != name}, facts)
        with pytest.raises(ModelFileError):
            restore("columns", arrays | {name: np.zeros(3)}, facts)
