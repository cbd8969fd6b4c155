"""Confidence intervals of an AUC, by DeLong's variance in O(n log n).

By hand because neither SciPy nor scikit-learn has it.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, stdtrit

from cbrank.metrics.roc import checked


class AUCInterval(NamedTuple):
    """An AUC with its confidence interval.

    Parameters
    ----------
    auc : float
        The AUC of the rows given.
    low, high : float
        The confidence interval; nan where a class has one row only.
    std : float
        The standard deviation of the AUC by DeLong; nan where a class has one row only.

    See Also
    --------
    auc_interval : Measure it.

    Examples
    --------
    >>> from cbrank.metrics import AUCInterval
    >>> AUCInterval(auc=0.8, low=0.7, high=0.9, std=0.05).low
    0.7
    """

    auc: float
    low: float
    high: float
    std: float


def auc_interval(
    y_true: ArrayLike, y_score: ArrayLike, *, confidence: float = 0.95, pos_label: Any = None
) -> AUCInterval:
    """Measure the AUC and its confidence interval by DeLong's method.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels, numbers or strings, of two classes.
    y_score : array-like of shape (n_samples,)
        Finite scores; the greater, the more positive.
    confidence : float, default=0.95
        The confidence level, between 0 and 1: how often such intervals hold the true AUC.
    pos_label : int, float, bool or str, default=None
        The positive label. By default the greater of the two.

    Returns
    -------
    AUCInterval
        The AUC, the ends of the interval and the standard deviation.

    See Also
    --------
    sklearn.metrics.roc_auc_score : The AUC alone.

    Notes
    -----
    The variance is that of DeLong, DeLong and Clarke-Pearson [1]_, from midranks [2]_. The
    interval is symmetric on the scale ``log(AUC / (1 - AUC))`` and has Satterthwaite's degrees of
    freedom, so it stays between 0 and 1 and holds the true AUC more often than ``auc`` plus and
    minus 1.96 ``std``. With ten positives and an AUC near 1 its coverage is still too low.

    If all pairs are ranked right, or all wrong, DeLong's variance is 0; the interval is then the
    exact binomial one for as many independent pairs as the smaller class has rows.

    References
    ----------
    .. [1] E. DeLong, D. DeLong, D. Clarke-Pearson. "Comparing the areas under two or more
       correlated receiver operating characteristic curves: a nonparametric approach", 1988.
    .. [2] X. Sun, W. Xu. "Fast implementation of DeLong's algorithm for comparing the areas under
       correlated receiver operating characteristic curves", 2014.

    Examples
    --------
    >>> from cbrank.metrics import auc_interval
    >>> found = auc_interval([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    >>> [round(value, 3) for value in found]
    [0.889, 0.088, 0.998, 0.157]
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1; got {confidence!r}")
    positive, scores, _ = checked(y_true, y_score, pos_label, None)
    above, below = scores[positive], scores[~positive]
    tail = (1 - confidence) / 2
    auc, variances = _delong(above, below)
    if min(above.size, below.size) == 1:
        return AUCInterval(auc, math.nan, math.nan, math.nan)
    std = math.sqrt(variances.sum())
    if auc in (0.0, 1.0):
        least = tail ** (1 / min(above.size, below.size))
        return AUCInterval(auc, least if auc else 0.0, 1.0 if auc else 1 - least, std)
    freedom = _freedom(variances, np.array([above.size, below.size]))
    reach = -stdtrit(freedom, tail) * std / (auc * (1 - auc))
    return AUCInterval(auc, float(expit(logit(auc) - reach)), float(expit(logit(auc) + reach)), std)


def _delong(
    above: NDArray[np.float64], below: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return the AUC and what positives and negatives add to its variance."""
    ranks = _midranks(np.concatenate([above, below]))
    right = ranks[: above.size] - _midranks(above)  # of each positive: negatives below it
    wrong = ranks[above.size :] - _midranks(below)  # of each negative: positives below it
    auc = float(right.sum() / (above.size * below.size))
    parts = [
        np.square(part / others - part.mean() / others).sum() / max(part.size - 1, 1) / part.size
        for part, others in ((right, below.size), (wrong, above.size))
    ]
    return auc, np.array(parts)


def _midranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ranks from 1, of equal values their mean; `scipy.stats` takes long to import."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = np.cumsum(counts) - (counts - 1) / 2
    return ranks[places]


def _freedom(variances: NDArray[np.float64], sizes: NDArray[np.int64]) -> float:
    """Return Satterthwaite's degrees of freedom; without variance any number will do."""
    spread = (variances**2 / (sizes - 1)).sum()
    return float(variances.sum() ** 2 / spread) if spread > 0 else 1.0
