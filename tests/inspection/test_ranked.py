"""What is among the first rows, in tenths and above thresholds, against plain readings of it."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, log_loss

from cbrank.inspection.evaluation import evaluate
from cbrank.inspection.groups import Grouping
from cbrank.inspection.ranked import Ranked
from cbrank.metrics import auc_interval, optimal_operating_point


@st.composite
def scored(draw, most=40, levels=6):
    """Return labels of both classes, scores with many ties and probabilities that rise with them."""
    n = draw(st.integers(2, most))
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)), np.int8)
    assume(0 < y.sum() < n)
    scores = np.array(draw(st.lists(st.integers(-levels, levels), min_size=n, max_size=n)), float)
    return y, scores, 1 / (1 + np.exp(1.5 - scores / 2))


def orders(scores):
    """Return all orders of rows, the highest scores first."""
    return [
        order
        for order in itertools.permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]


def among(values, scores, rows):
    """Return the mean sum of values of the first rows, by how likely each row is one of them."""
    total = 0.0
    for value, score in zip(values.tolist(), scores.tolist(), strict=True):
        above, equal = (scores > score).sum(), (scores == score).sum()
        total += value * min(1.0, max(0.0, (rows - above) / equal))
    return total


@given(scored(most=6, levels=1))
def test_the_first_rows_are_the_mean_over_all_orders_of_equal_scores(rows):
    y, scores, p = rows
    ranked, all_orders = Ranked.of(*rows), orders(scores)
    for count in range(1, len(y) + 1):
        means = [np.mean([v[list(order[:count])].sum() for order in all_orders]) for v in (y, p)]
        assert ranked.top(count).positives == pytest.approx(means[0])
        assert (among(y, scores, count), among(p, scores, count)) == pytest.approx(tuple(means))


@given(scored(), st.integers(1, 50), st.fractions(Fraction(1, 1000), 1))
def test_tops_are_those_of_a_plain_reading(rows, count, share):
    y, scores, _ = rows
    n, positives = len(y), y.sum()
    found = {top.name: top for top in Ranked.of(*rows).tops([count, share])}
    asked = {
        f"{count:,} rows": min(count, n),
        f"{float(100 * share):g}%": max(1, nearest(share, n)),
    }
    for part in (0.001, 0.01, 0.05, 0.1):
        if part * n >= 1:
            asked[f"{100 * part:g}%"] = nearest(Fraction(str(part)), n)
    assert set(found) == set(asked)
    assert [top.rows for top in found.values()] == sorted(asked.values())
    for name, k in asked.items():
        hits = among(y, scores, k)
        plain = (k, hits, hits / k, hits / positives, hits / k / (positives / n))
        assert tuple(found[name])[1:] == pytest.approx(plain)


def nearest(share, n):
    return math.floor(share * n + Fraction(1, 2))


@given(scored(most=60))
def test_deciles_and_calibration_are_those_of_a_plain_reading(rows):
    y, scores, p = rows
    n = len(y)
    found = evaluate(*rows)
    ends = sorted({0, *(nearest(Fraction(at, 10), n) for at in range(1, 11))})
    assert len(found.deciles) == len(ends) - 1
    error = 0.0
    for part, start, end in zip(found.deciles, ends, ends[1:], strict=False):
        hits = among(y, scores, end) - among(y, scores, start)
        chance = (among(p, scores, end) - among(p, scores, start)) / (end - start)
        share = hits / (end - start)
        plain = (hits, share, share / y.mean(), among(y, scores, end) / y.sum(), chance)
        assert (part.first, part.last, part.rows) == (start + 1, end, end - start)
        assert tuple(part)[2:] == pytest.approx(plain, abs=1e-12)
        error += (end - start) / n * abs(share - chance)
    assert found.deciles[-1].recall == 1.0
    assert found.calibration.error == pytest.approx(error, abs=1e-12)
    assert found.calibration.log_loss == pytest.approx(log_loss(y, p))
    assert found.calibration.base == pytest.approx(log_loss(y, np.full(n, y.mean())))
    assert found.calibration.mean == pytest.approx(p.mean())


@given(scored())
def test_average_precision_is_scikit_learn_s_and_the_plain_one(rows):
    y, scores, _ = rows
    found = evaluate(*rows).average_precision
    precisions = [y[scores >= score].mean() for score in scores[y == 1]]
    assert found == pytest.approx(np.mean(precisions))
    assert found == pytest.approx(average_precision_score(y, scores))


@given(scored(), st.sampled_from([0.01, 0.1, 0.25, 1 / 3, 0.5, 0.6, 0.75, 0.9, 1.0]))
def test_thresholds_are_the_best_of_all(rows, wanted):
    y, scores, _ = rows
    points = [(y[scores >= t].mean(), (scores[y == 1] >= t).mean(), t) for t in np.unique(scores)]
    ranked = Ranked.of(*rows)
    assert ranked.most_precise() == max(precision for precision, _, _ in points)
    enough = [point for point in points if point[0] >= wanted]
    at_precision = ranked.at_precision(wanted)
    if not enough:
        assert at_precision is None
    else:
        most = max(recall for _, recall, _ in enough)
        best = max((point for point in enough if point[1] == most), key=lambda point: point[2])
        assert (at_precision.precision, at_precision.tpr, at_precision.threshold) == best
    best = max((p, recall, t) for p, recall, t in points if recall >= wanted)
    at_recall = ranked.at_recall(wanted)
    assert (at_recall.precision, at_recall.tpr, at_recall.threshold) == best


@given(scored())
def test_what_thresholds_decide_is_counted_plainly(rows):
    y, scores, _ = rows
    found = evaluate(*rows)
    best = optimal_operating_point(y, scores, pos_label=1)
    for point, called in ((found.own, scores > 0), (found.best, scores >= best.threshold)):
        assert point.rows == called.sum()
        assert point.accuracy == (called == (y == 1)).mean()
        assert (point.fpr, point.tpr) == (called[y == 0].mean(), called[y == 1].mean())
        assert (
            math.isnan(point.precision) if not called.any() else point.precision == y[called].mean()
        )
    assert found.best[0] == best.threshold


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=9), st.integers(0, 8))
def test_thresholds_are_written_so_that_they_call_the_same_rows(scores, at):
    scores = np.array([*scores, *np.nextafter(scores, np.inf)])
    y = np.arange(len(scores), dtype=np.int8) % 2
    threshold = scores[at % len(scores)]
    text = Ranked.of(y, scores, np.full(len(y), 0.5)).written(threshold)
    assert ((scores >= float(text)) == (scores >= threshold)).all()


def test_probabilities_of_nought_and_one_cost_much_but_not_all():
    y, p = np.array([0, 1, 1, 0]), np.array([1.0, 0.0, 1.0, 0.0])
    found = evaluate(y, np.arange(4.0), p).calibration
    assert found.log_loss == pytest.approx(log_loss(y, p))
    assert 15 < found.log_loss < 20


@given(scored(), st.integers(1, 4), st.data())
def test_groups_are_measured_one_by_one_and_the_rest_is_pooled(rows, most, data):
    y, scores, _ = rows
    cities = st.lists(st.sampled_from(["", "Bonn", "Oslo", "Rome", "Lima", "Kyiv"]),
                      min_size=len(y), max_size=len(y))  # fmt: skip
    cells = data.draw(cities)
    grouping = Grouping("city")
    for start in range(0, len(y), 7):
        grouping.add(cells[start : start + 7])
    found = grouping.groups(y, scores, most)
    names = sorted(set(cells), key=lambda name: (-cells.count(name), name))
    shown = names if len(names) <= most + 1 else names[:most]
    assert [group.name for group in found if group.values == 1] == shown
    assert sum(group.rows for group in found) == len(y)
    for group in found:
        inside = np.array(
            [(c == group.name) if group.values == 1 else c not in shown for c in cells]
        )
        assert (group.rows, group.positives) == (inside.sum(), y[inside].sum())
        both = 0 < group.positives < group.rows
        expected = auc_interval(y[inside], scores[inside], pos_label=1) if both else None
        np.testing.assert_equal(group.auc, expected)
    if len(shown) < len(names):
        assert found[-1].values == len(names) - len(shown)


def test_values_beyond_those_told_apart_are_in_the_rest(monkeypatch):
    monkeypatch.setattr("cbrank.inspection.groups._MOST_VALUES", 3)
    grouping = Grouping("id")
    grouping.add(["a", "b", "c", "d", "d", "e"])
    y, scores = np.array([0, 1, 0, 1, 0, 1]), np.arange(6.0)
    found = grouping.groups(y, scores, most=1)
    assert [(group.name, group.values, group.rows) for group in found] == [
        ("a", 1, 1), ("", 0, 5),
    ]  # fmt: skip


def test_a_million_rows_take_a_second_or_two():
    random = np.random.RandomState(0)
    y = (random.rand(1_000_000) < 0.002).astype(np.int8)
    scores = random.standard_normal(1_000_000) + 2 * y
    found = evaluate(y, scores, np.full(len(y), 0.002), recalls=[0.5])
    assert found.tops[0].rows == 1000
    assert found.tops[0].positives == y[np.argsort(-scores)[:1000]].sum()
