"""Objects as arrays and facts, and the objects again: rankers, what stands beside them, pipelines."""

import importlib
from collections.abc import Callable
from typing import Any

from sklearn.pipeline import Pipeline

from cbrank import rankers
from cbrank.modelfile.container import Arrays, Facts, ModelFileError, brief
from cbrank.modelfile.ranker_state import checked_ranker, ranker_from, ranker_state
from cbrank.modelfile.values import take, under, within
from cbrank.rankers import Ranker

# The other classes that a file may hold, and their modules. Such a class has a method
# `get_state() -> (arrays, facts)` and a class method `from_state(arrays, facts)`, which refuses
# arrays and facts that make no sense; facts are JSON.
PARTS = {"Columns": "cbrank.streams", "StreamScaler": "cbrank.streams"}

_MOST_STEPS = 100  # of a pipeline

RankerFrom = Callable[[type[Ranker], Arrays, Facts], Ranker]


def gather(**objects: Any) -> tuple[Arrays, Facts]:
    """Return the arrays and facts of some objects, to be written.

    Parameters
    ----------
    **objects : object
        Rankers, pipelines or other `PARTS`, by the names they are to be restored by.

    Returns
    -------
    arrays : dict of str to ndarray
        The arrays, not copied, by names that begin with the object's.
    facts : dict
        One entry for each object.

    Examples
    --------
    >>> from cbrank import CBRanker
    >>> ranker = CBRanker().partial_fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
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
            _from_state(own, facts[name], checked_ranker)
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
        return _from_state(within(name, arrays), take(facts, name, dict))
    except ValueError as error:
        raise ModelFileError(brief(error)) from None


def _state(item: Any) -> tuple[Arrays, Facts]:
    name = type(item).__name__
    if isinstance(item, Pipeline):
        return _pipeline_state(item)
    if isinstance(item, Ranker) and type(item) is getattr(rankers, name, None):
        return ranker_state(item)
    if name in PARTS and type(item) is _part(name):
        arrays, facts = item.get_state()
        return arrays, {"class": name, "facts": facts}
    known = ", ".join([*PARTS, "rankers of cbrank"])
    raise ValueError(f"A model file holds {known} and pipelines of them, not a {name}.")


def _from_state(arrays: Arrays, facts: Facts, make: RankerFrom = ranker_from) -> Any:
    name = take(facts, "class", str)
    if name == Pipeline.__name__:
        return _pipeline_from(arrays, facts, make)
    kind = getattr(rankers, name) if name in rankers.__all__ else None
    if kind and issubclass(kind, Ranker):
        return make(kind, arrays, facts)
    if name in PARTS:
        try:
            return _part(name).from_state(arrays, take(facts, "facts", dict))
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"its {name} makes no sense ({error})") from None
    raise ValueError(f"its class {name!r} is not known to this version of cbrank")


def _part(name: str) -> Any:
    return getattr(importlib.import_module(PARTS[name]), name)


def _pipeline_state(pipeline: Pipeline) -> tuple[Arrays, Facts]:
    arrays: Arrays = {}
    steps = []
    for number, (name, step) in enumerate(pipeline.steps):
        own, facts = _state(step)
        arrays |= under(str(number), own)
        steps.append([name, facts])
    return arrays, {"class": Pipeline.__name__, "steps": steps}


def _pipeline_from(arrays: Arrays, facts: Facts, make: RankerFrom) -> Pipeline:
    steps = list[tuple[str, Any]]()
    for number, step in enumerate(take(facts, "steps", list)):
        if number == _MOST_STEPS:
            raise ValueError(f"its pipeline has more than {_MOST_STEPS} steps")
        match step:
            case [str(name), {"class": str(kind)} as own] if kind != Pipeline.__name__:
                steps.append((name, _from_state(within(str(number), arrays), own, make)))
            case _:
                raise ValueError(f"step {number} of its pipeline makes no sense")
    if not steps or not isinstance(steps[-1][1], Ranker):
        raise ValueError("its pipeline does not end with a ranker")
    width = steps[-1][1].n_features_in_
    for name, step in steps[:-1]:
        if not hasattr(step, "transform") or isinstance(step, Ranker):
            raise ValueError(f"step {name!r} of its pipeline gives no rows to the next")
        if getattr(step, "n_features_in_", width) != width:
            raise ValueError(f"step {name!r} of its pipeline is not as wide as its ranker")
    pipeline = Pipeline(steps)
    pipeline._validate_names([name for name, _ in steps])  # noqa: SLF001
    return pipeline
