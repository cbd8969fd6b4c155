"""Confidence-weighted bipartite ranking."""

import math
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtri

from cbrank import kernels
from cbrank.learning import memory, record, served
from cbrank.learning.front import Scales, scales_from, unscaled
from cbrank.learning.method import Kernels, Method
from cbrank.learning.pool import OF_LINES, OF_LINES_DIAGONAL, Learner
from cbrank.learning.room import refuse_if_too_large
from cbrank.learning.selection import Selection
from cbrank.learning.slots import Slots, no_slots, slots_from
from cbrank.learning.state import State
from cbrank.parameters import BUFFER_SIZES, LINEAR, Table, buffer_size_after, room_for
from cbrank.rankers import gaussian, single
from cbrank.rankers.base import Ranker

Floats = NDArray[np.float64]


class CBRanker(Ranker):
    """Confidence-weighted bipartite ranking (CBR, CBR-diag).

    The ranker is a Gaussian over weight vectors. Every new row meets the buffered rows of the
    opposite class, and each pair that is not ranked right with confidence `eta` moves the mean
    and shrinks the covariance by the soft confidence-weighted closed form [1]_.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Mean of the weights, averaged over the stream if `average`. If `C` is "auto", the mixture of
        those of all learners, in the unit of the one that weighs most.
    covariance_ : ndarray of shape (n_features, n_features) or (n_features,)
        Covariance of the weights, or their variances where it is diagonal; of the learner that weighs most.
    C_ : float
        The C that the ranker learns with: that of the learner that weighs most if `C` is "auto".
    forgetting_ : float
        Share of the evidence that it forgets per row.
    n_seen_ : ndarray of shape (2,)
        Rows learned from, or waiting (with C "auto" the first 64 of a stream wait for the scales of
        columns), of the negative and of the positive class, in each pass anew.
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

    PARAMETERS: ClassVar[Table] = LINEAR
    SHAPE: ClassVar[tuple[str, ...]] = (*Ranker.SHAPE, "max_features")
    # Rows of each class with buffer_size "auto", at first and after 1,024 rows.
    MOST_KEPT: ClassVar[tuple[int, int]] = BUFFER_SIZES[0][-1], BUFFER_SIZES[1][-1]

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
        horizon: Literal["auto", "next", "later"] = "auto",
        operating_point: Literal["balanced", "accuracy"] = "balanced",
        class_weight: Literal["balanced"] | dict[Any, float] | None = None,
        shuffle: bool = True,
        n_passes: int = 1,
        random_state: Any = None,
        max_features: int | None = None,
        selection: Literal["evidence", "weight", "confidence"] = "evidence",
    ) -> None:
        self.C = C
        self.eta = eta
        self.buffer_size = buffer_size
        self.policy = policy
        self.covariance = covariance
        self.diagonal_update = diagonal_update
        self.average = average
        self.forgetting = forgetting
        self.horizon = horizon
        self.operating_point = operating_point
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_passes = n_passes
        self.random_state = random_state
        self.max_features = max_features
        self.selection = selection

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

    # How it learns -----------------------------------------------------------------------------

    def takes_dense_rows(self) -> bool:
        return self.covariance == "full"

    def _method(self, state: State | None = None, *, fits: bool = False) -> Method:
        full = self.takes_dense_rows()
        pool = (OF_LINES if full else OF_LINES_DIAGONAL) if self._is_pool(state) else None
        method = method_of(self, pool, full=full, balanced=self._balances(fits))
        if self.max_features is None:
            return method
        if full:
            raise ValueError(
                '`max_features` needs a diagonal covariance: give `covariance="diagonal"`.'
            )
        selects = state is not None and self.max_features < state.columns
        parameters = tuple(each._replace(selects=selects) for each in method.parameters)
        selection = Selection(self.max_features, self.selection)
        return replace(method, parameters=parameters, selection=selection)

    def _front(self, X: Any) -> Scales | Slots | None:
        if self.max_features is not None and (sp.issparse(X) or self.max_features < X.shape[1]):
            return no_slots(X.shape[1])
        scaled = self.C == "auto" and self.takes_dense_rows()
        return unscaled(X.shape[1]) if scaled else None

    def _front_of(self, parts: Any, facts: Any, n_features: int) -> Scales | Slots | None:
        """Return the front of a saved state."""
        began = self._shape  # parameters may have changed since
        if began["max_features"] is not None and self._learned.state.sparse:
            front = slots_from(parts["front"], facts, n_features)
            self.n_features_in_ = front.n_columns
            return front
        if began.get("C") != "auto" or began["covariance"] != "full":
            super()._front_of(parts, facts, n_features)
            return None
        if any(parts[part] for part in parts if part not in ("", "front")):
            raise ValueError("it has arrays that no such front has")
        return scales_from(parts["front"], facts, n_features)

    # What it can say -----------------------------------------------------------------------------

    learn_at_once, say_at_once = single.learn, single.say
    decision_function, preference_proba = gaussian.decision_function, gaussian.preference_proba
    _std = gaussian.deviations
    together, get_support = gaussian.together, gaussian.get_support
    covariance_ = property(gaussian.covariance)
    C_, forgetting_ = property(gaussian.C), property(gaussian.forgetting)
    n_pairs_, n_updates_ = property(gaussian.n_pairs), property(gaussian.n_updates)


# How rankers with a Gaussian over weights learn ----------------------------------------------------


def method_of(
    ranker: Any, pool: tuple[Learner, ...] | None, *, full: bool, balanced: bool
) -> Method:
    """Return how a ranker learns by its parameters, given the learners if C is "auto"."""
    auto, average = pool is not None, ranker.average
    learners = pool or (Learner(math.nan if ranker.C == "auto" else float(ranker.C)),)
    if ranker.forgetting != "auto":
        share = float(ranker.forgetting)
        learners = tuple(each._replace(forgetting=share) for each in learners)
    numbers = parameters_of(ranker, balanced)
    reservoir = ranker.policy == "reservoir"
    kept = Kept(ranker.buffer_size, ranker.MOST_KEPT, reservoir, ranker.forgetting)
    return Method(
        partial(new_model, full=full),
        kernels_of(full),
        tuple(numbers._replace(C=each.C) for each in learners),
        full,
        partial(kept.at_first, auto),
        learners=learners,
        pool=auto,
        lasting=len(learners) - auto,
        joins=auto and ranker.forgetting == "auto",
        new_memory=memory.begin if auto else None,
        readouts=(0, 1) if auto and average == "auto" else (int(bool(average)),),
        n_readouts=2,
        weights=readout_of,
        buffer_after=kept.after,
        multiplies=full and any(each.forgetting for each in learners),
    )


def parameters_of(ranker: Any, balanced: bool) -> Any:
    """Return the numbers that the kernels go by, all but the learners' C."""
    papers = "auto" not in (ranker.C, ranker.buffer_size) and not ranker.average
    return kernels.confidence.Parameters(
        0.0,
        float(ndtri(ranker.eta)),
        kernels.confidence.DIAGONAL_FORMS.index(ranker.diagonal_update),
        ranker.policy == "reservoir",
        balanced,
        math.inf if papers else kernels.confidence.WIDEST,
    )


def kernels_of(full: bool) -> Kernels:
    """Return the functions that stream rows into a model with a full covariance or a diagonal one."""
    if full:
        return Kernels(kernels.full.learn, blocked=kernels.blocked.learn)
    return Kernels(kernels.diagonal.learn, kernels.sparse_diagonal.learn)


def new_model(n_features: int, sparse: bool, *, full: bool) -> Any:
    """Return a standard Gaussian that has met no pair."""
    mean, lag, tally = np.zeros(n_features), np.zeros(n_features), np.zeros(3, np.int64)
    if not full and sparse:
        features = np.zeros((n_features, 4))
        features[:, kernels.sparse_diagonal.VARIANCE] = 1.0
        return kernels.confidence.SparseModel(features, tally)
    if not full:
        return kernels.confidence.DiagonalModel(mean, np.ones(n_features), lag, tally)
    refuse_if_too_large(n_features, 1, 'use covariance="diagonal"')
    return kernels.confidence.FullModel(mean, np.eye(n_features), lag, tally)


def readout_of(model: Any, readout: int, columns: Any) -> Floats:
    """Return the mean of the weights, or their average."""
    if readout:
        return kernels.confidence.averaged_mean(model, columns)
    return np.ascontiguousarray(model.mu[columns])


class Kept(NamedTuple):
    """How many rows the buffer keeps."""

    size: int | Literal["auto"]
    most: tuple[int, int]
    reservoir: bool
    forgetting: float | Literal["auto"]

    def at_first(self, auto: bool, n_features: int) -> tuple[int, int]:
        """Return how many rows of each class the buffer keeps at first, and its room."""
        if self.size != "auto":
            return int(self.size), int(self.size)
        if not auto:
            return (min(BUFFER_SIZES[1][-1], self.most[0]),) * 2
        kept = min(BUFFER_SIZES[0][-1], self.most[0])
        return kept, kept if self.reservoir else room_for(kept, n_features)

    def after(self, method: Method, state: State) -> Any:
        """Return the buffer, with room for as many rows as are wanted now if its size is "auto".

        With a number for C it is the paper's, and where rows come in random order it need be no window.
        """
        if self.size != "auto":
            return state.buffer
        seen, weights = state.buffer.seen, int(np.count_nonzero(state.record.held))
        shuffled = record.shuffled(state.record)
        # Things stay the same if rows are in random order, or to forget does worse than not to.
        leads = method.learners[served.leader_of(method, state)]
        steady = shuffled or (method.pool and leads.forgetting == 0.0 and self.forgetting == "auto")
        wanted = buffer_size_after(int(seen.sum()), int(seen.min()), weights, steady=steady)
        later = int(seen.sum()) >= BUFFER_SIZES[1][0]
        kept = min(wanted, self.at_first(method.pool, state.columns)[0], self.most[later])
        plain = not method.pool or self.reservoir or shuffled
        room = kept if plain else room_for(kept, state.columns)
        return kernels.buffers.with_room(state.buffer, kept, room, reservoir=self.reservoir)
