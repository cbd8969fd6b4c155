"""What columns do to scores: curves, contributions, and a sentence for a row."""

import numpy as np
import pandas as pd
import pytest

from cbrank import AdditiveRanker


def made(rows=1500, seed=0):
    """Return a table of every kind of column, and labels that depend on it."""
    random = np.random.RandomState(seed)
    frame = pd.DataFrame(
        {
            "tenure": random.exponential(20, rows).round(),
            "age": random.normal(40, 12, rows),
            "contract": random.choice(["Monthly", "One year", "Two years"], rows),
            "paid": random.rand(rows) < 0.4,
            "when": pd.Timestamp("2023-01-01") + pd.to_timedelta(random.rand(rows) * 500, unit="D"),
            "temp": np.where(random.rand(rows) < 0.1, -999.0, random.normal(5, 3, rows)),
            "id": np.arange(rows),
        }
    )
    score = -0.1 * frame.tenure + 2 * (frame.contract == "Monthly")
    score += (frame.age - 40) * np.where(frame.paid, 0.1, -0.1) + random.logistic(size=rows)
    frame.loc[random.rand(rows) < 0.1, "age"] = np.nan
    frame.loc[random.rand(rows) < 0.1, "contract"] = None
    return frame, (score > 1).to_numpy().astype(int)


@pytest.fixture(scope="module")
def table():
    return made()


@pytest.fixture(scope="module", params=["full", "diagonal", "fixed C"])
def ranker(request, table):
    settings = {"C": 2.0**-6} if request.param == "fixed C" else {"covariance": request.param}
    return AdditiveRanker(random_state=0, **settings).fit(*table)


def test_contributions_sum_to_scores(ranker, table):
    scores = ranker.decision_function(table[0])
    summed = ranker.contributions(table[0]).sum(axis=1) + ranker.intercept_
    np.testing.assert_allclose(summed, scores, rtol=1e-12, atol=1e-12 * np.abs(scores).max())


def test_terms_sum_to_contributions(ranker, table):
    effects = ranker.effects()
    parts = effects.parts(ranker.encoder_.encode_dense(ranker.encoder_.read(table[0])))
    expected = np.zeros((len(table[0]), ranker.n_features_in_))
    for part, term in zip(parts.T, effects.terms, strict=True):
        expected[:, term.column] += part
    np.testing.assert_allclose(ranker.contributions(table[0]), expected, atol=1e-10)


def alone(ranker, column, values):
    """Return what a column adds by itself at some values, by the features of a table of them."""
    frame = pd.DataFrame({name: [None] * len(values) for name in ranker.encoder_.kinds_})
    frame[column] = values
    Z = ranker.encoder_.encode_dense(ranker.encoder_.read(frame))
    own = ranker.encoder_.owners_ == list(frame).index(column)
    Z[:, ~own] = 0.0
    return Z


@pytest.mark.parametrize("column", ["tenure", "age", "temp", "paid"])
def test_a_curve_and_its_deviation_by_a_slow_reading(ranker, table, column):
    grid, effect, deviation = ranker.curve(column)
    known = ranker.encoder_.known()[[*ranker.encoder_.kinds_].index(column)]
    Z = alone(ranker, column, grid) - alone(ranker, column, [known.curve.median])
    np.testing.assert_allclose(effect, Z @ ranker.coef_[0], atol=1e-10)
    covariance = ranker.covariance_
    full = covariance if covariance.ndim == 2 else np.diag(covariance)
    expected = np.sqrt([z @ full @ z for z in Z])
    np.testing.assert_allclose(deviation, expected, atol=1e-8)
    assert {*known.curve.knots} <= {*grid}
    assert np.abs(np.interp(known.curve.median, grid, effect)) < 0.2 * np.abs(effect).max() + 1e-9
    missing = alone(ranker, column, [None]) - alone(ranker, column, [known.curve.median])
    marks = ranker.effects().marks(column)
    if column == "age":
        assert marks.grid == ["missing"]
        np.testing.assert_allclose(marks.effect, missing @ ranker.coef_[0], atol=1e-10)
    if column == "temp":
        assert marks.grid == ["-999"]


def test_words_are_relative_to_their_mean(ranker, table):
    names, effect, deviation = ranker.curve("contract")
    assert sorted(names) == ["Monthly", "One year", "Two years", "missing"]
    assert names[-1] == "missing"
    assert names[effect.argmax()] == "Monthly"
    assert (deviation > 0.0).all()
    values = [None if name == "missing" else name for name in names]
    Z = alone(ranker, "contract", values)
    np.testing.assert_allclose(effect - effect[0], (Z - Z[0]) @ ranker.coef_[0], atol=1e-10)
    labels, rows = ranker.buffered_rows()
    shares = (ranker.n_seen_ / np.bincount(labels))[labels]
    on = rows @ Z.T
    assert (shares @ on) @ effect == pytest.approx(0.0, abs=1e-8 * shares.sum())


def test_times(ranker):
    grid, effect, _ = ranker.curve("when")
    assert grid.dtype.kind == "M"
    assert (np.diff(grid) > np.timedelta64(0)).all()
    assert len(effect) == len(grid)
    assert ranker.curve("when: weekday").grid == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


def test_swapped_labels_mirror_curves(table):
    frame, y = table
    one = AdditiveRanker(C=0.01, random_state=0).fit(frame, y)
    other = AdditiveRanker(C=0.01, random_state=0).fit(frame, 1 - y)
    for column in ("tenure", "contract"):
        np.testing.assert_allclose(one.curve(column).effect, -other.curve(column).effect, atol=1e-6)
        np.testing.assert_allclose(
            one.curve(column).deviation, other.curve(column).deviation, atol=1e-6
        )


def test_a_sentence(ranker, table):
    frame, _ = table
    scores = ranker.decision_function(frame)
    best = int(scores.argmax())
    text = ranker.explain(frame.iloc[[best]], among=frame)
    assert text.startswith("ranked 1 of 1,500: ")
    assert "contract=Monthly +" in text
    assert text.count(",") <= 5
    assert ranker.explain(frame.iloc[[best]], among=frame.drop(index=best)).startswith(
        "ranked 1 of 1,500: "
    )
    assert ranker.explain(frame.iloc[best].to_dict()).startswith(f"score {scores[best]:.3g}: ")
    with pytest.raises(ValueError, match="explain takes one row, and x has 2: use contributions"):
        ranker.explain(frame[:2])


def test_what_has_no_curve_says_so(ranker):
    with pytest.raises(ValueError, match="Column 'id' is left out, so it adds nothing"):
        ranker.curve("id")
    with pytest.raises(ValueError, match="There is no column 'nix': the ranker knows 'tenure'"):
        ranker.curve("nix")


def test_text_has_no_curve_and_early_rows_have_one():
    random = np.random.RandomState(0)
    words = np.array(["win", "a", "prize", "now", "call", "me", "later", "today"])
    texts = [" ".join(random.choice(words, 6)) for _ in range(300)]
    y = np.array(["prize" in text for text in texts]).astype(int)
    ranker = AdditiveRanker(random_state=0).fit({"text": texts, "x": random.rand(300)}, y)
    with pytest.raises(ValueError, match="Column 'text' is free text"):
        ranker.curve("text")
    assert len(ranker.curve("x").grid) > 50
    assert ranker.explain({"text": texts[0], "x": 0.5}).startswith("score ")
    early = AdditiveRanker().partial_fit({"x": random.rand(40)}, y[:40], classes=[0, 1])
    assert len(early.curve("x").grid) > 50
    constant = AdditiveRanker().fit({"x": [1.0] * 40, "z": random.rand(40)}, y[:40])
    assert constant.curve("x").effect.tolist() == [0.0]
