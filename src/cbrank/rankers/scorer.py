"""What all rankers can do once they have learned: score, predict and be measured."""

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from cbrank import kernels
from cbrank.arrays import read_only
from cbrank.estimator import ClassifierMixin, Estimator, check_is_fitted
from cbrank.metrics.roc import auc_of, operating_point_of
from cbrank.rankers import checks, record

_WHOLE = np.ones((1, 1))
_FIRST, _SECOND = np.zeros(1, np.int64), np.ones(1, np.int64)
_NONE, _NO_MEANS = np.zeros(0), np.zeros((2, 0))
# With one class so far, all rows with smaller values than this are called that.
_LARGEST_VALUE, _LARGEST_SCORE = 1e6, 1e300
_VAST = 2.0**950  # beyond this, sums of weights could overflow
_NORMAL_95 = 1.959963984540054  # standard errors on each side of a 95% interval


class Anchor(NamedTuple):
    """Where scores are taken from and in which unit, so that moments can be compared."""

    middle: float  # score of the midpoint of the two class means
    unit: float  # their distance


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

    now: Any  # a view of the ranker
    weights: NDArray[np.float64]
    intercept: float
    anchor: Anchor
    trend: float
    shape: NDArray[np.float64]
    curve: NDArray[np.float64]

    def log_odds(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log odds of the positive class at scores before the intercept."""
        places = (np.asarray(raw) - self.anchor.middle) / self.anchor.unit
        if not np.isfinite(places).all():
            places = np.nan_to_num(places)
        found: NDArray[np.float64] = kernels.calibration.log_odds(places, self.shape, self.curve)
        return found + self.trend


class LinearScorer(ClassifierMixin, Estimator, metaclass=ABCMeta):
    """A linear ranking score whose zero is the operating point, and what it means."""

    classes_: NDArray[Any]
    _model: Any  # a tuple of arrays, the kernel's
    _buffer: Any
    _record: record.Record
    _sparse: bool
    _intercept: float | None  # by the rows of a fit
    operating_point: str
    class_weight: Any

    @abstractmethod
    def _weights(self) -> NDArray[np.float64]:
        """Return the weights of the features."""

    def _weights_of(self, columns: Any) -> NDArray[np.float64]:
        """Return the weights of some features."""
        return self._weights()[columns]

    @abstractmethod
    def class_weights(
        self, classes: NDArray[Any], counts: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return the weights of the two classes; `counts` are what "balanced" goes by."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _fitted(self, name: str) -> Any:
        """Return the model, or fail as a missing attribute does."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted.")
        return self._model

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of the features, of shape (1, n_features)."""
        self._fitted("coef_")
        return self._weights().reshape(1, -1).copy()

    @property
    def n_seen_(self) -> NDArray[np.int64]:
        """Rows learned from, of the negative and of the positive class."""
        self._fitted("n_seen_")
        return np.array(self._buffer.seen)

    # Honest measures ---------------------------------------------------------------------------

    @property
    def progressive_auc_(self) -> float:
        """AUC of rows by the weights that were served before they were learned from."""
        self._fitted("progressive_auc_")
        return record.auc_of(self._record)

    @property
    def progressive_auc_weight_(self) -> float:
        """Effective rows behind `progressive_auc_`: 2 p n / (p + n) for p and n rows of a block.

        Between two moments of a stream, the AUC times this weight grows by the AUC of the blocks
        that ended since, times theirs.
        """
        self._fitted("progressive_auc_weight_")
        return record.weight_of(self._record)

    @property
    def progressive_auc_interval_(self) -> tuple[float, float]:
        """Ends of the 95% confidence interval of `progressive_auc_`."""
        self._fitted("progressive_auc_interval_")
        return _interval(self._record, recent=False)

    @property
    def recent_auc_(self) -> float:
        """`progressive_auc_` of about the last thousand rows."""
        self._fitted("recent_auc_")
        return record.auc_of(self._record, recent=True)

    @property
    def recent_auc_interval_(self) -> tuple[float, float]:
        """Ends of the 95% confidence interval of `recent_auc_`."""
        self._fitted("recent_auc_interval_")
        return _interval(self._record, recent=True)

    @property
    def progressive_auc_history_(self) -> NDArray[Any]:
        """AUC of each block of rows: a structured array with `rows`, `auc` and `weight`."""
        self._fitted("progressive_auc_history_")
        kinds = [("rows", np.int64), ("auc", np.float64), ("weight", np.float64)]
        history = np.empty(len(self._record.history), kinds)
        for name, column in zip(("rows", "auc", "weight"), self._record.history.T, strict=True):
            history[name] = column
        return history

    # The score that is served, and what it means -------------------------------------------------

    def _served_anchor(self) -> Anchor:
        """Return the midpoint and the unit of the scores that are served."""
        return self._anchor(self._record, self._weights() if self._record.origin.size else _NONE)

    def _anchor(
        self, held: record.Record, weights: NDArray[np.float64], learner: int = 0, readout: int = 0
    ) -> Anchor:
        """Return the midpoint of the classes by a readout, whose weights these are, and its unit."""
        means = self._buffer.means if held.origin.size else _NO_MEANS
        level, centre = float(held.level[learner, readout]), held.centre[learner, readout]
        if means.size and means.shape[1] != weights.size:
            raise ValueError(f"There are {weights.size} weights, and means of {means.shape[1]}.")
        return Anchor(*kernels.scores.anchor(means, weights, centre, level))

    def _bounded(self) -> Self:
        """Return a view of the ranker whose class means are within the bounds of its buffered rows."""
        view = self._of_now()
        if self._record.origin.size:
            view._buffer = self._buffer._replace(means=kernels.buffers.bounded(self._buffer))
        return view

    def _origin(self) -> NDArray[np.float64]:
        """Return the midpoint of the class means, if there are any."""
        if not self._record.origin.size:
            return _NONE
        origin: NDArray[np.float64] = 0.5 * self._buffer.means[0] + 0.5 * self._buffer.means[1]
        return origin

    def _of_now(self) -> Self:
        """Return a view of the ranker whose attributes no other thread exchanges meanwhile."""
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        return view

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        """Return checked rows of as many features as the model has."""
        return checks.check_rows(self, X, reset=reset)

    def _width(self) -> int:
        """Return how many features the model has."""
        return int(self.n_features_in_)

    def _numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the learners, the leader's first."""
        return _FIRST

    def _mix(self) -> NDArray[np.float64]:
        """Return the weights of their readouts in what is served."""
        return _WHOLE

    def _readout_weights(self) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        """Yield the number of each learner, the number of each of its readouts, and its weights."""
        yield 0, 0, self._weights()

    def _trend(self) -> float:
        """Return what the errors of the latest rows add to log odds."""
        if record.shuffled(self._record):
            return 0.0
        trend = kernels.calibration.trend_from(self._record.errors)
        return float(self._record.curve[kernels.calibration.TREND] * trend)

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """What is added to scores so that zero is the operating point, of shape (1,)."""
        self._fitted("intercept_")
        return np.array([self._intercept_now()])

    def _intercept_now(self) -> float:
        if self._intercept is not None:
            return self._intercept
        seen = self._buffer.seen
        if not seen.all():  # rows of the class that has come, as large as rows may well be
            reach = 1.0 + _LARGEST_VALUE * float(np.abs(self._weights()).sum())
            return float(np.sign(int(seen[1]) - int(seen[0]))) * min(reach, _LARGEST_SCORE)
        share = self._record.share if self._record.share.all() else seen
        return self._intercept_at(share + 0.5, seen)

    def _intercept_at(self, counts: NDArray[np.float64], seen: NDArray[np.int64]) -> float:
        """Return the intercept with which zero is where rows are called positive, by class counts."""
        balanced = self.operating_point == "balanced"
        return self._intercept_called(counts, self._costs(seen), balanced)

    def _intercept_called(self, counts: Any, costs: Any, balanced: bool) -> float:
        """Return the intercept with which zero is where costs and class counts call rows positive."""
        held, anchor = self._record, self._served_anchor()
        place = kernels.calibration.place_called(
            counts, costs, balanced, self._trend(), held.shape, held.curve
        )
        intercept = -(anchor.middle + anchor.unit * place)
        return float(intercept) if np.isfinite(intercept) else 0.0

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
        self._fitted("even_odds")
        now = self._of_now()
        return now._intercept_now() - now._intercept_called(np.ones(2), np.ones(2), False)

    def _costs(self, seen: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the costs of a wrong row of each class; a balanced point needs no balanced costs."""
        if self.operating_point == "balanced" and not isinstance(self.class_weight, dict):
            return np.ones(2)
        return self.class_weights(self.classes_, seen)

    def _fitted_intercept(
        self,
        positive: NDArray[np.bool_],
        scores: NDArray[np.float64],
        weights: NDArray[np.float64],
    ) -> float:
        """Return the intercept after a fit, by the scores of its rows.

        The best threshold on few rows is a matter of chance. So a balanced one is where the honest
        curve puts it, unless the rows themselves speak against that by more than a standard error. Neither is
        a threshold taken that only tells rows apart whose scores are far beyond those of all others: in
        numbers as large, all other scores would be the same.
        """
        if not np.isfinite(scores).all():
            return 0.0
        if weights.max() > _VAST:
            weights = np.ldexp(weights, -64)  # which is exact
        seen = np.bincount(positive, minlength=2)
        balanced, costs = self.operating_point == "balanced", self._costs(seen)
        share = 0.5 if balanced else None
        best = operating_point_of(positive, scores, weights, costs[0], costs[1], share)
        honest = self._intercept_at(seen.astype(np.float64), seen)
        if balanced:
            called = scores + honest > 0.0
            gain = np.array([best.fpr, best.tpr]) - [
                np.average(called[positive == label], weights=weights[positive == label])
                for label in (False, True)
            ]
            error = np.sqrt((0.25 / seen).sum())
            if (costs / costs.sum() * [-2.0, 2.0]) @ gain <= error:
                return honest
        found = _below(best.threshold, scores)
        return found if kernels.buffers.are_among(-found, scores) else honest

    def _rows_of(self, buffer: Any) -> tuple[NDArray[np.int64], Any]:
        """Return the labels of a buffer's rows, and the rows, while another thread may fill it."""
        held = kernels.buffers.filled(buffer)
        labels = np.repeat([0, 1], held.sum(axis=1))
        if "rows" in buffer._fields:
            return labels, buffer.rows[held]
        length, begin = buffer.length[held], np.flatnonzero(held) * buffer.values.shape[2]
        indptr = np.concatenate([[0], np.cumsum(length)])
        at = np.arange(indptr[-1]) + np.repeat(begin - indptr[:-1], length)
        indices = buffer.indices.ravel()[at]
        width = max(self._width(), int(indices.max(initial=0)) + 1)
        rows = (buffer.values.ravel()[at], indices, indptr)
        return labels, sp.csr_array(rows, shape=(len(length), width))

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
        now = self._of_now()
        X = now._check_rows(X, reset=False)
        return now._scores(X) + now._intercept_now()

    def moment(self) -> Moment:
        """Return what the ranker serves now, for `judge` to go by while the ranker goes on learning.

        Returns
        -------
        Moment
            Weights, intercept and calibration.

        Examples
        --------
        >>> from cbrank import CBRanker
        >>> ranker = CBRanker().partial_fit([[0.0], [1.0]], [0, 1])
        >>> ranker.moment().intercept == ranker.intercept_[0]
        np.True_
        """
        check_is_fitted(self)
        now = self._of_now()
        return Moment(
            now,
            now._weights().copy(),
            now._intercept_now(),
            now._served_anchor(),
            now._trend(),
            now._record.shape.copy(),
            now._record.curve.copy(),
        )

    def judge(self, X: Any, *, with_std: bool = False, moment: Moment | None = None) -> Judged:
        """Return scores and probabilities of rows at once, so that they are read only once.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Rows.
        with_std : bool, default=False
            Whether to return standard deviations too, of a ranker that knows them.
        moment : Moment, optional
            What `moment` returned; by default that of now.

        Returns
        -------
        Judged
            All of one moment, whatever other threads learn meanwhile.

        Examples
        --------
        >>> from cbrank import CBRanker
        >>> ranker = CBRanker().partial_fit([[0.0], [1.0]], [0, 1])
        >>> judged = ranker.judge([[2.0]], with_std=True)
        >>> judged.scores == ranker.decision_function([[2.0]])
        array([ True])
        """
        held = self.moment() if moment is None else moment
        X = held.now._check_rows(X, reset=False)
        raw = _product(X, held.weights)
        std = held.now._std(X) if with_std else None
        probabilities = kernels.calibration.probabilities(held.log_odds(raw))
        return Judged(raw + held.intercept, std, probabilities[:, 1].copy())

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
        found: NDArray[np.float64] = np.empty((1, 2))
        if self.say_at_once("probabilities", X, found):
            return found
        check_is_fitted(self)
        now = self._of_now()
        X = now._check_rows(X, reset=False)
        return kernels.calibration.probabilities(now.log_odds(now._scores(X)))

    def log_odds(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log odds of the positive class at scores before the intercept.

        Parameters
        ----------
        scores : ndarray
            Scores ``X @ coef_``.

        Returns
        -------
        ndarray
            The logarithms of p / (1 - p).
        """
        anchor, held = self._served_anchor(), self._record
        moment = Moment(self, _NONE, 0.0, anchor, self._trend(), held.shape, held.curve)
        return moment.log_odds(scores)

    def calibration(self) -> Calibration:
        """Return how scores become log odds at this moment, for other runtimes.

        Returns
        -------
        Calibration
            The numbers behind `log_odds`.
        """
        check_is_fitted(self)
        now = self._of_now()
        shape, curve = now._record.shape, now._record.curve
        rising = np.append((np.diff(shape) > 0.0).all(axis=0), False)
        count = 1 + int(rising.argmin())
        along, line = kernels.calibration.factors_from(curve)
        return Calibration(
            now._served_anchor(),
            float(curve[kernels.calibration.OFFSET]) + now._trend(),
            float(along),
            float(line),
            shape[:, : count if count > 1 else 0].copy(),
        )

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores before the intercept; a row's own does not depend on those beside it."""
        if sp.issparse(X) and X.nnz < X.shape[1]:
            needed = (X.data, np.arange(X.nnz, dtype=X.indptr.dtype), X.indptr)
            one_column_each = sp.csr_array(needed, shape=(X.shape[0], X.nnz))
            return np.asarray(one_column_each @ self._weights_of(X.indices))
        return _product(X, self._weights())

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

    def say_at_once(self, what: str, X: Any, out: NDArray[np.float64]) -> bool:  # noqa: ARG002
        """Write what is said of a plain row by one compiled call, if there is one.

        Parameters
        ----------
        what : str
            "score" or "probabilities".
        X : object
            A table of one row.
        out : ndarray of shape (1,) or (1, 2)
            Where it is written.

        Returns
        -------
        bool
            Whether it was. If not, the row is to be checked.
        """
        return False

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


def _product(X: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the product of each row with the weights, whatever rows are beside it."""
    if sp.issparse(X):
        return np.asarray(X @ weights)
    if X.shape[1] != weights.size:
        raise ValueError(f"X has {X.shape[1]} features, and there are weights of {weights.size}.")
    scores: NDArray[np.float64] = kernels.scores.products(read_only(X), read_only(weights))
    return scores


def _interval(kept: record.Record, *, recent: bool) -> tuple[float, float]:
    auc, error = record.auc_of(kept, recent=recent), record.deviation_of(kept, recent=recent)
    return max(auc - _NORMAL_95 * error, 0.0), min(auc + _NORMAL_95 * error, 1.0)


def _below(threshold: float, scores: NDArray[np.float64]) -> float:
    """Return the intercept with which scores from the threshold on are above zero."""
    under = scores[scores < threshold]
    if not under.size:
        return -float(np.nextafter(threshold, -np.inf))
    highest = float(under.max())
    between = highest if np.isinf(threshold) else 0.5 * highest + 0.5 * threshold
    return -(between if highest <= between < threshold else highest)
