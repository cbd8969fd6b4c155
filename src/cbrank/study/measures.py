"""The measures that the study reports of a fit."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank.metrics.roc import accuracy_at_operating_point, auc_of

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


class Measures(NamedTuple):
    """The measures of a fit on the test rows.

    Attributes
    ----------
    auc, accuracy : float
        The paper's: the area under the ROC curve, and the accuracy at the operating point that
        is optimal for the test rows themselves.
    accuracy_held, balanced_held : float
        Accuracy and balanced accuracy at the operating point that is optimal for the training
        rows, errors of both kinds costing alike.
    """

    auc: float
    accuracy: float
    accuracy_held: float
    balanced_held: float


def auc(y: Labels, scores: Floats) -> float:
    """Return the share of (positive, negative) pairs ranked right, ties counted half.

    Examples
    --------
    >>> auc(np.array([0, 1, 0, 1]), np.array([0.1, 0.4, 0.4, 0.9]))
    0.875
    """
    return auc_of(y == 1, scores, np.ones(len(y)))


def measure(y: Labels, scores: Floats, threshold: float) -> Measures:
    """Measure the scores of test rows.

    Examples
    --------
    >>> measure(np.array([0, 0, 1]), np.array([0.1, 0.6, 0.8]), threshold=0.5)
    Measures(auc=1.0, accuracy=1.0, accuracy_held=0.6666666666666666, balanced_held=0.75)
    """
    right = (scores >= threshold) == (y == 1)
    balanced = (right[y == 1].mean() + right[y == 0].mean()) / 2
    accuracy = accuracy_at_operating_point(y, scores)
    return Measures(auc(y, scores), accuracy, float(right.mean()), float(balanced))
