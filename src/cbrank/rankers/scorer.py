"""What all rankers can do once they have learned: score, predict and be measured."""

from abc import ABCMeta, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted

from cbrank.metrics.roc import auc_of, operating_point_of, optimal_operating_point
from cbrank.rankers import checks


class LinearScorer(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """A linear ranking score, with the threshold at which it predicts."""

    classes_: NDArray[Any]
    _model: Any  # a tuple of arrays, the kernel's
    _buffer: Any
    _sparse: bool
    _threshold: float | None  # of the rows of a fit
    _stream_threshold: tuple[tuple[Any, ...], float] | None = None  # of the buffer, and for what

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

    @property
    def threshold_(self) -> float:
        """Score from which rows are predicted positive."""
        self._fitted("threshold_")
        if self._threshold is not None:
            return self._threshold
        buffer = self._buffer
        seen = buffer.seen.copy()
        if not seen.all():
            return np.inf if seen[0] else -np.inf
        costs = tuple(self.class_weights(self.classes_, seen).tolist())
        given = (*costs, getattr(self, "average", None), int(seen.sum()))
        known = self._stream_threshold
        if known is None or known[0] != given:
            share = float(seen[1] / seen.sum())
            self._stream_threshold = known = given, self._buffered_threshold(buffer, share, *costs)
        return known[1]

    def _buffered_threshold(
        self, buffer: Any, share: float, cost_fp: float, cost_fn: float
    ) -> float:
        """Return the optimal operating point of buffered rows at the stream's share of positives."""
        labels, rows = self._rows_of(buffer)
        scores = self._scores(rows)
        if not np.isfinite(scores).all() or len(np.unique(labels)) < 2:
            return np.inf
        weights = np.ones(len(scores))
        return operating_point_of(labels == 1, scores, weights, cost_fp, cost_fn, share).threshold

    @staticmethod
    def _operating_point(
        labels: NDArray[np.int64], scores: NDArray[np.float64], **options: Any
    ) -> float:
        if not np.isfinite(scores).all():
            return np.inf
        return float(optimal_operating_point(labels, scores, **options).threshold)

    def _rows_of(self, buffer: Any) -> tuple[NDArray[np.int64], Any]:
        """Return the labels of a buffer's rows, and the rows, while another thread may fill it."""
        sizes = buffer.size.copy()
        labels = np.repeat([0, 1], sizes)
        if "rows" in buffer._fields:
            held = zip(buffer.rows, sizes, strict=True)
            return labels, np.concatenate([rows[:size] for rows, size in held])
        held = np.arange(buffer.length.shape[1]) < sizes[:, None]
        length, begin = buffer.length[held], np.flatnonzero(held) * buffer.values.shape[2]
        indptr = np.concatenate([[0], np.cumsum(length)])
        at = np.arange(indptr[-1]) + np.repeat(begin - indptr[:-1], length)
        indices = buffer.indices.ravel()[at]
        width = max(self.n_features_in_, int(indices.max(initial=0)) + 1)
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
        return self._scores(checks.check_rows(self, X, reset=False))

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores; a row's own does not depend on the rows beside it."""
        if sp.issparse(X):
            if X.nnz >= X.shape[1]:
                return np.asarray(X @ self._weights())
            needed = (X.data, np.arange(X.nnz, dtype=X.indptr.dtype), X.indptr)
            one_column_each = sp.csr_array(needed, shape=(X.shape[0], X.nnz))
            return np.asarray(one_column_each @ self._weights_of(X.indices))
        scores: NDArray[np.float64] = np.einsum("ij,j->i", X, self._weights())
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the positive class where the score reaches `threshold_`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            One of the two labels for each row.
        """
        scores = self.decision_function(X)
        return self.classes_[(scores >= self.threshold_).astype(np.int64)]

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
        labels = checks.encode(checks.check_labels(y, X), self.classes_)
        weights = checks.check_weights(sample_weight, scores)
        if np.isfinite(scores).all() and len(np.unique(labels[weights > 0])) == 2:
            return auc_of(labels == 1, scores, weights)
        return float(roc_auc_score(labels, scores, sample_weight=sample_weight))  # it says why not
