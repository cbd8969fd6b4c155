"""What all rankers can do once they have learned: score, predict and be measured."""

import operator
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from cbrank import checks, kernels, locking
from cbrank.estimator import BaseEstimator, ClassifierMixin, check_is_fitted, constraints, validate
from cbrank.learning import record, served
from cbrank.learning.blocks import provisional, scored
from cbrank.learning.front import milestone, waits
from cbrank.learning.method import Method
from cbrank.learning.served import Anchor, Mixture
from cbrank.learning.state import Cell, State
from cbrank.locking import Own
from cbrank.metrics.roc import auc_of
from cbrank.parameters import Kind

Floats = NDArray[np.float64]

_FIRST, _SECOND = np.zeros(1, np.int64), np.ones(1, np.int64)
_EVERY, _NO_COLUMNS = slice(None), np.zeros(0, np.int64)
# More rows than an eighth of those learned, ranked by one call, are taken for rows that come much later; of a
# short stream there is hardly any difference.
_MANY, _LONG = 8, 4096


class Calibration(NamedTuple):
    """How scores become log odds.

    A score s, before the intercept, is at the place x = (s - middle) / unit. With e the evidence there,
    which goes from knot to knot along straight lines and on beyond them as the logarithm does, its log
    odds are offset + along * e + line * x.

    Attributes
    ----------
    anchor : Anchor
        The middle and the unit.
    offset, along, line : float
        The offset, with the trend of the latest errors, and the factors.
    knots : ndarray of shape (2, n_knots)
        Places and evidence of the knots; where there are none, the evidence is the place.
    """

    anchor: Anchor
    offset: float
    along: float
    line: float
    knots: NDArray[np.float64]


class Judged(NamedTuple):
    """All that a ranker says of rows.

    Attributes
    ----------
    scores : ndarray of shape (n_samples,)
        As `decision_function` gives them.
    std : ndarray of shape (n_samples,) or None
        Standard deviations of the scores, if asked for.
    probabilities : ndarray of shape (n_samples,)
        That rows are positive, as `predict_proba` gives them.
    """

    scores: NDArray[np.float64]
    std: NDArray[np.float64] | None
    probabilities: NDArray[np.float64]


class Moment(NamedTuple):
    """What a ranker serves at one moment; what it learns afterwards changes nothing of it.

    Standard deviations are those of the ranker as it goes on: a covariance is too large to be copied.
    """

    state: State
    mixture: Mixture
    intercept: float

    def log_odds(self, raw: Floats) -> Floats:
        """Return the log odds of the positive class at scores before the intercept."""
        return served.log_odds(self.state, self.mixture.anchor, raw)


class Scorer(ClassifierMixin, BaseEstimator):
    """A linear ranking score whose zero is the operating point, and what it means."""

    KINDS: ClassVar[dict[str, tuple[Kind, ...]]]
    _parameter_constraints, _validate_params = property(constraints), validate

    classes_: NDArray[Any]
    _own: Own
    _learned: Cell
    operating_point: Literal["balanced", "accuracy"]
    horizon: str
    class_weight: Any

    __deepcopy__ = locking.copied

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:  # noqa: ARG004
        self = super().__new__(cls)
        self._own = Own()
        return self

    def __getstate__(self) -> dict[str, Any]:
        return locking.state_of(self, super().__getstate__)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learned")

    def _method(self, state: State | None = None) -> Method:
        """Return how rows are learned, by the parameters."""
        raise NotImplementedError

    _check_rows = checks.check_rows

    def _fitted(self, name: str) -> State:
        """Return the state of the stream, or fail as a missing attribute does."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted.")
        return self._near()[1]

    # What is served ------------------------------------------------------------------------------

    def _now(self, rows: int = 1) -> tuple[Method, State]:
        """Return the state that ranks so many rows, and its method."""
        method, state = self._near()
        cell = self._learned
        if not self._ranks_late_rows(cell.state, rows):
            return method, state
        # As text, for lists and dictionaries change within.
        key = cell, cell.turn, repr(self.get_params(deep=False) | {"horizon": None})
        known = self._own.later
        if known is None or not all(map(operator.eq, known[0], key)):
            from cbrank.learning.later import later  # noqa: PLC0415 (few streams are put away)

            self._own.later = known = key, later(method, state)
        return known[1].method, known[1].state

    def _ranks_late_rows(self, state: State, rows: int) -> bool:
        """Say whether so many rows are taken for ones that come much later than those of the stream."""
        if state.memory is None or self.horizon == "next" or record.shuffled(state.record):
            return False
        if self.horizon == "later":
            return not waits(state)
        seen = int(state.buffer.seen.sum())
        return rows > 1 and _LONG <= seen < rows * _MANY

    def _near(self) -> tuple[Method, State]:
        """Return the state of the stream, which may be that of the rows that wait, and its method."""
        cell = self._learned
        state = cell.state
        method = self._method(state)
        if not waits(state):
            self._own.provisional = None
            return method, state
        # As text, for lists and dictionaries change within.
        asked = repr(self.get_params(deep=False) | {"random_state": None})
        front, count = state.front, milestone(state.front.waiting.labels.size)
        key = cell, front.decided_by(), count, asked
        known = self._own.provisional
        if known is None or not all(map(operator.eq, known[0], key)):
            self._own.provisional = known = key, provisional(method, state)
        found: tuple[Method, State] = known[1]
        return found

    def _served(self, columns: Any = _EVERY) -> Mixture:
        """Return the weights that are served, in some columns, and their anchor."""
        return self._served_of(*self._now(), columns)

    def _served_of(self, method: Method, state: State, columns: Any = _EVERY) -> Mixture:
        # Where a readout's unit does not depend on its weights, a few will do.
        if not state.record.origin.size and not state.selects:
            return self._of_columns(state, served.mixture_of(method, state, columns), columns)
        now = int(state.buffer.seen.sum()), method.selection
        key = self._learned.turn, tuple(method.readouts), now
        known = self._own.served
        if known is None or known[0] is not state or known[1] != key:
            mixed = served.mixture_of(method, state)
            mixed = mixed if state.selects else self._of_columns(state, mixed, _EVERY)
            self._own.served = known = state, key, mixed
        whole: Mixture = known[2]
        if state.selects:
            return self._of_columns(state, whole, columns)
        return whole._replace(weights=np.ascontiguousarray(whole.weights[columns]))

    def _anchor(self, method: Method, state: State) -> Anchor:
        return self._served_of(method, state, _NO_COLUMNS).anchor

    def _of_columns(self, state: State, mixed: Mixture, columns: Any) -> Mixture:
        if state.front is None:
            return mixed
        return mixed._replace(weights=state.front.of_columns(mixed.weights, columns))

    def _features(self, rows: Any, state: State) -> Any:  # noqa: ARG002
        """Return checked rows as what the weights are of."""
        return rows

    def _scores(self, rows: Any, state: State, method: Method) -> Floats:
        """Return the scores before the intercept; a row's own does not depend on those beside it."""
        X = self._features(rows, state)
        if sp.issparse(X) and X.nnz < X.shape[1]:  # few of many weights are needed
            needed = (X.data, np.arange(X.nnz, dtype=X.indptr.dtype), X.indptr)
            one_column_each = sp.csr_array(needed, shape=(X.shape[0], X.nnz))
            return np.asarray(one_column_each @ self._served_of(method, state, X.indices).weights)
        return np.asarray(scored(X, self._served_of(method, state)))

    def _costs(self, seen: NDArray[np.int64]) -> Floats:
        """Return the costs of a wrong row of each class; a balanced point needs no balanced costs."""
        if self.operating_point == "balanced" and not isinstance(self.class_weight, dict):
            return np.ones(2)
        return checks.class_weights(self.class_weight, self.classes_, seen)

    def _intercept_now(self, method: Method, state: State) -> float:
        if state.intercept is not None:
            return state.intercept
        some = state.front.columns if state.selects else _EVERY  # all whose weight may not be 0
        mixed = self._served_of(method, state, some)
        return served.intercept_of(state, mixed, self._costs, self.operating_point == "balanced")

    # Fitted attributes ---------------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        """Weights of the features, of shape (1, n_features)."""
        self._fitted("coef_")
        return self._served().weights.reshape(1, -1).copy()

    @property
    def intercept_(self) -> Floats:
        """What is added to scores so that zero is the operating point, of shape (1,)."""
        self._fitted("intercept_")
        return np.array([self._intercept_now(*self._now())])

    @property
    def n_seen_(self) -> NDArray[np.int64]:
        """Rows learned from, or waiting, of the negative and of the positive class."""
        if not self.__sklearn_is_fitted__():
            self._fitted("n_seen_")
        state = self._learned.state
        if waits(state):
            return np.bincount(state.front.waiting.labels, minlength=2)
        return np.array(state.buffer.seen)

    @property
    def diverged_(self) -> bool:
        """Whether a step too large was refused, which ended the learning."""
        return bool(getattr(self._fitted("diverged_").models[0], "diverged", (0,))[0])

    @property
    def progressive_auc_(self) -> float:
        """AUC of rows by the weights that were served before they were learned from."""
        return record.auc_of(self._fitted("progressive_auc_").record)

    @property
    def progressive_auc_weight_(self) -> float:
        """Effective rows behind `progressive_auc_`: 2 p n / (p + n) for p and n rows of a block.

        Between two moments of a stream, the AUC times this weight grows by the AUC of the blocks
        that ended since, times theirs.
        """
        return record.weight_of(self._fitted("progressive_auc_weight_").record)

    @property
    def progressive_auc_interval_(self) -> tuple[float, float]:
        """Ends of the 95% confidence interval of `progressive_auc_`."""
        return record.interval_of(self._fitted("progressive_auc_interval_").record)

    @property
    def recent_auc_(self) -> float:
        """`progressive_auc_` of about the last thousand rows."""
        return record.auc_of(self._fitted("recent_auc_").record, recent=True)

    @property
    def recent_auc_interval_(self) -> tuple[float, float]:
        """Ends of the 95% confidence interval of `recent_auc_`."""
        return record.interval_of(self._fitted("recent_auc_interval_").record, recent=True)

    @property
    def progressive_auc_history_(self) -> NDArray[Any]:
        """AUC of each block of rows: a structured array with `rows`, `auc` and `weight`."""
        known = self._fitted("progressive_auc_history_").record.history
        kinds = [("rows", np.int64), ("auc", np.float64), ("weight", np.float64)]
        history = np.empty(len(known), kinds)
        for name, column in zip(("rows", "auc", "weight"), known.T, strict=True):
            history[name] = column
        return history

    @property
    def auc_by_age_(self) -> Floats:
        """How well rows are ranked by how much later than the last row learned they come.

        An array with a line for each age: rows between, AUC and its standard error. The first is that of
        the next block, the others those of rows up to an eighth, a fourth and half of the stream later. They
        are measured when they are asked for, from a sample of all rows: what was learned of the first half,
        three quarters and seven eighths ranks the rows that came after.
        """
        self._fitted("auc_by_age_")
        cell = self._learned
        if cell.state.memory is None:
            raise AttributeError(
                f"This {type(self).__name__} has no auc_by_age_: it keeps no rows, as C is a number."
            )
        key, known = (cell, cell.turn), self._own.by_age
        if known is None or known[0] != key:
            from cbrank.learning.later import by_age  # noqa: PLC0415 (few ask for it)

            self._own.by_age = known = key, by_age(*self._near())
        return np.array(known[1])

    # Scores and probabilities ----------------------------------------------------------------------

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the ranking score of each row: the higher, the likelier positive.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The scores.
        """
        check_is_fitted(self)
        rows = self._check_rows(X, reset=False)
        method, state = self._now(rows.shape[0])
        return self._scores(rows, state, method) + self._intercept_now(method, state)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the positive class where `decision_function` is above zero.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            One of the two labels for each row.
        """
        score = np.empty(1)
        if self.say_at_once("score", X, score):
            return self.classes_[_SECOND if score[0] > 0.0 else _FIRST]
        positive = self.decision_function(X) > 0.0
        return self.classes_[positive.astype(np.int64)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class.

        The log odds are the sum of a curve that rises with the score (piecewise linear, of any such
        shape), of a straight line in the score, and of the trend of the latest errors, all learned
        within the pass from scores that rows had before they were learned from. In a stream this
        follows: the curve remembers about a thousand rows, takes scores from the midpoint of the
        latest rows of the two classes, and the trend says whether the latest labels were above or
        below what was expected. So probabilities of different moments can be compared. They hold for
        rows that come next, and for the share of positives in the stream, whatever the class weights.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            The probabilities of the negative and of the positive class.
        """
        found: Floats = np.empty((1, 2))
        if self.say_at_once("probabilities", X, found):
            return found
        check_is_fitted(self)
        rows = self._check_rows(X, reset=False)
        method, state = self._now(rows.shape[0])
        scores = self._scores(rows, state, method)
        anchor = self._anchor(method, state)
        return kernels.calibration.probabilities(served.log_odds(state, anchor, scores))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the area under the ROC curve.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        auc : float
            The share of (positive, negative) pairs ranked right, ties counted half.
        """
        scores = self.decision_function(X)
        labels = checks.encode(checks.check_labels(y, scores), self.classes_)
        weights = checks.check_weights(sample_weight, scores)
        if np.isfinite(scores).all() and len(np.unique(labels[weights > 0])) == 2:
            return auc_of(labels == 1, scores, weights)
        from sklearn.metrics import roc_auc_score  # noqa: PLC0415

        return float(roc_auc_score(labels, scores, sample_weight=sample_weight))  # it says why not

    def even_odds(self) -> float:
        """Return the score of `decision_function` at which a row is as likely positive as negative.

        Returns
        -------
        float
            Where `predict_proba` has one half. Zero is the operating point, which is another one if a class
            is rarer.

        Examples
        --------
        >>> import numpy as np
        >>> from cbrank import CBRanker
        >>> from cbrank.datasets import load
        >>> X, y, facts = load("german")
        >>> ranker = CBRanker(random_state=0).fit(X, y)
        >>> above = ranker.decision_function(X) > ranker.even_odds()
        >>> np.array_equal(above, ranker.predict_proba(X)[:, 1] > 0.5)
        True
        """
        check_is_fitted(self)
        method, state = self._now()
        anchor = self._anchor(method, state)
        even = served.intercept_at(state, anchor, np.ones(2), np.ones(2), False)
        return self._intercept_now(method, state) - even

    # For the other packages ------------------------------------------------------------------------

    def say_at_once(self, what: str, X: Any, out: Floats) -> bool:  # noqa: ARG002
        """Write the "score" or "probabilities" of a plain row by one compiled call; say whether it could."""
        return False

    def moment(self) -> Moment:
        """Return what the ranker serves now, for `judge` to go by while the ranker goes on learning."""
        check_is_fitted(self)
        method, state = self._now()
        mixed = self._served_of(method, state)
        held = state.record
        frozen = held._replace(
            shape=held.shape.copy(),
            curve=held.curve.copy(),
            errors=held.errors.copy(),
            memory=held.memory.copy(),
        )
        return Moment(
            state._replace(record=frozen),
            mixed._replace(
                weights=mixed.weights.copy(), beside=tuple(map(served.whole, mixed.beside))
            ),
            self._intercept_now(method, state),
        )

    def judge(self, X: Any, *, with_std: bool = False, moment: Moment | None = None) -> Judged:
        """Return scores and probabilities of rows at once, all of one moment, so that they are read only once."""
        held = self.moment() if moment is None else moment
        rows = self._features(self._check_rows(X, reset=False), held.state)
        raw = scored(rows, held.mixture)
        std = self._std(rows, held.state) if with_std else None
        probabilities = kernels.calibration.probabilities(held.log_odds(raw))
        return Judged(raw + held.intercept, std, probabilities[:, 1].copy())

    def _std(self, X: Any, state: State) -> Floats:  # noqa: ARG002
        raise ValueError(f"{type(self).__name__} knows no standard deviations.")

    def log_odds(self, scores: Floats) -> Floats:
        """Return the log odds of the positive class at scores before the intercept."""
        method, state = self._now()
        return served.log_odds(state, self._anchor(method, state), scores)

    def calibration(self) -> Calibration:
        """Return how scores become log odds at this moment, for other runtimes."""
        check_is_fitted(self)
        method, state = self._now()
        shape, curve = state.record.shape, state.record.curve
        rising = np.append((np.diff(shape) > 0.0).all(axis=0), False)
        count = 1 + int(rising.argmin())
        along, line = kernels.calibration.factors_from(curve)
        return Calibration(
            self._anchor(method, state),
            float(curve[kernels.calibration.OFFSET]) + served.trend_of(state),
            float(along),
            float(line),
            shape[:, : count if count > 1 else 0].copy(),
        )
