"""Files are replaced whole or not at all."""

import errno
import os
import random
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from forgery import seen_by
from learners import assert_same, make

import cbrank
from cbrank.modelfile import (
    atomic_write,
    read,
    write,
)


def test_a_file_replaced_keeps_its_permissions(path):
    path.touch(mode=0o600)
    cbrank.save(seen_by(make("oam")), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_file_has_the_usual_permissions(path, tmp_path):
    (tmp_path / "usual").touch()
    cbrank.save(seen_by(make("oam")), path)
    assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_the_file_behind_a_link_is_replaced(path, tmp_path):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    path.symlink_to(target)
    for name in ("oam", "uniexp"):
        cbrank.save(seen_by(make(name)), path)
        assert path.is_symlink()
        assert_same(cbrank.load(target), seen_by(make(name)))
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("place", ["no folder/model", "file/model", "."])
def test_a_place_that_cannot_be_written_is_said(place, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="could not be written"):
        cbrank.save(seen_by(make("oam")), tmp_path / place)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_what_is_no_file_is_not_replaced(path):
    os.mkfifo(path)
    with pytest.raises(OSError, match="is there and is not a file"):
        cbrank.save(seen_by(make("oam")), path)
    assert path.is_fifo()


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_whatever_fails_the_old_file_stays(call, failure, path, monkeypatch):
    def fail(*arguments):
        raise failure

    cbrank.save(seen_by(make("oam")), path)
    before = path.read_bytes()
    monkeypatch.setattr(*((os, "fsync") if call == "fsync" else (Path, "replace")), fail)
    sentence = f"{path} could not be written: No space left" if failure.args else "^$"
    with pytest.raises(type(failure), match=sentence):
        cbrank.save(seen_by(make("cbr")), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_the_caller_may_fail_too(path):
    def write_half():
        with atomic_write(path) as file:
            file.write(b"new")
            raise EOFError

    path.write_bytes(b"old")
    with pytest.raises(EOFError):
        write_half()
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


FULL_DISK = """
import resource, sys
import numpy as np
from cbrank.modelfile import write
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write(sys.argv[1], {"a": np.ones(10**6)}, {})
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_file_that_finds_no_room_is_said_and_taken_away(path):
    path.write_bytes(b"old")
    command = [sys.executable, "-c", FULL_DISK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert f"{path} could not be written: File too large" in done.stdout
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


ENDLESS = """
import sys
import numpy as np
from cbrank.modelfile import write
print("begun", flush=True)
for number in range(10**9):
    write(sys.argv[1], {"a": np.full(2**16, number)}, {"number": number})
"""


def test_a_writer_killed_at_any_moment_leaves_a_whole_file(path):
    write(path, {"a": np.zeros(2**16, int)}, {"number": 0})
    rng = random.Random(0)
    for _ in range(2):
        command = [sys.executable, "-c", ENDLESS, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "begun\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.1 + 0.1 * rng.random())
            process.send_signal(signal.SIGKILL)
        arrays, facts = read(path)
        assert (arrays["a"] == facts["number"]).all()
