"""Single rows: `learn_one`. What is plainly in order goes to one compiled call, without any checks between.

A `Session` is the table of addresses that such a call takes (see ``kernels.one_row``). It belongs to
the tuples of arrays that a ranker has at the moment, which it keeps alive, and to no others: with the
next block, after a resize, a fit or a merge there are other tuples, and the session is made anew. It
lives in what a ranker does not share with copies, pickles and files.
"""

import contextlib
from collections.abc import Sequence
from ctypes import addressof, c_char
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cbrank import checks, kernels
from cbrank.learning import blocks, served
from cbrank.learning.blocks import to_its_end, uninterrupted
from cbrank.learning.front import waits
from cbrank.learning.method import Method, Settings
from cbrank.learning.state import Batch, State

_Self = TypeVar("_Self", bound=Any)
_Array, _FLOAT = np.ndarray, np.dtype(np.float64)
_NOTED = 17  # fields of a record that rows are noted in
_REFUSED, _LAST = 0, 2  # as in ``kernels.one_row``
# Features up to which a row is learned at once: beyond, a row takes far longer than to be handed over.
_WIDEST = 256
_NUMBERS = "fiub"  # kinds of numbers that become float64 without a word
# Types of the arrays of a buffer, of a record up to its `learned`, of what a session adds itself, and of models.
_TYPES = {"f": _FLOAT, "i": np.dtype(np.int64), "u": np.dtype(np.uint64), "b": np.dtype(np.bool_)}
_KINDS = "ffiiiuii" + "ffffffiiffffffffi" + "iffff" + "ffiiiuiif"
_MODEL = "fffi"
_NO_ROOM = np.zeros(0)
_ONE_ROW = np.zeros(1, np.int64)
_ONE_LABEL = np.zeros(1, np.int64), np.ones(1, np.int64)


def learn_one(self: _Self, x: Any, y: Any, classes: ArrayLike | None = None) -> _Self:
    """Go on learning from one row: `partial_fit` without its overhead.

    Parameters
    ----------
    x : array-like of shape (n_features,) or sparse matrix of shape (1, n_features)
        The row.
    y : object
        Its label.
    classes : array-like of shape (2,), default=None
        The two labels; needed if this is the first row.

    Returns
    -------
    self : object
        The ranker itself.
    """
    if not self.__sklearn_is_fitted__() or waits(self._learned.state):
        return self.partial_fit(checks.as_one_row(x, tables=self.TAKES_TABLES), [y], classes)
    with self._own.lock:
        if classes is not None and not _are_known(self, classes):
            self._check_unchanged(classes)
        if not self.learn_at_once(x, y):
            self.learn_row(self._check_row(x), self.encode_label(y))
    return self


def _are_known(ranker: Any, classes: Any) -> bool:
    """Say whether these are plainly the labels of the first call."""
    given = classes.tolist() if type(classes) is _Array else classes
    return type(given) in {list, tuple} and [*given] == [*ranker._label_of]


def encode_label(ranker: Any, y: Any) -> int:
    """Return 0 for the label of the first class and 1 for that of the second; refuse any other."""
    try:
        label: int = ranker._label_of[y]
        return label
    except (KeyError, TypeError):
        labels = np.array([y]).ravel()
        if labels.size != 1:
            raise ValueError(f"y must be one label, and it is {y!r}.") from None
        return int(checks.encode(labels, ranker.classes_)[0])


def learn_row(ranker: Any, row: Any, label: int) -> None:
    """Go on learning from one checked row of the class at this place in `classes_`."""
    settings = ranker._settings()
    batch = Batch(row, _ONE_LABEL[label], settings.weights[label : label + 1], _ONE_ROW)
    blocks.learn(ranker._learned, settings.method, batch, shuffled=False)
    ranker._warn_if_diverged(stacklevel=4)  # who called `learn_one`


# By one compiled call -------------------------------------------------------------------------------


class Session:
    """What single rows are taken by, for as long as a ranker keeps its state and its settings."""

    __slots__ = (
        "arrays",
        "average",
        "class_weight",
        "inverse",
        "learn",
        "operating_point",
        "probabilities",
        "row",
        "score",
        "settings",
        "shape",
        "state",
        "table",
        "wide",
    )

    def __init__(self, ranker: Any, state: State, settings: Settings | None) -> None:
        self.state, self.settings, self.average = state, settings, ranker.average
        self.operating_point, weight = ranker.operating_point, ranker.class_weight
        self.class_weight = dict(weight) if isinstance(weight, dict) else weight
        self.inverse = getattr(state.front, "inverse", None)
        # What can be done at once: the address of the table, or 0. Not the calls themselves: who walks
        # through a model to tell its size would walk through Numba.
        self.learn = self.score = self.probabilities = 0
        if not state.sparse and kernels.one_row.COMPILED:
            self._prepare(ranker, state)

    def _prepare(self, ranker: Any, state: State) -> None:
        method, count = ranker._method(state), len(state.models)
        n_features, capacity = state.width, state.buffer.rows.shape[1]
        self.shape, self.wide = (n_features,), (1, n_features)
        point, notes = _point_of(ranker, state), np.zeros(4 * count + 2)
        mix, settings = served.mix_of(method, state), _settings_of(method, state, self.settings)
        learns = self.settings is not None and n_features <= _WIDEST and _learns_at_once(state)
        copies = kernels.row_table.copies(n_features, capacity) if learns else []
        added = np.arange(count), mix, notes, settings, point
        self.arrays = [*state.buffer, *state.record[:_NOTED], *added, *copies]
        self.table = np.zeros(kernels.row_table.WORK, np.int64)
        if not self._note_addresses(0, self.arrays):
            return
        self.table[kernels.row_table.SIZES :] = (
            n_features,
            capacity,
            count,
            state.record.tested.size,
            state.record.origin.size > 0,
            copies[-1].size if learns else 0,
        )
        for model in state.models:
            if not _are_sound(model, _MODEL):
                return
            table = kernels.row_table
            none = [_NO_ROOM] * (table.EACH - table.SWEEP)
            room = table.workspace(n_features, capacity) if learns else none
            self.arrays += [*model, *room]
            self.table = np.append(self.table, [_address(array) for array in (*model, *room)])
        if learns:
            self.row, self.learn = copies[-1][0, :n_features], _address(self.table)
        self.probabilities = _address(self.table)
        if not np.isnan(point).any():
            self.score = self.probabilities

    def _note_addresses(self, first: int, arrays: Sequence[NDArray[Any]]) -> bool:
        """Note where arrays are, from the first place on, unless one is not as kernels want it."""
        if not _are_sound(arrays, _KINDS[first : first + len(arrays)]):
            return False
        for place, array in enumerate(arrays, first):
            self.table[place] = _address(array)
        return True

    def with_state(self, state: State, mix: NDArray[np.float64]) -> "Session | None":
        """Return the session of a ranker that has begun another block and is else the same."""
        twin, first = object.__new__(Session), kernels.row_table.RECORD
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name, None))
        twin.state, twin.table, twin.arrays = state, self.table.copy(), self.arrays.copy()
        changed = dict(enumerate(state.record[:_NOTED], first)) | {kernels.row_table.MIX: mix}
        for place, array in changed.items():
            if array is not self.arrays[place] and not twin._note_addresses(place, [array]):
                return None
            twin.arrays[place] = array
        twin.table[kernels.row_table.ROOM] = state.record.tested.size
        for name in ("learn", "score", "probabilities"):
            setattr(twin, name, getattr(self, name) and _address(twin.table))
        return twin


def _are_sound(arrays: Sequence[NDArray[Any]], kinds: str) -> bool:
    """Say whether arrays are as kernels want them."""
    pairs = zip(arrays, kinds, strict=True)
    return all(array.flags.carray and array.dtype == _TYPES[kind] for array, kind in pairs)


def _renewed(ranker: Any, state: State) -> Session:
    """Return the session of a ranker in this state, which becomes its own."""
    own = ranker._own
    before, session, known = own.session, None, own.known
    if known is not None and not _is_as(
        known, ranker.__dict__
    ):  # set otherwise, perhaps for a moment
        known = None
    if (
        before is not None
        and before.probabilities
        and before.settings is known
        and before.state.models is state.models
        and before.state.buffer is state.buffer
        and before.state.front is state.front
        and before.state.intercept is state.intercept
        and _serves(before, ranker.__dict__)
    ):
        mix = served.mix_of(ranker._method(state), state)
        session = before.with_state(state, mix)
    own.session = session = session or Session(ranker, state, known)
    return session


def _is_as(known: Settings, held: dict[str, Any]) -> bool:
    """Say whether the parameters are, or are equal to, those that settings were made of."""
    try:
        return known.read(held) == known.values and (
            known.class_weight is None or held["class_weight"] == known.class_weight
        )
    except ValueError:  # an array, which is neither equal nor not
        return False


def _serves(session: Session, held: dict[str, Any]) -> bool:
    """Say whether scores are still made of what a session has noted."""
    return bool(
        session.average is held["average"]
        and session.operating_point is held["operating_point"]
        and session.class_weight == held["class_weight"]
    )


def _point_of(ranker: Any, state: State) -> NDArray[np.float64]:
    """Return what the operating point goes by; NaN where that is a matter of rows so far."""
    balanced = ranker.operating_point == "balanced"
    if state.intercept is not None:
        return np.array([1.0, state.intercept, 0.0, 0.0, balanced])
    by_counts = ranker.class_weight == "balanced" and not balanced
    costs = np.full(2, np.nan)
    with contextlib.suppress(ValueError):  # weights of other classes: who needs them will say so
        costs = costs if by_counts else ranker._costs(state.buffer.seen)
    return np.array([0.0, 0.0, *costs, balanced])


def _settings_of(method: Method, state: State, settings: Settings | None) -> NDArray[np.float64]:
    """Return what a row is learned by, in the order of ``kernels.one_row``."""
    if settings is None:
        return np.zeros(kernels.row_table.OWN + 2 * len(state.models))
    own: list[float] = []
    for learner in method.learners[: len(state.models)]:
        share = learner.forgetting
        own += [learner.C, kernels.forgetting.rows_between(share) if share else 0]
    _, *others, _ = settings.method.parameters[0]
    return np.array([*others, *settings.weights, *own], np.float64)


def _learns_at_once(state: State) -> bool:
    """Say whether learners have full covariances, and go pair by pair."""
    blocked = state.width >= kernels.blocked.WORTHWHILE
    return hasattr(state.models[0], "Sigma") and not blocked


def _address(array: Any) -> int:
    return addressof(c_char.from_buffer(array)) if array.size else 0


def learn(ranker: Any, x: Any, y: Any) -> bool:
    """Let a ranker that has begun, and that no other thread learns into, learn a row; say whether it has."""
    own, cell = ranker._own, ranker._learned
    known, session, state = own.known, own.session, cell.state
    if (
        known is None
        or type(x) is not _Array
        or state.intercept is not None
        or waits(state)
        or not _is_as(known, ranker.__dict__)
    ):
        return False
    if session is None or session.settings is not known or session.state is not state:
        session = _renewed(ranker, state)
    if not session.learn or x.shape != session.shape:
        return False
    if x.dtype is not _FLOAT and x.dtype.kind not in _NUMBERS:
        return False
    try:
        label = ranker._label_of[y]
    except (KeyError, TypeError):
        return False
    session.row[...] = x
    if session.inverse is not None:
        with np.errstate(over="ignore"):
            session.row *= session.inverse
    block = None if state.memory is None else state.memory.block
    try:
        if block is not None:
            block.add_row(x.astype(_FLOAT), label, known.weights[label])
        done = kernels.one_row.learn(session.learn, label, False)
        if done == _LAST:
            _learn_last(ranker, state, session.learn, label)
        elif done == _REFUSED and block is not None:
            block.drop_row()
        return done != _REFUSED
    finally:
        cell.turn += 1


def _learn_last(ranker: Any, state: State, address: int, label: int) -> None:
    """Learn the last row of a block, which is measured then."""
    calls: list[Any] = [(kernels.one_row.learn, address, label, True)]

    def go_on() -> None:
        if calls:
            uninterrupted([*calls, (calls.clear,)])
        cell = ranker._learned
        if cell.state is state and not blocks.rows_left(state):
            blocks.end_block(cell, ranker._settings().method)

    to_its_end(go_on, lambda: not calls)


def say(ranker: Any, what: str, X: Any, out: NDArray[np.float64]) -> bool:
    """Write the "score" or "probabilities" of a table of one row to `out`; say whether it could be done."""
    if type(X) is not _Array or X.ndim != 2 or X.shape[0] != 1:
        return False
    session, held = ranker._own.session, ranker.__dict__
    if "feature_names_in_" in held or "_learned" not in held:
        return False
    state = ranker._learned.state
    if waits(state) or ranker._ranks_late_rows(state, 1):
        return False
    if session is None or session.state is not state or not _serves(session, held):
        session = _renewed(ranker, state)
    address = getattr(session, what)
    if not address or X.shape != session.wide:
        return False
    if X.dtype != _FLOAT:
        if X.dtype.kind not in _NUMBERS:
            return False
        X = np.array(X, _FLOAT, order="C")
    elif not X.flags.carray:  # kernels are compiled for rows that can be written to
        X = X.copy()
    if session.inverse is not None:
        with np.errstate(over="ignore"):
            X = X * session.inverse
    return bool(getattr(kernels.one_row, what)(address, X, out))
