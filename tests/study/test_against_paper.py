"""How far figures are from the paper's, by worked examples."""

import runpy
from math import isnan, sqrt
from pathlib import Path

import pytest
from made_up_study import SETS, result, study, write_study

from cbrank.study.report.against_paper import (
    Gap,
    agreement,
    agreement_table,
    comparable,
    far_table,
    gaps,
    z_table,
)
from cbrank.study.report.published import TABLES
from cbrank.study.report.scores import Score, mean_scores
from cbrank.study.report.study import read_study

SCRIPT = Path(__file__).parents[2] / "docs/measure_agreement.py"


def test_z_by_hand():
    # s^2/n: 0.0004 / 10 and 0.0009 / 5, that is 0.00004 and 0.00018, whose root is 0.01483.
    gap = Gap("glass", "OAM_seq", Score(0.83, 0.02, 10), Score(0.8, 0.03, 5))
    assert gap.z == pytest.approx(0.03 / 0.01483, rel=1e-3)
    assert gap.is_far
    assert gap.difference == 0.03
    assert gap.chance == pytest.approx(0.9332, abs=1e-4)  # Student's t, 13 degrees of freedom


def test_what_rounding_takes_away_is_no_difference():
    gap = Gap("cod-rna", "CBR_FIFO", Score(0.98447, 0.0002, 10), Score(0.984, 0.0, 10))
    assert not gap.is_far
    assert gap.z == pytest.approx(0.00047 / sqrt(0.0002**2 / 10 + 0.001**2 / 12))


def test_a_single_run_has_no_standard_error(tmp_path):
    found = read_study(write_study(tmp_path, [result("glass", "unit", "OPAUC", 0)]))
    (gap,) = gaps(mean_scores(found, "benchmark", "unit", "auc"), TABLES[0]).values()
    assert isnan(gap.z)
    assert not gap.is_far
    assert comparable(found) == []
    assert agreement(found) == ""
    assert agreement_table(found).rows == z_table(found, TABLES[0]).rows == ()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Shift figures of known cells far up and far down; all others are 0.004 too high."""
    shifts = {("glass", "OPAUC"): 0.4, ("heart", "CBR_RS"): -0.3, ("heart", "AdaOAM"): -0.3}
    lines = study(scalings=("unit",), extras=("SCW",))
    for line in lines:
        line["auc"] += shifts.get((line["dataset"], line["method"]), 0)
    return write_study(tmp_path_factory.mktemp("agreement"), lines)


def test_the_share_of_agreement(folder):
    rows = {
        row.name: [c.text for c in row.cells] for row in agreement_table(read_study(folder)).rows
    }
    assert list(rows) == ["Table 3", "Table 4", "Table 5", "Table 6", "Tables 3 and 4"]
    # three benchmark sets times six methods; of the two text sets, one is a sample
    assert rows["Table 3"] == ["18", "15", "83 %", "1", "2", "93 %"]
    assert rows["Table 4"][:5] == ["18", "18", "100 %", "0", "0"]
    assert rows["Table 5"][:2] == ["4", "4"]
    assert rows["Tables 3 and 4"][:5] == ["36", "33", "92 %", "1", "2"]
    assert agreement(read_study(folder)) == (
        "Of 36 figures of Tables 3 and 4 that can be compared, 33 (92 %) lie within two standard "
        "errors of the paper's, where chance alone would give 93 %; 1 lie above and 2 below."
    )


def test_z_scores_by_set_and_method(folder):
    table = z_table(read_study(folder), TABLES[0])
    assert table.columns == ("CBR_RS", "CBR_FIFO", "Uni-Exp", "OPAUC", "OAM_seq", "AdaOAM", "Agree")
    rows = {row.name: [cell.text for cell in row.cells] for row in (*table.rows, *table.foot)}
    assert list(rows) == ["glass", "german", "heart", "Agree"]
    # ours 0.798 + 0.4 + 0.004 with a deviation of sqrt(2) / 100 over 2 runs; paper 0.798, 0.061 over 10
    z = 0.404 / sqrt(0.0002 / 2 + 0.061**2 / 10 + 1e-6 / 12)
    assert rows["glass"][3] == f"+{z:.1f}‡"
    assert rows["heart"][0].startswith("−") and rows["heart"][0].endswith("‡")  # noqa: PT018, RUF001
    assert [rows[name][-1] for name in rows] == ["5 of 6", "6 of 6", "4 of 6", "15 of 18"]
    assert rows["Agree"][:6] == ["2 of 3", "3 of 3", "3 of 3", "2 of 3", "3 of 3", "2 of 3"]


def test_samples_are_shown_and_not_counted(folder):
    table = z_table(read_study(folder), TABLES[2])
    assert [row.name for row in table.rows] == ["farm-ads", "sector †"]
    assert table.foot[0].cells[-1].text == "4 of 4"
    assert "Only a sample" in table.note


def test_what_lies_beyond_is_listed(folder):
    rows = far_table(read_study(folder)).rows
    assert [row.name for row in rows] == ["heart, CBR_RS", "glass, OPAUC", "heart, AdaOAM"]
    assert [cell.text for cell in rows[1].cells][:4] == [
        "3",
        "1.202 ± 0.014",
        "0.798 ± 0.061",
        "+0.404",
    ]


def test_studies_of_earlier_versions_can_be_measured(folder, tmp_path, monkeypatch, capsys):
    lines = (folder / "results.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) > len(SETS)
    older = [",".join(line.split(",")[:8]) + ",ok" for line in lines[1:]]
    head = ",".join([*lines[0].split(",")[:8], "status"])
    (tmp_path / "results.csv").write_text("\n".join([head, *older]) + "\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", [str(SCRIPT), str(folder), str(tmp_path)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    told = capsys.readouterr().out
    assert told.count("Tables 3 and 4") == 2
    assert told.splitlines()[0] == str(folder)
    assert "33   92 %" in told
