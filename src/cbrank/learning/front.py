"""Rows before they are features: those of a stream wait until there are enough to decide about columns.

A *front* decides about columns from the first rows and turns rows into features. Until then rows wait, and
a ranker serves what they would make (`provisional`). `Scales` is the front of `CBRanker`, ``tables`` has that
of `AdditiveRanker`; without a front, columns are learned as they come.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.features.table import Table
from cbrank.learning import record
from cbrank.learning.method import Method
from cbrank.learning.state import State, begin

Floats = NDArray[np.float64]

_LARGEST = float(np.finfo(np.float64).max)
_FIRST, _FIRST_OF_FIT = 64, 1024  # rows that decide the scales of columns
_FARTHEST = 200  # binary orders of magnitude that a scale may be from 1
_SHARE = 0.25  # of the range of a column, which its scale is at least
_OF_CONSTANT = 0.125  # of the value of a constant column


class Waiting(NamedTuple):
    """Rows that have come and not been learned from."""

    rows: Any  # an array or a Table
    labels: NDArray[np.int64]
    weights: Floats

    @property
    def batch(self) -> tuple[Any, ...]:
        """Rows, labels, weights and the order of all."""
        return *self, np.arange(self.labels.size)

    def with_rows(self, rows: Any, labels: Any, weights: Any) -> "Waiting":
        """Return these rows and some more."""
        if isinstance(rows, Table):
            both: Any = Table.concatenated([self.rows, rows])
        else:
            rows = rows.toarray() if sp.issparse(rows) else rows
            both = np.concatenate([self.rows, rows]) if len(self.rows) else rows.copy()
        return Waiting(both, np.append(self.labels, labels), np.append(self.weights, weights))


def none_waiting(rows: Any) -> Waiting:
    """Return no rows, of the kind of these."""
    return Waiting(rows, np.zeros(0, np.int64), np.zeros(0))


def waits(state: State) -> bool:
    """Say whether rows wait until it is decided what columns are."""
    return state.front is not None and state.front.waiting is not None


def milestone(rows: int) -> int:
    """Return the greatest of 1, 2, ..., 8, 9, 10, ... by steps of an eighth that is not above."""
    at = 0
    while (later := at + max(1, at // 8)) <= rows:
        at = later
    return at


# The scales of columns of numbers -----------------------------------------------------------------


class Scales(NamedTuple):
    """Columns of numbers in units of their spread, a power of 2, so that the prior is the same for each.

    Metres and kilometres then rank alike on few rows. A power of 2 costs no rounding.
    """

    inverse: Floats  # (d,) what columns are multiplied by
    waiting: Waiting | None
    prior: Floats | None = (
        None  # deviations before the first row where units were changed for merging
    )

    @property
    def first(self) -> int:
        """How many rows of a stream wait."""
        return _FIRST

    @property
    def first_of_fit(self) -> int:
        """How many rows `fit` looks at."""
        return _FIRST_OF_FIT

    def settle(self, method: Method, state: State, rows: Any) -> tuple[Method, State]:
        """Return the state before its first row, with the scales of some rows."""
        rows = rows.toarray() if sp.issparse(rows) else rows
        width = rows.shape[1]
        front = Scales(1.0 / scales_of(rows) if len(rows) else np.ones(width), None)
        seed, shuffled = int(state.buffer.random[0]), record.shuffled(state.record)
        return method, begin(method, width, seed, front, sparse=False, shuffled=shuffled)

    def encode(self, rows: Any, _: State) -> Floats:
        """Return rows as they are learned."""
        found: Floats = self.in_units(rows.toarray() if sp.issparse(rows) else rows)
        return found

    def decided_by(self) -> Any:
        """Return what of the columns was known before rows came."""
        return None

    def in_units(self, rows: Any) -> Any:
        """Return rows in these units."""
        if sp.issparse(rows):
            return rows.multiply(self.inverse).tocsr()
        with np.errstate(over="ignore"):
            scaled: Floats = rows * self.inverse
        np.clip(scaled, -_LARGEST, _LARGEST, out=scaled)
        return scaled

    def decode(self, rows: Floats) -> Floats:
        """Return rows in these units as they came."""
        found: Floats = rows / self.inverse
        return found

    def first_width(self, columns: int) -> int:
        """Return how many features a state has before it is decided what columns are."""
        return columns

    def anew(self, rows: Any) -> "Scales":
        """Return the front of a stream of such rows before it is decided what columns are."""
        return unscaled(rows.shape[1])

    def end_block(self, _: Method, state: State, rows: Any) -> State:  # noqa: ARG002
        """Return the state: scales are for good."""
        return state

    def of_columns(self, weights: Floats, columns: Any) -> Floats:
        """Return the weights of columns as they come, given those of columns in these units."""
        found: Floats = weights * self.inverse[columns]
        return found

    def resized(self, n_features: int) -> "Scales":
        """Return these scales with room for so many columns, new ones in units of 1."""
        inverse, held = np.ones(n_features), self.waiting
        both = min(n_features, self.inverse.size)
        inverse[:both] = self.inverse[:both]
        if held is not None:
            rows = np.zeros((len(held.rows), n_features))
            rows[:, :both] = held.rows[:, :both]
            held = held._replace(rows=rows)
        return Scales(inverse, held)

    def begun(self, _: Method, fresh: Any, place: int) -> Any:  # noqa: ARG002
        """Return the model of a learner before its first row, given a standard Gaussian."""
        return fresh if self.prior is None else rescaled(fresh, self.prior)

    def taken_out(self, _: State) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and facts for files."""
        arrays: dict[str, NDArray[Any]] = {"front.inverse": self.inverse}
        held = self.waiting
        if held is not None:
            arrays |= {"front.rows": held.rows, "front.labels": held.labels}
            arrays |= {"front.weights": held.weights}
        return arrays, {"waits": held is not None}


def scales_from(arrays: dict[str, NDArray[Any]], facts: Any, n_features: int) -> Scales:
    """Return saved scales; refuse what is not sound."""
    match facts:
        case {"waits": bool(waits_)}:
            names = {"inverse", "rows", "labels", "weights"} if waits_ else {"inverse"}
        case _:
            raise ValueError("it does not say whether rows wait")
    inverse = arrays.get("inverse", np.zeros(0))
    if arrays.keys() != names or inverse.shape != (n_features,) or inverse.dtype != np.float64:
        raise ValueError("it has not the scales of its columns")
    mantissa, exponent = np.frexp(inverse)
    if not ((mantissa == 0.5) & (np.abs(exponent - 1) <= _FARTHEST)).all():
        raise ValueError("the scales of its columns are not powers of 2")
    if not waits_:
        return Scales(inverse, None)
    rows = arrays["rows"]
    if rows.shape[1:] != (n_features,) or rows.dtype != np.float64 or not np.isfinite(rows).all():
        raise ValueError("the rows that wait are not rows of its columns")
    return Scales(inverse, waiting_from(rows, arrays, _FIRST))


def waiting_from(rows: Any, arrays: dict[str, NDArray[Any]], first: int) -> Waiting:
    """Return saved rows that wait, with their labels; refuse what is not sound."""
    labels, weights = (arrays.get(name, np.zeros(0)) for name in ("labels", "weights"))
    if not (
        labels.shape == weights.shape == (len(rows),)
        and labels.dtype == np.int64
        and weights.dtype == np.float64
        and len(rows) < first
        and np.isin(labels, [0, 1]).all()
        and np.isfinite(weights).all()
        and (weights > 0.0).all()
    ):
        raise ValueError("the rows that wait have no sound labels")
    return Waiting(rows, labels, weights)


def unscaled(n_features: int) -> Scales:
    """Return the front of columns of which nothing is known."""
    return Scales(np.ones(n_features), none_waiting(np.zeros((0, n_features))))


def in_scales(state: State, inverse: Floats) -> State:
    """Return a state with columns in other units, which says the same."""
    factor = state.front.inverse / inverse
    if (factor == 1.0).all():
        return state
    models, buffer, held = tuple(rescaled(model, factor) for model in state.models), *state[1:3]
    with np.errstate(over="ignore"):
        rows = np.clip(buffer.rows / factor, -_LARGEST, _LARGEST)
        means = np.clip(buffer.means / factor, -_LARGEST, _LARGEST)
    buffer = buffer._replace(rows=rows, means=means)
    held = held._replace(held=held.held * factor, origin=held.origin / factor)
    before = 1.0 if state.front.prior is None else state.front.prior
    front = state.front._replace(inverse=inverse, prior=before * factor)
    return state._replace(models=models, buffer=buffer, record=held, front=front)


def rescaled(model: Any, factor: Floats) -> Any:
    """Return a model of a full covariance whose weights are multiplied by factors."""
    return model._replace(
        mu=model.mu * factor,
        Sigma=model.Sigma * factor * factor[:, None],
        lag=model.lag * factor,
    )


def scales_of(rows: Floats) -> Floats:
    """Return the spread of each column as a power of 2: its standard deviation, or a fourth of its range.

    The range decides where one value is most of a column: by its deviation alone, a value that few rows have
    would be taken for a very large one. Values far beyond all others, which may stand for missing ones, do
    not count (see ``kernels.buffers``). A constant is taken for a column that varies by an eighth of it, and 0 for
    one that varies by 1.
    """
    if not len(rows):
        return np.ones(rows.shape[1])
    _, largest = np.frexp(np.abs(rows).max(axis=0))
    parts = np.ldexp(rows, -largest)  # within 1, so that nothing overflows
    middle = np.median(parts, axis=0)
    usual = kernels.buffers.FOREIGN * kernels.buffers.usual_distance(parts, middle)
    parts = np.where(np.abs(parts - middle) <= usual, parts, middle)
    width = np.ptp(parts, axis=0)
    spread = np.maximum(parts.std(axis=0), _SHARE * width)
    spread = np.where(width > 0.0, spread, _OF_CONSTANT * np.abs(middle))
    _, exponent = np.frexp(np.sqrt(2.0) * spread)
    exponent = np.clip(exponent - 1 + largest, -_FARTHEST, _FARTHEST)
    return np.ldexp(1.0, np.where(spread > 0.0, exponent, 0))
