"""Tables as they come: what an encoder decides from the first rows, and at the end of blocks.

Any split of a stream into chunks gives the same features: the rows of a block are kept until its end. Then the
encoder learns from them, pairs of columns are chosen to be crossed by what they say, and every learner
gets room for the new features.
"""

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from cbrank import kernels
from cbrank.features.containers import dictionaries_of
from cbrank.features.crosses import (
    MOST_COLUMNS,
    Evidence,
    Products,
    gathered,
    no_evidence,
    ranked_pairs,
    with_columns,
)
from cbrank.features.encoder import TableEncoder
from cbrank.features.table import Table
from cbrank.learning import record, served
from cbrank.learning.front import Waiting, none_waiting, waiting_from
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
_MOST_PAIRS = 4096  # of columns to be crossed: they are in the header of a model file
FIRST = 256  # rows of a stream that decide what columns are
# Of a fit: with 512, curves of rows sorted by a column end elsewhere with every seed, and rank later rows worse
# (docs/keeping.md). Of wide tables, rows of so many cells.
_FIRST_OF_FIT, _FEWEST_OF_FIT, _CELLS_OF_FIT = 2**14, 512, 2**22
MOST_ASKED = 2**20  # features of crosses that were asked for
CHOICES = 512, 2048, 8192, 32768  # rows after which crosses are chosen
# Features of crosses after each choice if `crosses` is "auto": many rows can teach more of them.
_ROOMS = 512, 512, 512, 1024
# Variance of their weights after the last choice: a learner that is sure of all others would lean on what is
# new, and rank worse for a while (docs/_rows_table.md).
_LATE = 0.1

# Bytes of a feature for each row of a class that is kept, and for the rows of a block: 12 where it is not
# zero, as in about half of the rows; buffers exist twice while they grow. By tests/tools/wide_tables.py.
_NUMBERS_HELD, _NUMBERS_MORE = 24.0, 1700.0


class Tables(NamedTuple):
    """The columns of a table, and what is kept of the rows of the block."""

    encoder: TableEncoder
    crosses: Any  # as the ranker's parameter
    waiting: Waiting | None
    encoded: tuple[Any, ...] = ()  # rows of the block as features, unless they come from a file
    evidence: Evidence | None = None  # for crosses, as long as some may be chosen
    stages: int = 0  # how many times crosses have been chosen

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
        if isinstance(self.crosses, list):
            encoder.cross(asked_pairs(self.crosses, encoder.names()), None, MOST_ASKED)
        wide = encoder.is_wide_ or encoder.width_ > _WIDEST_FULL
        if method.of_matrix is not None:
            method = method.of_matrix(not wide)
        front = Tables(encoder, self.crosses, None)
        seed, shuffled = int(state.buffer.random[0]), record.shuffled(state.record)
        width = max(1, encoder.width_)
        state = begin(method, width, seed, front, sparse=wide, shuffled=shuffled)
        keep_lines(method, state)
        return method, state

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
        return Tables(fresh, self.crosses, none_waiting(rows.take(slice(0, 0))))

    def for_good(self) -> "Tables":
        """Return the front of a stream of rows that have been seen, for which all is decided."""
        return Tables(self.encoder, self.crosses, None, stages=len(CHOICES))

    def keeping(self, X: Any) -> "Tables":
        """Return the front that keeps some more rows of features of the block."""
        return self._replace(encoded=(*self.encoded, X))

    def end_block(self, method: Method, state: State, rows: Table) -> State:
        """Return a state that has the features which the rows of its block, which is full, give."""
        encoder = deepcopy(self.encoder)
        before = int(state.record.position[record.ROWS])
        ahead = min(max(encoder.n_settled_ - before, 0), len(rows))
        if ahead < len(rows):
            encoder.settle(rows.take(slice(ahead, None)))
        if isinstance(
            self.crosses, list
        ):  # a column that was constant can be crossed once it moves
            encoder.cross(asked_pairs(self.crosses, encoder.names()), None, MOST_ASKED)
        front = self._replace(encoder=encoder, encoded=())
        if self._may_cross(state):
            evidence, stages = self._gathered(method, state, rows), self.stages
            if before + len(rows) >= CHOICES[stages]:
                stages += 1
                free = room(self.crosses, stages) - int((encoder.partners_ >= 0).sum())
                encoder.cross(ranked_pairs(evidence), evidence, free)
            front = front._replace(evidence=evidence, stages=stages)
        return widened(method, state._replace(front=front))

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
        if self.evidence is not None:
            arrays |= {f"evidence.{name}": array for name, array in self.evidence._asdict().items()}
        return arrays, {"encoder": facts, "stages": self.stages, "waits": waiting is not None}

    def _may_cross(self, state: State) -> bool:
        """Say whether pairs of columns may still be chosen."""
        wanted = self.crosses == "auto" or (isinstance(self.crosses, int) and self.crosses > 0)
        return wanted and not state.sparse and self.stages < len(CHOICES)

    def _gathered(self, method: Method, state: State, rows: Table) -> Evidence:
        """Return the evidence for crosses with that of the rows of the block."""
        held = state.record
        p = expit(kernels.calibration.log_odds(held.served, held.shape, held.curve))
        whole = sum(part.shape[0] for part in self.encoded) == len(rows)
        X = np.concatenate(self.encoded) if whole else self.encode(rows, state)
        coarse, evidence = self.encoder.coarse(), self.evidence
        if evidence is None:
            weights = served.mixture_of(method, state).weights
            evidence = no_evidence(_most_moving(self.encoder, weights, coarse, X))
        else:
            evidence = with_columns(evidence, coarse)
        return gathered(evidence, coarse, X, held.labels - p, p * (1.0 - p))


def asked_pairs(crosses: list[Any], names: list[str]) -> list[tuple[int, int]]:
    """Return the pairs of columns that are to be crossed, by position; refuse what is none."""
    if len(crosses) > _MOST_PAIRS:
        raise ValueError(f"`crosses` has {len(crosses):,} pairs, of at most {_MOST_PAIRS:,}.")
    pairs = list[tuple[int, int]]()
    for pair in crosses:
        try:
            one, other = (at if at in range(len(names)) else names.index(at) for at in pair)
            if one == other:
                raise ValueError
        except (TypeError, ValueError):
            raise ValueError(f"`crosses` has {pair!r}, which is no pair of columns of X.") from None
        pairs.append((min(one, other), max(one, other)))
    return [*dict.fromkeys(pairs)]


def room(crosses: Any, choices: int) -> int:
    """Return how many features of crosses there may be after so many choices."""
    if isinstance(crosses, list):
        return MOST_ASKED
    return int(crosses) if crosses != "auto" else _ROOMS[max(choices, 1) - 1]


def by_column(encoder: TableEncoder, weights: Floats, X: Any) -> Floats:
    """Return what each column adds to the scores of rows of features, a cross half to each."""
    width = weights.size
    if not encoder.width_:  # no column moves
        return np.zeros((X.shape[0], encoder.n_features_in_))
    owners, partners = encoder.owners_[:width], encoder.partners_[:width]
    crossed = partners >= 0
    share = sp.csr_array(
        (
            np.concatenate([np.where(crossed, 0.5, 1.0), np.full(crossed.sum(), 0.5)]),
            (
                np.concatenate([np.arange(width), np.flatnonzero(crossed)]),
                np.concatenate([owners, partners[crossed]]),
            ),
        ),
        shape=(width, encoder.n_features_in_),
    )
    weighed = X.multiply(weights).tocsr() if sp.issparse(X) else X * weights
    found = weighed @ share
    return np.asarray(found.todense() if sp.issparse(found) else found)


def _most_moving(encoder: TableEncoder, weights: Floats, coarse: list[Any], X: Floats) -> list[Any]:
    """Return the columns that move scores most, if there are too many to look at all."""
    if len(coarse) <= MOST_COLUMNS:
        return coarse
    moved = by_column(encoder, weights, X).std(axis=0)
    order = np.argsort(-moved[[each.column for each in coarse]], kind="stable")
    return [coarse[at] for at in sorted(order[:MOST_COLUMNS].tolist())]


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


def tables_from(parts: dict[str, Arrays], facts: Any, n_features: int, crosses: Any) -> Tables:
    """Return a saved front; refuse what is not sound."""
    match facts:
        case {"encoder": dict(encoder), "stages": int(stages), "waits": bool(waits)} if type(
            stages
        ) is int and 0 <= stages <= len(CHOICES):
            pass
        case _:
            raise ValueError("it has no sound encoder")
    if parts["front"] or parts["evidence" if waits else "waiting"] or (parts["rows"] and not waits):
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
    evidence = _evidence_from(parts["evidence"], len(names))
    return Tables(own, crosses, held, (), evidence, stages)


def _evidence_from(arrays: Arrays, columns: int) -> Evidence | None:
    """Return saved evidence; refuse what is not sound."""
    if not arrays:
        return None
    if arrays.keys() != {*Evidence._fields}:
        raise ValueError("its evidence for crosses is not whole")
    evidence = Evidence(**arrays)
    cells = evidence.owners.size
    sound = (
        evidence.columns.dtype == evidence.owners.dtype == np.int64
        and evidence.columns.ndim == evidence.owners.ndim == 1
        and np.isin(evidence.columns, np.arange(columns)).all()
        and (np.diff(evidence.columns) > 0).all()
        and np.isin(evidence.owners, evidence.columns).all()
        and (np.diff(evidence.owners) >= 0).all()
        and all(
            array.shape == (cells, cells) and array.dtype == np.float64 and np.isfinite(array).all()
            for array in evidence[2:]
        )
        and (evidence.variances >= 0.0).all()
    )
    if not sound:
        raise ValueError("its evidence for crosses makes no sense")
    return evidence


# Room for features --------------------------------------------------------------------------------


def widened(method: Method, state: State) -> State:
    """Return a state with room for the features that its encoder has got since, as at the beginning."""
    before, encoder = state.width, state.front.encoder
    if encoder.width_ <= before:
        return state
    state = resized(method, state, encoder.width_)
    if not state.sparse:
        fill_crosses(state.buffer, [each for each in encoder.crosses() if each.first >= before])
    crossed = np.flatnonzero((np.arange(state.width) >= before) & (encoder.partners_ >= 0))
    if crossed.size and state.front.stages == len(CHOICES):
        for model in state.models:
            _set_prior(model, crossed, _LATE)
    keep_lines(method, state, slice(before, None))
    return state


def keep_lines(method: Method, state: State, new: Any = slice(None)) -> None:
    """Let learners that know straight lines only make no use of others among some new features."""
    pairs = zip(method.learners, state.models, strict=False)
    for model in [model for learner, model in pairs if learner.line]:
        narrow(state.front.encoder, model, np.arange(state.width)[new])


def narrow(encoder: TableEncoder, model: Any, among: Places) -> None:
    """Give pieces of curves and crosses, which have taught a model nothing so far, a prior that keeps them at 0."""
    bent = encoder.bends_ | (encoder.partners_ >= 0)
    among = among[among < bent.size]
    _set_prior(model, among[bent[among]], ASLEEP)


def fill_crosses(buffer: Any, crosses: list[Any]) -> None:
    """Write some crosses of buffered rows, of which all other features are known."""
    products = Products(crosses)
    if not products.features.size:
        return
    for label, held in enumerate(kernels.buffers.filled(buffer)):
        if held.any():
            slots = np.flatnonzero(held)
            found = products.of(buffer.rows[label, slots])
            buffer.rows[label, slots[:, None], products.features] = found
            if buffer.means.size:  # a diagonal covariance needs none
                buffer.means[label, products.features] = found.mean(axis=0)


def _set_prior(model: Any, features: Places, variance: float) -> None:
    if "Sigma" in model._fields:
        model.Sigma[features, features] = variance
    elif "features" in model._fields:
        model.features[features, kernels.sparse_diagonal.VARIANCE] = variance
    else:
        model.G[features] = 1.0 / variance
