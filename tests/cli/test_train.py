"""``cbrank train`` and ``cbrank update`` from the outside: what they print and leave."""

import inspect
import json
import math
import os
import re
import subprocess
import sys

import click
import numpy as np
import pytest
from click.testing import CliRunner
from commands import CHUNK, call, error

import cbrank
from cbrank.cli import main, train
from cbrank.cli.options import parameter_options
from cbrank.cli.progress import Pace, TextReporter
from cbrank.parameters import FLAG, LINEAR, POSITIVE, Number, Other, Parameter
from cbrank.streams import Columns, open_stream
from cbrank.training import Every, Model, Run
from cbrank.training.file_lock import lock_file

# What comes out -----------------------------------------------------------------------------------


def test_training_on_text_prints_what_it_learned_and_leaves_a_model(here):
    out, err = call("train", "rows.svm", "-o", "m", "--C", "0.5")
    assert out == (
        "Learned from 16,884 rows, shuffled, 3,501 of them positive (20.74%), labelled '1', 5 features, C 0.5.\n"
        "AUC 0.9456 (0.9403 to 0.9509) on rows before they were learned from; on the last ones "
        "0.9432 (0.9280 to 0.9585).\n"
        "Model: m\n"
    )
    assert err == ""
    ranker = cbrank.load("m")
    assert ranker.C == 0.5
    assert ranker.n_seen_.tolist() == [13383, 3501]
    assert {path.name for path in here.iterdir()} == {"rows.svm", "more.svm", "table.csv", "m"}


def test_training_on_a_table_keeps_the_meaning_of_its_columns(here):
    out, err = call(
        "train", "table.csv", "--label", "clicked", "--positive", "no", "--id", "id",
        "--categorical", "city=onehot", "--scale", "maxabs", "--C", "1", "-o", "m",
    )  # fmt: skip
    assert out.startswith(
        "Learned from 600 rows, shuffled, 480 of them positive (80.00%), labelled 'no', "
    )
    assert ", 3 features, C 1.\nAUC 0." in out
    assert out.endswith("\nModel: m\n")
    assert err == ""
    model = Model.open("m")
    assert model.columns.feature_names() == ["age", "city=Rome", "city=Oslo"]
    assert model.columns.classes_ == ["yes", "no"]
    assert model.scaler.kind == "maxabs"
    chunk = next(open_stream("table.csv", columns=model.columns, learn=False, labels=False))
    pipeline = cbrank.load("m")
    np.testing.assert_array_equal(pipeline.decision_function(chunk.X), model.scores(chunk.X))


def test_updating_goes_on_and_widens(here):
    call("train", "rows.svm", "--covariance", "diagonal", "--C", "1", "-o", "m")
    out, err = call("update", "m", "more.svm", "-o", "wide")
    assert out.startswith("Learned from 700 rows, in order, 147 of them positive (21.00%), ")
    assert ", 7 features, C 1.\nAUC 0.9" in out
    assert out.endswith("\nModel: wide\n")
    assert err == ""
    assert Model.open("m").ranker.n_features_in_ == 5
    assert Model.open("wide").scaler.kind == "unit"
    assert call("update", "m", "more.svm") == (out.replace("wide", "m"), "")
    assert (here / "m").read_bytes() == (here / "wide").read_bytes()


def test_trained_in_two_goes_is_trained_in_one(here):
    text = (here / "rows.svm").read_text().splitlines(keepends=True)
    (here / "one.svm").write_text("".join(text[:CHUNK]))
    (here / "two.svm").write_text("".join(text[CHUNK:]))
    call("train", "rows.svm", "-o", "whole", "--policy", "reservoir", "--in-order")
    call("train", "one.svm", "-o", "parts", "--policy", "reservoir", "--in-order")
    call("update", "parts", "two.svm")
    whole, parts = cbrank.load("whole"), cbrank.load("parts")
    np.testing.assert_array_equal(whole.coef_, parts.coef_)
    np.testing.assert_array_equal(
        whole._learned.state.buffer.random, parts._learned.state.buffer.random
    )


def test_a_full_model_widens_too(here):
    call("train", "rows.svm", "more.svm", "-o", "m")
    ranker = Model.open("m").ranker
    assert ranker.covariance_.shape == (7, 7)
    narrow = Model.open("m").ranker.coef_
    assert narrow[0, 5:].any()


def test_json_is_one_object_for_machines(here):
    out, err = call("train", "rows.svm", "-o", "m", "--C", "0.5", "--json")
    assert json.loads(out) == {
        "event": "done", "rows": 16884, "positives": 3501, "positive": "1", "skipped": 0, "features": 5, "C": 0.5,
        "progressive_auc": pytest.approx(0.9456, abs=1e-4),
        "progressive_auc_interval": pytest.approx([0.9403, 0.9509], abs=1e-4),
        "recent_auc": pytest.approx(0.9432, abs=1e-4),
        "recent_auc_interval": [pytest.approx(0.93, abs=0.01), pytest.approx(0.966, abs=0.01)],
        "model": "m",
        "shuffled": True, "sorted_by_label": False, "auc_fell": False, "auc_by_age": [],
    }  # fmt: skip
    assert all(json.loads(line)["event"] in {"note", "progress"} for line in err.splitlines())


def test_quiet_says_nothing(here):
    assert call("train", "rows.svm", "-o", "m", "--quiet") == ("", "")
    assert call("update", "m", "rows.svm", "--quiet") == ("", "")


def test_several_passes(here):
    assert call("train", "rows.svm", "--passes", "2", "-o", "m")[0].startswith(
        "Learned from 33,768"
    )
    assert error("train", "-", "--passes", "2", "-o", "m") == (
        "<stdin> can be read once, not in several passes."
    )


def test_skipped_rows_are_told_and_counted(here):
    (here / "bad.svm").write_text("1 1:x\n-1 1:1\n1 1:2\n1 2:\n")
    out, err = call("train", "bad.svm", "-o", "m", "--on-error", "skip")
    assert out.startswith(
        "Learned from 2 rows, shuffled, 1 of them positive (50.00%), labelled '1' (2 malformed ones skipped), 1 "
    )
    assert err == (
        "Note: bad.svm, line 1, column 5: the value 'x' is not a finite number.\n"
        "Note: bad.svm, line 4, column 5: the value '' is not a finite number.\n"
    )
    assert error("train", "bad.svm", "-o", "m", "--on-error", "skip", "--max-errors", "1") == (
        "bad.svm, line 4, column 5: the value '' is not a finite number. "
        "That is one more malformed row than the 1 allowed."
    )


def test_one_label_is_enough_to_begin_with(here):
    (here / "one.svm").write_text("2 1:1\n2 1:2\n")
    assert "say which label is the positive one by --positive." in error(
        "train", "one.svm", "-o", "m"
    )
    (here / "one.svm").write_text("1 1:1\n1 1:2\n")
    out, err = call("train", "one.svm", "--C", "1", "-o", "m")
    assert out == (
        "Learned from 2 rows, shuffled, 2 of them positive (100.00%), labelled '1', 1 features, C 1.\nModel: m\n"
    )
    assert err == "Note: only one of the two labels was seen, so there is no ranking yet.\n"
    call("update", "m", "rows.svm")


def test_rows_sorted_by_label_are_told_with_the_cure(here):
    rows = sorted((here / "rows.svm").read_text().splitlines(keepends=True))
    (here / "sorted.svm").write_text("".join(rows))
    line = "train", "sorted.svm", "--positive", "1", "--C", "1", "-o", "m"
    out, err = call(*line, "--in-order", "--json")
    assert json.loads(out)["sorted_by_label"] is True
    assert json.loads(err.splitlines()[-1])["note"] == (
        "the rows are sorted by label: all 13,383 negative rows come before row 13,384, the first "
        "positive one. One pass over them teaches one label at a time: shuffle them by --shuffle, "
        "unless rows will come in this order."
    )
    _, err = call("update", "m", "sorted.svm")
    assert err.startswith("Note: the rows are sorted by label: all 13,383 negative rows")
    _, err = call(*line, "--in-order", "--passes", "2")
    assert err.startswith("Note: the rows are sorted by label: all 13,383 negative rows")
    out, err = call(*line, "--json")
    assert err == ""
    assert json.loads(out)["sorted_by_label"] is False


def learned_by(here, *arguments, piped=None):
    """Return the weights of a model, what the command printed, and the bytes of the file."""
    child = [sys.executable, "-m", "cbrank", *arguments, "--C", "1", "-o", "x"]
    done = subprocess.run(
        child, input=piped and (here / piped).read_bytes(), capture_output=True, check=True
    )
    return cbrank.load("x").coef_.tolist(), done.stdout.decode(), (here / "x").read_bytes()


def test_rows_of_files_are_shuffled_and_those_of_standard_input_are_not(here):
    by_default, told, data = learned_by(here, "train", "rows.svm")
    assert told.startswith("Learned from 16,884 rows, shuffled, 3,501 of them positive (20.74%), ")
    assert data == learned_by(here, "train", "rows.svm", "--shuffle", "--seed", "0")[2]
    assert by_default != learned_by(here, "train", "rows.svm", "--seed", "1")[0]
    piped, told, _ = learned_by(here, "train", "-", piped="rows.svm")
    assert told.startswith("Learned from 16,884 rows, in order, 3,501 of them positive (20.74%), ")
    in_order, told, _ = learned_by(here, "train", "rows.svm", "--in-order")
    assert told.startswith("Learned from 16,884 rows, in order, ")
    assert piped == in_order != by_default
    assert learned_by(here, "train", "-", "--shuffle", piped="rows.svm")[0] == by_default
    (here / "-").write_bytes((here / "rows.svm").read_bytes())  # which `-` never means
    assert learned_by(here, "train", "-", piped="rows.svm")[0] == in_order


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_rows_of_a_named_pipe_are_learned_in_order(here):
    os.mkfifo(here / "pipe.svm")
    with subprocess.Popen(["sh", "-c", "cat rows.svm > pipe.svm"], cwd=here):
        piped, told, _ = learned_by(here, "train", "pipe.svm")
    assert "rows, in order," in told
    assert piped == learned_by(here, "train", "rows.svm", "--in-order")[0]


def test_rows_of_several_files_are_shuffled_together(here):
    (here / "one.svm").write_text("1 1:1\n" * 500)
    (here / "two.svm").write_text("-1 1:0\n" * 500)
    for options in (["--passes", "2"], []):
        out, err = call("train", "one.svm", "two.svm", "--positive", "1", "-o", "m", *options)
        assert err == ""
    assert "AUC 1.0000" in out


def test_an_update_learns_rows_in_order_unless_it_is_told_to_shuffle(here):
    call("train", "rows.svm", "--C", "1", "-o", "m")
    found = {}
    for options in ([], ["--in-order"], ["--shuffle"], ["--shuffle", "--seed", "1"]):
        out, _ = call("update", "m", "more.svm", "-o", "n", *options)
        how = "shuffled" if "--shuffle" in options else "in order"
        assert out.startswith(f"Learned from 700 rows, {how}, ")
        found[*options] = cbrank.load("n").coef_.tolist()
    assert found[()] == found[("--in-order",)]
    assert len({str(coef) for coef in found.values()}) == 3


def test_rows_of_a_table_are_shuffled_too(here):
    given = "train", "table.csv", "--label", "clicked", "--id", "id", "--categorical", "city=onehot"
    call(*given, "-o", "m")
    assert cbrank.load("m").n_seen_.tolist() == [480, 120]


def test_malformed_rows_are_named_by_their_lines_when_rows_are_shuffled(here):
    with (here / "rows.svm").open("a") as file:
        file.write("1 1:x\n-1 1:1\n")
    for order in ("--shuffle", "--in-order"):
        assert error("train", "rows.svm", "-o", "m", order) == (
            "rows.svm, line 16885, column 5: the value 'x' is not a finite number."
        )
        out, _ = call("train", "rows.svm", "-o", "m", order, "--on-error", "skip")
        how = "shuffled" if order == "--shuffle" else "in order"
        assert out.startswith(
            f"Learned from 16,885 rows, {how}, 3,501 of them positive (20.73%), labelled '1' (1 malf"
        )


# What goes wrong ----------------------------------------------------------------------------------


def test_errors_of_data_and_models_are_one_sentence(here):
    assert error("train", "none.svm", "-o", "m") == "none.svm: there is no such file."
    assert error("train", "table.csv", "-o", "m") == (
        "table.csv: which column is the label? Give --label. Its columns are 'id', 'age', 'city', "
        "'clicked'."
    )
    (here / "empty.svm").touch()
    assert error("train", "empty.svm", "-o", "m") == (
        "There are no rows to learn from in empty.svm."
    )
    assert error("train", "rows.svm", "-o", "no/m") == (
        f"no/m cannot be written: there is no folder {here / 'no'}."
    )
    assert error("train", "rows.svm", "-o", here) == f"{here} is a folder: give a file in it."
    assert "m: No such file" in error("update", "m", "rows.svm")
    assert error("update", "rows.svm", "rows.svm") == "rows.svm is not a cbrank model file."
    cbrank.save(cbrank.CBRanker().partial_fit([[0.0], [1.0]], [0, 1]), "python.model")
    assert "'-1' is neither '0' nor '1'" in error("update", "python.model", "rows.svm")
    assert not (here / "m").exists()


def test_a_full_covariance_of_too_many_features_says_how_large_it_would_be(here):
    (here / "wide.svm").write_text("1 1:1 20000:1\n-1 1:2\n")
    assert error("train", "wide.svm", "-o", "m") == (
        "These rows have 20,000 features so far, whose full covariance takes 3,052 MiB for each "
        "learner, all of it looked at for every pair: train with --covariance diagonal, or with "
        "--covariance full if a full one is meant."
    )
    call("train", "wide.svm", "--covariance", "diagonal", "-o", "m")
    call("train", "rows.svm", "-o", "narrow")
    before = (here / "narrow").read_bytes()
    assert "--covariance diagonal" in error("update", "narrow", "wide.svm")
    assert (here / "narrow").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "rows.svm"], "Missing option '-o' / '--output'"),
        (["train", "-o", "m"], "Missing argument 'DATA...'"),
        (["train", "rows.svm", "-o", "m", "--C", "0"], "0.0 is not in the range x>0"),
        (["train", "rows.svm", "-o", "m", "--eta", "1"], "not in the range 0.5<x<1"),
        (["train", "rows.svm", "-o", "m", "--seed", "-1"], "-1 is not in the range"),
        (["train", "rows.svm", "-o", "m", "--resume"], "--resume needs --checkpoint PATH."),
        (["train", "rows.svm", "-o", "m", "--every", "9"], "--every needs --checkpoint PATH."),
        (["train", "rows.svm", "-o", "m", "--checkpoint", "c", "--every", "soon"], "say 100000"),
        (["train", "rows.svm", "-o", "m", "--checkpoint", "m"], "would both be written to m"),
        (["train", "rows.svm", "-o", "m", "--categorical", "city"], "COLUMN=onehot"),
        (
            [
                "train",
                "table.csv",
                "-o",
                "m",
                "--categorical",
                "a=onehot",
                "--categorical",
                "a=hash:2",
            ],
            "2 times",
        ),
        (["train", "rows.svm", "-o", "m", "--max-width", "2147483648"], "1<=x<=2147483647"),
        (["train", "rows.svm", "-o", "m", "--max-width", f"{10**30}"], "1<=x<=2147483647"),
        (["update", "m"], "Missing argument 'DATA...'"),
    ],
)
def test_wrong_usage_is_exit_2(here, arguments, sentence):
    out, err = call(*arguments, code=2)
    assert out == ""
    assert err.startswith("Usage: ")
    assert sentence in err


@pytest.mark.parametrize("name", ["rows.svm", "link.svm", "hard.svm"])
@pytest.mark.parametrize("data", ["rows.svm", "r*.svm", "link.svm"])
def test_data_are_never_written_over(here, name, data):
    (here / "link.svm").symlink_to("rows.svm")
    (here / "hard.svm").hardlink_to(here / "rows.svm")
    before = (here / "rows.svm").read_bytes()
    call("train", "more.svm", "-o", "m", "--C", "1")
    for arguments in (
        ["train", data, "-o", name],
        ["train", data, "-o", "new", "--checkpoint", name],
        ["update", "m", data, "-o", name],
        ["update", "m", data, "--checkpoint", name, "--resume"],
    ):
        _, err = call(*arguments, code=2)
        option = "--checkpoint" if "--checkpoint" in arguments else "-o"
        assert f"Error: {name} is the data" in err
        assert err.endswith(f"and would be written over: give {option} another file.\n")
    assert (here / "rows.svm").read_bytes() == before


def test_neither_models_nor_locks_nor_standard_input_are_written_over(here, monkeypatch):
    call("train", "more.svm", "-o", "m", "--C", "1")
    (here / "hard").hardlink_to(here / "m")
    _, err = call("update", "m", "rows.svm", "-o", "new", "--checkpoint", "hard", code=2)
    assert "Error: hard is the model, m, and would be written over" in err
    (here / "rows.svm").rename(lock_file("c"))
    _, err = call("train", lock_file("c"), "-o", "new", "--checkpoint", "c", code=2)
    assert "is the data and would be written over: give --checkpoint another file" in err
    with (here / "more.svm").open("rb") as file:
        monkeypatch.setattr("cbrank.cli.files._of_stream", lambda _: os.fstat(file.fileno()))
        _, err = call("train", "-", "-o", "more.svm", code=2)
    assert "more.svm is the data and would be written over: give -o another file" in err


def test_no_two_outputs_are_one_file(here):
    (here / "m").write_text("precious")
    (here / "hard").hardlink_to(here / "m")
    (here / "link").symlink_to("new")
    before = sorted(path.name for path in here.iterdir())
    for options in (
        ["-o", "m", "--checkpoint", "m"],
        ["-o", "hard", "--checkpoint", "m"],
        ["-o", "new", "--checkpoint", "link"],
        ["-o", lock_file("c"), "--checkpoint", "c"],
        ["-o", "m", "--columns", "m"],
        ["-o", "new", "--columns", "new"],
        ["-o", "new", "--columns", "link"],
        ["-o", "new", "--columns", "./new"],
        ["-o", "new", "--checkpoint", "c", "--columns", "c"],
        ["-o", "new", "--checkpoint", "c", "--columns", lock_file("c")],
    ):
        _, err = call("train", "table.csv", "--label", "clicked", *options, code=2)
        assert "would both be written to" in err
    _, err = call(
        "train", "table.csv", "--label", "clicked", "-o", "n", "--columns", "table.csv", code=2
    )
    assert "table.csv is the data and would be written over: give --columns another file." in err
    assert sorted(path.name for path in here.iterdir()) == before
    assert (here / "m").read_text() == "precious"


STREAMS = """
import sys
from pathlib import Path
from cbrank.cli import main

def run(*line):
    try:
        main(line)
    except SystemExit as end:
        Path("codes").open("a").write(f"{end.code}\\n")

run("train", "-", "-o", "new")
run("train", "more.svm", "-o", "m", "--C", "1")
run("update", "m", "more.svm", "--checkpoint", "c")
run("score", "m", "more.svm")
run("score", "m", "-", "-o", "scores")
run("score", "m", "more.svm", "-o", "scores")
run("evaluate", "m", "more.svm")
run("inspect", "m")
run("datasets", "list")
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such shell")
def test_standard_streams_that_are_closed_are_no_mistake(here):
    (here / "run.py").write_text(STREAMS)
    for errors in ("errors", "&-"):
        line = f"'{sys.executable}' run.py <&- >&- 2>{errors}"
        subprocess.run(["/bin/sh", "-c", line], check=True)
    errors = (here / "errors").read_text()
    assert errors.count("standard input is closed: there are no rows to read from '-'.") == 2
    assert errors.count("standard output is closed, and the result would go there.") == 4
    codes = (here / "codes").read_text().split()
    assert codes == ["1", "0", "0", "1", "1", "0", "1", "1", "1"] * 2
    assert "internal" not in errors


def test_a_mistake_of_ours_is_a_sentence_too(here, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(Model, "learn", broken)
    sentence = error("train", "rows.svm", "-o", "m")
    assert sentence.startswith("internal error: ZeroDivisionError: by zero.")
    assert "CBRANK_DEBUG=1" in sentence
    _, err = call("train", "rows.svm", "-o", "m", code=1, env={"CBRANK_DEBUG": "1"})
    assert "Traceback" in err


# Progress -----------------------------------------------------------------------------------------


class Clock:
    """A clock that goes on by `step` at every look."""

    def __init__(self, step=0.0):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


def test_lines_come_after_growing_times(here, capsys):
    run = Run(Model(cbrank.CBRanker(C=0.5), None, Columns()), ["rows.svm"] * 30)
    reporter, clock = TextReporter(), Clock()
    reporter.begin(run)
    reporter.pace = Pace(run, clock)
    for chunks, stream in enumerate(run, 1):
        clock.now = chunks / 2
        reporter.chunk(stream)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" rows, ")[0] for line in lines] == [
        "25,076",
        "50,152",
        "92,612",
        "185,224",
        "362,756",
    ]
    assert re.fullmatch(
        r"50,152 rows, 12,538 rows/s, AUC 0\.9\d{3} \(0\.9\d{3} to 0\.9\d{3}\), since the last line 0\.9\d{3}, "
        r"0:3\d left, 2\.\d of 2\d\.\d MB", lines[1]
    )  # fmt: skip


@pytest.mark.parametrize("shuffle", [False, True])
def test_bytes_are_counted_to_the_last_also_where_rows_are_shuffled(here, shuffle):
    model = Model(cbrank.CBRanker(C=1), None, Columns())
    run = Run(model, ["rows.svm", "more.svm"], passes=2, shuffle=shuffle)
    counts = [run.bytes_read(stream) for stream in run]
    read, totals = zip(*counts, strict=True)
    size = sum((here / name).stat().st_size for name in ("rows.svm", "more.svm"))
    times = 4 if shuffle else 2
    assert list(read) == sorted(read)
    assert {*totals} == {read[-1]} == {times * size}


@pytest.mark.parametrize(
    "ranker", [cbrank.CBRanker(C=0.5), cbrank.CBRanker(), cbrank.OPAUCRanker()]
)
def test_the_auc_since_the_last_line_is_of_the_rows_since(here, ranker):
    run = Run(Model(ranker, None, Columns()), ["rows.svm"])
    pace = Pace(run, Clock(1.0))
    steps = iter(run)
    first = pace.now(next(steps))
    pace.reported()
    before = run.model.ranker.progressive_auc_weight_
    second = pace.now(next(steps))
    assert first["progressive_auc_since"] == first["progressive_auc"]
    both = run.model.ranker.progressive_auc_weight_
    mixed = first["progressive_auc"] * before + second["progressive_auc_since"] * (both - before)
    assert mixed / both == pytest.approx(second["progressive_auc"], abs=1e-5)
    assert second["progressive_auc"] == pytest.approx(ranker.progressive_auc_, abs=1e-6)


@pytest.mark.parametrize(
    "ranker", [cbrank.CBRanker(C=0.5), cbrank.CBRanker(), cbrank.OPAUCRanker()]
)
def test_an_update_tells_the_auc_of_its_own_rows(here, ranker):
    for _ in (run := Run(Model(ranker, None, Columns()), ["rows.svm"])):
        pass
    whole = run.progressive_auc()
    update = Run(run.model, ["rows.svm"])
    assert math.isnan(update.progressive_auc()[1])
    for _ in update:
        pass
    weight, auc = update.progressive_auc()
    assert whole[0] + weight == pytest.approx(ranker.progressive_auc_weight_)
    history = ranker.progressive_auc_history_
    own = history[history["rows"] > 16_884]
    assert auc == pytest.approx(np.average(own["auc"], weights=own["weight"]), abs=1e-9)


def test_further_passes_test_nothing(here):
    aucs = []
    for passes in (1, 3):
        run = Run(Model(cbrank.CBRanker(C=0.5), None, Columns()), ["rows.svm"], passes=passes)
        for _ in run:
            pass
        aucs.append(run.progressive_auc())
    assert aucs[0] == aucs[1]
    assert run.model.ranker.n_seen_.sum() == 3 * 16_884


def test_a_terminal_gets_one_line_that_changes(here, monkeypatch):
    pty = pytest.importorskip("pty", reason="this system has no terminals")
    leader, follower = pty.openpty()
    child = [sys.executable, "-m", "cbrank", "train", "rows.svm", "-o", "m"]
    env = os.environ | {"COLUMNS": "60", "TERM": "xterm"}
    subprocess.run(child, stderr=follower, stdout=subprocess.DEVNULL, check=True, env=env)
    os.close(follower)
    shown = os.read(leader, 2**16).decode()
    os.close(leader)
    assert "16,884 rows, " in shown
    assert "rows/s, AUC 0.9" in shown
    frames = re.sub(r"\x1b\[\S*?[a-zA-Z]", "", shown).split("\r")
    assert max(len(frame.rstrip("\n")) for frame in frames) < 60
    assert shown.endswith("\n")
    assert shown.count("\n") <= 2


def test_checkpoints_are_due_by_rows_or_by_seconds():
    every = Every(rows=100)
    assert [every.due(rows - 40, rows) for rows in (40, 80, 120, 160, 200)] == [0, 0, 1, 0, 1]
    clock = Clock()
    every = Every(seconds=60, clock=clock)
    due = []
    for clock.now in (30, 59, 61, 100, 121, 122):
        due.append(every.due(0, 1))
    assert due == [0, 0, 1, 0, 1, 0]


# Options ------------------------------------------------------------------------------------------


def test_the_options_are_those_of_the_table():
    options = {option.name: option for option in train.command.params}
    taken = inspect.signature(cbrank.CBRanker).parameters.keys() - {
        "shuffle"
    }  # of `fit`, not of files
    own = [name for name in options if name in taken]
    assert own == [parameter.name for parameter in LINEAR if parameter.is_option]
    for name, parameter in ((p.name, p) for p in LINEAR if p.is_option):
        text, _, default = options[name].help.partition("  [default: ")
        assert text == parameter.help
        expected = "" if parameter.default is None else str(parameter.default)
        assert default.removesuffix("]") == expected


@pytest.mark.parametrize(
    ("kinds", "given", "expected"),
    [
        ((Number(float, 0),), "0.5", 0.5),
        ((Number(float, 0),), "0", "0.0 is not in the range x>0."),
        ((Number(float, 0, 1, closed="left"),), "0", 0.0),
        ((Number(float, 0, 1, closed="left"),), "1", "1.0 is not in the range 0<=x<1."),
        ((Number(int, 1, closed="left"),), f"{10**30}", "is not in the range 1<=x<=2147483647."),
        ((POSITIVE, "auto"), "auto", "auto"),
        ((POSITIVE, "auto"), "2", 2.0),
        ((POSITIVE, "auto"), "two", "'two' is not a valid float range."),
        (("fifo", "reservoir"), "lifo", "'lifo' is not one of 'fifo', 'reservoir'."),
        (("balanced", Other("dict", dict), None), "3", {1: 3.0}),
        (("balanced", Other("dict", dict), None), "balanced", "balanced"),
    ],
)
def test_a_kind_of_parameter_is_a_type_of_option(kinds, given, expected):
    @click.command
    @parameter_options([Parameter("some_name", kinds, None, "Meaning.")])
    def command(some_name):
        assert some_name == expected

    result = CliRunner().invoke(command, ["--some-name", given])
    assert result.exit_code == 0 or (result.exit_code == 2 and expected in result.output)


def test_a_flag_has_two_options():
    @click.command
    @parameter_options([Parameter("slow", (FLAG,), False, "Take time.")])
    def command(slow):
        pass

    (option,) = command.params
    assert (option.opts, option.secondary_opts) == (["--slow"], ["--no-slow"])
    assert option.help == "Take time.  [default: no-slow]"


def test_help_names_every_command():
    out, _ = call("--help")
    assert "train" in out
    assert "update" in out
    out, _ = call("train", "--help")
    assert "cbrank train churn.csv --label Churn -o churn.model\n" in out


def test_an_interrupt_while_options_are_looked_at_is_exit_130_too(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "parse_args", interrupted)
    assert CliRunner().invoke(main, ["train", "x", "-o", "m"]).exit_code == 130
