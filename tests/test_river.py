"""`cbrank.river`: rankers that learn from dictionaries."""

import copy
import importlib
import pickle
import sys

import learners
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from made_tables import people
from river import checks, compose, evaluate, metrics, preprocessing, stream
from sklearn.exceptions import NotFittedError

import cbrank
from cbrank import AdditiveRanker, CBRanker, CBRankerCV, SCWRanker
from cbrank.datasets import load
from cbrank.river import RankingClassifier


def some_rows(n_rows=120, n_features=7, seed=0, missing=0.3):
    """Rows with gaps, as an array and as dictionaries, and their labels."""
    random = np.random.RandomState(seed)
    X = random.normal(size=(n_rows, n_features)).round(3)
    y = X[:, 0] + X[:, 1] + random.normal(size=n_rows) > 0.5
    X[random.uniform(size=X.shape) < missing] = 0.0
    return X, [{f"f{j}": row[j] for j in np.flatnonzero(row).tolist()} for row in X], y.tolist()


def in_order_of_appearance(rows):
    """The same rows as an array, its columns in the order in which features first appear."""
    names = list(dict.fromkeys(name for x in rows for name in x))
    return names, np.array([[x.get(name, 0.0) for name in names] for x in rows])


def learned(rows, labels, ranker, **options):
    model = RankingClassifier(ranker, **options)
    for x, y in zip(rows, labels, strict=True):
        model.learn_one(x, y)
    return model


def same_predictions(one, other, rows):
    return [one.predict_proba_one(x) for x in rows] == [other.predict_proba_one(x) for x in rows]


# River's own checks --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ranker",
    [
        CBRanker(C=0.1, buffer_size=5, random_state=0),
        CBRanker(C=0.1, buffer_size=5, covariance="diagonal", random_state=0),
        pytest.param(AdditiveRanker(C=0.1, buffer_size=5, random_state=0), marks=pytest.mark.slow),
    ],
    ids=["full", "diagonal", "additive"],
)
def test_every_check_of_river_passes(ranker):
    model = RankingClassifier(ranker)
    assert model._unit_test_skips() == set()
    checks.check_estimator(model)


def test_checks_of_a_default_and_of_every_unit_test_model_that_need_no_rows():
    for params in [{}, *RankingClassifier._unit_test_params()]:
        model = RankingClassifier(**params)
        for check in checks.yield_checks(model):
            if not hasattr(check, "keywords"):
                check(model.clone())


# The same model as from arrays ---------------------------------------------------------------------


@pytest.mark.parametrize("name", learners.RANKERS)
def test_dictionaries_teach_what_arrays_do_to_the_bit(name):
    X, _, labels = some_rows(missing=0.0)
    rows = [dict(enumerate(row)) for row in X.tolist()]
    model = learned(rows, labels, learners.make(name))
    expected = learners.make(name)
    for row, y in zip(X, labels, strict=True):
        x = row if expected.takes_dense_rows() else sp.csr_array(row[None])
        expected.learn_one(x, y, classes=[False, True])
    learners.assert_same(model.ranker_, expected)


@pytest.mark.parametrize("name", learners.RANKERS)
def test_features_that_appear_are_as_if_they_had_been_zero_from_the_start(name):
    _, rows, labels = some_rows()
    rows[:40] = [{key: x[key] for key in x if key < "f3"} for x in rows[:40]]
    model = learned(rows, labels, learners.make(name))
    names, X = in_order_of_appearance(rows)
    expected = learners.make(name)
    rows = X if expected.takes_dense_rows() else sp.csr_array(X)
    expected.partial_fit(rows, labels, classes=[False, True])
    assert model.feature_names_ == names
    learners.assert_same(model.ranker_, expected, rtol=1e-7, atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(
    cuts=st.lists(st.integers(1, 79), max_size=4, unique=True).map(sorted),
    name=st.sampled_from(["cbr", "cbr-auto", "cbr-diagonal", "cbr-reservoir", "oam", "scw"]),
    one_class_first=st.booleans(),
)
def test_any_chunks_of_rows_teach_what_single_rows_do(cuts, name, one_class_first):
    X, _, labels = some_rows(80)
    labels = ["yes" if y else "no" for y in labels]
    order = np.argsort(labels, kind="stable") if one_class_first else np.arange(80)
    frame, y = pd.DataFrame(X).add_prefix("f").iloc[order], pd.Series(labels).iloc[order]
    many = RankingClassifier(learners.make(name))
    for begin, end in zip([0, *cuts], [*cuts, 80], strict=True):
        many.learn_many(frame[begin:end], y[begin:end])
    one = learned(frame.to_dict(orient="records"), y, learners.make(name))
    learners.assert_same(many.ranker_, one.ranker_, rtol=1e-7, atol=1e-9)
    assert many.feature_names_ == one.feature_names_


def test_frames_of_sparse_columns_teach_what_dense_ones_do():
    X, _, labels = some_rows()
    dense = pd.DataFrame(X).add_prefix("f")
    sparse = dense.astype(pd.SparseDtype(float, 0.0))
    for name in ("cbr", "cbr-diagonal"):
        one, other = (RankingClassifier(learners.make(name)) for _ in range(2))
        one.learn_many(dense, pd.Series(labels))
        other.learn_many(sparse, pd.Series(labels))
        learners.assert_same(one.ranker_, other.ranker_)
        pd.testing.assert_frame_equal(
            one.predict_proba_many(dense), other.predict_proba_many(sparse)
        )


def test_fifty_thousand_words_widen_the_ranker_a_few_times_only(monkeypatch):
    widths, resize = [], CBRanker.resize

    def noted(ranker, n):
        widths.append(n)
        return resize(ranker, n)

    monkeypatch.setattr(CBRanker, "resize", noted)
    rows = ({f"word{i}": 1.0 for i in range(begin, begin + 50)} for begin in range(0, 50_000, 50))
    ranker = CBRanker(C=0.1, covariance="diagonal", buffer_size=2)
    model = learned(rows, [True, False] * 500, ranker)
    assert len(widths) < 20
    assert sum(widths) < 4 * 50_000
    assert model.ranker_.n_features_in_ == len(model.feature_names_) == 50_000
    assert model.ranker_.coef_.shape == (1, 50_000)


def test_a_full_covariance_has_no_spare_columns():
    model = learned([{"a": 1.0}, {"a": 2.0, "b": 1.0}], [False, True], CBRanker(C=0.1))
    assert model._learner.covariance_.shape == (2, 2)


def test_rows_without_features_count():
    for name in ("cbr", "cbr-diagonal"):
        model = learned([{}, {"a": 1.0}, {}], [True, False, True], learners.make(name))
        assert model.ranker_.n_seen_.tolist() == [1, 2]
        assert model.ranker_.n_features_in_ == 1
        assert set(model.predict_proba_one({})) == {False, True}


# Labels ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cbr", "cbr-auto-diagonal", "opauc", "scw-diagonal"])
def test_rows_before_the_second_label_are_not_lost(name):
    _, rows, labels = some_rows()
    late = labels.index(True, 20)
    rows, labels = rows[:1] * 5 + rows[late:], [False] * 5 + labels[late:]
    known = learned(rows, labels, learners.make(name))
    named = learned(rows, ["b" if y else "a" for y in labels], learners.make(name))
    learners.assert_same(named.ranker_, known.ranker_, rtol=1e-9, atol=1e-12)
    assert named.ranker_.classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), ("no", "yes"), (False, True), (1, 2)])
@pytest.mark.parametrize("first", [0, 1])
def test_the_greater_label_is_positive_whichever_comes_first(labels, first):
    rows = [{"a": float(i)} for i in (first, 1 - first)] * 10
    model = learned(rows, [labels[first], labels[1 - first]] * 10, CBRanker(C=1.0))
    assert model.ranker_.classes_.tolist() == list(labels)
    assert model.predict_one({"a": 3.0}) == labels[1]
    assert list(model.predict_proba_one({"a": 3.0})) == list(labels)
    assert model.predict_many(pd.DataFrame({"a": [-3.0, 3.0]})).tolist() == list(labels)


def test_known_labels_are_learned_from_at_once():
    for options, y in [({}, True), ({"classes": ("no", "yes")}, "yes")]:
        model = learned([{"a": 1.0}], [y], CBRanker(C=0.1), **options)
        assert model._held == []
        assert model.ranker_.n_seen_.tolist() == [0, 1]


def test_what_is_known_before_there_are_two_labels():
    model = RankingClassifier()
    assert model.predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}
    assert RankingClassifier(classes="ab").predict_proba_one({"a": 1.0}) == {"a": 0.5, "b": 0.5}
    model.learn_one({"a": 1.0}, "spam")
    assert model.predict_proba_one({"a": 1.0}) == {"spam": 1.0}
    assert model.predict_one({"a": 1.0}) == "spam"
    assert model.predict_many(pd.DataFrame({"a": [1.0, 2.0]})).tolist() == ["spam", "spam"]
    with pytest.raises(AttributeError, match="both labels"):
        model.ranker_  # noqa: B018


@pytest.mark.parametrize("label", ["c", None, np.nan])
def test_a_label_that_cannot_be_is_refused_and_leaves_the_model_as_it_was(label):
    model = learned([{"a": 1.0}, {"a": 2.0}], ["a", "b"], CBRanker(C=0.1))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"classes|NaN"):
        model.learn_one({"new": 1.0}, label)
    with pytest.raises(ValueError, match=r"classes|NaN"):
        model.learn_many(pd.DataFrame({"new": [1.0]}), pd.Series([label]))
    assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match=r"NaN"):
        learned([{"a": 1.0}] * 3, ["a", None, "c"] if label is None else ["a", "a", np.nan], None)


def test_three_labels_at_once_are_refused():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="3 classes, a, b, c"):
        RankingClassifier().learn_many(frame, pd.Series(["a", "b", "c"]))


@pytest.mark.parametrize("classes", [["a"], ["a", "b", "c"]])
def test_classes_that_are_not_two_are_refused_at_once(classes):
    with pytest.raises(ValueError, match=r"two classes|binary"):
        RankingClassifier(classes=classes)


def test_a_label_that_is_not_of_the_classes_given_is_named():
    model = RankingClassifier(classes=["a", "b"])
    with pytest.raises(ValueError, match="y has 'c' at row 0, which is neither of the classes 'a'"):
        model.learn_one({"x": 1.0}, "c")
    assert model.predict_proba_one({}) == {"a": 0.5, "b": 0.5}


# Probabilities ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", learners.RANKERS)
def test_probabilities_are_ordered_as_scores_are(name):
    _, rows, labels = some_rows()
    model = learned(rows, labels, learners.make(name))
    ranker, (_, X) = model.ranker_, in_order_of_appearance(rows)
    scores = ranker.decision_function(pd.DataFrame(X, columns=model.feature_names_))
    probabilities = np.array([model.predict_proba_one(x)[True] for x in rows])
    assert (np.diff(probabilities[np.argsort(scores)]) >= -1e-12).all()
    assert len(np.unique(probabilities.round(9))) == len(np.unique(scores.round(9)))
    frame = pd.DataFrame(rows).fillna(0.0).sample(frac=1.0, axis=1, random_state=0)
    many = model.predict_proba_many(frame)
    np.testing.assert_allclose(many[True], probabilities, rtol=1e-9)
    np.testing.assert_allclose(many.sum(axis=1), 1.0, rtol=1e-12)
    assert model.predict_many(frame).tolist() == [model.predict_one(x) for x in rows]


@pytest.mark.parametrize("name", learners.RANKERS)
def test_probabilities_are_those_of_the_ranker_after_every_row(name):
    _, rows, labels = some_rows(60)
    model = RankingClassifier(learners.make(name), classes=[False, True])
    for place, (x, y) in enumerate(zip(rows, labels, strict=True)):
        model.learn_one(x, y)
        if place < 3 or place % 10:
            continue
        table = pd.DataFrame(rows[:9]).reindex(columns=model.feature_names_).fillna(0.0)
        expected = model.ranker_.predict_proba(table)
        said = [list(model.predict_proba_one(x).values()) for x in rows[:9]]
        np.testing.assert_allclose(said, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            model.predict_proba_many(pd.DataFrame(rows[:9]).fillna(0.0)), expected, rtol=1e-9
        )


def test_two_rows_make_no_sure_probability():
    model = learned([{"a": 0.0}, {"a": 1.0}], [False, True], CBRanker(C=1.0))
    assert 0.6 < model.predict_proba_one({"a": 1.0})[True] < 0.7


def test_probabilities_follow_the_share_of_positives_whatever_the_class_weights():
    _, rows, _ = some_rows(200)
    labels = [i % 10 == 0 for i in range(200)]  # which has nothing to do with the rows
    plain = learned(rows, labels, CBRanker(C=0.01, average=False))
    balanced = learned(rows, labels, CBRanker(C=0.01, average=False, class_weight="balanced"))
    for model in (plain, balanced):
        assert 0.05 < np.mean([model.predict_proba_one(x)[True] for x in rows]) < 0.15


def test_one_class_alone_makes_its_label_likelier_with_every_row():
    model, before = RankingClassifier(), 0.5
    for _ in range(5):
        model.learn_one({"a": 1.0}, False)
        assert model.predict_proba_one({"a": 1.0})[True] < before
        before = model.predict_proba_one({"a": 1.0})[True]


def test_a_prediction_changes_nothing_and_features_never_learned_make_no_difference():
    _, rows, labels = some_rows()
    model = learned(rows, labels, CBRanker(C=0.1, covariance="diagonal"))
    model.predict_one(rows[0])
    before = pickle.dumps(model)
    assert model.predict_proba_one(rows[0] | {"new": 9.0}) == model.predict_proba_one(rows[0])
    frame = pd.DataFrame(rows[:1]).assign(new=9.0)
    assert model.predict_proba_many(frame)[True].item() == pytest.approx(
        model.predict_proba_one(rows[0])[True]
    )
    assert pickle.dumps(model) == before


# In a stack ------------------------------------------------------------------------------------------


def test_a_pipeline_ranks_a_stream_and_its_auc_is_that_of_the_scores():
    X, kinds, _ = load("segment", labels="original")
    order = np.random.RandomState(0).permutation(len(kinds))[:800]
    rows = list(stream.iter_array(X[order], kinds[order] == 1))
    model = preprocessing.StandardScaler() | RankingClassifier(SCWRanker(random_state=0))
    fine, rolling = metrics.ROCAUC(n_thresholds=200), metrics.RollingROCAUC(window_size=800)
    evaluate.progressive_val_score(rows, model, fine)
    evaluate.progressive_val_score(rows, model.clone(), rolling)
    assert fine.get() > 0.97
    assert rolling.get() == pytest.approx(fine.get(), abs=0.01)


def test_a_pipeline_learns_from_frames():
    X, y, _ = load("german")
    frame, labels = pd.DataFrame(X).add_prefix("f"), pd.Series(y == 1)
    model = preprocessing.StandardScaler() | RankingClassifier(CBRanker(C=0.01))
    for begin in range(0, 800, 200):
        model.learn_many(frame[begin : begin + 200], labels[begin : begin + 200])
    found = model.predict_many(frame[800:])
    assert found.index.equals(frame[800:].index)
    assert (found == labels[800:]).mean() > 0.72


def test_words_in_a_pipeline():
    select = compose.SelectType(float) | RankingClassifier(CBRanker(C=0.1, covariance="diagonal"))
    for words, spam in [("buy now", True), ("see you", False), ("buy you", True)] * 3:
        select.learn_one(dict.fromkeys(words.split(), 1.0), spam)
    assert select.predict_one({"buy": 1.0})
    assert not select.predict_one({"see": 1.0, "me": 1.0})


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("name", ["cbr-auto", "cbr-auto-diagonal", "oam"])
def test_a_copy_goes_on_as_the_model_does(twin, name):
    _, rows, labels = some_rows()
    model = learned(rows[:60], labels[:60], learners.make(name))
    other = twin(model)
    for x, y in zip(rows[60:], labels[60:], strict=True):
        model.learn_one(x, y)
        other.learn_one(x, y)
    learners.assert_same(model.ranker_, other.ranker_)
    assert same_predictions(model, other, rows)


def test_a_clone_starts_anew_and_the_ranker_given_never_learns():
    _, rows, labels = some_rows()
    ranker = CBRanker(C=0.1)
    model = learned(rows, labels, ranker, classes=[False, True])
    fresh = model.clone()
    assert not hasattr(ranker, "coef_")
    assert fresh.feature_names_ == []
    assert fresh.classes == [False, True]
    assert fresh.ranker is not ranker
    assert fresh.ranker.get_params() == ranker.get_params()
    assert model.clone({"ranker": CBRanker(C=0.5)}).ranker.C == 0.5


@pytest.mark.parametrize("name", ["cbr-auto", "cbr-auto-diagonal", "opauc-sketch"])
def test_the_ranker_can_be_saved_and_goes_on_as_the_model_does(name, tmp_path):
    _, rows, labels = some_rows()
    model = learned(rows[:100], labels[:100], learners.make(name))
    cbrank.save(model.ranker_, tmp_path / "stream.cbrank")
    ranker = cbrank.load(tmp_path / "stream.cbrank")
    assert ranker.feature_names_in_.tolist() == model.feature_names_
    _, X = in_order_of_appearance(rows)
    frame = pd.DataFrame(X, columns=model.feature_names_)
    ranker.partial_fit(frame[100:], labels[100:])
    for x, y in zip(rows[100:], labels[100:], strict=True):
        model.learn_one(x, y)
    learners.assert_same(model.ranker_, ranker, rtol=1e-7, atol=1e-9)


def test_the_ranker_is_a_copy_of_its_own():
    _, rows, labels = some_rows()
    model = learned(rows, labels, CBRanker(C=0.1))
    before = [model.predict_proba_one(x) for x in rows]
    ranker = model.ranker_
    ranker.partial_fit(pd.DataFrame([[9.0] * 7], columns=model.feature_names_), [False])
    assert [model.predict_proba_one(x) for x in rows] == before


def test_names_that_are_no_strings_are_names_too():
    model = learned([{1: 1.0, "one": 2.0}, {(0, 1): 1.0}], [False, True], CBRanker(C=0.1))
    assert model.feature_names_ == [1, "one", (0, 1)]
    assert not hasattr(model.ranker_, "feature_names_in_")


# Errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [np.nan, np.inf, None, "FR", pytest.param(10**400, id="huge"), np.ones(1)]
)
def test_a_value_that_is_no_finite_number_is_named_and_leaves_the_model_as_it_was(value):
    model = learned([{"a": 1.0}, {"a": 2.0}], [False, True], CBRanker(C=0.1))
    before = pickle.dumps(model)
    bad = {"a": 1.0, "country": value}
    for call in (lambda: model.learn_one(bad, True), lambda: model.predict_one(bad)):
        with pytest.raises(ValueError, match=r"Feature 'country' is .*impute"):
            call()
    frame = pd.DataFrame([bad])
    with pytest.raises(ValueError, match=r"Feature 'country' is .*impute"):
        model.learn_many(frame, pd.Series([True]))
    with pytest.raises(ValueError, match=r"Feature 'country' is .*impute"):
        model.predict_many(frame)
    assert pickle.dumps(model) == before


def test_large_numbers_are_numbers():
    model = learned([{"a": 1e200}, {"a": -1e200}], [False, True], CBRanker(C=0.1))
    model.learn_many(pd.DataFrame({"a": [1e308, 1e308]}), pd.Series([True, True]))
    assert model.ranker_.n_seen_.tolist() == [1, 3]


def test_one_name_for_two_columns_is_refused():
    with pytest.raises(ValueError, match="more than one column 'a'"):
        RankingClassifier().learn_many(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), [True])


def test_no_rows_teach_nothing():
    model = RankingClassifier()
    model.learn_many(pd.DataFrame({"a": []}), pd.Series([], dtype=bool))
    assert model.feature_names_ == []


def test_a_ranker_that_must_see_all_rows_first_says_so():
    with pytest.raises(NotFittedError, match="chooses C in fit"):
        learned([{"a": 1.0}], [True], CBRankerCV())


def test_what_is_no_ranker_is_refused():
    with pytest.raises(ValueError, match="one of cbrank's rankers"):
        RankingClassifier(preprocessing.StandardScaler())


def test_without_river_the_error_says_what_to_install(monkeypatch):
    for name in ("river", "river.base"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "cbrank.river")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'cbrank\[river\]'"):
        importlib.import_module("cbrank.river")


# Rows of no weight ---------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_rows_of_a_class_of_weight_zero_bring_neither_features_nor_evidence(covariance):
    _, rows, labels = some_rows()
    ranker = CBRanker(0.1, covariance=covariance, class_weight={False: 0.0})
    positive = [x for x, label in zip(rows, labels, strict=True) if label]
    strange = {"strange": 1e9}
    one_by_one = learned(
        [strange, *positive, strange], [False, *[True] * len(positive), False], ranker
    )
    many = RankingClassifier(ranker)
    table = pd.DataFrame([strange, *positive]).fillna(0.0)
    many.learn_many(table, pd.Series([False, *[True] * len(positive)]))
    many.learn_many(table[:1], pd.Series([False]))
    for model in (one_by_one, many):
        assert model.ranker_.n_seen_.tolist() == [0, len(positive)]
        model.learn_one({"other": 1.0}, False)
        assert "other" not in model.feature_names_
    assert "strange" not in one_by_one.feature_names_
    nothing = RankingClassifier(ranker)
    nothing.learn_one(strange, False)
    assert not hasattr(nothing, "ranker_")
    assert nothing.feature_names_ == nothing._held == []


# Tables as they come -------------------------------------------------------------------------------


def test_an_additive_ranker_takes_words_gaps_and_keys_that_come_and_go():
    frame, y = people(600)
    rows = frame.to_dict(orient="records")
    rows[:40] = [{key: x[key] for key in x if key != "job"} for x in rows[:40]]
    rows[500] = {**rows[500], "late": "ignored"}
    rows[510] = {"age": None}
    model = learned(rows, (y == 1).tolist(), AdditiveRanker(random_state=0))
    assert model.feature_names_ == ["age", "gain", "hours", "land", "job"]
    expected = AdditiveRanker(random_state=0).partial_fit(rows[:256], y[:256] == 1)
    expected.partial_fit(rows[256:], y[256:] == 1)
    np.testing.assert_allclose(
        model.ranker_.decision_function(frame), expected.decision_function(frame), atol=1e-12
    )
    chance = model.predict_proba_one(rows[0])[True]
    assert chance == pytest.approx(expected.predict_proba(rows[:1])[0, 1])
    assert model.predict_proba_one({}) == model.predict_proba_one({"unknown": 3})
    many = model.predict_proba_many(frame[:2])
    np.testing.assert_allclose(many[True], expected.predict_proba(frame[:2])[:, 1], rtol=1e-12)
