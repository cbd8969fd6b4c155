"""A ranker's state as arrays and JSON facts, and the ranker again."""

import functools

import numpy as np
from sklearn.exceptions import NotFittedError

from cbrank.modelfile.container import Arrays, Facts
from cbrank.modelfile.values import from_json, take, texts_to_arrays, to_json, under, within
from cbrank.rankers import Ranker
from cbrank.streams.columns_state import MOST_COLUMNS
from cbrank.streams.texts import Texts

_PARAMETERS = "parameters", "began_with"  # dictionaries of values by name


def ranker_state(ranker: Ranker) -> tuple[Arrays, Facts]:
    """Return the arrays of a ranker, not copied, and the facts about it."""
    if not ranker.__sklearn_is_fitted__():
        raise NotFittedError(
            f"This {type(ranker).__name__} has learned nothing yet: fit it before it is saved."
        )
    arrays, facts = ranker.get_state()
    if hasattr(ranker, "feature_names_in_"):
        arrays |= under("names", texts_to_arrays(ranker.feature_names_in_))
    for name in _PARAMETERS:
        facts[name] = {key: to_json(value) for key, value in facts[name].items()}
    return arrays, facts | {name: to_json(facts[name]) for name in ("classes", "threshold")}


def ranker_from(kind: type[Ranker], arrays: Arrays, facts: Facts) -> Ranker:
    """Return the ranker of `ranker_state`; anything that makes no sense is a ValueError."""
    own, names = _apart(arrays, facts)
    ranker = kind.from_state(own, _values(kind, facts))
    if names is not None:
        ranker.feature_names_in_ = np.fromiter(names, object, len(names))
    return ranker


def checked_ranker(kind: type[Ranker], arrays: Arrays, facts: Facts) -> Ranker:
    """Return a small ranker in the place of one that `ranker_from` can give back."""
    own, _ = _apart(arrays, facts)
    return kind.check_state(own, _values(kind, facts))


def _apart(arrays: Arrays, facts: Facts) -> tuple[Arrays, Texts | None]:
    """Return the ranker's own arrays, and the names of its features if it has some."""
    own = {name: array for name, array in arrays.items() if not name.startswith("names.")}
    if len(own) == len(arrays):
        return own, None
    names, n_features = Texts.checked(within("names", arrays)), take(facts, "n_features", int)
    if len(names) != n_features:
        raise ValueError(f"it has {n_features} features and names for {len(names)}")
    if len(names) > MOST_COLUMNS:
        raise ValueError(f"it has names for {len(names)} features, and may for {MOST_COLUMNS}")
    return own, names


def _values(kind: type[Ranker], facts: Facts) -> Facts:
    """Return facts as `Ranker.get_state` has them."""
    values: Facts = {name: _parameters(kind, take(facts, name, dict)) for name in _PARAMETERS}
    values |= {name: from_json(facts.get(name)) for name in ("classes", "threshold")}
    return values | {
        "sparse": take(facts, "sparse", bool),
        "n_features": take(facts, "n_features", int),
    }


def _parameters(kind: type[Ranker], facts: Facts) -> Facts:
    unknown = facts.keys() - _known_parameters(kind)
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {min(unknown)!r} in this version")
    return {name: from_json(value) for name, value in facts.items()}


@functools.cache
def _known_parameters(kind: type[Ranker]) -> frozenset[str]:
    return frozenset(parameter.name for parameter in kind.PARAMETERS)
