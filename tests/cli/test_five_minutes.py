"""The page "From a file to a ranking in five minutes": its commands print what it says."""

from pathlib import Path

import pytest
from pages import BLOCK, commands_of, run, same, write_files

PAGE = Path(__file__).parents[2] / "docs" / "five_minutes.md"


def test_every_command_prints_what_the_page_says(tmp_path, monkeypatch):
    for package in ("matplotlib", "onnx", "pandas"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text("utf-8")
    write_files(text, tmp_path)
    commands = [command for block in BLOCK.findall(text) for command in commands_of(block)]
    for line, told in commands:
        printed = run(line)
        assert same(told, printed), f"{line}\n{printed}"
    called = {line.split()[1] for line, _ in commands if line.startswith("cbrank")}
    assert called >= {"train", "inspect", "score", "evaluate", "update", "export"}
    assert text.count("```console") == len(BLOCK.findall(text))


@pytest.mark.parametrize(
    ("told", "printed", "alike"),
    [
        ("AUC 0.8202, 3,000 rows\n", "AUC 0.8203, 3,000 rows\n", True),
        ("AUC 0.8202, 3,000 rows\n", "AUC 0.8212, 3,000 rows\n", False),
        ("AUC 0.8202, 3,000 rows\n", "AUC 0.8202, 3,001 rows\n", False),
        ("score 7.281149695134461\n", "score 7.281149695134499\n", True),
        ("score 7.281149695134461\n", "score 7.2812\n", False),
        ("a  1\n", "a 1\n", True),
        ("a 1\n", "b 1\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nb\nc\ne\n", False),
        ("...\nd\n", "a\nd\n", True),
        ("a\n...\n", "a\nb\n", True),
        ("", "", True),
        ("", "a\n", False),
    ],
)
def test_what_is_alike(told, printed, alike):
    assert same(told, printed) is alike
