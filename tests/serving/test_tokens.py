"""Tokens: made once, found again, and files that somebody damaged."""

import json
import os
import stat
import subprocess
import sys
import time

import pytest
from commands import call, error
from hypothesis import given
from hypothesis import strategies as st

from cbrank.serving import tokens
from cbrank.serving.tokens import Tokens, make, read, remove


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tokens.jsonl"


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_a_token_is_found_and_only_its_hash_is_stored(path):
    secret, entry = make(path, "learn", "shop", 60)
    assert secret.startswith("cbr_")
    assert len(secret) == 55
    assert secret[12:] not in path.read_text()
    found = Tokens.open(path).find(secret)
    assert found == ("shop", "learn", entry.made + 60)
    assert Tokens.open(path).find(secret.encode()) == found


def test_the_file_is_its_owner_s_and_stays_as_it_was_made(path):
    make(path, "score")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert tokens.exposure(path) is None
    path.chmod(0o640)
    make(path, "score")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert "may read" in str(tokens.exposure(path))
    path.chmod(0o602)
    assert "may change" in str(tokens.exposure(path))
    assert list(path.parent.iterdir()) == [path]


def test_names_are_unique_and_made_up_if_none_is_given(path):
    for _ in range(3):
        make(path, "score")
    make(path, "admin")
    assert [e.token.name for e in read(path)] == ["score-1", "score-2", "score-3", "admin-1"]
    remove(path, "score-2")
    make(path, "score")
    assert [e.token.name for e in read(path)] == ["score-1", "score-3", "admin-1", "score-2"]
    with pytest.raises(ValueError, match="has a token named 'score-1'"):
        make(path, "learn", "score-1")
    with pytest.raises(ValueError, match="no token named 'score-9'"):
        remove(path, "score-9")


@pytest.mark.parametrize("name", ["", " a", "a\n", "a\x1b[31m", "\u202eabc", "x" * 65, "\ud800"])
def test_names_that_could_forge_lines_are_refused(path, name):
    with pytest.raises(ValueError, match="1 to 64 printable characters"):
        make(path, "score", name)
    assert not path.exists()


def test_expired_tokens_are_nobody_s(path, monkeypatch):
    secret, entry = make(path, "score", None, 60)
    found = Tokens.open(path)
    monkeypatch.setattr(time, "time", lambda: entry.made + 59)
    assert found.find(secret)
    monkeypatch.setattr(time, "time", lambda: entry.made + 60)
    assert found.find(secret) is None


@given(st.one_of(st.text(max_size=80), st.binary(max_size=80), st.just("cbr_" + "é" * 51)))
def test_nothing_else_is_a_token(tmp_path_factory, given):
    path = tmp_path_factory.mktemp("tokens") / "t"
    make(path, "score")
    assert Tokens.open(path).find(given) is None


def test_tokens_that_are_nearly_right_are_nobody_s(path):
    secret, _ = make(path, "score")
    other, _ = make(path, "score")
    found = Tokens.open(path)
    swapped = secret[:12] + other[12:]
    flipped = [
        secret[:at] + ("A" if secret[at] != "A" else "B") + secret[at + 1 :] for at in range(55)
    ]
    for wrong in (swapped, secret[:-1], f"{secret}=", secret * 1000, f" {secret}", *flipped):
        assert found.find(wrong) is None
        assert found.find(wrong.encode()) is None


def test_a_reload_takes_up_changes_and_outlives_damage(path):
    first, _ = make(path, "score")
    found = Tokens.open(path)
    second, _ = make(path, "score")
    assert found.find(second) is None
    assert found.reload() is None
    assert found.find(second)
    remove(path, "score-1")
    assert found.reload() is None
    assert found.find(first) is None
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert "line 1: it is no JSON object" in str(found.reload())
    assert found.find(second)
    path.unlink()
    assert "the tokens before stay: No such file" in str(found.reload())
    assert found.find(second)
    path.write_bytes(b"")
    assert found.reload() is None
    assert found.find(second) is None


FORGERIES = {
    '{"name": "a"}': "it must have name, role",
    "[1]": "it must have name, role",
    "1" * 5000: "it must have name, role",
    "[" * 100_000: "it is no JSON object",
    '{"a": 1, "a": 2}': "a key stands there twice",
    "\x00": "it is no JSON object",
}
CHANGES = {
    "role": ("root", ["admin"], None, "Admin"),
    "name": ("", 7, "a\nb", "\ud800", None),
    "id": ("short", None, "ééééééé\n", "aaaaaaaa\n"),
    "salt": ("00", "0" * 31 + "G", 5),
    "hash": ("", "0" * 63, "\u0660" * 64, []),
    "made": ("2026-13-01T00:00:00Z", "today", 5, None),
    "expires": ("2026-02-30T00:00:00Z", 0, "", "2026-02-03 00:00:00"),
}


@pytest.mark.parametrize(("line", "sentence"), FORGERIES.items(), ids=range(len(FORGERIES)))
def test_forged_lines_are_named(path, line, sentence):
    make(path, "score")
    with path.open("a") as file:
        file.write(f"\n{line}\n")
    with pytest.raises(ValueError, match=rf"tokens.jsonl, line 3: ({sentence})"):
        Tokens.open(path)


@pytest.mark.parametrize("key", CHANGES)
def test_forged_facts_are_named(path, key):
    make(path, "score")
    facts = json.loads(path.read_text())
    for value in CHANGES[key]:
        path.write_text(json.dumps(facts | {key: value}))
        with pytest.raises(ValueError, match=f"line 1: {key} "):
            read(path)


def test_lines_that_are_there_twice_are_named(path):
    make(path, "score")
    line = path.read_text()
    path.write_text(line + line)
    with pytest.raises(ValueError, match="line 2: name is that of line 1"):
        read(path)
    path.write_text(line + line.replace("score-1", "other"))
    with pytest.raises(ValueError, match="line 2: id is that of line 1"):
        read(path)


@given(st.data())
def test_any_damage_is_a_sentence_or_the_tokens(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("tokens") / "t"
    make(path, "score", "Zoë", 60)
    make(path, "learn")
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole)))
        whole[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    path.write_bytes(whole)
    try:
        entries = read(path)
    except ValueError as fault:
        sentence = str(fault)
    else:
        sentence = ""
    if sentence:
        assert sentence.startswith(f"{path}, line ")
        return
    again = path.with_name("again")
    again.write_text("".join(f"{entry.line()}\n" for entry in entries), encoding="utf-8")
    assert read(again) == entries


def test_years_long_ago_are_written_as_they_are_read(path):
    make(path, "score")
    path.write_text(
        path.read_text().replace('"expires": null', '"expires": "0001-01-01T00:00:00Z"')
    )
    before = lines_of(path)
    make(path, "score")
    assert lines_of(path)[:1] == before


def test_what_is_no_file_of_tokens_is_refused(path, monkeypatch):
    os.mkfifo(path)
    with pytest.raises(ValueError, match="is not a file"):
        read(path)
    path.unlink()
    path.write_bytes(b"\n" * 100)
    monkeypatch.setattr(tokens, "_MOST_BYTES", 99)
    with pytest.raises(ValueError, match="no file of tokens"):
        read(path)


def test_processes_that_add_tokens_at_once_lose_none(path):
    program = f"from pathlib import Path; from cbrank.serving.tokens import make\nfor _ in range(5): make(Path({str(path)!r}), 'score')"
    both = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert sorted(e.token.name for e in read(path)) == sorted(f"score-{n}" for n in range(1, 11))


# The command -------------------------------------------------------------------------------------


def test_the_command_prints_a_token_once(path):
    out, err = call("token", path, "--role", "learn", "--name", "shop", "--expires", "90d")
    assert Tokens.open(path).find(out.rstrip("\n")).name == "shop"
    assert err.startswith("shop (learn, ends: ")
    out, err = call("token", path)
    head, line = out.splitlines()
    assert head.split() == ["name", "role", "made", "ends"]
    assert line.split()[:2] == ["shop", "learn"]
    assert err == ""
    (entry,) = read(path)
    assert entry.token.expires == entry.made + 90 * 86_400
    assert entry.hash.hex() not in out
    assert call("token", path, "--remove", "shop")[0] == ""
    assert call("token", path) == ("", "There are no tokens in it.\n")


def test_the_command_shows_what_has_ended_and_who_may_read(path):
    make(path, "score", None, -5)
    path.chmod(0o644)
    out, err = call("token", path)
    assert out.endswith("Z (has ended)\n")
    assert err == f"Note: others than its owner may read {path}: chmod 600 keeps it to the owner.\n"


@pytest.mark.parametrize(
    "options",
    [
        ("--name", "a"),
        ("--expires", "1d"),
        ("--role", "score", "--remove", "a"),
        ("--role", "root"),
        *(
            ("--role", "score", "--expires", time)
            for time in ("0d", "1y", "-5m", "d", "9" * 30 + "d", "\u0663d")
        ),
    ],
)
def test_wrong_usage(path, options):
    call("token", path, *options, code=2)
    assert not path.exists()


def test_errors_of_the_command(path):
    assert error("token", path) == f"{path}: No such file or directory."
    assert error("token", path, "--remove", "a") == f"{path}: there is no such file."
    nowhere = path.parent / "no" / "tokens"
    assert "there is no folder" in error("token", nowhere, "--role", "score")
    path.write_text("{}\n")
    sentence = error("token", path, "--role", "score")
    assert sentence.startswith(f"{path}, line 1: it must have name, role")
    assert path.read_text() == "{}\n"
