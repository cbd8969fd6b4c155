"""Tables as they come: what an encoder decides from the first rows, and at the end of blocks.

Any split of a stream into chunks gives the same features: the rows of a block are kept until its end. Then the
encoder learns from them, and every learner gets room for the new features.
"""

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.features import ids
from cbrank.features.containers import dictionaries_of
from cbrank.features.encoder import TableEncoder
from cbrank.features.table import Table
from cbrank.learning import record
from cbrank.learning.front import Waiting, none_waiting, waiting_from
from cbrank.learning.leaves import with_ids
from cbrank.learning.method import Method
from cbrank.learning.room import refuse_beyond
from cbrank.learning.state import State, begin, resized
from cbrank.parameters import ASLEEP

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

# Features of a full covariance that nobody asked for by name: 32 MiB for each learner, all of it read
# for each pair. A table of 1,000 columns of numbers has 8,000, and took a second for each row.
_WIDEST_FULL = 2048
# Beside the leaves of trees, curves of so many features rank as well with one variance each, in half of the time.
_WIDEST_BESIDE_TREES = 128
FIRST = 256  # rows of a stream that decide what columns are
# Of a fit: with 512, curves of rows sorted by a column end elsewhere with every seed, and rank later rows worse
# (docs/keeping.md). Of wide tables, rows of so many cells.
_FIRST_OF_FIT, _FEWEST_OF_FIT, _CELLS_OF_FIT = 2**14, 512, 2**22

# Bytes of a feature for each row of a class that is kept, and for the rows of a block: 12 where it is not
# zero, as in about half of the rows; buffers exist twice while they grow. By tests/tools/wide_tables.py.
_NUMBERS_HELD, _NUMBERS_MORE = 24.0, 1700.0


class Tables(NamedTuple):
    """The columns of a table, and the rows of a stream that wait until it is decided what these are."""

    encoder: TableEncoder
    waiting: Waiting | None

    @property
    def first(self) -> int:
        """How many rows of a stream wait."""
        return FIRST

    @property
    def first_of_fit(self) -> int:
        """How many rows `fit` looks at."""
        cells = _CELLS_OF_FIT // max(self.encoder.n_features_in_, 1)
        return max(_FEWEST_OF_FIT, min(_FIRST_OF_FIT, cells))

    def settle(self, method: Method, state: State, rows: Table) -> tuple[Method, State]:
        """Return the state before its first row, with what some rows say of columns."""
        encoder = deepcopy(self.encoder)
        encoder.settle(rows)
        widest = _WIDEST_FULL if method.leaves is None else _WIDEST_BESIDE_TREES
        many = None if method.ids is None else ids.found(encoder, rows)
        wide = encoder.is_wide_ or many is not None or encoder.width_ > widest
        if method.of_matrix is not None:
            method = method.of_matrix[not wide]
        front = Tables(encoder, None)
        seed, shuffled = int(state.buffer.random[0]), record.shuffled(state.record)
        width = max(1, encoder.width_)
        state = begin(method, width, seed, front, sparse=wide, shuffled=shuffled)
        keep_lines(method, state)
        return method, with_ids(method, state, many)

    def encode(self, rows: Table, state: State) -> Any:
        """Return rows as features."""
        width = state.width
        if state.sparse:
            return self.encoder.encode(rows)[:, :width]
        features = self.encoder.encode_dense(rows)
        if not features.shape[1]:  # no column moves
            return np.zeros((len(rows), width))
        return np.ascontiguousarray(features[:, :width])

    def anew(self, rows: Table) -> "Tables":
        """Return the front of a stream of such rows before it is decided what columns are."""
        known = self.encoder
        fresh = known.of_columns(rows, known.pieces, known.kinds, known.max_categories)
        return Tables(fresh, none_waiting(rows.take(slice(0, 0))))

    def end_block(self, method: Method, state: State, rows: Table) -> State:
        """Return a state that has the features which the rows of its block, which is full, give."""
        encoder = deepcopy(self.encoder)
        before = int(state.record.position[record.ROWS])
        ahead = min(max(encoder.n_settled_ - before, 0), len(rows))
        if ahead < len(rows):
            encoder.settle(rows.take(slice(ahead, None)))
        return widened(method, state._replace(front=self._replace(encoder=encoder)))

    def of_columns(self, weights: Floats, _: Any) -> Floats:
        """Return weights of features, which are the encoder's."""
        return weights

    def decided_by(self) -> Any:
        """Return what of the columns was known before rows came."""
        return id(self.encoder)

    def in_units(self, X: Any) -> Any:
        """Return rows of features, which have no other units."""
        return X

    def decode(self, X: Any) -> Any:
        """Return rows of features."""
        return X

    def first_width(self, _: int) -> int:
        """Return how many features a state has before it is decided what columns are."""
        return 1

    def resized(self, _: int) -> "Tables":
        """Return the front: its features are the encoder's."""
        return self

    def begun(self, method: Method, fresh: Any, place: int) -> Any:
        """Return the model of a learner before its first row, given a standard Gaussian."""
        if method.learners[place].line:
            narrow(self.encoder, fresh, np.arange(fresh.mu.size))
        return fresh

    def taken_out(self, _: State) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and facts for files."""
        encoder, facts = self.encoder.get_state()
        arrays = {f"encoder.{name}": array for name, array in encoder.items()}
        waiting = self.waiting
        if waiting is not None:
            arrays |= {"waiting.labels": waiting.labels, "waiting.weights": waiting.weights}
            rows = waiting.rows.state() if len(waiting.rows) else {}
            arrays |= {f"rows.{name}": array for name, array in rows.items()}
        return arrays, {"encoder": facts, "waits": waiting is not None}


# Columns ------------------------------------------------------------------------------------------


def refuse_too_wide(columns: int, method: Method, covariance: str, pieces: int) -> None:
    """Refuse a table that memory will not hold before a row waits, as if all were numbers."""
    if covariance == "full":
        cure = 'leave columns out, or use `covariance="diagonal"`'
        refuse_beyond(8.0 * columns**2, f"{columns:,} columns squared take", cure)
    features = columns * (pieces + 1)
    kept = method.rows_kept(features)[0]
    refuse_beyond(
        features * (_NUMBERS_HELD * kept + _NUMBERS_MORE + 64.0 * len(method.learners)),
        f"{columns:,} columns, of which {kept} rows of each class are kept, take",
        "leave columns out, or have fewer `pieces` or a smaller `buffer_size`",
    )


def with_new_columns(state: State, X: Any) -> State:
    """Return a state whose rows wait with the columns that some dictionaries name for the first time."""
    encoder, waiting = state.front.encoder, state.front.waiting
    known = dict.fromkeys(encoder.feature_names_in_.tolist())
    new = dict.fromkeys(str(name) for row in dictionaries_of(X) for name in row)
    missing = [np.full(len(waiting.rows), np.nan) for name in new if name not in known]
    if not missing:
        return state
    names = dict.fromkeys([*known, *new])
    rows = Table(names, [*waiting.rows.columns, *missing])
    wider = encoder.of_columns(rows, encoder.pieces, encoder.kinds, encoder.max_categories)
    front = state.front._replace(encoder=wider, waiting=waiting._replace(rows=rows))
    return state._replace(front=front)


# In files -----------------------------------------------------------------------------------------


def tables_from(parts: dict[str, Arrays], facts: Any, n_features: int) -> Tables:
    """Return a saved front; refuse what is not sound."""
    match facts:
        case {"encoder": dict(encoder), "waits": bool(waits)}:
            pass
        case _:
            raise ValueError("it has no sound encoder")
    if parts["front"] or (not waits and (parts["waiting"] or parts["rows"])):
        raise ValueError("it has arrays that no such front has")
    own = TableEncoder.from_state(parts["encoder"], encoder)
    names = own.names()
    held = None
    if waits:
        none = Table(names, [np.zeros(0)] * len(names))
        rows = Table.from_state(parts["rows"], names) if parts["rows"] else none
        held = waiting_from(rows, parts["waiting"], FIRST)
    if not waits and max(1, own.width_) != n_features:
        raise ValueError("its encoder has not the features of its ranker")
    return Tables(own, held)


# Room for features --------------------------------------------------------------------------------


def widened(method: Method, state: State) -> State:
    """Return a state with room for the features that its encoder has got since, as at the beginning."""
    before, encoder = state.width, state.front.encoder
    if encoder.width_ <= before:
        return state
    state = resized(method, state, encoder.width_)
    keep_lines(method, state, slice(before, None))
    return state


def keep_lines(method: Method, state: State, new: Any = slice(None)) -> None:
    """Let learners that know straight lines only make no use of others among some new features."""
    pairs = zip(method.learners, state.models, strict=False)
    for model in [model for learner, model in pairs if learner.line]:
        narrow(state.front.encoder, model, np.arange(state.width)[new])


def narrow(encoder: TableEncoder, model: Any, among: Places) -> None:
    """Give pieces of curves, which have taught a model nothing so far, a prior that keeps them at 0."""
    bent = encoder.bends_
    among = among[among < bent.size]
    asleep = among[bent[among]]
    if "Sigma" in model._fields:
        model.Sigma[asleep, asleep] = ASLEEP
    elif "features" in model._fields:
        model.features[asleep, kernels.sparse_diagonal.VARIANCE] = ASLEEP
    else:
        model.G[asleep] = 1.0 / ASLEEP
