"""Files that are no model files, or damaged or forged ones: refused in words, and nothing is run."""

import io
import json
import os
import pickle
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from forgery import bytes_of, opened, put_together, sign, take_apart

import cbrank
from cbrank import CBRanker, ModelFileError
from cbrank.modelfile.container import FORMAT, LARGEST_HEADER

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
    "a later format": (
        change(FORMAT + 1, "format"), "has format 5, and this version of cbrank reads format 4:",
    ),
    "an earlier format": (
        change(FORMAT - 1, "format"), "has format 3, and this version of cbrank reads format 4:",
    ),
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
    "an intercept of no number": (change({"float": "nan"}, "model", "intercept"), "intercept is not"),
    "features of no number": (change(-1, "model", "n_features"), "no ranker of -1 features"),
    "features it has not": (change(3, "model", "n_features"), "should be float64 of shape (4, 3)"),
    "huge features": (change(HUGE, "model", "n_features"), "of shape (4, 1000000000000)"),
    "a huge buffer": (
        change(HUGE, "model", "began_with", "buffer_size"), "in the range [1, 1048576]",
    ),
    "a huge buffer that it did not begin with": (
        lambda entries, facts, tail: change(HUGE, "model", "parameters", "buffer_size")(
            *change({}, "model", "began_with")(entries, facts, tail)
        ),
        "in the range [1, 1048576]",
    ),
    "a size of no number": (
        change(True, "model", "began_with", "buffer_size"), "its parameters make no ranker",
    ),
    "no learners": (change(0, "model", "learners"), "it has 0 learners, which no such ranker has"),
    "more learners than there are": (change(2, "model", "learners"), "it has 2 learners, which no such"),
    "learners of no number": (change("1", "model", "learners"), "'learners' is missing, or is no int"),
    "learners true or false": (change(True, "model", "learners"), "'learners' is missing, or is no int"),
    "very many learners": (change(HUGE, "model", "learners"), "which no such ranker has"),
    "a front it cannot have": (change({"waits": False}, "model", "front"), "which no such ranker has"),
    "another kind of rows": (change(True, "model", "sparse"), "began with makes no sense"),
    "another covariance": (
        change("diagonal", "model", "began_with", "covariance"), "it lacks the array model0.G, which such a CBRanker has",
    ),
    "a beginning it has not": (change(1, "model", "began_with", "C"), "began with makes no sense"),
    "another shape": (
        describe("model.model0.Sigma", shape=[2, 8]), "should be float64 of shape (4, 4)",
    ),
    "another type": (describe("model.model0.mu", dtype="I64"), "model0.mu is int64 of shape (4,)"),
    "a type of no sense": (describe("model.model0.mu", dtype="F8_E4M3"), "a model file can hold"),
    "a negative shape": (describe("model.model0.mu", shape=[-4, -1]), "a model file can hold"),
    "a huge shape": (describe("model.model0.mu", shape=[HUGE]), "between its neighbours"),
    "an empty huge shape": (
        describe("model.model0.mu", shape=[HUGE, HUGE, 0]), "a model file can hold",
    ),
    "an endless shape": (describe("model.model0.mu", shape=[0, 10**30]), "a model file can hold"),
    "a shape of many axes": (describe("model.model0.mu", shape=[0] * 65), "a model file can hold"),
    "overlapping arrays": (
        describe("model.model0.mu", data_offsets=[0, 32]), "between its neighbours",
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
    "NaN": (fill("model.model0.mu", np.nan, float), "model0.mu has numbers that are not finite"),
    "infinity": (fill("model.buffer.rows", np.inf, float), "buffer.rows has numbers that are not"),
    "negative counts": (fill("model.buffer.seen", -1, int), "buffer.seen has numbers that count n"),
    "endless counts": (fill("model.model0.tally", 2**62, int), "tally has numbers that count nothi"),
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
    for name, number, reason in [("ends", 1, "names are not"), ("text", 255, "not UTF-8")]:
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
    size = ranker._learned.state.models[0].Sigma.nbytes
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
