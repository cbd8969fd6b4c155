"""The operating point of a fit, from the scores of its rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.learning import served
from cbrank.learning.served import Anchor
from cbrank.learning.state import State
from cbrank.metrics.roc import operating_point_of

Floats = NDArray[np.float64]

_VAST = 2.0**950  # beyond this, sums of weights could overflow


def intercept_of_fit(
    state: State, anchor: Anchor, rows: Any, costs: Floats, balanced: bool
) -> float:
    """Return the intercept after a fit, by the labels, scores and weights of its rows.

    The best threshold on few rows is a matter of chance. So a balanced one is where the honest
    curve puts it, unless the rows themselves speak against that by more than a standard error. Neither is
    a threshold taken that only tells rows apart whose scores are far beyond those of all others: in
    numbers as large, all other scores would be the same.
    """
    positive, scores, weights = rows
    if not np.isfinite(scores).all():
        return 0.0
    if weights.max() > _VAST:
        weights = np.ldexp(weights, -64)  # which is exact
    seen = np.bincount(positive, minlength=2)
    share = 0.5 if balanced else None
    best = operating_point_of(positive, scores, weights, costs[0], costs[1], share)
    honest = served.intercept_at(state, anchor, seen.astype(np.float64), costs, balanced)
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


def _below(threshold: float, scores: NDArray[np.float64]) -> float:
    """Return the intercept with which scores from the threshold on are above zero."""
    under = scores[scores < threshold]
    if not under.size:
        return -float(np.nextafter(threshold, -np.inf))
    highest = float(under.max())
    between = highest if np.isinf(threshold) else 0.5 * highest + 0.5 * threshold
    return -(between if highest <= between < threshold else highest)
