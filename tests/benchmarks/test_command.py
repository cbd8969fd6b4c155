"""``make bench``: what is kept in the folder, the report, and the command."""

import json
import math
import shutil
from functools import partial
from pathlib import Path

import pytest
from commands import outcome_of

from benchmarks import history, measurements, report
from benchmarks.__main__ import main
from benchmarks.interleaved import Chunk, Result
from benchmarks.processes import ProcessFailed
from benchmarks.report import tables
from benchmarks.results_folder import Results, ResultsFolder
from benchmarks.targets import Target, targets
from benchmarks.workloads import Workload, synthetic

COMMITTED = Path(__file__).parents[2] / "docs" / "bench"


def result(peer, seconds, workload="reuters", pairs=0, **more):
    chunks = [[Chunk(10, 9.0, 0.0), Chunk(10, seconds, 0.0, pairs, pairs // 3, 1e9)]]
    return Result(workload, peer, chunks=chunks, **more)


def test_results_come_back_from_the_folder(tmp_path):
    lines = [
        result("CBR-diag 50, one call", 2.0, pairs=500, auc=0.9, cost=2e5),
        result("SGD, one call", 1.0, auc=math.nan, cost=1e5),
        Result("reuters", "River LR", "not installed", "why"),
    ]
    written = ResultsFolder(tmp_path)
    written.start({"seed": 0, "quick": True}, "python -m benchmarks")
    written.add("reuters", [vars(line) for line in lines])
    written.add("memory", {"dense": {"matrix": 100, "fit": 30, "partial_fit": 40}})
    written.add("selection", {"failed": "alas"})
    written.finish()
    results = Results(ResultsFolder(tmp_path))
    assert results.pair_cost("reuters") == 2 / 50
    assert results.fit_memory("dense") == 0.4
    assert math.isnan(results.fit_memory("sparse"))
    assert math.isnan(results.selection_time())
    assert results.folder.measured("selection") is None
    verdicts = {target.text: target.verdict for target in targets(results)}
    pair = "pair of CBR-diag / example of `SGDClassifier.fit`, one call"
    assert verdicts[f"reuters: {pair}"] == "met"
    assert verdicts[f"news20: {pair}"] == "not measured"
    made = {table.key: table for table in tables(results)}
    names = [row.name for row in made["peers-reuters"].rows]
    assert names == ["SGD, one call", "CBR-diag 50, one call"]
    assert [row.name for row in made["missing"].rows] == ["River LR", "cbrank"]
    text = (tmp_path / "results.csv").read_text()
    assert text.splitlines()[2].startswith('reuters,"SGD, one call",ok,')
    assert "nan" not in text
    assert "NaN" not in (tmp_path / "bench.json").read_text()


def test_the_documentation_shows_what_is_in_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "figures", lambda *_: [])
    for name in ("bench.json", "history.csv"):
        shutil.copy(COMMITTED / name, tmp_path)
    report.write(ResultsFolder(tmp_path))
    written = {path.name: path.read_text("utf-8") for path in (tmp_path / "tables").iterdir()}
    kept = {path.name: path.read_text("utf-8") for path in (COMMITTED / "tables").iterdir()}
    assert written == kept
    page = (COMMITTED / "report.md").read_text("utf-8")
    assert all(text.strip() in page for text in written.values())


@pytest.mark.parametrize(
    ("sign", "measured", "verdict"),
    [("≥", 2.0, "met"), (">", 2.0, "missed"), ("≤", 2.1, "missed"),
     ("<", 1.9, "met"), ("<", math.nan, "not measured")],
)  # fmt: skip
def test_targets_are_met_or_missed(sign, measured, verdict):
    assert Target("", sign, 2.0, measured).verdict == verdict


LIMITS = {
    "matrix": 4e9,
    "sizes": [
        {"features": 20, "loads": 8e9, "changes": 4e9},
        {"features": 54, "loads": 16e9, "changes": 8e9},
    ],
}
OTHERS = {
    "limits": LIMITS,
    "single-rows": [
        {"caller": caller, "kind": kind, "cost": cost, "costs": [cost]}
        for caller, cost in (("CBR 10", 2.0), ("River LR", 4.0))
        for kind in ("learn", "ask", "both")
    ],
    "streams": [
        {"stream": "elec", "rows": 9, "method": method, "title": method, "auc": 0.9,
         "window_auc": 0.8, "cost": cost, "costs": [cost]}
        for method, cost in (("cbr", 3.0), ("river-lr", 1.0))
    ],
    "curves": [{"table": "adult", "rows": 9, "method": "lightgbm", "title": "LightGBM", "auc": 0.9,
                "cost": 5.0, "costs": [5.0]}],
    "service": [{"model": "german", "request": "score", "pairs": [[8.0, 10.0]]}],
}  # fmt: skip


def measured_in(path, factor=1.0):
    """Return a folder with something of each measurement."""
    folder = ResultsFolder(path)
    folder.start({"seed": 0, "quick": False}, "python -m benchmarks")
    sweeps = [
        result("CBR 50, no averaging", factor, "d20-third", 500, features=20, fired=1 / 3),
        result("Plain loop 50", 2.0, "d20-third", features=20, difference=0.0),
    ]
    words = [
        result("CBR 10", 2.0, "one-hot-30", features=30, nonzeros=30, fired=0.5),
        result("CBR 10", 3.0, "one-hot-dense", features=104, nonzeros=104, fired=0.2),
    ]
    short = [result("CBR 50, C auto", 19.0, "short"), result("CBR 50", 5.0, "short")]
    for name, lines in (("d20-third", sweeps), ("one-hot", words), ("short", short)):
        folder.add(name, [vars(line) for line in lines])
    for name, measured in OTHERS.items():
        folder.add(name, measured)
    folder.finish()
    return folder


def test_each_measurement_has_its_ratio_and_its_table(tmp_path):
    pytest.importorskip("matplotlib", reason="the figures need matplotlib")
    results = Results(measured_in(tmp_path))
    found = {aim.text: aim.measured for aim in targets(results) if not math.isnan(aim.measured)}
    assert found["8 to 128 features, 50 buffered, the least: cost, plain loop / CBR"] == 2.0
    assert found["One row of 20 columns: `learn_one`, 10 buffered / River LR's"] == 0.5
    assert found["adult one-hot, dense, 10 buffered: cost / 30 dense columns'"] == 1.5
    assert found['500 rows, 50 buffered: time, C="auto" / a fixed C'] == 2.0
    assert found["Service, score: requests a second / echo's"] == 0.8
    allowed = found["20 features, a third fires: share of what the machine allows"]
    assert allowed == pytest.approx(results.matrix_share("d20-third"))  # no load takes as long
    report.write(results.folder)
    page = (tmp_path / "report.md").read_text("utf-8")
    for title in ("Ratios", "Limits of the machine", "One row at a time", "Streams in time", "Curves",
                  "The service", "Words as columns", "A short stream"):  # fmt: skip
        assert f"## {title}\n" in page
    for name in ("ratios", "roofline"):
        assert (tmp_path / "figures" / f"{name}.svg").stat().st_size > 0


def test_history_tells_what_became_worse(tmp_path, monkeypatch):
    compare = partial(outcome_of, main, "--compare", "--out", str(tmp_path))
    assert "has no benchmark to compare" in compare().stderr
    for day, factor in ((1, 1.0), (2, 1.1), (2, 3.0)):  # the third one is the second's end
        (tmp_path / "bench.json").unlink(missing_ok=True)
        monkeypatch.setattr("benchmarks.results_folder.now", lambda day=day: f"2026-01-0{day}")
        folder = measured_in(tmp_path, factor)
        history.record(folder, targets(Results(folder)))
        outcome = compare()
        said = [
            "There is no benchmark before",
            "Nothing is worse",
            "plain loop / CBR: 0.667, was 2",
        ]
        assert said[(day - 1) + (factor > 2)] in outcome.stdout
        assert outcome.exit_code == (factor > 2)
    assert [run.started for run in history.read(tmp_path)] == ["2026-01-01", "2026-01-02"]
    assert "Worse than at" in report.summary(folder)
    table = report.history_table(folder)
    assert [column[:10] for column in table.columns] == ["2026-01-01", "2026-01-02"]


TINY = Workload(
    name="length",
    title="tiny",
    group="length",
    peers=("CBR 10", "SGD averaged"),
    load=lambda rows, seed: synthetic(8, "easy", rows, 50, seed),
    ends=(100, 200, 300),
    quick=(60, 120, 180),
)


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr(measurements, "WORKLOADS", [TINY])
    return partial(outcome_of, main, "--quick", "--out", str(tmp_path / "out"))


def test_the_command_measures_reports_and_goes_on(bench, tmp_path):
    pytest.importorskip("matplotlib", reason="the figures need matplotlib")
    outcome = bench("--only", "length")
    assert outcome.exit_code == 0
    assert "Measurements: 1, done before: 0." in outcome.stderr
    assert "Memory, dense fit / the caller's matrix" in outcome.stdout
    out = tmp_path / "out"
    for name in ("results.csv", "tables/targets.md", "figures/cost-n.svg"):
        assert (out / name).stat().st_size > 0
    facts = json.loads((out / "bench.json").read_text())
    assert facts["settings"] == {"seed": 0, "quick": True}
    assert facts["finished"]
    assert facts["versions"]["numba"]
    assert "(figures/cost-n.svg)" in (out / "report.md").read_text()
    again = bench("--only", "length", "--only", "length")
    assert "Measurements: 1, done before: 1." in again.stderr
    assert again.stdout == outcome.stdout


def test_without_matplotlib_there_are_tables_and_no_figures(bench, tmp_path, monkeypatch):
    for module in ("benchmarks.__main__", "benchmarks.report"):
        monkeypatch.setattr(f"{module}.find_spec", lambda _: None)
    monkeypatch.setitem(measurements.OTHERS, "memory", (lambda *_: {}, 1.0))
    outcome = bench("--only", "memory")
    assert outcome.exit_code == 0
    assert "no figures: they need matplotlib" in outcome.stderr
    assert "## Ratios" in (tmp_path / "out" / "report.md").read_text()
    assert not list((tmp_path / "out" / "figures").iterdir())


def test_a_failed_measurement_is_named_and_tried_again(bench, monkeypatch):
    outcomes = iter([ProcessFailed("alas"), {}])

    def memories(seed, quick):
        if isinstance(outcome := next(outcomes), Exception):
            raise outcome
        return outcome

    monkeypatch.setitem(measurements.OTHERS, "memory", (memories, 1.0))
    assert "cbrank on memory: failed: alas" in bench("--only", "memory").stdout
    again = bench("--only", "memory")
    assert "done before: 0." in again.stderr
    assert "alas" not in again.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--only", "lenth"], 2, "unknown measurement 'lenth': did you mean 'length'?"),
        (["--only", "memory", "--seed", "1"], 1, "holds a benchmark of other settings"),
    ],
)
def test_errors_are_sentences(bench, tmp_path, arguments, code, sentence):
    (tmp_path / "out").mkdir()
    kept = {"settings": {"seed": 0, "quick": True}, "measurements": {}}
    (tmp_path / "out" / "bench.json").write_text(json.dumps(kept))
    outcome = bench(*arguments)
    assert outcome.exit_code == code
    assert sentence in outcome.stderr
    (tmp_path / "out" / "bench.json").write_text("{}")
    assert "is not a benchmark's" in bench("--only", "memory").stderr


def test_missing_data_sets_are_named(monkeypatch):
    monkeypatch.setattr("cbrank.datasets.available", list)
    outcome = outcome_of(main, "--only", "covtype-raw")
    assert outcome.exit_code == 2
    assert "Left out, not on this machine: covtype." in outcome.stderr
