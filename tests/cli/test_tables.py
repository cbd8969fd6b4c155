"""``cbrank train`` on tables as people have them: the first command works."""

import csv
import gzip
import io
import json
import os
import signal
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from commands import call, error, outcome_of
from pyarrow import parquet
from real_data import LABELS, real, real_table

import cbrank
from cbrank import modelfile
from cbrank.cli import main
from cbrank.training import Run
from cbrank.training.holdout import Holdout

ROWS = 400
RNG = np.random.RandomState(0)
TRUTH = RNG.random_sample(ROWS) < 0.25
MIXED = np.arange(ROWS) * 7 % ROWS


def made(rows=ROWS):
    """Return a table with all that tables have: numbers, gaps, words, dates, a flag and an id."""
    age = (RNG.normal(40, 9, ROWS) + 8 * TRUTH).round(2)
    frame = pd.DataFrame(
        {
            "id": [f"c-{row:05}" for row in range(ROWS)],
            "age": age,
            "pay": np.where(RNG.random_sample(ROWS) < 0.1, np.nan, (99 * age + 1000).round(2)),
            "city": np.where(TRUTH, "Oslo", "Rome, IT")[RNG.permutation(ROWS)],
            "since": pd.date_range("2020-01-01", periods=ROWS).strftime("%Y-%m-%d")[MIXED],
            "member": RNG.choice(["yes", "no", "?"], ROWS),
            "left": np.where(TRUTH, "Yes", "No"),
        }
    )
    return frame[:rows]


FRAME = made()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("table.csv", index=False)
    return tmp_path


def train(*options, data="table.csv", label="left", model="x.model"):
    """Train; return the result, and what was told on the way as JSON objects."""
    out, err = call("train", data, "--label", label, "-o", model, "--json", *options)
    told = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    return json.loads(out), told


def taken(told):
    """Return what columns were taken for."""
    (columns,) = [item["columns"] for item in told if item["event"] == "columns"]
    return {column["column"]: column["taken_as"] for column in columns}


def notes(told):
    return [item["note"] for item in told if item["event"] == "note"]


def learned(path="x.model"):
    """Return the arrays of a model and what it knows, but not of the files it learned from."""
    arrays, facts = modelfile.read(path)
    facts.pop("last_run", None)
    facts["columns"]["facts"].pop("decimal", None)
    return {name: array.tobytes() for name, array in arrays.items()}, facts


KINDS = {
    "id": "left out", "age": "number", "pay": "number", "city": "category", "since": "date",
    "member": "category",
}  # fmt: skip


def test_the_first_command(folder):
    result, told = train()
    assert taken(told) == KINDS
    assert (result["rows"], result["positive"], result["skipped"]) == (ROWS, "Yes", 0)
    assert result["positives"] == TRUTH.sum()
    assert result["progressive_auc"] > 0.6
    low, high = result["progressive_auc_interval"]
    assert low < result["progressive_auc"] < high
    out, err = call("train", "table.csv", "--label", "left", "-o", "x.model")
    assert err.splitlines()[0].split() == ["column", "taken", "as", "example", "gaps"]
    assert "labelled 'Yes'" in out


# Ways to write a table ----------------------------------------------------------------------------


def write(separator=",", end="\n", page="utf-8", decimal="."):
    text = FRAME.to_csv(None, index=False, sep=separator, lineterminator=end, decimal=decimal)
    Path("other.csv").write_bytes(text.encode(page))


@pytest.mark.parametrize(
    "how",
    [
        {"separator": ";"},
        {"separator": "\t"},
        {"separator": "|"},
        {"separator": ";", "decimal": ","},
        {"separator": "\t", "decimal": ",", "page": "utf-16"},
        {"page": "utf-16"},
        {"page": "utf-16-be"},
        {"page": "utf-8-sig"},
        {"page": "utf-8-sig", "end": "\r\n"},
    ],
    ids=str,
)
def test_the_same_table_gives_the_same_model(folder, how):
    train()
    write(**how)
    train(data="other.csv", model="y.model")
    assert learned("y.model") == learned("x.model")


def test_a_pipe_and_packed_files_give_the_same_model(folder):
    train("--in-order")
    data = (folder / "table.csv").read_bytes()
    (folder / "table.csv.gz").write_bytes(gzip.compress(data))
    train("--in-order", data="table.csv.gz", model="y.model")
    assert learned("y.model") == learned("x.model")
    call("train", "-", "--label", "left", "-o", "z.model", "--quiet", input=data)
    assert learned("z.model") == learned("x.model")


def test_parquet(folder):
    frame = FRAME.assign(since=pd.to_datetime(FRAME["since"]))
    parquet.write_table(pa.Table.from_pandas(frame), "table.parquet", row_group_size=90)
    result, told = train(data="table.parquet")
    assert taken(told) == KINDS
    assert result["rows"] == ROWS


def test_truth_values_are_labels(folder):
    FRAME.assign(left=TRUTH).to_parquet("truth.parquet")
    result, told = train(data="truth.parquet")
    assert taken(told) == KINDS
    assert (result["positive"], result["positives"]) == ("True", TRUTH.sum())


def test_cells_that_hold_lists_are_refused(folder):
    FRAME.assign(all=[[1, 2]] * ROWS).to_parquet("lists.parquet")
    told = error("train", "lists.parquet", "--label", "left", "-o", "x.model")
    assert "lists.parquet, column 'all': cells are list" in told
    train("--drop", "all", data="lists.parquet")


# What is said -------------------------------------------------------------------------------------


def test_columns_are_what_is_said(folder):
    _, told = train("--as", "c*=text", "--as", "since,member=drop", "--as", "id=category")
    kinds = taken(told)
    assert (kinds["city"], kinds["id"]) == ("text", "category")
    assert not {"since", "member"} & kinds.keys()
    assert len(kinds) == 4


def test_what_is_said_last_counts(folder):
    _, told = train("--as", "*=text", "--as", "age=number", "--as", "*=category")
    assert {*taken(told).values()} == {"category"}
    _, told = train("--as", "*=text", "--as", "age=number")
    assert {name for name, kind in taken(told).items() if kind != "text"} == {"age"}


def test_all_columns_that_are_not_there_are_named_at_once(folder):
    sentence = error(
        "train", "table.csv", "--label", "left", "-o", "x", "--as", "age=text",
        "--as", "nobody,x*=drop", "--as", "none=date",
    )  # fmt: skip
    assert sentence.startswith("table.csv has no column 'nobody', 'x*', 'none'. Its columns are")


NAMES = [
    'say "hi"',
    "a.b",
    "x, y",
    "größe",
    "two\nlines",
    "c=d",
    " # ",
    "back\\slash",
    "[x*]",
    "日本",
]


def test_the_file_of_columns(folder):
    rows = [[*NAMES, "y"]]
    rows += [
        [*(str(at + row % 7) for at in range(len(NAMES))), str(row % 3 // 2)] for row in range(60)
    ]
    with Path("odd.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    _, told = train("--columns", "c.toml", data="odd.csv", label="y")
    written = tomllib.loads((folder / "c.toml").read_text())["columns"]
    assert written == taken(told)
    assert [*written] == [name.strip() for name in NAMES]
    edited = (folder / "c.toml").read_text().replace('"a.b" = "number"', '"a.b" = "drop"')
    (folder / "c.toml").write_text(edited)
    _, told = train("--columns", "c.toml", data="odd.csv", label="y", model="y.model")
    assert taken(told) == {name: kind for name, kind in written.items() if name != "a.b"}
    assert (folder / "c.toml").read_text() == edited
    _, told = train("--columns", "c.toml", "--as", "größe=category", data="odd.csv", label="y")
    assert taken(told)["größe"] == "category"


def test_a_file_of_columns_that_nobody_edited_decides_nothing(folder):
    line = ["train", "table.csv", "--label", "left", "--quiet", "-o"]
    call(*line, "without.model")
    for name in ("first.model", "second.model"):
        call(*line, name, "--columns", "c.toml")
        assert learned(name) == learned("without.model")
    written = (folder / "c.toml").read_bytes()
    call(*line, "other.model", "--columns", "c.toml", "--seed", "1")  # which it was not written for
    assert cbrank.load("other.model").encoder_.kinds == cbrank.load("other.model").kinds != {}
    assert (folder / "c.toml").read_bytes() == written
    (folder / "c.toml").write_bytes(written + b"\n")
    call(*line, "edited.model", "--columns", "c.toml")
    assert learned("edited.model") != learned("without.model")


@pytest.mark.parametrize("chunk", [1, 2, 4])
@pytest.mark.parametrize("options", [[], ["--in-order"], ["--holdout", "20%", "--passes", "2"]])
def test_a_run_with_a_file_of_columns_goes_on_after_a_kill(folder, monkeypatch, chunk, options):
    monkeypatch.setattr("cbrank.training.shuffling.AT_ONCE", 100)
    monkeypatch.setattr("cbrank.streams.reading.CHUNK_BYTES", 3000)
    line = ["train", "table.csv", "--label", "left", *options, "--columns", "c.toml", "--quiet"]
    call(*line, "-o", "whole.model")
    written = (folder / "c.toml").read_bytes()
    (folder / "c.toml").unlink()
    line += ["--checkpoint", "run.ckpt", "--every", "1", "--resume", "-o", "x.model"]
    stop_at(monkeypatch, "_learn", chunk, line)
    stop_at(monkeypatch, "keep", 2, line)
    call(*line)
    assert (folder / "x.model").read_bytes() == (folder / "whole.model").read_bytes()
    assert (folder / "c.toml").read_bytes() == written


def test_a_file_of_columns_that_is_edited_before_a_run_goes_on_is_not_ignored(folder, monkeypatch):
    monkeypatch.setattr("cbrank.training.shuffling.AT_ONCE", 100)
    line = [
        "train",
        "table.csv",
        "--label",
        "left",
        "--columns",
        "c.toml",
        "--quiet",
        "-o",
        "x.model",
    ]
    line += ["--checkpoint", "run.ckpt", "--every", "1", "--resume"]
    stop_at(monkeypatch, "_learn", 3, line)
    text = (folder / "c.toml").read_text()
    (folder / "c.toml").write_text(text.replace('"age" = "number"', '"age" = "drop"'))
    assert "run.ckpt is the checkpoint of a run with kinds=[]" in error(*line)
    (folder / "c.toml").write_text(text)
    call(*line)


def stop_at(monkeypatch, step, number, line):
    """Run a command that is killed when it does a step of a run for the so manieth time."""
    met, do = [], getattr(Run, step)

    def stop(run, *arguments):
        met.append(run)
        if len(met) == number:
            raise KeyboardInterrupt
        do(run, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Run, step, stop)
        assert outcome_of(main, *line).exit_code == 130


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[columns\n", "c.toml is not TOML"),
        ("x = 1\n", "has no table [columns]"),
        ('[columns]\nage = "numbr"\npay = 3\n', "age = 'numbr', pay = 3. Say one of number"),
        ("[columns]\nage = [1]\npay = {a = 1}\n", "age = [1], pay = {'a': 1}. Say one of number"),
        ("[columns]\n" + "".join(f"a{i} = 1\n" for i in range(99)), "a29 = 1, .... Say one of"),
        ("[columns]\nage = 2020-01-01\n", "age = datetime.date(2.... Say one of number"),
        ("a = " + "[" * 100_000, "c.toml is not a file of columns: its values are nested."),
        ("a = " + "[" * 5000 + "]" * 5000, "its values are nested"),
        ("a = " + "{b = " * 5000, "its values are nested"),
        ("a = " + "9" * 10_000, "c.toml is not TOML: Exceeds the limit"),
        ("a\0b", "c.toml is not TOML: Expected '=' after a key"),
        ('a = "number"'.encode("utf-16"), "c.toml is not UTF-8, as TOML must be: "),
        ("#" * (2**26 + 1), "c.toml is not a file of columns: it has more than 67,108,864 bytes."),
    ],
    ids=range(13),
)
def test_files_of_columns_that_will_not_do(folder, text, complaint):
    (folder / "c.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    line = ["train", "table.csv", "--label", "left", "-o", "x", "--columns", "c.toml"]
    assert complaint in error(*line)


def test_gaps_that_are_said(folder):
    FRAME.fillna({"pay": -999}).to_csv("coded.csv", index=False)
    train()
    _, told = train("--na", "-999", data="coded.csv", model="y.model")
    assert taken(told) == KINDS
    assert (
        cbrank.load("y.model").encoder_.decisions() == cbrank.load("x.model").encoder_.decisions()
    )


def test_a_word_among_numbers_is_a_gap_with_a_count(folder):
    frame = FRAME.astype({"age": object, "pay": object})
    frame.loc[[350, 360], "age"] = "unknown"
    frame.loc[355, "pay"] = "much"
    frame.to_csv("words.csv", index=False)
    _, told = train(data="words.csv")
    assert taken(told)["age"] == "number"
    one, other = notes(told)
    assert one.startswith("column 'age': 2 cells fit no number and count as gaps; the first: ")
    assert one.endswith("words.csv, line 352: 'unknown'.")
    assert other.startswith("column 'pay': 1 cell fits no number and counts as a gap; the first: ")
    assert other.endswith("words.csv, line 357: 'much'.")
    sentence = error("train", "words.csv", "--label", "left", "-o", "x", "--strict")
    assert "words.csv, line 352: 'unknown'" in sentence
    assert "words.csv, line 357: 'much'" in sentence
    assert sentence.endswith("Without --strict they would be gaps.")


def test_rows_without_a_label_are_told(folder):
    frame = FRAME.copy()
    frame.loc[[3, 4, 99], "left"] = ["", "?", "NA"]
    frame.to_csv("gaps.csv", index=False)
    result, told = train(data="gaps.csv")
    assert result["rows"] == ROWS - 3
    assert notes(told) == ["3 rows have no label, and nothing was learned from them."]


def test_the_positive_label_may_be_said(folder):
    assert train("--positive", "No")[0]["positive"] == "No"
    sentence = error("train", "table.csv", "--label", "left", "-o", "x", "--positive", "Maybe")
    assert sentence.endswith(
        "is one too many: no row so far is labelled 'Maybe' (--positive), and there are No, Yes."
    )


def test_labels_of_all_rows_count(folder):
    frame = FRAME.copy()
    frame["left"] = np.where(TRUTH, "b", "a")
    pd.concat([frame[TRUTH][:50], frame[~TRUTH], frame[TRUTH][50:]]).to_csv("s.csv", index=False)
    assert train(data="s.csv")[0]["positive"] == "b"


def test_of_few_rows_there_is_no_auc_yet(folder):
    FRAME[:60].to_csv("few.csv", index=False)  # a block that tests nothing, and not another one
    out, _ = call("train", "few.csv", "--label", "left", "-o", "x.model")
    assert "\nNo AUC yet: too few rows came after those by which columns were decided." in out


@pytest.mark.parametrize("label", ["Yes", "No"])
def test_of_one_label_there_is_no_auc_yet(folder, label):
    FRAME[FRAME["left"] == label].to_csv("one.csv", index=False)
    out, _ = call("train", "one.csv", "--label", "left", "-o", "x.model")
    assert "\nNo AUC yet: all rows learned from have one label.\n" in out
    assert "too few rows" not in out


# Shapes and orders --------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "pieces"), [("auto", 8), ("linear", 1)])
def test_shapes(folder, shape, pieces):
    train("--shape", shape)
    ranker = cbrank.load("x.model")
    assert ranker.pieces == pieces
    call("update", "x.model", "table.csv", "--quiet")


@pytest.mark.parametrize(
    "idle",
    [
        ["--as", "age=text"], ["--columns", "c.toml"], ["--na", "x"], ["--strict"], ["--pieces", "3"],
    ],
)  # fmt: skip
def test_idle_options_are_refused(folder, idle):
    line = ["train", "table.csv", "--label", "left", "-o", "x", "--scale", "none", *idle]
    _, err = call(*line, code=2)
    assert f"{idle[0]}: for tables as they come" in err


def test_a_label_for_svmlight_text_is_refused(folder):
    (folder / "x.svm").write_text("1 1:2\n0 1:3\n")
    assert "is svmlight text" in error("train", "x.svm", "--label", "y", "-o", "x")


def test_a_table_that_is_sorted_is_learned_as_well_as_one_that_is_not(folder):
    FRAME.sort_values("left").to_csv("sorted.csv", index=False)
    result, told = train(data="sorted.csv")
    assert not notes(told)
    assert result["shuffled"]
    assert not result["sorted_by_label"]
    assert result["progressive_auc"] > 0.6
    unmixed, _ = train("--in-order", data="sorted.csv")
    assert not unmixed["shuffled"]
    assert unmixed["sorted_by_label"]


def test_update_goes_on_where_train_ended(folder):
    FRAME[:300].to_csv("one.csv", index=False)
    FRAME[300:].to_csv("two.csv", index=False)
    line = "train", "--in-order", "--label", "left", "--quiet"
    call(*line, "one.csv", "two.csv", "-o", "both.model")
    call(*line, "one.csv", "-o", "x.model")
    call("update", "x.model", "two.csv", "--quiet")
    assert learned() == learned("both.model")


# Rows held out ------------------------------------------------------------------------------------


def spied(monkeypatch):
    """Return the ids of the rows that are learned from, as they are."""
    met, learn = [], Run._learn

    def spy(run, chunk):
        column = chunk.X.columns[0]
        texts = [*column.values]  # noqa: PD011
        met.extend(texts[code] for code in column.codes.tolist())
        learn(run, chunk)

    monkeypatch.setattr(Run, "_learn", spy)
    return met


@pytest.mark.parametrize(
    "options", [[], ["--passes", "2"], ["--in-order"], ["--in-order", "--passes", "2"]]
)
@pytest.mark.parametrize("chunk", [2**25, 3000])
def test_rows_held_out_are_never_learned_from(folder, monkeypatch, options, chunk):
    monkeypatch.setattr("cbrank.streams.reading.CHUNK_BYTES", chunk)
    met = spied(monkeypatch)
    result, _ = train("--holdout", "20%", *options)
    mask = Holdout(0.2, 0).mask(0, ROWS)
    expected = {*FRAME["id"][~mask]}
    assert {*met} == expected
    assert len(met) == len(expected) * (2 if "--passes" in options else 1)
    held = result["held_out"]
    assert (held["rows"], held["positives"]) == (mask.sum(), TRUTH[mask].sum())
    assert held["auc_low"] < held["auc"] < held["auc_high"] <= 1


def test_rows_held_out_when_going_on(folder, monkeypatch):
    monkeypatch.setattr("cbrank.training.shuffling.AT_ONCE", 100)
    whole, _ = train("--holdout", "20%")
    met, learn = spied(monkeypatch), Run._learn

    def stop(run, chunk):
        if len(met) > 150:
            raise KeyboardInterrupt
        learn(run, chunk)

    kept = ["--checkpoint", "run.ckpt", "--every", "1", "--resume"]
    line = ["train", "table.csv", "--label", "left", "-o", "y.model", "--holdout", "20%", *kept]
    monkeypatch.setattr(Run, "_learn", stop)
    assert outcome_of(main, *line, "--quiet").exit_code == 130
    monkeypatch.setattr(Run, "_learn", learn)
    assert Path("run.ckpt").exists()
    out, _ = call(*line, "--json")
    assert json.loads(out)["held_out"] == whole["held_out"]
    assert learned("y.model") == learned("x.model")
    assert sorted(met) == sorted(FRAME["id"][~Holdout(0.2, 0).mask(0, ROWS)])


@pytest.mark.parametrize("options", [[], ["--passes", "2"], ["--in-order"]])
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_the_last_rows_of_all_files_are_held_out(folder, monkeypatch, options, kind):
    monkeypatch.setattr("cbrank.streams.reading.CHUNK_BYTES", 3000)
    frame = FRAME.copy()
    frame.loc[[3, 150, 390], "left"] = None  # rows without a label do not count
    for name, rows in ("b", frame[:300]), ("a", frame[300:]):
        rows.to_parquet(f"{name}.{kind}") if kind == "parquet" else rows.to_csv(
            f"{name}.{kind}", index=False
        )
    met = spied(monkeypatch)
    line = ["train", f"b.{kind}", f"a.{kind}", "--label", "left", "-o", "x.model", *options]
    out, _ = call(*line, "--json", "--holdout", "last-30%")
    kept = frame[frame["left"].notna()]
    held = kept[-119:]  # of 397 rows
    assert {*met} == {*kept["id"][:-119]}
    assert len(met) == 278 * (2 if "--passes" in options else 1)
    found = json.loads(out)["held_out"]
    assert (found["which"], found["rows"]) == ("last", 119)
    assert found["positives"] == (held["left"] == "Yes").sum()
    assert "on the last 119 rows, held out" in call(*line, "--holdout", "last-30%")[0]


def test_malformed_rows_do_not_count_among_the_last(folder, monkeypatch):
    lines = (folder / "table.csv").read_text().splitlines(keepends=True)
    bad = ["c-x,1\n", "c-y,1,2,3,4,5,6,7,8\n"]
    (folder / "table.csv").write_text("".join([*lines[:300], *bad, *lines[300:]]))
    met = spied(monkeypatch)
    result, _ = train("--holdout", "last-25%", "--on-error", "skip", "--in-order")
    assert result["held_out"]["rows"] == 100
    assert met == [*FRAME["id"][:300]]


@pytest.mark.parametrize("options", [[], ["--in-order"]])
def test_a_run_that_holds_out_the_last_rows_goes_on_after_a_kill(folder, monkeypatch, options):
    monkeypatch.setattr("cbrank.training.shuffling.AT_ONCE", 100)
    monkeypatch.setattr("cbrank.streams.reading.CHUNK_BYTES", 3000)
    line = ["train", "table.csv", "--label", "left", "--holdout", "last-20%", *options]
    whole = call(*line, "-o", "whole.model", "--json")[0]
    line += ["--checkpoint", "run.ckpt", "--every", "1", "--resume", "-o", "x.model"]
    stop_at(monkeypatch, "_learn", 3, [*line, "--quiet"])
    out = call(*line, "--json")[0]
    assert (folder / "x.model").read_bytes() == (folder / "whole.model").read_bytes()
    assert json.loads(out)["held_out"] == json.loads(whole)["held_out"]
    other = [option.replace("last-20%", "20%") for option in line]
    stop_at(monkeypatch, "_learn", 3, [*line, "--quiet"])
    assert "with last=True, and this one has last=False" in error(*other)


def test_a_run_that_is_stopped_while_rows_are_counted_learns_nothing(folder, monkeypatch):
    met = spied(monkeypatch)

    def stop(run, stream, follow=Run._follow):
        os.kill(os.getpid(), signal.SIGTERM)
        follow(run, stream)

    monkeypatch.setattr(Run, "_follow", stop)
    line = ["train", "table.csv", "--label", "left", "-o", "x.model", "--holdout", "last-20%"]
    _, err = call(*line, code=143)
    assert "Stopped after 0 rows. Nothing is learned yet." in err
    assert not met


def test_shares_that_will_not_do(folder):
    line = ["train", "table.csv", "--label", "left", "-o", "x"]
    for share in ("last-100%", "last-", "last-0%", "first-10%"):
        call(*line, "--holdout", share, code=2)
    call(*line, "--holdout", "100%", code=2)
    call(*line, "--holdout", "0", code=2)
    data = io.BytesIO((folder / "table.csv").read_bytes())
    assert "can be read once" in error(
        "train", "-", "--label", "left", "-o", "x", "--holdout", "10%", input=data
    )
    data.seek(0)
    assert "can be read once" in error(
        "train", "-", "--label", "left", "-o", "x", "--holdout", "last-10%", input=data
    )


# Odd tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "There are no rows to learn from in x.csv."),
        ("a,left\n", "There are no rows to learn from in x.csv."),
        ("left\nyes\nno\n", "x.csv has no column but the label 'left'."),
        ("a,b\n1,2\n", "x.csv has no column 'left'. Its columns are 'a', 'b'."),
        ("a,left\n1,x\n2,y\n3,z\n", "x.csv: ranking needs two labels, and there are 3: x, y, z."),
        ("a,left\n1,no\n2\n", "x.csv, line 3: 1 cells where the header names 2 columns. To leave"),
        ('a,left\n1,no\n"2,yes\n', "x.csv, line 3, column 'a': a quote that is never closed."),
    ],
)  # fmt: skip
def test_tables_that_will_not_do(folder, text, complaint):
    (folder / "x.csv").write_text(text)
    assert error("train", "x.csv", "--label", "left", "-o", "x").startswith(complaint)


def test_a_table_of_ids_is_told(folder):
    (folder / "x.csv").write_text(
        "a,left\n" + "".join(f"r-{row:04},{'no' if row % 4 else 'yes'}\n" for row in range(200))
    )
    _, told = train(data="x.csv")
    assert taken(told) == {"a": "left out"}
    assert notes(told)[0].startswith(
        "all columns are left out so far: there is nothing to rank by."
    )


@pytest.mark.parametrize(
    "text",
    [
        "a,left\n1,yes\n",
        "a,b,left\n,,no\n,NA,yes\n",
        "a,left\n" + "".join(f"same,{'yes' if row % 3 else 'no'}\n" for row in range(99)),
        "a,left,\n1,no,\n2,yes,\n",
        "\n\na,left\r\n\r\n1,no\n\n2,yes\r\n",
    ],
)
def test_tables_with_little_in_them(folder, text):
    (folder / "x.csv").write_text(text)
    result, _ = train(data="x.csv")
    assert result["rows"] == text.count("yes") + text.count("no")


def test_many_columns_take_a_diagonal_covariance(folder):
    values = np.random.RandomState(1).standard_normal((200, 400)).round(2)
    frame = pd.DataFrame(values, columns=[f"c{at}" for at in range(400)])
    frame.assign(left=np.where(values[:, 0] > 1, "yes", "no")).to_csv("wide.csv", index=False)
    train(data="wide.csv")
    assert cbrank.load("x.model").covariance_.ndim == 1


# Real tables --------------------------------------------------------------------------------------


def real_file(name, rows=None):
    frame, labels = real_table(name)
    frame.assign(**{LABELS[name]: labels})[:rows].to_csv("real.csv", index=False)


@pytest.mark.parametrize(
    ("name", "least"), [("telco", 0.835), ("hypothyroid", 0.975), ("elec", 0.8), ("weather", 0.6)]
)
def test_real_tables(tmp_path, monkeypatch, name, least):
    monkeypatch.chdir(tmp_path)
    real_file(name, 8000)
    # Only customers who left were asked how satisfied they were.
    drop = ["--drop", "CustomerSatisfactionScore"] if name == "telco" else []
    result, _ = train("--holdout", "20%", *drop, data="real.csv", label=LABELS[name])
    assert result["held_out"]["auc"] >= least


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("adult", 0.915), ("sms-spam", 0.975)])
def test_large_real_tables(tmp_path, monkeypatch, name, least):
    monkeypatch.chdir(tmp_path)
    real_file(name)
    result, _ = train("--holdout", "20%", data="real.csv", label=LABELS[name])
    assert result["held_out"]["auc"] >= least


@pytest.mark.slow
@pytest.mark.parametrize("how", [";", "\t", "decimal", "utf-16", "\r\n", "utf-8-sig"])
def test_telco_in_all_ways(tmp_path, monkeypatch, how):
    monkeypatch.chdir(tmp_path)
    frame, labels = real_table("telco")
    frame = frame.assign(Churn=labels)[:3000]
    frame.to_csv("real.csv", index=False)
    train(data="real.csv", label="Churn")
    options = {";": {"sep": ";"}, "\t": {"sep": "\t"}, "decimal": {"sep": ";", "decimal": ","}}
    ends = {"lineterminator": how} if how == "\r\n" else {}
    page = {"encoding": how} if how.startswith("utf") else {}
    if how == "decimal":
        frame["TotalCharges"] = frame["TotalCharges"].astype(str).str.replace(".", ",")
    frame.to_csv("other.csv", index=False, **options.get(how, {}), **ends, **page)
    train(data="other.csv", label="Churn", model="y.model")
    assert learned("y.model") == learned("x.model")


@pytest.mark.parametrize("name", ["glass", "german", "svmguide3", "diabetes", "vehicle", "segment"])
def test_embedded_sets_as_tables(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    rows, y = real(name, 1500)
    frame = pd.DataFrame(rows, columns=[f"x{at}" for at in range(rows.shape[1])])
    frame.assign(y=y).to_csv("real.csv", index=False)
    result, _ = train(data="real.csv", label="y")
    assert result["rows"] == len(y)
    assert result["progressive_auc"] is None or result["progressive_auc"] > 0.6


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_that_were_left_out_need_not_be_there(folder, suffix):
    train()
    both = {"whole": FRAME, "less": FRAME.drop(columns="id")}
    for name, frame in both.items():
        write = frame.to_parquet if suffix == "parquet" else frame.to_csv
        write(folder / f"{name}.{suffix}", index=False)
        call("update", "x.model", f"{name}.{suffix}", "-o", f"{name}.model")
    whole, less = (call("score", "x.model", f"{name}.{suffix}")[0] for name in both)
    assert whole == less
    one, other = (cbrank.load(f"{name}.model") for name in both)
    assert one.coef_.tolist() == other.coef_.tolist()
    assert cbrank.load("x.model").predict_proba(both["less"]).shape == (ROWS, 2)


def test_rows_in_the_order_of_time_are_told(folder):
    FRAME.sort_values("since").to_csv("table.csv", index=False)
    told = train("--in-order")[1]
    told = [one["note"] for one in told if "come in the order of" in one.get("note", "")]
    assert [note.partition(".")[0] for note in told] == ["the rows come in the order of 'since'"]
    told = train()[1]
    assert not [one for one in told if "come in the order of" in one.get("note", "")]
