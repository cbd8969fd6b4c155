"""What rankers whose weights have a Gaussian distribution can say beyond scores."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtr

from cbrank import kernels
from cbrank.estimator import check_is_fitted
from cbrank.learning import served
from cbrank.learning.blocks import DENSE_BLOCK, Encoded, read_only, scored
from cbrank.learning.state import State

Floats = NDArray[np.float64]

# Rows in which fewer than one of so many features is not zero, or so few rows, have their deviations one by
# one: a product with all of Sigma would take longer.
_FEW = 4
_LARGEST = 1e150  # numbers up to this have squares that can be summed


def leader(ranker: Any, name: str) -> tuple[Any, State]:
    """Return the model of the learner that weighs most, and the state."""
    ranker._fitted(name)
    method, state = ranker._now()
    return state.models[served.leader_of(method, state)], state


def covariance(ranker: Any) -> Floats:
    """Covariance of the weights, or their variances where it is diagonal."""
    model, state = leader(ranker, "covariance_")
    full = isinstance(model, kernels.confidence.FullModel)
    held = model.Sigma if full else model.variances
    if state.front is None:
        return held.copy()
    if state.selects:
        return state.front.of_columns(held, slice(None), 1.0)
    held = state.front.of_columns(held, slice(None))
    if not full:
        return held.copy()
    held = state.front.of_columns(held.T, slice(None))
    # Symmetric to the last bit: numbers next to the least of doubles depend on which factor comes first.
    lower: Floats = np.tril(held)
    return lower + np.tril(lower, -1).T


def decision_function(self: Any, X: Any, return_std: bool = False) -> Any:
    """Return the ranking score of each row, and how sure the ranker is of it.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        Rows.
    return_std : bool, default=False
        Whether to return the standard deviations too.

    Returns
    -------
    scores : ndarray of shape (n_samples,)
        The scores: the higher, the likelier positive.
    std : ndarray of shape (n_samples,)
        Standard deviations of the scores; only if `return_std`.

    Examples
    --------
    >>> from cbrank import CBRanker
    >>> ranker = CBRanker(C=0.5).partial_fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    >>> scores, std = ranker.decision_function([[1.0, 0.0], [0.0, 1.0]], return_std=True)
    >>> scores.round(2)
    array([ 0.17, -0.2 ])
    >>> std.round(2)  # only the first feature has been seen to matter
    array([0.89, 1.  ])
    """
    scores: Floats = np.empty(1)
    if not return_std and self.say_at_once("score", X, scores):
        return scores
    check_is_fitted(self)
    rows = self._check_rows(X, reset=False)
    method, state = self._now(rows.shape[0])
    scores = self._scores(rows, state, method) + self._intercept_now(method, state)
    if not return_std:
        return scores
    return scores, self._std(self._features(rows, state), state)


def get_support(self: Any, indices: bool = False) -> NDArray[Any]:
    """Return which features are selected: those whose weight is not zero.

    Parameters
    ----------
    indices : bool, default=False
        Whether to return their positions in the place of a mask.

    Returns
    -------
    ndarray of shape (n_features,) or (n_selected,)
        Of bool, or of int in ascending order, which takes no memory for the features that are not selected.

    Examples
    --------
    >>> from cbrank import CBRanker
    >>> X, y = [[1.0, 0.2, 0.0], [0.1, 0.0, 1.0]], [0, 1]
    >>> ranker = CBRanker(0.5, covariance="diagonal", max_features=2).fit(X, y)
    >>> ranker.get_support(), ranker.get_support(indices=True)
    (array([ True, False,  True]), array([0, 2]))
    """
    check_is_fitted(self)
    _, state = self._now()
    columns = np.arange(state.width)
    if state.selects:
        columns = state.front.columns
    support: NDArray[np.int64] = columns[self._served(columns).weights != 0.0]
    if indices:
        return support
    mask = np.zeros(self.n_features_in_, bool)
    mask[support] = True
    return mask


def preference_proba(self: Any, A: Any, B: Any) -> Floats:
    """Return the probability that row i of `A` should be ranked above row i of `B`.

    Parameters
    ----------
    A, B : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        Rows to compare.

    Returns
    -------
    ndarray of shape (n_samples,)
        Phi(w.z / sqrt(z' Sigma z)) with z = a - b and w = `coef_`; one half for equal rows.

    Examples
    --------
    >>> from cbrank import CBRanker
    >>> ranker = CBRanker(C=1.0).partial_fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    >>> ranker.preference_proba([[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]).round(2)
    array([0.66, 0.5 ])
    """
    check_is_fitted(self)
    method, state = self._now()
    A = self._features(self._check_rows(A, reset=False), state)
    B = self._features(self._check_rows(B, reset=False), state)
    if A.shape[0] != B.shape[0]:
        raise ValueError(f"A has {A.shape[0]} rows and B has {B.shape[0]}.")
    mixed = self._served_of(method, state)
    if isinstance(A, Encoded):
        pairs = zip(A.beside, B.beside, strict=True)
        z: Any = Encoded(_difference(A.X, B.X), tuple(_difference(*pair) for pair in pairs))
        ahead = scored(z, mixed)
    else:
        z = _difference(A, B)
        ahead = z @ mixed.weights
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ahead == 0.0, 0.5, ndtr(ahead / self._std(z, state)))


def _difference(A: Any, B: Any) -> Any:
    with np.errstate(over="ignore"):
        z = A - B
    if not np.isfinite(z.data if sp.issparse(z) else z).all():
        z = 0.5 * A - 0.5 * B  # which says the same
    return _within_bounds(z.tocsr() if sp.issparse(z) else np.asarray(z))[0]


def deviations(ranker: Any, X: Any, state: State) -> Floats:
    """Return sqrt(x' Sigma x) of each row of features, by the learner that weighs most.

    Beside the leaves of trees, those are of the learner that weighs most in each group, and independent.
    """
    method = ranker._method(state)
    if isinstance(X, Encoded):
        rows = X.X, *X.beside
        parts = zip(rows, served.leaders_of(method, state), strict=True)
        found = [share * _deviations_within(model, own) for own, (model, share) in parts]
        return np.sqrt(np.sum(np.square(found), axis=0))
    model = state.models[served.leader_of(method, state)]
    return _deviations_within(model, X if state.front is None else state.front.in_units(X))


def _deviations_within(model: Any, X: Any) -> Floats:
    X, unit = _within_bounds(X)
    with np.errstate(over="ignore"):
        return _deviations(model, X) * unit


def _deviations(model: Any, X: Any) -> Floats:
    if not isinstance(model, kernels.confidence.FullModel):
        squares = (X.multiply(X) if sp.issparse(X) else X * X) @ model.variances
    elif sp.issparse(X):
        squares = np.zeros(X.shape[0])
        block = max(1, DENSE_BLOCK // X.shape[1])
        for begin in range(0, X.shape[0], block):
            rows = X[begin : begin + block]
            squares[begin : begin + block] = rows.multiply(rows @ model.Sigma).sum(axis=1)
    elif len(X) > _FEW and _FEW * np.count_nonzero(X) > X.size:
        squares = (X * (X @ model.Sigma)).sum(axis=1)
    else:
        std = np.empty(len(X))
        kernels.deviations.deviations(read_only(X), read_only(model.Sigma), std)
        return std
    return np.sqrt(np.maximum(np.asarray(squares).ravel(), 0.0))


def _within_bounds(X: Any) -> tuple[Any, Floats]:
    """Return rows whose squares do not overflow, and what each was divided by for that."""
    values = X.data if sp.issparse(X) else X
    if not values.size or max(values.max(), -values.min()) < _LARGEST:
        return X, np.ones(1)
    largest = abs(X).max(axis=1)
    largest = largest.toarray().ravel() if sp.issparse(X) else largest
    unit = np.maximum(largest / _LARGEST, 1.0)
    rows = X.multiply(1.0 / unit[:, None]).tocsr() if sp.issparse(X) else X / unit[:, None]
    return rows, unit


# Facts of the learner that weighs most --------------------------------------------------------------


def C(ranker: Any) -> float:
    """Return the C that the ranker learns with."""
    ranker._fitted("C_")
    method, state = ranker._now()
    return method.learners[served.leader_of(method, state)].C


def forgetting(ranker: Any) -> float:
    """Share of the evidence that the learner which weighs most forgets per row."""
    ranker._fitted("forgetting_")
    method, state = ranker._now()
    return method.learners[served.leader_of(method, state)].forgetting


def n_pairs(ranker: Any) -> int:
    """Pairs met."""
    return _tally(ranker, "n_pairs_", kernels.confidence.PAIRS)


def n_updates(ranker: Any) -> int:
    """Pairs that moved the model."""
    return _tally(ranker, "n_updates_", kernels.confidence.UPDATES)


def _tally(ranker: Any, name: str, what: int) -> int:
    """Return a count of the stream, whatever scores are for."""
    ranker._fitted(name)
    method, state = ranker._near()
    return int(state.models[served.leader_of(method, state)].tally[what])


# For merging ----------------------------------------------------------------------------------------


def together(
    _: Any, rankers: Sequence[Any], prior: Any
) -> tuple[list[Any], Any, Callable[[Any], Any]]:
    """Return rankers as they can be merged, feature by feature, and what is left to be done then."""
    from cbrank.rankers.together import together as brought  # noqa: PLC0415 (only merging needs it)

    return brought(rankers, prior)
