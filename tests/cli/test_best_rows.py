"""``cbrank score`` of tables as they come: the best rows, why, gaps, models saved from Python."""

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from commands import call, error
from made_tables import people
from tables import make, make_svmlight, objects, run

import cbrank
from cbrank import AdditiveRanker, CBRanker, OAMRanker
from cbrank.streams import StreamScaler
from cbrank.training import Model

NUMBERS = ["age", "gain", "hours"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, rows to score, and a model of the table."""
    path = tmp_path_factory.mktemp("people")
    frame, y = people(900)
    frame = frame.assign(name=[f"p{at}" for at in range(900)])
    frame.assign(rich=np.where(y, "yes", "no")).to_csv(path / "train.csv", index=False)
    frame, y = people(20_000, seed=1)
    frame = frame.assign(name=[f"n{at}" for at in range(20_000)])
    frame.assign(rich=np.where(y, "yes", "no")).to_csv(path / "new.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        call("train", "train.csv", "--label", "rich", "--id", "name", "-o", "people.model")
    return path


@pytest.fixture(autouse=True)
def _here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def table(*arguments):
    out, err = call("score", *arguments)
    return list(csv.DictReader(io.StringIO(out))), err


def best_of(rows, count):
    places = sorted(range(len(rows)), key=lambda at: (-float(rows[at]["score"]), at))[:count]
    return [{"row": str(at + 1)} | rows[at] for at in places]


# The best rows


@pytest.mark.parametrize("top", [1, 7, 9000, 19_999, 1_000_000])
def test_the_best_rows_come_best_first_with_their_numbers(top):
    rows, _ = table("people.model", "new.csv", "--proba", "--label")
    best, err = table("people.model", "new.csv", "--proba", "--label", "--top", top)
    assert best == best_of(rows, top)
    assert list(best[0]) == ["row", "id", "score", "proba", "label"]
    assert err == ""


@pytest.mark.parametrize(("share", "rows"), [("1%", 200), ("0.0125%", 3), ("0.001%", 1)])
def test_a_share_of_the_rows(share, rows):
    best, _ = table("people.model", "new.csv", "--top", share)
    assert best == table("people.model", "new.csv", "--top", rows)[0]
    assert len(best) == rows


def test_rows_are_numbered_through_all_files(tmp_path):
    twice, _ = table("people.model", "new.csv", "new.csv", "--top", 6)
    once, _ = table("people.model", "new.csv", "--top", 3)
    for at, row in enumerate(once):  # of equal scores the first comes first
        assert twice[2 * at] == row
        assert twice[2 * at + 1] == row | {"row": str(int(row["row"]) + 20_000)}
    text = "age,gain,hours,job,land\n40,0,40,exec,no\n"
    (tmp_path / "equal.csv").write_text(text + text.splitlines()[1] + "\n" + "?,?,?,?,?\n" * 9000)
    best, _ = table("people.model", tmp_path / "equal.csv", "--top", 5)
    places = [row["row"] for row in best]
    assert places in (["1", "2", "3", "4", "5"], ["3", "4", "5", "6", "7"])


def test_json_has_the_number_of_the_row():
    out, _ = call("score", "people.model", "new.csv", "--top", 2, "--json")
    rows, _ = table("people.model", "new.csv", "--top", 2)
    assert [
        {key: str(value) for key, value in json.loads(line).items()} for line in out.splitlines()
    ] == rows


def test_a_share_of_a_pipe_is_refused_with_the_cure(folder):
    line = [sys.executable, "-m", "cbrank", "score", "people.model", "-", "--top", "1%"]
    text = (folder / "train.csv").read_text()
    result = subprocess.run(line, input=text, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert "a pipe is read only once: give a file, or a number of rows." in result.stderr
    result = subprocess.run(
        [*line[:-1], "5"], input=text, capture_output=True, text=True, check=True
    )
    assert (
        list(csv.DictReader(io.StringIO(result.stdout)))
        == (table("people.model", "train.csv", "--top", 5)[0])
    )


@pytest.mark.parametrize("top", ["0", "0%", "101%", "-3", "1.5", "few"])
def test_tops_that_make_no_sense(top):
    assert run("score", "people.model", "new.csv", "--top", top).exit_code == 2


def test_the_best_of_no_rows(tmp_path):
    (tmp_path / "none.csv").write_text("age,gain,hours,job,land,name\n")
    for top in ("3", "10%"):
        out, err = call("score", "people.model", tmp_path / "none.csv", "--top", top)
        assert (out, err) == ("", "Note: there are no rows.\n")


# Why


def test_reasons_sum_to_the_difference_to_a_typical_row():
    out, _ = call("score", "people.model", "train.csv", "--explain", 1000, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    rest = [row["score"] - sum(why["contribution"] for why in row["why"]) for row in rows]
    assert len(rows) == 900
    np.testing.assert_allclose(rest, rest[0], atol=1e-9)
    for row in rows:
        sizes = [abs(why["contribution"]) for why in row["why"]]
        assert sizes == sorted(sizes, reverse=True)
        assert min(sizes) > 0


def test_reasons_have_the_columns_and_cells_of_the_row(tmp_path):
    (tmp_path / "rows.csv").write_text("age,gain,hours,job,land\n61.50,0,,exec,\n")
    out, err = call("score", "people.model", tmp_path / "rows.csv", "--explain", 99, "--json")
    assert err == f"Note: {tmp_path / 'rows.csv'} has no column 'name', so its rows have no ids.\n"
    (row,) = map(json.loads, out.splitlines())
    values = {why["column"]: why["value"] for why in row["why"]}
    assert values == {"age": 61.5, "hours": None, "job": "exec", "land": None} | (
        {"gain": 0.0} if "gain" in values else {}
    )


def test_reasons_in_words_are_those_of_json():
    rows, _ = table("people.model", "new.csv", "--top", 50, "--explain", 2)
    out, _ = call("score", "people.model", "new.csv", "--top", 50, "--explain", 2, "--json")
    for row, facts in zip(rows, map(json.loads, out.splitlines()), strict=True):
        assert row["score"] == str(facts["score"])
        said = row["why"].split("; ")
        assert len(said) == len(facts["why"]) == 2
        for words, reason in zip(said, facts["why"], strict=True):
            assert words.startswith(reason["column"])
            assert words.endswith(f" {reason['contribution']:+.3g}")


def test_all_rows_can_have_reasons_and_they_do_not_change_scores():
    plain, _ = table("people.model", "train.csv")
    why, _ = table("people.model", "train.csv", "--explain", 3)
    assert [list(row) for row in why[:1]] == [["id", "score", "why"]]
    assert [row["score"] for row in why] == [row["score"] for row in plain]
    best, _ = table("people.model", "train.csv", "--explain", 3, "--top", 5)
    assert best == best_of(why, 5)


def test_text_and_times_in_reasons(tmp_path):
    random = np.random.RandomState(0)
    words = np.array(
        ["win", "a", "prize", "now", "call", "me", "later", "today", "please", "thanks"]
    )
    lines = ["when;message;spam\n"]
    for at in range(700):
        message = " ".join(random.choice(words, 8))
        spam = "yes" if "prize" in message and random.rand() < 0.8 else "no"
        lines.append(f"2026-{1 + at % 12:02}-{1 + at % 28:02} {at % 24:02}:00;{message};{spam}\n")
    (tmp_path / "spam.csv").write_text("".join(lines))
    call("train", tmp_path / "spam.csv", "--label", "spam", "-o", tmp_path / "spam.model")
    out, _ = call(
        "score", tmp_path / "spam.model", tmp_path / "spam.csv", "--explain", 9, "--json", "--quiet"
    )
    row = json.loads(out.splitlines()[0])
    values = {why["column"]: why["value"] for why in row["why"]}
    assert values["message"] == lines[1].split(";")[1]
    parts = {"when": "2026-01-01", "when: month": "Jan", "when: hour": "0h"}
    assert all(values.get(name, value) == value for name, value in parts.items())
    rows, _ = table(tmp_path / "spam.model", tmp_path / "spam.csv", "--explain", 9, "--quiet")
    assert all(len(part) < 80 for row in rows for part in row["why"].split("; "))


@pytest.mark.parametrize("scaler", [None, "standard", "unit", "maxabs"])
@pytest.mark.parametrize("ranker", [CBRanker(C=0.5), OAMRanker(C=0.01)])
def test_reasons_of_a_line_are_weights_times_values(tmp_path, ranker, scaler):
    path = make(tmp_path, ranker=ranker, scaler=scaler and StreamScaler(scaler))
    rows = objects(run("score", path, tmp_path / "test.csv", "--explain", 9, "--json"))
    opened = Model.open(path)
    X = np.array([[5.0, 1], [3, 6], [4, 2], [1, 4], [9, 0]])
    parts = opened.scaled(X) * opened.ranker.coef_[0]
    for row, values, added in zip(rows, X.tolist(), parts, strict=True):
        own = {why["column"]: why["contribution"] for why in row["why"]}  # none that adds nothing
        rest = np.array([own.get("age", 0.0), own.get("income", 0.0)]) - added
        np.testing.assert_allclose(rest, -_typical(opened.ranker), atol=1e-12)
        cells = dict(zip(["age", "income"], values, strict=True))
        assert all(why["value"] == cells[why["column"]] for why in row["why"])


def _typical(ranker):
    labels, rows = ranker.buffered_rows()
    means = [rows[labels == label].mean(axis=0) for label in (0, 1)]
    return ranker.coef_[0] * (ranker.n_seen_ @ means) / ranker.n_seen_.sum()


def test_reasons_of_sparse_rows_have_what_is_there_and_what_is_not(tmp_path):
    path = make_svmlight(tmp_path)
    (tmp_path / "new.svm").write_text("0 1:6\n0 7:100\n")
    rows = objects(run("score", path, tmp_path / "new.svm", "--explain", 2, "--json"))
    scores = [row["score"] for row in rows]
    rest = [row["score"] - sum(why["contribution"] for why in row["why"]) for row in rows]
    assert rest[0] == pytest.approx(rest[1])
    assert [{why["column"]: why["value"] for why in row["why"]} for row in rows] == [
        {"1": 6.0, "2": 0.0}, {"1": 0.0, "2": 0.0},
    ]  # fmt: skip
    assert scores[0] != scores[1]


def test_reasons_of_categories_say_which(tmp_path):
    text = "city,age,clicked\nOslo,3,yes\nRome,5,no\nOslo,4,yes\nRome,2,no\n"
    path = make(tmp_path, text=text, id=None, categorical={"city": "onehot"})
    (tmp_path / "new.csv").write_text("city,age\nOslo,3\n")
    out, _ = call("score", path, tmp_path / "new.csv", "--explain", 3)
    ((_, why),) = list(csv.reader(io.StringIO(out)))[1:]
    assert sorted(part.rpartition(" ")[0] for part in why.split("; ")) == [
        "age=3", "city=Oslo", "not city=Rome",
    ]  # fmt: skip


# Whatever rows are like, they are scored


def test_gaps_are_scored_and_words_among_numbers_are_told(tmp_path, folder):
    path = tmp_path / "gaps.csv"
    path.write_text(
        "name,land,age,gain,hours,job\na,,,,,\nb,xx,old,NA,40,nix\nc,no,very old,1,2,\n"
    )
    rows, err = table("people.model", path)
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert all(np.isfinite(float(row["score"])) for row in rows)
    assert err == (
        f"Note: column 'age': 2 cells fit no number and count as gaps; the first: {path}, line 3: "
        "'old'.\n"
    )
    path.write_text("name,land,age,gain,hours,job\nb,xx,,,40,nix\n")
    assert table("people.model", path)[0] == rows[1:2]
    assert folder.joinpath("people.model").exists()


def test_a_row_of_too_few_cells_is_an_error_or_counted(tmp_path):
    path = tmp_path / "short.csv"
    path.write_text("name,land,age,gain,hours,job\na,no,1\nb,no,1,2,3,exec\nc\n")
    assert f"{path}, line 2" in call("score", "people.model", path, code=1)[1]
    rows, err = table("people.model", path, "--on-error", "skip", "--top", 2)
    assert [(row["row"], row["id"]) for row in rows] == [("1", "b")]
    assert err.splitlines()[-1] == "Note: 2 malformed rows were skipped."


# Models saved from Python


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Models saved from Python, and rows as files."""
    path = tmp_path_factory.mktemp("saved")
    frame, y = people(600)
    words = np.where(y, "yes", "no")
    numbers = frame[NUMBERS].fillna(40)
    for name, ranker, X in (
        ("table", AdditiveRanker(random_state=0), frame),
        ("numbers", AdditiveRanker(random_state=0), numbers.to_numpy()),
        ("line", CBRanker(random_state=0), numbers),
        ("nameless", CBRanker(random_state=0), numbers.to_numpy()),
    ):
        cbrank.save(ranker.fit(X, words), path / f"{name}.model")
    frame.to_csv(path / "table.csv", index=False, sep=";", decimal=",")
    numbers.to_csv(path / "numbers.csv", index=False)
    frame.assign(rich=words).to_csv(path / "table_rich.csv", index=False)
    numbers.assign(rich=words).to_csv(path / "numbers_rich.csv", index=False)
    return path, {"table": frame, "numbers": numbers}


CASES = [("table", "table"), ("numbers", "numbers"), ("line", "numbers"), ("nameless", "numbers")]


@pytest.mark.parametrize(("model", "rows"), CASES)
def test_a_model_saved_from_python_scores_as_it_does_there(saved, model, rows):
    path, frames = saved
    found, err = table(path / f"{model}.model", path / f"{rows}.csv", "--proba", "--explain", 2)
    ranker, frame = cbrank.load(path / f"{model}.model"), frames[rows]
    frame = frame.to_numpy() if model in ("numbers", "nameless") else frame
    scores = [float(row["score"]) for row in found]
    np.testing.assert_allclose(scores, ranker.decision_function(frame), rtol=1e-12)
    chances = [float(row["proba"]) for row in found]
    np.testing.assert_allclose(chances, ranker.predict_proba(frame)[:, 1], rtol=1e-12)
    assert "Warning" not in err
    names = NUMBERS + (["job", "land"] if rows == "table" else [])
    assert all(row["why"].startswith(tuple(names)) for row in found if row["why"])


@pytest.mark.parametrize(("model", "rows"), CASES)
def test_a_model_saved_from_python_goes_on_learning(saved, tmp_path, model, rows):
    path, frames = saved
    data = path / f"{rows}_rich.csv"
    sentence = error("update", path / f"{model}.model", data, "-o", tmp_path / "new.model")
    assert sentence.startswith(f"{data}: which column is the label? Give --label. ")
    call("update", path / f"{model}.model", data, "--label", "rich", "-o", tmp_path / "new.model")
    ranker, frame = cbrank.load(path / f"{model}.model"), frames[rows]
    frame = frame.to_numpy() if model in ("numbers", "nameless") else frame
    _, y = people(600)
    ranker.partial_fit(frame, np.where(y, "yes", "no")).set_params(horizon="later")
    found, err = table(tmp_path / "new.model", data, "--label")
    scores = [float(row["score"]) for row in found]
    np.testing.assert_allclose(scores, ranker.decision_function(frame), rtol=1e-9)
    assert err == ""  # from now on it knows the label and the names
    out, _ = call("evaluate", tmp_path / "new.model", data)
    assert "labelled 'yes'" in out


def test_evaluate_takes_the_label_by_name(saved, tmp_path):
    path, _ = saved
    data = path / "table_rich.csv"
    assert "Give --label." in error("evaluate", path / "table.model", data)
    out, _ = call("evaluate", path / "table.model", data, "--label", "rich")
    assert out.startswith("rows               600\n")
    assert "column 'age' is a feature of the model, and cannot be its label." in error(
        "evaluate", path / "table.model", data, "--label", "age"
    )
    assert "lacks the column 'poor'" in error(
        "evaluate", path / "table.model", data, "--label", "poor"
    )
    make_svmlight(tmp_path)
    assert "rows of svmlight text begin with the label: leave --label out." in error(
        "evaluate", tmp_path / "text.model", tmp_path / "train.svm", "--label", "1"
    )


def test_another_label_than_that_of_training(folder, tmp_path):
    text = (folder / "train.csv").read_text().replace(",rich\n", ",wealthy\n", 1)
    (tmp_path / "other.csv").write_text(text)
    out, err = call("evaluate", "people.model", tmp_path / "other.csv", "--label", "wealthy")
    assert (out, err) == call("evaluate", "people.model", "train.csv")
