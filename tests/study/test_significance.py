"""Tests of methods over data sets, by worked examples."""

from itertools import combinations

import numpy as np
import pytest
from made_up_study import result, write_study

from cbrank.study.report.names import looks
from cbrank.study.report.rank_diagrams import diagram, verdict
from cbrank.study.report.scores import mean_scores, ranking
from cbrank.study.report.significance import (
    compare,
    critical_difference,
    holm,
    iman_davenport,
    joined,
)
from cbrank.study.report.study import read_study

METHODS = ("CBR_RS", "CBR_FIFO", "OPAUC", "AdaOAM")
SETS = ("glass", "ionosphere", "german", "svmguide3", "spambase", "covtype", "magic04", "heart")


@pytest.mark.parametrize(
    ("given", "corrected"),
    [
        # In order .01 .013 .014 .19 .35 .5 .63 .67 .75 .81, times 10, 9, ..., 1; then never less than before.
        (
            [0.01, 0.013, 0.014, 0.19, 0.35, 0.5, 0.63, 0.67, 0.75, 0.81],
            [0.1, 0.117, 0.117, 1, 1, 1, 1, 1, 1, 1],
        ),
        # In order .0001 .005 .01 .03 .04, times 5, 4, 3, 2, 1: the last is lifted to .06.
        ([0.03, 0.0001, 0.04, 0.01, 0.005], [0.06, 0.0005, 0.06, 0.03, 0.02]),
        ([0.02, 0.02, 0.02], [0.06, 0.06, 0.06]),
        ([0.3], [0.3]),
        ([], []),
    ],
)
def test_holm_by_hand(given, corrected):
    assert holm(given) == pytest.approx(corrected)


def test_holm_rejects_what_the_step_down_procedure_rejects():
    p_values = np.random.default_rng(0).beta(0.3, 3, size=(50, 8))
    for row in p_values:
        rejected = set()
        for step, place in enumerate(np.argsort(row)):
            if row[place] > 0.05 / (8 - step):
                break
            rejected.add(int(place))
        assert {place for place, p in enumerate(holm(row)) if p <= 0.05} == rejected


def test_iman_davenport_by_demsar():
    """Average ranks 3.143, 2.000, 2.893 and 1.964 on 14 data sets, page 15 of Demšar 2006."""
    ranks = np.array([3.143, 2.000, 2.893, 1.964])
    friedman = 12 * 14 / (4 * 5) * (np.sum(ranks**2) - 4 * 5**2 / 4)
    assert friedman == pytest.approx(9.28, abs=0.01)
    found = iman_davenport(friedman, methods=4, blocks=14)
    assert found.value == pytest.approx(3.69, abs=0.01)
    assert found.p < 0.05  # 3.69 is beyond 2.85, the critical value of F(3, 39)
    assert iman_davenport(5.0, 2, 5).p == 0  # all data sets say the same
    assert iman_davenport(0.0, 4, 14).p == 1


@pytest.mark.parametrize(("methods", "q"), [(2, 1.960), (4, 2.569), (6, 2.850), (10, 3.164)])
def test_critical_difference_by_demsar(methods, q):
    """The critical values of the Nemenyi test, table 5 of Demšar 2006."""
    expected = q * np.sqrt(methods * (methods + 1) / (6 * 14))
    assert critical_difference(methods, 14) == pytest.approx(expected, abs=0.002)


def test_joined_ranks_are_the_largest_groups_within_the_critical_difference():
    rng = np.random.default_rng(1)
    for _ in range(100):
        ranks = sorted(rng.uniform(1, 6, size=6).tolist())
        groups = joined(ranks, 1.5)
        together = {pair for first, end in groups for pair in combinations(range(first, end), 2)}
        near = {(a, b) for a, b in combinations(range(6), 2) if ranks[b] - ranks[a] < 1.5}
        assert together == near
        starts, ends = [a for a, _ in groups], [b for _, b in groups]
        assert starts == sorted(set(starts))
        assert ends == sorted(set(ends))
    assert joined([1.0, 2.5], 1.5) == []  # so far apart they differ


def compared(tmp_path, aucs):
    """Compare methods whose AUCs are given by data set."""
    lines = [
        result(dataset, "unit", method, 0, auc=auc)
        for dataset, row in zip(SETS, aucs, strict=False)
        for method, auc in zip(METHODS, row, strict=True)
    ]
    scores = mean_scores(read_study(write_study(tmp_path, lines)), "benchmark", "unit", "auc")
    return scores, compare(scores, ranking(scores, scores.methods))


def test_comparison(tmp_path):
    shifts = np.arange(8)[:, None] * [0.001, 0.002, 0.003, 0.004]
    _scores, outcome = compared(tmp_path, np.array([0.9, 0.8, 0.7, 0.6]) - shifts)
    # All eight data sets agree: chi2 = 8 * 3, the exact p of a pair 2 / 2^8, times six pairs.
    assert outcome.friedman.value == pytest.approx(24)
    assert outcome.iman_davenport.p == 0
    assert set(outcome.pairs.values()) == {6 * 2 / 2**8}
    assert outcome.beaten() == ["CBR_FIFO", "OPAUC", "AdaOAM"]
    assert outcome.critical_difference == pytest.approx(2.569 * np.sqrt(20 / 48), abs=0.002)
    assert outcome.groups() == [
        ["CBR_RS", "CBR_FIFO"],
        ["CBR_FIFO", "OPAUC"],
        ["OPAUC", "AdaOAM"],
    ]
    assert verdict(outcome) == (
        "Friedman over 8 data sets: χ² = 24.00, p < 0.001; Iman-Davenport: F = inf, p < 0.001. "
        "Nemenyi's critical difference is 1.66. CBR_RS is first and differs by Wilcoxon and Holm "
        "from CBR_FIFO, OPAUC and AdaOAM."
    )


def test_nothing_is_told_of_pairs_if_methods_do_not_differ(tmp_path):
    rows = [[0.9, 0.8, 0.7, 0.6], [0.6, 0.7, 0.8, 0.9]] * 2
    outcome = compared(tmp_path, rows)[1]
    assert outcome.friedman.p == outcome.iman_davenport.p == 1
    assert outcome.pairs == {}
    assert verdict(outcome).endswith("so no pair was tested.")
    same = compared(tmp_path / "same", [[0.9, 0.9, 0.9, 0.9]] * 4)[1]
    assert (same.friedman.value, same.friedman.p) == (0, 1)


def test_too_few_data_sets_cannot_tell_a_pair(tmp_path):
    outcome = compared(tmp_path, [[0.9, 0.8, 0.7, 0.6]] * 4)[1]
    assert outcome.differ
    assert not outcome.can_tell
    assert verdict(outcome).endswith("no single pair can be told apart after Holm.")


def test_the_diagram_has_every_method_and_the_critical_difference(tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    scores, outcome = compared(tmp_path, [[0.9, 0.8, 0.7, 0.6]] * 8)
    drawn = diagram(scores, METHODS, group="paper", looks=looks(METHODS), folder=tmp_path).picture
    assert drawn is not None
    for text in ("CBR_RS 1.00", "CBR_FIFO 2.00", "OPAUC 3.00", "AdaOAM 4.00", "CD 1.66"):
        assert text in drawn.svg
    assert drawn.svg.count("stroke-width: 2.5") == len(outcome.groups()) == 3
    assert (tmp_path / f"{drawn.key}.svg").exists()
