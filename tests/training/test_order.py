"""What is said of the order of rows, and what is not."""

from types import SimpleNamespace

import numpy as np
import pytest

from cbrank.datasets import load
from cbrank.training.order import LabelOrder, fall_in_words


def order_of(y, chunk=8192):
    order = LabelOrder()
    for begin in range(0, len(y), chunk):
        order.add(np.asarray(y[begin : begin + chunk], np.int64))
    return order


def runs(lengths, first=1):
    return np.repeat((np.arange(len(lengths)) + first) % 2, lengths)


# Labels -------------------------------------------------------------------------------------------


def test_the_counts_are_what_they_say_however_the_rows_are_cut():
    y = (np.random.default_rng(0).random(300) < 0.3).astype(np.int64)
    order = order_of(y)
    places, others = np.flatnonzero(y), np.flatnonzero(y == 0)
    assert (order.positives, order.negatives) == (y.sum(), 300 - y.sum())
    assert order.positive_first == (places[:, None] < others).sum()
    changes = np.count_nonzero(np.diff(y))
    assert order.positive_blocks + order.negative_blocks == changes + 1
    for chunk in (1, 2, 7, 299):
        assert order_of(y, chunk) == order
    assert LabelOrder.from_json(order.to_json()) == order


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        ([151, 3012], "all 151 positive rows come before row 152, the first negative one"),
        ([0, 3012, 151], "all 3,012 negative rows come before row 3,013, the first positive one"),
        ([17, 17], "all 17 positive rows come before row 18, the first negative one"),
        ([9, 1000], "all 9 positive rows come before row 10, the first negative one"),
        (
            [0, 3713, 2055, 2525],
            "all 2,055 positive rows stand in one block, with no other rows between them",
        ),
        (
            [100, 3000, 200],
            "all 3,000 negative rows stand in one block, with no other rows between them",
        ),
    ],
)
def test_sorted_rows_are_told(lengths, words):
    assert order_of(runs(lengths)).in_words() == words


def test_rows_all_but_sorted_are_told():
    y = runs([500, 2, 300, 1, 10, 3000, 1, 1500])
    assert order_of(y).in_words() == (
        "of a positive and a negative row, the positive one comes first in 99.9% of all pairs"
    )
    assert order_of(y[::-1]).in_words() == (
        "of a positive and a negative row, the negative one comes first in 99.9% of all pairs"
    )


def test_files_that_are_sorted_one_by_one_are_told():
    y = runs([100, 900] * 5)
    assert order_of(y).in_words() is None
    assert order_of(y).in_words(files=5) == (
        "all 500 positive rows stand in 5 blocks, with no other rows between them"
    )


@pytest.mark.parametrize(
    "y",
    [
        [],
        [1],
        [1, 0],
        [1, 1, 1, 1, 0, 0, 0, 0],
        [1] * 500,
        [0] * 5000 + [1],
        [0] * 5000 + [1] * 2,
        runs([50] * 40),
        runs([500, 700, 200, 900, 3000, 100, 800, 400]),
    ],
    ids=len,
)
def test_little_evidence_and_labels_in_runs_are_not(y):
    assert order_of(np.array(y, np.int64)).in_words() is None


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("rows", [5, 20, 34, 100, 3000])
def test_rows_in_no_order_are_never_called_sorted(rows, share):
    rng = np.random.default_rng(rows)
    said = [order_of((rng.random(rows) < share) + 0).in_words() for _ in range(300)]
    assert said == [None] * 300


def test_a_share_of_positives_that_rises_over_time_is_not_sorted():
    rng = np.random.default_rng(0)
    assert order_of((rng.random(20_000) < np.linspace(0, 1, 20_000)) + 0).in_words() is None


def test_german_is_in_no_order():
    y = (load("german")[1] == load("german")[1].max()).astype(np.int64)
    assert order_of(y).in_words() is None
    assert order_of(np.sort(y)).in_words() is not None


@pytest.mark.parametrize(
    "changes",
    [{"positives": -1}, {"last": 2}, {"last": 0.5}, {"positive_first": 10}, {"more": 1},
     {"negative_blocks": 4}, {"positives": 2**63, "positive_blocks": 1}, {"negatives": True}],
)  # fmt: skip
def test_counts_that_make_no_sense_are_refused(changes):
    facts = order_of(np.array([1, 0, 1, 0, 0])).to_json()
    with pytest.raises(ValueError, match="order of labels makes no sense"):
        LabelOrder.from_json(facts | changes)


# The AUC ------------------------------------------------------------------------------------------


def ranker(overall, recent, half=0.01, recent_half=0.03, rows=10_000):
    return SimpleNamespace(
        progressive_auc_=overall,
        progressive_auc_interval_=(overall - half, overall + half),
        recent_auc_=recent,
        recent_auc_interval_=(recent - recent_half, recent + recent_half),
        n_seen_=np.array([rows // 2, rows // 2]),
    )


def test_last_rows_that_rank_worse_are_told():
    assert fall_in_words(ranker(0.9, 0.7)) == (
        "the last 1,000 rows or so were ranked with an AUC of 0.700, all rows with 0.900"
    )
    assert fall_in_words(ranker(0.9, 0.85)) is not None


@pytest.mark.parametrize(
    "measured",
    [
        ranker(0.9, 0.9),
        ranker(0.9, 0.95),  # a model that still learns
        ranker(0.9, 0.86),
        ranker(0.9, 0.85, recent_half=0.05),
        ranker(0.9, 0.7, half=0.2),
        ranker(0.999, 0.985, half=0.0001, recent_half=0.0001),  # too little to matter
        ranker(0.9, 0.7, rows=1900),
        ranker(float("nan"), 0.7),
        ranker(0.9, float("nan")),
        ranker(0.9, 0.7, half=float("nan")),
        ranker(0.9, 0.7, recent_half=float("nan")),
    ],
)
def test_chance_and_what_nobody_knows_are_not(measured):
    assert fall_in_words(measured) is None
