"""The measures against brute force, against scikit-learn and against numbers worked by hand."""

import copy
import math
import os
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, roc_auc_score, roc_curve

from cbrank.metrics import (
    OperatingPoint,
    ProgressiveAUC,
    accuracy_at_operating_point,
    optimal_operating_point,
)
from cbrank.metrics.roc import auc_of

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"

few_scores = st.sampled_from([-2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0])
scores = few_scores | st.floats(-1e6, 1e6)
stream_scores = scores | st.sampled_from([-math.inf, math.inf])
costs = st.sampled_from([0.1, 0.3, 0.5, 1, 2, 3]) | st.floats(1e-3, 1e3)
priors = st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.9]) | st.floats(1e-3, 1 - 1e-3)


@st.composite
def two_classes(draw):
    """Scored rows with whole weights, at least one row of each class."""
    row = st.tuples(st.integers(0, 1), scores, st.integers(1, 4))
    rows = draw(st.lists(row, max_size=30))
    ends = [(label, draw(scores), draw(st.integers(1, 4))) for label in (0, 1)]
    return [list(column) for column in zip(*rows, *ends, strict=True)]


def brute_auc(labels, values):
    """Half-count of ties over all pairs of a positive and a negative."""
    pairs = [
        (p, n)
        for y, p in zip(labels, values, strict=True)
        for z, n in zip(labels, values, strict=True)
        if y == 1 and z == 0
    ]
    if not pairs:
        return math.nan
    return sum(1.0 if p > n else 0.5 if p == n else 0.0 for p, n in pairs) / len(pairs)


def brute_point(labels, values, weights, cost_fp, cost_fn, prior):
    """perfcurve's FPR - TPR / S at every threshold, in fractions."""
    rows = list(zip(labels, values, weights, strict=True))
    negatives = sum(w for y, _, w in rows if y == 0)
    positives = sum(w for y, _, w in rows if y == 1)
    odds = Fraction(negatives, positives) if prior is None else 1 / Fraction(str(prior)) - 1
    slope = Fraction(str(cost_fp)) / Fraction(str(cost_fn)) * odds
    points = []
    for threshold in {math.inf, *values}:
        fpr = Fraction(sum(w for y, s, w in rows if y == 0 and s >= threshold), negatives)
        tpr = Fraction(sum(w for y, s, w in rows if y == 1 and s >= threshold), positives)
        points.append((fpr - tpr / slope, fpr, tpr, threshold))
    _, fpr, tpr, threshold = min(points, key=lambda point: point[:2])
    return OperatingPoint(threshold, float(fpr), float(tpr))


class TestOperatingPoint:
    labels = (1, 1, 0, 1, 0, 0, 1, 0, 0, 0)
    values = (9, 8, 7, 6, 5, 4, 3, 2, 1, 0)

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            # P = 4, N = 6: S = 1.5; FPR - TPR / 1.5 is -1/3 at 8 and, tied, at 6.
            ({}, (8, 0, 0.5)),
            # S = 0.75: 8 gives -2/3, 6 gives 1/6 - 1, 3 gives 1/2 - 4/3, tied with 6.
            ({"cost_fn": 2}, (6, 1 / 6, 0.75)),
            ({"cost_fp": 1, "cost_fn": 3}, (3, 0.5, 1)),
            ({"cost_fp": 100}, (8, 0, 0.5)),
            ({"prior": 0.4}, (8, 0, 0.5)),
            # S = 1: 8 gives -1/2, 6 gives 1/6 - 3/4, 3 gives 1/2 - 1.
            ({"prior": 0.5}, (6, 1 / 6, 0.75)),
            # S = 1/9: 3 gives 1/2 - 9.
            ({"prior": 0.9}, (3, 0.5, 1)),
            # The other class is positive, the scores rank it backwards: all or nothing.
            # S = 2/3: reject-all gives 0, accept-all 1 - 3/2.
            ({"pos_label": 0}, (0, 1, 1)),
        ],
    )
    def test_worked_by_hand(self, options, expected):
        point = optimal_operating_point(self.labels, self.values, **options)
        assert point == pytest.approx(expected)

    def test_fields(self):
        point = optimal_operating_point(self.labels, self.values)
        assert point == (point.threshold, point.fpr, point.tpr)
        assert all(type(number) is float for number in point)

    @given(two_classes(), costs, costs, st.none() | priors)
    def test_brute_force(self, rows, cost_fp, cost_fn, prior):
        labels, values, weights = rows
        options = {"cost_fp": cost_fp, "cost_fn": cost_fn, "prior": prior}
        point = optimal_operating_point(labels, values, sample_weight=weights, **options)
        assert point == brute_point(labels, values, weights, cost_fp, cost_fn, prior)

    @given(two_classes())
    def test_weights_are_repetitions(self, rows):
        labels, values, weights = rows
        repeated = optimal_operating_point(np.repeat(labels, weights), np.repeat(values, weights))
        assert optimal_operating_point(labels, values, sample_weight=weights) == repeated

    @given(two_classes(), costs)
    def test_the_prior_of_the_rows_changes_nothing(self, rows, cost_fp):
        labels, values, _ = rows
        labels, values = [*labels, *(1 - y for y in labels)], [*values, *reversed(values)]
        point = optimal_operating_point(labels, values, cost_fp=cost_fp, prior=0.5)
        assert point == optimal_operating_point(labels, values, cost_fp=cost_fp)

    def test_lies_on_the_roc_curve_of_sklearn(self):
        rng = np.random.default_rng(0)
        labels = rng.integers(0, 2, 20_000)
        values = np.round(labels + rng.normal(size=labels.size), 2)
        point = optimal_operating_point(labels, values)
        fpr, tpr, thresholds = roc_curve(labels, values, drop_intermediate=False)
        best = np.argmin(fpr - tpr * np.mean(labels) / np.mean(1 - labels))
        assert point == pytest.approx((thresholds[best], fpr[best], tpr[best]))

    @pytest.mark.parametrize(("n_positive", "threshold"), [(1, math.inf), (2, math.inf), (3, 7.0)])
    def test_equal_scores_leave_all_or_nothing(self, n_positive, threshold):
        labels = [1] * n_positive + [0] * (4 - n_positive)
        point = optimal_operating_point(labels, [7.0] * 4)
        share = float(threshold == 7)
        assert point == (threshold, share, share)

    def test_worst_ranking_rejects_all(self):
        assert optimal_operating_point([1, 0, 0], [1, 2, 3]) == (math.inf, 0, 0)

    @pytest.mark.parametrize(("cost_fp", "cost_fn", "n_negative"), [(0.1, 0.3, 3), (1, 49, 49)])
    def test_ties_are_not_rounded_away(self, cost_fp, cost_fn, n_negative):
        # In floats 0.1 * 3 > 0.3 and 1 / 49 * 49 < 1.
        labels = [1] + [0] * n_negative
        point = optimal_operating_point(
            labels, [1.0] * len(labels), cost_fp=cost_fp, cost_fn=cost_fn
        )
        assert point.threshold == math.inf

    @pytest.mark.parametrize(("cost_fp", "threshold"), [(1e300, 3), (1e-300, 1)])
    def test_costs_far_apart(self, cost_fp, threshold):
        point = optimal_operating_point(
            [1, 0, 1, 0], [3, 2, 1, 0], cost_fp=cost_fp, cost_fn=1 / cost_fp
        )
        assert point.threshold == threshold

    def test_scores_far_apart(self):
        assert optimal_operating_point([1, 0], [1e308, -1e308]) == (1e308, 0, 1)

    def test_rows_of_no_weight_give_no_threshold(self):
        for weights, threshold in (([1, 0, 1], 3), ([0, 1, 1], 2)):
            point = optimal_operating_point([1, 1, 0], [3, 2, 1], sample_weight=weights)
            assert point == (threshold, 0, 1)

    @pytest.mark.parametrize(
        ("labels", "pos_label"),
        [
            (["ham", "spam", "spam"], None),
            (["spam", "ham", "ham"], "ham"),
            (np.array(["ham", "spam", "spam"], dtype=object), "spam"),
            ([False, True, True], None),
            ([-1, 1, 1], 1),
            ([1.0, 2.0, 2.0], None),
            ([2, 1, 1], 1),
            (pd.Series(["a", "b", "b"], dtype="category"), None),
            (pl.Series(["a", "b", "b"]), None),
        ],
    )
    def test_any_two_labels(self, labels, pos_label):
        point = optimal_operating_point(labels, [0.1, 0.2, 0.3], pos_label=pos_label)
        assert point == (0.2, 0, 1)


class TestAUC:
    @given(two_classes())
    def test_is_the_share_of_pairs_to_the_last_bit(self, rows):
        labels, values, weights = map(np.array, rows)
        pairs = brute_auc(np.repeat(labels, weights), np.repeat(values, weights))
        assert auc_of(labels == 1, values, weights.astype(float)) == pairs

    @given(two_classes(), st.integers(-300, 300))
    def test_is_scikit_learns_whatever_the_size_of_the_weights(self, rows, exponent):
        labels, values, weights = map(np.array, rows)
        expected = pytest.approx(roc_auc_score(labels, values, sample_weight=weights))
        assert auc_of(labels == 1, values, weights * 10.0**exponent) == expected


class TestAccuracy:
    @given(two_classes())
    def test_is_the_best_of_any_threshold(self, rows):
        labels, values, weights = rows
        best = max(
            accuracy_score(labels, np.array(values) >= threshold, sample_weight=weights)
            for threshold in [*values, math.inf]
        )
        assert accuracy_at_operating_point(labels, values, sample_weight=weights) == pytest.approx(
            best
        )

    @given(two_classes(), costs, costs, st.none() | priors)
    def test_is_that_of_the_point(self, rows, cost_fp, cost_fn, prior):
        labels, values, _ = rows
        options = {"cost_fp": cost_fp, "cost_fn": cost_fn, "prior": prior}
        _, fpr, tpr = optimal_operating_point(labels, values, **options)
        share = np.mean(labels) if prior is None else prior
        accuracy = accuracy_at_operating_point(labels, values, **options)
        assert accuracy == pytest.approx(tpr * share + (1 - fpr) * (1 - share))

    def test_worked_by_hand(self):
        labels, values = TestOperatingPoint.labels, TestOperatingPoint.values
        assert accuracy_at_operating_point(labels, values) == 0.8
        assert accuracy_at_operating_point(labels, values, cost_fn=3) == 0.7
        assert accuracy_at_operating_point(labels, values, prior=0.9) == pytest.approx(0.95)
        assert accuracy_at_operating_point(labels, values, pos_label=0) == 0.6


@pytest.mark.parametrize("measure", [optimal_operating_point, accuracy_at_operating_point])
@pytest.mark.parametrize(
    ("labels", "values", "options", "message"),
    [
        ([0, 1], [1, 2, 3], {}, r"inconsistent numbers of samples: \[2, 3\]"),
        ([0, 1], [1, 2], {"sample_weight": [1]}, r"inconsistent numbers of samples: \[2, 1\]"),
        ([0, 1], [[1, 2], [3, 4]], {}, "1d array"),
        ([], [], {}, "both classes"),
        ([1, 1], [1, 2], {}, r"both classes; all of it is \[1\]"),
        ([0, 1, 2], [1, 2, 3], {}, "must be binary; it is multiclass"),
        ([0.5, 1.5], [1, 2], {}, "must be binary; it is continuous"),
        ([0, math.nan], [1, 2], {}, "y_true must not be NaN; row 1"),
        (["a", None], [1, 2], {}, "numbers or strings; row 1 is None"),
        ([0, 1], [1, 2], {"pos_label": 2}, "pos_label=2 is not a label of y_true"),
        ([0, 1], [1, 2], {"pos_label": "a"}, "pos_label='a' is not a label of y_true"),
        ([0, 1, 1], [1, 2, math.nan], {}, "finite; row 2 is nan"),
        ([0, 1, 1], [1, -math.inf, 2], {}, "finite; row 1 is -inf"),
        ([0, 1], [1, 2], {"cost_fp": 0}, "cost_fp must be above 0"),
        ([0, 1], [1, 2], {"cost_fn": -1}, "cost_fn must be above 0"),
        ([0, 1], [1, 2], {"cost_fn": math.nan}, "cost_fn must be above 0"),
        ([0, 1], [1, 2], {"cost_fp": math.inf}, "cost_fp must be above 0"),
        ([0, 1], [1, 2], {"prior": 0}, "prior must be above 0 and below 1"),
        ([0, 1], [1, 2], {"prior": 1.0}, "prior must be above 0 and below 1"),
        ([0, 1], [1, 2], {"sample_weight": [1, -1]}, "0 or more; row 1 is -1"),
        ([0, 1], [1, 2], {"sample_weight": [math.inf, 1]}, "0 or more; row 0 is inf"),
        ([0, 1], [1, 2], {"sample_weight": [0, 1]}, "only one class"),
        (np.ma.array([0, 1], mask=[0, 1]), [1, 2], {}, "y_true is masked at row 1 "),
        ([0, 1], np.ma.array([1, 2], mask=[1, 0]), {}, "y_score is masked at row 0 "),
        (
            [0, 1],
            [1, 2],
            {"sample_weight": np.ma.array([1, 2], mask=[1, 0])},
            "sample_weight is masked at row 0 ",
        ),
    ],
)
def test_bad_input_is_named(measure, labels, values, options, message):
    with pytest.raises(ValueError, match=message):
        measure(labels, values, **options)


def streamed(labels, values, window):
    """The AUC after each row."""
    auc = ProgressiveAUC(window)
    return [auc.update(y, s).get() for y, s in zip(labels, values, strict=True)]


def depth(auc):
    """Nodes on the longest way from the root of the tree to a leaf."""
    *links, nil = auc._window.links[:, :2].tolist()
    level, levels = {nil[0]} - {len(links)}, 0
    while level:
        level = {child for node in level for child in links[node]} - {len(links)}
        levels += 1
    return levels


class TestProgressiveAUC:
    @settings(deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 1), stream_scores), max_size=40), st.integers(1, 12))
    def test_brute_force_after_every_row(self, rows, window):
        labels, values = [y for y, _ in rows], [s for _, s in rows]
        expected = [
            brute_auc(labels[max(0, n - window) : n], values[max(0, n - window) : n])
            for n in range(1, len(rows) + 1)
        ]
        assert streamed(labels, values, window) == pytest.approx(expected, abs=0, nan_ok=True)

    @settings(deadline=None)
    @given(
        st.lists(st.tuples(st.integers(0, 1), stream_scores), max_size=40),
        st.integers(1, 12),
        st.lists(st.integers(0, 40), max_size=4),
    )
    def test_chunks_change_nothing(self, rows, window, cuts):
        table = np.array(rows, dtype=float).reshape(-1, 2)
        whole = ProgressiveAUC(window).update(table[:, 0], table[:, 1])
        chunked = ProgressiveAUC(window)
        for chunk in np.split(table, sorted(cuts)):
            chunked.update(chunk[:, 0], chunk[:, 1])
        assert chunked.n_rows == whole.n_rows == min(window, len(rows))
        assert chunked.get() == pytest.approx(whole.get(), abs=0, nan_ok=True)

    @pytest.mark.parametrize("decimals", [0, 1, 12])
    @pytest.mark.parametrize("window", [1000, 777])
    def test_sklearn_over_a_long_stream(self, decimals, window):
        n_rows = 200_000 if COMPILED else 2_000
        rng = np.random.default_rng(decimals)
        labels = (rng.random(n_rows) < 0.1).astype(int)
        values = np.round(labels + rng.normal(size=n_rows), decimals)
        auc = ProgressiveAUC(window).update(labels, values)
        assert auc.n_rows == window
        assert auc.get() == pytest.approx(roc_auc_score(labels[-window:], values[-window:]), 1e-12)

    @pytest.mark.parametrize("order", ["rising", "falling", "equal", "saw"])
    def test_orders_that_trees_dislike(self, order):
        n_rows, window = (20_000, 5_000) if COMPILED else (400, 100)
        steps = np.arange(n_rows, dtype=float)
        orders = {"rising": steps, "falling": -steps, "equal": 0 * steps, "saw": steps % window}
        labels, values = np.random.default_rng(0).integers(0, 2, n_rows), orders[order]
        auc = ProgressiveAUC(window).update(labels, values)
        expected = roc_auc_score(labels[-window:], values[-window:])
        assert auc.get() == pytest.approx(expected, 1e-12)
        assert depth(auc) < 4 * math.log2(window)

    def test_ties_count_half(self):
        assert ProgressiveAUC().update([0, 1, 0, 1], [2.0] * 4).get() == 0.5
        assert ProgressiveAUC().update([0, 1], [0.0, -0.0]).get() == 0.5
        assert ProgressiveAUC().update([0, 1, 0], [math.inf, math.inf, -math.inf]).get() == 0.75

    def test_a_window_of_one_never_has_a_pair(self):
        assert all(math.isnan(auc) for auc in streamed([0, 1, 0], [1, 2, 3], window=1))

    def test_a_class_that_leaves_the_window(self):
        aucs = streamed([0, 1, 1, 1, 0], [1, 2, 3, 4, 3], window=3)
        assert aucs == pytest.approx([math.nan, 1, 1, math.nan, 0.75], nan_ok=True)

    def test_nothing_seen(self):
        auc = ProgressiveAUC()
        assert auc.n_rows == 0
        assert math.isnan(auc.get())
        assert math.isnan(auc.update([], []).get())

    @pytest.mark.parametrize(
        ("labels", "pos_label"),
        [
            (["ham", "spam", "ham"], "spam"),
            (np.array(["ham", "spam", "ham"], dtype=object), "spam"),
            (pd.Series(["ham", "spam", "ham"], index=[7, 8, 9]), "spam"),
            (pl.Series(["ham", "spam", "ham"]), "spam"),
            ([False, True, False], 1),
            ([-1.0, 1.0, -1.0], 1),
            ([[2], [5], [2]], 5),
        ],
    )
    def test_any_labels(self, labels, pos_label):
        auc = ProgressiveAUC(pos_label=pos_label).update(labels, [1, 2, 3])
        assert auc.get() == 0.5

    def test_scalars_of_any_kind(self):
        auc = ProgressiveAUC(pos_label="yes")
        auc.update("no", 1).update(np.str_("yes"), np.float32(2)).update("yes", np.array(0.5))
        assert auc.get() == 0.5

    def test_leaves_the_arrays_alone(self):
        labels, values = np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0])
        labels.flags.writeable = values.flags.writeable = False
        auc = ProgressiveAUC(2).update(labels[::-1], values[::-1])
        assert auc.get() == 1

    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda auc: pickle.loads(pickle.dumps(auc))])
    def test_copies_go_on_apart(self, copied):
        auc = ProgressiveAUC(4, pos_label=7).update([7, 0, 7, 0, 7], [1, 2, 3, 4, 5])
        twin = copied(auc)
        assert (repr(twin), twin.n_rows, twin.get()) == (repr(auc), auc.n_rows, auc.get())
        auc.update([0, 0], [9, 9])
        assert twin.get() == 0.75
        assert twin.update([0, 0], [9, 9]).get() == auc.get() == 1 / 3

    def test_repr(self):
        assert repr(ProgressiveAUC(10, "a")) == "ProgressiveAUC(window=10, pos_label='a')"

    @pytest.mark.parametrize(
        ("labels", "values", "message"),
        [
            ([1, 0, 1], [1.0, 2.0, math.nan], "y_score must not be NaN; row 2"),
            (1, math.nan, "y_score must not be NaN; row 0"),
            ([1, math.nan], [1.0, 2.0], "y_true must not be NaN; row 1"),
            (None, 1.0, "numbers or strings; row 0 is None"),
            (np.array([1, math.nan], dtype=object), [1.0, 2.0], "numbers or strings; row 1"),
            ([1, 0], [1.0], "y_true has 2 rows, y_score 1"),
            ([1, 0], [[1.0, 2.0], [3.0, 4.0]], "1d array"),
            (["a", "b"], [1.0, 2.0], r"y_true holds \['a'\], never pos_label=1"),
            ([1, 0], ["x", 2.0], "could not convert"),
        ],
    )
    def test_bad_rows_change_nothing(self, labels, values, message):
        auc = ProgressiveAUC(3).update([0, 1, 1], [1, 1, 2])
        with pytest.raises(ValueError, match=message):
            auc.update(labels, values)
        assert (auc.n_rows, auc.get()) == (3, 0.75)

    @pytest.mark.parametrize(("window", "error"), [(0, ValueError), (2.5, TypeError)])
    def test_bad_window(self, window, error):
        with pytest.raises(error, match="window"):
            ProgressiveAUC(window)


def test_import_leaves_numba_alone():
    code = "import sys, cbrank.metrics; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_huge_weights_do_not_overflow():
    y, scores = [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4]
    huge = optimal_operating_point(y, scores, sample_weight=[1e308] * 4)
    assert huge == optimal_operating_point(y, scores)
