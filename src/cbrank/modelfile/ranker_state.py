"""What a ranker has learned, as arrays and facts, and the ranker again.

A ranker is given back by starting it anew from its parameters and filling what it starts with: the
tuples of arrays of its kernels, whatever these are, must have the types and shapes of the start.
"""

import functools
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from cbrank.modelfile.container import Arrays, Facts
from cbrank.modelfile.values import (
    from_json,
    take,
    texts_to_arrays,
    to_json,
    under,
    within,
)
from cbrank.rankers import _checks
from cbrank.rankers._base import Ranker
from cbrank.streams.columns_state import MOST_COLUMNS
from cbrank.streams.texts import Texts

# Axes whose length changes as a ranker learns; in one tuple all are one length.
_CHANGING_AXES = {"buffer": {"values": 2, "indices": 2}, "race": {"alive": 0}}

# How much of the last axis is kept: what follows is room to work in, zero between any two rows.
# Files of format 1 have it too.
_KEPT = {"features": 3}

_MANY = 2**52  # more rows or pairs than any stream has, and no rounding in floating point
_SMALL = 2  # size of small rankers, which tell how shapes grow with each size
_WIDTH = "n_features"
_BLOCK = 2**16  # numbers that are looked at together

Shapes = dict[str, tuple[int, ...]]


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
    ranker = checked_ranker(kind, arrays, facts)
    own = _own(arrays)
    for name, held in _tuples(ranker).items():
        setattr(ranker, f"_{name}", _refilled(held, within(name, own)))
    ranker._threshold = _threshold(facts.get("threshold"))
    if len(own) < len(arrays):
        names = _names(arrays, ranker.n_features_in_)
        ranker.feature_names_in_ = np.fromiter(names, object, len(names))
    return ranker


def checked_ranker(kind: type[Ranker], arrays: Arrays, facts: Facts) -> Ranker:
    """Return a small ranker in the place of one that `ranker_from` can give back."""
    parameters = _parameters(kind, take(facts, "parameters", dict))
    began_with = _parameters(kind, take(facts, "began_with", dict))
    beginning = parameters | began_with
    classes = _classes(facts.get("classes"))
    sparse, n_features = take(facts, "sparse", bool), take(facts, "n_features", int)
    _refuse_bad_parameters(kind(**parameters), classes)
    kind(**beginning)._validate_params()
    sizes = {_WIDTH: n_features} | {
        name: beginning[name]
        for name in kind._shape_parameters
        if isinstance(beginning.get(name), Integral)
    }
    if not all(type(size) is not bool and int(size) > 0 for size in sizes.values()):
        raise ValueError(f"its parameters make no ranker of {n_features} features")
    own = _own(arrays)
    small = dict.fromkeys(sizes, _SMALL)
    ranker = _started(kind, beginning, sparse, classes, small)
    _refuse_misfits(own, ranker, _shapes(ranker, sizes))
    if ranker._sparse is not sparse or ranker._shape.keys() != began_with.keys():
        raise ValueError("what it began with makes no sense")
    _refuse_bad_numbers(own)
    _refuse_bad_buffer(within("buffer", own), n_features)
    if hasattr(ranker, "_race"):
        _refuse_bad_race(within("race", own), within("rivals", own))
    for name, value in parameters.items():
        setattr(ranker, name, value)
    ranker._shape = began_with
    ranker.n_features_in_ = n_features
    _threshold(facts.get("threshold"))
    if len(own) < len(arrays):
        _names(arrays, n_features)
    return ranker


# Facts ------------------------------------------------------------------------------------------


@functools.cache
def _known_parameters(kind: type[Ranker]) -> frozenset[str]:
    return frozenset(kind._get_param_names())


def _parameters(kind: type[Ranker], facts: Facts) -> Facts:
    unknown = facts.keys() - _known_parameters(kind)
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


def _names(arrays: Arrays, n_features: int) -> Texts:
    names = Texts.checked(within("names", arrays))
    if len(names) != n_features:
        raise ValueError(f"it has {n_features} features and names for {len(names)}")
    if len(names) > MOST_COLUMNS:
        raise ValueError(f"it has names for {len(names)} features, and may for {MOST_COLUMNS}")
    return names


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
    """Return the arrays in all tuples of a ranker, without the room to work in."""
    return {
        f"{name}.{field}": value[..., : _KEPT[field]] if field in _KEPT else value
        for name, held in _tuples(ranker).items()
        for field, value in held._asdict().items()
    }


def _own(arrays: Arrays) -> Arrays:
    """Return all arrays but the names of features, without the room to work in."""
    own = {name: array for name, array in arrays.items() if not name.startswith("names.")}
    for name, array in own.items():
        kept = _KEPT.get(name.rpartition(".")[2], 0)
        if kept and array.shape[-1:] == (kept + 1,):
            own[name] = array[..., :kept]
    return own


def _started(
    kind: type[Ranker],
    parameters: Facts,
    sparse: bool,
    classes: NDArray[Any],
    sizes: dict[str, int],
) -> Ranker:
    """Start a ranker of these sizes."""
    ranker = kind(**parameters | {name: sizes[name] for name in sizes if name != _WIDTH})
    width = sizes[_WIDTH]
    rows = sp.csr_array((0, width)) if sparse else np.empty((0, width))
    ranker._start(rows, classes, np.random.RandomState(0))
    return ranker


def _shapes(ranker: Ranker, sizes: dict[str, int]) -> Shapes:
    """Return the shapes that a small ranker would have if it were of these sizes."""
    tellers = {
        name: value if isinstance(value, str) else 1.0
        for name, value in ranker.get_params(deep=False).items()
        if isinstance(value, str | Real) and name not in sizes
    }
    growth = _growth(type(ranker), ranker._sparse, tuple(tellers.items()), tuple(sizes))
    shapes = {name: list(np.shape(value)) for name, value in _fields(ranker).items()}
    for name, axis, size_name, rate in growth:
        shapes[name][axis] += rate * (int(sizes[size_name]) - _SMALL)
    return {name: tuple(shape) for name, shape in shapes.items()}


@functools.lru_cache(maxsize=256)
def _growth(
    kind: type[Ranker],
    sparse: bool,
    parameters: tuple[tuple[str, Any], ...],
    size_names: tuple[str, ...],
) -> list[tuple[str, int, str, int]]:
    """Return which axes of which arrays grow with which size, and how fast.

    Words among the parameters, such as a kind of covariance, shape a ranker; numbers do not,
    but for the sizes.
    """
    small, classes = dict.fromkeys(size_names, _SMALL), np.arange(2)
    base = _fields(_started(kind, dict(parameters), sparse, classes, small))
    found = []
    for size_name in size_names:
        more = small | {size_name: _SMALL + 1}
        for name, value in _fields(_started(kind, dict(parameters), sparse, classes, more)).items():
            for axis, (one, two) in enumerate(
                zip(np.shape(base[name]), np.shape(value), strict=True)
            ):
                found += [(name, axis, size_name, two - one)] if two > one else []
    return found


def _refuse_misfits(arrays: Arrays, ranker: Ranker, shapes: Shapes) -> None:
    """Refuse an array that a ranker would not have like this, if there is one."""
    fields, lengths = _fields(ranker), dict[str, set[int]]()
    if different := arrays.keys() ^ fields.keys():
        raise ValueError(
            f"it should have the arrays {', '.join(fields)}, and {min(different)} differs"
        )
    for name, array in arrays.items():
        part, field = name.split(".")
        expected, axis = list(shapes[name]), _changing_axis(ranker, part, field)
        if axis is not None and axis < array.ndim:
            expected[axis] = array.shape[axis]
            lengths.setdefault(part, set()).add(array.shape[axis])
        dtype = np.asarray(fields[name]).dtype
        if list(array.shape) != expected or array.dtype != dtype:
            raise ValueError(
                f"{name} is {array.dtype} of shape {array.shape}, and should be {dtype} of shape "
                f"{tuple(expected)}"
            )
    for part, found in lengths.items():
        if len(found) > 1:
            raise ValueError(f"the arrays of its {part} are not equally long")


def _changing_axis(ranker: Ranker, part: str, field: str) -> int | None:
    if part == "rivals":
        return 0
    return _CHANGING_AXES.get(part, {}).get(field) if part != "buffer" or ranker._sparse else None


def _refuse_bad_numbers(arrays: Arrays) -> None:
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not _all_finite(array):
            raise ValueError(f"{name} has numbers that are not finite")
        if array.dtype.kind == "i" and array.size and not 0 <= array.min() <= array.max() < _MANY:
            raise ValueError(f"{name} has numbers that count nothing")


def _all_finite(array: NDArray[Any]) -> bool:
    """Say whether all numbers are finite, without an array as long that says it of each."""
    return not array.size or bool(np.isfinite(array.min()) and np.isfinite(array.max()))


def _refuse_bad_race(race: Arrays, rivals: Arrays) -> None:
    alive, learners = race["alive"], len(race["C"])
    count = next(iter(rivals.values())).shape[0]
    if (
        len(set(alive.tolist())) != alive.size
        or alive.size != count + 1
        or (alive >= learners).any()
    ):
        raise ValueError("the learners of its race are not those it has")
    if not (race["C"] > 0).all():
        raise ValueError("a C of its race is not above zero")


def _refuse_bad_buffer(buffer: Arrays, n_features: int) -> None:
    """Refuse numbers that would send a kernel, which checks no bounds, out of its arrays."""
    _, capacity, width = buffer["rows" if "rows" in buffer else "values"].shape
    limits = {
        "size": np.minimum(buffer["seen"], capacity),
        "oldest": capacity - 1,
        "length": width,
        "indices": n_features - 1,
    }
    for field, limit in limits.items():
        if field in buffer and (buffer[field] > limit).any():
            raise ValueError(f"buffer.{field} points beyond the buffer")
    if ((buffer["size"] == 0) & (buffer["seen"] > 0)).any():
        raise ValueError("its buffer lost rows that it has seen")
    if "indices" in buffer:
        _refuse_disorder(buffer["indices"], buffer["length"])


def _refuse_disorder(indices: NDArray[np.int32], length: NDArray[np.int64]) -> None:
    """Refuse sparse rows whose features are not in ascending order."""
    width = indices.shape[2]
    rows, lengths, places = indices.reshape(-1, width), length.reshape(-1, 1), np.arange(1, width)
    block = max(1, _BLOCK // max(width, 1))
    for begin in range(0, len(rows) if width > 1 else 0, block):
        some, filled = rows[begin : begin + block], places < lengths[begin : begin + block]
        if ((some[:, 1:] <= some[:, :-1]) & filled).any():
            raise ValueError("a row of its buffer has a feature twice, or out of order")


def _refilled(held: Any, values: Arrays) -> Any:
    """Return a tuple like `held` with other values; what was a plain number stays one."""
    return held._make(
        _with_room(field, values[field], value)
        if isinstance(value, np.ndarray)
        else type(value)(values[field][()])
        for field, value in held._asdict().items()
    )


def _with_room(field: str, array: NDArray[Any], held: NDArray[Any]) -> NDArray[Any]:
    """Return an array with the room to work in that it has beside what is kept."""
    if field not in _KEPT:
        return array
    whole = np.zeros((*array.shape[:-1], held.shape[-1]))
    whole[..., : _KEPT[field]] = array
    return whole
