"""The page "Serving": its commands work as they stand, and its tables say what is so."""

import re
import runpy
import shutil
import subprocess
import urllib.request
from pathlib import Path

import pytest
from fake_server import served
from pages import BLOCK, commands_of, run, same, write_files

for package in ("httptools", "httpx", "msgspec", "starlette", "uvicorn"):
    pytest.importorskip(package)

from benchmarks.serving.servers import running
from cbrank.cli.serve import command as serve
from cbrank.serving.limits import Limits
from cbrank.serving.rules import RULES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "serving.md").read_text("utf-8")
SOURCE = ROOT / "src" / "cbrank" / "serving"


@pytest.fixture
def churn(tmp_path, monkeypatch):
    """A folder with the table and the model of the page before, and a free port."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CBRANK_TOKEN", raising=False)
    write_files((ROOT / "docs" / "five_minutes.md").read_text("utf-8"), tmp_path)
    write_files(PAGE, tmp_path)
    run("python make_churn.py")
    run("cbrank train churn.csv --label churned -o churn.model --quiet")
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("curl"), reason="the page's commands are those of curl")
def test_every_command_prints_what_the_page_says(churn):
    first, *_ = re.findall(r"```sh\n(cbrank serve .*)\n", PAGE)
    words = first.split()
    with running("-m", *words, "--port", "PORT", log=churn / "log") as server:
        here = f"127.0.0.1:{server.port}"
        (churn / "churn.py").write_text(
            (churn / "churn.py").read_text().replace("127.0.0.1:8000", here)
        )
        for block in BLOCK.findall(PAGE):
            for line, told in commands_of(block):
                printed = run(line.replace("127.0.0.1:8000", here))
                assert same(told, printed), f"{line}\n{printed}"
        if shutil.which("sqlite3"):
            back_it_up(churn)
    assert PAGE.count("```console") == len(BLOCK.findall(PAGE))


def back_it_up(folder):
    """Follow the page while the service runs, then bring another service up from the copy."""
    [recipe] = re.findall(r"```sh\n(mkdir backup\n.*?)```", PAGE, re.DOTALL)
    *copying, check = recipe.splitlines()
    for line in copying:
        subprocess.run(line, shell=True, check=True)
    assert "backup is sound." in run(check)
    asked = ["-m", "cbrank", "serve", "backup/churn.model", "--store", "backup", "--port", "PORT"]
    with running(*asked, log=folder / "second.log") as server:
        now = urllib.request.urlopen(f"{server.url}/model", timeout=10).read()
    assert now == (folder / "now.model").read_bytes()


def rows_under(heading):
    """Return the cells of the table under a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_limits_are_those_of_the_command_and_of_the_guard():
    defaults = {option.opts[0]: str(option.default) for option in serve.params if option.opts}
    limits = Limits()
    of_guard = {
        "--max-body": limits.body,
        "--memory": limits.memory,
        "--max-rows": limits.rows,
        "--max-columns": limits.columns,
        "": limits.depth,
        "--rate": limits.rate,
        "--max-connections": limits.connections,
        "--timeout": limits.seconds,
    }
    found = {row[0].strip("`"): row[1] for row in rows_under("Limits")}
    for option, default in found.items():
        if option:
            assert defaults[option] == default
    types = {option.opts[0]: option.type for option in serve.params if option.opts}
    for option, value in of_guard.items():
        told = types[option].convert(found[option], None, None) if option else int(found[option])
        assert told == value, option


def test_paths_and_roles_are_those_of_the_rules():
    told = {
        request.strip("` "): row[3]
        for row in rows_under("Run it")
        for request in row[0].split(", ")
    }
    rules = {
        f"{rule.method} {rule.path.replace('{model}', 'churn')}": rule.role or "nobody is asked"
        for rule in RULES
        if "{version}" not in rule.path and "{file}" not in rule.path
    }
    assert told == rules


def test_statuses_are_those_of_the_code():
    told = {int(row[0]) for row in rows_under("Answers")}
    code = "".join(path.read_text("utf-8") for path in SOURCE.glob("*.py"))
    used = {int(status) for status in re.findall(r"\bRefused\(\s*(\d{3})\b", code)}
    assert used <= told
    assert told <= used | {200, 304, 408, 409, 404}


def client(folder):
    write_files(PAGE, folder)
    return runpy.run_path(str(folder / "client.py"))["Client"]


def test_the_client_has_thirty_lines(tmp_path):
    write_files(PAGE, tmp_path)
    lines = (tmp_path / "client.py").read_text().splitlines()
    assert len([line for line in lines if line.strip() and '"""' not in line]) <= 32


def test_the_client_repeats_a_request_with_its_key(tmp_path, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    disturbed = {0: 503, 1: "hang up", 2: 429, 4: 503}
    with served(disturb=lambda _, number: disturbed.get(number)) as server:
        service = client(tmp_path)(server.url, "secret")
        assert service.score([{"age": 5}])[0]["score"] == 1.5
        server.waiting.add("a")
        assert service.learn({"a": "yes"}) == [{"id": "a", "result": "learned"}]
        service.http.close()
    keys = [headers["Idempotency-Key"] for headers in server.headers]
    assert [path for path, _ in server.log] == ["/score"] * 4 + ["/learn"] * 2
    assert len({*keys[:4]}) == len({*keys[4:]}) == 1
    assert keys[0] != keys[4]
    assert len({str(body) for _, body in server.log}) == 2
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer secret"}


def test_the_client_gives_up_and_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    with served(disturb=lambda *_: 503) as server:
        service = client(tmp_path)(server.url, tries=3)
        with pytest.raises(RuntimeError, match=r"^no\.$"):
            service.score([{"age": 5}])
        server.disturb = lambda *_: 400
        with pytest.raises(RuntimeError, match=r"^no\.$"):
            service.score([{"age": 5}])
        service.http.close()
    assert len(server.log) == 4
