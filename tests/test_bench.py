"""``cbrank bench``: who is measured, how, and what is said of it."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse
from scipy.special import ndtri
from trouble import Trouble

from cbrank import CBRanker
from cbrank.bench import plain, single, steps, worker
from cbrank.bench.claims import Claim, claims
from cbrank.bench.findings import Findings
from cbrank.bench.machine import Peak, matrix_rate, operations
from cbrank.bench.peers import PEERS, Peer, cbr
from cbrank.bench.race import Result, race, ratio
from cbrank.bench.record import Record
from cbrank.bench.rows import Rows
from cbrank.bench.synthetic import stream
from cbrank.bench.tables import tables
from cbrank.bench.worker import Contestant, Failed, Process, Turn
from cbrank.bench.workloads import WORKLOADS, Workload
from cbrank.cli import main

DENSE = stream(8, "noisy", 240, 100, seed=0)
SPARSE = Rows(
    sparse.csr_array(np.maximum(DENSE.X, 0)),
    DENSE.y,
    sparse.csr_array(np.maximum(DENSE.X_held, 0)),
    DENSE.y_held,
)
ONCE = [name for name in PEERS if not name.endswith((" 1", " 5", " 20", " 100", " 200"))]


@pytest.mark.parametrize("noise", ["easy", "noisy"])
def test_the_plain_loop_is_cbr(noise):
    rows = stream(12, noise, 600, 0, seed=1)
    state = plain.start(12, 20)
    plain.learn(rows.X, rows.y, state, 0.25, float(ndtri(0.7)))
    ranker = CBRanker(C=0.25, buffer_size=20, average=False).partial_fit(rows.X, rows.y)
    np.testing.assert_allclose(state.mu, ranker.coef_[0], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(state.Sigma, ranker.covariance_, rtol=1e-10, atol=1e-13)
    assert state.size.tolist() == [20, 20]


@pytest.mark.parametrize("limit", [None, 5])
def test_the_plain_loop_as_a_peer_goes_along_with_cbr(limit, monkeypatch):
    if limit:
        monkeypatch.setattr("cbrank.bench.peers.yardstick._PRODUCTS", limit * 50 * 8**2)
    contestant = Contestant("Plain loop 50", DENSE)
    contestant.start()
    turns = [contestant.turn(0, 120), contestant.turn(120, 240)]
    end = contestant.finish()
    assert [turn.rows for turn in turns] == ([5, 5] if limit else [120, 120])
    assert 0 < end.difference < 1e-12
    whole = CBRanker(C=2**-4, average=False).partial_fit(DENSE.X, DENSE.y)
    if limit:
        assert math.isnan(end.auc)
    else:
        assert end.auc == pytest.approx(whole.score(DENSE.X_held, DENSE.y_held))
    assert isinstance(contestant.learner, cbr.Chunks)
    assert contestant.learner.ranker.n_updates_ == whole.n_updates_


def test_easy_streams_fire_seldom_and_noisy_ones_often():
    shares = {}
    for noise in ("easy", "noisy"):
        rows = stream(54, noise, 600, 0, seed=0)
        ranker = CBRanker(C=2**-4).partial_fit(rows.X, rows.y)
        shares[noise] = ranker.n_updates_ / ranker.n_pairs_
    assert shares["easy"] < 0.05
    assert 0.25 < shares["noisy"] < 0.6


@pytest.mark.parametrize("name", ONCE)
def test_every_peer_learns_to_rank_what_it_takes(name):
    if missing := PEERS[name].missing():
        pytest.skip(f"{name}: {missing}")
    for rows in (DENSE, SPARSE):
        if rows.kind in PEERS[name].takes:
            contestant = Contestant(name, rows)
            contestant.warm_up()
            contestant.start()
            turns = [contestant.turn(0, 100), contestant.turn(100, 240)]
            end = contestant.finish()
            assert [turn.rows for turn in turns] == [100, 140]
            assert all(turn.seconds > 0 and turn.memory >= 0 for turn in turns)
            assert end.auc > (0.5 if name == "LibAUC" else 0.6)
            assert bool(end.batch) == (name == "Batch LR")


def test_chunks_in_turns_give_the_model_of_one_pass():
    contestant = Contestant("CBR 10", DENSE)
    contestant.start()
    turns = [contestant.turn(0, 100), contestant.turn(100, 240)]
    whole = CBRanker(C=2**-4, buffer_size=10).partial_fit(DENSE.X, DENSE.y)
    assert contestant.finish().auc == pytest.approx(whole.score(DENSE.X_held, DENSE.y_held))
    assert sum(turn.updates for turn in turns) == whole.n_updates_
    assert sum(turn.pairs for turn in turns) == whole.n_pairs_
    assert all(turn.rate > 1e8 for turn in turns)


def test_a_race_names_those_who_cannot_run(monkeypatch):
    absent = Peer("Nobody", cbr.Chunks, needs={"no_such_module": "there is no cure"})
    monkeypatch.setitem(PEERS, "Nobody", absent)
    nobody, full, sgd = race("tiny", ("Nobody", "CBR 10", "SGD"), SPARSE, [100, 170, 240], passes=2)
    assert (nobody.status, nobody.note) == ("not installed", "no no_such_module: there is no cure")
    assert (full.status, full.note) == ("not for these rows", "no sparse rows")
    assert (sgd.status, sgd.rows, sgd.features) == ("ok", 240, 8)
    assert [len(turns) for turns in sgd.turns] == [3, 3]
    assert sgd.least == min(sgd.costs)
    assert sgd.auc > 0.6


def test_processes_have_one_thread_and_their_failures_are_sentences():
    with Process() as process:
        assert process.make(Trouble).call("threads") == {1}
        with pytest.raises(Failed, match=r"^ImportError: no such name in two lines$"):
            process.call("fail")
    with Process() as process, pytest.raises(Failed, match=r"suddenly.*3"):
        process.make(Trouble).call("leave")


def result(peer, seconds, workload="tiny", **more):
    turns = [[Turn(10, 9.0, 0.0), *[Turn(10, second, 0.0) for second in seconds]]]
    return Result(workload, peer, turns=turns, **more)


def test_ratios_compare_chunk_by_chunk_and_leave_the_lead_in_out():
    slow, fast = result("slow", [4.0, 6.0, 80.0]), result("fast", [2.0, 2.0, 10.0])
    assert ratio(slow, fast) == 3.0
    once = result("once", [5.0], cost=0.5e6)
    assert ratio(once, result("fast", [1.0, 1.0], cost=0.25e6)) == 2.0


@pytest.mark.parametrize(
    ("sign", "measured", "verdict"),
    [("≥", 2.0, "holds"), (">", 2.0, "falls short"), ("≤", 2.1, "falls short"),
     ("<", 1.9, "holds"), ("<", math.nan, "not measured")],
)  # fmt: skip
def test_claims_hold_or_fall_short(sign, measured, verdict):
    assert Claim("", sign, 2.0, measured).verdict == verdict


def test_operations_are_at_least_the_product_with_sigma():
    assert operations(1000, 50, rows=10, updates=0) == 10 * 2 * 1000**2
    assert operations(10, 5, 1, 7) - operations(10, 5, 1, 6) >= 10**2


def test_the_rate_of_matrix_products_and_the_peak_of_memory():
    assert 1e8 < matrix_rate() < 1e13
    peak = Peak()
    ballast = np.ones(8 * 2**20)
    assert peak.mib() > 48
    del ballast


@pytest.mark.parametrize(("kind", "features"), [("dense", 100), ("sparse", 1000)])
def test_a_fit_does_not_copy_the_rows(kind, features):
    sizes = getattr(single.Memory(), kind)(3000, features, seed=0)
    assert sizes["matrix"] > 2e6
    assert sizes["fit"] < sizes["matrix"] / 2
    assert sizes["partial_fit"] < sizes["matrix"] / 2


def measured(folder, lines, **more):
    record = Record(folder)
    record.start({"seed": 0, "quick": True}, "cbrank bench")
    record.add("tiny", [vars(line) for line in lines])
    for name, value in more.items():
        record.add(name, value)
    record.finish()
    return Findings(Record(folder))


def test_findings_come_back_from_the_folder(tmp_path):
    lines = [
        result("CBR-diag 50", [2.0], "reuters", auc=0.9, cost=2e5),
        result("SGD", [1.0], "reuters", auc=math.nan, cost=1e5),
        Result("reuters", "River LR", "not installed", "why"),
    ]
    memory = {"dense": {"matrix": 100, "fit": 30, "partial_fit": 40}}
    findings = measured(tmp_path, lines, memory=memory, selection={"failed": "alas"})
    assert findings.pair("reuters") == 2 / 50
    assert findings.copied("dense") == 0.4
    assert math.isnan(findings.copied("sparse"))
    assert math.isnan(findings.selection())
    assert findings.record.step("selection") is None
    verdicts = {claim.text: claim.verdict for claim in claims(findings)}
    assert verdicts["reuters: a pair over a row of SGD"] == "holds"
    assert verdicts["news20: a pair over a row of SGD"] == "not measured"
    made = {table.key: table for table in tables(findings)}
    assert [row.name for row in made["race-reuters"].rows] == ["SGD", "CBR-diag 50"]
    assert [row.name for row in made["missing"].rows] == ["River LR", "cbrank"]
    text = (tmp_path / "results.csv").read_text()
    assert text.splitlines()[2].startswith("reuters,SGD,ok,")
    assert "nan" not in text
    assert "NaN" not in (tmp_path / "bench.json").read_text()


def test_names_are_unique_and_peers_known():
    names = [workload.name for workload in WORKLOADS]
    assert len(set(names)) == len(names)
    assert {peer for workload in WORKLOADS for peer in workload.peers} == set(PEERS)
    assert all(workload.quick[-1] <= workload.cuts[-1] for workload in WORKLOADS if workload.quick)


TINY = Workload(
    name="length",
    title="tiny",
    group="length",
    peers=("CBR 10", "SGD averaged"),
    load=lambda rows, seed: stream(8, "easy", rows, 50, seed),
    cuts=(100, 200, 300),
    quick=(60, 120, 180),
)


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr(steps, "WORKLOADS", [TINY])

    def run(*arguments):
        options = ["bench", "--quick", "--out", str(tmp_path / "out"), *arguments]
        outcome = CliRunner().invoke(main, options)
        if outcome.exception and not isinstance(outcome.exception, SystemExit):
            raise outcome.exception
        return outcome

    return run


def test_the_command_measures_reports_and_goes_on(bench, tmp_path):
    pytest.importorskip("matplotlib", reason="the figures need matplotlib")
    outcome = bench("--only", "length")
    assert outcome.exit_code == 0
    assert "Measurements: 1, done before: 0." in outcome.stderr
    assert "Memory of a dense fit over the caller's matrix" in outcome.stdout
    out = tmp_path / "out"
    for name in ("results.csv", "tables/claims.md", "figures/cost-n.svg"):
        assert (out / name).stat().st_size > 0
    facts = json.loads((out / "bench.json").read_text())
    assert facts["settings"] == {"seed": 0, "quick": True}
    assert facts["finished"]
    assert facts["versions"]["numba"]
    page = (out / "report.md").read_text()
    assert "(figures/cost-n.svg)" in page
    again = bench("--only", "length", "--only", "length")
    assert "Measurements: 1, done before: 1." in again.stderr
    assert again.stdout == outcome.stdout


def test_a_failed_measurement_is_named_and_tried_again(bench, monkeypatch):
    pytest.importorskip("matplotlib", reason="the figures need matplotlib")
    outcomes = iter([worker.Failed("alas"), {}])

    def memories(seed, quick):
        if isinstance(outcome := next(outcomes), Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(single, "memories", memories)
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
    kept = {"settings": {"seed": 0, "quick": True}, "steps": {}}
    (tmp_path / "out" / "bench.json").write_text(json.dumps(kept))
    outcome = bench(*arguments)
    assert outcome.exit_code == code
    assert sentence in outcome.stderr
    (tmp_path / "out" / "bench.json").write_text("{}")
    assert "is not a benchmark's" in bench("--only", "memory").stderr


def test_data_sets_that_are_missing_are_told(monkeypatch):
    monkeypatch.setattr(steps, "_here", list)
    outcome = CliRunner().invoke(main, ["bench", "--only", "covtype-raw"])
    assert outcome.exit_code == 2
    assert "Left out, not on this machine: covtype." in outcome.stderr
