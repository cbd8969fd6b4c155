"""What a ranker has learned, as arrays and facts, and the ranker again.

A ranker is given back by starting it anew from its parameters and filling what it starts with: the
tuples of arrays of its kernels, whatever these are, must have the types and shapes of the start.
"""

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from cbrank.modelfile.container import Arrays, Facts
from cbrank.modelfile.values import (
    from_json,
    take,
    texts_from_arrays,
    texts_to_arrays,
    to_json,
    under,
    within,
)
from cbrank.rankers import _checks
from cbrank.rankers._base import Ranker

# Axes whose length changes as a ranker learns; in one tuple all are one length.
_CHANGING_AXES = {"buffer": {"values": 2, "indices": 2}, "race": {"alive": 0}}

_MANY = 2**52  # more rows or pairs than any stream has, and no rounding in floating point
_WIDTHS = 251, 257  # of small rankers, which tell how shapes grow with the number of features

Start = Callable[[int, Facts], Ranker]


def ranker_state(ranker: Ranker) -> tuple[Arrays, Facts]:
    """Return the arrays of a ranker, not copied, and the facts about it."""
    if not ranker.__sklearn_is_fitted__():
        raise NotFittedError(
            f"This {type(ranker).__name__} has learned nothing yet: fit it before it is saved."
        )
    arrays = {name: np.asarray(value) for name, value in _fields(ranker).items()}
    if hasattr(ranker, "feature_names_in_"):
        arrays |= under("names", texts_to_arrays(ranker.feature_names_in_))
    parameters = ranker.get_params(deep=False)
    return arrays, {
        "class": type(ranker).__name__,
        "parameters": {name: to_json(value) for name, value in parameters.items()},
        "began_with": {name: to_json(value) for name, value in ranker._shape.items()},
        "classes": to_json(ranker.classes_),
        "n_features": int(ranker.n_features_in_),
        "sparse": bool(ranker._sparse),
        "threshold": to_json(ranker._threshold),
    }


def ranker_from(kind: type[Ranker], arrays: Arrays, facts: Facts) -> Ranker:
    """Return the ranker of `ranker_state`; anything that makes no sense is a ValueError."""
    parameters = _parameters(kind, take(facts, "parameters", dict))
    began_with = _parameters(kind, take(facts, "began_with", dict))
    beginning = parameters | began_with
    classes = _classes(facts.get("classes"))
    n_features, sparse = take(facts, "n_features", int), take(facts, "sparse", bool)
    own = {name: array for name, array in arrays.items() if not name.startswith("names.")}
    _refuse_too_large([n_features, *map(beginning.get, kind._shape_parameters)], own)

    def start(width: int, changes: Facts) -> Ranker:
        ranker = kind(**(beginning | changes))
        rows = sp.csr_array((0, width)) if sparse else np.empty((0, width))
        try:
            ranker._start(rows, classes, np.random.RandomState(0))
        except TypeError as error:  # true and false pass for whole numbers until they are a size
            raise ValueError(f"its parameters make no ranker ({error})") from None
        return ranker

    _refuse_bad_parameters(kind(**parameters), classes)
    kind(**beginning)._validate_params()
    ranker = _started_like(own, start, n_features, parameters)
    if ranker._sparse is not sparse or ranker._shape.keys() != began_with.keys():
        raise ValueError("what it began with makes no sense")
    _fill(ranker, own, n_features)
    for name, value in parameters.items():
        setattr(ranker, name, value)
    ranker._threshold = _threshold(facts.get("threshold"))
    ranker.n_features_in_ = n_features
    if len(own) < len(arrays):
        ranker.feature_names_in_ = _names(within("names", arrays), n_features)
    return ranker


# Facts ------------------------------------------------------------------------------------------


def _parameters(kind: type[Ranker], facts: Facts) -> Facts:
    unknown = facts.keys() - kind._get_param_names()
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {min(unknown)!r} in this version")
    return {name: from_json(value) for name, value in facts.items()}


def _classes(fact: Any) -> NDArray[Any]:
    classes: NDArray[Any] = np.asarray(from_json(fact))
    try:
        if np.array_equal(classes, _checks.check_classes(classes)):
            return classes
    except TypeError:
        pass
    raise ValueError("its classes are not two labels in order")


def _threshold(fact: Any) -> float | None:
    threshold = from_json(fact)
    if threshold is None or (type(threshold) is float and not np.isnan(threshold)):
        return threshold
    raise ValueError("its threshold is not a number")


def _names(arrays: Arrays, n_features: int) -> NDArray[Any]:
    names = texts_from_arrays(arrays)
    if len(names) != n_features:
        raise ValueError(f"it has {n_features} features and names for {len(names)}")
    return np.array(names, object)


def _refuse_bad_parameters(ranker: Ranker, classes: NDArray[Any]) -> None:
    ranker._validate_params()
    try:
        ranker._class_weights(classes)
    except TypeError:
        raise ValueError("its class weights are not numbers") from None


# Arrays -----------------------------------------------------------------------------------------


def _tuples(ranker: Ranker) -> dict[str, Any]:
    """Return the tuples of arrays of a ranker, by their names without underscore."""
    return {
        name.removeprefix("_"): value
        for name, value in vars(ranker).items()
        if isinstance(value, tuple) and hasattr(value, "_fields")
    }


def _fields(ranker: Ranker) -> dict[str, Any]:
    """Return the arrays in all tuples of a ranker."""
    return {
        f"{name}.{field}": value
        for name, held in _tuples(ranker).items()
        for field, value in held._asdict().items()
    }


def _refuse_too_large(sizes: list[Any], arrays: Arrays) -> None:
    """Refuse sizes beyond what the arrays hold, before room is made for them."""
    held = sum(array.size for array in arrays.values())
    for size in sizes:
        if isinstance(size, Integral) and not 0 < int(size) <= held:
            raise ValueError(f"its arrays have {held} numbers, which does not go with {size}")


def _started_like(arrays: Arrays, start: Start, n_features: int, parameters: Facts) -> Ranker:
    """Return a ranker that starts with the shapes of these arrays.

    A parameter that is true or false may have been changed in the middle of the stream.
    """
    flags = [name for name, value in parameters.items() if isinstance(value, bool | np.bool_)]
    complaints = []
    for changes in [{}, *({name: not parameters[name]} for name in flags)]:
        ranker, shapes = _start_and_shapes(start, n_features, changes)
        complaint = _misfit(arrays, ranker, shapes)
        if complaint is None:
            return ranker
        complaints.append(complaint)
    raise ValueError(complaints[0])


def _start_and_shapes(
    start: Start, n_features: int, changes: Facts
) -> tuple[Ranker, dict[str, tuple[int, ...]]]:
    """Start a ranker, a narrow one if there are many features, and say what shapes it should have."""
    narrow, wide = _WIDTHS
    ranker = start(min(n_features, narrow), changes)
    shapes = {name: np.shape(value) for name, value in _fields(ranker).items()}
    if n_features <= narrow:
        return ranker, shapes
    for name, value in _fields(start(wide, changes)).items():
        growth = [
            (b - a) // (wide - narrow) for a, b in zip(shapes[name], value.shape, strict=True)
        ]
        shapes[name] = tuple(
            length + rate * (n_features - narrow)
            for length, rate in zip(shapes[name], growth, strict=True)
        )
    return ranker, shapes


def _misfit(arrays: Arrays, ranker: Ranker, shapes: dict[str, tuple[int, ...]]) -> str | None:
    """Say which array a ranker would not have like this, if there is one."""
    fields = _fields(ranker)
    if different := arrays.keys() ^ fields.keys():
        return f"it should have the arrays {', '.join(fields)}, and {min(different)} differs"
    for name, array in arrays.items():
        expected = list(shapes[name])
        axis = _changing_axis(ranker, *name.split("."))
        if axis is not None and axis < array.ndim:
            expected[axis] = array.shape[axis]
        if list(array.shape) != expected or array.dtype != np.asarray(fields[name]).dtype:
            return (
                f"{name} is {array.dtype} of shape {array.shape}, and should be "
                f"{np.asarray(fields[name]).dtype} of shape {tuple(expected)}"
            )
    return None


def _changing_axis(ranker: Ranker, name: str, field: str) -> int | None:
    if name == "rivals":
        return 0
    return _CHANGING_AXES.get(name, {}).get(field) if name != "buffer" or ranker._sparse else None


def _fill(ranker: Ranker, arrays: Arrays, n_features: int) -> None:
    """Give a ranker its arrays, once their numbers make sense."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} has numbers that are not finite")
        if array.dtype.kind == "i" and not ((array >= 0) & (array < _MANY)).all():
            raise ValueError(f"{name} has numbers that count nothing")
    for name, held in _tuples(ranker).items():
        values = within(name, arrays)
        axes = {field: _changing_axis(ranker, name, field) for field in held._fields}
        lengths = {values[field].shape[axis] for field, axis in axes.items() if axis is not None}
        if len(lengths) > 1:
            raise ValueError(f"the arrays of its {name} are not equally long")
        setattr(ranker, f"_{name}", _refilled(held, values))
    _refuse_bad_places(ranker._buffer, n_features)
    if hasattr(ranker, "_race"):
        _refuse_bad_race(ranker)


def _refuse_bad_race(ranker: Any) -> None:
    alive, learners = ranker._race.alive, len(ranker._race.C)
    if (
        len(set(alive.tolist())) != alive.size
        or alive.size != ranker._rivals[0].shape[0] + 1
        or (alive >= learners).any()
    ):
        raise ValueError("the learners of its race are not those it has")
    if not (ranker._race.C > 0).all():
        raise ValueError("a C of its race is not above zero")


def _refilled(held: Any, values: Arrays) -> Any:
    """Return a tuple like `held` with other values; what was a plain number stays one."""
    return held._make(
        values[field] if isinstance(value, np.ndarray) else type(value)(values[field][()])
        for field, value in held._asdict().items()
    )


def _refuse_bad_places(buffer: Any, n_features: int) -> None:
    """Refuse numbers that would send a kernel, which checks no bounds, out of its arrays."""
    _, capacity, width = buffer[0].shape
    limits = {
        "size": np.minimum(buffer.seen, capacity),
        "oldest": capacity - 1,
        "length": width,
        "indices": n_features - 1,
    }
    for field, limit in limits.items():
        if field in buffer._fields and (getattr(buffer, field) > limit).any():
            raise ValueError(f"buffer.{field} points beyond the buffer")
    if ((buffer.size == 0) & (buffer.seen > 0)).any():
        raise ValueError("its buffer lost rows that it has seen")
