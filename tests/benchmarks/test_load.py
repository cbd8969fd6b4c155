"""A file as traffic: what is sent, when, and what is said of the answers."""

import functools
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("httptools")

import numpy as np
from commands import TABLE, call, error, svmlight
from fake_server import served

from benchmarks.serving.load import main
from benchmarks.serving.sending import Answer, Sender, Target
from benchmarks.serving.servers import serve
from benchmarks.serving.traffic import Delay, Row, Traffic, milliseconds, open_traffic, rows_of
from cbrank.metrics import auc_interval

ROOT = Path(__file__).parents[2]
send, refused = functools.partial(call, command=main), functools.partial(error, command=main)
ROWS = [line.split(",") for line in TABLE.splitlines()[1:]]


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.delenv("CBRANK_TOKEN", raising=False)
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


def load(url, path, *options):
    out, err = send(url, path, "--label", "clicked", "--json", *options)
    return json.loads(out), err


# What is sent -------------------------------------------------------------------------------------


def test_every_row_is_scored_as_it_is_in_the_file_and_then_labelled(table):
    with served() as server:
        facts, _ = load(server.url, table, "--delay", "0")
    sent = [row for body in server.of("/score") for row in body["rows"]]
    assert sorted(sent, key=lambda row: int(row["id"][1:])) == [
        {"id": name, "age": int(age), "city": city} for name, age, city, _ in ROWS
    ]
    assert len(server.labels) == 600
    assert not server.waiting
    assert facts["rows"] == 600
    assert facts["requests"] == {"score": 600, "learn": 600}
    assert facts["labels"] == {"learned": 600}
    assert facts["errors"] == {}


def test_a_label_is_sent_after_its_score_and_is_the_row_s_own(table):
    with served() as server:
        load(server.url, table, "--delay", "50", "--connections", "1")
    label_of, sent_at = {}, {}
    for place, (path, body) in enumerate(server.log):
        if path == "/score":
            [name] = body["ids"]
            label_of[name] = ROWS[int(body["rows"][0]["id"][1:])][3]
            sent_at[name] = len(label_of)
        else:
            [label] = body["labels"]
            assert label["label"] == label_of[label["id"]]
            due = sent_at[label["id"]] + 50
            assert len(label_of) in (due, 600), place
    assert len(server.labels) == 600


def test_rows_and_labels_go_together_as_many_as_asked_for(table):
    with served() as server:
        facts, _ = load(server.url, table, "--rows-per-request", "70", "--delay", "0")
    assert [len(body["rows"]) for body in server.of("/score")].count(70) == 8
    assert max(len(body["labels"]) for body in server.of("/learn")) == 70
    assert facts["requests"]["score"] == 9
    assert len(server.labels) == 600


def test_without_labels_nothing_is_kept_and_the_auc_is_still_known(table):
    with served() as server:
        facts, _ = load(server.url, table, "--no-labels")
    assert not server.of("/learn")
    assert not any(body.keys() - {"rows"} for body in server.of("/score"))
    assert facts["scores"] == 600
    assert facts["auc"] is not None


def test_svmlight_text_goes_by_its_indices(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text(svmlight(40))
    with served() as server:
        out, _ = send(server.url, path, "--delay", "0", "--json", "--connections", "1")
    first = path.read_text().splitlines()[0].split()
    assert server.of("/score")[0]["rows"] == [
        {index: float(value) for index, _, value in (cell.partition(":") for cell in first[1:])}
    ]
    assert {*server.labels.values()} == {"1", "-1"}
    assert json.loads(out)["rows"] == 40


def test_parquet_has_times_and_gaps(tmp_path):
    pd = pytest.importorskip("pandas")
    path = tmp_path / "rows.parquet"
    days = pd.to_datetime(["2024-05-01", None])
    pd.DataFrame({"day": days, "n": [1.5, None], "w": ["x", None], "y": [1, 0]}).to_parquet(path)
    assert [*rows_of(open_traffic([str(path)], "y"))] == [
        Row({"day": "2024-05-01", "n": 1.5, "w": "x"}, "1"),
        Row({"day": None, "n": None, "w": None}, "0"),
    ]


def test_a_table_without_a_label_needs_none_to_be_scored(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,x\n")
    stream = open_traffic([str(path)], None, labelled=False)
    assert [*rows_of(stream)] == [Row({"a": 1, "b": "x"}, None)]


def test_limits(table):
    with served(seconds=0.002) as server:
        facts, _ = load(server.url, table, "--limit", "33", "--rows-per-request", "10")
        assert facts["rows"] == 33
        assert facts["labels"] == {"learned": 33}
        began = time.monotonic()
        facts, _ = load(server.url, table, "--seconds", "0.3", "--connections", "1")
    assert 0 < facts["rows"] < 600
    assert time.monotonic() - began < 5
    assert facts["labels"] == {"learned": facts["rows"]}


def test_the_token_goes_with_each_request_and_a_path_before_it(table, monkeypatch):
    monkeypatch.setenv("CBRANK_TOKEN", "secret")
    with served() as server:
        load(f"{server.url}/below/", table, "--limit", "2", "--delay", "0", "--connections", "1")
    assert {path for path, _ in server.log} == {"/below/score", "/below/learn"}
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer secret"}


# What is said -------------------------------------------------------------------------------------


def test_the_auc_is_that_of_the_scores_against_the_labels(table):
    with served() as server:
        facts, _ = load(server.url, table, "--delay", "5")
    scores = [float(age) for _, age, _, _ in ROWS]
    found = auc_interval([label == "yes" for *_, label in ROWS], scores)
    assert [facts["auc"], facts["auc_low"], facts["auc_high"]] == pytest.approx(found[:3], abs=1e-6)


def test_errors_are_counted_by_status_and_never_repeated(table):
    def disturb(_, number):
        return {3: 429, 5: 503, 7: 503, 9: "hang up"}.get(number)

    with served(disturb=disturb) as server:
        facts, _ = load(server.url, table, "--no-labels", "--connections", "2")
    assert facts["errors"] == {"429": 1, "503": 2, "lost": 1}
    assert facts["reasons"] == {"429": "no.", "503": "no.", "lost": ""}
    assert facts["requests"]["score"] == len(server.log) == 600
    assert facts["rows"] == 596


def test_a_connection_that_is_closed_after_its_answer_is_opened_again(table):
    with served(disturb=lambda _, number: None if number % 5 else "close") as server:
        facts, _ = load(server.url, table, "--delay", "0", "--connections", "3", "--limit", "90")
    assert facts["errors"] == {}
    assert facts["labels"] == {"learned": 90}


def test_in_words(table):
    with served(disturb=lambda _, number: 429 if number == 1 else None) as server:
        out, err = send(server.url, table, "--label", "clicked", "--rate", "3000")
    assert "599 rows scored in " in out
    assert "Not answered as asked: 1 with 429." in out
    assert "Labels: 599 learned." in out
    assert "milliseconds" in out
    assert "waited to be sent" in out
    assert "of 599 scores, each given before its label was sent." in out
    assert err == ""


def test_a_rate_counts_from_when_requests_were_due():
    """A server that stalls once for a while: all requests due meanwhile are late, and it shows."""
    clock = {"now": 0.0}
    rows = [Row({"age": 1}, None)] * 100
    traffic = Traffic(rows, rate=100.0, delay=None)
    pause = {40: 0.5}  # before the answer to this one
    for number in range(100):
        request = traffic.next(clock["now"])
        while isinstance(request, float):
            clock["now"] = request
            request = traffic.next(clock["now"])
        assert request.due == pytest.approx(number / 100)
        clock["now"] += 0.001 + pause.get(number, 0.0)
        body = b'{"rows":[{"score":1.0,"label":"yes"}]}'
        traffic.answered(request, Answer(200, body, 0.0, clock["now"] - request.due))
    late = np.array(traffic.measured.latencies["score"])
    assert (late > 0.01).sum() >= 50
    assert late.max() == pytest.approx(0.501)
    times = milliseconds(late)
    assert times is not None
    assert times["p50"] > 1


def test_exponential_delays_have_their_mean():
    traffic = Traffic([], rate=None, delay=Delay(2.0, exponential=True))
    drawn = [Delay(2.0, exponential=True).draw(traffic._random) for _ in range(5000)]
    assert np.mean(drawn) == pytest.approx(2.0, rel=0.1)
    assert Delay(2.0).draw(traffic._random) == 2.0


def test_a_rate_is_kept(table):
    with served() as server:
        began = time.monotonic()
        facts, _ = load(
            server.url, table, "--rate", "400", "--limit", "200", "--delay", "20ms",
            "--exponential",
        )  # fmt: skip
    assert 0.45 < time.monotonic() - began < 5
    assert facts["labels"] == {"learned": 200}
    assert facts["waited_ms"]["p50"] < 100


def test_a_real_server_serves_the_scores_of_the_model(tmp_path, monkeypatch):
    """The AUC without labels is that of `evaluate`; with labels, each row is learned from once."""
    for package in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    X = random.standard_normal((900, 3)).round(3)
    y = X[:, 0] + X[:, 1] ** 2 + random.standard_normal(900) > 2
    lines = [f"{a},{b or ''},{c},{label}" for (a, b, c), label in zip(X.tolist(), y, strict=True)]
    Path("some.csv").write_text("\n".join(["a,b,c,y", *lines[:600]]))
    Path("rest.csv").write_text("\n".join(["a,b,c,y", *lines[600:]]))
    call("train", "some.csv", "--label", "y", "-o", "some.model")
    expected = json.loads(call("evaluate", "some.model", "rest.csv", "--json")[0])
    with serve(Path("some.model"), Path("some.store")) as server:
        asked = server.url, "rest.csv", "--label", "y", "--json"
        still = json.loads(send(*asked, "--no-labels", "--rows-per-request", "7")[0])
        learning = json.loads(send(*asked, "--delay", "20", "--connections", "3")[0])
    for name in ("auc", "auc_low", "auc_high"):
        assert still[name] == pytest.approx(expected[name], abs=1e-6)
    assert learning["labels"] == {"learned": 300}
    assert learning["errors"] == {}
    assert learning["auc"] == pytest.approx(expected["auc"], abs=0.05)
    replayed = json.loads(call("replay", "some.store", "-o", "again.model", "--json")[0])
    assert replayed["rows"] == 300


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificate")
def test_a_certificate_is_asked_for(table, tmp_path):
    asked = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2"
    asked += " -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(asked.split(), check=True, cwd=tmp_path, capture_output=True)
    with served() as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        url = server.url.replace("http:", "https:")
        facts, _ = load(url, table, "--limit", "20", "--delay", "0", "--ca", tmp_path / "cert.pem")
        told = refused(url, table, "--label", "clicked")
    assert facts["labels"] == {"learned": 20}
    assert "is not trusted" in told
    assert "give it by --ca." in told


# What goes wrong ----------------------------------------------------------------------------------


def test_mistakes_are_told_in_a_sentence(table):
    gone = "http://127.0.0.1:9"
    asked = gone, table, "--label", "clicked"
    assert "no server answers at 127.0.0.1:9" in refused(*asked)
    assert "is not the URL of a server" in refused("ftp://x", table, "--label", "clicked")
    assert "no column 'missing'" in refused(gone, table, "--label", "missing")
    assert "which column is the label? Give --label." in refused(gone, table)
    with served(disturb=lambda *_: 200) as server:
        told = refused(server.url, table, "--label", "clicked")
    assert "is not that of a cbrank service" in told


def test_if_no_row_is_scored_it_has_failed(table, tmp_path):
    with served(disturb=lambda *_: 400) as server:
        out, err = send(server.url, table, "--label", "clicked", code=1)
        assert "600 with 400.\nThe first with 400: no.\n" in out
        assert err == "Error: no row was scored.\n"
        (tmp_path / "empty.csv").write_text("age,clicked\n")
        out, err = send(server.url, tmp_path / "empty.csv", "--label", "clicked")
    assert err == "Note: there are no rows.\n"


def test_a_server_that_goes_away_ends_it_with_what_was_measured(table, monkeypatch):
    monkeypatch.setattr("benchmarks.serving.sending._WITHOUT", 0.3)
    with served() as server:
        traffic = Traffic(rows_of(open_traffic([str(table)], "clicked")), rate=100.0, delay=None)

        def stop():
            if traffic.measured.rows > 10 and server.fileno() >= 0:
                server.socket.close()
                server.disturb = lambda *_: "hang up"

        sender = Sender(Target.of(server.url), traffic, 2, stop)
        sender.run()
    assert "the server is gone" in str(sender.gone)
    assert 10 < traffic.measured.rows < 600
    assert traffic.measured.errors["lost"] >= 1


def test_ctrl_c_prints_what_was_measured(table):
    with served() as server:
        asked = [sys.executable, "-m", "benchmarks.serving.load", server.url, str(table)]
        asked += ["--label", "clicked", "--rate", "50"]
        process = subprocess.Popen(
            asked, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            while len(server.log) < 10 and process.poll() is None:
                time.sleep(0.01)
            os.kill(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130, err
    assert " rows scored in " in out
    assert "No AUC" in out or "AUC 0." in out
