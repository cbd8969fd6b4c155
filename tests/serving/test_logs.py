"""Logs: a line for each event, whatever it holds."""

import io
import json
import logging
import os
import signal
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served import HANG, Server
from served_clients import make_model

from cbrank.serving import logs
from cbrank.serving.tokens import make

SECRET = "what came in a request"
ANY = st.text(max_size=20) | st.integers() | st.floats() | st.none() | st.lists(st.text(max_size=5))


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def restored():
    """Logging as it was before."""
    root, ours = logging.getLogger(), logging.getLogger("cbrank")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:], ours.level = before[0], before[2]
    root.setLevel(before[1])


def record_of(event, facts=None, name="cbrank.serving", level=logging.INFO, exc_info=None):
    record = logging.LogRecord(name, level, "", 0, event, None, exc_info)
    record.facts = facts or {}
    return record


@given(st.text(max_size=20), st.dictionaries(st.sampled_from("abc"), ANY, max_size=3))
def test_whatever_is_said_is_one_line(event, facts):
    record = record_of(event, facts)
    line = logs.Lines().format(record)
    assert line.isascii()
    assert line.isprintable()
    read = json.loads(line, parse_constant=pytest.fail)
    assert read["event"] == event
    assert [*read][:3] == ["time", "level", "event"]
    record.msg = "event"
    assert logs.Text().format(record).isprintable()


def test_facts_do_not_pass_for_others():
    read = json.loads(
        logs.Lines().format(record_of("a", {"level": "x", "time": "y", "event": "z"}))
    )
    assert (read["level"], read["event"]) == ("info", "a")
    assert read["time"].endswith("Z")


def raised():
    try:
        raise KeyError(SECRET)
    except KeyError as error:
        return type(error), error, error.__traceback__


@pytest.mark.parametrize("form", [logs.Lines(), logs.Text()])
def test_words_of_exceptions_and_of_others_are_left_out(form):
    line = form.format(record_of("not scored", exc_info=raised(), level=logging.ERROR))
    assert "KeyError" in line
    assert "test_logs.py:" in line
    assert SECRET not in line
    other = record_of("got %s\nfuture: " + SECRET, name="asyncio")
    other.args = (SECRET,)
    assert "got %s" in form.format(other)
    assert SECRET not in form.format(other)


@pytest.mark.usefixtures("restored")
def test_where_lines_go():
    for stream, sign in ((io.StringIO(), "{"), (Terminal(), "1")):
        logs.begin(stream)
        logging.getLogger("uvicorn.error").info("Started")
        logging.getLogger("cbrank.serving").info("1", extra={"facts": {"a": 1}})
        logs.request("GET", "/ping", 200, 0.0012345, None, "")
        logs.request("POST", "/score", 200, 0.5, 3, "shop")
        logging.getLogger("asyncio").error("Task was destroyed")
        lines = stream.getvalue().splitlines()
        assert len(lines) == 4
        if sign == "{":
            _, ping, score, other = map(json.loads, lines)
            assert {"method", "path", "status", "ms"} == ping.keys() - {"time", "level", "event"}
            assert (ping["ms"], score["rows"], score["token"]) == (1.234, 3, "shop")
            assert (other["event"], other["by"]) == ("Task was destroyed", "asyncio")
        else:
            assert lines[2].endswith(
                "request method=POST path=/score status=200 ms=500.0 rows=3 token=shop"
            )


@pytest.mark.usefixtures("restored")
def test_a_log_that_cannot_be_written_stops_nothing(capsys):
    stream = io.StringIO()
    logs.begin(stream)
    stream.close()
    logs.request("GET", "/", 200, 0.1, None, "")
    assert capsys.readouterr() == ("", "")


# The command --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this is no Linux")
def test_the_log_of_a_server(launcher, tmp_path):
    tokens = tmp_path / "tokens"
    secret, _ = make(tokens, "learn", "shop")
    tokens.chmod(0o644)
    model = make_model(tmp_path)
    row = {"t": 1, "a": 2.5, "city": SECRET}
    options = "--tokens", tokens, "--log", "requests"
    with Server(launcher, model, tmp_path / "store", *options) as server:
        server.wait_ready()
        headers = {"Authorization": f"Bearer {secret}"}
        answer = server.ask("POST", "/score", {"rows": [row, row]}, **headers)
        assert answer.status == 200
        assert server.ask("GET", f"/{SECRET.replace(' ', '')}?token={secret}").status == 401
        tokens.write_text("damaged\n")
        signal_and_wait(server, "tokens not read again")
        assert server.ask("GET", "/metrics", **headers).status == 200
        tokens.write_text("")
        signal_and_wait(server, '"tokens read again"')
        assert server.ask("GET", "/metrics", **headers).status == 401
        assert server.end(signal.SIGTERM) == 0
        told = server.told()
    events = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    assert [each["reason"][:6] for each in events if each["event"] == "tokens"] == ["others"]
    requests = [each for each in events if each["event"] == "request" and each["path"] != "/ping"]
    assert [(each["path"], each["status"]) for each in requests] == [
        ("/score", 200),
        ("unknown", 401),
        ("/metrics", 200),
        ("/metrics", 401),
    ]
    assert (requests[0]["rows"], requests[0]["token"]) == (2, "shop")
    assert "serving" in [each["event"] for each in events]
    assert SECRET not in told
    assert SECRET.replace(" ", "") not in told
    assert secret not in told


def signal_and_wait(server, event):
    os.kill(server.process, signal.SIGHUP)
    until = time.monotonic() + HANG
    while event not in server.told():
        assert time.monotonic() < until
        time.sleep(0.01)
