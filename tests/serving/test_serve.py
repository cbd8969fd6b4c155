"""The command: who may, signals, HTTPS, and what is refused before anything is served."""

import contextlib
import os
import select
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from served import HANG, Server
from served_clients import make_model

import cbrank
from cbrank.cli import main

TLS = Path(__file__).parent / "tls"
ROW = {"t": 1, "a": 2.5, "city": "Oslo"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this is no Linux"),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("model"))


def run(*words):
    return CliRunner().invoke(main, [*map(str, words)])


def token(file, role, *more):
    return run("token", file, "--role", role, "--name", role, *more).stdout.strip()


def test_tokens_https_and_signals(launcher, model, tmp_path):
    tokens = tmp_path / "tokens"
    keys = {role: token(tokens, role) for role in ("score", "learn")}
    options = "--tokens", tokens, "--certificate", TLS / "cert.pem", "--key", TLS / "key.pem"
    server = Server(launcher, model, tmp_path / "store", *options)
    trusted = ssl.create_default_context(cafile=TLS / "cert.pem")
    with (
        server,
        httpx.Client(base_url=f"https://localhost:{server.port}", verify=trusted) as client,
    ):
        deadline = time.monotonic() + HANG
        while time.monotonic() < deadline:
            try:
                client.get("/ping")
                break
            except httpx.TransportError:
                time.sleep(0.02)

        def ask(path, role, body):
            headers = {"Authorization": f"Bearer {keys[role]}"} if role else {}
            return client.post(path, json=body, headers=headers)

        rows = {"rows": [ROW]}
        assert ask("/score", None, rows).status_code == 401
        assert ask("/score", "score", rows).status_code == 200
        assert ask("/learn", "score", rows).status_code == 403
        assert ask("/learn", "learn", {"rows": [ROW | {"y": "yes"}]}).json() == {
            "learned": 1,
            "event": 1,
        }
        run("token", tokens, "--remove", "score")
        keys["admin"] = token(tokens, "admin")
        assert ask("/score", "admin", rows).status_code == 401  # not before it is told
        os.kill(server.process, signal.SIGHUP)
        deadline = time.monotonic() + HANG
        while ask("/score", "admin", rows).status_code != 200:
            assert time.monotonic() < deadline
        assert ask("/score", "score", rows).status_code == 401
        file = client.get("/model", headers={"Authorization": f"Bearer {keys['admin']}"}).content
        assert server.end(signal.SIGTERM) == 0
    for secret in keys.values():
        assert secret not in server.told()
    [newest] = (tmp_path / "store").glob("model-000000000001-*")
    assert newest.read_bytes() == file
    got = tmp_path / "got.model"
    got.write_bytes(file)
    assert cbrank.load(got).n_seen_.sum() > 1
    assert run("serve", "--check", tmp_path / "store").exit_code == 0


@contextlib.contextmanager
def started(model, folder, *options, **environment):
    """Start the command itself; yield its process."""
    line = [
        sys.executable,
        "-m",
        "cbrank",
        "serve",
        model,
        "--store",
        folder / "store",
        "--port",
        "0",
    ]
    given = {
        name: value for name, value in os.environ.items() if name != "PYTHONMALLOC"
    } | environment
    process = subprocess.Popen([*line, *options], stderr=subprocess.PIPE, text=True, env=given)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_hangup_while_the_service_starts_does_not_end_it(tmp_path, model):
    tokens = tmp_path / "tokens"
    token(tokens, "score")
    # With this variable it is one process from the beginning.
    with started(model, tmp_path, "--tokens", tokens, PYTHONMALLOC="malloc") as process:
        status = Path(f"/proc/{process.pid}/status")
        while not is_ignored(status, signal.SIGHUP) and not is_caught(status, signal.SIGHUP):
            assert process.poll() is None
        told, hangups = [], 0
        while not any('"serving"' in line for line in told):
            process.send_signal(signal.SIGHUP)
            hangups += 1
            time.sleep(0.02)
            if select.select([process.stderr], [], [], 0)[0]:
                told.append(process.stderr.readline())
            assert process.poll() is None, told
        assert hangups > 10
        assert '"tokens read again"' in process.stderr.readline()
        process.terminate()
        assert process.wait(HANG) == 0


def is_ignored(status, number):
    return signals(status, "SigIgn") >> (number - 1) & 1


def is_caught(status, number):
    return signals(status, "SigCgt") >> (number - 1) & 1


def signals(status, name):
    [line] = [line for line in status.read_text().splitlines() if line.startswith(f"{name}:")]
    return int(line.split()[1], 16)


def test_a_service_returns_memory_in_pages(tmp_path, model):
    with started(model, tmp_path) as process:
        while '"serving"' not in (line := process.stderr.readline()):
            assert line
        environment = Path(f"/proc/{process.pid}/environ").read_text().split("\0")
        assert "PYTHONMALLOC=malloc" in environment


def test_what_waits_is_answered_before_the_end(launcher, model, tmp_path):
    with Server(launcher, model, tmp_path / "store") as server:
        server.wait_ready()
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/events") as events:
            assert events.readline().startswith(b"retry:")  # a page that is open keeps nobody up
            begin = time.monotonic()
            assert server.end(signal.SIGTERM) == 0
            assert time.monotonic() - begin < 8


def test_a_store_is_for_one_process(launcher, model, tmp_path):
    with Server(launcher, model, tmp_path / "store") as server:
        server.wait_ready()
        code, told = launcher.run(["serve", model, "--store", tmp_path / "store", "--port", "0"])
        assert (code, "in use by process" in told) == (1, True)
        taken = server.port
        code, told = launcher.run(
            ["serve", model, "--store", tmp_path / "other", "--port", str(taken)]
        )
        assert (code, f"127.0.0.1:{taken} cannot be listened on" in told) == (1, True)
        assert "Traceback" not in told


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "give MODEL and --store DIR"),
        (["m"], "give MODEL and --store DIR"),
        (["m", "--store", "s", "--host", "0.0.0.0"], "--tokens FILE"),
        (["m", "--store", "s", "--host", "example.org"], "--tokens FILE"),
        (["m", "--store", "s", "--key", "k"], "k' does not exist"),
        (["m", "--store", "s", "--wait", "soon"], "not a time such as"),
        (["m", "--store", "s", "--max-body", "big"], "not a size such as"),
        (["--check", "s"], "does not exist"),
    ],
)
def test_what_makes_no_sense_is_refused(words, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run("serve", *words)
    assert found.exit_code == 2
    assert sentence in found.output


def test_a_missing_or_bad_model_is_said(tmp_path):
    found = run("serve", tmp_path / "no.model", "--store", tmp_path / "s", "--port", 0)
    assert found.exit_code == 1
    assert "no.model" in found.output
    bad = tmp_path / "bad.model"
    bad.write_bytes(b"bad")
    found = run("serve", bad, "--store", tmp_path / "s", "--port", 0)
    assert found.exit_code == 1
    assert "bad.model" in found.output
    assert not [*(tmp_path / "s").glob("model-*")]
