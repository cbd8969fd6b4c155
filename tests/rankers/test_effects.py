"""What columns do to scores: curves, contributions, and a sentence for a row."""

import numpy as np
import pandas as pd
import pytest

from cbrank import AdditiveRanker
from cbrank.features.forests import DAYS, MONTH, numbers_of
from cbrank.features.table import Table
from cbrank.kernels.trees import NO_NODE
from cbrank.learning import served


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
    parts = effects.parts(effects.encode(ranker.encoder_.read(table[0])))
    expected = np.zeros((len(table[0]), ranker.n_features_in_))
    for part, term in zip(parts.T, effects.terms, strict=True):
        expected[:, term.column] += part
    np.testing.assert_allclose(ranker.contributions(table[0]), expected, atol=1e-10)


def groups(ranker):
    """Return the trees of a ranker, the weights of their nodes and the variances of these."""
    state = ranker._learned.state
    leaders = served.leaders_of(ranker._method(state), state)[1:]
    weights = ranker._served().beside
    return [
        (group.source, own, share**2 * model.variances)
        for group, own, (model, share) in zip(state.beside, weights, leaders, strict=True)
    ]


def expected(forest, weights, node):
    """Return the mean weight of the leaves below a node, weighed by their rows."""
    below = int(forest.left[node])
    if below == NO_NODE:
        return weights[node]
    cover = forest.cover[below : below + 2]
    return cover @ [expected(forest, weights, below + at) for at in range(2)] / cover.sum()


def walked(forest, weights, numbers, n_columns):
    """Return what the columns of a table add to the score of a row by some trees, from root to leaf."""
    added = np.zeros(n_columns)
    for root in forest.roots.tolist():
        node = root
        while forest.left[node] != NO_NODE:
            column, before = forest.column[node], expected(forest, weights, node)
            value, below = numbers[column], int(forest.left[node])
            is_left = forest.missing[node] if np.isnan(value) else value <= forest.threshold[node]
            node = below if is_left else below + 1
            added[forest.columns.owner[column]] += expected(forest, weights, node) - before
    return forest.share * added


def test_contributions_of_trees_by_walking_them(ranker, table):
    some, encoder = table[0][:3], ranker.encoder_
    features = encoder.encode_dense(encoder.read(some)) * ranker.coef_
    found = features @ (encoder.owners_[:, None] == np.arange(ranker.n_features_in_))
    for forest, weights, _ in groups(ranker):
        X = numbers_of(encoder, encoder.read(some), forest.columns)
        found += [walked(forest, weights, row, ranker.n_features_in_) for row in X]
    np.testing.assert_allclose(ranker.contributions(some), found, atol=1e-9)


def test_trees_of_a_stream_add_to_contributions():
    frame, y = made(2600)
    ranker = AdditiveRanker(random_state=0, horizon="next").partial_fit(frame, y, classes=[0, 1])
    [(forest, _, _)] = groups(ranker)
    summed = ranker.contributions(frame).sum(axis=1) + ranker.intercept_
    np.testing.assert_allclose(summed, ranker.decision_function(frame), rtol=1e-9, atol=1e-9)
    assert (ranker.contributions(frame)[:, np.unique(forest.columns.owner)].std(axis=0) > 0.0).all()


def test_importances_are_mean_deviations_of_contributions():
    frame, y = made(900)
    ranker = AdditiveRanker(random_state=0).fit(frame, y)
    parts = ranker.contributions(frame)
    size = np.abs(parts - parts.mean(axis=0)).mean(axis=0)
    np.testing.assert_allclose(ranker.feature_importances_, size / size.sum())
    assert frame.columns[ranker.feature_importances_.argmax()] in {"tenure", "contract"}
    assert ranker.feature_importances_[-1] == 0.0
    constant = AdditiveRanker().fit({"x": [1.0] * 40}, y[:40])
    assert constant.feature_importances_.tolist() == [0.0]
    with pytest.raises(AttributeError, match="has no feature_importances_ before it is fitted"):
        _ = AdditiveRanker().feature_importances_


def test_reasons_sum_to_the_score_less_the_average(ranker, table):
    frame, _ = table
    sample = ranker.effects().sample
    assert len(sample) == 256
    average = ranker.decision_function(sample).mean()
    summed = [sum(each.contribution for each in row) for row in ranker.reasons(frame[:9], most=99)]
    np.testing.assert_allclose(summed, ranker.decision_function(frame[:9]) - average, atol=1e-9)


def reached(ranker, forest, column, value):
    """Return how much of each leaf rows reach on average if they have a value in a column."""
    encoder, rows = ranker.encoder_, ranker.effects().sample.take(slice(None, None, 4))
    frame = pd.DataFrame({name: [None] * len(rows) for name in encoder.kinds_})
    frame[column] = [value] * len(rows)
    own, at = encoder.read(frame).columns, [*encoder.kinds_].index(column)
    columns = [own[at] if place == at else old for place, old in enumerate(rows.columns)]
    leaves = forest.encode(encoder, Table(rows.names, columns))
    return np.asarray(leaves.mean(axis=0)).ravel()


def of_trees(ranker, column, values, reference):
    """Return what trees add to a curve, and its variance; `reference` maps values to their shares."""
    effect, squares = np.zeros(len(values)), np.zeros(len(values))
    for forest, weights, variances in groups(ranker):
        usual = sum(share * reached(ranker, forest, column, v) for v, share in reference.items())
        paths = np.array([reached(ranker, forest, column, value) - usual for value in values])
        effect, squares = effect + paths @ weights, squares + paths**2 @ variances
    return effect, squares


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
    some = np.unique([0, len(grid) // 3, len(grid) - 1])
    reference = {known.curve.median: 1.0}
    Z = alone(ranker, column, grid[some]) - alone(ranker, column, [known.curve.median])
    trees, squares = of_trees(ranker, column, grid[some], reference)
    np.testing.assert_allclose(effect[some], Z @ ranker.coef_[0] + trees, atol=1e-10)
    covariance, state = ranker.covariance_, ranker._learned.state
    full = covariance if covariance.ndim == 2 else np.diag(covariance)
    unit = served.leaders_of(ranker._method(state), state)[0][1]
    expected = np.sqrt(unit**2 * np.array([z @ full @ z for z in Z]) + squares)
    np.testing.assert_allclose(deviation[some], expected, atol=1e-8)
    assert {*known.curve.knots} <= {*grid}
    assert np.abs(np.interp(known.curve.median, grid, effect)) < 0.2 * np.abs(effect).max() + 1e-9
    missing = alone(ranker, column, [None]) - alone(ranker, column, [known.curve.median])
    marks = ranker.effects().marks(column)
    if column == "age":
        assert marks.grid == ["missing"]
        trees, _ = of_trees(ranker, column, [None], reference)
        np.testing.assert_allclose(marks.effect, missing @ ranker.coef_[0] + trees, atol=1e-10)
    if column == "temp":
        assert marks.grid == ["-999"]


def test_words_are_relative_to_their_mean(ranker):
    names, effect, deviation = ranker.curve("contract")
    assert sorted(names) == ["Monthly", "One year", "Two years", "missing"]
    assert names[-1] == "missing"
    assert names[effect.argmax()] == "Monthly"
    assert (deviation > 0.0).all()
    values = [None if name == "missing" else name for name in names]
    Z = alone(ranker, "contract", values)
    sample = ranker.effects().sample
    on = ranker.encoder_.encode_dense(sample) @ Z.T
    assert on.sum() == len(sample)
    assert on.sum(axis=0) @ effect == pytest.approx(0.0, abs=1e-8)
    reference = dict(zip(values, on.mean(axis=0), strict=True))
    trees, squares = of_trees(ranker, "contract", values, reference)
    effect = effect - trees
    np.testing.assert_allclose(effect - effect[0], (Z - Z[0]) @ ranker.coef_[0], atol=1e-10)
    assert (deviation >= np.sqrt(squares)).all()


def test_pairs_are_what_trees_add_for_both_together(ranker):
    effects = ranker.effects()
    if not groups(ranker):
        assert effects.pairs() == []
        return
    assert effects.pairs()[0] == ("age", "paid")
    assert len(effects.pairs(2)) == 2
    grid, other, effect = effects.pair("age", "contract")
    np.testing.assert_allclose(effects.pair("contract", "age").effect, effect.T, atol=1e-9)
    encoder, rows = ranker.encoder_, effects.sample.take(slice(None, None, 4))
    known = encoder.known()[1].curve

    def score(age, word):
        """Return the mean score that trees give the rows with an age and a contract."""
        frame = pd.DataFrame({name: [None] * len(rows) for name in encoder.kinds_})
        frame["age"], frame["contract"] = age, None if word == "missing" else word
        read = encoder.read(frame).columns
        columns = [rows.columns[0], read[1], read[2], *rows.columns[3:]]
        table = Table(rows.names, columns)
        return sum(
            (own.encode(encoder, table) @ weights).mean() for own, weights, _ in groups(ranker)
        )

    column = encoder.known()[2]
    usual = [(column.places(effects.sample.columns[2]) == column.features.get(word, column.gap)).mean()
             for word in other]  # fmt: skip
    ages = [grid[3], grid[-2], known.median]
    joint = np.array([[score(age, word) for word in other] for age in ages])
    joint -= joint[2]
    joint -= (joint @ usual)[:, None]
    np.testing.assert_allclose(effect[[3, -2]], joint[:2], atol=1e-9)


def test_gaps_of_times_have_a_mark(table):
    frame, y = table
    frame = frame.assign(when=frame.when.mask(np.arange(len(frame)) % 9 == 0))
    ranker = AdditiveRanker(random_state=0).fit(frame, y)
    marks = ranker.effects().marks("when")
    assert marks.grid == ["missing"]
    assert marks.deviation > 0.0


@pytest.mark.parametrize(("term", "part"), [("when", DAYS), ("when: month", MONTH)])
def test_trees_add_to_parts_of_times(ranker, table, term, part):
    frame, encoder = table[0], ranker.encoder_
    grid, effect, _ = ranker.curve(term)
    known = encoder.known()[[*encoder.kinds_].index("when")]
    rows = ranker.effects().sample.take(slice(None, None, 4))
    if part == DAYS:
        numbers = (grid - grid[0]) / np.timedelta64(86400, "s")
        days = (grid[0] - np.datetime64(frame.when.min())) / np.timedelta64(1, "s") / 86400
        numbers = numbers + days
    else:
        numbers = np.arange(12.0)
    trees = np.zeros(len(grid))
    for forest, weights, _ in groups(ranker):
        X = numbers_of(encoder, rows, forest.columns)
        own = (forest.columns.owner == known.owner) & (forest.columns.part == part)
        for at, number in enumerate(numbers):
            X[:, own] = number
            trees[at] += forest.share * weights[forest.leaves_of(X)].sum(axis=1).mean()
    assert (np.abs(trees - trees[0]).max() > 0.0) == bool(groups(ranker))
    effects = ranker.effects()
    effects._forests = ()
    expected = effects.curve(term).effect + trees
    np.testing.assert_allclose(effect - effect[0], expected - expected[0], atol=1e-9)


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
