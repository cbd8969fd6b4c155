"""``make streams``: probabilities before labels, their measures, the folder and the command."""

import json
import lzma
import math
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from commands import outcome_of

from benchmarks.streams import learners, measuring, report
from benchmarks.streams.__main__ import main
from benchmarks.streams.learners import METHODS, Learner
from benchmarks.streams.measuring import Run, Stream, calibration_error, log_loss, measures

COMMITTED = Path(__file__).parents[2] / "docs" / "streams"
TINY = Stream("tiny", "tiny: a stream", "made up", label="class", most=2300)


def made_up(rows, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((rows, 3)) * [1.0, 10.0, 0.1] + [0.0, 50.0, 0.0]
    y = (X[:, 0] + 0.1 * (X[:, 1] - 50) + random.standard_normal(rows) > 0.5).astype(np.int64)
    return X, y


class Tale(Learner):
    """Keep a record of what is asked, and predict how many rows were learned from."""

    def __init__(self, rows=1):
        self.rows, self.learned, self.predicted = rows, 0, []

    def predict(self, block):
        self.predicted.append((self.learned, len(block[1])))
        return np.full(len(block[1]), self.learned / 100)

    def learn(self, block):
        self.learned += len(block[1])


@pytest.mark.parametrize(("rows", "first"), [(1, 4), (10, 10)])
def test_rows_are_predicted_before_they_are_learned_from(rows, first):
    y = np.array([0, 0, 0] + [1] * 42)
    run = Run(partial(Tale, rows), np.zeros((45, 2)), y)
    run.warm_up()
    parts = [run.go_on(0, 20), run.go_on(20, 45)]
    probabilities = np.concatenate([part for part, _ in parts])
    begins = [at - at % rows for at in range(45)]
    expected = [0.5 if begin < first else begin / 100 for begin in begins]
    assert probabilities.tolist() == expected
    assert isinstance(run.learner, Tale)
    assert run.learner.predicted[-1] == (40 if rows == 10 else 44, 5 if rows == 10 else 1)
    assert all(seconds > 0 for _, seconds in parts)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_learns_to_rank(method):
    if missing := method.missing():
        pytest.skip(f"{method.title}: {missing}")
    X, y = made_up(600)
    run = Run(method.make, X, y)
    run.warm_up()
    probabilities, _ = run.go_on(0, 600)
    assert 0 <= probabilities.min() < probabilities.max() <= 1
    if method.name != "label-before":
        assert measuring.auc(y[100:], probabilities[100:]) > 0.7
    assert math.isnan(run.reported()) == (method.group == "peers")


def test_measures_of_windows_and_of_the_whole():
    y = np.concatenate([np.tile([0, 1], 500), np.zeros(1000), np.tile([0, 1], 700)]).astype(int)
    right = np.where(y == 1, 0.9, 0.1)
    right[2000:3000] = 0.5
    measured = measures(y, right)
    assert measured["windows"] == pytest.approx([1.0, math.nan, 0.5], nan_ok=True)
    assert measured["window_auc"] == 0.75
    assert 0.75 < measured["auc"] < 1
    assert measuring.shares(y) == [0.5, 0.0, 0.5]
    assert math.isnan(measures(y[1000:2000], right[1000:2000])["window_auc"])


def test_calibration_error_and_log_loss():
    random = np.random.default_rng(0)
    shares = random.random(20_000)
    y = (random.random(20_000) < shares).astype(np.int64)
    assert calibration_error(y, shares) < 0.015
    assert calibration_error(y, np.clip(shares + 0.2, 0, 1)) == pytest.approx(0.18, abs=0.01)
    halves = np.sort(y)
    assert calibration_error(halves, np.full(20_000, 0.5)) == pytest.approx(
        abs(y.mean() - 0.5), abs=1e-9
    )
    assert log_loss(np.array([0, 1]), np.array([0.5, 0.25])) == pytest.approx(1.5 * np.log(2))
    assert log_loss(np.array([1]), np.array([0.0])) == pytest.approx(-np.log(1e-6))


# The command --------------------------------------------------------------------------------------


@pytest.fixture
def streams(tmp_path, monkeypatch):
    """Return the command on a made-up stream with two methods that need nothing else."""
    X, y = made_up(2400)
    (tmp_path / "data" / "tables").mkdir(parents=True)
    with lzma.open(tmp_path / "data" / "tables" / "tiny.csv.xz", "wt", preset=0) as file:
        np.savetxt(file, np.column_stack([X, y]), delimiter=",", header="a,b,c,class", comments="")
    monkeypatch.setenv("CBRANK_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(measuring, "STREAMS", [TINY])
    few = [method for method in METHODS if method.name in {"sgd", "label-before"}]
    monkeypatch.setattr(learners, "METHODS", few)
    return partial(outcome_of, main, "--out", str(tmp_path / "out"))


def test_the_command_measures_what_is_not_there_yet(streams, tmp_path, start_no_more):
    pytest.importorskip("matplotlib", reason="the figures need matplotlib")
    out = tmp_path / "out"
    outcome = streams("--only", "sgd")
    assert outcome.exit_code == 0
    assert "tiny" in outcome.stdout
    assert not report.folder(out).result("tiny", "label-before")
    kept = report.folder(out).result("tiny", "sgd")
    assert len(kept["windows"]) == 2
    assert kept["window_auc"] > 0.7
    assert kept["microseconds"] > 0

    start_no_more()
    streams()
    assert report.folder(out).result("tiny", "sgd")["microseconds"] == kept["microseconds"]
    assert (out / "figures" / "tiny.svg").stat().st_size > 0
    page = (out / "report.md").read_text("utf-8")
    assert "The first 2,300 rows of 3 columns" in page
    assert "(figures/tiny.svg)" in page
    assert (out / "tables" / "tiny.md").read_text("utf-8").strip() in page
    assert "## Options" not in page
    assert "NaN" not in (out / "streams.json").read_text()
    assert "nan" not in (out / "results.csv").read_text()

    facts = json.loads((out / "streams.json").read_text())
    facts["results"]["tiny"] = {name: kept | {"auc": 0.0} for name in ("sgd", "label-before")}
    (out / "streams.json").write_text(json.dumps(facts))
    streams("--only", "sgd,tiny", "--fresh")
    folder = report.folder(out)
    assert folder.result("tiny", "sgd")["auc"] == kept["auc"]
    assert folder.result("tiny", "label-before")["auc"] == 0.0


def test_without_matplotlib_there_are_tables_and_no_figures(streams, tmp_path, monkeypatch):
    for module in ("comparison", "streams.report"):
        monkeypatch.setattr(f"benchmarks.{module}.find_spec", lambda _: None)
    outcome = streams("--only", "label-before")
    assert outcome.exit_code == 0
    assert "no figures" in outcome.stderr
    assert not list((tmp_path / "out" / "figures").iterdir())


def test_what_is_missing_is_named_with_its_place(streams, tmp_path, monkeypatch):
    table = tmp_path / "data" / "tables" / "tiny.csv.xz"
    table.unlink()
    outcome = streams()
    assert outcome.exit_code == 2
    assert f"Left out: tiny. {table} is missing: CBRANK_DATA names a folder" in outcome.stderr
    monkeypatch.delenv("CBRANK_DATA")
    assert "tables/tiny.csv.xz is missing: name a folder" in streams().stderr
    monkeypatch.setattr("cbrank.datasets.available", list)
    assert "`cbrank datasets fetch tiny`" in Stream("tiny", "", "").missing()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,0\n", "the last column is 'b' and not 'class'"),
        ("a,class\n1,yes\n", "could not convert string 'yes' to float64 at row 0"),
    ],
)
def test_a_table_of_another_kind_is_refused(streams, tmp_path, text, sentence):
    with lzma.open(tmp_path / "data" / "tables" / "tiny.csv.xz", "wt") as file:
        file.write(text)
    outcome = streams()
    assert outcome.exit_code == 1
    assert "tiny.csv.xz: " in outcome.stderr
    assert sentence in outcome.stderr


def test_errors_are_sentences(streams, tmp_path):
    outcome = streams("--only", "tinny")
    assert outcome.exit_code == 2
    assert "unknown stream, method or group 'tinny': there are tiny, sgd" in outcome.stderr
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "streams.json").write_text("{}")
    outcome = streams()
    assert outcome.exit_code == 1
    assert "has no results of streams" in outcome.stderr


def test_a_method_that_fails_is_named(streams, monkeypatch):
    broken = learners.Method("broken", "Broken", "peers", partial(learners.SGD, "ten"), 1)
    absent = learners.Method("absent", "Absent", "peers", Learner, 1, {"no_such": "no cure"})
    monkeypatch.setattr(learners, "METHODS", [broken, absent])
    outcome = streams()
    assert outcome.exit_code == 2
    assert "Failed: tiny, Broken: TypeError" in outcome.stderr
    assert "Left out: Absent, no no_such: no cure." in outcome.stderr


def test_the_documentation_shows_what_is_in_its_folder(tmp_path, monkeypatch):
    shutil.copy(COMMITTED / "streams.json", tmp_path)
    monkeypatch.setattr(report, "write_figure", lambda *_: None)
    report.write(report.folder(tmp_path))
    written = {path.name: path.read_text("utf-8") for path in (tmp_path / "tables").iterdir()}
    kept = {path.name: path.read_text("utf-8") for path in (COMMITTED / "tables").iterdir()}
    assert written == kept
    assert (tmp_path / "results.csv").read_text() == (COMMITTED / "results.csv").read_text()
    page = (COMMITTED / "report.md").read_text("utf-8")
    assert all(text.strip() in page for text in written.values())
