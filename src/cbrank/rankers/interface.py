"""The state of a ranker, for the other packages: methods of every `Ranker`.

* beginning and widening: `start`, `start_by`, `reseed`, `resize`
* looking in: `weights`, `class_weights`, `buffered_rows`, `waits`, `learned_in_order`
* what scores are for: `rank_later_rows`
* for merging: `learned`, `prior`, `lasting`, `like`
* timing: `kernel_call`
* taking out and putting in: `get_state`, `from_state`, `check_state`

Model files, merging, Dask, River and the command line go by these; no other package reads an attribute of a
ranker that begins with an underscore, which ``make lint`` checks.
"""

from collections.abc import Callable
from copy import copy, deepcopy
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank import checks
from cbrank.estimator import BaseEstimator
from cbrank.learning import blocks, memory, record, served
from cbrank.learning import state as states
from cbrank.learning.front import waits as states_wait
from cbrank.learning.state import Batch, Cell, State
from cbrank.rankers import sound
from cbrank.rankers.sound import Arrays, Facts

_EVERY = slice(None)
_SIZES = "buffer_size", "rank"  # parameters that arrays are as long as

# What only other packages call and read: tab completion does not offer it.
SEAMS = frozenset(
    [
        "start",
        "start_by",
        "reseed",
        "resize",
        "weights",
        "buffered_rows",
        "takes_dense_rows",
        "learned_in_order",
        "rank_later_rows",
        "kernel_call",
        "class_weights",
        "get_state",
        "from_state",
        "check_state",
        "check_parameters",
        "learn_at_once",
        "say_at_once",
        "learn_row",
        "encode_label",
        "moment",
        "judge",
        "log_odds",
        "calibration",
        "learned",
        "like",
        "prior",
        "lasting",
        "method",
        "waits",
        "together",
        "PARAMETERS",
        "KINDS",
        "SHAPE",
        "TAKES_TABLES",
        "MOST_KEPT",
    ]
)

# Beginning and widening ---------------------------------------------------------------------------


def start(
    ranker: Any,
    n_features: int,
    classes: NDArray[Any],
    *,
    sparse: bool = False,
    random: np.random.RandomState | None = None,
) -> Any:
    """Begin a stream of rows of so many features, sparse or not, before its first row."""
    ranker._validate_params()
    ranker.class_weights(classes)
    ranker.__dict__.pop("feature_names_in_", None)
    rows = np.zeros((0, n_features))
    ranker._start(
        _no_sparse_rows(rows) if sparse else rows,
        np.array(classes),
        random or np.random.RandomState(0),
        shuffled=False,
    )
    ranker.n_features_in_ = n_features
    return ranker


def _no_sparse_rows(rows: NDArray[np.float64]) -> Any:
    from scipy.sparse import csr_array  # noqa: PLC0415

    return csr_array(rows)


def reseed(ranker: Any, seed: int) -> None:
    """Let chance in the buffer go on from another seed, from 1 to 2^63 - 1."""
    ranker._learned.state.buffer.random[0] = seed


def resize(ranker: Any, n_features: int) -> None:
    """Make room for features that the stream has not shown before, or cut off some that it has not shown."""
    with ranker._own.lock:
        cell = ranker._learned
        state = cell.state
        if not state.selects:
            state = states.resized(ranker._method(state), state, n_features)
        if state.front is not None:
            state = state._replace(front=state.front.resized(n_features))
        cell.state = state
        ranker.n_features_in_ = n_features
        ranker._own.session = ranker._own.known = None  # they would keep what was before


# Looking in ---------------------------------------------------------------------------------------


def weights(ranker: Any, columns: Any = _EVERY) -> NDArray[np.float64]:
    """Return the weights of some features as in `coef_`, without making those of all; not to be changed."""
    return ranker._served(columns).weights


def class_weights(
    ranker: Any, classes: NDArray[Any], counts: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Return the weights of the two classes, given how many rows of each there are, if that is known."""
    return checks.class_weights(ranker.class_weight, classes, counts)


def buffered_rows(ranker: Any) -> tuple[NDArray[np.int64], Any]:
    """Return the labels, 0 or 1, of the rows that are kept to meet new ones, and the rows, copied."""
    _, state = ranker._near()
    labels, rows = states.buffered_rows(state)
    return labels, rows if state.front is None else state.front.decode(rows)


def learned_in_order(ranker: Any) -> bool:
    """Say whether the ranker keeps rows of a stream that it learned in order."""
    _, state = ranker._near()
    return state.memory is not None and not record.shuffled(state.record)


def rank_later_rows(ranker: Any) -> None:
    """Let scores be for rows that come much later, unless the parameter `horizon` says what they are for."""
    if getattr(ranker, "horizon", None) == "auto":
        ranker.set_params(horizon="later")


def kernel_call(ranker: Any, X: Any, labels: NDArray[np.int64], seed: int) -> Callable[[], None]:
    """Return the one call of the compiled kernel in which `fit` would learn all rows, in their order.

    Rows are taken as checked. Nothing else of a fit is in the call: no measure of a block, no probabilities,
    no threshold. The ranker has one learner, and its columns are taken as they come.
    """
    classes, order = np.array([0, 1]), np.arange(len(labels))
    random = np.random.RandomState(seed)
    start(ranker, X.shape[1], classes, sparse=not isinstance(X, np.ndarray), random=random)
    weights = class_weights(ranker, classes, np.bincount(labels, minlength=2))[labels]
    method = ranker._method(ranker._learned.state, fits=True)
    return blocks.kernel_call(ranker._learned, method, Batch(X, labels, weights, order))


def waits(ranker: Any) -> bool:
    """Whether rows wait until it is decided what columns are."""
    return ranker.__sklearn_is_fitted__() and states_wait(ranker._learned.state)


def learned(ranker: Any) -> State:
    """Return what the ranker has learned, not copied."""
    return ranker._learned.state


def prior(ranker: Any, place: int = 0) -> Any:
    """Return the model of a learner before the first row."""
    state = ranker._learned.state
    method, front = ranker._method(state), state.front
    fresh = method.new_model(state.width, state.sparse)
    return fresh if front is None else front.begun(method, fresh, place)


def method(ranker: Any) -> Any:
    """Return how the ranker learns."""
    return ranker._method(ranker._learned.state)


def lasting(ranker: Any) -> int:
    """Return how many learners are merged: one that is for rows in order begins anew."""
    return method(ranker).lasting


def like(ranker: Any, state: State) -> Any:
    """Return a ranker like this one in all but what it has learned."""
    other = copy(ranker)
    del other._learned
    other = deepcopy(other)
    method = other._method(state)
    state = served.bounded(state._replace(intercept=None))
    other._learned = Cell(blocks.testing(method, state, state))
    return other


def public_names(ranker: Any) -> list[str]:
    """Return the parameters, the fitted attributes and the methods for users, and what is private."""
    fitted = ranker.__sklearn_is_fitted__()
    return [
        name
        for name in BaseEstimator.__dir__(ranker)
        if name not in SEAMS and (fitted or name.startswith("_") or not name.endswith("_"))
    ]


# Taking out and putting in ------------------------------------------------------------------------


def get_state(ranker: Any) -> tuple[Arrays, Facts]:
    """Return all that is needed to go on learning: arrays, not copied, and facts that JSON can hold."""
    state = ranker._learned.state
    arrays, facts = states.arrays_of(state), {}
    if state.front is not None:
        own, facts = state.front.taken_out(state)
        arrays |= own
    beside = list[Facts]()
    if state.beside:
        from cbrank.learning import leaves  # noqa: PLC0415 (only tables have such)

        own, beside = leaves.taken_out(method(ranker), state.beside)
        arrays |= {f"beside.{name}": array for name, array in own.items()}
    kept: Facts = {}
    if state.memory is not None:
        own, kept = memory.taken_out(state.memory, state.record.position)
        arrays |= {f"memory.{name}": array for name, array in own.items()}
    return arrays, {
        "class": type(ranker).__name__,
        "parameters": ranker.get_params(deep=False),
        "began_with": dict(ranker._shape),
        "classes": ranker.classes_,
        "n_features": state.width,
        "learners": len(state.models),
        "sparse": bool(state.sparse),
        "intercept": state.intercept,
        "front": facts,
        "memory": kept,
        "beside": beside,
    }


def from_state(kind: Any, arrays: Arrays, facts: Facts) -> Any:
    """Return the ranker of `get_state`, which goes on as if it had never stopped; ValueError if it is not sound."""
    ranker, parts = _checked(kind, arrays, facts)
    cell = ranker._learned
    cell.state = states.with_arrays(cell.state, parts[""])
    _put_front(ranker, parts, facts)
    return ranker


def check_state(kind: Any, arrays: Arrays, facts: Facts) -> Any:
    """Check the state of a ranker, in little memory; return a small ranker in the place of the whole."""
    ranker, parts = _checked(kind, arrays, facts)
    if len(parts[""]) < len(arrays):  # else `from_state` does the rest
        _put_front(ranker, parts, facts)
    return ranker


def _checked(kind: Any, arrays: Arrays, facts: Facts) -> tuple[Any, dict[str, Arrays]]:
    """Return a small ranker with these facts, and the arrays by the part of a state they belong to."""
    parts = sound.by_part(arrays)
    own, n_features = parts[""], facts["n_features"]
    now = kind(**facts["parameters"])
    first = kind(**facts["parameters"] | facts["began_with"])
    classes = two_labels(facts["classes"])
    now._validate_params()
    try:
        now.class_weights(classes)
    except TypeError:
        raise ValueError("its class weights are not numbers") from None
    first._validate_params()
    sizes = {sound.WIDTH: n_features} | {
        name: getattr(first, name)
        for name in _SIZES
        if isinstance(getattr(first, name, None), Integral)
    }
    ranker = sound.small_ranker(first, own, sizes, facts, classes)
    state = ranker._learned.state
    if state.sparse is not facts["sparse"] or ranker._shape.keys() != facts["began_with"].keys():
        raise ValueError("what it began with makes no sense")
    slots = parts["front"].get("slots")
    known = n_features if slots is None else slots.size
    sound.refuse_bad_arrays(own, known, ordered=slots is None)
    for name, value in now.get_params(deep=False).items():
        setattr(ranker, name, value)
    ranker._shape = {name: facts["began_with"][name] for name in ranker._shape}
    ranker.n_features_in_ = n_features
    intercept = sound.check_intercept(facts["intercept"])
    ranker._learned.state = state._replace(intercept=intercept)
    return ranker, parts


def _put_front(ranker: Any, parts: dict[str, Arrays], facts: Facts) -> None:
    cell = ranker._learned
    own = parts.pop("memory")
    front = ranker._front_of(parts, facts.get("front"), facts["n_features"])
    kept = cell.state.memory
    if kept is not None:
        position = parts[""]["record.position"]
        names = front.encoder.names() if ranker.TAKES_TABLES else None
        kept = memory.from_arrays(own, facts.get("memory"), names, position)
    elif own or facts.get("memory"):
        raise ValueError("it has a memory of rows, which no such ranker has")
    cell.state = cell.state._replace(front=front, memory=kept)
    _put_beside(ranker, parts["beside"], facts["beside"])
    if front is not None and front.waiting is not None and parts[""]["buffer.seen"].any():
        raise ValueError("it has learned while rows wait")


def _put_beside(ranker: Any, arrays: Arrays, facts: list[Facts]) -> None:
    cell = ranker._learned
    if not facts and not arrays:
        return
    from cbrank.learning import leaves  # noqa: PLC0415 (only tables have such)

    beside = list[Any]()
    encoder = cell.state.front.encoder
    for group, own in leaves.from_arrays(ranker._method(cell.state), arrays, facts, encoder):
        sound.refuse_bad_group(own, group)
        beside.append(states.with_arrays(group, own))
    cell.state = cell.state._replace(beside=tuple(beside))


def two_labels(classes: Any) -> NDArray[Any]:
    """Return two labels in order; refuse anything else."""
    try:
        labels = np.array(classes)
        if labels.ndim == 1 and np.array_equal(labels, checks.check_classes(labels)):
            return labels
    except TypeError:
        pass
    raise ValueError("its classes are not two labels in order")


def set_state(ranker: Any, held: dict[str, Any]) -> None:
    """Take what a pickle holds."""
    BaseEstimator.__setstate__(ranker, held)
    cell = vars(ranker).get("_learned")
    if cell is not None:
        ranker._learned = Cell(states.writeable(cell.state))
