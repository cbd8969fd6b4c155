"""``cbrank export``: the same scores from another runtime."""

import json
import sys
import zlib

import numpy as np
import pytest
from learners import RANKERS
from learners import make as make_ranker
from scipy.sparse import csr_array
from tables import make, make_svmlight, run

import cbrank
from cbrank.onnx import to_onnx
from cbrank.streams import StreamScaler
from cbrank.training import Model

onnx = pytest.importorskip("onnx", reason="exporting needs onnx")
runtime = pytest.importorskip("onnxruntime", reason="running what is exported needs onnxruntime")
KINDS = ["none", "standard", "maxabs", "unit"]


def scores(model, X):
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (found,) = session.run(["score"], {"features": X})
    assert found.dtype == np.float64
    return found


@pytest.fixture(scope="module")
def rows():
    X, y, _ = cbrank.datasets.load("german")
    return np.ascontiguousarray(X) * 10.0 ** (np.arange(24) % 7 - 3) + 5, y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker_scores_the_same_there(rows, name, kind):
    X, y = rows
    scaler = StreamScaler(kind)
    learned = scaler.learn_transform(X[:200])
    ranker = make_ranker(name)
    if "step" in ranker.get_params():
        ranker.set_params(step=1e-9)
    ranker.partial_fit(learned, y[:200])
    found = scores(to_onnx(ranker, scaler).SerializeToString(), X)
    expected = ranker.decision_function(scaler.transform(X))
    raw = np.abs(expected - ranker.intercept_)  # the intercept may be far from 0, where rows are
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * raw.max())


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_rows_are_not_centred(kind, tmp_path):
    scaler = None if kind == "none" else StreamScaler(kind)
    model, path = make_svmlight(tmp_path, scaler=scaler), tmp_path / "text.onnx"
    assert run("export", model, "--onnx", path).exit_code == 0
    X = np.array([[5.0, 1], [3, 6], [0, 0], [1e-200, 1e-200], [1e200, -1e200]])
    np.testing.assert_allclose(
        scores(str(path), X), Model.open(model).scores(csr_array(X)), rtol=1e-12
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_writes_what_score_gives(tmp_path, kind):
    model = make(tmp_path, scaler=StreamScaler(kind))
    path = tmp_path / "clicks.onnx"
    result = run("export", model, "--onnx", path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"{path}: features double[rows, 2], score double[rows]\n"
    lines = run("score", model, tmp_path / "test.csv").stdout.splitlines()[1:]
    X = np.array([[5.0, 1], [3, 6], [4, 2], [1, 4], [9, 0]])
    expected = [float(line.rpartition(",")[2]) for line in lines]
    np.testing.assert_allclose(scores(str(path), X), expected, rtol=1e-12)
    known = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert json.loads(known["features"]) == ["age", "income"]
    assert json.loads(known["labels"]) == ["no", "yes"]
    assert known.keys() == {"features", "labels"}
    graph = onnx.load(path).graph
    [add] = [node for node in graph.node if node.op_type == "Add"]
    held = {array.name: onnx.numpy_helper.to_array(array) for array in graph.initializer}
    assert held[add.input[1]] == Model.open(model).ranker.intercept_


def test_models_saved_from_python(tmp_path):
    X, y = np.array([[2.0, 4], [4, 0], [6, 8], [8, 4]]), [0, 1, 0, 1]
    ranker, path = cbrank.CBRanker().partial_fit(X, y), tmp_path / "python.model"
    cbrank.save(ranker, path)
    assert run("export", path, "--onnx", tmp_path / "python.onnx").exit_code == 0
    found = scores(str(tmp_path / "python.onnx"), X)
    np.testing.assert_allclose(found, ranker.decision_function(X), rtol=1e-12)


def test_what_cannot_be_exported_is_refused(tmp_path):
    text = "row,age,plan,clicked\na,2,free,no\nb,4,paid,yes\n"
    model = make(tmp_path, text=text, categorical={"plan": "onehot"},
                 ranker=cbrank.CBRanker(covariance="diagonal"))  # fmt: skip
    result = run("export", model, "--onnx", tmp_path / "x.onnx")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"Error: {model} reads categories (column 'plan'), and a linear ONNX scorer takes numbers only: "
        "train a model on columns of numbers.\n"
    )
    assert not (tmp_path / "x.onnx").exists()


def test_a_model_of_a_table_says_what_to_feed(tmp_path):
    random, rows = np.random.RandomState(0), 400
    X = {
        "customer_id": np.arange(rows),
        "age": random.randint(18, 80, rows),
        "city": random.choice([f"{at}burgh" for at in range(99)], rows),
        "since": np.datetime64("2020-01-01") + random.randint(900, size=rows),
        "plan": random.choice(["free", "paid", ""], rows),
    }
    y = np.where(random.random_sample(rows) < X["age"] / 90.0, "yes", "no")
    ranker = cbrank.AdditiveRanker(C=2.0**-8, random_state=0).partial_fit(X, y)
    cbrank.save(ranker, tmp_path / "churn.model")
    path = tmp_path / "churn.onnx"
    result = run("export", tmp_path / "churn.model", "--onnx", path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        f"{path}: 5 inputs, score double[rows], probability double[rows], label string[rows]\n"
        "input         type    taken as\n"
        "age           double  number\n"
        "city          string  category\n"
        "city: bucket  int64   CRC-32 of the category, modulo 32\n"
        "since         double  date, in seconds since 1970\n"
        "plan          string  category\n"
        "left out: customer_id\n"
    )
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    score, probability, label = session.run(
        None,
        {
            "age": X["age"].astype(float),
            "city": X["city"].astype(object),
            "city: bucket": np.array([zlib.crc32(city.encode()) % 32 for city in X["city"]]),
            "since": X["since"].astype("M8[s]").astype(float),
            "plan": X["plan"].astype(object),
        },
    )
    ranker.set_params(horizon="later")  # a file does not go on learning
    np.testing.assert_allclose(score, ranker.decision_function(X), rtol=1e-9)
    np.testing.assert_allclose(probability, ranker.predict_proba(X)[:, 1], rtol=1e-9)
    assert label.tolist() == ranker.predict(X).tolist()


def test_free_text_is_refused(tmp_path):
    texts = [f"win a prize now {at}" for at in range(300)]
    ranker = cbrank.AdditiveRanker().partial_fit({"message": texts}, [0, 1] * 150)
    cbrank.save(ranker, tmp_path / "spam.model")
    result = run("export", tmp_path / "spam.model", "--onnx", tmp_path / "spam.onnx")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "Error: column 'message' holds free text, for which ONNX has no standard operators: "
        "score by cbrank, or train with the column dropped.\n"
    )
    assert not (tmp_path / "spam.onnx").exists()


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    result = run("export", make(tmp_path), "--onnx", tmp_path / "x.onnx")
    assert result.exit_code == 1
    assert result.stderr == "Error: --onnx needs onnx: pip install 'cbrank[onnx]'.\n"


def test_errors(tmp_path):
    model = make(tmp_path)
    assert run("export", model).exit_code == 2
    assert run("export", tmp_path / "no.model", "--onnx", tmp_path / "x").exit_code == 1
    result = run("export", model, "--onnx", tmp_path / "no" / "x.onnx")
    assert result.exit_code == 1
    assert "cannot be written: there is no folder" in result.stderr


def test_help_has_an_example():
    assert "cbrank export clicks.model --onnx clicks.onnx" in run("export", "-h").stdout
