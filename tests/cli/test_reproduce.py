"""``cbrank reproduce`` from the outside."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from commands import outcome_of, wait_for_lines
from scipy.sparse import csr_array

from cbrank.cli import main
from cbrank.datasets.convert import write_svmlight

SMALL = ["--quick", "--jobs", "1", "--runs", "1", "--no-report", "--scaling", "unit"]

INTERRUPTIBLE = """
import signal
from cbrank.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
main()
"""


@pytest.fixture(autouse=True)
def embedded_only(tmp_path_factory, monkeypatch):
    monkeypatch.delenv("CBRANK_DATA", raising=False)
    monkeypatch.setenv("CBRANK_CACHE", str(tmp_path_factory.mktemp("cache")))


def run(*arguments, **environment):
    return outcome_of(main, "reproduce", *arguments, env=environment)


def test_the_table_goes_to_stdout_and_all_else_to_stderr(tmp_path):
    out = tmp_path / "deep" / "study"
    result = run(*SMALL, "--datasets", "glass,acoustic", "--methods", "Uni-Exp",
                 "--methods", "opauc, batch lr", "--out", out)  # fmt: skip
    assert result.exit_code == 0
    assert "glass" in result.stdout
    assert "acoustic" not in result.stdout
    assert "Left out, not on this machine: acoustic." in result.stderr
    assert "cbrank datasets fetch acoustic" in result.stderr
    assert "Tasks: 3, done before: 0." in result.stderr
    assert sorted(path.name for path in out.iterdir()) == [
        "curves.csv", "results.csv", "study.json",
    ]  # fmt: skip
    again = run(*SMALL, "--datasets", "glass", "--methods", "Uni-Exp,OPAUC,Batch LR", "--out", out)
    assert "Tasks: 3, done before: 3." in again.stderr
    assert again.stdout == result.stdout


@pytest.mark.slow
def test_rivals_are_added_on_demand(tmp_path):
    for option, count in (("--no-rivals", 7), ("--rivals", 10)):
        result = run(*SMALL, "--datasets", "glass", option, "--out", tmp_path)
        assert f"Tasks: {count}," in result.stderr
        assert result.exit_code == 0


def test_the_report_is_written(tmp_path):
    pytest.importorskip("matplotlib", reason="the report's figures need matplotlib")
    result = run("--quick", "--jobs", 1, "--runs", 1, "--datasets", "glass,vehicle",
                 "--methods", "CBR_FIFO,OPAUC,OAM_seq", "--out", tmp_path)  # fmt: skip
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == f"Report: {tmp_path / 'report.html'}"


def test_what_the_report_lacks_is_told_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("--quick", "--jobs", 1, "--runs", 1, "--datasets", "glass",
                 "--methods", "Uni-Exp,OAM_seq", "--out", tmp_path)  # fmt: skip
    assert result.exit_code == 0
    assert result.stderr.startswith(
        "The report leaves out figures: matplotlib is not installed; "
        "pip install 'cbrank[report]'.\nTasks: "
    )
    assert result.stdout.splitlines()[-1] == f"Report: {tmp_path / 'report.html'}"
    assert (tmp_path / "tables" / "table-3-unit.md").exists()
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--datasets", "glas"], "unknown data set 'glas': did you mean 'glass'?"),
        (["--methods", "CBR_FIF"], "unknown method 'CBR_FIF': did you mean 'CBR_FIFO'?"),
        (["--scaling", "minmax"], "unknown scaling 'minmax': there are unit, standard, none."),
        (["--datasets", "glass", "--methods", "OPAUCr"], "none of these methods is for any"),
        (["--runs", "0"], "0 is not in the range"),
        (["--jobs", "0"], "0 is not in the range"),
    ],
)
def test_usage_errors_say_what_would_be_right(tmp_path, arguments, sentence):
    result = run(*arguments, "--out", tmp_path)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not list(tmp_path.iterdir())


def test_bad_folders_are_sentences(tmp_path):
    small = [*SMALL, "--datasets", "glass", "--methods", "Uni-Exp"]
    assert run(*small, "--out", tmp_path).exit_code == 0
    result = run(*small, "--seed", "1", "--out", tmp_path)
    assert result.exit_code == 1
    assert "holds a study of other settings (seed)" in result.stderr
    assert run(*small, "--seed", "1", "--fresh", "--out", tmp_path).exit_code == 0
    (tmp_path / "file").touch()
    result = run(*small, "--out", tmp_path / "file" / "folder")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    result = run(*SMALL, "--datasets", "acoustic", "--out", tmp_path)
    assert result.exit_code == 1
    assert "none of the data sets is on this machine" in result.stderr


def test_a_failed_task_is_told_kept_and_tried_again(tmp_path):
    data, out = tmp_path / "data", tmp_path / "study"
    data.mkdir()
    arguments = [*SMALL, "--datasets", "heart,glass", "--methods", "Uni-Exp", "--out", out]
    (data / "heart.svm").write_text("1 1:0.5\n-1 2:0.25\n")
    result = run(*arguments, CBRANK_DATA=str(data))
    assert result.exit_code == 1
    told = [line for line in result.stderr.splitlines() if "Uni-Exp on heart" in line]
    assert len(told) == 1
    assert "ValueError" in told[0]
    assert "expected 270 rows for heart, found 2" in told[0]
    assert "glass" in result.stdout
    assert (out / "results.csv").read_text().count(",failed,") == 1

    X, labels = np.random.RandomState(0).standard_normal((270, 13)), 1 + (np.arange(270) < 120)
    write_svmlight(data / "heart.svm.gz", csr_array(X), labels)
    (data / "heart.svm").unlink()
    result = run(*arguments, CBRANK_DATA=str(data))
    assert result.exit_code == 0
    assert "Tasks: 2, done before: 1." in result.stderr
    assert (out / "results.csv").read_text().count(",ok,") == 2
    assert ",failed," not in (out / "results.csv").read_text()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_says_how_to_go_on(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "reproduce", "--quick", "--datasets", "german",
         "--out", tmp_path, "--jobs", "2"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    wait_for_lines(tmp_path / "results.csv", 3, process)
    os.killpg(process.pid, signal.SIGINT)
    printed, said = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, "")
    # joblib's resource tracker, a process of its own, may still speak of its folders after us.
    assert "Interrupted: the same command goes on from here." in said.splitlines()
    assert "Traceback" not in said


def test_help_is_quick_to_import():
    code = (
        "import sys; from cbrank.cli import reproduce, datasets;"
        "print([m for m in ('numba', 'sklearn', 'joblib', 'matplotlib') if m in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "[]"
