"""Peers, the plain loop, and how they are measured."""

import math
import os

import numpy as np
import pytest
from scipy import sparse
from scipy.special import ndtri
from threadpoolctl import ThreadpoolController

from benchmarks import in_brief, measurements, plain_loop, single_rows
from benchmarks.interleaved import Chunk, Result, Timer, cost_ratio, interleave
from benchmarks.limits import Rates
from benchmarks.measurements import FitMemory
from benchmarks.peers import CBR, PEERS, Peer
from benchmarks.processes import PeakMemory, Process, ProcessFailed, matrix_rate
from benchmarks.roofline import Limits, work
from benchmarks.workloads import WORKLOADS, Split, synthetic
from cbrank import CBRanker
from cbrank.study.plain_loop import empty_state, learn

DENSE = synthetic(8, "noisy", 240, 100, seed=0)
SPARSE = Split(
    sparse.csr_array(np.maximum(DENSE.X, 0)),
    DENSE.y,
    sparse.csr_array(np.maximum(DENSE.X_held, 0)),
    DENSE.y_held,
)
TWINS = (
    " 1", " 5", " 20", " 100", " 200", "loop 10", "10, no averaging", "10, sparse rows", "passes",
    "fixed C",
)  # fmt: skip
ONE_SIZE = [name for name in PEERS if not name.endswith(TWINS)]


@pytest.mark.parametrize("noise", ["easy", "noisy"])
def test_the_plain_loop_is_cbr(noise):
    split = synthetic(12, noise, 600, 0, seed=1)
    state = empty_state(12, 20)
    learn(split.X, split.y, state, 0.25, float(ndtri(0.7)))
    ranker = CBRanker(C=0.25, buffer_size=20, average=False).partial_fit(split.X, split.y)
    np.testing.assert_allclose(state.mu, ranker.coef_[0], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(state.Sigma, ranker.covariance_, rtol=1e-10, atol=1e-13)
    assert state.size.tolist() == [20, 20]


@pytest.mark.parametrize("limit", [None, 5])
def test_the_plain_loop_as_a_peer_goes_along_with_cbr(limit, monkeypatch):
    if limit:
        monkeypatch.setattr(plain_loop, "_PRODUCTS", limit * 50 * 8**2)
    timer = Timer("Plain loop 50", DENSE)
    timer.start()
    chunks = [timer.learn(0, 120), timer.learn(120, 240)]
    end = timer.finish()
    assert [chunk.rows for chunk in chunks] == ([5, 5] if limit else [120, 120])
    assert 0 < end.difference < 1e-12
    whole = CBRanker(C=2**-4, average=False).partial_fit(DENSE.X, DENSE.y)
    if limit:
        assert math.isnan(end.auc)
    else:
        assert end.auc == pytest.approx(whole.score(DENSE.X_held, DENSE.y_held))
    assert isinstance(timer.learner, plain_loop.PlainLoop)
    assert timer.learner.ranker.n_updates_ == whole.n_updates_


def test_pairs_of_easy_streams_fire_seldom_and_of_noisy_ones_often():
    shares = {}
    for noise in ("easy", "noisy"):
        split = synthetic(54, noise, 600, 0, seed=0)
        ranker = CBRanker(C=2**-4).partial_fit(split.X, split.y)
        shares[noise] = ranker.n_updates_ / ranker.n_pairs_
    assert shares["easy"] < 0.05
    assert 0.25 < shares["noisy"] < 0.6


@pytest.mark.parametrize("name", ONE_SIZE)
def test_every_peer_learns_to_rank_the_rows_it_takes(name):
    if missing := PEERS[name].missing():
        pytest.skip(f"{name}: {missing}")
    for split in (DENSE, SPARSE):
        if split.kind in PEERS[name].takes:
            timer = Timer(name, split)
            timer.warm_up()
            timer.start()
            chunks = [timer.learn(0, 100), timer.learn(100, 240)]
            end = timer.finish()
            assert [chunk.rows for chunk in chunks] == [100, 140]
            assert all(chunk.seconds > 0 and chunk.memory >= 0 for chunk in chunks)
            assert end.auc > (0.5 if name == "LibAUC" else 0.6)
            assert bool(end.batch) == (name == "Batch LR" or "one call" in name)


def test_a_stream_in_chunks_gives_the_model_of_one_call():
    timer = Timer("CBR 10", DENSE)
    timer.start()
    chunks = [timer.learn(0, 100), timer.learn(100, 240)]
    whole = CBRanker(C=2**-4, buffer_size=10).partial_fit(DENSE.X, DENSE.y)
    assert timer.finish().auc == pytest.approx(whole.score(DENSE.X_held, DENSE.y_held))
    assert sum(chunk.updates for chunk in chunks) == whole.n_updates_
    assert sum(chunk.pairs for chunk in chunks) == whole.n_pairs_
    assert all(chunk.rate > 1e8 for chunk in chunks)


def test_peers_that_cannot_run_are_named_with_the_reason(monkeypatch):
    absent = Peer("Nobody", CBR, needs={"no_such_module": "there is no cure"})
    monkeypatch.setitem(PEERS, "Nobody", absent)
    pairs = [("tiny", peer) for peer in ("Nobody", "CBR 10", "SGD")]
    nobody, full, sgd = interleave(pairs, {"tiny": SPARSE}, [100, 170, 240], repeats=2)
    assert (nobody.status, nobody.note) == ("not installed", "no no_such_module: there is no cure")
    assert (full.status, full.note) == ("not for these rows", "no sparse rows")
    assert (sgd.status, sgd.rows, sgd.features) == ("ok", 240, 8)
    assert [len(chunks) for chunks in sgd.chunks] == [3, 3]
    assert sgd.least == min(sgd.costs)
    assert sgd.auc > 0.6


def test_processes_have_one_thread():
    with Process() as process:
        info = process.make(ThreadpoolController).call("info")
    assert {library["num_threads"] for library in info} == {1}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            (exec, "raise ImportError('no such name\\nin two lines (/some/where/__init__.py)')"),
            r"^ImportError: no such name in two lines$",
        ),
        ((os._exit, 3), r"^the process ended unexpectedly \(exit code 3\)$"),
    ],
)
def test_failures_in_processes_are_sentences(make, sentence):
    with Process() as process, pytest.raises(ProcessFailed, match=sentence):
        process.make(*make).answer()


def test_ratios_compare_chunk_by_chunk_and_leave_the_lead_in_out():
    def result(*seconds, **more):
        chunks = [Chunk(10, second, 0.0) for second in (9.0, *seconds)]
        return Result("tiny", "", chunks=[chunks], **more)

    assert cost_ratio(result(4.0, 6.0, 80.0), result(2.0, 2.0, 10.0)) == 3.0
    assert cost_ratio(result(5.0, cost=0.5e6), result(1.0, 1.0, cost=0.25e6)) == 2.0


def test_the_rate_of_matrix_products_and_the_peak_of_memory():
    assert 1e8 < matrix_rate() < 1e13
    peak = PeakMemory()
    ballast = np.ones(8 * 2**20)
    assert peak.mib() > 48
    del ballast


def test_limits_of_the_machine_and_what_they_allow():
    lines = [Rates().bytes(d, 1) for d in (8, 54)]
    assert all(1e8 < line[name] < 1e13 for line in lines for name in ("loads", "changes"))
    limits = Limits({"matrix": 1e9, "sizes": lines})
    assert limits.loads(8) >= limits.loads(54) == limits.loads(5000)
    todo = work(20, 50, rows=10, updates=100)
    assert limits.least_seconds(20, todo) >= todo.operations / 1e9
    assert limits.attainable(20, 50, 1 / 3) <= 1e9
    slow = Limits({"matrix": 1e15, "sizes": [{"features": 20, "loads": 1.0, "changes": 1.0}]})
    assert slow.least_seconds(20, todo) == todo.loaded + todo.changed


def test_work_is_at_least_the_product_with_sigma():
    assert work(1000, 50, rows=10, updates=0).operations == 10 * 2 * 1000**2
    assert work(10, 5, 1, 7).operations - work(10, 5, 1, 6).operations >= 10**2


@pytest.mark.parametrize("name", single_rows.CALLERS)
def test_calls_with_one_row(name, monkeypatch):
    pytest.importorskip("river")
    monkeypatch.setattr(single_rows, "_ROWS", 20)
    calls = single_rows._made(name, synthetic(4, "third", 560, 0, seed=0))
    assert all(getattr(calls, kind)(500) > 0 for kind in single_rows.KINDS)


def test_what_is_not_there_is_named(monkeypatch):
    monkeypatch.delenv("CBRANK_DATA", raising=False)
    for measure in (in_brief.streams, in_brief.curves, measurements.one_hot):
        with pytest.raises(ProcessFailed, match=r"tables/\w+.csv.xz is missing"):
            measure(0, True)
    monkeypatch.setattr(in_brief, "find_spec", lambda _: None)
    with pytest.raises(ProcessFailed, match="no msgspec: pip install"):
        in_brief.service(0, True)


@pytest.mark.parametrize(("kind", "features"), [("dense", 100), ("sparse", 1000)])
def test_a_fit_does_not_copy_the_rows(kind, features):
    sizes = getattr(FitMemory(), kind)(3000, features, seed=0)
    assert sizes["matrix"] > 2e6
    assert sizes["fit"] < sizes["matrix"] / 2
    assert sizes["partial_fit"] < sizes["matrix"] / 2


def test_names_are_unique_and_peers_known():
    names = [workload.name for workload in WORKLOADS]
    assert len(set(names)) == len(names)
    peers = {peer for workload in WORKLOADS for peer in workload.peers}
    assert peers | {"CBR 50, sparse rows", "CBR 10, sparse rows"} == set(PEERS)
    assert all(workload.quick[-1] <= workload.ends[-1] for workload in WORKLOADS if workload.quick)
