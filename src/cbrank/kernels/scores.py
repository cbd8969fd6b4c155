"""Scores of rows and their anchor, each number by the same operations wherever it is needed.

All sums here are added up in the order in which they stand, so that a row has the same score to the
last bit alone (``one_row``) and among others.
"""

import math
from typing import Any

import numpy as np

from cbrank.kernels._jit import exact_jit, exact_kernel
from cbrank.kernels.prequential import unit_from

NEGLIGIBLE = 1e-6  # weight of a readout that is left out of what is served

_unit_of = exact_jit(unit_from)


@exact_jit
def _score_of(x, w):
    """Return x . w, by four sums, of which a processor makes one step each at a time."""
    a, b, c, d, i = 0.0, 0.0, 0.0, 0.0, 0
    while i + 4 <= w.size:
        a += x[i] * w[i]
        b += x[i + 1] * w[i + 1]
        c += x[i + 2] * w[i + 2]
        d += x[i + 3] * w[i + 3]
        i += 4
    while i < w.size:
        a += x[i] * w[i]
        i += 1
    return (a + b) + (c + d)


@exact_kernel
def products(X: Any, weights: Any) -> Any:
    """Return the product of each row with the weights."""
    scores = np.empty(len(X))
    for k in range(len(X)):
        scores[k] = _score_of(X[k], weights)
    return scores


@exact_jit
def _anchor_by_means(means, weights, level):
    """Return the score of the midpoint of two class means, and the unit that their distance makes."""
    middle, gap = 0.0, 0.0
    for i in range(weights.size):
        middle += (0.5 * means[0, i] + 0.5 * means[1, i]) * weights[i]
        gap += (means[1, i] - means[0, i]) * weights[i]
    return _sound_anchor(middle, gap, level)


@exact_jit
def _anchor_by_scores(centre, level):
    """Return the midpoint of the mean scores of two classes, and the unit."""
    return _sound_anchor(0.5 * (centre[0] + centre[1]), centre[1] - centre[0], level)


@exact_jit
def _sound_anchor(middle, gap, level):
    if not abs(middle) < math.inf:
        return 0.0, 1.0
    return middle, _unit_of(gap, level)


@exact_kernel
def anchor(means: Any, weights: Any, centre: Any, level: float) -> Any:
    """Return the score of the midpoint of the classes and its unit, by means of rows if there are any."""
    if means.size:
        return _anchor_by_means(means, weights, level)
    return _anchor_by_scores(centre, level)
