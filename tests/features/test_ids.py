"""Columns of many categories: each category has a weight of its own."""

import copy
import zlib

import numpy as np
import pandas as pd
import pytest

import cbrank
from cbrank import AdditiveRanker, ModelFileError
from cbrank.features import TableEncoder, ids
from cbrank.features.ids import SIZE, Ids
from cbrank.modelfile import gather, restore


def ratings(rows, seed=0, users=300):
    """Make up users with effects of their own, and a number that says nothing."""
    random = np.random.RandomState(seed)
    user = random.randint(users, size=rows)
    effect = np.random.RandomState(0).normal(0, 1.5, users)
    y = (random.rand(rows) < 1 / (1 + np.exp(-effect[user]))).astype(int)
    return pd.DataFrame({"user": [f"u{at}" for at in user], "x": random.normal(size=rows)}), y


X, y = ratings(3000)
NEW, y_new = ratings(1500, seed=1)


def encoded(frame, kinds=None):
    encoder = TableEncoder(kinds=kinds)
    table = encoder.read(frame)
    encoder.settle(table)
    return encoder, table


def test_each_category_has_the_place_of_its_hash_and_others_are_the_encoders():
    frame = pd.DataFrame({"user": ["a", None, "b", "a"], "code": [7.0, 8.5, np.nan, 7.0]})
    encoder, table = encoded(frame)
    found = Ids(np.array([0, 1]), encoder.width_).encode(encoder, table).toarray()
    expected = np.zeros((4, SIZE))
    for row, (user, code) in enumerate([("a", "7"), (None, "8.5"), ("b", None), ("a", "7")]):
        for column, word in enumerate([user, code]):
            if word is not None:
                expected[row, zlib.crc32(word.encode(), column) % SIZE] += 1
    np.testing.assert_array_equal(found[:, :SIZE], expected)
    np.testing.assert_array_equal(found[:, SIZE:], encoder.encode(table).toarray())


def test_two_columns_that_share_a_place_add_up(monkeypatch):
    monkeypatch.setattr(ids, "SIZE", 1)
    encoder, table = encoded(pd.DataFrame({"one": ["a", "b"] * 9, "other": ["c", "d"] * 9}))
    found = Ids(np.array([0, 1]), 0).encode(encoder, table)
    np.testing.assert_array_equal(found.toarray(), np.full((18, 1), 2.0))


@pytest.mark.parametrize(
    ("column", "kinds", "is_found"),
    [
        ([f"u{at % 40}" for at in range(256)], None, True),
        ([f"u{at % 30}" for at in range(256)], None, False),
        ([f"u{at}" for at in range(256)], None, False),  # none comes again
        ([f"u{at % 1950}" for at in range(2000)], None, False),  # few do
        ([f"u{at % 1900}" for at in range(2000)], None, True),
        ([f"u{at}" for at in range(256)], {"id": "drop"}, False),
        (np.arange(256.0) % 97, None, False),
        (np.arange(256.0) % 97, {"id": "word"}, True),
    ],
)
def test_which_columns_have_many_categories(column, kinds, is_found):
    encoder, table = encoded(pd.DataFrame({"id": column, "x": np.arange(len(column)) % 3}), kinds)
    found = ids.found(encoder, table)
    assert (found is not None) == is_found
    if is_found:
        assert found.columns.tolist() == [0]


def test_every_category_counts_and_those_never_seen_do_not():
    ranker = AdditiveRanker(random_state=0).partial_fit(X, y)
    without = AdditiveRanker(C=2.0**-8, trees=0, random_state=0).partial_fit(X, y)
    assert ranker.score(NEW, y_new) > without.score(NEW, y_new) + 0.02
    parts = ranker.contributions(NEW)
    np.testing.assert_allclose(
        parts.sum(axis=1) + ranker.intercept_, ranker.decision_function(NEW), atol=1e-9
    )
    frame = pd.DataFrame({"id": X["user"] + [f"-{at}" for at in range(3000)], "x": X["x"]})
    unseen = AdditiveRanker(random_state=0).partial_fit(frame, y)
    assert unseen.contributions({"id": ["never seen"], "x": [0.0]})[0, 0] == 0.0


def test_any_split_of_a_stream_gives_the_same_model():
    whole = AdditiveRanker(random_state=0).partial_fit(X, y)
    parts = AdditiveRanker(random_state=0)
    for begin, end in [(0, 1), (1, 300), (300, 1023), (1023, 3000)]:
        parts.partial_fit(X[begin:end], y[begin:end], classes=[0, 1])
    np.testing.assert_allclose(
        whole.decision_function(NEW), parts.decision_function(NEW), rtol=1e-9, atol=1e-9
    )


def test_saved_it_goes_on_as_if_it_had_never_stopped(tmp_path):
    ranker = AdditiveRanker(random_state=0).partial_fit(X, y)
    cbrank.save(ranker, tmp_path / "model")
    opened = cbrank.load(tmp_path / "model")
    for each in (ranker, opened):
        each.partial_fit(NEW, y_new)
    np.testing.assert_array_equal(ranker.decision_function(X), opened.decision_function(X))


@pytest.mark.parametrize(
    "damage",
    [
        {"beside.0.trees.columns": np.array([9])},
        {"beside.0.trees.others": np.array([10**6])},
        {"beside.0.held_at": np.array([SIZE * 2])},
        {"beside.0.held": np.array([np.nan])},
        {"beside.0.model0.features_at": np.array([3, 2])},
        {"beside.0.unknown": np.array([1])},
        {"beside.1.left": np.array([1])},
    ],
)
def test_damaged_groups_are_refused(damage):
    arrays, facts = gather(model=AdditiveRanker(random_state=0).partial_fit(X[:1200], y[:1200]))
    arrays = arrays | {f"model.{name}": array for name, array in damage.items()}
    with pytest.raises((ModelFileError, ValueError)):
        restore("model", arrays, facts)


def test_rankers_that_went_on_apart_are_merged_category_by_category():
    base = AdditiveRanker(trees=0, forgetting=0.0, random_state=0).partial_fit(X[:400], y[:400])
    halves = [
        copy.deepcopy(base).partial_fit(X[begin : begin + 1300], y[begin : begin + 1300])
        for begin in (400, 1700)
    ]
    merged = cbrank.merge(halves, prior=base)
    turned = cbrank.merge(halves[::-1], prior=base)
    assert merged.score(NEW, y_new) > max(half.score(NEW, y_new) for half in halves)
    np.testing.assert_allclose(
        merged.decision_function(NEW), turned.decision_function(NEW), rtol=0.05, atol=0.05
    )
