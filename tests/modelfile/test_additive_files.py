"""Files of additive rankers, with any array or fact of theirs changed: refused, or harmless."""

import copy
import random

import numpy as np
import pytest
from additive_tables import part, table
from forgery import ODD_VALUES

from cbrank import AdditiveRanker
from cbrank.modelfile import ModelFileError, gather, restore

X, Y = table(620)
OWN = ("encoder", "rows", "waiting", "evidence")


@pytest.fixture(scope="module", params=[100, 600], ids=["waiting", "crossed"])
def saved(request):
    ranker = AdditiveRanker(C=0.1, buffer_size=3, random_state=0)
    return gather(model=ranker.partial_fit(part(X, slice(request.param)), Y[: request.param]))


def use(arrays, facts):
    """Open what was forged and go on with it; say whether it opened."""
    try:
        ranker = restore("model", arrays, facts)
    except ModelFileError:
        return False
    rows = dict(zip(ranker.feature_names_in_, X.values(), strict=True))  # names may be forged
    with np.errstate(all="ignore"):
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


def test_a_ranker_without_crosses_is_kept():
    ranker = AdditiveRanker(crosses=0, random_state=0).partial_fit(X, Y)
    opened = restore("model", *gather(model=ranker))
    np.testing.assert_array_equal(opened.coef_, ranker.coef_)


def test_arrays_that_are_changed_are_refused_or_harmless(saved):
    arrays, facts = saved
    assert use(copy.deepcopy(arrays), copy.deepcopy(facts))
    rng = random.Random(0)
    own = [name for name in arrays if name.split(".")[1] in OWN]
    for _ in range(150):
        name = rng.choice(own)
        use(copy.deepcopy(arrays) | {name: changed(arrays[name], rng)}, copy.deepcopy(facts))


def places(value, path=()):
    """Yield the way to every part of facts."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield *path, key
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


def test_facts_that_are_changed_are_refused_or_harmless(saved):
    arrays, facts = saved
    rng, ways = random.Random(0), [*places(facts["model"]["table"])]
    for way in ways * 4:
        forged = copy.deepcopy(facts)
        inner = forged["model"]["table"]
        for key in way[:-1]:
            inner = inner[key]
        if rng.random() < 0.2:
            del inner[way[-1]]
        else:
            inner[way[-1]] = rng.choice(ODD_VALUES)
        use(copy.deepcopy(arrays), forged)


def test_an_array_that_is_missing_is_missed(saved):
    arrays, facts = saved
    for name in [name for name in arrays if name.split(".")[1] in OWN]:
        rest = {key: array for key, array in arrays.items() if key != name}
        with pytest.raises(ModelFileError):
            restore("model", rest, facts)


@pytest.mark.parametrize(
    "asked",
    [
        {"crosses": 0},
        {"pieces": 1},
        {"crosses": 0, "pieces": 1, "max_categories": 1},
        {"kinds": {0: "drop"}},
        {"crosses": [(0, 1)]},
    ],
    ids=str,
)
def test_any_parameter_of_tables_can_be_saved(asked):
    ranker = AdditiveRanker(**asked, random_state=0).partial_fit(X, Y)
    again = restore("model", *copy.deepcopy(gather(model=ranker)))
    np.testing.assert_array_equal(again.decision_function(X), ranker.decision_function(X))
    np.testing.assert_array_equal(again.partial_fit(X, Y).coef_, ranker.partial_fit(X, Y).coef_)
