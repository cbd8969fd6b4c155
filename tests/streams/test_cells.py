"""Cells of text as columns: nothing is lost, and a column means the same however it is cut."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbrank import kernels
from cbrank.features import TableEncoder
from cbrank.features.table import Table, Words, in_words, number_text
from cbrank.streams.cells import Cells, column_of, plain_number, without
from cbrank.streams.dialect import with_point

NUMBERS = st.one_of(
    st.from_regex(r"-?[0-9]{0,18}(\.[0-9]{0,18})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
    st.floats(allow_nan=False).map(repr),
    st.floats(-1e6, 1e6).map(lambda value: f"{value:.3f}"),
    st.integers(-(10**20), 10**20).map(str),
)
ODD = st.sampled_from(
    ["", "?", "NA", "nan", "None", "-", "+5", "5.", ".5", "00", "-0", "0.0", "1e5"]
)
TEXT = st.text("ab 1.,;-é", max_size=6).map(str.strip)
CELL = st.one_of(NUMBERS, ODD, TEXT)


def spans_of(cells):
    """Return the cells one after the other as bytes, and where each is."""
    data = [cell.encode() for cell in cells]
    sizes = np.array([len(cell) for cell in data], np.int64)
    stops = np.cumsum(sizes)
    return b"".join(data) + b"\n", np.column_stack([stops - sizes, stops])


def is_plain(text):
    """Say whether Python would write this number so: the plain way to tell."""
    try:
        value = float(text)
    except ValueError:
        return False
    return bool(np.isfinite(value)) and number_text(value) == text


def read(cells, translate=None):
    return Cells(translate).column(*spans_of(cells))


@given(st.lists(CELL, max_size=8))
def test_plain_numbers_are_those_that_python_writes(cells):
    text, spans = spans_of(cells)
    values, kinds = np.empty(len(cells)), np.empty(len(cells), np.int64)
    kernels.csv.plain_numbers(np.frombuffer(text, np.uint8), spans, values, kinds)
    for cell, value, kind in zip(cells, values.tolist(), kinds.tolist(), strict=True):
        if kind == kernels.csv.PLAIN:
            assert is_plain(cell)
            assert np.float64(value).tobytes() == np.float64(float(cell)).tobytes()
        else:
            assert np.isnan(value)
            assert (kind == kernels.csv.EMPTY) == (cell == "")
            digits = sum(letter.isdigit() for letter in cell)
            assert not is_plain(cell) or digits > 15 or "e" in cell or 0 < abs(float(cell)) < 1e-4


@given(CELL)
def test_plain_number(cell):
    found = plain_number(cell)
    assert (found is not None) == (is_plain(cell) and cell not in ("inf", "-inf"))
    assert found is None or number_text(found) == cell


@given(st.lists(CELL, min_size=1, max_size=12))
def test_no_text_is_lost(cells):
    column = read(cells)
    words = in_words(column)
    texts = [None if code < 0 else words.values[code] for code in words.codes.tolist()]
    gaps = {"", "?", "na", "n/a", "#n/a", "null", "none", "nan", "nat", "<na>", "-"}
    assert texts == [None if cell.lower() in gaps else cell for cell in cells]
    assert isinstance(column, np.ndarray) == all(text is None or is_plain(text) for text in texts)


@given(st.lists(CELL, min_size=1, max_size=20), st.lists(st.integers(0, 20), max_size=4))
def test_a_column_means_the_same_in_any_parts(cells, cuts):
    ends = sorted({0, len(cells), *(cut for cut in cuts if cut < len(cells))})
    whole = Table(["x"], [read(cells)])
    parts = [read(cells[begin:end]) for begin, end in itertools.pairwise(ends)]
    joined = Table.concatenated([Table(["x"], [part]) for part in parts])
    assert isinstance(joined.columns[0], Words) == isinstance(whole.columns[0], Words)
    one, other = whole.state(), joined.state()
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


@given(st.lists(CELL, min_size=2, max_size=60), st.integers(1, 59))
def test_the_encoder_decides_the_same_in_any_parts(cells, cut):
    table = Table(["x"], [read(cells)])
    parts = [read(part) for part in (cells[:cut], cells[cut:]) if part]
    joined = Table.concatenated([Table(["x"], [part]) for part in parts])
    one, other = TableEncoder().fit(table), TableEncoder().fit(joined)
    assert one.decisions() == other.decisions()
    assert (one.transform(table) != other.transform(joined)).nnz == 0


@given(st.lists(CELL, max_size=10))
def test_cells_that_are_text_already(cells):
    one = Table(["x"], [read(cells)]).state()
    other = Table(["x"], [column_of(cell.strip() for cell in cells)]).state()
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


def test_quoted_cells():
    text = b'"5""x""","7",""\n'
    cells = Cells()
    assert cells.column(text, np.array([[0, 8]])).values == ('5"x"',)
    assert cells.column(text, np.array([[9, 12], [13, 15]])).tolist()[0] == 7.0
    assert cells.texts(text, np.array([[0, 8], [13, 15]])) == ['5"x"', ""]


def test_what_is_not_utf_8():
    cells = Cells()
    assert cells.foreign is None
    text = "Zürich".encode("cp1252")
    assert cells.column(text, np.array([[0, len(text)]])).values == ("Zürich",)
    assert cells.foreign == "Zürich"


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1,5", "-,25", "3"], [1.5, -0.25, 3.0]),
        (["1.234,5", "1.234", "12"], [1234.5, 1234.0, 12.0]),
        (["1.5", "2,5", ""], [1.5, 2.5, np.nan]),
    ],
)
def test_decimal_commas(cells, expected):
    encoder = TableEncoder().fit(Table(["x"], [read(cells * 5, with_point)]))
    assert encoder.kinds_ == {"x": "number"}
    words = in_words(read(cells, with_point))
    found = [np.nan if code < 0 else float(words.values[code]) for code in words.codes.tolist()]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("text", ["31.12.2023", "1.23", "10.000.5", "a,5", "1,2,3", "0.123.456"])
def test_what_is_no_number_with_a_decimal_comma(text):
    assert with_point(text) == text


def test_gaps_that_are_said():
    numbers = without(np.array([-999.0, 1.0, np.nan]), ["-999", "x"])
    np.testing.assert_array_equal(numbers, [np.nan, 1.0, np.nan])
    words = without(Words(np.array([0, 1, 2, -1], np.int32), ("x", "-999.0", "y")), ["-999", "x"])
    assert words.codes.tolist() == [-1, -1, 2, -1]
    assert without(np.array([1.0]), ["x"]).tolist() == [1.0]
