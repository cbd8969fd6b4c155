"""``cbrank score`` from the outside."""

import csv
import gzip
import io
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import ndtr
from tables import TEST, make, make_svmlight, objects, run

from cbrank import CBRanker, OAMRanker
from cbrank.streams import StreamScaler
from cbrank.training import Model

ROWS = np.array([[5.0, 1], [3, 6], [4, 2], [1, 4], [9, 0]])
IDS = ["e", "f", "g,2", "h", "i"]


@pytest.fixture
def model(tmp_path):
    return make(tmp_path)


@pytest.fixture
def data(tmp_path):
    return tmp_path / "test.csv"


def table(result):
    assert (result.exit_code, result.stderr) == (0, "")
    return list(csv.reader(io.StringIO(result.stdout)))


def test_one_column_has_no_header_and_every_digit(model, data):
    text = data.read_text().replace("row,", "number,")  # no id then
    data.write_text(text)
    result = run("score", model, data, "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    expected = Model.open(model).scores(ROWS).tolist()
    assert result.stdout == "".join(f"{score!r}\n" for score in expected)
    assert [float(line) for line in result.stdout.splitlines()] == expected


def test_the_id_of_training_is_handed_through_with_a_header(model, data):
    scores = Model.open(model).scores(ROWS).tolist()
    assert table(run("score", model, data)) == [
        ["id", "score"], *[[name, repr(score)] for name, score in zip(IDS, scores, strict=True)],
    ]  # fmt: skip


def test_all_columns(model, data):
    opened = Model.open(model)
    assert isinstance(opened.ranker, CBRanker)
    scores, std = opened.ranker.decision_function(ROWS, return_std=True)
    head, *rows = table(run("score", model, data, "--std", "--confidence", "--label"))
    assert head == ["id", "score", "std", "confidence", "label"]
    ids, *numbers, labels = zip(*rows, strict=True)
    assert list(ids) == IDS
    np.testing.assert_array_equal(np.array(numbers[:2], float), [scores, std])
    np.testing.assert_allclose(np.array(numbers[2], float), ndtr(scores / std))
    assert list(labels) == ["yes" if score > 0 else "no" for score in scores]
    assert set(labels) == {"yes", "no"}


@pytest.mark.parametrize("ranker", [None, OAMRanker(C=0.01)])
@pytest.mark.parametrize("scaler", [None, StreamScaler("maxabs")])
def test_proba_is_the_probability_that_the_ranker_gives(tmp_path, data, ranker, scaler):
    model = make(tmp_path, ranker=ranker, scaler=scaler)
    head, *rows = table(run("score", model, data, "--proba"))
    assert head == ["id", "score", "proba"]
    opened = Model.open(model)
    expected = opened.ranker.predict_proba(opened.scaled(ROWS))[:, 1]
    assert [float(row[2]) for row in rows] == expected.tolist()


def test_json_lines_hold_the_same(model, data):
    head, *rows = table(run("score", model, data, "--std", "--confidence", "--label"))
    lines = objects(run("score", model, data, "--std", "--confidence", "--label", "--json"))
    assert [list(line) for line in lines] == [head] * 5
    assert [[str(value) for value in line.values()] for line in lines] == rows


def test_a_column_of_the_data_can_be_the_id(model, data):
    rows = table(run("score", model, data, "--id", "clicked"))
    assert [row[0] for row in rows] == ["id", "yes", "no", "no", "yes", "yes"]


def test_labels_are_neither_needed_nor_looked_at(model, data):
    expected = run("score", model, data).stdout
    data.write_text(TEST.replace("yes", "maybe"))
    assert run("score", model, data).stdout == expected
    data.write_text("".join(
        ",".join(line.split(",", 2)[::2]) + "\n" for line in TEST.splitlines()
    ))  # fmt: skip
    assert "clicked" not in data.read_text()
    assert run("score", model, data).stdout == expected


def test_several_files_a_pipe_and_compression_give_the_same_rows(model, data, tmp_path):
    expected = run("score", model, data).stdout
    packed = tmp_path / "test.csv.gz"
    packed.write_bytes(gzip.compress(TEST.encode()))
    twice = run("score", model, data, packed).stdout
    assert twice == expected + expected.split("\n", 1)[1]
    piped = subprocess.run(
        [sys.executable, "-m", "cbrank", "score", model, "-"],
        input=TEST, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (piped.stdout, piped.stderr) == (expected, "")


def test_svmlight_rows(tmp_path):
    model = make_svmlight(tmp_path)
    (tmp_path / "new.svm").write_text("0 1:5 2:1\n0 1:3 2:6 7:100\n")
    result = run("score", model, tmp_path / "new.svm", "--label")
    assert (result.exit_code, result.stderr) == (0, "")
    head, *rows = csv.reader(io.StringIO(result.stdout))
    assert head == ["score", "label"]
    scores = Model.open(model).scores(np.array([[5.0, 1], [3, 6]]))
    assert [row[0] for row in rows] == [repr(score) for score in scores.tolist()]
    assert {row[1] for row in rows} <= {"-1", "1"}


@pytest.mark.parametrize("kind", ["standard", "unit", "maxabs"])
def test_rows_are_scaled_as_in_training(tmp_path, data, kind):
    model = make(tmp_path, scaler=StreamScaler(kind))
    opened = Model.open(model)
    expected = opened.ranker.decision_function(opened.scaler.transform(ROWS)).tolist()
    _, *rows = table(run("score", model, data))
    assert [float(score) for _, score in rows] == expected


def test_chunks_do_not_change_scores(tmp_path):
    random = np.random.RandomState(0)
    rows = random.standard_normal((20_000, 2))
    model = make(tmp_path)
    path = tmp_path / "many.csv"
    lines = [f"{age!r},{income!r}\n" for age, income in rows.tolist()]
    path.write_text("".join(["age,income\n", *lines]))
    result = run("score", model, path, "--quiet")
    assert [float(line) for line in result.stdout.splitlines()] == (
        Model.open(model).scores(rows).tolist()
    )


def test_a_file_is_written_whole_or_not_at_all(model, data, tmp_path):
    out = tmp_path / "scores.csv"
    expected = run("score", model, data).stdout
    result = run("score", model, data, "-o", out)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert out.read_text() == expected
    data.write_text(TEST + "1,no,j,old\n")
    result = run("score", model, data, "-o", out)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"Error: {data}, line 7, column 'age': 'old' is not a number; if the column "
        "holds categories, name it in --categorical, as onehot or hash:BITS, else in --drop. "
        "--categorical and --drop are options of cbrank train.\n"
    )
    assert out.read_text() == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "clicks.model", "scores.csv", "test.csv", "train.csv",
    ]  # fmt: skip


def test_malformed_rows_are_skipped_on_request_and_told(model, data):
    data.write_text(TEST + "1,no,j,old\n2,no,k,4\n")
    result = run("score", model, data, "--on-error", "skip")
    assert result.exit_code == 0
    assert [line.split(",")[0] for line in result.stdout.splitlines()[-2:]] == ["i", "k"]
    assert result.stderr.startswith(f"Note: {data}, line 7, column 'age': ")
    assert run("score", model, data, "--on-error", "skip", "--quiet").stderr == ""


def test_an_unknown_column_is_told(model, data):
    data.write_text("age,income,row,mood\n1,2,a,3\n")
    result = run("score", model, data)
    assert result.exit_code == 0
    assert result.stderr == f"Note: {data}: ignored 'mood', which the model does not know.\n"


def test_an_empty_file_has_no_scores(model, data):
    data.write_text("")
    result = run("score", model, data)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Note: there are no rows.\n"


def test_a_row_without_a_finite_score_is_an_error(model, data):
    data.write_text("age,income,row\n1.79e308,-1.79e308,a\n")
    result = run("score", model, data, "--std")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "values are too large" in result.stderr


def test_a_model_of_one_class_takes_no_row_for_a_likely_positive(tmp_path, data):
    text = "row,age,income,clicked\na,2,4,no\nb,3,4,no\n"
    model = make(tmp_path, text=text, positive="yes")
    head, *rows = table(run("score", model, data, "--confidence", "--label"))
    assert head == ["id", "score", "confidence", "label"]
    assert {label for *_, label in rows} == {"no"}
    assert all(0.0 < float(sure) < 0.5 for _, _, sure, _ in rows)


@pytest.mark.parametrize("option", ["--std", "--confidence"])
def test_rankers_without_confidence_say_so(tmp_path, data, option):
    model = make(tmp_path, ranker=OAMRanker(C=0.01))
    assert run("score", model, data, "--label").exit_code == 0
    result = run("score", model, data, option)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "Error: OAMRanker does not know how sure its scores are: --std and --confidence are for "
        "models of CBRanker.\n"
    )


def test_errors_are_one_sentence_and_exit_1(model, data, tmp_path):
    header = "Its columns are 'age', 'row'."
    (tmp_path / "narrow.csv").write_text("age,row\n1,a\n")
    (tmp_path / "damaged.model").write_bytes(model.read_bytes()[:-3])
    svmlight = tmp_path / "rows.svm"
    svmlight.write_text("1 1:2\n")
    for arguments, sentence in [
        ((tmp_path / "no.model", data), f"{tmp_path / 'no.model'}: No such file or directory."),
        ((model, tmp_path / "no.csv"), f"{tmp_path / 'no.csv'}: there is no such file."),
        ((model, tmp_path / "narrow.csv"),
         f"{tmp_path / 'narrow.csv'} has no column 'income', which the model needs. {header}"),
        ((model, svmlight),
         f"{svmlight} is svmlight text, which has no column names; " +
         "the rows before were a table with column names."),
        ((model, data, "--id", "who"), f"{data} has no column 'who' to write beside scores."),
        ((model, data, "--id", "age"),
         "column 'age' is a feature of the model and cannot be the id too."),
        ((model, data, "-o", tmp_path / "no" / "folder"), None),
        ((data, data), None),
        ((tmp_path / "damaged.model", data), None),
    ]:  # fmt: skip
        result = run("score", *arguments)
        assert (result.exit_code, result.stdout) == (1, ""), arguments
        assert result.stderr.count("\n") == 1
        assert sentence is None or result.stderr == f"Error: {sentence}\n"


def test_svmlight_text_has_no_id(tmp_path):
    model = make_svmlight(tmp_path)
    result = run("score", model, tmp_path / "train.svm", "--id", "1")
    assert result.exit_code == 1
    assert "svmlight text has no columns that could be named" in result.stderr


def test_usage_errors_exit_2(model):
    for arguments in ((), (model,), (model, "x.csv", "--format", "json")):
        assert run("score", *arguments).exit_code == 2


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from cbrank.cli import score, evaluate, inspect, export, warmup;"
        "print([m for m in ('numpy', 'numba', 'sklearn', 'matplotlib', 'onnx') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_help_has_an_example():
    assert "cbrank score clicks.model today.csv > scores.txt" in run("score", "--help").stdout


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_reader_that_goes_away_ends_it_quietly(tmp_path):
    model = make(tmp_path, ranker=CBRanker(C=0.5, average=False))
    path = tmp_path / "many.csv"
    path.write_text("age,income\n" + "1.25,2.5\n" * 100_000)
    with subprocess.Popen(
        [sys.executable, "-m", "cbrank", "score", model, path, "--quiet"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        float(process.stdout.readline())
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_what_is_read_is_never_written_over(model, data, monkeypatch):
    monkeypatch.chdir(model.parent)
    (model.parent / "twin.svg").hardlink_to(model)
    (model.parent / "data.png").symlink_to(data)
    before = model.read_bytes(), data.read_bytes()
    for arguments, name in (
        (["score", model, data, "-o", model], f"{model} is the model and"),
        (["score", model, data, "-o", "data.png"], f"data.png is the data, {data}, and"),
        (["evaluate", model, data, "--roc", "data.png"], f"data.png is the data, {data}, and"),
        (["evaluate", model, data, "--roc", "twin.svg"], f"twin.svg is the model, {model}, and"),
        (["inspect", model, "--picture", "twin.svg"], f"twin.svg is the model, {model}, and"),
        (["export", model, "--onnx", "twin.svg"], f"twin.svg is the model, {model}, and"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert f"{name} would be written over: give {arguments[-2]} another file." in result.stderr
    assert (model.read_bytes(), data.read_bytes()) == before


def test_standard_output_may_not_be_what_is_read(model, data):
    before = data.read_bytes()
    with data.open("ab") as file:
        line = [sys.executable, "-m", "cbrank", "score", model, data]
        result = subprocess.run(line, stdout=file, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 2
    assert "standard output goes to the data: send it elsewhere." in result.stderr
    assert data.read_bytes() == before
