"""Columns of a stream that tell the time: what comes in order is left out, what comes round is used."""

import numpy as np
import pandas as pd
import pytest

from cbrank.features import TableEncoder


@pytest.mark.parametrize(
    ("every", "told"),
    [
        ("65min", "weekday, hour, as it comes in order"),
        ("1D", "weekday, as it comes in order"),
        ("1min", "nothing so far, as it comes in order"),
    ],
)
def test_times_in_order_have_parts_that_come_round(every, told):
    when = pd.Series(pd.date_range("2020-01-01", periods=3000, freq=every))
    late = when + pd.to_timedelta(np.random.default_rng(0).uniform(0, 40, 3000), unit="min")
    for times in (when, late, when[::-1]):  # in order, with neighbours swapped, the newest first
        found = TableEncoder().partial_fit({"when": times.tolist()})
        assert found.decisions() == [f"when: a time, {told}"]
        assert found.in_order_ == ["when"]
        row = found.encode(found.read({"when": ["2035-07-09T12:30"]}))
        used = {name.partition("=")[0] for name in found.get_feature_names_out()[row.indices]}
        assert used == {f"when: {part}" for part in ("weekday", "hour") if part in told}


def test_times_in_no_order_have_year_and_days():
    days = np.random.default_rng(0).permutation(3000)
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D")
    found = TableEncoder().partial_fit({"when": when})
    [told] = found.decisions()
    assert told.startswith("when: a time, year, month, weekday, days since 2020-01-")
    assert found.in_order_ == []


def test_an_index_is_a_column():
    when = pd.date_range("2020-01-01", periods=3000, freq="1D")
    columns = {
        "when": when,
        "x": pd.Index([1.5, 2.5, 1.0] * 1000),
        "w": pd.Index(["a", "b"] * 1500),
    }
    found = TableEncoder().fit(columns)
    assert found.kinds_ == {"when": "time", "x": "number", "w": "word"}


def test_times_that_stand_still_at_first_may_be_in_order():
    days = np.r_[np.zeros(300, int), np.arange(2004) // 8]
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D")
    found = TableEncoder().partial_fit({"when": when[:256]})
    assert found.decisions() == ["when: a time, one value so far"]
    found.partial_fit({"when": when[256:]})
    assert found.decisions() == ["when: a time, weekday, as it comes in order"]


@pytest.mark.parametrize("way", ["rises", "falls"])
@pytest.mark.parametrize(
    "cells", [np.arange(300) * 7.5, np.arange(300) // 48 / 1000, np.sort(np.arange(300) % 211)]
)
def test_numbers_in_order_are_left_out_of_streams(cells, way):
    cells = cells if way == "rises" else -cells
    found = TableEncoder().partial_fit({"x": cells})
    assert found.decisions() == [f"x: left out, it {way} from row to row, as an id or a time does"]
    assert found.in_order_ == ["x"]
    mixed = np.random.default_rng(0).permutation(cells)
    assert TableEncoder().partial_fit({"x": mixed}).kinds_ == {"x": "number"}
    assert TableEncoder().fit({"x": cells}).kinds_ == {"x": "number"}
    assert TableEncoder(kinds={"x": "number"}).partial_fit({"x": cells}).kinds_ == {"x": "number"}
