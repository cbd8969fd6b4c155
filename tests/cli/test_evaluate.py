"""``cbrank evaluate`` from the outside."""

import json

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score, average_precision_score, log_loss, roc_auc_score
from tables import TEST, make, make_svmlight, run

from cbrank.metrics import accuracy_at_operating_point, auc_interval, optimal_operating_point
from cbrank.training import Model

ROWS = np.array([[5.0, 1], [3, 6], [4, 2], [1, 4], [9, 0]])
Y = np.array([1, 0, 0, 1, 1])
GOLDEN = """\
rows               5
positives          3 (60.00%), labelled 'yes'
AUC                0.8333, 95% interval 0.0149 to 0.9994
average precision  0.9167, by chance 0.6000
log loss           0.5827, by the share of positives alone 0.6730
calibration error  0.4081, mean probability 55.47%

threshold                 score  rows  precision  recall  accuracy
of the model                > 0     3     66.67%  66.67%    60.00%
best for these rows  >= 1.64475     2    100.00%  66.67%    80.00%
"""
CITIES = ["Oslo", "Rome", "Bonn", ""]
MANY = 400


def many_rows():
    """Return ages, incomes and labels, with many rows alike; the last city has one label only."""
    rng = np.random.RandomState(0)
    X = rng.randint(0, 10, (MANY, 2)).astype(float)
    city = rng.choice(4, MANY, p=[0.5, 0.3, 0.15, 0.05])
    y = (rng.rand(MANY) < 0.02 + 0.3 * (X[:, 0] > 7)) & (city < 3)
    return X, city, y.astype(int)


def many_table(X, city, y):
    lines = [
        f"{age:g},{income:g},r{at},{CITIES[where]},{'yes' if label else 'no'}"
        for at, ((age, income), where, label) in enumerate(zip(X, city, y, strict=True))
    ]
    return "\n".join(["age,income,row,city,clicked", *lines, ""])


@pytest.fixture
def model(tmp_path):
    return make(tmp_path)


@pytest.fixture
def data(tmp_path):
    return tmp_path / "test.csv"


@pytest.fixture
def many(tmp_path):
    """Make a model of many rows, some of whose columns it leaves out, and their table."""
    text = many_table(*many_rows())
    (tmp_path / "many.csv").write_text(text)
    return make(tmp_path, text=text, drop=["city"]), tmp_path / "many.csv"


def test_what_it_prints(model, data):
    result = run("evaluate", model, data)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == GOLDEN


def test_what_it_prints_of_many_rows(many):
    asked = "--at", "10", "--at", "2.5%", "--precision", "90%", "--recall", "0.8", "--by", "city"
    result = run("evaluate", *many, *asked)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == GOLDEN_MANY


GOLDEN_MANY = """\
rows               400
positives          41 (10.25%), labelled 'yes'
AUC                0.8582, 95% interval 0.7699 to 0.9163
average precision  0.4223, by chance 0.1025
log loss           0.2526, by the share of positives alone 0.3305
calibration error  0.0591, mean probability 12.07%

top      rows  positives  precision  recall  lift
1%          4        1.6     40.00%   3.90%  3.90
10 rows    10        5.0     50.00%  12.20%  4.88
2.5%       10        5.0     50.00%  12.20%  4.88
5%         20       10.0     50.00%  24.39%  4.88
10%        40       18.0     45.00%  43.90%  4.39

threshold                    score  rows  precision  recall  accuracy
of the model                   > 0   122     28.69%  85.37%    76.75%
best for these rows         no row     0          -   0.00%    89.75%
precision 90%          not reached     -          -       -         -
recall 80%           >= 0.00244638    72     45.83%  80.49%    88.25%
No threshold has a precision of 90% on these rows: the highest is 50.00%.

decile  rows  positives   share  lift  recall so far  mean probability
1         40         18  45.00%  4.39         43.90%            39.61%
2         40         17  42.50%  4.15         85.37%            34.21%
3         40          0   0.00%  0.00         85.37%            28.17%
4         40          0   0.00%  0.00         85.37%             7.06%
5         40          1   2.50%  0.24         87.80%             4.60%
6         40          1   2.50%  0.24         90.24%             3.21%
7         40          2   5.00%  0.49         95.12%             1.79%
8         40          1   2.50%  0.24         97.56%             1.04%
9         40          0   0.00%  0.00         97.56%             0.62%
10        40          1   2.50%  0.24        100.00%             0.39%

city     rows  positives   share     AUC      95% interval
Oslo      193         21  10.88%  0.8253  0.6758 to 0.9146
Rome      133         16  12.03%  0.8787  0.7116 to 0.9551
Bonn       53          4   7.55%  0.9617  0.8581 to 0.9905
(empty)    21          0   0.00%       -    one label only
"""


def test_the_numbers_are_those_of_the_library(model, data):
    found = json.loads(run("evaluate", model, data, "--json").stdout)
    opened = Model.open(model)
    scores, p = opened.scores(ROWS), opened.judge(ROWS).probabilities
    called = scores > 0
    auc = auc_interval(Y, scores)
    best = optimal_operating_point(Y, scores)
    order = np.argsort(-scores)
    hits, parts = Y[order].cumsum(), found.pop("calibration")
    assert [part["rows"] for part in parts] == [1] * 5
    assert [part["mean_probability"] for part in parts] == pytest.approx(p[order])
    assert found == {
        "positive": "yes",
        "rows": 5,
        "positives": 3,
        "share": 0.6,
        "auc": auc.auc,
        "auc_low": auc.low,
        "auc_high": auc.high,
        "auc_std": auc.std,
        "average_precision": pytest.approx(average_precision_score(Y, scores)),
        "log_loss": pytest.approx(log_loss(Y, p)),
        "log_loss_of_share": pytest.approx(log_loss(Y, np.full(5, 0.6))),
        "calibration_error": pytest.approx(np.abs(Y - p).mean()),  # each row is a part
        "mean_probability": pytest.approx(p.mean()),
        "at_model_threshold": {
            "threshold": 0.0,
            "rows": called.sum(),
            "precision": Y[called].mean(),
            "accuracy": accuracy_score(Y, called),
            "fpr": called[Y == 0].mean(),
            "tpr": called[Y == 1].mean(),
        },
        "at_best_threshold": {
            "threshold": best.threshold,
            "rows": (scores >= best.threshold).sum(),
            "precision": Y[scores >= best.threshold].mean(),
            "accuracy": accuracy_at_operating_point(Y, scores),
            "fpr": best.fpr,
            "tpr": best.tpr,
        },
        "tops": [],
        "deciles": [
            {
                "rows": 1,
                "positives": Y[row],
                "share": Y[row],
                "lift": pytest.approx(Y[row] / 0.6),
                "cumulative_recall": pytest.approx(hits[at] / 3),
                "mean_probability": pytest.approx(p[row]),
            }
            for at, row in enumerate(order)
        ],
    }


def test_json_has_all_that_is_asked_for(many):
    asked = "--at", "10", "--precision", "90%", "--recall", "80%", "--by", "city"
    found = json.loads(run("evaluate", *many, *asked, "--json").stdout)
    X, city, y = many_rows()
    scores = Model.open(many[0]).scores(X)

    def among(rows):
        return sum(
            y[scores == s].sum() * np.clip((rows - (scores > s).sum()) / (scores == s).sum(), 0, 1)
            for s in np.unique(scores)
        )

    tops = {top["top"]: top for top in found["tops"]}
    assert list(tops) == ["1%", "10 rows", "5%", "10%"]  # 0.1% is less than a row
    for name, rows in {"1%": 4, "10 rows": 10, "5%": 20, "10%": 40}.items():
        hits = among(rows)
        assert tops[name] == {
            "top": name,
            "rows": rows,
            "positives": pytest.approx(hits),
            "precision": pytest.approx(hits / rows),
            "recall": pytest.approx(hits / y.sum()),
            "lift": pytest.approx(hits / rows / y.mean()),
        }
    assert [part["rows"] for part in found["deciles"]] == [40] * 10
    assert sum(part["positives"] for part in found["deciles"]) == pytest.approx(y.sum())
    assert [part["rows"] for part in found["calibration"]] == [4, 16, 20, *[40] * 9]
    for part in found["calibration"]:
        wilson = binomtest(round(part["positives"]), part["rows"]).proportion_ci(method="wilson")
        if part["positives"] % 1 == 0:
            assert (part["low"], part["high"]) == pytest.approx(tuple(wilson), abs=1e-4)
    (precise,) = found["at_precision"]
    assert precise == {
        "wanted": 0.9, "threshold": None, "rows": 0, "precision": None, "accuracy": None,
        "fpr": None, "tpr": None,
    }  # fmt: skip
    (recalled,) = found["at_recall"]
    assert recalled["wanted"] == 0.8 <= recalled["tpr"]
    called = scores >= recalled["threshold"]
    assert (recalled["rows"], recalled["precision"]) == (called.sum(), y[called].mean())
    assert found["groups"]["column"] == "city"
    for at, group in enumerate(found["groups"]["groups"]):
        inside = city == at
        assert (group["group"], group["rows"]) == (CITIES[at], inside.sum())
        assert group["positives"] == y[inside].sum()
        if at == 3:
            assert (group["positives"], group["auc"], group["auc_low"]) == (0, None, None)
        else:
            assert group["auc"] == pytest.approx(roc_auc_score(y[inside], scores[inside]))
            assert group["auc_low"] == auc_interval(y[inside], scores[inside]).low


@pytest.mark.parametrize("column", ["row", "new"])
def test_groups_by_the_id_and_by_a_column_that_the_model_does_not_know(many, column):
    text = many[1].read_text().splitlines()
    lines = [f"{line},{line.split(',')[2]}" for line in text[1:]]
    many[1].write_text("\n".join([text[0] + ",new", *lines, ""]))
    result = run("evaluate", *many, "--by", column, "--quiet", "--json")
    groups = json.loads(result.stdout)["groups"]["groups"]
    assert len(groups) == 51
    assert groups[0]["rows"] == 1
    assert groups[0]["auc"] is None
    assert (groups[-1]["group"], groups[-1]["values"], groups[-1]["rows"]) == (None, 350, 350)
    assert "the other 350 values" in run("evaluate", *many, "--by", column).stdout


def test_groups_that_cannot_be(many, tmp_path):
    model, table = many
    (tmp_path / "short.csv").write_text("age,income,clicked\n1,2,no\n5,1,yes\n")
    svmlight = make_svmlight(tmp_path)
    for arguments, sentence in [
        ((model, table, "--by", "age"),
         "column 'age' is a feature of the model: rows are not grouped by it."),
        ((model, table, "--by", "clicked"), "column 'clicked' is the label: group rows by another."),
        ((model, tmp_path / "short.csv", "--by", "city"),
         f"{tmp_path / 'short.csv'} has no column 'city' to group rows by."),
        ((svmlight, tmp_path / "train.svm", "--by", "1"),
         "svmlight text has no columns that could be named."),
    ]:  # fmt: skip
        result = run("evaluate", *arguments, "--quiet")
        assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"Error: {sentence}\n")


def test_several_files_are_one_set_of_rows(model, data, tmp_path):
    (tmp_path / "more.csv").write_text(TEST)
    found = json.loads(run("evaluate", model, data, tmp_path / "more.csv", "--json").stdout)
    assert (found["rows"], found["positives"]) == (10, 6)
    assert [part["rows"] for part in found["deciles"]] == [1] * 10
    assert found["deciles"][0]["positives"] == found["deciles"][1]["positives"] == 1


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
@pytest.mark.parametrize(
    ("option", "texts"),
    [
        ("--roc", ["AUC 0.8333, 95% interval 0.0149 to 0.9994", "3 positives", "2 negatives",
                   "best threshold here: accuracy 0.800"]),
        ("--pr", ["Average precision 0.9167, by chance 0.6000", "3 positives",
                  "best threshold here: precision 1.000"]),
        ("--calibration", ["Calibration error 0.", "mean probability of a part"]),
    ],
)  # fmt: skip
def test_pictures_are_drawn(model, data, tmp_path, option, texts, ending):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    path = tmp_path / f"drawn.{ending}"
    result = run("evaluate", model, data, option, path)
    assert (result.exit_code, result.stdout, result.stderr) == (0, GOLDEN, "")
    drawn = path.read_bytes()
    if ending == "png":
        assert drawn.startswith(b"\x89PNG")
    else:
        for text in texts:
            assert text.encode() in drawn
    again = tmp_path / "again" / path.name
    again.parent.mkdir()
    run("evaluate", model, data, option, again)
    assert again.read_bytes() == drawn


def test_a_page_is_written(many, tmp_path):
    pytest.importorskip("matplotlib", reason="pages need matplotlib")
    path = tmp_path / "page.html"
    result = run("evaluate", *many, "--by", "city", "--at", "2.5%", "--at", "7", "--html", path)
    assert (result.exit_code, result.stderr) == (0, "")
    text = path.read_text(encoding="utf-8")
    assert "<title>clicks.model: evaluation</title>" in text
    again = f"cbrank evaluate {many[0]} {many[1]} --at 2.5% --at 7 --by city"
    assert f"<pre><code>{again}</code></pre>" in text
    for name, _, cells in (line.partition(" ") for line in result.stdout.splitlines()):
        if name in ("Oslo", "Rome", "Bonn"):
            row = text[text.index(f'<th scope="row">{name}</th>') :].split("</tr>")[0]
            assert all(cell in row for cell in cells.split())


def test_a_million_points_make_a_small_picture(tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    from cbrank.inspection import pictures  # noqa: PLC0415
    from cbrank.inspection.evaluation import evaluate  # noqa: PLC0415

    random = np.random.RandomState(0)
    y = random.randint(0, 2, 200_000)
    scores = random.standard_normal(200_000) + y
    found = evaluate(y, scores, np.full(len(y), 0.5), threshold=0.5)
    for picture in pictures.PICTURES:
        pictures.draw(tmp_path / "drawn.svg", picture, found)
        assert (tmp_path / "drawn.svg").stat().st_size < 200_000


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


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--roc", "roc.bmp"], "roc.bmp must end in .png or .svg."),
        (["--html", "page.htm"], "page.htm must end in .html."),
        (
            ["--roc", "a.png", "--pr", "a.png"],
            "--roc and --pr would both be written to a.png: give two files.",
        ),
        (["--at", "0"], "'0' is neither a number of rows nor a share such as 2%."),
        (["--at", "0.5"], "'0.5' is neither a number of rows nor a share such as 2%."),
        (["--at", "101%"], "'101%' is not a share of the whole: write it as 0.9 or 90%."),
        (["--precision", "90"], "'90' is not a share of the whole: write it as 0.9 or 90%."),
        (["--recall", "-1%"], "'-1%' is not a share of the whole: write it as 0.9 or 90%."),
        (["--recall", "nan"], "'nan' is not a share of the whole: write it as 0.9 or 90%."),
    ],
)
def test_usage_errors_exit_2(model, data, arguments, sentence, monkeypatch):
    monkeypatch.chdir(model.parent)
    result = run("evaluate", model, data, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert run("evaluate", model).exit_code == 2


def test_help_has_an_example():
    text = run("evaluate", "--help").stdout
    assert "cbrank evaluate clicks.model tomorrow.csv --roc roc.png" in text
