"""Checks of a ranker's state that comes from elsewhere, before compiled code gets hold of it.

Arrays must have the names, types and shapes that a ranker of the same parameters starts with. A file may
claim any size, so nothing of that size is made to find out: rankers of sizes 2 and 3 tell how shapes
grow.
"""

import functools
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.learning import record
from cbrank.learning.state import Cell, arrays_of, begin
from cbrank.parameters import is_buffer

Arrays = dict[str, NDArray[Any]]
Facts = dict[str, Any]
Shapes = dict[str, tuple[int, ...]]

WIDTH = "n_features"

# Axes whose length changes as a ranker learns; in one tuple, those with one name are one length.
_CHANGING_AXES: dict[str, dict[str, dict[int, str]]] = {
    "buffer": {"values": {2: "width"}, "indices": {2: "width"}},
    "record": {
        "places": {2: "room"},
        "served": {0: "room"},
        "tested": {0: "room"},
        "labels": {0: "room"},
        "history": {0: "blocks"},
    },
}

_OF_SLOTS = {"rows", "values", "indices", "length", "came"}  # arrays of a buffer by class and slot
_MANY = 2**52  # more rows or pairs than any stream has, and no rounding in floating point
_SMALL = 2  # size of small rankers
_BLOCK = 2**16  # numbers that are looked at together


# What of a state is not its front's, and the parts of fronts.
_FRONT_PARTS = "front", "encoder", "rows", "waiting", "memory", "beside"


def by_part(arrays: Arrays) -> dict[str, Arrays]:
    """Return arrays by the part of the front that they belong to, "" for those of the state itself."""
    parts: dict[str, Arrays] = {name: {} for name in ("", *_FRONT_PARTS)}
    for name, array in arrays.items():
        part, _, rest = name.partition(".")
        own = part in _FRONT_PARTS
        parts[part if own else ""][rest if own else name] = array
    return parts


# Facts ------------------------------------------------------------------------------------------


def check_intercept(intercept: Any) -> float | None:
    """Return an intercept, or None for that of the stream; refuse anything else."""
    if intercept is None or (type(intercept) is float and np.isfinite(intercept)):
        return intercept
    raise ValueError("its intercept is not a number")


# Names, types and shapes --------------------------------------------------------------------------


def small_ranker(
    first: Any, arrays: Arrays, sizes: dict[str, int], facts: Facts, classes: NDArray[Any]
) -> Any:
    """Start a small ranker like `first`; refuse arrays that are not those of one of these sizes."""
    if not all(type(size) is not bool and int(size) > 0 for size in sizes.values()):
        raise ValueError(f"its parameters make no ranker of {sizes[WIDTH]} features")
    parameters, small = first.get_params(deep=False), dict.fromkeys(sizes, _SMALL)
    if not isinstance(facts["beside"], list):
        raise ValueError("it does not say which groups of learners it has")  # noqa: TRY004
    kind = bool(facts["sparse"]), int(facts["learners"]), len(facts["beside"])
    ranker = _started(type(first), parameters, kind, classes, small)
    _refuse_misfits(arrays, ranker, _shapes(ranker, kind, sizes))
    return ranker


def _started(
    kind: Any,
    parameters: Facts,
    how: tuple[bool, int, int],
    classes: NDArray[Any],
    sizes: dict[str, int],
) -> Any:
    """Start a ranker of these sizes, for sparse rows or not, with so many learners."""
    ranker = kind(**parameters | {name: sizes[name] for name in sizes if name != WIDTH})
    ranker._begin_like(classes)
    (sparse, learners, groups), method = how, ranker._method()
    if method.of_matrix is not None:
        method = method.of_matrix[not sparse]
    if not method.lasting <= learners <= len(method.learners):
        raise ValueError(f"it has {learners} learners, which no such ranker has")
    method = replace(method, lasting=learners, joins=False)
    state = begin(method, sizes[WIDTH], 1, None, sparse=sparse, shuffled=False)
    if groups and method.leaves is None:
        raise ValueError("it has groups of learners, which no such ranker has")
    for _ in range(groups):
        nothing = record.known_from(np.zeros(2), np.arange(2), method.leaves.shape)
        state = state._replace(record=record.with_group(state.record, nothing, 0.0))
    ranker._learned = Cell(state)
    return ranker


def _shapes(ranker: Any, how: tuple[bool, int, int], sizes: dict[str, int]) -> Shapes:
    """Return the shapes that a small ranker would have if it were of these sizes."""
    tellers = {
        name: value if isinstance(value, str) else 1.0
        for name, value in ranker.get_params(deep=False).items()
        if isinstance(value, str | Real) and name not in sizes
    }
    kind: Any = type(ranker)
    growth = _growth(kind, how, tuple(tellers.items()), tuple(sizes))
    shapes = {name: list(value.shape) for name, value in arrays_of(ranker._learned.state).items()}
    for name, axis, size_name, rate in growth:
        shapes[name][axis] += rate * (int(sizes[size_name]) - _SMALL)
    return {name: tuple(shape) for name, shape in shapes.items()}


@functools.lru_cache(maxsize=256)
def _growth(
    kind: Any,
    how: tuple[bool, int, int],
    parameters: tuple[tuple[str, Any], ...],
    size_names: tuple[str, ...],
) -> list[tuple[str, int, str, int]]:
    """Return which axes of which arrays grow with which size, and how fast.

    Words among the parameters, such as a kind of covariance, shape a ranker; numbers do not,
    but for the sizes.
    """
    small, classes = dict.fromkeys(size_names, _SMALL), np.arange(2)
    base = _arrays(_started(kind, dict(parameters), how, classes, small))
    found = []
    for size_name in size_names:
        more = small | {size_name: _SMALL + 1}
        larger = _arrays(_started(kind, dict(parameters), how, classes, more))
        for name, value in larger.items():
            for axis, (one, two) in enumerate(zip(base[name].shape, value.shape, strict=True)):
                found += [(name, axis, size_name, two - one)] if two > one else []
    return found


def _arrays(ranker: Any) -> Arrays:
    return arrays_of(ranker._learned.state)


def _refuse_misfits(arrays: Arrays, ranker: Any, shapes: Shapes) -> None:
    """Refuse an array that a ranker would not have like this, if there is one."""
    fields, lengths = _arrays(ranker), dict[tuple[str, str], set[int]]()
    kind = type(ranker).__name__
    if missing := fields.keys() - arrays.keys():
        raise ValueError(f"it lacks the array {min(missing)}, which such a {kind} has")
    if unknown := arrays.keys() - fields.keys():
        raise ValueError(f"it has an array {min(unknown)}, which no such {kind} has")
    for name, array in arrays.items():
        part, field = name.split(".")
        expected = list(shapes[name])
        for axis, which in _changing_axes(ranker, part, field).items():
            if axis < array.ndim == len(expected):
                expected[axis] = array.shape[axis]
                lengths.setdefault((part, which), set()).add(array.shape[axis])
        dtype = fields[name].dtype
        if list(array.shape) != expected or array.dtype != dtype:
            raise ValueError(
                f"{name} is {array.dtype} of shape {array.shape}, and should be {dtype} of shape "
                f"{tuple(expected)}"
            )
    for (part, which), found in lengths.items():
        if len(found) > 1:
            raise ValueError(f"the arrays of its {part} are not equally long")
        if which == "slots" and not is_buffer(int(arrays["buffer.least"][0]), min(found)):
            raise ValueError(f"its {part} has room for {min(found)} rows, which no ranker gives it")


def _changing_axes(ranker: Any, part: str, field: str) -> dict[int, str]:
    axes = dict(_CHANGING_AXES.get(part, {}).get(field, {}))
    if part == "buffer" and getattr(ranker, "buffer_size", None) == "auto" and field in _OF_SLOTS:
        axes[1] = "slots"
    return axes


# Numbers ------------------------------------------------------------------------------------------


def refuse_bad_group(arrays: Arrays, group: Any) -> None:
    """Refuse arrays that such a group of learners has not, or numbers that none has learned."""
    expected = arrays_of(group)
    if arrays.keys() != expected.keys():
        raise ValueError("the learners of its trees are not whole")
    for name, array in arrays.items():
        shape, own = list(expected[name].shape), list(array.shape)
        if name in ("buffer.values", "buffer.indices") and len(own) == len(shape):
            shape[2] = own[2]
        if own != shape or array.dtype != expected[name].dtype:
            raise ValueError(f"{name} of its trees is {array.dtype} of shape {array.shape}")
    if arrays["buffer.values"].shape != arrays["buffer.indices"].shape:
        raise ValueError("the rows in the buffer of its trees make no sense")
    _refuse_bad_numbers(arrays)
    _refuse_bad_buffer(_part("buffer", arrays), group.source.width, True)


def refuse_bad_arrays(arrays: Arrays, n_features: int, *, ordered: bool = True) -> None:
    """Refuse numbers that no ranker has learned."""
    _refuse_bad_numbers(arrays)
    _refuse_bad_buffer(_part("buffer", arrays), n_features, ordered)
    _refuse_bad_record(_part("record", arrays))


def _part(name: str, arrays: Arrays) -> Arrays:
    prefix = f"{name}."
    return {
        key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)
    }


def _refuse_bad_numbers(arrays: Arrays) -> None:
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not _all_finite(array):
            raise ValueError(f"{name} has numbers that are not finite")
        if array.dtype.kind == "i" and array.size and not 0 <= array.min() <= array.max() < _MANY:
            raise ValueError(f"{name} has numbers that count nothing")


def _all_finite(array: NDArray[Any]) -> bool:
    """Say whether all numbers are finite, without an array as long that says it of each."""
    return not array.size or bool(np.isfinite(array.min()) and np.isfinite(array.max()))


# Least and greatest number of each array of a record. Beyond them sums and quotients of the kernels
# overflow, or an AUC is none. Places reach 20, and a little more by rounding; evidence, a logarithm of
# odds, some 100; of larger information, elimination would lose the 1 that is added to each pivot.
_BOUNDS: dict[str, tuple[float, float]] = {
    "places": (-21.0, 21.0),
    "served": (-21.0, 21.0),
    "labels": (0, 1),
    "level": (0.0, np.inf),
    "evidence": (0.0, 1.0),
    "weight": (0.0, _MANY),
    "shape": (-1000.0, 1000.0),
    "curve": (-_MANY, _MANY),
    "information": (-1e13, 1e13),
    "errors": (-100.0, 100.0),
    "share": (0.0, _MANY),
    "sums": (0.0, _MANY),
    "blend": (-_MANY, _MANY),
    "certainty": (-1e13, 1e13),
    "history": (0.0, _MANY),
}
_ROUNDING = 1e-9  # of numbers that bound each other, relative


def _refuse_bad_record(held: Arrays) -> None:
    """Refuse a record that would lead a kernel astray: out of bounds, or to what is no number."""
    room, filled = held["tested"].size, held["position"][record.FILLED]
    if not filled <= room <= record.LONGEST or not room:
        raise ValueError("the block of its record is not one")
    if len(held["history"]) > record.MOST_BLOCKS:
        raise ValueError("its record has more blocks than it keeps")
    for field, (least, greatest) in _BOUNDS.items():
        if held[field].size and not least <= held[field].min() <= held[field].max() <= greatest:
            raise ValueError(f"record.{field} is not from {least:g} to {greatest:g}")
    if held["memory"][0] not in (kernels.prequential.MEMORY, record.EVER):
        raise ValueError("its record remembers neither the latest rows nor all")
    sums, history = held["sums"], held["history"]
    if (sums[:, 1] > (1.0 + _ROUNDING) * sums[:, 0]).any() or (history[:, 1] > 1.0).any():
        raise ValueError("an AUC of its record is above 1")
    if not (history[:, 2] > 0.0).all():
        raise ValueError("a block of its record has no rows")
    _refuse_bad_curve(held)


def _refuse_bad_curve(held: Arrays) -> None:
    negatives, positives, places = held["counts"]
    rows = negatives + positives
    if min(negatives.min(), positives.min()) < 0.0 or rows.sum() > _MANY:
        raise ValueError("its record has counted less than nothing, or too much")
    if (np.abs(places) > _BOUNDS["places"][1] * rows).any():
        raise ValueError("its record has counted rows at places that there are not")
    steps = np.diff(held["shape"][0])
    if ((steps > 0.0) & (steps < 1e-100)).any():
        raise ValueError("the curve of its record is upright")
    information, size = held["information"], np.abs(held["information"]).max()
    if np.abs(information - information.T).max() > _ROUNDING * size:
        raise ValueError("the information of its record is not symmetric")
    certainty = held["certainty"]
    if np.abs(certainty - certainty.T).max() > _ROUNDING * np.abs(certainty).max():
        raise ValueError("the certainty of its record is not symmetric")
    if np.linalg.eigvalsh(certainty).min() < 0.0:
        raise ValueError("the blend of its record is less than uncertain")
    if np.linalg.eigvalsh(information).min() < -0.5 or held["errors"][1] < 0.0:
        raise ValueError("the curve of its record knows less than nothing")


def _refuse_bad_buffer(buffer: Arrays, n_features: int, ordered: bool) -> None:
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
    if not 1 <= buffer["least"][0] <= capacity:
        raise ValueError("its buffer keeps more rows than it has room for, or none")
    if ((buffer["size"] == 0) & (buffer["seen"] > 0)).any():
        raise ValueError("its buffer lost rows that it has seen")
    if "indices" in buffer:
        _refuse_disorder(buffer["indices"], buffer["length"], ordered)


def _refuse_disorder(indices: NDArray[np.int32], length: NDArray[np.int64], ordered: bool) -> None:
    """Refuse sparse rows with a feature twice, or not in ascending order if they are to be `ordered`."""
    width = indices.shape[2]
    rows, lengths = indices.reshape(length.size, width), length.reshape(-1, 1)
    places = np.arange(1, width)
    block = max(1, _BLOCK // max(width, 1))
    for first in range(0, len(rows) if width > 1 else 0, block):
        some, filled_ = rows[first : first + block], places < lengths[first : first + block]
        if not ordered:  # what is not filled comes last
            inside = np.arange(width) < lengths[first : first + block]
            some = np.sort(np.where(inside, some, np.iinfo(np.int32).max), axis=1)
        if ((some[:, 1:] <= some[:, :-1]) & filled_).any():
            raise ValueError("a row of its buffer has a feature twice, or out of order")
