"""The search for the paper's groupings (docs/measure_labels.py)."""

import numpy as np
import pytest

from cbrank.study.measures import measure
from cbrank.study.report.scores import Score
from docs import measure_labels
from docs.measure_labels import (
    Fit,
    Search,
    Subject,
    figures,
    groupings,
    most_common_share,
    paper,
    probabilities,
    registered,
    search,
    share_by_figures,
    share_of,
)

VEHICLE = Subject("vehicle")

pytestmark = pytest.mark.filterwarnings("ignore:.*diverged at row")


def made_up(subject, group, grid, rows, seed, run):
    """Figures that are the paper's for class 2 of vehicle, and off by so much for all others."""
    random = np.random.RandomState(1000 * seed + run)
    theirs = np.array([score.mean for score in paper(subject)])
    return theirs + (0.0 if group == (2,) else 0.03) + 0.005 * random.standard_normal(len(theirs))


@pytest.mark.parametrize(("name", "classes"), [("vehicle", 4), ("segment", 7), ("glass", 6)])
def test_all_groupings_are_there_once(name, classes):
    groups = groupings(Subject(name))
    everything = set(np.unique(np.concatenate(groups)).tolist())
    sides = {frozenset([frozenset(group), frozenset(everything - set(group))]) for group in groups}
    assert len(sides) == len(groups) == 2 ** (classes - 1) - 1
    assert all(share_of(Subject(name), group) <= 0.5 for group in groups)
    assert registered(Subject(name)) in groups


def test_the_accuracies_rule_out_single_classes_of_segment():
    """Of seven classes alike, one against the rest is right in six of seven rows for all alike."""
    segment = Subject("segment")
    assert 0.691 < most_common_share(segment) < 6 / 7
    assert share_of(segment, (1,)) == pytest.approx(1 / 7)


@pytest.mark.parametrize("share", [0.03, 0.2, 0.45])
def test_auc_and_accuracy_of_normal_scores_tell_the_share(monkeypatch, share):
    random = np.random.RandomState(0)
    y = np.arange(100_000) < share * 100_000
    scores = [random.standard_normal(len(y)) + apart * y for apart in (1.5, 2.5)]
    measures = np.array([measure(y.astype(int), each, 0.0)[:2] for each in scores])
    made = [Score(value, 0.01, 10) for value in measures.T.ravel()]
    monkeypatch.setattr(measure_labels, "paper", lambda subject: made)
    assert share_by_figures(VEHICLE) == pytest.approx(share, abs=0.02)


def test_a_group_and_all_other_classes_are_one_task():
    one, other = (figures(VEHICLE, group, (-4, 4), 400, 0, 0) for group in [(1,), (2, 3, 4)])
    assert one.shape == (12,)
    np.testing.assert_array_equal(one, other)


def test_figures_repeat_and_differ_by_run():
    first, again, other = (figures(VEHICLE, (1,), (0,), 300, 0, run) for run in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_the_nearest_grouping_is_found(capsys):
    found = search(VEHICLE, made_up)
    assert isinstance(found, Search)
    assert len(found.tried) == 7
    best, others = found.nearest[0], found.nearest[1:]
    assert (best.group, best.near()) == ((2,), 12)
    assert best.distance() < 0.005
    assert 0.025 < others[0].distance() < 0.035
    assert (1,) in [fit.group for fit in found.nearest]  # the registered one, near or not
    assert best.distance(0) != best.distance(1)


def test_probabilities_tell_clear_from_unclear():
    runs = np.array([made_up(VEHICLE, (2,), (), 0, 0, run) for run in range(20)])
    near, same, far = (Fit(VEHICLE, (each,), runs + gap) for each, gap in enumerate([0, 1e-5, 0.1]))
    assert probabilities([near, far])[0] > 0.999
    np.testing.assert_allclose(probabilities([near, same]), 0.5, atol=0.01)


def test_errors_that_all_methods_share_weigh_less_than_others():
    """Runs that are lucky for all methods alike make a common gap likely, and another not."""
    random = np.random.RandomState(0)
    luck = 0.05 * random.standard_normal((20, 1)) + 0.001 * random.standard_normal((20, 12))
    centred = luck - luck.mean(axis=0) + [score.mean for score in paper(VEHICLE)]
    common, other = np.full(12, 0.02), np.tile([0.02, -0.02], 6)
    fits = [Fit(VEHICLE, (each,), centred + gap) for each, gap in enumerate([common, other])]
    assert fits[0].distance() == pytest.approx(fits[1].distance())
    assert probabilities(fits)[0] > 0.9
