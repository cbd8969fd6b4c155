"""Objects as arrays and facts, and back: rankers, columns, scalers and pipelines."""

import functools
import pkgutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cbrank.methods import ESTIMATORS
from cbrank.modelfile.container import Arrays, Facts, ModelFileError, brief
from cbrank.modelfile.values import (
    from_json,
    is_of_words,
    take,
    texts_to_arrays,
    to_json,
    under,
    within,
    words_from_arrays,
    words_to_arrays,
)
from cbrank.streams.rows import MOST_COLUMNS
from cbrank.texts import Texts

if TYPE_CHECKING:
    from cbrank.rankers.base import Ranker

# The classes that a file may hold beside rankers, and their modules. Like a ranker, such a class has
# a method `get_state() -> (arrays, facts)` and a class method `from_state(arrays, facts)`, which
# refuses arrays and facts that make no sense.
PARTS = dict.fromkeys(("Columns", "TableColumns", "StreamScaler"), "cbrank.streams")

_PIPELINE = "Pipeline"  # scikit-learn's, which is imported only to make one
_MOST_STEPS = 100
# Parameters of a pipeline, after which no step can be called.
_TAKEN = {"steps", "memory", "verbose", "transform_input"}
_PARAMETERS = "parameters", "began_with"  # facts of a ranker that are values by name
_APART = {"names", *_PARAMETERS}  # arrays that are not the ranker's own

Steps = list[tuple[str, Any]]
RankerFrom = Callable[["type[Ranker]", Arrays, Facts], "Ranker"]


def gather(**objects: Any) -> tuple[Arrays, Facts]:
    """Return the arrays and facts of some objects, to be written.

    Parameters
    ----------
    **objects : object
        Rankers, pipelines or their steps, or other `PARTS`, by the names they are to be restored by.

    Returns
    -------
    arrays : dict of str to ndarray
        The arrays, not copied, by names that begin with the object's.
    facts : dict
        One entry for each object.

    Examples
    --------
    >>> from cbrank import CBRanker
    >>> ranker = CBRanker(C=0.5).partial_fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    >>> arrays, facts = gather(model=ranker)
    >>> arrays["model.buffer.seen"]
    array([1, 1])
    >>> restore("model", arrays, facts).n_seen_
    array([1, 1])
    """
    arrays: Arrays = {}
    facts: Facts = {}
    for name, item in objects.items():
        own, facts[name] = _state(item)
        arrays |= under(name, own)
        try:
            _from_state(own, facts[name], _checked_ranker)
        except ValueError as error:
            raise ValueError(
                f"This {type(item).__name__} cannot be saved: {brief(error)}."
            ) from None
    return arrays, facts


def restore(name: str, arrays: Arrays, facts: Facts) -> Any:
    """Return an object of `gather`.

    Parameters
    ----------
    name : str
        The object's name.
    arrays : dict of str to ndarray
        The arrays of a file; the object takes its own, uncopied.
    facts : dict
        The facts of the file.

    Returns
    -------
    object
        The ranker, pipeline or part.

    Raises
    ------
    ModelFileError
        If the arrays and facts are not those of a sound object.

    Examples
    --------
    >>> from cbrank import CBRanker
    >>> ranker = CBRanker(C=0.5).partial_fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    >>> restore("model", *gather(model=ranker))
    CBRanker(C=0.5)
    """
    try:
        found = _from_state(within(name, arrays), take(facts, name, dict))
    except ValueError as error:
        raise ModelFileError(brief(error)) from None
    if not isinstance(found, list):
        return found
    from sklearn.pipeline import Pipeline  # noqa: PLC0415

    return Pipeline(found)


def restore_steps(name: str, arrays: Arrays, facts: Facts) -> list[Any]:
    """Return the steps of a pipeline of `gather`; of a ranker, the ranker alone.

    Parameters
    ----------
    name : str
        The object's name.
    arrays, facts : dict
        The arrays and facts of a file, as for `restore`.

    Returns
    -------
    list of object
        The transformers, if any, and the ranker.

    Raises
    ------
    ModelFileError
        If the arrays and facts are not those of a sound object.

    Examples
    --------
    >>> from cbrank import CBRanker
    >>> ranker = CBRanker(C=0.5).partial_fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    >>> restore_steps("model", *gather(model=[("ranker", ranker)]))
    [CBRanker(C=0.5)]
    """
    try:
        found = _from_state(within(name, arrays), take(facts, name, dict))
    except ValueError as error:
        raise ModelFileError(brief(error)) from None
    return [step for _, step in found] if isinstance(found, list) else [found]


def _state(item: Any) -> tuple[Arrays, Facts]:
    name = type(item).__name__
    if isinstance(item, list):
        return _steps_state(item)
    if _is_pipeline(item):
        return _steps_state(item.steps)
    if _is_ranker(item):
        return _ranker_state(item)
    if name in PARTS and type(item) is _class(name):
        arrays, facts = item.get_state()
        return arrays, {"class": name, "facts": facts}
    known = ", ".join([*PARTS, "rankers of cbrank"])
    raise ValueError(f"A model file holds {known} and pipelines of them, not a {name}.")


def _from_state(arrays: Arrays, facts: Facts, make: RankerFrom | None = None) -> Any:
    name = take(facts, "class", str)
    if name == _PIPELINE:
        return _steps_from(arrays, facts, make)
    if name in ESTIMATORS:
        return (make or _ranker_from)(_class(name), arrays, facts)
    if name in PARTS:
        try:
            return _class(name).from_state(arrays, take(facts, "facts", dict))
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"its {name} makes no sense ({error})") from None
    raise ValueError(f"its class {name!r} is not known to this version of cbrank")


def _class(name: str) -> Any:
    """Import a class at its first use: a file with a ranker needs no scaler."""
    return pkgutil.resolve_name(f"{PARTS.get(name, 'cbrank.rankers')}:{name}")


def _is_ranker(item: Any) -> bool:
    name = type(item).__name__
    return name in ESTIMATORS and type(item) is _class(name)


# Pipelines ----------------------------------------------------------------------------------------


def _is_pipeline(item: Any) -> bool:
    module = sys.modules.get("sklearn.pipeline")
    return module is not None and isinstance(item, module.Pipeline)


def _steps_state(given: Steps) -> tuple[Arrays, Facts]:
    arrays: Arrays = {}
    steps = []
    for number, (name, step) in enumerate(given):
        own, facts = _state(step)
        arrays |= under(str(number), own)
        steps.append([name, facts])
    return arrays, {"class": _PIPELINE, "steps": steps}


def _steps_from(arrays: Arrays, facts: Facts, make: RankerFrom | None) -> Steps:
    steps: Steps = []
    for number, step in enumerate(take(facts, "steps", list)):
        if number == _MOST_STEPS:
            raise ValueError(f"its pipeline has more than {_MOST_STEPS} steps")
        match step:
            case [str(name), {"class": str(kind)} as own] if kind != _PIPELINE:
                steps.append((name, _from_state(within(str(number), arrays), own, make)))
            case _:
                raise ValueError(f"step {number} of its pipeline makes no sense")
    if not steps or not _is_ranker(steps[-1][1]):
        raise ValueError("its pipeline does not end with a ranker")
    width = steps[-1][1].n_features_in_
    for name, step in steps[:-1]:
        if not hasattr(step, "transform") or _is_ranker(step):
            raise ValueError(f"step {name!r} of its pipeline gives no rows to the next")
        if getattr(step, "n_features_in_", width) != width:
            raise ValueError(f"step {name!r} of its pipeline is not as wide as its ranker")
    names = [name for name, _ in steps]
    if len({*names}) < len(names):
        raise ValueError(f"the names of the steps of its pipeline are not unique: {names}")
    if _TAKEN & {*names} or any("__" in name for name in names):
        raise ValueError(f"the steps of its pipeline cannot have the names {names}")
    return steps


# Rankers ------------------------------------------------------------------------------------------


def _ranker_state(ranker: "Ranker") -> tuple[Arrays, Facts]:
    """Return the arrays of a ranker, not copied, and the facts about it."""
    if not ranker.__sklearn_is_fitted__():
        from sklearn.exceptions import NotFittedError  # noqa: PLC0415

        raise NotFittedError(
            f"This {type(ranker).__name__} has learned nothing yet: fit it before it is saved."
        )
    arrays, facts = ranker.get_state()
    if hasattr(ranker, "feature_names_in_") and not ranker.TAKES_TABLES:
        arrays |= under("names", texts_to_arrays(ranker.feature_names_in_))
    for name in _PARAMETERS:
        long = {key: value for key, value in facts[name].items() if is_of_words(value)}
        for key, words in long.items():
            arrays |= under(f"{name}.{key}", words_to_arrays(words))
        facts[name] = {k: to_json(value) for k, value in facts[name].items() if k not in long}
    return arrays, facts | {name: to_json(facts[name]) for name in ("classes", "intercept")}


def _ranker_from(kind: "type[Ranker]", arrays: Arrays, facts: Facts) -> "Ranker":
    """Return the ranker of `_ranker_state`; anything that makes no sense is a ValueError."""
    own, names, words = _apart(arrays, facts)
    ranker: Ranker = kind.from_state(own, _values(kind, facts, words))
    if names is not None:
        ranker.feature_names_in_ = np.fromiter(names, object, len(names))
    return ranker


def _checked_ranker(kind: "type[Ranker]", arrays: Arrays, facts: Facts) -> "Ranker":
    """Check a ranker's state in little memory; return a small ranker in its place."""
    own, _, words = _apart(arrays, facts)
    checked: Ranker = kind.check_state(own, _values(kind, facts, words))
    return checked


def _apart(arrays: Arrays, facts: Facts) -> tuple[Arrays, Texts | None, dict[str, Arrays]]:
    """Return the ranker's own arrays, the names of its features if it has some, and parameters."""
    apart: dict[str, Arrays] = {part: within(part, arrays) for part in ("names", *_PARAMETERS)}
    names = apart.pop("names")
    own = {name: array for name, array in arrays.items() if name.partition(".")[0] not in _APART}
    return own, _names(names, take(facts, "n_features", int)) if names else None, apart


def _names(arrays: Arrays, n_features: int) -> Texts:
    names = Texts.checked(arrays)
    if len(names) != n_features:
        raise ValueError(f"it has {n_features} features and names for {len(names)}")
    if len(names) > MOST_COLUMNS:
        raise ValueError(f"it has names for {len(names)} features, and may for {MOST_COLUMNS}")
    return names


def _values(kind: "type[Ranker]", facts: Facts, words: dict[str, Arrays]) -> Facts:
    """Return facts as `Ranker.get_state` has them."""
    values: Facts = {
        name: _parameters(kind, take(facts, name, dict), words[name]) for name in _PARAMETERS
    }
    values |= {name: from_json(facts.get(name)) for name in ("classes", "intercept")}
    return values | {
        "sparse": take(facts, "sparse", bool),
        "n_features": take(facts, "n_features", int),
        "learners": take(facts, "learners", int),
        "front": facts.get("front"),  # how rows become features, and those that wait
        "memory": facts.get("memory"),  # a sample of all rows
        "beside": facts.get("beside"),  # learners of other features
    }


def _parameters(kind: "type[Ranker]", facts: Facts, words: Arrays) -> Facts:
    long = dict.fromkeys(name.partition(".")[0] for name in words)
    unknown = (facts.keys() | long.keys()) - _known_parameters(kind)
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {min(unknown)!r} in this version")
    found = {name: from_json(value) for name, value in facts.items()}
    return found | {name: words_from_arrays(within(name, words)) for name in long}


@functools.cache
def _known_parameters(kind: "type[Ranker]") -> frozenset[str]:
    return frozenset(parameter.name for parameter in kind.PARAMETERS)
