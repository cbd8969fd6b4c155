"""``cbrank inspect`` from the outside."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from learners import RANKERS
from learners import make as make_ranker
from sklearn.pipeline import make_pipeline
from tables import make, make_svmlight, run

import cbrank
from cbrank.inspection.weights import by_effect
from cbrank.streams import StreamScaler

GOLDEN = """\
class            CBRanker
features         2
scaling          none
label column     clicked
id column        row
rows             4: 2 negative ('no'), 2 positive ('yes')
pairs            4
updates          3
intercept        -0.199557

feature            weight            effect         deviation  weight/deviation
income          -0.508278           1.43763          0.880731         -0.577109
age              0.470517           1.05211          0.897248          0.524401
"""


def test_what_it_prints(tmp_path):
    model = make(tmp_path)
    result = run("inspect", model)
    assert (result.exit_code, result.stderr) == (0, "")
    file, versions, kind, parameters, *rest = result.stdout.splitlines(keepends=True)
    assert "".join([kind, *rest]) == GOLDEN
    assert file == f"file             {model}, {model.stat().st_size:,} bytes\n"
    assert versions.startswith(f"written by       cbrank {cbrank.__version__}, python 3.")
    assert parameters.startswith("parameters       C=0.5, average=False, buffer_size='auto', cov")


def test_a_chosen_C_is_shown(tmp_path):
    model = make(tmp_path, ranker=cbrank.CBRanker(C="auto", random_state=0))
    chosen = cbrank.load(model).C_
    assert f"\nC chosen         {chosen:g}\n" in run("inspect", model).stdout
    assert json.loads(run("inspect", model, "--json").stdout)["C"] == chosen


def test_json_holds_every_digit(tmp_path):
    model = make(tmp_path)
    found = json.loads(run("inspect", model, "--json").stdout)
    ranker = cbrank.load(model)
    assert found["parameters"] == ranker.get_params()
    assert (found["pairs"], found["updates"]) == (ranker.n_pairs_, ranker.n_updates_)
    assert found["labels"] == {"no": 2, "yes": 2}
    assert found["intercept"] == ranker.intercept_
    assert (found["progressive_auc"], found["recent_auc"]) == (None, None)  # before the first block
    assert [weight["feature"] for weight in found["weights"]] == ["income", "age"]
    weights = np.array([list(weight.values())[1:] for weight in found["weights"]])
    std = np.sqrt(np.diag(ranker.covariance_))
    spread = np.std([[2, 4], [4, 0], [6, 8], [8, 4]], axis=0)
    mean = ranker.coef_[0]
    expected = np.column_stack([mean, abs(mean) * spread, std, mean / std])
    np.testing.assert_allclose(weights[::-1], expected, rtol=1e-14)


@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker_can_be_looked_at(tmp_path, name):
    model = make(tmp_path, ranker=make_ranker(name), scaler=StreamScaler("standard"))
    result = run("inspect", model, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert (found["scaler"], found["rows"]) == ("standard", 4)
    confident = hasattr(RANKERS[name], "covariance")
    assert all(("deviation" in weight) == confident for weight in found["weights"])
    table = run("inspect", model).stdout.split("\n\n")[1].splitlines()
    assert len(table) == 3
    assert ("deviation" in table[0]) == confident


def test_svmlight_features_are_named_by_index_and_top_cuts(tmp_path):
    model = make_svmlight(tmp_path)
    text = run("inspect", model, "--top", "1").stdout
    assert "label column" not in text
    *_, row, more = text.splitlines()
    assert row.split()[0] == "2"
    assert more == "... and 1 more: --top 0 shows all."
    rows = json.loads(run("inspect", model, "--top", "0", "--json").stdout)["weights"]
    assert [row["feature"] for row in rows] == ["2", "1"]


def test_features_that_the_buffer_does_not_show_come_last_by_confidence():
    X = np.zeros((120, 4))
    X[:, 0] = np.arange(120) % 2
    X[:20, 1] = 9 * (np.arange(20) % 2)
    X[:10, 2] = np.arange(10) % 2
    ranker = cbrank.CBRanker(buffer_size=2).partial_fit(X, np.arange(120) % 2)
    found = by_effect(ranker)
    assert found.features.tolist() == [0, 1, 2, 3]
    assert found.effects[1:].tolist() == [0, 0, 0]
    assert found.deviations is not None
    assert (np.diff(abs(found.weights[1:] / found.deviations[1:])) < 0).all()


def test_models_saved_from_python_can_be_looked_at(tmp_path):
    frame = pd.DataFrame({"age": [2.0, 4, 6, 8], "income": [4.0, 0, 8, 4]})
    path = tmp_path / "python.model"
    cbrank.save(cbrank.CBRanker(0.0625).partial_fit(frame, ["no", "yes", "no", "yes"]), path)
    text = run("inspect", path).stdout
    assert "2 negative ('no'), 2 positive ('yes')" in text
    assert text.splitlines()[-1].split()[0] == "age"
    pipeline = make_pipeline(StreamScaler("maxabs"), cbrank.OAMRanker(C=0.1))
    cbrank.save(pipeline.fit(frame.to_numpy(), [0, 1, 0, 1]), path)
    text = run("inspect", path).stdout
    assert "scaling          maxabs" in text
    assert {line.split()[0] for line in text.splitlines()[-2:]} == {"1", "2"}


def test_a_model_of_one_class(tmp_path):
    text = "row,age,income,clicked\na,2,4,no\nb,3,4,no\n"
    result = run("inspect", make(tmp_path, text=text, positive="yes"))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "rows             2: 2 negative ('no'), 0 positive ('yes')" in result.stdout
    assert "intercept        -1" in result.stdout


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_weights_are_drawn(tmp_path, ending):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    text = "row,age $x$,a_very_long_name_that_would_not_fit_beside_a_picture,clicked\n"
    text += "a,2,4,no\nb,4,0,yes\n"
    for ranker in (None, cbrank.OAMRanker(C=0.1)):
        model = make(tmp_path, ranker=ranker, text=text)
        path = tmp_path / f"weights.{ending}"
        result = run("inspect", model, "--picture", path)
        assert (result.exit_code, result.stderr) == (0, "")
        drawn = path.read_bytes()
        if ending == "png":
            assert drawn.startswith(b"\x89PNG")
        else:
            assert b"age $x$" in drawn
            assert (b"standard deviation" in drawn) == (ranker is None)


def test_errors(tmp_path):
    (tmp_path / "x.model").write_bytes(b"not a model")
    for path in (tmp_path / "no.model", tmp_path / "x.model", tmp_path):
        result = run("inspect", path)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
    assert run("inspect").exit_code == 2
    result = run("inspect", make(tmp_path), "--picture", "weights.pdf")
    assert result.exit_code == 2
    assert "weights.pdf must end in .png or .svg." in result.stderr


def test_help_has_an_example():
    assert "cbrank inspect clicks.model --picture weights.svg" in run("inspect", "-h").stdout


def test_an_auc_of_which_nothing_is_known_of_late(tmp_path):
    rows = "".join(
        f"r{row},{row % 7},{row % 5},{'no' if row % 3 else 'yes'}\n" for row in range(99)
    )
    model = make(tmp_path, text=f"row,age,income,clicked\n{rows}")
    assert re.search(r"progressive AUC  0\.\d{4}, recent 0\.\d{4}\n", run("inspect", model).stdout)
    ranker = cbrank.load(model)
    ranker._learned.state.record.sums[1] = 0.0  # as after very many rows of one class
    cbrank.save(ranker, model)
    assert re.search(r"progressive AUC  0\.\d{4}\n", run("inspect", model).stdout)
    found = json.loads(run("inspect", model, "--json").stdout)
    assert found["recent_auc"] is None


def test_importances_are_those_of_the_ranker(tmp_path):
    random = np.random.RandomState(0)
    frame = pd.DataFrame(random.normal(size=(400, 3)), columns=["age", "income", "visits"])
    y = (frame.income + 0.3 * frame.visits + random.normal(size=400) > 0).astype(int)
    ranker = cbrank.AdditiveRanker(trees=0, random_state=0).fit(frame, y)
    cbrank.save(ranker, tmp_path / "x.model")
    expected = dict(zip(frame.columns, ranker.feature_importances_, strict=True))
    found = json.loads(run("inspect", tmp_path / "x.model", "--importance", "--json").stdout)
    assert [row["name"] for row in found["importances"]] == ["income", "visits", "age"]
    for row in found["importances"]:
        assert row["importance"] == pytest.approx(expected[row["name"]])
    lines = run("inspect", tmp_path / "x.model", "--importance", "--top", "2").stdout.splitlines()
    first, second, more = lines[lines.index("column  importance") + 1 :]
    assert first.split() == ["income", f"{expected['income']:.4f}"]
    assert second.split() == ["visits", f"{expected['visits']:.4f}"]
    assert more == "... and 1 more: --top 0 shows all."


def test_importances_are_of_tables(tmp_path):
    result = run("inspect", make(tmp_path), "--importance")
    assert result.exit_code == 2
    assert "--importance is of an AdditiveRanker, and this is a CBRanker" in result.stderr
