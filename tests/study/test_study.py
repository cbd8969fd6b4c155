"""The study as a whole: its plan, its files, and that nothing but the seed decides the numbers."""

import csv
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from commands import wait_for_lines
from sklearn.metrics import roc_auc_score

from cbrank import datasets, methods
from cbrank.study.curves import COLUMNS as CURVE_COLUMNS
from cbrank.study.results import COLUMNS, ResultsFile
from cbrank.study.runner import StudyRun
from cbrank.study.settings import Settings, StudyError, quick
from cbrank.study.splits import split
from cbrank.study.tasks import plan
from cbrank.workers import Workers

SETTINGS = Settings(exponents=(-6, 0), benchmark_rows=200)
TASKS = plan(["glass", "vehicle"], ["CBR_FIFO", "OPAUC", "Batch LR"], ["unit", "none"], runs=2)


def study_in(folder, tasks=TASKS, settings=SETTINGS, jobs=1, **options):
    study = StudyRun(folder, settings, **options)
    study.start(["cbrank", "reproduce"])
    assert len(list(study.run(study.results.remaining(tasks), Workers(jobs)))) <= len(tasks)
    list(study.draw(study.curves_of(tasks), Workers(jobs)))
    study.record.finish()
    return study


def table(folder):
    """The study's table without the seconds, and its curves."""
    lines = list(csv.DictReader((folder / "results.csv").read_text().splitlines()))
    for line in lines:
        if line["status"] == "ok":
            assert float(line.pop("tune_seconds")) > 0
            assert float(line.pop("fit_seconds")) > 0
    return lines, (folder / "curves.csv").read_text()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    study_in(folder)
    return folder


# The plan -------------------------------------------------------------------------------------


def test_the_full_plan_is_the_papers():
    tasks = plan(datasets.names(), methods.names("paper"))
    assert len(tasks) == 15 * 3 * 6 * 10 + 6 * 1 * 4 * 5
    assert {t.method for t in tasks if t.table == "high-dimensional"} == {
        "CBR-diag_FIFO", "Uni-Exp", "OPAUCr", "OAM_seq",
    }  # fmt: skip
    assert {t.scaling for t in tasks if t.table == "high-dimensional"} == {"unit"}
    assert {t.scaling for t in plan(["reuters"], ["Uni-Exp"], ["none"])} == {"none"}


def test_quick_settings():
    assert quick(3).exponents == (-10, -6, -2, 2, 6, 10)
    assert quick(3, "all").cut == "all"
    assert quick(3).rows("benchmark") == quick(3).rows("high-dimensional") == 1000
    assert Settings().exponents == tuple(range(-10, 11))
    assert Settings().grid("unit").bound is None
    assert Settings().grid("standard") == Settings().grid("none")
    assert Settings().grid("none").first == [-30, -25, -20, -15, *range(-10, 11), 15, 20, 25, 30]
    assert (Settings().rows("benchmark"), Settings().rows("high-dimensional")) == (8000, 2000)


def test_every_method_makes_an_unfitted_ranker_with_its_parameter():
    for method in methods.METHODS.values():
        ranker = method.new(0.25, 3)
        assert (getattr(ranker, method.tuned), ranker.random_state) == (0.25, 3)
        assert not getattr(ranker, "shuffle", False)


# The files ------------------------------------------------------------------------------------


def test_the_table_has_a_line_for_each_task_in_order(finished):
    header, *_ = (finished / "results.csv").read_text().splitlines()
    assert header == ",".join(COLUMNS)
    lines, _ = table(finished)
    found = [(x["dataset"], x["scaling"], x["method"], int(x["run"])) for x in lines]
    assert found == [task[1:] for task in TASKS]
    first = lines[0]
    assert (first["status"], first["error"], first["sample"]) == ("ok", "", "0")
    assert (int(first["train_rows"]), int(first["test_rows"])) == (172, 42)
    assert float(first["positives"]) == 70 / 214
    assert np.log2(float(first["parameter"])) in SETTINGS.exponents
    for line in lines:
        if line["scaling"] == "unit" and line["method"] != "Batch LR":
            assert (line["lowest"], line["highest"]) == ("-6", "0")
        else:
            assert int(line["lowest"]) < np.log2(float(line["parameter"])) < int(line["highest"])
    assert int(first["seed"]) == SETTINGS.run_seed("glass", 0)


def test_the_record_says_how_the_numbers_came_about(finished):
    record = json.loads((finished / "study.json").read_text())
    assert record["command"] == "cbrank reproduce"
    assert record["settings"] == SETTINGS.as_json()
    assert {"cbrank", "python", "numpy", "scipy", "scikit-learn", "numba"} <= set(
        record["versions"]
    )
    assert record["machine"]["cpus"] >= 1
    assert record["started"] <= record["finished"]
    assert record["seconds"] > 0


def test_curves_are_progressive_aucs(finished):
    lines = (finished / "curves.csv").read_text().splitlines()
    assert lines[0] == ",".join(CURVE_COLUMNS)
    curves = {}
    for line in csv.DictReader(lines):
        curve = curves.setdefault((line["dataset"], line["scaling"], line["method"]), [])
        curve.append((int(line["rows"]), float(line["auc"])))
    assert {method for _, _, method in curves} == {"CBR_FIFO", "OPAUC"}
    assert len(curves) == 8
    points = curves["vehicle", "unit", "CBR_FIFO"]
    ends, aucs = zip(*points, strict=True)
    assert list(ends) == [64, 96, 128, 160, 192]  # the first block has no weights to be ranked by
    rows = split("vehicle", 0, "unit", SETTINGS)
    ranker = methods.METHODS["CBR_FIFO"].new(StudyRun(finished, SETTINGS).parameter(TASKS[12]), 0)
    measured, weights = [], []
    for begin in range(0, 192, 32):
        block = slice(begin, begin + 32)
        if begin:
            measured.append(roc_auc_score(rows.y[block], ranker.decision_function(rows.X[block])))
            positive = rows.y[block].sum()
            weights.append(positive * (32 - positive))
        ranker.partial_fit(rows.X[block], rows.y[block], classes=[0, 1])
    for end, auc in enumerate(aucs, 1):
        assert auc == pytest.approx(np.average(measured[:end], weights=weights[:end]), abs=1e-9)


def test_a_torn_last_line_is_dropped_and_done_again(finished, tmp_path):
    for name in ("results.csv", "study.json"):
        (tmp_path / name).write_bytes((finished / name).read_bytes())
    path = tmp_path / "results.csv"
    path.write_bytes(path.read_bytes()[:-9])
    study = StudyRun(tmp_path, SETTINGS)
    assert study.results.remaining(TASKS) == [TASKS[-1]]
    study_in(tmp_path)
    assert table(tmp_path) == table(finished)


@pytest.mark.parametrize("torn", [b"", b"table,data"])
def test_a_table_torn_at_its_head_starts_anew(tmp_path, torn):
    (tmp_path / "results.csv").write_bytes(torn)
    assert ResultsFile(tmp_path / "results.csv").lines == {}


def test_what_is_done_is_not_done_again(finished):
    before = (finished / "results.csv").read_bytes()
    seconds = json.loads((finished / "study.json").read_text())["seconds"]
    study = StudyRun(finished, SETTINGS)
    assert study.results.remaining(TASKS) == []
    assert study.curves_of(TASKS) == []
    study_in(finished)
    assert (finished / "results.csv").read_bytes() == before
    record = json.loads((finished / "study.json").read_text())
    assert record["sessions"] == 2
    assert record["seconds"] > seconds


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (replace(SETTINGS, seed=1), "seed"),
        (replace(SETTINGS, exponents=(-6, 1)), "exponents"),
        (replace(SETTINGS, benchmark_rows=100), "benchmark_rows"),
        (replace(SETTINGS, cut="all", bound=30), "bound, cut"),
    ],
)
def test_results_of_other_settings_are_refused(finished, settings, named):
    with pytest.raises(StudyError, match=rf"other settings \({named}\).*fresh=True"):
        StudyRun(finished, settings)


def test_results_that_cannot_be_trusted_are_refused(finished, tmp_path):
    path = tmp_path / "results.csv"
    text = (finished / "results.csv").read_text()
    path.write_text(text)
    with pytest.raises(StudyError, match=r"no study\.json"):
        StudyRun(tmp_path, SETTINGS)
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(StudyError, match="damaged"):
        StudyRun(tmp_path, SETTINGS)
    (tmp_path / "study.json").write_bytes((finished / "study.json").read_bytes())
    path.write_text(text.replace(",glass,", ",grass,", 1))
    with pytest.raises(StudyError, match="unknown data set 'grass': did you mean 'glass'"):
        StudyRun(tmp_path, SETTINGS)
    path.write_text(text.replace(",ok,", ",", 1))
    with pytest.raises(StudyError, match="line 2 is damaged"):
        StudyRun(tmp_path, SETTINGS)
    path.write_text(text.replace(f",{SETTINGS.run_seed('glass', 1)},", ",1,"))
    with pytest.raises(StudyError, match="another `seed`"):
        StudyRun(tmp_path, SETTINGS)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(StudyError, match="not a table of a study"):
        StudyRun(tmp_path, SETTINGS)
    assert StudyRun(tmp_path, SETTINGS, fresh=True).results.lines == {}
    assert not path.exists()


# The numbers ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_numbers_do_not_depend_on_jobs_or_order(finished, tmp_path):
    study_in(tmp_path, TASKS[::-1], jobs=2)
    assert table(tmp_path) == table(finished)


def test_numbers_do_not_depend_on_what_else_is_run(finished, tmp_path):
    some = [task for task in TASKS if task.method == "OPAUC" and task.run == 1]
    study_in(tmp_path, some)
    expected = [x for x in table(finished)[0] if (x["method"], x["run"]) == ("OPAUC", "1")]
    assert table(tmp_path)[0] == expected


def test_another_seed_gives_other_numbers(finished, tmp_path):
    study_in(tmp_path, TASKS[:1], replace(SETTINGS, seed=1))
    assert table(tmp_path)[0][0]["seed"] != table(finished)[0][0]["seed"]


def test_a_killed_study_goes_on_to_the_same_table(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    command = [
        sys.executable, "-m", "cbrank", "reproduce", "--quick", "--runs", "3", "--scaling", "unit",
        "--datasets", "glass,vehicle", "--methods", "CBR_RS,AdaOAM", "--jobs", "1", "--no-report",
        "--out", broken,
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    wait_for_lines(broken / "results.csv", 3, process)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert 3 <= (broken / "results.csv").read_text().count("\n") <= 12
    subprocess.run(command, check=True, capture_output=True)
    tasks = plan(["glass", "vehicle"], ["CBR_RS", "AdaOAM"], ["unit"], runs=3)
    study_in(whole, tasks, quick(0))
    assert table(broken) == table(whole)
    assert json.loads((broken / "study.json").read_text())["sessions"] == 2
