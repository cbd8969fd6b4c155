"""``cbrank datasets`` from the outside."""

import json

import pytest
from click.testing import CliRunner

from cbrank import datasets
from cbrank.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A machine that has the embedded data sets only, and no network."""
    monkeypatch.delenv("CBRANK_DATA", raising=False)
    monkeypatch.setenv("CBRANK_CACHE", str(tmp_path / "cache"))
    for proxy in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")
    return lambda *arguments: CliRunner().invoke(main, ["datasets", *arguments])


def test_list_shows_all_and_where_they_are(run):
    result = run("list")
    assert result.exit_code == 0
    header, *lines = result.stdout.splitlines()
    assert header.split() == ["name", "rows", "features", "positive", "grouping", "found"]
    assert [line.split()[0] for line in lines] == datasets.names()
    assert lines[0].split() == ["glass", "214", "9", "32.7%", "inferred", "embedded"]
    assert lines[datasets.names().index("acoustic")].split()[3:] == ["chosen", "not", "here"]


def test_list_for_machines(run):
    facts = {fact["name"]: fact for fact in json.loads(run("list", "--json").stdout)}
    assert list(facts) == datasets.names()
    assert (facts["glass"]["found"], facts["glass"]["found_rows"]) == ("embedded", 214)
    assert (facts["heart"]["found"], facts["heart"]["path"]) == (None, None)


def test_a_sample_says_so(run, tmp_path, monkeypatch):
    (tmp_path / "sector-part.svm.xz").touch()
    monkeypatch.setenv("CBRANK_DATA", str(tmp_path))
    assert "CBRANK_DATA, a sample of 1826 rows" in run("list").stdout
    assert "CBRANK_DATA, a sample of 1826 rows" in run("info", "sector").stdout


def test_info_tells_counts_rule_and_source(run):
    text = run("info", "glass").stdout
    for part in ("Glass Identification", "9 (the paper counts 10)", "the rows of class 1", "32.7%",
                 datasets.info("glass").parts[0].address, "embedded"):  # fmt: skip
        assert part in text
    assert "at most a quarter of the rows" in run("info", "rcv1").stdout
    assert "greater label" in run("info", "farm-ads").stdout
    assert "the rows of classes 1, 2, 3" in run("info", "segment").stdout
    fact = json.loads(run("info", "glass", "--json").stdout)
    assert (fact["title"], fact["paper_features"]) == ("Glass Identification", 10)


@pytest.mark.parametrize(
    ("name", "grouping", "sentence"),
    [
        ("german", "source", "the two classes of the source"),
        ("segment", "inferred", "inferred: the paper does not say"),
        ("reuters", "chosen", "chosen here: the paper does not say"),
    ],
)
def test_info_says_who_grouped_the_classes(run, name, grouping, sentence):
    assert sentence in run("info", name).stdout
    assert json.loads(run("info", name, "--json").stdout)["grouping"] == grouping
    lines = {line.split()[0]: line.split() for line in run("list").stdout.splitlines()}
    assert grouping in lines[name]


def test_fetch_of_what_is_here_prints_its_path(run):
    result = run("fetch", "glass", "vehicle")
    assert result.exit_code == 0
    assert [line.split(": ")[0] for line in result.stdout.splitlines()] == ["glass", "vehicle"]
    assert "glass.svm.xz" in result.stdout


def test_fetch_goes_on_after_a_failure(run):
    result = run("fetch", "heart", "glass")
    assert result.exit_code == 1
    assert result.stdout.startswith("glass: ")
    assert "heart cannot be fetched" in result.stderr
    assert result.stderr.splitlines()[-1] == "Error: not fetched: heart."


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["info", "glas"], "unknown data set 'glas': did you mean 'glass'?"),
        (["fetch", "glass", "grman"], "unknown data set 'grman': did you mean 'german'?"),
        (["fetch"], "give names of data sets, or --all."),
        (["fetch", "--all", "glass"], "give names of data sets, or --all."),
    ],
)
def test_usage_errors(run, arguments, sentence):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert sentence in result.stderr
