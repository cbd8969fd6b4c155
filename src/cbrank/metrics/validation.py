"""Validation of labels, scores and weights."""

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import type_of_target

from cbrank.arrays import refuse_masked


def checked(
    y_true: ArrayLike, y_score: ArrayLike, pos_label: Any, sample_weight: ArrayLike | None
) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    for name, values in {
        "y_true": y_true,
        "y_score": y_score,
        "sample_weight": sample_weight,
    }.items():
        refuse_masked(name, values)
    labels = column_or_1d(y_true)
    scores = column_or_1d(y_score, dtype=np.float64)
    check_consistent_length(labels, scores)
    positive = _positives(labels, pos_label)
    forbid(~np.isfinite(scores), scores, "y_score must be finite")
    return positive, scores, _weights(sample_weight, positive)


def _positives(labels: NDArray[Any], pos_label: Any) -> NDArray[np.bool_]:
    check_none_missing(labels)
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
    weights: NDArray[np.float64] = column_or_1d(sample_weight, dtype=np.float64)
    check_consistent_length(positive, weights)
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
