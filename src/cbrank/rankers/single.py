"""Single rows: what is plainly in order goes to one compiled call, without any checks between.

A `Session` is the table of addresses that such a call takes (see ``kernels.one_row``). It belongs to
the tuples of arrays that a ranker has at the moment, which it keeps alive, and to no others: with the
next block, after a resize, a fit or a merge there are other tuples, and the session is made anew. It
lives in what a ranker does not share with copies, pickles and files.
"""

import contextlib
from collections.abc import Sequence
from ctypes import addressof, c_char
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.rankers import halving, record
from cbrank.rankers.parts import to_its_end, uninterrupted

if TYPE_CHECKING:
    from cbrank.rankers.base import Settings
    from cbrank.rankers.cbr import CBRanker

_Array, _FLOAT = np.ndarray, np.dtype(np.float64)
_NOTED = 17  # fields of a record that rows are noted in
_REFUSED, _LAST = 0, 2  # as in ``kernels.one_row``
# Features up to which a row is learned at once: beyond, a row takes far longer than to be handed over.
_WIDEST = 256
_NUMBERS = "fiub"  # kinds of numbers that become float64 without a word
# Types of the arrays of a buffer, a model, a record up to its `learned`, of other models and of what
# a session adds itself.
_TYPES = {"f": _FLOAT, "i": np.dtype(np.int64), "u": np.dtype(np.uint64), "b": np.dtype(np.bool_)}
_KINDS = "ffiiiuii" + "fffi" + "ffffffiiffffffffi" + "fffi" + "iffff" + "ffiiiuiif"


class Session:
    """What single rows are taken by, for as long as a ranker keeps its arrays and its settings."""

    __slots__ = (
        "arrays",
        "average",
        "buffer",
        "class_weight",
        "intercept",
        "learn",
        "model",
        "operating_point",
        "probabilities",
        "record",
        "row",
        "score",
        "settings",
        "shape",
        "table",
        "wide",
    )

    def __init__(self, ranker: "CBRanker", settings: "Settings | None") -> None:
        self.model, self.buffer, self.record = ranker._model, ranker._buffer, ranker._record
        self.settings, self.intercept, self.average = settings, ranker._intercept, ranker.average
        self.operating_point, weight = ranker.operating_point, ranker.class_weight
        self.class_weight = dict(weight) if isinstance(weight, dict) else weight
        # What can be done at once: the address of the table, or 0. Not the calls themselves: who walks
        # through a model to tell its size would walk through Numba.
        self.learn = self.score = self.probabilities = 0
        if not ranker._sparse and kernels.one_row.COMPILED:
            self._prepare(ranker)

    def _prepare(self, ranker: "CBRanker") -> None:
        n_features, capacity = self.model.mu.size, self.buffer.rows.shape[1]
        self.shape, self.wide, numbers = (n_features,), (1, n_features), np.array(ranker._numbers())
        others = getattr(ranker, "_others", self.model)
        point, notes = _point_of(ranker), np.zeros(4 * numbers.size + 2)
        added = numbers, np.array(ranker._mix()), notes, _settings_of(ranker, self.settings), point
        learns = self.settings is not None and n_features <= _WIDEST and _learns_at_once(ranker)
        copies = kernels.row_table.copies(n_features, capacity) if learns else []
        self.arrays = [*self.buffer, *self.model, *self.record[:_NOTED], *others, *added, *copies]
        self.table = np.zeros(kernels.row_table.WORK, np.int64)
        if not self._note_addresses(0, self.arrays):
            return
        self.table[kernels.row_table.SIZES :] = (
            n_features,
            capacity,
            len(self.record.level),
            numbers.size,
            self.record.tested.size,
            self.record.origin.size > 0,
            copies[-1].size if learns else 0,
        )
        if learns:
            work = [kernels.row_table.workspace(n_features, capacity) for _ in numbers]
            self.arrays += [array for each in work for array in each]
            addresses = [_address(array) for each in work for array in each]
            self.table = np.append(self.table, addresses)
            self.row, self.learn = copies[-1][0, :n_features], _address(self.table)
        self.probabilities = _address(self.table)
        if not np.isnan(point).any():
            self.score = self.probabilities

    def _note_addresses(self, first: int, arrays: Sequence[NDArray[Any]]) -> bool:
        """Note where arrays are, from the first place on, unless one is not as kernels want it."""
        for place, array in enumerate(arrays, first):
            if not array.flags.carray or array.dtype != _TYPES[_KINDS[place]]:
                return False
            self.table[place] = _address(array)
        return True

    def with_record(self, held: record.Record) -> "Session | None":
        """Return the session of a ranker that has begun another block and is else the same."""
        twin, first = object.__new__(Session), kernels.row_table.RECORD
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name, None))
        twin.record, twin.table, twin.arrays = held, self.table.copy(), self.arrays.copy()
        for place, array in enumerate(held[:_NOTED], first):
            if array is not self.arrays[place] and not twin._note_addresses(place, [array]):
                return None
            twin.arrays[place] = array
        twin.table[kernels.row_table.ROOM] = held.tested.size
        for name in ("learn", "score", "probabilities"):
            setattr(twin, name, getattr(self, name) and _address(twin.table))
        return twin


def _renewed(ranker: "CBRanker") -> Session:
    """Return the session of a ranker as it is now, which becomes its own."""
    own, now = ranker._own, ranker._of_now()
    before, session, known = own.session, None, own.known
    if known is not None and not _is_as(known, now.__dict__):  # set otherwise, perhaps for a moment
        known = None
    if (
        before is not None
        and before.probabilities
        and before.settings is known
        and before.model is now._model
        and before.buffer is now._buffer
        and _serves(before, now.__dict__)
        and not hasattr(now, "_halving")
    ):
        session = before.with_record(now._record)
    own.session = session = session or Session(now, known)
    return session


def _is_as(known: "Settings", held: dict[str, Any]) -> bool:
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
        and session.intercept is held["_intercept"]
        and session.operating_point is held["operating_point"]
        and session.class_weight == held["class_weight"]
    )


def _point_of(ranker: "CBRanker") -> NDArray[np.float64]:
    """Return what the operating point goes by; NaN where that is a matter of rows so far."""
    balanced = ranker.operating_point == "balanced"
    if ranker._intercept is not None:
        return np.array([1.0, ranker._intercept, 0.0, 0.0, balanced])
    by_counts = ranker.class_weight == "balanced" and not balanced
    costs = np.full(2, np.nan)
    with contextlib.suppress(ValueError):  # weights of other classes: who needs them will say so
        costs = costs if by_counts else ranker._costs(ranker._buffer.seen)
    return np.array([0.0, 0.0, *costs, balanced])


def _settings_of(ranker: "CBRanker", settings: "Settings | None") -> NDArray[np.float64]:
    """Return what a row is learned by, in the order of ``kernels.one_row``."""
    numbers, own = ranker._numbers().tolist(), []
    if settings is None:
        return np.zeros(kernels.row_table.OWN + 2 * len(numbers))
    C, *others = settings.parameters
    choice = getattr(ranker, "_halving", None)
    for number in numbers:
        share = halving.forgotten(ranker, number)
        own += [C if choice is None else choice.C[number]]
        own += [kernels.forgetting.rows_between(share) if share else 0]
    return np.array([*others, *np.concatenate(settings.weights), *own], np.float64)


def _learns_at_once(ranker: "CBRanker") -> bool:
    """Say whether learners have full covariances, and go pair by pair."""
    return ranker._is_full() and not ranker._learns_in_blocks()


def _address(array: Any) -> int:
    return addressof(c_char.from_buffer(array)) if array.size else 0


def learn(ranker: "CBRanker", x: Any, y: Any) -> bool:
    """Let a ranker that has begun, and that no other thread learns into, learn a row.

    Parameters
    ----------
    ranker : CBRanker
        The ranker.
    x : object
        The row.
    y : object
        Its label.

    Returns
    -------
    bool
        Whether it has. If not, nothing has changed, and the row is to be checked.

    Examples
    --------
    >>> import numpy as np
    >>> from cbrank import CBRanker
    >>> ranker = CBRanker(C=1.0).partial_fit([[0.0], [1.0]], [0, 1])
    >>> ranker.learn_at_once(np.array([np.nan]), 1)
    False
    """
    own = ranker._own
    known, session = own.known, own.session
    if (
        known is None
        or type(x) is not _Array
        or ranker._intercept is not None
        or not _is_as(known, ranker.__dict__)
    ):
        return False
    if (
        session is None
        or session.settings is not known
        or session.record is not ranker._record
        or session.buffer is not ranker._buffer
        or session.model is not ranker._model
    ):
        session = _renewed(ranker)
    if not session.learn or x.shape != session.shape:
        return False
    if x.dtype is not _FLOAT and x.dtype.kind not in _NUMBERS:
        return False
    try:
        label = ranker._label_of[y]
    except (KeyError, TypeError):
        return False
    session.row[...] = x
    try:
        done = kernels.one_row.learn(session.learn, label, False)
        if done == _LAST:
            _learn_last(ranker, session.learn, label)
        return done != _REFUSED
    finally:
        own.turn += 1


def _learn_last(ranker: "CBRanker", address: int, label: int) -> None:
    """Learn the last row of a block, which is measured then."""
    calls: list[Any] = [(kernels.one_row.learn, address, label, True)]

    def go_on() -> None:
        if calls:
            uninterrupted([*calls, (calls.clear,)])
        if not record.rows_left(ranker._record):
            ranker._end_block()

    to_its_end(go_on, lambda: not calls)


def say(ranker: "CBRanker", what: str, X: Any, out: NDArray[np.float64]) -> bool:
    """Write what a ranker says of a table of one row.

    Parameters
    ----------
    ranker : CBRanker
        The ranker.
    what : str
        "score" or "probabilities".
    X : object
        The table.
    out : ndarray of shape (1,) or (1, 2)
        Where it is written.

    Returns
    -------
    bool
        Whether it was. If not, the row is to be checked.

    Examples
    --------
    >>> import numpy as np
    >>> from cbrank import CBRanker
    >>> ranker = CBRanker(C=1.0).partial_fit([[0.0], [1.0]], [0, 1])
    >>> ranker.say_at_once("score", np.array([[np.nan]]), np.empty(1))
    False
    """
    if type(X) is not _Array or X.ndim != 2 or X.shape[0] != 1:
        return False
    session, held = ranker._own.session, ranker.__dict__
    if "feature_names_in_" in held or "_model" not in held:
        return False
    if (
        session is None
        or session.record is not held["_record"]
        or session.buffer is not held["_buffer"]
        or session.model is not held["_model"]
        or not _serves(session, held)
    ):
        session = _renewed(ranker)
    address = getattr(session, what)
    if not address or X.shape != session.wide:
        return False
    if X.dtype != _FLOAT:
        if X.dtype.kind not in _NUMBERS:
            return False
        X = np.array(X, _FLOAT, order="C")
    elif not X.flags.carray:  # kernels are compiled for rows that can be written to
        X = X.copy()
    return bool(getattr(kernels.one_row, what)(address, X, out))
