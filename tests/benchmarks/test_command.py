"""``make bench``: what is kept in the folder, the report, and the command."""

import json
import math
import shutil
from functools import partial
from pathlib import Path

import pytest
from commands import outcome_of

from benchmarks import measurements, report
from benchmarks.__main__ import main
from benchmarks.interleaved import Chunk, Result
from benchmarks.processes import ProcessFailed
from benchmarks.report import Target, tables, targets
from benchmarks.results_folder import Results, ResultsFolder, operations
from benchmarks.workloads import Workload, synthetic

COMMITTED = Path(__file__).parents[2] / "docs" / "bench"


def result(peer, seconds, **more):
    chunks = [[Chunk(10, 9.0, 0.0), Chunk(10, seconds, 0.0)]]
    return Result("reuters", peer, chunks=chunks, **more)


def test_results_come_back_from_the_folder(tmp_path):
    lines = [
        result("CBR-diag 50", 2.0, auc=0.9, cost=2e5),
        result("SGD", 1.0, auc=math.nan, cost=1e5),
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
    assert verdicts["reuters: cost, pair of CBR-diag / row of SGD"] == "met"
    assert verdicts["news20: cost, pair of CBR-diag / row of SGD"] == "not measured"
    made = {table.key: table for table in tables(results)}
    assert [row.name for row in made["peers-reuters"].rows] == ["SGD", "CBR-diag 50"]
    assert [row.name for row in made["missing"].rows] == ["River LR", "cbrank"]
    text = (tmp_path / "results.csv").read_text()
    assert text.splitlines()[2].startswith("reuters,SGD,ok,")
    assert "nan" not in text
    assert "NaN" not in (tmp_path / "bench.json").read_text()


def test_the_documentation_shows_what_is_in_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "figures", lambda *_: [])
    shutil.copy(COMMITTED / "bench.json", tmp_path)
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


def test_operations_are_at_least_the_product_with_sigma():
    assert operations(1000, 50, rows=10, updates=0) == 10 * 2 * 1000**2
    assert operations(10, 5, 1, 7) - operations(10, 5, 1, 6) >= 10**2


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
    assert "## Targets" in (tmp_path / "out" / "report.md").read_text()
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
