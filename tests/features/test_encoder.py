"""TableEncoder: what it decides, what it makes of rows, and that chunks make no difference."""

import copy
import itertools
import json
import pickle
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_tables import cuts, features_of_number, part, tables
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from cbrank.features import Table, TableEncoder
from cbrank.features import encoder as encoder_module
from cbrank.features.dates import parsed_time
from cbrank.features.table import in_words
from cbrank.texts import Texts

KINDS = ("number", "word", "time", "text", "drop")


@parametrize_with_checks([TableEncoder(), TableEncoder(pieces=3, max_categories=2)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.fixture(autouse=True, scope="module")
def _small_blocks():
    """Blocks of few rows, so that small tables have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder_module, "_FIRST", 16)
        patch.setattr(encoder_module, "_BLOCK", 24)
        yield


def fitted_in_chunks(columns, ends, **parameters):
    found = TableEncoder(**parameters)
    for begin, end in itertools.pairwise(ends):
        found.partial_fit(part(columns, begin, end))
    return found


def rows_of(columns):
    return len(next(iter(columns.values())))


def same(one, other):
    return one.shape == other.shape and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("data", "indices", "indptr")
    )


def known(encoder):
    """All that an encoder knows, in a form that does not tell what types its rows came in.

    A column of numbers and words in a chunk of numbers is one of numbers, until words come.
    """
    arrays, facts = encoder.get_state()
    texts = [*Texts.checked({"text": arrays.pop("text"), "ends": arrays.pop("ends")})]
    del texts[1 : 2 * facts["columns"] : 2]  # how cells are read
    rows = {name.removeprefix("waiting."): a for name, a in arrays.items() if "waiting" in name}
    table = Table.from_state(rows, encoder.names()) if rows else Table([], [])
    words = [in_words(column) for column in table.columns]
    cells = [[w.values[code] if code >= 0 else None for code in w.codes] for w in words]  # noqa: PD011
    own = {name: array.tolist() for name, array in arrays.items() if "waiting" not in name}
    return own, facts, texts, cells


def assert_same(one, other, columns):
    assert known(one) == known(other)
    assert same(one.transform(columns), other.transform(columns))
    assert one.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()


# Streams -----------------------------------------------------------------------------------------


@given(st.data())
def test_any_chunking_gives_the_same_encoder(data):
    columns = data.draw(tables())
    rows = rows_of(columns)
    whole = fitted_in_chunks(columns, [0, rows], max_categories=3)
    parts = fitted_in_chunks(columns, data.draw(cuts(rows)), max_categories=3)
    assert_same(whole, parts, columns)


@given(st.data())
def test_saved_and_loaded_goes_on_as_if_never_stopped(data):
    columns = data.draw(tables())
    ends = data.draw(cuts(rows_of(columns)))
    stopped = TableEncoder(max_categories=3)
    for begin, end in itertools.pairwise(ends):
        stopped.partial_fit(part(columns, begin, end))
        arrays, facts = stopped.get_state()
        assert all(array.dtype.kind in "iuf" for array in arrays.values())
        stopped = TableEncoder.from_state(arrays, json.loads(json.dumps(facts)))
    assert_same(fitted_in_chunks(columns, ends, max_categories=3), stopped, columns)


@given(tables(60))
def test_rows_are_encoded_one_by_one_as_together(columns):
    found = fitted_in_chunks(columns, [0, rows_of(columns)])
    table = found.read(columns)
    together = found.encode(table)
    assert np.isfinite(together.data).all()
    assert together.has_sorted_indices
    assert together.shape == (len(table), found.width_)
    for row in range(len(table)):
        assert same(found.encode(table.take([row])), together[[row]])


@given(tables())
def test_features_are_only_ever_added(columns):
    found, rows = TableEncoder(max_categories=3), rows_of(columns)
    table = found.read(columns)
    before = []
    for begin in range(0, rows, 24):
        found.settle(table.take(slice(begin, begin + 24)))
        names = found.get_feature_names_out().tolist()
        assert names[: len(before)] == before
        assert len({*names}) == len(names) == found.width_
        assert len(found.owners_) == len(found.bends_) == found.width_
        before = names


def test_fit_settles_the_first_rows_as_one_block():
    values = np.random.default_rng(0).normal(size=(3000, 2))
    whole, blocks = TableEncoder().fit(values), TableEncoder()
    table = blocks.read(values)
    for begin, end in ((0, 512), *((b, b + 24) for b in range(512, 3000, 24))):
        blocks.settle(table.take(slice(begin, end)))
    assert_same(whole, blocks, values)


def test_before_the_first_block_is_complete_the_rows_so_far_decide():
    found = TableEncoder()
    for age in range(10):
        found.partial_fit({"age": age, "city": "Oslo" if age % 2 else "Bergen"})
    assert found.kinds_ == {"age": "number", "city": "word"}
    assert found.transform({"age": 4, "city": "Oslo"}).shape == (1, found.width_)
    assert found.width_ > 2


def test_callers_rows_are_not_changed():
    frame = pd.DataFrame({"a": [1.0, np.nan] * 40, "b": ["x", "?"] * 40})
    kept = frame.copy(deep=True)
    TableEncoder().fit_transform(frame)
    pd.testing.assert_frame_equal(frame, kept)


# Numbers -----------------------------------------------------------------------------------------

HALVES = st.integers(-40, 40).map(lambda half: half / 2)


@given(st.lists(HALVES, min_size=1, max_size=70), st.lists(st.floats()), st.integers(1, 9))
def test_numbers_agree_with_a_plain_reading(first, more, pieces):
    found = TableEncoder(pieces=pieces, kinds={"x": "number"})
    found.settle(found.read({"x": first}))
    if len({*first}) < 2:
        assert found.width_ == 0
        return
    encoded = found.encode(found.read({"x": [*first, *more]})).toarray()
    for row, x in zip(encoded, [*first, *more], strict=True):
        expected = features_of_number(x, first, pieces)
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-9)


def names(rows, **parameters):
    return TableEncoder(**parameters).fit(rows).get_feature_names_out().tolist()


def test_rows_near_the_median_are_sparse():
    found = TableEncoder().fit(np.arange(200.0)[:, None] ** 1.5)
    assert found.transform([[99.5**1.5]]).nnz <= 3  # of 9


def test_gaps_have_a_feature_of_their_own_from_the_first_gap_on():
    found = TableEncoder()
    full = found.read({"x": [0.0, 1.0] * 40})
    found.settle(full)
    assert found.get_feature_names_out().tolist() == ["x"]
    assert found.encode(found.read({"x": [None]})).nnz == 0
    found.settle(found.read({"x": [np.nan, 1.0]}))
    assert found.get_feature_names_out().tolist() == ["x", "x: missing"]
    assert found.encode(found.read({"x": [None]})).toarray().tolist() == [[0.0, 1.0]]
    assert found.encode(full).toarray()[:, 1].tolist() == [0.0] * 80


def test_a_value_far_from_all_others_is_a_category():
    ages = [*range(20, 80), *[-999] * 4]
    found = TableEncoder().fit({"age": ages})
    assert "age = -999" in found.get_feature_names_out()
    assert "8 pieces between 20 and 79; -999 is a category of its own" in found.decisions()[0]
    encoded = found.transform({"age": [-999]})
    assert found.get_feature_names_out()[encoded.indices].tolist() == ["age = -999"]
    assert not any("=" in name for name in names({"age": [*range(20, 80), -999]}))
    assert not any("=" in name for name in names({"age": [0, 1] * 40 + [0] * 500}))


def gains(rows=1000, seed=4):
    """Mostly zeros; the others are 1 to 99 once in a while, or 31 or 62."""
    rng = np.random.default_rng(seed)
    few = np.where(rng.random(rows) < 0.5, rng.choice([31.0, 62.0], rows), rng.uniform(1, 99, rows))
    return np.where(rng.random(rows) < 0.8, 0.0, few)


def test_values_that_come_often_beside_one_that_is_most_of_a_column():
    found = TableEncoder().fit({"gain": gains()})
    single = [name for name in found.get_feature_names_out() if " = " in name]
    assert single == ["gain = 31", "gain = 62"]
    assert found.decisions()[0].endswith("; 2 values have a weight of their own")
    rows = found.transform({"gain": [31.0, 32.0, 0.0, None, 62.0]}).toarray()
    assert rows[:, -2:].tolist() == [[1, 0], [0, 0], [0, 0], [0, 0], [0, 1]]
    everywhere = np.tile(np.arange(20.0, 60.0), 25)
    assert not any(" = " in name for name in names({"age": everywhere}))
    many = dict.fromkeys(["gain", *map(str, range(40))], gains())
    assert not any(" = " in name for name in names(many))


def test_values_that_come_often_are_few():
    rng, found = np.random.default_rng(5), TableEncoder()
    zeros = np.zeros(300)
    for _ in range(40):
        found.settle(found.read({"gain": [*zeros, *rng.integers(1, 101, 200).astype(float)]}))
    assert sum(" = " in name for name in found.get_feature_names_out()) == 64
    for _ in range(40):
        found.settle(found.read({"gain": [*zeros, *rng.uniform(1, 100, 200)]}))
    assert sum(array.nbytes for array in found.get_state()[0].values()) < 30_000


def test_a_column_that_begins_to_move_gets_its_knots_then():
    rng = np.random.default_rng(1)
    found = TableEncoder()
    constant = np.full(600, 0.0035)
    moving = rng.normal(size=300)
    for block in np.split(np.concatenate([constant, moving]), 9):
        found.settle(found.read(block[:, None]))
        assert (found.width_ == 9) == (found.kinds_["x0"] == "number" and block[-1] != 0.0035)
    assert "8 pieces" in found.decisions()[0]


def test_a_column_with_few_values_waits_for_more():
    found = TableEncoder()
    for block in range(4):
        cells = [at * 7 % 20 / 2 + block for at in range(20)] + [None] * 236
        found.settle(found.read({"x": cells}))
        assert (found.width_ > 1) == (block == 3)
        assert ("too few values so far" in found.decisions()[0]) == (block < 3)


def test_a_column_that_leaves_its_knots_gets_new_ones():
    rng = np.random.default_rng(2)
    found = TableEncoder()
    celsius, fahrenheit = rng.uniform(0, 30, 256), rng.uniform(32, 86, 512)
    found.settle(found.read(celsius[:, None]))
    before = found.width_
    found.settle(found.read(fahrenheit[:, None]))
    assert found.width_ == 2 * before
    assert found.get_feature_names_out()[before] == "x0 (2)"
    assert not found.encode(found.read(fahrenheit[:, None])).toarray()[:, :before].any()
    found.settle(found.read(celsius[:, None]))
    assert found.width_ == 2 * before


def test_a_column_that_only_ever_grows_has_few_curves():
    found = TableEncoder(kinds={0: "number"})
    for block in np.split(np.arange(64.0 * 1024), 64):
        found.settle(found.read(block[:, None]))
    assert found.width_ <= 9 * 8


@pytest.mark.parametrize(
    "cells",
    [
        [1.7e308, -1.7e308, 0.0, 1e308, 5.0],
        [5e-324, 1e-323, 0.0, 1.5e-323, -5e-324],
        [1.0, 1.0 + 2**-52, 1.0 + 2**-51, 1e300, -1e300],
        [np.inf, -np.inf, 1.0, 2.0, 3.0],
        [np.inf] * 5,
        [1e-308, 1e308, 1e-320, 2e-320, 3e-320],
    ],
)
def test_hostile_numbers_stay_finite(cells):
    X = np.array(cells * 20)[:, None]
    found = TableEncoder().fit(X)
    more = np.array([np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, *cells])[:, None]
    encoded = found.transform(more)
    assert np.isfinite(encoded.data).all()
    assert (np.abs(encoded.data) <= 10.0).all()
    if found.width_ and not any("=" in name for name in found.get_feature_names_out()):
        rising = found.transform(np.sort(more, axis=0)).toarray()
        assert (np.diff(rising[:, ~found.bends_], axis=0) >= 0).all()


# Words -------------------------------------------------------------------------------------------


def test_words_get_features_when_they_are_met_twice():
    found = TableEncoder()
    found.settle(found.read({"city": ["Oslo", "Oslo", "Bergen"]}))
    assert found.get_feature_names_out().tolist() == ["city=Oslo", "city: other"]
    found.settle(found.read({"city": ["Bergen", "Moss", "Oslo"]}))
    assert found.get_feature_names_out()[2] == "city=Bergen"
    encoded = found.encode(found.read({"city": ["Bergen", "Moss", "unheard of", None]}))
    assert encoded.toarray().tolist() == [[0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 0, 0]]


def test_a_constant_word_gets_a_feature_when_another_comes():
    found = TableEncoder()
    found.settle(found.read({"city": ["Oslo"]}))
    found.settle(found.read({"city": ["Oslo", "Oslo"]}))
    assert found.width_ == 0
    assert found.decisions() == ["city: a word, 'Oslo' in all cells so far"]
    found.settle(found.read({"city": ["Moss"]}))
    assert found.get_feature_names_out().tolist() == ["city=Oslo", "city: other"]


def test_words_beyond_the_limit_share_buckets():
    words = [f"w {at}" for at in range(10) for _ in range(20 - at)]
    found = TableEncoder(max_categories=4).fit({"c": words})
    assert found.get_feature_names_out()[:5].tolist() == [
        "c=w 0",
        "c=w 1",
        "c=w 2",
        "c=w 3",
        "c: other #0",
    ]
    assert found.width_ == 4 + 32
    encoded = found.transform({"c": ["w 9", "never seen"]})
    assert encoded.nnz == 2
    assert (encoded.indices >= 4).all()
    assert found.decisions() == ["c: a word, 4 categories and 32 buckets for all others"]


def test_state_stays_small_whatever_comes():
    found = TableEncoder(max_categories=8, kinds={"c": "word"})
    for block in range(50):
        found.settle(found.read({"c": [f"w{block}-{at}" for at in range(100)], "x": [*range(100)]}))
    arrays, _ = found.get_state()
    assert sum(array.nbytes for array in arrays.values()) < 20_000


# What columns are --------------------------------------------------------------------------------

RANDOM = np.random.default_rng(3)
CASES = {
    "number": [*RANDOM.normal(size=64)],
    "number in words": [" 1,234 ", "12", "?", "-3.5", "1e5"] * 13,
    "number, some words": ["5", "6", "7", "x"] + ["8", "9"] * 30,
    "number, money": ["$1,234.50", "-$3", "$ 7"] * 20 + ["12%", "3 €"],
    "number, decimal commas": [f"{at},{at * 7 % 1000:03}" for at in range(64)],
    "time, day first": [f"{1 + at % 31}/{1 + at % 7}/2021 08:00" for at in range(64)],
    "time, month first": [f"{1 + at % 12}/{1 + at % 28}/2021" for at in range(64)],
    "word": ["a", "b", "c", "NA"] * 16,
    "word, few rows": ["a", "b", "c"],
    "word, half numbers": ["5", "x"] * 32,
    "time, dates": [f"2020-01-{1 + at % 28:02}" for at in range(64)],
    "time, dots": [f"{1 + at % 28}.{1 + at % 12}.2021" for at in range(64)],
    "time, slashes": [f"2020/01/{1 + at % 28} 12:{at % 60:02}" for at in range(64)],
    "time, short years": [f"{1 + at % 28:02}.{1 + at % 12:02}.{23 + at % 3}" for at in range(64)],
    "time, short years, month first": [f"{1 + at % 12}/{1 + at % 28}/24" for at in range(64)],
    "time, short years, day first": [f"{1 + at % 28}/{1 + at % 12}/24 8:05" for at in range(64)],
    "word, years first": [f"24/03/{1 + at % 31:02}" for at in range(90)],
    "word, years first, dots": [f"{23 + at % 2}.03.{1 + at % 31:02}" for at in range(90)],
    "word, sections": [f"{1 + at % 3:02}.{1 + at % 2:02}.{1 + at % 11:02}" for at in range(90)],
    "word, versions": [f"{10 + at % 9}.{at % 9}.{10 + at % 7}" for at in range(90)],
    "word, addresses": [f"10.10.{10 + at % 3}.{10 + at % 7}" for at in range(90)],
    "word, clocks with dots": [f"{at % 24:02}.{at * 7 % 60:02}.05" for at in range(24)] * 4,
    "word, one day": ["29.03.24"] * 64,
    "time, zones": [f"2020-01-01T{at % 24:02}:00:00.5+02:00" for at in range(64)],
    "text": [f"this is text number {at}" for at in range(64)],
    "drop, hex": [f"{RANDOM.integers(2**40):x}-k" for _ in range(64)],
    "drop, counts up": [*range(100, 164)],
    "empty": [None, "", "?"] * 20,
}


@pytest.mark.parametrize("case", CASES)
def test_kinds(case):
    found = TableEncoder().fit({"c": CASES[case]})
    assert found.kinds_["c"] == case.partition(",")[0].partition(" ")[0]
    assert found.decisions()[0].startswith("c: ")


@pytest.mark.parametrize(
    ("name", "is_id"),
    [
        ("id", True),
        ("customerID", True),
        ("user_id", True),
        ("Id", True),
        ("paid", False),
        ("humid", False),
        ("UNPAID", False),
        ("Unnamed: 0", True),
        ("age", False),
    ],
)
def test_names_of_ids(name, is_id):
    values = RANDOM.permutation(1000)[:64]
    found = TableEncoder().fit({name: values, "other": values % 7})
    assert found.kinds_[name] == ("drop" if is_id else "number")


def test_the_callers_word_counts_more():
    found = {
        kind: TableEncoder(kinds={"c": kind}).fit({"c": ["1", "2", "?", "2"] * 20})
        for kind in KINDS
    }
    assert [found[kind].kinds_["c"] for kind in KINDS] == [*KINDS]
    assert found["word"].get_feature_names_out().tolist() == ["c=1", "c=2", "c=?"]
    assert found["drop"].decisions() == ["c: left out, as asked"]
    assert found["text"].is_wide_
    assert not found["word"].is_wide_
    as_words = TableEncoder(kinds={0: "word"}).fit([[3.0], [3.5], [np.nan]] * 20)
    assert as_words.get_feature_names_out().tolist() == ["x0: missing", "x0=3", "x0=3.5"]


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"d": "word"}, "names column 'd'"),
        ({5: "word"}, "names column 5"),
        ({"c": "?"}, "is '\\?'"),
    ],
)
def test_kinds_that_make_no_sense_are_refused(kinds, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(kinds=kinds).fit({"c": [1, 2]})


def test_how_words_are_read_is_decided_for_the_whole_column():
    columns = {
        "price": [f"{at % 9},{at % 7}" for at in range(64)],
        "day": [f"{1 + at % 28}/2/2021" for at in range(64)],
        "month": [f"2/{1 + at % 28}/2021" for at in range(64)],
    }
    found = TableEncoder().fit(columns)
    assert "in words with decimal commas, 8 pieces between 0 and 8.6" in found.decisions()[0]
    assert (
        "in words, the day before the month, weekday, days since 2021-02-01" in found.decisions()[1]
    )
    assert "in words, weekday, days since 2021-02-01" in found.decisions()[2]
    row = found.transform({"price": ["1,5"], "day": ["3/2/2021"], "month": ["2/3/2021"]})
    same_row = found.transform({"price": ["1.5"], "day": ["2021-02-03"], "month": ["3.2.2021"]})
    assert same(row, same_row)
    asked = TableEncoder(kinds={"day": "time", "price": "number"}).fit(columns)
    assert same(asked.transform(columns), found.transform(columns))


def test_years_of_two_digits():
    columns = {
        "dots": [f"{1 + at % 28:02}.02.21" for at in range(64)],
        "day": [f"{1 + at % 28}/2/21" for at in range(64)],
        "month": [f"2/{1 + at % 28}/21" for at in range(64)],
    }
    found = TableEncoder().fit(columns)
    assert found.decisions()[0].endswith("years of two digits, weekday, days since 2021-02-01")
    row = found.transform({"dots": ["03.02.21"], "day": ["3/2/21"], "month": ["2/3/21"]})
    same_row = found.transform({"dots": ["3.2.2021"], "day": ["3/2/2021"], "month": ["2021-02-03"]})
    assert same(row, same_row)
    assert [parsed_time(f"02.01.{year}", short_years=True) for year in ("69", "68")] == [
        parsed_time("1969-01-02"),
        parsed_time("2068-01-02"),
    ]
    asked = TableEncoder(kinds={"c": "time"}).fit({"c": ["29.03.24", "31.03.24", "3/29/24"] * 9})
    assert asked.decisions()[0].startswith("c: a time in words, years of two digits, as asked")


def test_numbers_that_turn_out_to_be_words():
    found = TableEncoder()
    found.settle(found.read({"c": [*range(126, -2, -2), 7]}))
    found.settle(found.read({"c": [*range(60), None]}))
    before = found.width_
    found.settle(found.read({"c": ["red", "green"] * 100 + ["?"]}))
    assert found.kinds_ == {"c": "word"}
    assert found.get_feature_names_out()[before:].tolist() == ["c=red", "c=green"]
    encoded = found.encode(found.read({"c": ["red", 5, None]}))
    assert found.get_feature_names_out()[encoded.indices].tolist() == ["c=red", "c: missing"]


def test_parts_of_times():
    days = pd.date_range("2020-01-01", periods=200, freq="36h")
    found = TableEncoder().fit(pd.DataFrame({"when": days}))
    [told] = found.decisions()
    assert told == "when: a time, month, weekday, hour, days since 2020-01-01"
    encoded = found.transform({"when": ["2020-03-01T12:30"]})
    used = found.get_feature_names_out()[encoded.indices].tolist()
    assert {"when: month=Mar", "when: weekday=Sun", "when: hour=12h", "when: days"} <= {*used}
    assert found.transform({"when": [3.0]}).nnz == 0
    found.settle(found.read({"when": [None]}))
    assert found.get_feature_names_out()[-1] == "when: missing"


def test_text_is_hashed_words_and_pairs():
    texts = [f"you win a prize now {at}" for at in range(40)]
    found = TableEncoder().fit({"t": texts})
    assert found.width_ == 2**16
    row = found.transform({"t": ["win a prize"]})
    assert row.nnz == 5
    np.testing.assert_allclose(row.data, 1 / np.sqrt(5))
    other = found.transform({"t": ["a PRIZE"]})
    assert {*other.indices} < {*row.indices}
    assert found.get_feature_names_out()[7] == "t: words #7"


# Columns by name and by place --------------------------------------------------------------------


def test_columns_are_found_by_name():
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0] * 30, "b": ["x", "y", "y"] * 30})
    found = TableEncoder().fit(frame)
    assert found.feature_names_in_.tolist() == ["a", "b"]
    expected = found.transform(frame)
    for X in (
        frame[["b", "a"]].assign(label=1),
        pl.from_pandas(frame).select("b", "a"),
        frame.to_dict("records"),
        frame.to_dict("list"),
    ):
        assert same(found.transform(X), expected)
    with pytest.raises(ValueError, match="lacks the column 'b'"):
        found.transform(frame[["a"]])
    with_id = TableEncoder().fit({"id": [f"k-{at}" for at in range(90)], **frame.to_dict("list")})
    assert with_id.needs_ == {"id": False, "a": True, "b": True}
    assert same(with_id.transform(frame), with_id.transform(frame.assign(id="k-1")))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert same(found.transform(frame.to_numpy(object)), expected)
    unnamed = TableEncoder().fit(frame.to_numpy(object))
    assert not hasattr(unnamed, "feature_names_in_")
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        unnamed.transform(frame)
    with pytest.raises(ValueError, match="X has 1 features, but TableEncoder is expecting 2"):
        unnamed.transform([[1.0]])
    found.fit(frame.to_numpy(object))
    assert not hasattr(found, "feature_names_in_")


def test_sparse_output_cannot_be_a_frame():
    found = TableEncoder().set_output(transform="pandas").fit([[1.0], [2.0]])
    with pytest.raises(ValueError, match=r"use set_output\(transform=\"default\"\)"):
        found.transform([[1.0]])


def test_sparse_rows_are_refused_with_the_cure():
    from scipy.sparse import csr_array  # noqa: PLC0415

    with pytest.raises(TypeError, match="CBRanker"):
        TableEncoder().fit(csr_array(np.eye(3)))


def test_it_works_in_a_pipeline():
    rng = np.random.default_rng(4)
    x = rng.normal(size=400)
    frame = pd.DataFrame({"x": np.where(x > 1, np.nan, x), "w": np.where(x > 0, "a", "b")})
    model = make_pipeline(TableEncoder(), LogisticRegression())
    assert model.fit(frame, np.abs(x) > 0.5).score(frame, np.abs(x) > 0.5) > 0.95


def test_copies_and_threads():
    frame = pd.DataFrame({"x": np.arange(300.0) % 17, "w": ["a", "b", "c"] * 100})
    found = TableEncoder().partial_fit(frame)
    for twin in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert_same(twin, found, frame)
    assert not hasattr(clone(found), "n_features_in_")
    shared = TableEncoder()
    threads = [threading.Thread(target=shared.partial_fit, args=(frame,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = TableEncoder()
    for _ in range(4):
        again.partial_fit(frame)
    assert_same(shared, again, frame)


def test_many_columns():
    X = np.random.default_rng(5).normal(size=(40, 10_000))
    found = TableEncoder().fit(X)
    assert found.transform(X).shape == (40, 90_000)


# States ------------------------------------------------------------------------------------------


def forged_states():
    columns = {
        "x": [*range(30), None] * 3,
        "w": ["a", "b", None] * 31,
        "t": [f"2020-01-{1 + at % 28:02}" for at in range(93)],
        "s": [f"some text of words {at}" for at in range(93)],
    }
    arrays, facts = TableEncoder(max_categories=3).partial_fit(columns).get_state()
    for name in ("ints", "floats", "text", "ends"):
        yield {**arrays, name: arrays[name][:-1]}, facts
        yield {**arrays, name: np.append(arrays[name], arrays[name][-1:])}, facts
        yield {**arrays, name: arrays[name].astype(np.int16)}, facts
    yield {**arrays, "floats": np.full_like(arrays["floats"], np.nan)}, facts
    yield {**arrays, "floats": arrays["floats"][::-1].copy()}, facts
    texts = [*Texts.checked({name: arrays[name] for name in ("text", "ends")})]
    for at, text in ((2, "x"), (0, "w")):  # two columns of one name
        yield arrays | Texts.of([*texts[:at], text, *texts[at + 1 :]]).arrays(), facts
    yield {**arrays, "text": np.full_like(arrays["text"], 0xFF)}, facts
    yield {**arrays, "ends": arrays["ends"][::-1].copy()}, facts
    for at, number in ((0, 6), (0, -1), (0, 2), (1, 2), (2, -1), (2, 0), (3, 2**40), (5, -1)):
        # kind, whether it was asked for, rows and gaps of the first column; of the second
        ints = arrays["ints"].copy()
        ints[at] = number
        yield {**arrays, "ints": ints}, facts
    for key, value in (
        ("columns", 3),
        ("columns", 5),
        ("columns", 0),
        ("columns", 2**40),
        ("columns", "4"),
        ("pieces", 0),
        ("pieces", "8"),
        ("settled", -1),
        ("named", "yes"),
    ):
        yield arrays, {**facts, key: value}
    for name in [name for name in arrays if name.startswith("waiting.")]:
        yield {key: array for key, array in arrays.items() if key != name}, facts
    for kinds in ([0, 1, 1], [0, 1, 1, 4], [1, 1, 1, 1], [0, 2, 1, 1]):
        yield {**arrays, "waiting.kinds": np.array(kinds, np.uint8)}, facts
    yield {**arrays, "waiting.kinds": np.array([0, 1, 1, 1])}, facts


@pytest.mark.parametrize("number", range(len([*forged_states()])))
def test_forged_states_are_refused(number):
    arrays, facts = [*forged_states()][number]
    with pytest.raises(ValueError, match="its"):
        TableEncoder.from_state(arrays, facts)


@given(st.data())
def test_forged_numbers_are_refused_or_harmless(data):
    columns = {"x": [*range(9), None] * 3, "w": ["a", "b", None] * 10, "t": ["2020-01-01"] * 30}
    arrays, facts = TableEncoder().partial_fit(columns).get_state()
    ints = arrays["ints"].copy()
    place = data.draw(st.integers(0, len(ints) - 1))
    ints[place] = data.draw(st.sampled_from([-(2**63), -2, -1, 0, 1, 5, 2**16, 2**40, 2**63 - 1]))
    try:
        forged = TableEncoder.from_state({**arrays, "ints": ints}, facts)
    except ValueError:
        return
    encoded = forged.transform(columns)
    assert encoded.indices.max(initial=0) < max(1, forged.width_)
    forged.partial_fit(columns).transform(columns)
