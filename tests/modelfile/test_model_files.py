"""Model files: nothing is lost, nothing is executed, nothing is half written."""

import errno
import io
import json
import os
import pickle
import random
import signal
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from forgery import bytes_of, opened, put_together, seen_by, sign, small_models, take_apart
from hypothesis import given, settings
from hypothesis import strategies as st
from learners import RANKERS, SPARSE, assert_same, make
from make_compatibility import FOLDER, expected, models
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
    atomic_write,
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


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.cbrank"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A small file of every kind."""
    folder = tmp_path_factory.mktemp("files")
    return {name: bytes_of(model, folder) for name, model in small_models()}


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
        assert loaded.threshold_ == model.threshold_
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
        ({"buffer_size": 5}, {"buffer_size": 10**9}),
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
        np.testing.assert_array_equal(file.get_tensor("model.model.mu"), ranker._model.mu)
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
        (diverged, ValueError, "This OPAUCRanker cannot be saved: model.Gamma has numbers that are"),
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


# Files that are not what they should be ---------------------------------------------------------


class Bomb:
    """A pickle that would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def npz(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty."),
        (b"hello", "is not a cbrank model file."),
        (b"1 1:0.5 2:1\n" * 100, "is not a cbrank model file."),
        (pickle.dumps([1]), "is a pickle, which could run code when opened, not a cbrank model"),
        (npz(a=np.zeros(10**7)), "is a zip archive, not a cbrank model file."),
        (b"\x1f\x8b\x08" + b"\0" * 200, "is a gzip archive, not a cbrank model file."),
        ((2**63).to_bytes(8, "little") + b"{}", "is not a cbrank model file."),
        (b"\x02" + b"\0" * 7 + b"{}", "is not a cbrank model file."),
    ],
)
def test_other_files_are_refused_by_name(content, sentence, path):
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as error:
        cbrank.load(path)
    assert str(error.value).startswith(f"{path} {sentence}")


def test_a_pickle_is_not_run(path, tmp_path):
    path.write_bytes(pickle.dumps(Bomb(tmp_path / "run")))
    with pytest.raises(ModelFileError, match="is a pickle"):
        cbrank.load(path)
    assert not (tmp_path / "run").exists()


def test_a_missing_file_and_a_folder_are_said(path, tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file"):
        cbrank.load(path)
    with pytest.raises(ModelFileError, match="is not a file"):
        cbrank.load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_a_pipe_is_refused_without_waiting(path):
    os.mkfifo(path)
    with pytest.raises(ModelFileError, match="is not a file"):
        cbrank.load(path)


@pytest.mark.parametrize("name", ["cbr", "ftrl", "labels"])
def test_every_byte_counts(name, files):
    data, rng = files[name], random.Random(0)
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << rng.randrange(8)
        with pytest.raises(ModelFileError):
            opened(bytes(changed))


@pytest.mark.parametrize("name", ["cbr", "ftrl", "labels"])
def test_no_part_of_a_file_is_a_file(name, files):
    data = files[name]
    for end in range(len(data)):
        with pytest.raises(ModelFileError):
            opened(data[:end])
    with pytest.raises(ModelFileError):
        opened(data + b"\0")


# Forged files, whose checksum is right ----------------------------------------------------------


def change(value, *keys):
    """Return an edit that sets an entry of the facts."""

    def edit(entries, facts, tail):
        place = facts
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        return entries, facts, tail

    return edit


def describe(name, **changes):
    """Return an edit that describes an array otherwise."""

    def edit(entries, facts, tail):
        return entries | {name: entries[name] | changes}, facts, tail

    return edit


def fill(name, number, dtype):
    """Return an edit that sets all numbers of an array."""

    def edit(entries, facts, tail):
        begin, end = entries[name]["data_offsets"]
        numbers = np.full((end - begin) // np.dtype(dtype).itemsize, number, dtype)
        return entries, facts, tail[:begin] + numbers.tobytes() + tail[end:]

    return edit


def text(wrong):
    """Return an edit that describes the arrays by any text."""
    return lambda entries, facts, tail: (wrong(json.dumps(entries)[1:-1]), facts, tail)


HUGE = 10**12
FORGERIES = {
    "a later format": (change(FORMAT + 1, "format"), "has format 3, and this version of cbrank"),
    "no format": (change(None, "format"), "does not say its format"),
    "another class": (change("Exploit", "model", "class"), "'Exploit' is not known to this version"),
    "a class of elsewhere": (change("os.system", "model", "class"), "'os.system' is not known"),
    "no class": (change(1, "model", "class"), "'class' is missing, or is no str"),
    "no model": (change([], "model"), "'model' is missing, or is no dict"),
    "an unknown parameter": (change(1, "model", "parameters", "D"), "has no parameter 'D'"),
    "an invalid parameter": (change(-1, "model", "parameters", "C"), "The 'C' parameter of CBR"),
    "no class weights": (
        change({"dict": [[1, "a"]]}, "model", "parameters", "class_weight"), "weights are not num",
    ),
    "a class weight of no class": (
        change({"dict": [[9, 1]]}, "model", "parameters", "class_weight"), "labels among the",
    ),
    "a type of elsewhere": (
        change({"numpy": ["O", 1]}, "model", "parameters", "C"), "not values of type O",
    ),
    "a number beyond its type": (
        change({"numpy": ["|u1", 300]}, "model", "parameters", "C"), "not values of type",
    ),
    "deep values": (change({"list": [[1]]}, "model", "parameters", "C"), "not a value of a model"),
    "three classes": (
        change({"array": ["<i8", [0, 1, 2]]}, "model", "classes"), "Only binary classification",
    ),
    "classes in disorder": (change({"array": ["<i8", [1, 0]]}, "model", "classes"), "in order"),
    "classes of no order": (change({"array": ["|O", [1, "a"]]}, "model", "classes"), "in order"),
    "a threshold of no number": (change({"float": "nan"}, "model", "threshold"), "threshold is n"),
    "features of no number": (change(-1, "model", "n_features"), "no ranker of -1 features"),
    "features it has not": (change(3, "model", "n_features"), "should be float64 of shape (2, 3, 3)"),
    "huge features": (change(HUGE, "model", "n_features"), "of shape (2, 3, 1000000000000)"),
    "a huge buffer": (
        change(HUGE, "model", "began_with", "buffer_size"), "of shape (2, 1000000000000, 4)",
    ),
    "a huge buffer that it did not begin with": (
        lambda entries, facts, tail: change(HUGE, "model", "parameters", "buffer_size")(
            *change({}, "model", "began_with")(entries, facts, tail)
        ),
        "of shape (2, 1000000000000, 4)",
    ),
    "a size of no number": (
        change(True, "model", "began_with", "buffer_size"), "its parameters make no ranker",
    ),
    "another kind of rows": (change(True, "model", "sparse"), "began with makes no sense"),
    "another covariance": (
        change("diagonal", "model", "began_with", "covariance"), "it should have the arrays",
    ),
    "a beginning it has not": (change(1, "model", "began_with", "C"), "began with makes no sense"),
    "another shape": (
        describe("model.model.Sigma", shape=[2, 8]), "should be float64 of shape (4, 4)",
    ),
    "another type": (describe("model.model.mu", dtype="I64"), "model.mu is int64 of shape (4,)"),
    "a type of no sense": (describe("model.model.mu", dtype="F8_E4M3"), "a model file can hold"),
    "a negative shape": (describe("model.model.mu", shape=[-4, -1]), "a model file can hold"),
    "a huge shape": (describe("model.model.mu", shape=[HUGE]), "between its neighbours"),
    "an empty huge shape": (
        describe("model.model.mu", shape=[HUGE, HUGE, 0]), "a model file can hold",
    ),
    "an endless shape": (describe("model.model.mu", shape=[0, 10**30]), "a model file can hold"),
    "a shape of many axes": (describe("model.model.mu", shape=[0] * 65), "a model file can hold"),
    "overlapping arrays": (
        describe("model.model.mu", data_offsets=[0, 32]), "between its neighbours",
    ),
    "one array twice": (
        text(lambda entries: f'{entries},"a":{{}},"a":{{}}'), "a name is there twice",
    ),
    "no description": (text(lambda entries: f'{entries},"a":[]'), "not described as an array"),
    "a gap at the end": (
        lambda entries, facts, tail: (entries, facts, tail + b"\0" * 8), "goes on for 8 bytes",
    ),
    "no JSON": (text(lambda entries: entries + "}"), "its header is not JSON as it should be"),
    "deep JSON": (text(lambda entries: '"a":' + "[" * 10**5), "its header is not JSON as it should be"),
    "a huge number": (text(lambda entries: '"a":' + "9" * 10**5), "its header is not JSON as it should be"),
    "an infinite number": (text(lambda entries: '"a":1e999'), "1e999 is not a finite number"),
    "an array beyond the end": (
        lambda entries, facts, tail: (entries, facts, tail[:-8]), "it ends before its array 'model.",
    ),
    "a long and wild name": (
        text(lambda entries: f'{entries},"\\u001b\\n{"a" * 10**5}":1'), "is damaged: '",
    ),
    "a long and wild class": (change("\x1b\n" + "a" * 10**5, "model", "class"), "its class"),
    "NaN": (fill("model.model.mu", np.nan, float), "model.mu has numbers that are not finite"),
    "infinity": (fill("model.buffer.rows", np.inf, float), "buffer.rows has numbers that are not"),
    "negative counts": (fill("model.buffer.seen", -1, int), "buffer.seen has numbers that count n"),
    "endless counts": (fill("model.model.tally", 2**62, int), "tally has numbers that count nothi"),
    "too many rows": (fill("model.buffer.size", 4, int), "buffer.size points beyond"),
    "no rows": (fill("model.buffer.size", 0, int), "lost rows that it has seen"),
    "a start beyond": (fill("model.buffer.oldest", 3, int), "buffer.oldest points beyond"),
}  # fmt: skip


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_file_is_refused_with_its_reason(forgery, files, path):
    edit, reason = FORGERIES[forgery]
    path.write_bytes(put_together(*edit(*take_apart(files["cbr"]))))
    with pytest.raises(ModelFileError) as error:
        cbrank.load(path)
    assert str(error.value).startswith(f"{path} ")
    assert reason in str(error.value)
    assert len(str(error.value)) < 500
    assert str(error.value).isprintable()
    assert str(error.value).endswith(".")


@pytest.mark.parametrize(
    ("field", "number", "dtype"), [("indices", 4, np.int32), ("length", 5, int), ("size", 9, int)]
)
def test_places_beyond_a_sparse_buffer_are_refused(field, number, dtype, files):
    edit = fill(f"model.buffer.{field}", number, dtype)
    with pytest.raises(ModelFileError, match=f"buffer.{field} points beyond"):
        opened(put_together(*edit(*take_apart(files["cbr-diagonal"]))))


def test_names_that_do_not_fit_are_refused(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0]})
    data = bytes_of(CBRanker().partial_fit(frame, [0, 1]), tmp_path)
    for name, number, reason in [("ends", 1, "names are not"), ("text", 255, "decode")]:
        edit = fill(f"model.names.{name}", number, np.int64 if name == "ends" else np.uint8)
        with pytest.raises(ModelFileError, match=reason):
            opened(put_together(*edit(*take_apart(data))))


def test_the_unchanged_file_put_together_again_opens(files):
    for data in files.values():
        opened(put_together(*take_apart(data)))


def test_a_header_said_to_be_huge_is_refused(files):
    data = sign((2**40).to_bytes(8, "little") + files["cbr"][8:])
    with pytest.raises(ModelFileError, match="its header cannot have 1099511627776 bytes"):
        opened(data)


# Memory -----------------------------------------------------------------------------------------


def peak_of(function, *arguments):
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(path):
    with pytest.raises(ModelFileError):
        cbrank.load(path)


def test_a_large_model_takes_its_own_size_to_save_and_to_load(path):
    ranker = CBRanker(C=1.0, buffer_size=1).partial_fit(np.eye(2, 1000), [0, 1])
    size = ranker._model.Sigma.nbytes
    assert peak_of(cbrank.save, ranker, path) < 0.5 * size
    assert peak_of(cbrank.load, path) < 1.5 * size


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_file_takes_no_memory(forgery, files, path):
    edit, _ = FORGERIES[forgery]
    path.write_bytes(put_together(*edit(*take_apart(files["cbr"]))))
    refused(path)
    assert peak_of(refused, path) < 2**22


def test_a_bomb_of_nested_values_takes_little_memory(files, path):
    entries, facts, tail = take_apart(files["cbr"])
    facts["bomb"] = json.loads("[" + ",".join(["[]"] * 340_000) + "]")
    path.write_bytes(put_together(entries, facts, tail))
    assert LARGEST_HEADER - 2**15 < path.stat().st_size < LARGEST_HEADER + 2**15
    assert peak_of(refused, path) < 2**24


# Writing ----------------------------------------------------------------------------------------


def test_a_file_replaced_keeps_its_permissions(path):
    path.touch(mode=0o600)
    cbrank.save(seen_by(make("oam")), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_file_has_the_usual_permissions(path, tmp_path):
    (tmp_path / "usual").touch()
    cbrank.save(seen_by(make("oam")), path)
    assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_the_file_behind_a_link_is_replaced(path, tmp_path):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    path.symlink_to(target)
    for name in ("oam", "uniexp"):
        cbrank.save(seen_by(make(name)), path)
        assert path.is_symlink()
        assert_same(cbrank.load(target), seen_by(make(name)))
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("place", ["no folder/model", "file/model", "."])
def test_a_place_that_cannot_be_written_is_said(place, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="could not be written"):
        cbrank.save(seen_by(make("oam")), tmp_path / place)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_what_is_no_file_is_not_replaced(path):
    os.mkfifo(path)
    with pytest.raises(OSError, match="is there and is not a file"):
        cbrank.save(seen_by(make("oam")), path)
    assert path.is_fifo()


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_whatever_fails_the_old_file_stays(call, failure, path, monkeypatch):
    def fail(*arguments):
        raise failure

    cbrank.save(seen_by(make("oam")), path)
    before = path.read_bytes()
    monkeypatch.setattr(*((os, "fsync") if call == "fsync" else (Path, "replace")), fail)
    sentence = f"{path} could not be written: No space left" if failure.args else "^$"
    with pytest.raises(type(failure), match=sentence):
        cbrank.save(seen_by(make("cbr")), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_the_caller_may_fail_too(path):
    def write_half():
        with atomic_write(path) as file:
            file.write(b"new")
            raise EOFError

    path.write_bytes(b"old")
    with pytest.raises(EOFError):
        write_half()
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


FULL_DISK = """
import resource, sys
import numpy as np
from cbrank.modelfile import write
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write(sys.argv[1], {"a": np.ones(10**6)}, {})
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_file_that_finds_no_room_is_said_and_taken_away(path):
    path.write_bytes(b"old")
    command = [sys.executable, "-c", FULL_DISK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert f"{path} could not be written: File too large" in done.stdout
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


ENDLESS = """
import sys
import numpy as np
from cbrank.modelfile import write
print("begun", flush=True)
for number in range(10**9):
    write(sys.argv[1], {"a": np.full(2**16, number)}, {"number": number})
"""


def test_a_writer_killed_at_any_moment_leaves_a_whole_file(path):
    write(path, {"a": np.zeros(2**16, int)}, {"number": 0})
    rng = random.Random(0)
    for _ in range(2):
        command = [sys.executable, "-c", ENDLESS, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "begun\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.1 + 0.1 * rng.random())
            process.send_signal(signal.SIGKILL)
        arrays, facts = read(path)
        assert (arrays["a"] == facts["number"]).all()


# Earlier versions -------------------------------------------------------------------------------

EARLIER = sorted(FOLDER.glob("*/*.cbrank"))


def test_there_is_a_file_of_every_kind_of_this_version():
    names = {file.stem for file in EARLIER if file.parent.name == cbrank.__version__}
    assert names == {name for name, _ in models()}, "run python tests/tools/make_compatibility.py"


@pytest.mark.parametrize("file", EARLIER, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_files_of_earlier_versions_open_and_go_on(file):
    before = json.loads((file.parent / "expected.json").read_text())[file.stem]
    now = expected(cbrank.load(file))
    assert now["classes"] == before["classes"]
    assert float(now["threshold"]) == pytest.approx(float(before["threshold"]), rel=1e-9)
    for scores in ("scores", "later_scores"):
        np.testing.assert_allclose(now[scores], before[scores], rtol=1e-9, atol=1e-12)
