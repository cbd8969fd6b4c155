"""Rows as JSON objects mean what the same rows mean in a file."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbrank.features.table import Words
from cbrank.streams import Columns, TableColumns, open_stream
from cbrank.streams.objects import Objects, _column, _only

TABLE = "age,city,when,sum,clicked\n31,Oslo,2020-01-01,1.5,no\n?,Rome,,-2,yes\n27,  ,x,1000,no\n"


def columns_of(text, columns):
    return [*open_stream(io.BytesIO(text.encode()), format="csv", columns=columns)]


def as_list(column):
    if isinstance(column, Words):
        return [None if code < 0 else column.values[code] for code in column.codes]
    return column.tolist()


def cells_of(line):
    """Cells as a caller would write them: numbers as numbers, nothing as null."""
    found = []
    for cell in line.split(","):
        try:
            found.append(float(cell))
        except ValueError:
            found.append(cell if cell.strip() else None)
    return found


def test_a_table_of_objects_is_that_of_the_file():
    columns = TableColumns(label="clicked")
    [chunk] = columns_of(TABLE, columns)
    head, *lines = TABLE.splitlines()
    rows = [dict(zip(head.split(","), cells_of(line), strict=True)) for line in lines]
    found = Objects(columns).features(rows)
    assert found.names == chunk.X.names
    for one, other in zip(found.columns, chunk.X.columns, strict=True):
        np.testing.assert_array_equal(as_list(one), as_list(other))
    texts = [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]
    for one, other in zip(Objects(columns).features(texts).columns, chunk.X.columns, strict=True):
        np.testing.assert_array_equal(as_list(one), as_list(other))
    assert Objects(columns).labels(rows) == ["no", "yes", "no"]


def test_keys_that_are_missing_are_gaps_and_others_are_left_out():
    columns = TableColumns(label="clicked", na=["-2"])
    columns_of(TABLE, columns)
    objects = Objects(columns)
    rows = [{"age": 5, "planet": "Mars"}, {"sum": -2, "city": True}, {"sum": 10**400, "age": None}]
    objects.features(rows)
    age, city, when, total = map(as_list, objects.features(rows).columns)
    np.testing.assert_array_equal(age, [5.0, np.nan, np.nan])
    np.testing.assert_array_equal(city, [np.nan, 1.0, np.nan])
    assert np.isnan(when).all()
    assert np.isnan(total).all()
    with pytest.raises(ValueError, match=r"row 1 has none of the model's columns: 'age', 'city'"):
        objects.features([{"age": 1}, {"planet": "Mars"}])


cells = st.one_of(
    st.floats(),
    st.integers(),
    st.booleans(),
    st.none(),
    st.text(),
    st.sampled_from(["5", "?", "007"]),
)


@given(st.text())
def test_one_text_is_read_as_several_are(text):
    one, several = _only(text.strip()), _column([text, None])
    assert (
        as_list(one)[:1] == as_list(several)[:1]
        or np.isnan([as_list(one)[0], as_list(several)[0]]).all()
    )
    assert isinstance(one, Words) == isinstance(several, Words)


@given(st.lists(cells, min_size=1, max_size=5))
def test_any_cells_are_a_column(found):
    column = _column(found)
    assert len(column) == len(found)
    if isinstance(column, np.ndarray):
        assert not np.isinf(column).any()


def test_numbers_and_categories():
    columns = Columns(label="clicked", categorical={"city": "onehot"}, drop=["when"])
    text = "age,city,when,clicked\n31,Oslo,x,no\n44,Rome,y,yes\n"
    [chunk] = columns_of(text, columns)
    objects = Objects(columns)
    rows = [{"age": 31, "city": "Oslo"}, {"age": 44.0, "city": "Rome"}, {"age": 1, "city": "Bonn"}]
    np.testing.assert_array_equal(objects.features(rows[:2]).toarray(), chunk.X.toarray())
    assert objects.features(rows).toarray()[2].tolist() == [1.0, 0.0, 0.0]
    assert columns.width_ == 3  # nothing was learned
    with pytest.raises(
        ValueError, match=r"row 0, column 'age': the value is missing.*row 1.*'x' is a word"
    ):
        objects.features([{"city": "Oslo"}, {"age": "x"}])
    with pytest.raises(ValueError, match="infinite"):
        objects.features([{"age": 1e400}])


def test_svmlight_features_by_index():
    columns = Columns()
    [*open_stream(io.BytesIO(b"1 1:5 3:2\n-1 2:6\n"), columns=columns)]
    objects = Objects(columns)
    assert objects.label == "label"
    rows = [{"3": 2, "1": 5, "label": 1}, {"2": 6.0, "id": "a"}, {"9": 1}, {}]
    objects.features(rows)
    assert objects.features(rows).toarray().tolist() == [[5, 0, 2], [0, 6, 0], [0, 0, 0], [0, 0, 0]]
    assert objects.labels([{"label": 1}, {"label": "-1"}, {"label": True}]) == ["1", "-1", "1"]
    for key in ("0", "-1", "x", "1.5", "99999999999", "²"):
        with pytest.raises(ValueError, match=r"row 0: the key .* is no index"):
            objects.features([{key: 1.0}])


def test_labels_are_those_of_the_model():
    columns = TableColumns(label="clicked")
    columns_of(TABLE, columns)
    objects = Objects(columns)
    for value in (None, "", "NA", float("nan")):
        with pytest.raises(ValueError, match="missing"):
            objects.label_of(value)
    with pytest.raises(ValueError, match=r"'maybe' is neither 'no' nor 'yes'"):
        objects.label_of("maybe")
    faults = [{"clicked": "maybe"}] * 12 + [{}]
    with pytest.raises(ValueError, match=r"row 0: .*row 9: .*There are 3 more."):
        objects.labels(faults)
    numbered = TableColumns(label="y")
    columns_of("x,y\n1,0\n2,1\n", numbered)
    assert [*map(Objects(numbered).label_of, (1, 1.0, "1.0", True, False, "0"))] == [*"111100"]


def test_what_is_an_id():
    columns = TableColumns(label="y")
    columns_of("x,y\n1,0\n2,1\n", columns)
    assert Objects(columns).id == "id"
    told = TableColumns(label="y", id="row")
    columns_of("row,x,y\n1,1,0\n2,2,1\n", told)
    assert Objects(told).id == "row"
    taken = TableColumns(label="y")
    columns_of("id,y\n1,0\n2,1\n", taken)
    assert Objects(taken).id is None
