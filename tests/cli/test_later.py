"""Models that learned a stream in its order and are put away: what commands make of rows of later."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import call
from sklearn.metrics import roc_auc_score
from walking import walking_rows

import cbrank
from cbrank import AdditiveRanker, CBRanker
from cbrank.inspection.contents import Contents
from cbrank.training import Model

ROWS, CUT = 8000, 6000
NAMES = [f"x{at}" for at in range(9)]
LINE = ("train", "early.csv", "--label", "y", "--in-order", "-o", "x.model")


def write(seed):
    """Write the first three quarters of a stream, and the last one; return both."""
    X, y = walking_rows(ROWS, seed)
    frame = pd.DataFrame(X, columns=NAMES).assign(y=y)
    parts = frame[:CUT], frame[CUT:]
    for part, name in zip(parts, ("early.csv", "late.csv"), strict=True):
        part.to_csv(name, index=False)
    return parts


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with a stream and a model that learned its first three quarters in order."""
    folder = tmp_path_factory.mktemp("later")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        early, late = write(3)
        call(*LINE, "--quiet")
        yield folder, early, late


def fitted(early, **parameters):
    ranker = AdditiveRanker(random_state=0, **parameters)
    return ranker.fit(early[NAMES], early["y"])


def evaluated(*line):
    return json.loads(call("evaluate", *line, "--json")[0])["auc"]


def scores(model, data):
    return np.array(call("score", model, data)[0].split(), np.float64)


@pytest.mark.parametrize("seed", [1, 3])
def test_a_model_that_is_put_away_ranks_the_last_quarter_as_fit_does(tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    early, late = write(seed)
    call(*LINE, "--quiet")
    found = evaluated("x.model", "late.csv")
    fit = roc_auc_score(late["y"], fitted(early).decision_function(late[NAMES]))
    assert found > fit - 0.03
    nearest = cbrank.load("x.model").set_params(horizon="next").decision_function(late[NAMES])
    assert found > roc_auc_score(late["y"], nearest) + 0.005


def test_few_rows_have_the_scores_that_they_have_among_many(here):
    _, _, late = here
    late[:7].to_csv("few.csv", index=False)
    expected = cbrank.load("x.model").set_params(horizon="later").decision_function(late[NAMES])
    np.testing.assert_array_equal(scores("x.model", "late.csv"), expected)
    np.testing.assert_array_equal(scores("x.model", "few.csv"), expected[:7])


def test_a_horizon_that_was_chosen_stays(here):
    _, _, late = here
    model = Model.open("x.model")
    model.ranker.set_params(horizon="next")
    model.write("next.model")
    expected = model.ranker.decision_function(late[NAMES])
    np.testing.assert_array_equal(scores("next.model", "late.csv"), expected)
    assert evaluated("next.model", "late.csv") < evaluated("x.model", "late.csv")
    assert "horizon='next'" in call("inspect", "next.model")[0]


def test_an_update_goes_on_and_keeps_the_parameter(here):
    folder, _, late = here
    before = (folder / "x.model").read_bytes()
    evaluated("x.model", "late.csv")
    call("inspect", "x.model")
    assert (folder / "x.model").read_bytes() == before
    call("update", "x.model", "late.csv", "-o", "on.model", "--quiet")
    saved = cbrank.load("on.model")
    straight = cbrank.load("x.model").partial_fit(late[NAMES], late["y"].to_numpy())
    assert saved.horizon == "auto"
    some = late[NAMES][:50]
    np.testing.assert_array_equal(saved.decision_function(some), straight.decision_function(some))


def test_inspect_shows_what_ranks_later_rows_and_the_parameters_of_the_file(here):
    folder, early, _ = here
    facts = json.loads(call("inspect", "x.model", "--json")[0])
    stream = cbrank.load("x.model")
    assert facts["parameters"] == stream.get_params(deep=False)
    assert (facts["rows"], facts["pairs"]) == (CUT, stream.n_pairs_)
    ranker = Contents.open(folder / "x.model").ranker
    effects = ranker.effects()
    moves = dict(zip((term.name for term in effects.terms), effects.moves().tolist(), strict=True))
    assert [term["effect"] for term in facts["terms"]] == sorted(moves.values(), reverse=True)
    far = ranker.effects().curve("x5").grid
    assert min(far) < early["x5"].quantile(0.1)
    assert max(far) > early["x5"].quantile(0.9)


def test_onnx_has_the_scores_of_score(here):
    _, _, late = here
    pytest.importorskip("onnx", reason="export needs the extra onnx")
    runtime = pytest.importorskip("onnxruntime", reason="what is exported is run by it")
    call("export", "x.model", "--onnx", "x.onnx")
    session = runtime.InferenceSession("x.onnx")
    columns = {name: late[name].to_numpy()[:100] for name in NAMES}
    given = session.run(None, columns)[0].ravel()
    np.testing.assert_allclose(given, scores("x.model", "late.csv")[:100], rtol=1e-6, atol=1e-6)


def test_rows_held_out_are_ranked_as_evaluate_ranks_them(here):
    _, early, late = here
    pd.concat([early, late]).to_csv("all.csv", index=False)
    line = ["train", "all.csv", *LINE[2:-1], "held.model", "--holdout", "last-25%", "--json"]
    held = json.loads(call(*line)[0])["held_out"]
    assert (held["which"], held["rows"]) == ("last", ROWS - CUT)
    assert cbrank.load("held.model").horizon == "auto"
    assert held["auc"] == pytest.approx(evaluated("held.model", "late.csv"), abs=1e-6)


def test_a_linear_model_of_svmlight_text_ranks_later_rows_too(here):
    _, early, late = here
    for part, name in (early, "early.svm"), (late, "late.svm"):
        rows = part[NAMES].to_numpy()
        lines = [
            " ".join([str(y), *(f"{at}:{value!r}" for at, value in enumerate(row, 1))])
            for y, row in zip(part["y"], rows.tolist(), strict=True)
        ]
        (here[0] / name).write_text("\n".join(lines) + "\n")
    call("train", "early.svm", "--in-order", "--quiet", "-o", "svm.model")
    ranker = CBRanker(random_state=0, horizon="later")
    ranker.partial_fit(early[NAMES].to_numpy(), early["y"])
    found = scores("svm.model", "late.svm")
    assert roc_auc_score(late["y"], found) == pytest.approx(
        roc_auc_score(late["y"], ranker.decision_function(late[NAMES].to_numpy())), abs=0.01
    )


# How long a model keeps -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def turned(tmp_path_factory):
    """A stream of two numbers whose meaning turns slowly, so that what was learned is soon wrong."""
    folder = tmp_path_factory.mktemp("turned")
    random = np.random.RandomState(0)
    X = random.randn(ROWS, 2)
    angle = np.linspace(0, 2.5, ROWS)
    y = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle) + 0.5 * random.randn(ROWS) > 0.5
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y.astype(int))
    frame.to_csv(folder / "turned.csv", index=False)
    return folder


@pytest.fixture
def line(turned, monkeypatch):
    monkeypatch.chdir(turned)
    return "train", "turned.csv", "--label", "y", "--shape", "linear", "-o", "t.model"


def test_train_tells_that_a_model_will_not_keep(line):
    out, err = call(*line, "--in-order", "--json")
    ages = json.loads(out)["auc_by_age"]
    expected = cbrank.load("t.model").auc_by_age_
    assert [[*age] for age in ages] == [["rows", "auc", "error"]] * len(expected)
    np.testing.assert_array_equal([[*age.values()] for age in ages], expected)
    assert ages[0]["auc"] > ages[-1]["auc"] + 0.1
    notes = [json.loads(told).get("note", "") for told in err.splitlines()]
    (told,) = [note for note in notes if note.startswith("put away, this model will not keep")]
    assert f"an AUC of {ages[-1]['auc']:.3f} (standard error {ages[-1]['error']:.3f})" in told


def test_shuffled_rows_have_no_ages(line):
    out, err = call(*line, "--json")
    assert json.loads(out)["auc_by_age"] == []
    assert "will not keep" not in err
    assert (
        "AUC by age       not known: rows were shuffled" in call("inspect", "t.model", "--ages")[0]
    )


def test_rows_that_stay_the_same_are_not_told_of(line, turned):
    random = np.random.RandomState(1)
    X = random.randn(4000, 2)
    y = (X[:, 0] + 0.5 * random.randn(4000) > 0.5).astype(int)
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y).to_csv(turned / "same.csv", index=False)
    _, err = call("train", "same.csv", *line[2:-1], "same.model", "--in-order")
    assert "will not keep" not in err


def test_inspect_measures_ages_when_it_is_asked(line):
    call(*line, "--in-order", "--quiet")
    plain, told = (call("inspect", "t.model", *more)[0] for more in ((), ("--ages",)))
    ages = json.loads(call("inspect", "t.model", "--ages", "--json")[0])["auc_by_age"]
    assert "auc_by_age" not in json.loads(call("inspect", "t.model", "--json")[0])
    np.testing.assert_array_equal(
        [[*age.values()] for age in ages], cbrank.load("t.model").auc_by_age_
    )
    assert "AUC by age" not in plain
    (said,) = [found for found in told.splitlines() if found.startswith("AUC by age")]
    for age in ages:
        assert f"{age['auc']:.4f} ± {age['error']:.4f} ({age['rows']:,.0f} rows later)" in said
