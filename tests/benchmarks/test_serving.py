"""``make serving``: rates, ratios, and what counts as flat."""

import math

import numpy as np
import pytest

pytest.importorskip("msgspec")
pytest.importorskip("httptools")

from commands import outcome_of
from fake_server import served

from benchmarks.serving import __main__ as command
from benchmarks.serving import servers, soak
from benchmarks.serving.measuring import Bench, Compared, Kind, Stint
from benchmarks.serving.sending import Answer, Request

SCORE = Kind("/score", [b'{"rows":[{"age":1}]}', b'{"rows":[{"age":2}]}'])


def test_a_stint_sends_bodies_over_and_over_for_its_time():
    with served() as server:
        stint = Stint(0.3, (SCORE, None)).run(server, connections=2)
    assert len(server.log) == len(stint.latencies[0]) > 10
    assert 0 < stint.rate() <= len(server.log) / 0.29
    assert 0 < stint.percentile(50) <= stint.percentile(99)


def test_kinds_keep_their_rates_beside_each_other():
    stint = Stint(10.0, (SCORE, 10.0), (Kind("/learn", [b"{}"]), 30.0))
    now, sent = 5.0, []
    while (found := stint.next(now)) is not None:
        if isinstance(found, Request):
            assert found.due <= now
            sent.append(found.path)
        else:
            now = found
    assert sent.count("/score") == pytest.approx(100, abs=1)
    assert sent.count("/learn") == pytest.approx(300, abs=1)


def test_an_answer_that_is_not_as_asked_ends_the_measurement():
    stint = Stint(1.0, (SCORE, None))
    request = stint.next(1.0)
    assert isinstance(request, Request)
    with pytest.raises(ValueError, match="/score was answered with 503: full"):
        stint.answered(request, Answer(503, b"full", 0.0, 0.1))


def test_ratios_are_medians_of_pairs():
    compared = Compared("score", "1/s", "echo", 0.6, pairs=[(6, 10), (9, 10), (14, 20)])
    assert compared.ratio == 0.7
    assert compared.spread == (0.6, 0.9)
    assert compared.reached()
    assert not Compared("p99", "ms", "quiet", 3.0, most=True, pairs=[(31, 10)]).reached()


def test_the_page_has_each_ratio_beside_its_target():
    compared = Compared("single-row score", "1/s", "echo", 0.6, pairs=[(5000, 10000)])
    page = command._page({"german": [compared]}, 1.25, 0.4)
    assert "| single-row score | 5,000 1/s | 10,000 1/s (echo) | 0.50 (0.50 to 0.50) |" in page
    assert "at least 0.60" in page
    assert "The disk takes 1.25 ms" in page
    assert "at work for at most 40% of the time" in page


def test_what_is_flat():
    random = np.random.default_rng(0)
    noise = (100 + random.standard_normal(12)).tolist()
    growing = [100 + minute for minute in range(12)]
    assert soak.is_flat("memory_mib", noise)
    assert not soak.is_flat("memory_mib", growing)
    assert soak.is_flat("p99_ms", [1 + 0.01 * minute for minute in range(12)])
    minutes = [soak.Minute(100.0 + at, 1.0, 2.0, 5.0, math.nan) for at in range(15)]
    said = {each.name: str(each) for each in soak.judged(minutes)}
    assert said["memory_mib"].startswith("memory_mib: not flat, +1.0000 a minute")
    assert said["p50_ms"].startswith("p50_ms: flat")
    assert said["waiting"] == "waiting: not known"


def test_data_that_are_not_there_are_named(monkeypatch):
    monkeypatch.delenv("CBRANK_DATA", raising=False)
    assert servers.DATA[0].why_not() == ""
    assert servers.DATA[2].why_not()
    told = outcome_of(command.main, "--only", "nothing")
    assert told.exit_code == 2
    assert "unknown data 'nothing'" in told.output


def test_an_embedded_set_becomes_a_table(tmp_path):
    lines = servers.DATA[0].write(tmp_path).read_text().splitlines()
    assert lines[0].startswith("x1,x2,")
    assert lines[0].endswith(",class")
    assert len(lines) == 1001


def test_the_echo_echoes(tmp_path):
    for package in ("starlette", "uvicorn"):
        pytest.importorskip(package)
    with servers.echo(tmp_path) as echo:
        stint = Stint(0.2, (Kind("/echo", SCORE.bodies), None)).run(echo, connections=2)
    assert len(stint.latencies[0]) > 10


def test_tasks_are_named_by_what_is_measured_and_the_round():
    bench = Bench.__new__(Bench)
    bench.compared = [Compared("a", "", "", 1.0), Compared("b", "", "", 1.0)]
    assert bench.tasks(2) == ["a, 1", "b, 1", "a, 2", "b, 2"]
