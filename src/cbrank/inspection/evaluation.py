"""How well scored rows are ranked."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from cbrank.metrics import AUCInterval, auc_interval, optimal_operating_point


@dataclass(frozen=True)
class Decision:
    """What a threshold on the score decides.

    Attributes
    ----------
    threshold : float
        Rows whose score is at least this are called positive; ``inf`` calls none.
    accuracy : float
        Share of the rows called right.
    fpr, tpr : float
        Shares of the negatives and of the positives that are called positive.
    """

    threshold: float
    accuracy: float
    fpr: float
    tpr: float


@dataclass(frozen=True)
class Evaluation:
    """Measures of scored rows.

    Attributes
    ----------
    rows, positives : int
        How many there are.
    auc : AUCInterval
        The AUC with its 95% confidence interval.
    average_precision : float
        The average precision.
    own, best : Decision
        At the model's threshold, and at the optimal operating point of these very rows.
    """

    rows: int
    positives: int
    auc: AUCInterval
    average_precision: float
    own: Decision
    best: Decision

    def interval(self) -> str:
        """Say between what the AUC lies."""
        if math.isnan(self.auc.low):
            return "no interval from one row of a class"
        return f"95% interval {self.auc.low:.4f} to {self.auc.high:.4f}"


def evaluate(
    y: NDArray[np.int64], scores: NDArray[np.float64], threshold: float = 0.0
) -> Evaluation:
    """Measure scored rows.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels, 1 for positive and 0 for negative; there are both.
    scores : ndarray of shape (n_samples,)
        Their scores.
    threshold : float, default=0
        Scores above it are called positive.

    Returns
    -------
    Evaluation
        The measures.

    Examples
    --------
    >>> import numpy as np
    >>> y, scores = np.array([0, 0, 1, 0, 1, 1]), np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    >>> found = evaluate(y, scores, threshold=0.1)
    >>> round(found.auc.auc, 3), round(found.own.accuracy, 3), round(found.best.accuracy, 3)
    (0.889, 0.667, 0.833)
    """
    best = optimal_operating_point(y, scores, pos_label=1).threshold
    return Evaluation(
        rows=len(y),
        positives=int(y.sum()),
        auc=auc_interval(y, scores, pos_label=1),
        average_precision=float(average_precision_score(y, scores)),
        own=_decision(y == 1, scores > threshold, threshold),
        best=_decision(y == 1, scores >= best, best),
    )


def _decision(positive: NDArray[np.bool_], called: NDArray[np.bool_], threshold: float) -> Decision:
    return Decision(
        threshold=threshold,
        accuracy=float((called == positive).mean()),
        fpr=float(called[~positive].mean()),
        tpr=float(called[positive].mean()),
    )
