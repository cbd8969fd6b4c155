"""Confidence-weighted bipartite ranking."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from copy import copy, deepcopy
from operator import itemgetter
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from cbrank import kernels
from cbrank.arrays import read_only
from cbrank.estimator import check_is_fitted
from cbrank.parameters import BUFFER_SIZES, CBR, Table, room_for
from cbrank.rankers import halving, record, single
from cbrank.rankers.base import DENSE_BLOCK, Batch, Ranker
from cbrank.rankers.halving import Halving
from cbrank.rankers.memory import refuse_if_too_large
from cbrank.rankers.scorer import Anchor
from cbrank.rankers.state import refilled

Scores = NDArray[np.float64]
Floats = NDArray[np.float64]
Learners = list[tuple[int, Any]]

_MEAN_ONLY, _AVERAGE_ONLY = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
_NO_COLUMNS = np.zeros(0, np.int64)
# Rows in which fewer than one of so many features is not zero, or so few rows, have their deviations one by
# one: a product with all of Sigma would take longer.
_FEW = 4
_LARGEST = 1e150  # numbers up to this have squares that can be summed


class Learned(NamedTuple):
    """What a `CBRanker` has learned."""

    models: dict[int, Any]  # of the kernels, by the number of the learner, the leader's first
    buffer: Any
    record: record.Record
    halving: Halving | None  # where the choice of C stands, if C is "auto"


class Mixture(NamedTuple):
    """What a ranker serves: weights, and how their scores are anchored."""

    weights: Floats
    anchor: Anchor


class CBRanker(Ranker):
    """Confidence-weighted bipartite ranking (CBR, CBR-diag).

    The ranker is a Gaussian over weight vectors. Every new row meets the buffered rows of the
    opposite class, and each pair that is not ranked right with confidence `eta` moves the mean
    and shrinks the covariance by the soft confidence-weighted closed form [1]_.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Mean of the weights, averaged over the stream if `average`. If `C` is "auto", the mixture of
        those of all learners left, in the unit of the one that weighs most.
    covariance_ : ndarray of shape (n_features, n_features) or (n_features,)
        Covariance of the weights, or their variances where it is diagonal; of the learner that leads.
    C_ : float
        The C that the ranker learns with: that of the learner that leads if `C` is "auto".
    forgetting_ : float
        Share of the evidence that it forgets per row.
    Cs_ : ndarray of shape (5,)
        Every C tried; only if `C` is "auto".
    progressive_auc_path_ : ndarray of shape (5,)
        AUC of late blocks of the learner with each of `Cs_`, for one that was dropped as it was then;
        only if `C` is "auto".
    n_seen_ : ndarray of shape (2,)
        Rows learned from, of the negative and of the positive class, in each pass anew.
    n_pairs_ : int
        Pairs met.
    n_updates_ : int
        Pairs that moved the model.
    diverged_ : bool
        Always False: this ranker does not diverge.

    References
    ----------
    .. [1] M. Khalid, I. Ray, H. Chitsaz. "Confidence-Weighted Bipartite Ranking", 2016.

    Examples
    --------
    >>> from cbrank import CBRanker
    >>> from cbrank.datasets import load
    >>> X, y, facts = load("german")
    >>> ranker = CBRanker(random_state=0).fit(X[:800], y[:800])
    >>> round(ranker.score(X[800:], y[800:]), 2)
    0.82
    """

    PARAMETERS: ClassVar[Table] = CBR
    ARMS: ClassVar[halving.Arms] = halving.OF_CBR

    def __init__(
        self,
        C: float | Literal["auto"] = "auto",
        *,
        eta: float = 0.7,
        buffer_size: int | Literal["auto"] = "auto",
        policy: Literal["fifo", "reservoir"] = "fifo",
        covariance: Literal["full", "diagonal"] = "full",
        diagonal_update: Literal["paper", "precision", "drop"] = "paper",
        average: bool | Literal["auto"] = "auto",
        forgetting: float | Literal["auto"] = "auto",
        operating_point: Literal["balanced", "accuracy"] = "balanced",
        class_weight: Literal["balanced"] | dict[Any, float] | None = None,
        shuffle: bool = True,
        n_passes: int = 1,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.eta = eta
        self.buffer_size = buffer_size
        self.policy = policy
        self.covariance = covariance
        self.diagonal_update = diagonal_update
        self.average = average
        self.forgetting = forgetting
        self.operating_point = operating_point
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_passes = n_passes
        self.random_state = random_state

    @staticmethod
    def paper(
        C: float,
        policy: Literal["fifo", "reservoir"] = "fifo",
        covariance: Literal["full", "diagonal"] = "full",
    ) -> "CBRanker":
        """Return the ranker of the paper: `cbrank.paper.cbr`, and fast.

        Parameters
        ----------
        C : float
            The penalty parameter.
        policy : {"fifo", "reservoir"}, default="fifo"
            Which row a full buffer replaces.
        covariance : {"full", "diagonal"}, default="full"
            CBR, or CBR-diag.

        Returns
        -------
        CBRanker
            Buffers of 50 rows, no average, no forgetting, rows in the order given.

        Examples
        --------
        >>> from cbrank import CBRanker
        >>> CBRanker.paper(0.5)
        CBRanker(C=0.5, average=False, buffer_size=50, forgetting=0.0, shuffle=False)
        """
        return CBRanker(
            C,
            buffer_size=50,
            policy=policy,
            covariance=covariance,
            average=False,
            forgetting=0.0,
            shuffle=False,
        )

    def _needs_matrix(self) -> bool:
        return self.covariance == "full"

    def _new_model(self, n_features: int) -> Any:
        mean, lag, tally = np.zeros(n_features), np.zeros(n_features), np.zeros(3, np.int64)
        if not self._needs_matrix() and self._sparse:
            features = np.zeros((n_features, 4))
            features[:, kernels.sparse_diagonal.VARIANCE] = 1.0
            return kernels.confidence.SparseModel(features, tally)
        if not self._needs_matrix():
            return kernels.confidence.DiagonalModel(mean, np.ones(n_features), lag, tally)
        matrices = halving.most_models(self.ARMS) if self.C == "auto" else 1
        cure = 'use covariance="diagonal"' + (" or a number for C" if matrices > 1 else "")
        refuse_if_too_large(n_features, matrices, cure)
        return kernels.confidence.FullModel(mean, np.eye(n_features), lag, tally)

    def _kernel(self, model: Any = None) -> Callable[..., None]:
        if self._is_full():
            in_blocks = self._learns_in_blocks() and self._is_wide(model or self._model)
            return kernels.blocked.learn if in_blocks else kernels.full.learn
        return kernels.sparse_diagonal.learn if self._sparse else kernels.diagonal.learn

    @staticmethod
    def _is_wide(model: Any) -> bool:
        """Say whether a model has many weights that are learned."""
        return bool(kernels.confidence.is_awake(model).sum() >= kernels.blocked.WORTHWHILE)

    def _learns_in_blocks(self) -> bool:
        wide = self._model.mu.size >= kernels.blocked.WORTHWHILE
        return bool(wide and self._buffer.least[0] >= kernels.blocked.FEWEST)

    def _set_up(
        self, n_features: int, classes: NDArray[Any], sparse: bool, random: np.random.RandomState
    ) -> None:
        super()._set_up(n_features, classes, sparse, random)
        for name in ("_halving", "_others"):
            self.__dict__.pop(name, None)
        if self.C == "auto":
            self._shape["C"] = "auto"
            self._others, self._halving = halving.begin(self)

    def _check_unchanged(self, classes: Any) -> None:
        super()._check_unchanged(classes)
        if self.C == "auto" and not hasattr(self, "_halving"):
            raise ValueError(
                "C was a number when this stream began and cannot become 'auto' now: fit anew, or "
                "set it back."
            )

    def _run(self, batch: Batch, parameters: Any, *, tested: bool = True) -> None:
        with kernels.threads.one_thread if self._multiplies() else contextlib.nullcontext():
            super()._run(batch, parameters, tested=tested)

    def _take_part(self, batch: Batch, parameters: Any, tested: bool) -> int:
        if hasattr(self, "_halving") or self.forgetting not in {"auto", 0.0}:
            return halving.take_part(self, batch, parameters, tested)
        return super()._take_part(batch, parameters, tested)

    def _end_block(self) -> None:
        halving.end_block(self)

    def _multiplies(self) -> bool:
        """Say whether matrix products may be needed, which threads share out."""
        forgets = self.forgetting not in {"auto", 0.0}
        if hasattr(self, "_halving"):
            forgets |= self._halving.forgetful in self._halving.alive
        return self._is_full() and (forgets or self._learns_in_blocks())

    def _reaching(self, model: Any, reach: int) -> Any:  # noqa: ARG002
        """Return a copy of a fresh model that makes use of that many kinds of features."""
        return type(model)(*(array.copy() for array in model))

    def _learners(self) -> Learners:
        """Return the models that take the same rows by their numbers, the leader's first."""
        numbers = self._numbers().tolist()
        others = (halving.of_stack(self._others, place) for place in range(len(numbers) - 1))
        return list(zip(numbers, [self._model, *others], strict=True))

    def _numbers(self) -> NDArray[np.int64]:
        return self._halving.alive if hasattr(self, "_halving") else super()._numbers()

    def _begun(self) -> int:
        """Return how many learners began, each with a C of its own: nine in files of version 0.1.0."""
        return len(np.unique(self._halving.C[: self._halving.forgetful]))

    def _rows_kept(self, n_features: int) -> tuple[int, int]:
        if self.buffer_size != "auto":
            return super()._rows_kept(n_features)
        if self.C != "auto":
            return (BUFFER_SIZES[1][-1],) * 2
        kept = BUFFER_SIZES[0][-1]
        return kept, kept if self.policy == "reservoir" else room_for(kept, n_features)

    def _record_shape(self) -> tuple[int, int, int]:
        if self.C != "auto":
            return 1, 1, 2
        return self.ARMS.slots, len(self.ARMS.exponents), 2

    # Single rows -------------------------------------------------------------------------------

    learn_at_once = single.learn
    say_at_once = single.say

    # What is served ----------------------------------------------------------------------------

    def _readouts(self) -> NDArray[np.int64]:
        """Return which readouts are served: 0 is the mean of the weights, 1 their average."""
        if self.average == "auto" and hasattr(self, "_halving"):
            return np.arange(2)
        return np.array([int(bool(self.average))])

    def _mix(self) -> NDArray[np.float64]:
        """Return the weights of the readouts of each learner left in what is served."""
        if not hasattr(self, "_halving"):
            return _AVERAGE_ONLY if self.average else _MEAN_ONLY
        return halving.mixture(
            self._halving, self._record.evidence, self._halving.alive, self._readouts()
        )

    def _readout(self, model: Any, readout: int, columns: Any) -> NDArray[np.float64]:
        if readout:
            return kernels.confidence.averaged_mean(model, columns)
        return np.ascontiguousarray(model.mu[columns])

    def _readout_weights(self) -> Iterator[tuple[int, int, Floats]]:
        for number, model in self._learners():
            for readout in range(2):
                yield number, readout, self._readout(model, readout, slice(None))

    def _mixed(self, held: record.Record, mix: Floats, learners: Learners, columns: Any) -> Mixture:
        """Return the mixture of readouts in the unit of the one that weighs most, in some columns."""
        centred, parts = bool(held.origin.size), []
        for place, readout in np.transpose(np.nonzero(mix > kernels.scores.NEGLIGIBLE)).tolist():
            number, model = learners[place]
            weights = self._readout(model, readout, slice(None) if centred else columns)
            anchor = self._anchor(held, weights, number, readout)
            parts.append((mix[place, readout], weights[columns] if centred else weights, anchor))
        if len(parts) == 1:
            return Mixture(*parts[0][1:])
        unit = max(parts, key=itemgetter(0))[2].unit
        shares = [share * unit / anchor.unit for share, _, anchor in parts]
        weights = sum(share * part[1] for share, part in zip(shares, parts, strict=True))
        middle = sum(share * part[2].middle for share, part in zip(shares, parts, strict=True))
        return Mixture(weights, Anchor(float(middle), unit))

    def _served(self, columns: Any = slice(None)) -> Mixture:
        """Return what is served now, in some columns."""
        now = self._of_now()
        held = now._record
        if not held.origin.size:  # a readout's unit does not depend on its weights: a few will do
            return now._mixed(held, now._mix(), now._learners(), columns)
        turn, rows = self._own.turn, int(now._buffer.seen.sum())
        key = turn, rows, now.average, now._buffer.means.shape, id(held)
        known: tuple[Any, Mixture] | None = self._own.served
        if known is None or known[0] != key:
            mixed = now._mixed(held, now._mix(), now._learners(), slice(None))
            self._own.served = known = key, mixed
        return known[1]._replace(weights=known[1].weights[columns])

    def _served_anchor(self) -> Anchor:
        return self._served(_NO_COLUMNS).anchor

    def _weights(self) -> Floats:
        return self._weights_of(slice(None))

    def _weights_of(self, columns: Any) -> Floats:
        return np.ascontiguousarray(self._served(columns).weights)

    def _resized(self, n_features: int) -> dict[str, Any]:
        resized = super()._resized(n_features)
        if hasattr(self, "_halving"):
            fresh = halving.stacked(self._new_model(n_features), self._halving.alive.size - 1)
            resized["_others"] = refilled(fresh, self._others)
        return resized

    # For merging -------------------------------------------------------------------------------

    def learned(self) -> Learned:
        """Return what the ranker has learned.

        Returns
        -------
        Learned
            Its models, its buffer, its record and where its choice of C stands; not copied.

        Examples
        --------
        >>> from cbrank import CBRanker
        >>> ranker = CBRanker(C=1.0).partial_fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
        >>> ranker.learned().buffer.seen
        array([1, 1])
        """
        models, choice = dict(self._learners()), getattr(self, "_halving", None)
        return Learned(models, self._buffer, self._record, choice)

    waits: ClassVar[bool] = False  # whether there are rows that are yet to be learned from

    def together(
        self, rankers: Sequence[Any], prior: Any
    ) -> tuple[list[Any], Any, Callable[[Any], Any]]:
        """Return rankers as they can be merged, feature by feature.

        Parameters
        ----------
        rankers : sequence of CBRanker
            This one and others like it.
        prior : CBRanker or None
            What they went on from.

        Returns
        -------
        rankers : list of CBRanker
            Those to merge, with the same features.
        prior : CBRanker or None
            What they went on from, with the same features.
        finish : callable
            What is left to be done with the merged ranker, which it returns.

        Examples
        --------
        >>> from cbrank import CBRanker
        >>> ranker = CBRanker(C=1.0).partial_fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
        >>> len(ranker.together([ranker], None)[0])
        1
        """
        return [*rankers], prior, lambda merged: merged

    def prior(self, number: int = 0) -> Any:  # noqa: ARG002
        """Return the model before the first row.

        Parameters
        ----------
        number : int, default=0
            Of which learner.

        Returns
        -------
        FullModel, DiagonalModel or SparseModel
            A standard Gaussian that has met no pair.

        Examples
        --------
        >>> from cbrank import CBRanker
        >>> CBRanker(C=1.0).partial_fit([[0.0, 1.0], [1.0, 1.0]], [0, 1]).prior().mu
        array([0., 0.])
        """
        return self._new_model(self._width())

    def like(self, learned: Learned) -> "CBRanker":
        """Return a ranker like this one in all but what it has learned.

        Parameters
        ----------
        learned : Learned
            What the other has learned, which becomes its own.

        Returns
        -------
        CBRanker
            A ranker that can go on learning.

        Examples
        --------
        >>> from cbrank import CBRanker
        >>> ranker = CBRanker(C=1.0).partial_fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
        >>> ranker.like(ranker.learned()._replace(models={0: ranker.prior()})).coef_
        array([[0., 0.]])
        """
        other = copy(self)
        for name in {"_model", "_buffer", "_record", "_others", "_halving"} & vars(other).keys():
            delattr(other, name)
        other = deepcopy(other)
        models, other._buffer, other._record = learned[:3]
        numbers = np.array([*models])
        if learned.halving is not None:
            other._halving = left = learned.halving._replace(alive=numbers)
            numbers = halving.ranked(left, learned.record.evidence, other._readouts())
            other._halving = left._replace(alive=numbers)
            other._others = halving.stack(
                [models[number] for number in numbers[1:]], models[numbers[0]]
            )
        other._model = models[numbers[0]]
        other._intercept = None
        other._buffer = other._bounded()._buffer
        other._record = record.next_block(
            other._record, other._weights(), other._origin(), len(other._learners())
        )
        return other

    def _is_full(self) -> bool:
        return isinstance(self._model, kernels.confidence.FullModel)

    def _kernel_parameters(self, balanced: bool) -> Any:
        return kernels.confidence.Parameters(
            0.0 if self.C == "auto" else float(self.C),
            float(ndtri(self.eta)),
            kernels.confidence.DIAGONAL_FORMS.index(self.diagonal_update),
            self.policy == "reservoir",
            balanced,
        )

    @property
    def covariance_(self) -> NDArray[np.float64]:
        """Covariance of the weights, or their variances where it is diagonal."""
        model = self._fitted("covariance_")
        return (model.Sigma if self._is_full() else model.variances).copy()

    @property
    def C_(self) -> float:
        """The C that the ranker learns with."""
        self._fitted("C_")
        if self.C != "auto" and not hasattr(self, "_halving"):
            return float(self.C)
        choice = self._choice("C_")
        return float(choice.C[choice.alive[0]])

    @property
    def Cs_(self) -> NDArray[np.float64]:
        """Every C tried."""
        return self._choice("Cs_").C[: self._begun()].copy()

    @property
    def progressive_auc_path_(self) -> NDArray[np.float64]:
        """AUC of late blocks of the learner with each of `Cs_`, by its better readout."""
        self._choice("progressive_auc_path_")
        evidence = self._record.evidence[: self._begun(), self._readouts()]
        best: NDArray[np.float64] = evidence.max(axis=1)
        return best

    @property
    def forgetting_(self) -> float:
        """Share of the evidence that the learner which leads forgets per row."""
        self._fitted("forgetting_")
        return halving.forgotten(self, int(self._numbers()[0]))

    def _choice(self, name: str) -> Halving:
        self._fitted(name)
        if not hasattr(self, "_halving"):
            raise AttributeError(
                f'{type(self).__name__} has {name} only if C was "auto" when it began to learn.'
            )
        return self._halving

    @property
    def n_pairs_(self) -> int:
        """Pairs met."""
        return int(self._fitted("n_pairs_").tally[kernels.confidence.PAIRS])

    @property
    def n_updates_(self) -> int:
        """Pairs that moved the model."""
        return int(self._fitted("n_updates_").tally[kernels.confidence.UPDATES])

    def decision_function(self, X: Any, return_std: bool = False) -> Any:
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
        >>> ranker = CBRanker().partial_fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
        >>> scores, std = ranker.decision_function([[1.0, 0.0], [0.0, 1.0]], return_std=True)
        >>> scores.round(2)
        array([ 0.03, -0.03])
        >>> std.round(2)  # only the first feature has been seen to matter
        array([0.98, 1.  ])
        """
        scores: Scores = np.empty(1)
        if not return_std and self.say_at_once("score", X, scores):
            return scores
        check_is_fitted(self)
        now = self._of_now()
        X = now._check_rows(X, reset=False)
        scores = now._scores(X) + now._intercept_now()
        return (scores, now._std(X)) if return_std else scores

    def preference_proba(self, A: Any, B: Any) -> Scores:
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
        now = self._of_now()
        A = now._check_rows(A, reset=False)
        B = now._check_rows(B, reset=False)
        if A.shape[0] != B.shape[0]:
            raise ValueError(f"A has {A.shape[0]} rows and B has {B.shape[0]}.")
        with np.errstate(over="ignore"):
            z = A - B
        if not np.isfinite(z.data if sp.issparse(z) else z).all():
            z = 0.5 * A - 0.5 * B  # which says the same
        z, _ = _within_reach(z.tocsr() if sp.issparse(z) else np.asarray(z))
        ahead, std = now._scores(z), now._std(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(ahead == 0.0, 0.5, ndtr(ahead / std))

    def _std(self, X: Any) -> Scores:
        """Return sqrt(x' Sigma x) of each row."""
        X, unit = _within_reach(X)
        with np.errstate(over="ignore"):
            return self._std_within_reach(X) * unit

    def _std_within_reach(self, X: Any) -> Scores:
        if not self._is_full():
            squares = (X.multiply(X) if sp.issparse(X) else X * X) @ self._model.variances
        elif sp.issparse(X):
            squares = np.zeros(X.shape[0])
            block = max(1, DENSE_BLOCK // X.shape[1])
            for begin in range(0, X.shape[0], block):
                rows = X[begin : begin + block]
                spread = rows @ self._model.Sigma
                squares[begin : begin + block] = rows.multiply(spread).sum(axis=1)
        elif len(X) > _FEW and _FEW * np.count_nonzero(X) > X.size:
            squares = (X * (X @ self._model.Sigma)).sum(axis=1)
        else:
            std, write = np.empty(len(X)), kernels.deviations.deviations
            write(read_only(X), read_only(self._model.Sigma), std)
            return std
        return np.sqrt(np.maximum(np.asarray(squares).ravel(), 0.0))


def _within_reach(X: Any) -> tuple[Any, Floats]:
    """Return rows whose squares do not overflow, and what each was divided by for that."""
    values = X.data if sp.issparse(X) else X
    if not values.size or max(values.max(), -values.min()) < _LARGEST:
        return X, np.ones(1)
    largest = abs(X).max(axis=1)
    largest = largest.toarray().ravel() if sp.issparse(X) else largest
    unit = np.maximum(largest / _LARGEST, 1.0)
    rows = X.multiply(1.0 / unit[:, None]).tocsr() if sp.issparse(X) else X / unit[:, None]
    return rows, unit
