"""The AUC of the last rows of a stream."""

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cbrank import kernels
from cbrank.checks import refuse_masked
from cbrank.locking import Owner
from cbrank.metrics.roc import as_column, check_none_missing, forbid


class ProgressiveAUC(Owner):
    """Exact ROC AUC of the last rows of a stream.

    Score each row before learning from it and pass label and score to `update`: `get` is then the
    AUC on rows that the learner had not seen, without a test set. Ties count half. A row takes
    O(log window) time; pairs are counted in integers, so that no rounding error builds up.

    Parameters
    ----------
    window : int, default=1000
        How many of the last rows count.
    pos_label : int, float, bool or str, default=1
        The positive label; every other label is negative.

    See Also
    --------
    sklearn.metrics.roc_auc_score : The AUC of all rows at once.

    Examples
    --------
    >>> from cbrank.metrics import ProgressiveAUC
    >>> auc = ProgressiveAUC(window=4)
    >>> auc.update([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.9]).get()
    0.75
    >>> auc.update(0, 0.4).get()
    0.625
    """

    def __init__(self, window: int = 1000, pos_label: Any = 1) -> None:
        if type(window) is not int or window < 1:
            from sklearn.utils import check_scalar  # noqa: PLC0415

            check_scalar(window, "window", Integral, min_val=1)
        self.window = int(window)
        self.pos_label = pos_label
        self._window = kernels.window_auc.empty(self.window)

    def __getstate__(self) -> dict[str, Any]:
        with self._own.lock:  # a copy in the middle of an update would have broken links
            window = type(self._window)(*map(np.copy, self._window))
            return super().__getstate__() | {"_window": window}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(window={self.window!r}, pos_label={self.pos_label!r})"

    @property
    def n_rows(self) -> int:
        """Rows in the window now.

        Returns
        -------
        int
            Number of rows.

        Examples
        --------
        >>> from cbrank.metrics import ProgressiveAUC
        >>> ProgressiveAUC(window=2).update([0, 1, 1], [0.1, 0.2, 0.3]).n_rows
        2
        """
        return kernels.window_auc.n_rows(self._window)

    def update(self, y_true: ArrayLike, y_score: ArrayLike) -> Self:
        """Add scored rows, in order.

        Parameters
        ----------
        y_true : scalar or array-like of shape (n_samples,)
            Labels.
        y_score : scalar or array-like of shape (n_samples,)
            Scores; they may be infinite.

        Returns
        -------
        ProgressiveAUC
            The object itself.

        Raises
        ------
        ValueError
            If a score is NaN or the lengths differ; no row is then added.

        Examples
        --------
        >>> from cbrank.metrics import ProgressiveAUC
        >>> ProgressiveAUC(pos_label="spam").update(["ham", "spam"], [-1.5, 2.0]).get()
        1.0
        """
        labels, scores = _rows("y_true", y_true), _rows("y_score", y_score, np.float64)
        if labels.size != scores.size:
            raise ValueError(f"y_true has {labels.size} rows, y_score {scores.size}")
        forbid(np.isnan(scores), scores, "y_score must not be NaN")
        positive = _stream_positives(labels, self.pos_label).astype(np.int64)
        with self._own.lock:
            kernels.window_auc.slide(self._window, positive, scores)
        return self

    def get(self) -> float:
        """AUC of the rows in the window.

        Returns
        -------
        float
            The AUC, or nan while the window lacks one of the classes.

        Examples
        --------
        >>> from cbrank.metrics import ProgressiveAUC
        >>> ProgressiveAUC().update(1, 0.5).get()
        nan
        """
        return kernels.window_auc.auc(self._window)


def _rows(name: str, values: ArrayLike, dtype: type | None = None) -> NDArray[Any]:
    """Copy a scalar or a column.

    Not by scikit-learn's checks, which take as long as counting a hundred rows.
    """
    if isinstance(values, np.ndarray):
        refuse_masked(name, values)
    array = np.array(values, dtype=dtype)
    return array.reshape(-1) if array.ndim < 2 else as_column(array).copy()


def _stream_positives(labels: NDArray[Any], pos_label: Any) -> NDArray[np.bool_]:
    check_none_missing(labels)
    if labels.size and isinstance(labels[0], str) != isinstance(pos_label, str):
        raise ValueError(f"y_true holds {labels[:1].tolist()}, never pos_label={pos_label!r}")
    return np.asarray(labels == pos_label, dtype=np.bool_)
