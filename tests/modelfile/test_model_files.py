"""Model files: nothing is lost, and what cannot be saved is said."""

import json
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from forgery import bytes_of, opened, seen_by
from hypothesis import given, settings
from hypothesis import strategies as st
from learners import RANKERS, SPARSE, assert_same, make
from real_data import real
from safetensors import safe_open
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import cbrank
from cbrank import CBRanker, ModelFileError, OAMRanker
from cbrank.modelfile import (
    gather,
    read,
    restore,
    state,
    texts_from_arrays,
    texts_to_arrays,
    write,
)
from cbrank.modelfile.container import FORMAT, LARGEST_HEADER

FORMS = [(name, "dense") for name in RANKERS] + [(name, "sparse") for name in RANKERS]
every_form = pytest.mark.parametrize(("name", "form"), FORMS)


def german(form, rows=160):
    X, y = real("german", rows, "standard")
    return (sparse.csr_array(X) if form == "sparse" else X), y


def saved_and_loaded(model, path):
    cbrank.save(model, path)
    return cbrank.load(path)


def assert_goes_on_alike(model, path, X, y):
    """Check that a model, saved and loaded, is and goes on as if it had not been."""
    loaded = saved_and_loaded(model, path)
    assert vars(loaded).keys() == vars(model).keys()
    assert repr(loaded) == repr(model)
    for _ in range(2):
        assert_same(loaded, model)
        assert loaded.intercept_ == model.intercept_
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
        loaded.partial_fit(X, y)
        model.partial_fit(X, y)
    loaded.learn_one(X[[0]], y[0])
    model.learn_one(X[[0]], y[0])
    assert_same(loaded, model)
    assert_same(loaded.fit(X, y), model.fit(X, y))


# What is kept -----------------------------------------------------------------------------------


@every_form
def test_after_fit_a_loaded_ranker_goes_on_to_the_bit(name, form, path):
    X, y = german(form)
    assert_goes_on_alike(make(name).fit(X[:80], y[:80]), path, X[80:], y[80:])


@every_form
def test_in_a_stream_a_loaded_ranker_goes_on_to_the_bit(name, form, path):
    X, y = german(form)
    ranker = make(name, class_weight="balanced").partial_fit(X[:80], y[:80])
    assert_goes_on_alike(ranker, path, X[80:], y[80:])


@every_form
def test_before_both_classes_a_loaded_ranker_goes_on_to_the_bit(name, form, path):
    X, y = german(form)
    ranker = make(name).partial_fit(X[:1], y[:1], classes=[0, 1])
    assert_goes_on_alike(ranker, path, X[1:80], y[1:80])


@pytest.mark.parametrize(("name", "form"), [("cbr", "dense"), ("cbr-diagonal", "sparse")])
@given(cuts=st.lists(st.integers(1, 119), min_size=1, max_size=4, unique=True))
@settings(max_examples=10)
def test_saved_anywhere_and_often_is_uninterrupted(name, form, cuts, tmp_path_factory):
    X, y = german(form, 120)
    path = tmp_path_factory.mktemp("cuts") / "model"
    ranker = make(name, policy="reservoir", buffer_size=5)
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), 120], strict=True):
        ranker = saved_and_loaded(
            ranker.partial_fit(X[begin:end], y[begin:end], classes=[0, 1]), path
        )
    assert_same(ranker, make(name, policy="reservoir", buffer_size=5).partial_fit(X, y))


@pytest.mark.parametrize(("name", "form"), [("cbr-auto", "dense"), ("cbr-auto-diagonal", "sparse")])
@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "shuffled"])
def test_several_learners_saved_often_are_uninterrupted(name, form, shuffled, path):
    X, y = (np.concatenate([part] * 3)[:2600] for part in real("german", scaling="standard"))
    X = sparse.csr_array(X) if form == "sparse" else X
    whole, ranker = make(name), make(name)
    # While rows wait, in a block, after they are shuffled no more, and after the buffer has become shorter.
    cuts = [0, 1, 20, 63, 64, 300, 513, 700, 1500, 2049, 2300, 2600]
    learners, kept = set(), set()
    for begin, end in pairwise(cuts):
        for each in (whole, ranker):
            take = each.learn_shuffled if shuffled and begin < 500 else each.partial_fit
            take(X[begin:end], y[begin:end], classes=[0, 1])
        ranker = saved_and_loaded(ranker, path)
        assert ranker.waits == (form == "dense" and end < 64)
        np.testing.assert_array_equal(ranker.predict_proba(X), whole.predict_proba(X))
        learners.add(len(ranker.learned().models))
        kept.add(int(ranker.learned().buffer.least[0]))
    assert_same(ranker, whole)
    most = len(ranker._method().learners)  # the last is for rows in their order
    assert learners == ({most - 1, most} if shuffled else {most})
    assert {50, 200} <= kept
    np.testing.assert_array_equal(ranker.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("name", ["cbr", "opauc", "opauc-sketch", *SPARSE])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_models_of_many_features_are_kept(name, form, path):
    ranker = make(name, **({"buffer_size": 7} if hasattr(RANKERS[name], "buffer_size") else {}))
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((20, 300)), np.arange(20) % 2
    X = sparse.csr_array(X) if form == "sparse" else X
    assert_goes_on_alike(ranker.partial_fit(X, y), path, X, y)


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1], [-1, 1], [-1.0, 2.0], ["no", "yes"], ["", "ä€😀\udc80"], [False, True],
        np.array([3, 200], np.uint8), np.array([0, 1], np.int8), np.array([0, 1], np.float32),
        np.array([0, 1], ">i4"), np.array(["a", "b"], "<U9"),
        np.array(["no", "yes"], object), np.array([1, 2**60], object),
        np.array([np.int8(1), np.int8(2)], object), np.array([False, True], object),
    ],
    ids=repr,
)  # fmt: skip
def test_labels_are_given_back_exactly(labels, path):
    classes = np.asarray(labels)
    labels = np.array(classes.tolist())
    ranker = OAMRanker(random_state=0).partial_fit([[0.0], [1.0]], labels, classes=classes)
    loaded = saved_and_loaded(ranker, path)
    assert loaded.classes_.dtype == ranker.classes_.dtype
    for one, other in zip(loaded.classes_, ranker.classes_, strict=True):
        assert type(one) is type(other)
        assert one == other
    assert list(map(repr, loaded._label_of)) == list(map(repr, ranker._label_of))
    assert loaded.partial_fit([[2.0]], labels[:1]).n_seen_.tolist() == [2, 1]


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": np.float32(0.1), "buffer_size": np.int16(3), "average": np.bool_(True)},
        {"class_weight": {0: 0.5, 1: np.float64(2.0)}},
        {"class_weight": "balanced", "n_passes": 2, "shuffle": False},
        {"random_state": 2**32 - 1},
        {"random_state": np.random.RandomState(7)},
        {"random_state": None},
    ],
)
def test_parameters_are_given_back_exactly(parameters, path):
    X, y = german("dense")
    ranker = CBRanker(**({"random_state": 0} | parameters)).fit(X, y)
    loaded = saved_and_loaded(ranker, path)
    for name, value in ranker.get_params().items():
        assert type(getattr(loaded, name)) is type(value)
        if name != "random_state":
            assert getattr(loaded, name) == value
    if ranker.random_state is not None:
        assert_same(loaded.fit(X, y), ranker.fit(X, y))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"average": True}, {"average": False}),
        ({"average": False}, {"average": True}),
        ({"covariance": "full"}, {"covariance": "diagonal"}),
        ({"buffer_size": 5}, {"buffer_size": 10**6}),
        ({"C": 0.5, "policy": "fifo"}, {"C": 0.25, "policy": "reservoir"}),
    ],
)
def test_parameters_changed_in_the_stream_are_kept_as_they_are(before, after, path):
    X, y = german("dense")
    ranker = CBRanker(**before).partial_fit(X, y).set_params(**after)
    loaded = saved_and_loaded(ranker, path)
    assert repr(loaded) == repr(ranker)
    assert loaded._shape == ranker._shape
    assert_same(loaded, ranker)
    np.testing.assert_array_equal(loaded.decision_function(X), ranker.decision_function(X))


def test_feature_names_are_kept(path):
    X = pd.DataFrame({"age": [1.0, 2.0], "größe \0": [0.0, 1.0], "": [3.0, 3.0]})
    loaded = saved_and_loaded(CBRanker().partial_fit(X, [0, 1]), path)
    assert loaded.feature_names_in_.tolist() == X.columns.tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.partial_fit(X.rename(columns={"age": "Age"}), [0, 1])


@given(texts=st.lists(st.text(st.characters()), max_size=5))
def test_texts_are_given_back_exactly(texts):
    assert texts_from_arrays(texts_to_arrays(texts)) == texts


def test_the_same_ranker_gives_the_same_bytes(path, tmp_path):
    ranker = seen_by(make("cbr-diagonal"))
    first = bytes_of(ranker, tmp_path)
    assert bytes_of(ranker, tmp_path) == first
    assert bytes_of(opened(first), tmp_path) == first


def test_any_safetensors_reader_opens_the_file(path):
    ranker = seen_by(make("cbr"))
    cbrank.save(ranker, path)
    with safe_open(path, "np") as file:
        facts = json.loads(file.metadata()["cbrank"])
        np.testing.assert_array_equal(
            file.get_tensor("model.model0.mu"), ranker.learned().models[0].mu
        )
    assert facts["format"] == FORMAT
    assert facts["versions"]["cbrank"] == cbrank.__version__
    assert facts["model"]["class"] == "CBRanker"


def test_a_file_has_room_for_more_than_a_model(path):
    ranker, counts = seen_by(make("ftrl")), np.arange(5, dtype=np.uint64)
    arrays, facts = gather(model=ranker)
    write(path, arrays | {"progress.counts": counts}, facts | {"progress": {"rows": 20}})
    arrays, facts = read(path)
    assert facts["progress"] == {"rows": 20}
    np.testing.assert_array_equal(arrays["progress.counts"], counts)
    assert_same(restore("model", arrays, facts), ranker)
    assert_same(cbrank.load(path), ranker)


@given(
    array=st.sampled_from(["f8", "f4", "i8", "i4", "i2", "u8", "u4", "u1", "?", ">f8"]),
    shape=st.lists(st.integers(0, 3), max_size=3),
)
def test_arrays_of_any_shape_are_given_back(array, shape, tmp_path_factory):
    path = tmp_path_factory.mktemp("arrays") / "file"
    given = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(array)
    write(path, {"a": given, "transposed": given.T}, {"n": [1.5, None]})
    arrays, facts = read(path)
    assert facts["n"] == [1.5, None]
    for name, original in {"a": given, "transposed": given.T}.items():
        assert arrays[name].dtype == original.dtype.newbyteorder("=")
        np.testing.assert_array_equal(arrays[name], original)
        assert arrays[name].flags.writeable
        assert arrays[name].flags.aligned


# Pipelines --------------------------------------------------------------------------------------


class Doubler(TransformerMixin, BaseEstimator):
    """A transformer with a state."""

    def __init__(self, factor=2.0):
        self.factor = factor

    def fit(self, X, y=None):
        self.seen_ = np.array([len(X)])
        return self

    def transform(self, X):
        return self.factor * np.asarray(X)

    def get_state(self):
        return {"seen": self.seen_}, {"factor": self.factor}

    @classmethod
    def from_state(cls, arrays, facts):
        doubler = cls(facts["factor"])
        doubler.seen_ = arrays["seen"]
        return doubler


@pytest.fixture
def pipeline(monkeypatch):
    monkeypatch.setitem(state.PARTS, "Doubler", __name__)
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Doubler.__module__])
    X, y = german("dense")
    return make_pipeline(Doubler(3.0), CBRanker(random_state=0)).fit(X, y)


def test_a_pipeline_of_known_parts_is_kept(pipeline, path):
    X, y = german("dense")
    loaded = saved_and_loaded(pipeline, path)
    assert repr(loaded) == repr(pipeline)
    assert loaded[0].seen_ == len(X)
    np.testing.assert_array_equal(loaded.decision_function(X), pipeline.decision_function(X))
    assert_same(loaded[-1].partial_fit(X, y), pipeline[-1].partial_fit(X, y))


def test_parts_can_lie_beside_a_model(pipeline, path):
    write(path, *gather(model=pipeline[-1], doubler=pipeline[0]))
    assert restore("doubler", *read(path)).factor == 3.0
    assert_same(cbrank.load(path), pipeline[-1])


@pytest.mark.parametrize(
    ("forged", "complaint"),
    [
        ([], "does not end with a ranker"),
        ([["a", {"class": "Doubler", "facts": {}}]], "its Doubler makes no sense"),
        ([["a", {"class": "Pipeline", "steps": []}]], "step 0 of its pipeline makes no sense"),
        ([["a", 1]], "step 0 of its pipeline makes no sense"),
        ("ab", "'steps' is missing, or is no list"),
    ],
)
def test_a_forged_pipeline_is_refused(pipeline, forged, complaint):
    arrays, facts = gather(model=pipeline)
    facts["model"]["steps"] = forged
    with pytest.raises(ModelFileError, match=complaint):
        restore("model", arrays, facts)


def test_two_steps_of_one_name_are_refused(pipeline):
    arrays, facts = gather(model=pipeline)
    facts["model"]["steps"][0][0] = facts["model"]["steps"][1][0]
    with pytest.raises(ModelFileError, match="not unique"):
        restore("model", arrays, facts)


# What cannot be saved ---------------------------------------------------------------------------


class OwnRanker(CBRanker):
    """A ranker that cbrank does not know."""


def diverged():
    """A ranker whose second moments overflow."""
    with pytest.warns(ConvergenceWarning), np.errstate(over="ignore", invalid="ignore"):
        return make("opauc").partial_fit([[1e200], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("model", "error", "sentence"),
    [
        (CBRanker, NotFittedError, "This CBRanker has learned nothing yet: fit it"),
        (
            lambda: make_pipeline(StandardScaler(), CBRanker()).fit([[0.0], [1.0]], [0, 1]),
            ValueError,
            "pipelines of them, not a StandardScaler",
        ),
        (lambda: seen_by(OwnRanker()), ValueError, "not a OwnRanker"),
        (lambda: Pipeline([("one", "passthrough")]), ValueError, "not a str"),
        (lambda: "a text", ValueError, "not a str"),
        (lambda: seen_by(CBRanker()).set_params(C="much"), ValueError, "The 'C' parameter"),
        (
            lambda: seen_by(CBRanker()).set_params(random_state=np.random.default_rng(0)),
            ValueError,
            "a Generator, which a model file cannot hold",
        ),
        (
            lambda: CBRanker(
                random_state=np.random.RandomState(np.random.PCG64(0))
            ).fit([[0.0], [1.0]], [0, 1]),
            ValueError,
            "around PCG64, which a model file cannot hold",
        ),
        (diverged, ValueError, "This OPAUCRanker cannot be saved: model0.Gamma has numbers that are"),
    ],
)  # fmt: skip
def test_what_cannot_be_saved_is_said_and_leaves_the_file_alone(model, error, sentence, path):
    path.write_bytes(b"as it was")
    with pytest.raises(error, match=sentence):
        cbrank.save(model(), path)
    assert path.read_bytes() == b"as it was"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arrays", "facts", "sentence"),
    [
        ({"a": np.array(["text"])}, {}, "a is an array of <U4, which a model file cannot hold"),
        ({"a": np.array([1j])}, {}, "complex128, which a model file cannot hold"),
        ({}, {"text": "a" * LARGEST_HEADER}, "The facts would take 10[0-9]+ bytes, more than"),
        ({}, {"number": np.nan}, "not JSON compliant"),
    ],
)
def test_what_a_file_cannot_hold_is_said(arrays, facts, sentence, path):
    with pytest.raises(ValueError, match=sentence):
        write(path, arrays, facts)
    assert not path.exists()
