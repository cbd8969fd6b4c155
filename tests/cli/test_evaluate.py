"""``cbrank evaluate`` from the outside."""

import json

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, average_precision_score
from tables import TEST, make, make_svmlight, run

from cbrank.metrics import accuracy_at_operating_point, auc_interval, optimal_operating_point
from cbrank.training import Model

ROWS = np.array([[5.0, 1], [3, 6], [4, 2], [1, 4], [9, 0]])
Y = np.array([1, 0, 0, 1, 1])
GOLDEN = """\
rows               5
positives          3 (60.00%), labelled 'yes'
AUC                0.8333, 95% interval 0.0149 to 0.9994
average precision  0.9167
accuracy           0.6000 at the threshold of the model, 0: finds 66.7% of the positives, \
with 50.0% of the negatives
                   0.8000 at the best threshold for these rows, 1.64475: finds 66.7% of the \
positives, with 0.0% of the negatives
"""


@pytest.fixture
def model(tmp_path):
    return make(tmp_path)


@pytest.fixture
def data(tmp_path):
    return tmp_path / "test.csv"


def test_what_it_prints(model, data):
    result = run("evaluate", model, data)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == GOLDEN


def test_the_numbers_are_those_of_the_library(model, data):
    found = json.loads(run("evaluate", model, data, "--json").stdout)
    opened = Model.open(model)
    scores = opened.scores(ROWS)
    called = scores > 0
    auc = auc_interval(Y, scores)
    best = optimal_operating_point(Y, scores)
    assert found == {
        "rows": 5,
        "positives": 3,
        "positive": "yes",
        "auc": auc.auc,
        "auc_low": auc.low,
        "auc_high": auc.high,
        "auc_std": auc.std,
        "average_precision": average_precision_score(Y, scores),
        "at_model_threshold": {
            "threshold": 0.0,
            "accuracy": accuracy_score(Y, called),
            "fpr": called[Y == 0].mean(),
            "tpr": called[Y == 1].mean(),
        },
        "at_best_threshold": {
            "threshold": best.threshold,
            "accuracy": accuracy_at_operating_point(Y, scores),
            "fpr": best.fpr,
            "tpr": best.tpr,
        },
    }


def test_several_files_are_one_set_of_rows(model, data, tmp_path):
    (tmp_path / "more.csv").write_text(TEST)
    found = json.loads(run("evaluate", model, data, tmp_path / "more.csv", "--json").stdout)
    assert (found["rows"], found["positives"]) == (10, 6)


def test_svmlight_rows(tmp_path):
    model = make_svmlight(tmp_path)
    result = run("evaluate", model, tmp_path / "train.svm")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "positives          2 (50.00%), labelled '1'\nAUC                1.0000" in result.stdout


def test_one_positive_gives_no_interval_and_null(model, data):
    data.write_text("age,income,row,clicked\n1,2,a,no\n3,4,b,no\n5,0,c,yes\n")
    assert "AUC                1.0000, no interval" in run("evaluate", model, data).stdout
    found = json.loads(run("evaluate", model, data, "--json").stdout)
    assert (found["auc"], found["auc_low"], found["auc_std"]) == (1.0, None, None)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_roc_curve_is_drawn(model, data, tmp_path, ending):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    path = tmp_path / f"roc.{ending}"
    result = run("evaluate", model, data, "--roc", path)
    assert (result.exit_code, result.stdout, result.stderr) == (0, GOLDEN, "")
    drawn = path.read_bytes()
    if ending == "png":
        assert drawn.startswith(b"\x89PNG")
    else:
        for text in (b"AUC 0.8333, 95% interval 0.0149 to 0.9994", b"3 positives", b"2 negatives",
                     b"best threshold here: accuracy 0.800"):  # fmt: skip
            assert text in drawn
    again = tmp_path / "again" / path.name
    again.parent.mkdir()
    run("evaluate", model, data, "--roc", again)
    assert again.read_bytes() == drawn


def test_a_million_points_make_a_small_picture(tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    from cbrank.inspection.evaluation import evaluate  # noqa: PLC0415
    from cbrank.inspection.pictures import draw_roc  # noqa: PLC0415

    random = np.random.RandomState(0)
    y = random.randint(0, 2, 200_000)
    scores = random.standard_normal(200_000) + y
    draw_roc(tmp_path / "roc.svg", y, scores, evaluate(y, scores, 0.5))
    assert (tmp_path / "roc.svg").stat().st_size < 200_000


def test_errors_are_one_sentence_and_exit_1(model, data, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    paths = {}
    for name, text in {
        "empty": "",
        "header": "age,income,row,clicked\n",
        "unlabelled": "age,income,row\n1,2,a\n",
        "one": "age,income,row,clicked\n1,2,a,no\n3,4,b,no\n",
        "third": "age,income,row,clicked\n1,2,a,no\n3,4,b,maybe\n",
    }.items():
        paths[name] = tmp_path / f"{name}.csv"
        paths[name].write_text(text)
    for arguments, sentence in [
        ((tmp_path / "no.model", data), f"{tmp_path / 'no.model'}: No such file or directory."),
        ((model, paths["empty"]), "there are no rows to evaluate."),
        ((model, paths["header"]), "there are no rows to evaluate."),
        ((model, paths["unlabelled"]),
         f"{paths['unlabelled']} has no column 'clicked', which the model needs. Its columns are "
         + "'age', 'income', 'row'."),
        ((model, paths["one"]), "all 2 rows are labelled 'no': an AUC needs both labels."),
        ((model, paths["third"]),
         f"{paths['third']}, line 3, column 'clicked': the label 'maybe' is neither 'no' nor 'yes'."),
        ((model, data, "--roc", tmp_path / "no" / "roc.png"),
         f"{tmp_path / 'no' / 'roc.png'} cannot be written: there is no folder {tmp_path / 'no'}."),
    ]:  # fmt: skip
        result = run("evaluate", *arguments)
        assert (result.exit_code, result.stdout) == (1, ""), arguments
        assert result.stderr == f"Error: {sentence}\n"


def test_usage_errors_exit_2(model, data):
    result = run("evaluate", model, data, "--roc", "roc.bmp")
    assert result.exit_code == 2
    assert "roc.bmp must end in .png or .svg." in result.stderr
    assert run("evaluate", model).exit_code == 2


def test_help_has_an_example():
    text = run("evaluate", "--help").stdout
    assert "cbrank evaluate clicks.model tomorrow.csv --roc roc.png" in text
