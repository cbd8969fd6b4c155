"""Confidence-weighted bipartite ranking: the ranker, and the step of Propositions 1 and 2.

Names are the paper's: the ranker is a Gaussian of mean ``mu`` and covariance ``Sigma``, or of
mean ``mu`` and per-feature precision ``G``; ``z`` is the new row minus a buffered one.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from cbrank.kernels._jit import jit
from cbrank.kernels.vectors import margin_of

DIAGONAL_FORMS = ("paper", "precision", "drop")
PAPER, PRECISION, DROP = range(3)
ROWS, PAIRS, UPDATES, TWICE_RIGHT = range(4)

EPSILON = np.finfo(np.float64).eps
LARGEST_C = 1e150  # a larger one would not change a step, but could overflow
SMALLEST_VARIANCE = 1e-305  # of a weight: it and its inverse are normal numbers
_SMALLEST_PAIR = 1e-290  # variance of a pair that may move the mean: beta stays finite
_ROUNDING = 1e-12  # share of its terms below which the variance of a pair may be rounding alone
_VAGUE = 1e-7  # share below which it has lost half its digits, and depends on the order of sums
_SURE = 1e-4  # variance of a score that is sure enough to be left alone if it is vague
WIDEST = 2.0**17  # deviation of a score that one column may bring about: see narrowed
_ALL_BUT_ROUNDING = 1.0 - 1e-12  # of the wanted margin: the pair updated last has just that
TIED = 1e-9  # share of two scores by which they differ where rounding might tell


class FullModel(NamedTuple):
    """A Gaussian over weights with full covariance."""

    mu: np.ndarray  # (d,)
    Sigma: np.ndarray  # (d, d)
    lag: np.ndarray  # (d,) of the average behind the mean: see averaged_mean
    tally: np.ndarray  # (4,) rows, pairs, updates, twice the pairs ranked right


class DiagonalModel(NamedTuple):
    """A Gaussian over weights with one precision per feature."""

    mu: np.ndarray
    G: np.ndarray  # (d,)
    lag: np.ndarray
    tally: np.ndarray

    @property
    def variances(self) -> np.ndarray:
        """Variances of the weights."""
        return 1.0 / self.G


class SparseModel(NamedTuple):
    """A DiagonalModel for sparse rows: what belongs to a feature lies together."""

    features: np.ndarray  # (d, 4) mu, 1 / G, lag and room to note places in
    tally: np.ndarray

    @property
    def mu(self) -> np.ndarray:
        """Mean of the weights."""
        return self.features[:, 0]

    @property
    def G(self) -> np.ndarray:
        """Precision of the weights."""
        return 1.0 / self.features[:, 1]

    @property
    def variances(self) -> np.ndarray:
        """Variances of the weights."""
        return self.features[:, 1]

    @property
    def lag(self) -> np.ndarray:
        """Lag of the average behind the mean."""
        return self.features[:, 2]


class Parameters(NamedTuple):
    """What a sweep needs to know."""

    C: float
    phi: float
    form: int
    reservoir: bool
    balanced: bool


@jit
def scw_step(margin, variance, C, phi):
    """Return alpha and beta of Propositions 1 and 2.

    The margin is taken in standard deviations, and the forms are free of cancellation and
    overflow. Both are zero where the margin already has the wanted confidence, and where the
    variance is next to nothing, infinite or not a number.
    """
    deviation = math.sqrt(max(variance, 0.0))
    wanted = phi * deviation * _ALL_BUT_ROUNDING
    if not (_SMALLEST_PAIR < variance < math.inf and margin < wanted):
        return 0.0, 0.0
    psi, zeta = 1.0 + phi**2 / 2.0, 1.0 + phi**2
    m = margin / deviation
    root = phi * math.sqrt(m * m * phi**2 / 4.0 + zeta)
    if m > 0.0:
        alpha = (phi**2 - m * m) / (deviation * (m * psi + root))
    else:
        alpha = (root - m * psi) / (deviation * zeta)
    alpha = min(C, LARGEST_C, alpha)
    if not alpha > 0.0:
        return 0.0, 0.0
    added = _added(alpha, deviation, phi)
    return alpha, added / (1.0 + added) / variance


@jit
def _added(alpha, deviation, phi):
    """Return what a step adds to the precision along z, as a share of what it was.

    More than 1 / EPSILON would leave a variance that rounding cannot tell from zero.
    """
    gain = alpha * phi * deviation
    return min(gain * (gain + math.hypot(gain, 2.0)) / 2.0, 1.0 / EPSILON)


@jit
def scw_information(alpha, variance, phi):
    """Return alpha phi / sqrt(u): what a step adds to the precision along z."""
    return _added(alpha, math.sqrt(variance), phi) / variance


# The average with polynomial decay, avg += 4 / (t + 4) (mu - avg), t = 0, 1, ..., touches every
# weight at every row. Its lag behind the mean shrinks by t / (t + 4) a row, so with
# boost(t) = t (t + 1) (t + 2) (t + 3) / 24 the array `lag` = boost * (avg - mu) changes only
# where the mean does.


def boost_after(rows: int) -> float:
    """Return how much larger `lag` is than the average's lag after so many rows."""
    t = float(rows)
    return t * (t + 1.0) * (t + 2.0) * (t + 3.0) / 24.0


boost_of = jit(boost_after)


def averaged_mean(
    model: FullModel | DiagonalModel | SparseModel, columns: Any = slice(None)
) -> np.ndarray:
    """Return the polynomial-decay average of the means after every row so far."""
    rows, mean = model.tally[ROWS], np.array(model.mu[columns])
    return mean + model.lag[columns] / boost_after(rows) if rows else mean


@jit
def count_pair(tally, ahead):
    """Count a pair met, and twice whether it was ranked right, once if it was tied."""
    tally[PAIRS] += 1
    tally[TWICE_RIGHT] += 2 if ahead > 0.0 else (1 if ahead == 0.0 else 0)


@jit
def count_pairs(model, x, buffer, other, sign, margins):
    """Write the margins of a dense row by the mean as it is, and count its pairs by them."""
    for slot in range(buffer.size[other]):
        margins[slot] = sign * margin_of(model.mu, x, buffer.rows[other, slot])
        count_pair(model.tally, margins[slot])


@jit
def is_rounding(variance, z, square, Sigma):
    """Say whether z' Sigma z is so small beside what it was summed from that it may be rounding.

    Of columns that are copies of each other Sigma holds the variance of their sum as a difference
    of large numbers. What is left of it in the end may have any size and sign, and would move the
    mean anywhere. `square` is that of z.
    """
    if variance >= least_sound(square):  # as no variance is above the prior's, which is 1
        return False
    square = 0.0
    for i in range(z.size):
        square += z[i] * z[i] * Sigma[i, i]
    return not variance >= least_sound(square)


@jit
def least_sound(square):
    """Return the least variance of a pair to go by, given the sum of z^2 times the variances."""
    return max(_ROUNDING * square, min(_VAGUE * square, _SURE))


# The prior has unit variance: of a 64-bit id it believes that it may move scores by 1e19, and it
# would take hundreds of updates, and means as wild, to unlearn that. So no column may bring more than
# WIDEST deviations into a pair: before one that would, the weight is narrowed to that, its mean and
# covariances with it. All else that is believed stays as it was. Ordinary columns never come near.


@jit
def narrowed(z, variance):
    """Return the factor that makes a weight of this variance narrow enough; 1 if it is already."""
    size = abs(z) * math.sqrt(variance)
    if not size > WIDEST * (1.0 + TIED):
        return 1.0
    return max(WIDEST / size, math.sqrt(SMALLEST_VARIANCE / variance))


@jit
def narrow(model, z):
    """Narrow the weights that this pair needs narrower; say whether there were any."""
    any_narrowed = False
    for i in range(z.size):
        factor = narrowed(z[i], model.Sigma[i, i])
        if factor < 1.0:
            any_narrowed = True
            model.mu[i] *= factor
            model.lag[i] *= factor
            for j in range(z.size):
                model.Sigma[i, j] *= factor
                model.Sigma[j, i] *= factor
    return any_narrowed


@jit
def shrink(Sigma, s, scale, least):
    """Take (scale s)(scale s)' from `Sigma`, symmetric to the bit.

    No variance can fall below `least` of what it was; rounding must not carry one there.
    """
    least = max(least, EPSILON)
    for i in range(s.size):
        s[i] *= scale
    for i in range(s.size):
        floor = max(least * Sigma[i, i], SMALLEST_VARIANCE)
        for j in range(s.size):
            Sigma[i, j] -= s[i] * s[j]
        Sigma[i, i] = max(Sigma[i, i], floor)
