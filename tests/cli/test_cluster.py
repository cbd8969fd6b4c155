"""``cbrank train --scheduler`` and ``cbrank reproduce --backend dask`` on a cluster."""

import json
import subprocess
import sys
import threading
import time
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import TABLE, call, error, svmlight
from made_tables import people

import cbrank
from cbrank.streams import Columns, StreamScaler, TableColumns, open_stream
from cbrank.training import Model

pytest.importorskip("distributed", reason="the cluster needs the extra dask")

from dask.distributed import Client, LocalCluster

from cbrank.dask import DaskRanker, Files
from cbrank.dask.cluster import connected

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address():
    with LocalCluster(
        processes=False,
        protocol="tcp://",
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=":0",
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, width in enumerate((5, 3, 7)):
        (tmp_path / f"rows{number}.svm").write_text(svmlight(400, number, width))
    header, *rows = TABLE.splitlines(keepends=True)
    (tmp_path / "table0.csv").write_text(header + "".join(rows[:350]))
    (tmp_path / "table1.csv").write_text(header + "".join(rows[350:]))
    return tmp_path


def test_files_are_learned_apart_and_the_model_is_as_any_other(here, address):
    line = "train", "rows?.svm", "--C", "0.5", "--scheduler", address, "-o", "m"
    out, err = call(*line, "--in-order")
    assert out.startswith(
        "Learned from 1,200 rows, in order, 245 of them positive (20.42%), labelled '1', 7 features, C 0.5.\nAUC 0.9"
    )
    assert err == ""
    model = Model.open("m")
    parts = []
    for number in range(3):
        part = Model(cbrank.CBRanker(0.5, random_state=0), None, Columns())
        for chunk in open_stream(f"rows{number}.svm", columns=part.columns):
            part.learn(chunk)
        part.ranker.resize(7)
        parts.append(part.ranker)
    expected = cbrank.merge(parts)
    np.testing.assert_allclose(model.ranker.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.ranker.covariance_, expected.covariance_, rtol=1e-9)
    assert model.columns.classes_ == ["-1", "1"]
    scores = call("score", "m", "rows2.svm")[0].splitlines()
    assert len(scores) == 400
    assert "AUC" in call("evaluate", "m", "rows0.svm")[0]
    assert call("update", "m", "rows1.svm")[0].startswith("Learned from 400 rows")


def test_tables_and_unit_rows_are_learned_too(here, address):
    facts = call(
        "train", "table0.csv", "table1.csv", "--label", "clicked", "--id", "id", "--categorical",
        "city=Oslo,Rome", "--covariance", "diagonal", "--passes", "2", "--json", "-o", "m",
        "--scheduler", address,
    )[0]  # fmt: skip
    assert json.loads(facts)["rows"] == 1200
    model = Model.open("m")
    assert model.scaler.kind == "unit"
    assert model.scaler.n_rows_seen_ == 1200
    assert model.columns.feature_names() == ["age", "city=Oslo", "city=Rome"]
    assert model.columns.classes_ == ["no", "yes"]
    assert call("update", "m", "table0.csv", "--quiet") == ("", "")


def test_all_that_a_cluster_cannot_do_is_one_usage_error(here):
    refused = ["--checkpoint", "c", "--every", "10", "--resume", "--on-error", "skip", "-"]
    command = ["train", "rows0.svm", "-o", "m", "--scheduler", "127.0.0.1:1", *refused]
    assert call(*command, code=2)[1].splitlines()[-1] == (
        "Error: not for a cluster: --checkpoint, --every, --resume (files are learned from at the "
        "same time, so that there is no place to go on from; the cluster itself makes up for workers "
        "that it loses); --on-error skip (skipped rows are counted over all files, which workers read "
        "apart: mend the rows first); standard input (workers read files, each its own)."
    )


def test_bad_data_is_one_sentence(here, address):
    train = ["train", "-o", "m", "--scheduler", address, "--C", "1"]
    (here / "rows1.svm").write_text("1 1:1\n-1 1:2\n1 1:x\n")
    sentence = error(*train, "rows0.svm", "rows1.svm")
    assert sentence.startswith(f"{here / 'rows1.svm'}, line 3, column 5: the value 'x' is not")
    (here / "rows1.svm").write_text("3 1:1\n" * 3)
    sentence = error(*train, "rows1.svm", "rows1.svm")
    assert sentence == (
        "All files: the rows to begin with have one label only, '3'; say which label is the "
        "positive one by --positive."
    )
    assert "Ranking needs two classes" in error(*train, "rows1.svm", "--positive", "3")
    (here / "rows1.svm").write_text("1 1:1\n2 1:1\n")
    assert "there are 3" in error(*train, "rows0.svm", "rows1.svm")
    (here / "rows1.svm").write_text("")
    assert error(*train, "rows1.svm").startswith("There are no rows to learn from in ")
    (here / "rows1.svm").write_text("1 3000:1\n-1 1:1\n")
    assert "rows have 3,000 features so far" in error(*train, "rows1.svm")
    plain = ["--label", "clicked", "--drop", "id", "--categorical", "city=onehot"]
    sentence = error(*train, "table0.csv", "rows0.svm", *plain)
    assert "is svmlight text, which has no column names; the rows before were a table" in sentence
    sentence = error(*train, "rows0.svm", "--label", "clicked")
    assert sentence.endswith("is svmlight text, which has no column 'clicked': leave out --label.")
    assert not (here / "m").exists()


@pytest.mark.parametrize(
    ("command", "address"),
    [
        (["train", "rows0.svm", "-o", "m"], "127.0.0.1:1"),
        (["train", "rows0.svm", "-o", "m"], "nonsense"),
        (["reproduce", "--quick", "--datasets", "glass", "--backend", "dask"], "tcp://"),
    ],
)
def test_a_bad_address_is_one_sentence_soon(here, command, address):
    began = time.monotonic()
    sentence = error(*command, "--scheduler", address)
    assert sentence.startswith(f"no Dask scheduler answers at {address!r}")
    assert time.monotonic() - began < 15
    assert {path.suffix for path in here.iterdir()} == {".svm", ".csv"}


def cancelled(client):
    future = client.submit(abs, -1, pure=False)
    future.cancel()
    future.result()


def closed(client):
    client.close()
    client.submit(abs, -1)


@pytest.mark.parametrize("lost", [cancelled, closed])
def test_a_scheduler_that_is_lost_is_one_sentence(address, lost):
    sentence = "was lost or restarted meanwhile: start it"
    with pytest.raises(ValueError, match=sentence), connected(address) as client:
        lost(client)


def test_without_dask_it_says_what_to_install():
    code = "import sys; sys.modules['distributed'] = None; import cbrank.dask"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert process.stderr.splitlines()[-1] == (
        "ImportError: learning on a cluster needs distributed: pip install 'cbrank[dask]'."
    )


# Tables as they come ------------------------------------------------------------------------------


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A table in three files, each written in its own way, and rows to test by."""
    monkeypatch.chdir(tmp_path)
    frame, y = people(6600)
    frame["class"] = np.where(y, "rich", "poor")
    frame["gain"] += 0.5
    frame[6000:].to_csv("test.csv", index=False)
    for number, way in enumerate([{}, {"sep": ";", "decimal": ","}, {"sep": "\t"}]):
        rows = frame[2000 * number : 2000 * (number + 1)]
        rows.to_csv(f"part{number}.csv", index=False, **way)
    return ["train", "part?.csv", "--label", "class"]


def auc_of(model):
    return json.loads(call("evaluate", model, "test.csv", "--json")[0])["auc"]


def test_tables_as_they_come_are_ranked_as_in_one_process(tables, address):
    call(*tables, "-o", "alone", "--quiet")
    out, err = call(*tables, "-o", "m", "--scheduler", address)
    assert out.startswith("Learned from 6,000 rows, ")
    assert "labelled 'rich', 5 columns as " in out
    told = {line for line in err.splitlines() if line.startswith("Note: ")}
    assert {line.partition(".csv has ")[2] for line in told} == {
        "semicolons between cells and decimal commas.", "tabs between cells."
    }  # fmt: skip
    assert [line.split()[:2] for line in err.splitlines() if line not in told] == [
        ["column", "taken"], ["age", "number"], ["gain", "number"], ["hours", "number"],
        ["job", "category"], ["land", "category"],
    ]  # fmt: skip
    assert auc_of("m") > auc_of("alone") - 0.01
    lands = Model.open("m").ranker.encoder_.get_feature_names_out()
    assert {"land=se", "land=pt"} < {*lands}  # of the first file, and of the last one alone
    assert len(call("score", "m", "test.csv", "--proba")[0].splitlines()) == 601
    assert call("update", "m", "part1.csv")[0].startswith("Learned from 2,000 rows")


def test_options_of_tables_work_on_a_cluster(tables, address):
    out, err = call(
        *tables, "--positive", "poor", "--as", "gain=drop", "--na", "farm", "--columns", "c.toml",
        "--passes", "2", "--holdout", "20%", "--json",
        "-o", "m", "--scheduler", address,
    )  # fmt: skip
    facts, model = json.loads(out), Model.open("m")
    assert facts["positive"] == "poor"
    assert facts["rows"] == 2 * (6000 - facts["held_out"]["rows"])
    assert 1100 < facts["held_out"]["rows"] < 1300
    assert facts["held_out"]["auc"] > 0.8
    assert model.columns.numeric_ == ["age", "hours", "job", "land"]
    assert "job=farm" not in model.ranker.encoder_.get_feature_names_out()
    assert '"gain" = "drop"' in Path("c.toml").read_text()
    assert [json.loads(line)["event"] for line in err.splitlines()] == ["note", "note", "columns"]
    again = [*tables, "--columns", "c.toml", "--quiet", "-o", "n", "--scheduler", address]
    assert call(*again) == ("", "")
    assert Model.open("n").columns.numeric_ == model.columns.numeric_


@pytest.mark.parametrize("order", ["--shuffle", "--in-order"])
def test_the_last_rows_of_all_files_are_held_out(tables, address, order):
    line = [*tables, order, "--holdout", "last-40%", "--json"]
    out, _ = call(*line, "-o", "m", "--scheduler", address)
    alone, _ = call(*line, "-o", "alone")
    facts, expected = json.loads(out), json.loads(alone)["held_out"]
    assert facts["rows"] == 3600
    for name in ("which", "rows", "positives"):
        assert facts["held_out"][name] == expected[name]
    assert (expected["which"], expected["rows"]) == ("last", 2400)
    assert (
        facts["held_out"]["auc"] > expected["auc"] - 0.05
    )  # rows of blocks that did not end are not kept


def test_words_among_numbers_are_gaps_with_a_note_unless_strict(tables, address):
    with Path("part1.csv").open("a") as file:
        file.write("old;0,5;40;clerk;no;poor\n")
    err = call(*tables, "-o", "m", "--scheduler", address)[1]
    where = f"{Path('part1.csv').absolute()}, line 2002: 'old'."
    assert f"column 'age': 1 cell fits no number and counts as a gap; the first: {where}" in err
    assert where in error(*tables, "-o", "m", "--scheduler", address, "--strict")


def test_rows_of_each_file_are_shuffled_unless_they_are_to_stay_in_order(tables, address):
    pd.read_csv("part2.csv", sep="\t").sort_values("class").to_csv("part2.csv", index=False)
    out, err = call(*tables, "-o", "m", "--scheduler", address)
    assert "rows, shuffled," in out
    assert "sorted" not in err
    assert auc_of("m") > 0.8
    out, _ = call(*tables, "-o", "n", "--in-order", "--scheduler", address)
    assert "rows, in order," in out
    assert cbrank.load("m").coef_.tolist() != cbrank.load("n").coef_.tolist()


def test_files_of_one_label_each_are_told_of(tables, address):
    frame = pd.read_csv("part0.csv")
    for number, (_, rows) in enumerate(frame.groupby("class")):
        rows.to_csv(f"part{number}.csv", index=False)
    Path("part2.csv").unlink()
    err = call(*tables, "-o", "m", "--scheduler", address)[1]
    assert "Note: 2 of 2 files have one label only, and what is learned from one file alone" in err


def test_tables_of_few_rows_are_refused_with_the_cure(here, address):
    header = "age,clicked\n"
    (here / "few.csv").write_text(header + "31,no\n44,yes\n" * 50)
    sentence = error("train", "few.csv", "--label", "clicked", "-o", "m", "--scheduler", address)
    assert sentence.endswith("which takes 256: learn from them without a cluster.")


def test_labels_are_agreed_on_by_all_files(tmp_path, address):
    (tmp_path / "a.csv").write_text("x,y\n" + "1,a\n" * 3 + "2,b\n")
    (tmp_path / "b.csv").write_text("y;x\n" + "b;3\n" * 9)
    with Client(address, set_as_default=False) as client:
        for columns in (TableColumns("y"), Columns("y")):
            files = Files(tmp_path / "?.csv", columns)
            files.look(client)
            assert files.columns.classes_ == ["b", "a"]


def test_categories_and_scales_are_those_of_all_files(here, address):
    (here / "table1.csv").write_text("clicked,age,city,id\n" + "yes,30,Bern,x\nno,2,Oslo,y\n" * 30)
    given = Columns("clicked", drop=["id"], categorical={"city": "onehot"})
    scaler, columns = StreamScaler("standard"), deepcopy(given)
    for chunk in open_stream("table?.csv", columns=columns):
        scaler.partial_fit(chunk.X)
    call(
        "train", "table?.csv", "--label", "clicked", "--drop", "id", "--categorical", "city=onehot",
        "--scale", "standard", "--quiet", "-o", "m", "--scheduler", address,
    )  # fmt: skip
    model = Model.open("m")
    assert model.columns.feature_names() == ["age", "city=Rome", "city=Oslo", "city=Bern"]
    assert model.columns.feature_names() == columns.feature_names()
    for name, known in scaler.get_state()[0].items():
        np.testing.assert_allclose(model.scaler.get_state()[0][name], known)
    assert model.ranker.coef_[0, 3] > 0
    with Client(address, set_as_default=False) as client:
        ranker = DaskRanker(cbrank.CBRanker(0.5), client=client).fit(Files("table0.csv", given))
        ranker.partial_fit("table1.csv")
    assert ranker.columns_.feature_names() == columns.feature_names()
    assert ranker.n_features_in_ == 4


def test_the_largest_values_are_those_of_all_files(here, address):
    call("train", "rows?.svm", "--scale", "maxabs", "-o", "m", "--scheduler", address, "--quiet")
    scaler, columns = StreamScaler("maxabs"), Columns()
    for chunk in open_stream("rows?.svm", columns=columns):
        scaler.partial_fit(chunk.X)
    largest = Model.open("m").scaler.get_state()[0]["largest"]
    np.testing.assert_array_equal(largest, scaler.get_state()[0]["largest"])


# Going on -----------------------------------------------------------------------------------------


def test_going_on_from_files_reads_them_as_those_before(here, address):
    with Client(address, set_as_default=False) as client:
        tables = Files("table*.csv", Columns("clicked", drop=["id", "city"]))
        ranker = DaskRanker(cbrank.CBRanker(C=0.5), client=client).fit(tables)
        (here / "more.csv").write_text("clicked,age,more\nyes,3,1\nno,5,1\n")
        ranker.partial_fit(["more.csv"])
        assert ranker.n_seen_.sum() == 602
        assert ranker.columns_.feature_names() == ["age"]
        with pytest.raises(ValueError, match="leave y out"):
            ranker.fit(tables, 1)
        ranker.fit(["rows0.svm", "rows1.svm"])
        assert ranker.n_features_in_ == 5
        ranker.partial_fit("rows2.svm")
        assert ranker.covariance_.shape == (7, 7)
        assert ranker.columns_.width_ == 7


def test_going_on_from_files_divides_rows_by_their_length_as_before(here, address):
    with Client(address, set_as_default=False) as client:
        fitted = [
            DaskRanker(cbrank.CBRanker(0.5, random_state=0), client=client)
            .fit(Files("rows0.svm", scale="unit"))
            .partial_fit(more)
            for more in ("rows1.svm", Files("rows1.svm", scale="unit"))
        ]
    np.testing.assert_array_equal(fitted[0].coef_, fitted[1].coef_)


def test_a_cluster_without_workers_is_told_of_and_waited_for(here):
    with LocalCluster(
        processes=False, protocol="tcp://", n_workers=0, dashboard_address=":0"
    ) as cluster:
        soon = threading.Timer(2.0, cluster.scale, [1])
        soon.start()
        out, err = call("train", "rows0.svm", "-o", "m", "--scheduler", cluster.scheduler_address)
        soon.join()
    assert err.startswith("Note: the cluster has no workers yet; this waits for the first.\n")
    assert out.startswith("Learned from 400 rows")


def test_rows_are_found_whose_label_is_rare(here, address):
    (here / "rare.svm").write_text("-1 1:1\n" * 10_000 + "1 1:2\n")
    (here / "none.svm").write_text("-1 1:1\n" * 10)
    with Client(address, set_as_default=False) as client:
        ranker = DaskRanker(cbrank.CBRanker(C=0.5, shuffle=False), client=client).fit(
            ["none.svm", "rare.svm"]
        )
    assert ranker.n_seen_.tolist() == [10_010, 1]
    assert ranker.columns_.classes_ == ["-1", "1"]


def test_the_study_gives_the_same_numbers_on_a_cluster(tmp_path, address):
    small = ["--quick", "--runs", 1, "--no-report", "--scaling", "unit", "--datasets", "glass",
             "--methods", "CBR_FIFO,OAM_seq"]  # fmt: skip
    places = [["--backend", "dask", "--scheduler", address], ["--jobs", 1]]
    for number, place in enumerate(places):
        call("reproduce", *small, *place, "--out", tmp_path / str(number))
    results = [pd.read_csv(tmp_path / str(number) / "results.csv") for number in range(2)]
    timed = [name for name in results[0].columns if "seconds" in name or "time" in name]
    there, here = (found.drop(columns=timed).sort_values("method") for found in results)
    assert timed
    assert len(here) == 2
    pd.testing.assert_frame_equal(there, here, check_exact=True, check_index_type=False)


@pytest.mark.parametrize("options", [["--backend", "dask"], ["--scheduler", "tcp://x:1"]])
def test_the_study_needs_backend_and_scheduler_together(tmp_path, options):
    command = ["reproduce", "--quick", "--datasets", "glass", "--out", tmp_path / "s", *options]
    assert "need each other" in call(*command, code=2)[1]
