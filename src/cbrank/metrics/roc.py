"""The ROC curve: its area, and the operating point of least cost."""

import math
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cbrank.checks import is_plainly_binary, refuse_masked


class OperatingPoint(NamedTuple):
    """A threshold on the score and the rates it gives.

    Parameters
    ----------
    threshold : float
        Rows whose score is at least this are called positive; ``inf`` calls none.
    fpr : float
        Share of the negatives called positive.
    tpr : float
        Share of the positives called positive.

    See Also
    --------
    optimal_operating_point : Find the point of least cost.

    Examples
    --------
    >>> from cbrank.metrics import OperatingPoint
    >>> OperatingPoint(threshold=0.5, fpr=0.1, tpr=0.8).tpr
    0.8
    """

    threshold: float
    fpr: float
    tpr: float


def optimal_operating_point(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    cost_fp: float = 1.0,
    cost_fn: float = 1.0,
    prior: float | None = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> OperatingPoint:
    """Find the point of the ROC curve where decisions cost least.

    It minimises ``FPR - TPR / S`` with ``S = cost_fp / cost_fn * N / P`` over all distinct
    scores as thresholds and over calling no row positive; among equals, the lowest FPR wins.
    With right decisions costing nothing, this is OPTROC of MATLAB's ``perfcurve``.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels, numbers or strings, of two classes.
    y_score : array-like of shape (n_samples,)
        Finite scores; the greater, the more positive.
    cost_fp, cost_fn : float, default=1.0
        Cost of calling a negative positive and of calling a positive negative.
    prior : float, default=None
        Share of positives where the threshold will be used, between 0 and 1. By default the
        share among the rows given.
    pos_label : int, float, bool or str, default=None
        The positive label. By default the greater of the two.
    sample_weight : array-like of shape (n_samples,), default=None
        How many times each row counts.

    Returns
    -------
    OperatingPoint
        The threshold, its false positive rate and its true positive rate.

    See Also
    --------
    accuracy_at_operating_point : The accuracy at that threshold.

    Notes
    -----
    Costs and prior are taken as the decimal numbers that they print as, and points whose costs
    differ by no more than rounding are compared in exact fractions: with whole sample weights a
    tie is a tie.

    Examples
    --------
    >>> from cbrank.metrics import optimal_operating_point
    >>> y, scores = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    >>> optimal_operating_point(y, scores)
    OperatingPoint(threshold=0.5, fpr=0.0, tpr=0.6666666666666666)

    A missed positive that costs twice a false alarm asks for a lower threshold:

    >>> optimal_operating_point(y, scores, cost_fn=2).threshold
    0.3
    """
    rows = checked(y_true, y_score, pos_label, sample_weight)
    return operating_point_of(*rows, cost_fp, cost_fn, prior)


def operating_point_of(
    positive: NDArray[np.bool_],
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
    cost_fp: float,
    cost_fn: float,
    prior: float | None,
) -> OperatingPoint:
    """Do what `optimal_operating_point` does without its checks, which dominate on a few rows."""
    curve = _curve(positive, scores, weights)
    best = _cheapest(curve, cost_fp, cost_fn, prior)
    return OperatingPoint(
        threshold=float(curve.thresholds[best]),
        fpr=float(curve.fp[best] / curve.fp[-1]),
        tpr=float(curve.tp[best] / curve.tp[-1]),
    )


def accuracy_at_operating_point(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    cost_fp: float = 1.0,
    cost_fn: float = 1.0,
    prior: float | None = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Accuracy at the optimal operating point of these very rows.

    It is ``(TPR * P + (1 - FPR) * N) / (P + N)``. The threshold is chosen on the labels it is
    measured on, so this flatters: with equal costs it is the best accuracy of any threshold.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels, numbers or strings, of two classes.
    y_score : array-like of shape (n_samples,)
        Finite scores; the greater, the more positive.
    cost_fp, cost_fn : float, default=1.0
        Cost of calling a negative positive and of calling a positive negative.
    prior : float, default=None
        ``P / (P + N)``, the share of positives that both the threshold and the accuracy are
        meant for. By default the share among the rows given.
    pos_label : int, float, bool or str, default=None
        The positive label. By default the greater of the two.
    sample_weight : array-like of shape (n_samples,), default=None
        How many times each row counts.

    Returns
    -------
    float
        The accuracy, between 0 and 1.

    See Also
    --------
    optimal_operating_point : The threshold this is measured at.

    Examples
    --------
    >>> from cbrank.metrics import accuracy_at_operating_point
    >>> y, scores = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    >>> round(accuracy_at_operating_point(y, scores), 4)
    0.8333
    """
    curve = _curve(*checked(y_true, y_score, pos_label, sample_weight))
    best = _cheapest(curve, cost_fp, cost_fn, prior)
    positives, negatives = curve.tp[-1], curve.fp[-1]
    true_positives, true_negatives = curve.tp[best], negatives - curve.fp[best]
    if prior is None:
        return float((true_positives + true_negatives) / (positives + negatives))
    return float(prior * true_positives / positives + (1 - prior) * true_negatives / negatives)


def auc_of(
    positive: NDArray[np.bool_], scores: NDArray[np.float64], weights: NDArray[np.float64]
) -> float:
    """Return the share of (positive, negative) pairs ranked right, ties half, without checks.

    Counts of whole weights are exact, so that equal rankings have exactly equal AUCs; and it takes
    a tenth of the time of scikit-learn's function.
    """
    # Scaled by a power of two, which is exact: products of counts then cannot overflow.
    near_one = np.ldexp(weights, -np.frexp(weights.max())[1])
    _, fp, tp = _curve(positive, scores, near_one)
    below = fp[-1] - (fp[1:] + fp[:-1]) / 2
    return float((np.diff(tp) * below).sum() / (tp[-1] * fp[-1]))


class _RocCounts(NamedTuple):
    """Weight of the false and true positives at each threshold, from no row called positive to all."""

    thresholds: NDArray[np.float64]
    fp: NDArray[np.float64]
    tp: NDArray[np.float64]


def _curve(
    positive: NDArray[np.bool_], scores: NDArray[np.float64], weights: NDArray[np.float64]
) -> _RocCounts:
    falling = np.argsort(-scores, kind="stable")
    thresholds = np.concatenate(([np.inf], scores[falling]))
    last_of_its_score = np.concatenate((thresholds[1:] != thresholds[:-1], [True]))
    fp = np.concatenate(([0.0], (weights * ~positive)[falling])).cumsum()
    tp = np.concatenate(([0.0], (weights * positive)[falling])).cumsum()
    return _RocCounts(*(part[last_of_its_score] for part in (thresholds, fp, tp)))


def _cheapest(curve: _RocCounts, cost_fp: float, cost_fn: float, prior: float | None) -> int:
    false_alarm, miss = _exact("cost_fp", cost_fp), _exact("cost_fn", cost_fn)
    negatives, positives = curve.fp[-1], curve.tp[-1]
    if prior is not None:
        share = _exact("prior", prior, below=1)
        false_alarm *= (1 - share) * Fraction(positives)
        miss *= share * Fraction(negatives)
    return _first_least(curve, per_fp=false_alarm / miss)


def _first_least(curve: _RocCounts, per_fp: Fraction) -> int:
    """Return the first minimum of ``per_fp * fp - tp``: in floats, then among near ties exactly."""
    a_fp, a_tp = (float(per_fp), 1.0) if per_fp < 1 else (1.0, float(1 / per_fp))
    cost = a_fp * curve.fp - a_tp * curve.tp
    rounding = 4 * np.finfo(np.float64).eps * (curve.fp[-1] + curve.tp[-1])
    near = np.flatnonzero(cost <= cost.min() + rounding)
    if len(near) == 1:
        return int(near[0])
    counts = zip(curve.fp[near].tolist(), curve.tp[near].tolist(), strict=True)
    exact = [per_fp * Fraction(fp) - Fraction(tp) for fp, tp in counts]
    return int(near[exact.index(min(exact))])


def _exact(name: str, value: float, below: float = math.inf) -> Fraction:
    if not 0 < value < below:
        raise ValueError(f"{name} must be above 0 and below {below}; got {value!r}")
    return Fraction(repr(float(value)))


# Checks of input ----------------------------------------------------------------------------------


def checked(
    y_true: ArrayLike, y_score: ArrayLike, pos_label: Any, sample_weight: ArrayLike | None
) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    for name, values in {
        "y_true": y_true,
        "y_score": y_score,
        "sample_weight": sample_weight,
    }.items():
        refuse_masked(name, values)
    labels = as_column(y_true)
    scores = as_column(y_score, np.float64)
    _refuse_other_length(labels, scores)
    positive = _positives(labels, pos_label)
    forbid(~np.isfinite(scores), scores, "y_score must be finite")
    return positive, scores, _weights(sample_weight, positive)


def as_column(values: Any, dtype: type | None = None) -> NDArray[Any]:
    """Return an array of one dimension; scikit-learn is asked only if this is none."""
    if type(values) is np.ndarray and values.ndim == 1 and dtype in (None, values.dtype):
        return values
    from sklearn.utils import column_or_1d  # noqa: PLC0415

    column: NDArray[Any] = column_or_1d(values, dtype=dtype)
    return column


def _refuse_other_length(one: NDArray[Any], other: NDArray[Any]) -> None:
    if len(one) != len(other):
        from sklearn.utils import check_consistent_length  # noqa: PLC0415

        check_consistent_length(one, other)


def _positives(labels: NDArray[Any], pos_label: Any) -> NDArray[np.bool_]:
    check_none_missing(labels)
    if not is_plainly_binary(labels):
        from sklearn.utils.multiclass import type_of_target  # noqa: PLC0415

        kind = type_of_target(labels, input_name="y_true")
        if kind != "binary":
            raise ValueError(f"y_true must be binary; it is {kind}")
    classes = np.unique(labels).tolist()
    if len(classes) < 2:
        raise ValueError(f"y_true must hold both classes; all of it is {classes}")
    if pos_label is None:
        pos_label = classes[-1]
    elif pos_label not in classes:
        raise ValueError(f"pos_label={pos_label!r} is not a label of y_true, which holds {classes}")
    return np.asarray(labels == pos_label, dtype=np.bool_)


def check_none_missing(labels: NDArray[Any]) -> None:
    if labels.dtype.kind == "f":
        forbid(np.isnan(labels), labels, "y_true must not be NaN")
    elif labels.dtype.kind == "O":
        missing = np.array([not _is_label(label) for label in labels], dtype=np.bool_)
        forbid(missing, labels, "y_true must hold numbers or strings")


def _is_label(label: object) -> bool:
    return isinstance(label, str) or (
        isinstance(label, Real | np.bool_) and not math.isnan(float(label))
    )


def _weights(sample_weight: ArrayLike | None, positive: NDArray[np.bool_]) -> NDArray[np.float64]:
    if sample_weight is None:
        return np.ones(positive.size)
    weights: NDArray[np.float64] = as_column(sample_weight, np.float64)
    _refuse_other_length(positive, weights)
    forbid(~(np.isfinite(weights) & (weights >= 0)), weights, "sample_weight must be 0 or more")
    if not (weights[positive].any() and weights[~positive].any()):
        raise ValueError("sample_weight leaves only one class with rows that count")
    # Sums of whole weights below 2^53 are exact; larger weights are scaled so that none overflows.
    largest = float(weights.max())
    return weights if largest < 2.0**53 else weights / largest


def forbid(bad: NDArray[np.bool_], values: NDArray[Any], rule: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"{rule}; row {row} is {values[row]}")
