"""Platt scaling: a logistic curve fitted to scores whose labels are known.

Newton's method with step halving, as in Lin, Lin and Weng, "A note on Platt's probabilistic outputs
for support vector machines", 2007. Targets are (n+ + 1) / (n+ + 2) and 1 / (n- + 2) instead of 1
and 0, so that a few rows never give a probability of 0 or 1.
"""

import math

import numpy as np

from cbrank.kernels._jit import jit, kernel

_STEPS = 100  # at most, as in the paper
# Decrease of the mean loss that a step promises, below which it is the last: Newton's error is
# squared with each step, so the next would gain nothing. Also the least fraction of a step.
_NEAR = 1e-9
# Least slope per standard deviation of the scores. Scores that say nothing, or the contrary, of
# their labels would give a slope of 0 or less: probabilities must be ordered as the scores are.
_FLATTEST = 0.01


@jit
def _loss(score, target, weight, slope, offset):
    """Return the cross-entropy of the curve, in a form that does not overflow."""
    total = 0.0
    for i in range(score.size):
        logit = slope * score[i] + offset
        total += weight[i] * (max(logit, 0.0) - target[i] * logit)
        total += weight[i] * math.log1p(math.exp(-abs(logit)))
    return total


@jit
def _derivatives(score, target, weight, slope, offset):
    """Return the gradient (g, h) of the loss and its Hessian ((a, b), (b, c))."""
    g, h, a, b, c = 0.0, 0.0, 1e-12, 0.0, 1e-12  # a ridge keeps the Hessian invertible
    for i in range(score.size):
        p = 1.0 / (1.0 + math.exp(-(slope * score[i] + offset)))
        first, second = weight[i] * (p - target[i]), weight[i] * p * (1.0 - p)
        g += first * score[i]
        h += first
        a += second * score[i] * score[i]
        b += second * score[i]
        c += second
    return g, h, a, b, c


@jit
def _newton(score, target, weight, offset):
    """Return the slope and the offset of least loss, from slope 0 and the given offset on."""
    slope, loss = 0.0, _loss(score, target, weight, 0.0, offset)
    for _ in range(_STEPS):
        g, h, a, b, c = _derivatives(score, target, weight, slope, offset)
        down, across = (b * h - c * g) / (a * c - b * b), (b * g - a * h) / (a * c - b * b)
        gain, step = -(g * down + h * across), 1.0
        last = gain <= _NEAR * score.size
        while step > _NEAR:
            less = _loss(score, target, weight, slope + step * down, offset + step * across)
            if last or less <= loss - 1e-4 * step * gain:  # Armijo's condition, as in the paper
                slope, offset, loss = slope + step * down, offset + step * across, less
                break
            step /= 2.0
        if last or step <= _NEAR:
            break
    return slope, offset


@kernel
def fit(scores: np.ndarray, labels: np.ndarray, shares: np.ndarray) -> tuple[float, float, float]:
    """Return (middle, slope, offset): the log odds of a score are slope (score - middle) + offset.

    `shares` are the shares of the two classes in the stream. Rows here may have others: buffers hold
    as many rows of a rare class as of the other. The slope is positive, so that probabilities are
    ordered as the scores are.
    """
    middle, spread = scores.mean(), scores.std()
    spread = spread if spread > 0.0 else 1.0
    positive = labels.sum()
    count = (labels.size - positive, positive)
    score, target, weight = np.empty(scores.size), np.empty(scores.size), np.empty(scores.size)
    for i in range(scores.size):
        label = labels[i]
        score[i] = (scores[i] - middle) / spread
        target[i] = ((count[1] + 1.0) if label else 1.0) / (count[label] + 2.0)
        weight[i] = shares[label] * scores.size / count[label]
    offset = math.log(shares[1] / shares[0])
    slope, offset = _newton(score, target, weight, offset)
    return middle, max(slope, _FLATTEST) / spread, offset
