"""``cbrank train --checkpoint``: runs that are stopped, killed or refused, and go on."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest
from commands import CHUNK, call, error

import cbrank
from cbrank.training import Model, Run
from cbrank.training.file_lock import alone, lock_file

SHUFFLED = ("--checkpoint", "c", "--every", "1")
KEPT = ("--checkpoint", "c", "--every", CHUNK, "--in-order")


@pytest.fixture
def stopped(here, monkeypatch):
    """A run that ended at its second chunk, with a checkpoint of the first."""

    def learn(model, chunk, learn=Model.learn):
        if chunk.position.rows > CHUNK:
            raise KeyboardInterrupt
        learn(model, chunk)

    with monkeypatch.context() as patch:
        patch.setattr(Model, "learn", learn)
        call("train", "rows.svm", "-o", "m", *KEPT, code=130)
    assert {"c", "m"} & {path.name for path in here.iterdir()} == {"c"}
    return here


def test_a_resumed_run_says_so_and_gives_the_same_bytes(stopped):
    _, err = call("train", "rows.svm", "-o", "m", *KEPT, "--resume")
    assert err == "Note: going on after 8,192 rows, from c.\n"
    _, err = call("train", "rows.svm", "-o", "clean", "--checkpoint", "c", "--resume", "--in-order")
    assert err == "Note: there is no checkpoint c: starting from the beginning.\n"
    assert (stopped / "m").read_bytes() == (stopped / "clean").read_bytes()
    assert not (stopped / "c").exists()
    assert not lock_file("c").exists()


@pytest.mark.parametrize("options", [[], ["--passes", "2"], ["--holdout", "20%"], ["--in-order"]])
def test_rows_killed_after_any_chunk_go_on_in_the_same_order(here, monkeypatch, options):
    line = "train", "rows.svm", "more.svm", "-o", "m", "--C", "1", *SHUFFLED
    line = *line, *options, "--resume"
    calls, chunks = [], []
    learn = Model.learn

    def fail(model, chunk):
        chunks.append(len(chunk.y))
        if calls and len(chunks) == calls[-1]:
            raise KeyboardInterrupt
        learn(model, chunk)

    monkeypatch.setattr(Model, "learn", fail)
    monkeypatch.setattr("cbrank.training.shuffling.AT_ONCE", 3000)
    told = call(*line)
    expected, steps = (here / "m").read_bytes(), len(chunks)
    for stop in {2, 3, steps // 2, steps}:
        (here / "m").unlink()
        chunks.clear()
        calls.append(stop)
        call(*line, code=130)
        calls.clear()
        assert call(*line)[0] == told[0]
        assert (here / "m").read_bytes() == expected
        assert not (here / "c").exists()


def test_a_checkpoint_of_rows_in_another_order_is_refused(here, monkeypatch):
    def learn(model, chunk, learn=Model.learn):
        learn(model, chunk)
        os.kill(os.getpid(), signal.SIGTERM)

    line = "train", "rows.svm", "-o", "m", *SHUFFLED
    with monkeypatch.context() as patch:
        patch.setattr(Model, "learn", learn)
        _, err = call(*line, code=143)
    rows = int(cbrank.load("c").n_seen_.sum())
    assert 15_000 < rows <= 16_384
    assert f"Stopped after {rows:,} rows. They are in c" in err
    assert error(*line, "--resume", "--in-order") == (
        "c is the checkpoint of a run with shuffle=True, and this one has shuffle=False: give the same "
        "options, or another checkpoint."
    )
    assert "seed=0, and this one has seed=1" in error(*line, "--resume", "--seed", "1")
    call(*line, "--resume")
    call("train", "rows.svm", "-o", "clean")
    assert (here / "m").read_bytes() == (here / "clean").read_bytes()


def test_what_is_said_of_the_order_of_labels_survives_a_stop(here, monkeypatch):
    rows = sorted((here / "rows.svm").read_text().splitlines(keepends=True))
    (here / "rows.svm").write_text("".join(rows))
    line = "train", "rows.svm", "--positive", "1", "--C", "1", "-o", "m", "--in-order"

    def learn(model, chunk, learn=Model.learn):
        learn(model, chunk)
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Model, "learn", learn)
        call(*line, *KEPT, code=143)
    out, err = call(*line, *KEPT, "--resume")
    assert (out, err.partition("\n")[2]) == call(*line)


def test_a_checkpoint_is_a_model_file(stopped):
    assert cbrank.load("c").n_seen_.sum() == CHUNK


def test_a_checkpoint_is_never_written_over_by_another_run(stopped):
    before = (stopped / "c").read_bytes()
    assert error("train", "rows.svm", "-o", "m", *KEPT) == (
        "c is there, from a run that did not end: go on with it by --resume, or remove it."
    )
    assert error("train", "rows.svm", "-o", "m", *KEPT, "--resume", "--C", "1") == (
        "c is the checkpoint of a run with C=None, and this one has C=1.0: give the same options, "
        "or another checkpoint."
    )
    call("train", "rows.svm", "-o", "other")
    assert "command='train'" in error("update", "other", "rows.svm", *KEPT, "--resume")
    with (stopped / "rows.svm").open("a") as file:
        file.write("1 1:1\n")
    assert error("train", "rows.svm", "-o", "m", *KEPT, "--resume").startswith(
        "rows.svm has changed since reading stopped: its size was "
    )
    assert (stopped / "c").read_bytes() == before


def test_a_file_that_is_no_checkpoint_is_refused(here):
    call("train", "more.svm", "-o", "c")
    assert error("train", "rows.svm", "-o", "m", *KEPT, "--resume") == (
        "c is a model file, not a checkpoint."
    )
    (here / "c").write_bytes((here / "c").read_bytes()[:-9])
    assert error("train", "rows.svm", "-o", "m", *KEPT, "--resume").startswith("c is damaged")


def test_two_processes_on_one_checkpoint_are_refused_and_stale_locks_are_not(here):
    lock_file("c").write_text("cbrank 4711")
    call("train", "more.svm", "-o", "m", *KEPT)
    with alone("c"):
        assert error("train", "more.svm", "-o", "m", *KEPT) == (
            f"c is in use by process {os.getpid()}: wait for it, or give this one a checkpoint of "
            "its own."
        )


@pytest.mark.parametrize("text", ["4711", "notes", "\n"])
def test_a_file_that_is_no_lock_of_ours_is_left_alone(here, text):
    (here / "c.lock").write_text(text)
    call("train", "more.svm", "-o", "m", *KEPT)
    assert (here / "c.lock").read_text() == text
    lock_file("c").write_text(text)
    assert error("train", "more.svm", "-o", "m", *KEPT) == (
        f"{lock_file('c')} is in the way: it is not the lock of a checkpoint. Move it, or give "
        "another checkpoint."
    )
    assert lock_file("c").read_text() == text


def test_a_checkpoint_for_another_model_is_refused(here, monkeypatch):
    call("train", "more.svm", "-o", "m")
    call("train", "more.svm", "-o", "other", "--C", "2")
    with monkeypatch.context() as patch:
        patch.setattr(Model, "learn", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        call("update", "m", "rows.svm", *KEPT, code=130)
    assert "began with another model" in error("update", "other", "rows.svm", *KEPT, "--resume")
    before = (here / "c").read_bytes()
    call("update", "other", "rows.svm")
    assert "began with another model" in error("update", "other", "rows.svm", *KEPT, "--resume")
    assert (here / "c").read_bytes() == before
    call("update", "m", "rows.svm", *KEPT, "--resume")


def test_an_update_that_was_stopped_when_all_was_done_is_not_done_twice(here, monkeypatch):
    call("train", "more.svm", "-o", "m")
    call("update", "m", "rows.svm", *KEPT)
    done = (here / "m").read_bytes()
    assert call("update", "m", "rows.svm", *KEPT, "--resume") == (
        "",
        "Note: m has learned from these files already; without --resume it would again.\n",
    )
    assert (here / "m").read_bytes() == done
    assert not lock_file("c").exists()
    call("update", "m", "rows.svm", "--resume", code=2)
    with monkeypatch.context() as patch:
        patch.setattr("cbrank.training.Checkpoint.remove", lambda _: None)
        call("update", "m", "rows.svm", *KEPT)
    done = (here / "m").read_bytes()
    call("update", "m", "rows.svm", *KEPT, "--resume")
    assert (here / "m").read_bytes() == done
    assert not (here / "c").exists()


def test_a_full_disk_loses_nothing(stopped, monkeypatch):
    before = (stopped / "c").read_bytes()

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("cbrank.atomic.os.fsync", full)
        assert error("train", "rows.svm", "-o", "m", *KEPT, "--resume") == (
            "c could not be written: No space left on device."
        )
    assert (stopped / "c").read_bytes() == before
    (stopped / "full").mkdir()
    (stopped / "full" / "m").touch()

    def write(model, path, write=Model.write, **facts):
        if str(path) == "full/m":
            raise OSError(errno.ENOSPC, "full/m could not be written: No space left on device")
        write(model, path, **facts)

    with monkeypatch.context() as patch:
        patch.setattr(Model, "write", write)
        assert error("train", "rows.svm", "-o", "full/m", *KEPT, "--resume") == (
            "full/m could not be written: No space left on device. All that was learned is in c. "
            "Mend that, and repeat the command with --resume."
        )
    assert cbrank.load("c").n_seen_.sum() == 16884
    call("train", "rows.svm", "-o", "full/m", *KEPT, "--resume")
    call("train", "rows.svm", "-o", "clean", "--in-order")
    assert (stopped / "full" / "m").read_bytes() == (stopped / "clean").read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_in_good_order_also_while_it_waits_for_rows(here, number, code):
    text = (here / "rows.svm").read_bytes()
    line = ["train", "-", "-o", "m", "--checkpoint", "c", "--every", "1", "--resume"]
    catching = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program = catching + f"from cbrank.cli import main; main({line!r})"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        child.stdin.write(text[: 2 * len(text) // 3])
        child.stdin.flush()
        while not (here / "c").exists():
            time.sleep(0.01)
        child.send_signal(number)
        begin = time.monotonic()
        assert child.wait(30) == code
        assert time.monotonic() - begin < 10  # about a second, on a machine that is not busy
        said = child.stderr.read().decode()
    assert "Stopping after the rows at hand; a second signal stops at once." in said
    assert said.endswith(
        "Stopped after 8,192 rows. They are in c: the same command with --resume goes on.\n"
    )
    subprocess.run([sys.executable, "-c", program], input=text, check=True, capture_output=True)
    call("train", "rows.svm", "-o", "clean", "--in-order")
    assert cbrank.load("m").coef_.tobytes() == cbrank.load("clean").coef_.tobytes()
    assert not (here / "c").exists()


def test_a_signal_before_the_first_rows_says_that_nothing_is_learned(here, monkeypatch):
    def opened(run, open_=Run._open):
        os.kill(os.getpid(), signal.SIGTERM)
        return open_(run)

    monkeypatch.setattr(Run, "_open", opened)
    _, err = call("train", "rows.svm", "-o", "m", *KEPT, code=143)
    assert err.endswith("Stopped after 0 rows. Nothing is learned yet.\n")
    assert not {"m", "c"} & {path.name for path in here.iterdir()}


def test_without_a_checkpoint_a_signal_says_that_nothing_is_kept(here, monkeypatch):
    def learn(model, chunk, learn=Model.learn):
        learn(model, chunk)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Model, "learn", learn)
    _, err = call("train", "rows.svm", "-o", "m", "--in-order", code=143)
    assert err.endswith(
        "Stopped after 8,192 rows. Nothing is kept, since there is no --checkpoint.\n"
    )
    assert not (here / "m").exists()
