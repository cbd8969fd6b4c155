"""Files of additive rankers, with any array or fact of theirs changed: refused, or harmless."""

import copy
import random
import warnings
from typing import Any

import numpy as np
import pytest
from additive_tables import part, table
from forgery import ODD_VALUES

from cbrank import AdditiveRanker
from cbrank.modelfile import ModelFileError, gather, restore

X, Y = table(620)
OWN = ("encoder", "rows", "waiting", "memory")

MISSING = object()

# What may be changed in a file that opens all the same, what it must still be, and why that does no harm.
HARMLESS: dict[str, tuple[Any, str]] = {
    "encoder.text": (lambda _: True, "names and words of other letters are names and words"),
    "encoder.ends": (
        lambda _: True,
        "so are those that end elsewhere, as long as there are as many",
    ),
    "encoder.ints": (lambda _: True, "all but counts must fit the rest; they tell what is common"),
    "encoder.floats": (np.isfinite, "a knot, a value or a prior elsewhere, in order: other curves"),
    "waiting.labels": (lambda labels: np.isin(labels, [0, 1]), "the other label of a row"),
    "waiting.weights": (lambda weights: (weights > 0) & np.isfinite(weights), "another weight"),
    "memory.labels": (lambda labels: np.isin(labels, [0, 1]), "the other label of a row"),
    "memory.weights": (lambda weights: (weights > 0) & np.isfinite(weights), "another weight"),
    "memory.numbers": (lambda numbers: np.diff(numbers, prepend=0) >= 0, "rows of other moments"),
    "memory.keys": (lambda _: True, "rows that are dropped earlier or later"),
    "rows.numbers": (lambda _: True, "any number can be a cell, as can a gap"),
    "rows.times": (lambda _: True, "so can any time"),
    "rows.codes": (lambda codes: codes >= -1, "another word of the column, or a gap"),
    "rows.text": (lambda _: True, "another word"),
    "rows.ends": (lambda _: True, "words that end elsewhere, as many"),
}
HARMLESS_FACTS = {
    ("encoder", "named"): (lambda value: type(value) is bool, "names are those of the arrays"),
    ("encoder", "pieces"): (lambda value: value >= 1, "columns that are decided stay as they are"),
    ("encoder", "max_categories"): (lambda value: value >= 1, "the same, of words"),
    ("encoder", "settled"): (lambda value: value >= 0, "how many rows of a block were looked at ahead"),
}  # fmt: skip


@pytest.fixture(scope="module", params=[100, 600], ids=["waiting", "decided"])
def saved(request):
    ranker = AdditiveRanker(C=0.1, buffer_size=3, random_state=0)
    return gather(model=ranker.partial_fit(part(X, slice(request.param)), Y[: request.param]))


def use(arrays, facts):
    """Open what was forged and go on with it; say whether it opened."""
    try:
        ranker = restore("model", arrays, facts)
    except ModelFileError:
        return False
    rows = {**X}
    if facts["model"]["front"]["encoder"]["named"]:  # names may be forged
        rows = dict(zip(ranker.feature_names_in_, X.values(), strict=True))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of rows with names, where there were none
        ranker.decision_function(part(rows, slice(5)))
        ranker.contributions(part(rows, slice(5)))
        ranker.partial_fit(rows, Y)
    return True


def changed(array, rng):
    """Return an array with a number changed, or of another length or type."""
    array, way = array.copy(), rng.randrange(5)
    if way == 0 or not array.size:
        return array[:-1] if array.ndim else array
    if way == 1:
        return array.astype(np.float32 if array.dtype.kind == "f" else np.int16)
    if way == 2:
        return np.concatenate([array, array])
    at, odd = rng.randrange(array.size), [0.0, 1, 2, 5, 100]
    odd += [-1] if array.dtype.kind != "u" else []
    odd += [np.nan, np.inf, 1e300] if array.dtype.kind == "f" else []
    odd += [2**62, 2**31, 70000] if array.dtype == np.int64 else []
    array.flat[at] = rng.choice(odd)
    return array


def test_arrays_that_are_changed_are_refused_or_harmless(saved):
    arrays, facts = saved
    assert use(copy.deepcopy(arrays), copy.deepcopy(facts))
    rng, refused = random.Random(0), set()
    own = [name for name in arrays if name.split(".")[1] in OWN]
    assert any(name.endswith("rows.numbers") for name in own)
    for name in own * 12:
        before, forged = arrays[name], changed(arrays[name], rng)
        kept = forged.shape == before.shape and forged.dtype == before.dtype
        if kept and np.array_equal(forged, before, equal_nan=forged.dtype.kind == "f"):
            continue
        if not use(copy.deepcopy(arrays) | {name: forged.copy()}, copy.deepcopy(facts)):
            refused.add(name)
            continue
        known = name.removeprefix("model.").removeprefix("memory." * (".rows." in name))
        sound, _ = HARMLESS.get(known, (lambda _: False, ""))
        assert kept, f"{name} of another shape or type was accepted"
        assert np.all(sound(forged)), f"{name} was accepted, forged to {forged}"
    assert refused == {name for name in own if arrays[name].size}


def places(value, path=()):
    """Yield the way to every part of facts."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield *path, key
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


def test_facts_that_are_changed_are_refused_or_harmless(saved):
    arrays, facts = saved
    rng, ways = random.Random(0), [*places(facts["model"]["front"])]
    for way in ways:
        for odd in [*ODD_VALUES, *[MISSING] * (rng.random() < 0.5)]:
            forged = copy.deepcopy(facts)
            inner = forged["model"]["front"]
            for key in way[:-1]:
                inner = inner[key]
            before = inner.pop(way[-1])
            if odd is not MISSING:
                inner[way[-1]] = odd
            if type(odd) is type(before) and odd == before:
                continue
            if use(copy.deepcopy(arrays), forged):
                sound, _ = HARMLESS_FACTS.get(way, (lambda _: False, ""))
                assert odd is not MISSING, f"{way} may be missing"
                assert sound(odd), f"{way} was accepted, forged to {odd}"


def test_an_array_that_no_such_front_has_is_refused(saved):
    arrays, facts = saved
    waits = facts["model"]["front"]["waits"]
    for name in ("front.inverse", *([] if waits else ["waiting.labels"])):
        with pytest.raises(ModelFileError, match="arrays that no such front has"):
            restore("model", arrays | {f"model.{name}": np.zeros(1)}, facts)


def test_a_front_that_says_nothing_is_refused(saved):
    arrays, facts = saved
    for front in (None, {}, [], 1, {"waits": True}):
        forged = copy.deepcopy(facts)
        forged["model"]["front"] = front
        with pytest.raises(ModelFileError, match="it has no sound encoder"):
            restore("model", arrays, forged)
    forged = copy.deepcopy(facts)
    del forged["model"]["front"]
    with pytest.raises(ModelFileError, match="it has no sound encoder"):
        restore("model", arrays, forged)


def test_an_array_that_is_missing_is_missed(saved):
    arrays, facts = saved
    for name in [name for name in arrays if name.split(".")[1] in OWN]:
        rest = {key: array for key, array in arrays.items() if key != name}
        with pytest.raises(ModelFileError):
            restore("model", rest, facts)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"pieces": 1},
        {"pieces": 1, "max_categories": 1},
        {"kinds": {0: "drop"}},
    ],
    ids=str,
)
def test_any_parameter_of_tables_can_be_saved(asked):
    ranker = AdditiveRanker(**asked, random_state=0).partial_fit(X, Y)
    again = restore("model", *copy.deepcopy(gather(model=ranker)))
    np.testing.assert_array_equal(again.decision_function(X), ranker.decision_function(X))
    np.testing.assert_array_equal(again.partial_fit(X, Y).coef_, ranker.partial_fit(X, Y).coef_)
