"""``make beyond``: splits of sets and tables, streams, the folder and the command."""

import json
import lzma
import math
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from threadpoolctl import threadpool_limits

import cbrank
from benchmarks.beyond import measuring, methods, report
from benchmarks.beyond.__main__ import main
from benchmarks.beyond.measuring import DATA, MEASURES, Data, Results, Trial, by_hand
from benchmarks.beyond.methods import METHODS, Fitted, Line, Method, Refitted
from benchmarks.streams import learners
from benchmarks.streams import measuring as streams

pytestmark = pytest.mark.usefixtures("_one_thread")
pd = pytest.importorskip("pandas", reason="tables are read by pandas")

COMMITTED = Path(__file__).parents[2] / "docs" / "beyond"
TABLE = Data("tiny", "tables", 2, 240, label="class", positive="yes", ids=("id",))


def made_up(rows, seed=0):
    """Make a table with an id, words, gaps in two forms and numbers among words."""
    random = np.random.default_rng(seed)
    x, word = random.standard_normal(rows), random.choice(["red", "dark blue", "a:b"], rows)
    y = np.abs(x) + (word == "red") + 0.5 * random.standard_normal(rows) > 1
    number = np.where(random.random(rows) < 0.1, "?", np.round(x, 3).astype(str))
    frame = {"id": [f"n{i}" for i in range(rows)], "x": x, "number": number, "word": word}
    return pd.DataFrame(
        frame | {"gap": np.where(x > 1, np.nan, x), "class": np.where(y, "yes", "no")}
    )


@pytest.fixture
def _one_thread():
    """Keep the threads of trees from waiting for each other on a busy machine."""
    with threadpool_limits(1):
        yield


class Slope(Fitted):
    """Score by a column, up or down as it goes with the labels."""

    def fit(self, rows, y):
        self.sign = np.sign(np.cov(self._column(rows), y)[0, 1])

    def scores(self, X):
        return self.sign * self._column(X)

    def _column(self, rows):
        return np.abs(rows["x"].to_numpy() if hasattr(rows, "columns") else rows[:, 0])


FEW = [
    Method("line", "line", "cbrank", Slope, 1, stream=learners.LabelBefore),
    Method("trees", "curves and trees", "cbrank", Slope, 1, as_read=True),
    Method("lightgbm", "LightGBM", "peers", partial(methods.Model, methods._hist_gradient_boosting),
           1, stream=learners.LabelBefore),
]  # fmt: skip


# Data and measures --------------------------------------------------------------------------------


def test_splits_take_four_fifths_of_at_most_so_many_rows():
    data = Data("any", "benchmark", most=100)
    train, test = data.split(1000, 3)
    order = np.random.RandomState(3).permutation(1000)[:100]
    assert np.array_equal(np.concatenate([train, test]), order)
    assert len(train) == 80
    assert len(np.concatenate(TABLE.split(9000, 0))) == 8000


def test_tables_are_read_as_they_are_and_prepared_by_hand(beyond):
    loaded = TABLE.load()
    assert list(loaded.as_read) == ["id", "x", "number", "word", "gap"]
    assert {"?"} < set(loaded.as_read["number"])
    kinds = {name: column.dtype.kind for name, column in loaded.by_hand.items()}
    assert kinds == {"x": "f", "number": "f", "word": "O", "gap": "f"}
    assert loaded.by_hand["number"].isna().sum() == (loaded.as_read["number"] == "?").sum()
    assert loaded.facts() == {"rows": 300, "features": 5, "positives": int(loaded.y.sum())}
    assert 0 < loaded.y.sum() < 300


def test_a_column_may_be_withheld_from_all(beyond):
    data = Data("other", "tables", 1, source="tiny", label="class", positive="yes", without=("x",))
    loaded = data.load()
    assert "x" not in loaded.as_read
    assert "x" not in loaded.by_hand


QUICK = [method for method in METHODS if method.name != "ebm"]  # which takes a minute


@pytest.mark.parametrize("method", QUICK, ids=lambda method: method.name)
def test_every_method_ranks_arrays_and_tables(method):
    if missing := method.missing():
        pytest.skip(f"{method.title}: {missing}")
    if method.name in {"curves", "trees"} and not hasattr(cbrank, "AdditiveRanker"):
        pytest.skip("needs AdditiveRanker")
    frame = made_up(400)
    y = (frame.pop("class") == "yes").to_numpy().astype(int)
    frame = frame if method.as_read else by_hand(frame.drop(columns="id"))
    array = np.column_stack([np.abs(frame["x"]), frame["x"]])
    for X in (array, frame):
        rows = X.iloc if hasattr(X, "iloc") else X
        trial = Trial(method.make)
        trial.warm_up(rows[:100], y[:100])
        measured = dict(zip(MEASURES, trial.measure(rows[:300], y[:300], rows[300:], y[300:]),
                            strict=True))  # fmt: skip
        assert measured["auc"] > 0.6
        assert 0 < measured["average_precision"] <= 1
        assert measured["log_loss"] > 0
        assert measured["seconds"] > 0
        assert measured["mib"] >= 0


def test_the_line_takes_words_and_gaps_it_has_not_seen():
    frame = by_hand(made_up(200).drop(columns=["id", "class"]))
    line = Line()
    line.fit(frame[frame["word"] != "red"], (frame["word"] == "a:b")[frame["word"] != "red"])
    assert np.isfinite(line.scores(frame)).all()


def test_batch_learners_are_fitted_anew_to_all_rows_so_far():
    y = np.concatenate([np.zeros(1000), np.tile([0, 1], 1000)]).astype(int)
    X = np.column_stack([y + 0.1, np.arange(3000.0)])
    learner = Refitted(methods._hist_gradient_boosting)
    run = streams.Run(lambda: learner, X, y)
    run.start()
    first, second = run.go_on(0, 1000)[0], run.go_on(1000, 2000)[0]
    assert set(first) | set(second) == {0.5}
    third = run.go_on(2000, 3000)[0]
    assert streams.auc(y[2000:], third) == 1.0
    assert len(learner.blocks) == 3


# The command --------------------------------------------------------------------------------------


def invoke(*arguments):
    outcome = CliRunner().invoke(main, arguments)
    if outcome.exception and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    return outcome


@pytest.fixture
def beyond(tmp_path, monkeypatch):
    """Return the command on a made-up set, table and stream with methods that need nothing else."""
    (tmp_path / "data" / "tables").mkdir(parents=True)
    frame = made_up(300)
    with lzma.open(tmp_path / "data" / "tables" / "tiny.csv.xz", "wt", preset=0) as file:
        frame.to_csv(file, index=False)
    stream = frame.assign(label=(frame["class"] == "yes").astype(int))[["x", "label"]]
    with lzma.open(tmp_path / "data" / "tables" / "brook.csv.xz", "wt", preset=0) as file:
        pd.concat([stream] * 5).to_csv(file, index=False)
    monkeypatch.setenv("CBRANK_DATA", str(tmp_path / "data"))
    brook = streams.Stream("brook", "brook: a stream", "made up", label="label")
    monkeypatch.setattr(streams, "STREAMS", [brook])
    glass, small = Data("glass", "benchmark", 2, 500), Data("brook", "streams", 0, 1500)
    monkeypatch.setattr(measuring, "DATA", [glass, TABLE, small])
    monkeypatch.setattr(methods, "METHODS", FEW)
    return partial(invoke, "--out", str(tmp_path / "out"))


@pytest.mark.slow
def test_the_command_goes_on_where_it_stopped(beyond, tmp_path, start_no_more):
    pytest.importorskip("matplotlib", reason="the figures need matplotlib")
    out = tmp_path / "out"
    outcome = beyond("--only", "line", "--sets", "glass,tiny", "--splits", "1")
    assert outcome.exit_code == 0, outcome.stderr
    kept = Results(out, FEW).result("glass", "line")
    assert [len(kept[name]) for name in MEASURES] == [1] * 5

    start_no_more()
    assert beyond().exit_code == 0
    folder = Results(out, FEW)
    assert folder.result("glass", "line")["seconds"][:1] == kept["seconds"]
    assert [len(folder.result(name, "trees")["auc"]) for name in ("glass", "tiny")] == [2, 2]
    assert not folder.result("brook", "trees")
    page = (out / "report.md").read_text("utf-8")
    for name in ("Targets", "Where curves and trees lose", "brook, predicted before"):
        assert f"## {name}" in page
    for path in (out / "tables").iterdir():
        assert path.read_text("utf-8").strip() in page
    for name in ("pareto", "gains"):
        assert (out / "figures" / f"{name}.svg").stat().st_size > 0
    lines = (out / "results.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * 2 * 2 + 2
    assert "nan" not in "".join(lines)

    facts = json.loads((out / "beyond.json").read_text())
    for name in ("line", "trees"):
        facts["results"]["glass"][name]["auc"] = [0.0, 0.0]
    (out / "beyond.json").write_text(json.dumps(facts))
    beyond("--only", "line", "--sets", "benchmark", "--fresh")
    folder = Results(out, FEW)
    assert folder.result("glass", "line")["auc"][:1] == kept["auc"]
    assert folder.result("glass", "trees")["auc"] == [0.0, 0.0]


def test_errors_are_sentences(beyond, tmp_path, monkeypatch):
    outcome = beyond("--only", "lines")
    assert outcome.exit_code == 2
    assert "unknown method or group 'lines': there are line, cbrank, trees" in outcome.stderr
    outcome = beyond("--sets", "glas")
    assert "unknown set or group 'glas': there are glass, benchmark, tiny" in outcome.stderr
    (tmp_path / "data" / "tables" / "tiny.csv.xz").unlink()
    absent = Method("absent", "Absent", "peers", Slope, 1, {"no_such": "no cure"})
    broken = Method("broken", "Broken", "peers", partial(methods.Model, dict), 1)
    monkeypatch.setattr(methods, "METHODS", [absent, broken])
    outcome = beyond("--sets", "glass,tiny")
    assert outcome.exit_code == 2
    assert "Left out: tiny. " in outcome.stderr
    assert "Left out: Absent, no no_such: no cure." in outcome.stderr
    assert "Failed: glass, Broken: AttributeError" in outcome.stderr


# The page -----------------------------------------------------------------------------------------


def kept(path, **aucs):
    """Return results with so many splits of each method on the set glass."""
    folder = Results(path, METHODS)
    for name, values in aucs.items():
        measured = {measure: [1.0] * len(values) for measure in MEASURES} | {"auc": values}
        folder.add("glass", {"rows": 214, "features": 9, "positives": 70}, name, measured)
    return folder


def test_methods_are_compared_on_the_splits_that_both_have(tmp_path):
    glass = DATA[0]
    folder = kept(tmp_path, line=[0.5, 0.6, 0.9], trees=[0.6, 0.7, 0.9], lightgbm=[0.8])
    assert report.mean(folder, glass, "line") == pytest.approx(2 / 3)
    assert report.above(folder, glass, "trees", "line") == pytest.approx(0.2 / 3)
    assert report.above(folder, glass, "lightgbm", "trees") == pytest.approx(0.2)
    assert math.isnan(report.above(folder, glass, "lightgbm", "hgb"))
    aims = {aim.text: aim for aim in report.targets(folder)}
    assert aims["Benchmark sets: AUC above LightGBM"].measured == pytest.approx(-0.2)
    assert aims["Benchmark sets: AUC above LightGBM"].verdict == "missed"
    assert aims["adult: AUC"].verdict == "not measured"
    rows = report.mean_table(folder, [glass]).rows
    assert [row.name for row in rows] == ["LightGBM", "curves and trees", "line"]
    assert rows[0].cells[-1].text == "1 × 1"  # noqa: RUF001


def test_the_documentation_shows_what_is_in_its_folder(tmp_path, monkeypatch):
    if not (COMMITTED / "beyond.json").exists():
        pytest.skip("nothing was measured yet")
    shutil.copy(COMMITTED / "beyond.json", tmp_path)
    monkeypatch.setattr(report, "write_figure", lambda *_: None)
    report.write(Results(tmp_path, METHODS))
    written = {path.name: path.read_text("utf-8") for path in (tmp_path / "tables").iterdir()}
    there = {path.name: path.read_text("utf-8") for path in (COMMITTED / "tables").iterdir()}
    assert written == there
    assert (tmp_path / "results.csv").read_text() == (COMMITTED / "results.csv").read_text()
