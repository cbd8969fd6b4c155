"""The state of a confidence-weighted ranker, and its closed-form step (Propositions 1 and 2).

Names are the paper's. The weights have a Gaussian distribution with mean ``mu`` and covariance
``Sigma``, or with mean ``mu`` and one precision ``G`` per feature. A *pair* is a new row x and a
buffered row b of the other class; ``z = x - b``, its *margin* is y mu.z and its *variance*
z' Sigma z. A pair violates its confidence constraint where margin < phi sqrt(variance), with
phi = Phi^-1(eta); only then does it *update* the model (alpha > 0), and "fires" in the sweeps.

The formulas are written in forms that neither cancel nor overflow, since columns come raw: ids,
timestamps and sentinel values of any finite size must leave a finite model.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from cbrank.kernels._jit import jit
from cbrank.parameters import ASLEEP

DIAGONAL_FORMS = ("paper", "precision", "drop")
PAPER, PRECISION, DROP = range(3)  # the form, as the kernels take it
ROWS, PAIRS, UPDATES = range(3)  # places in `tally`

EPSILON = np.finfo(np.float64).eps

# No useful step is larger, and products with a larger C could overflow.
LARGEST_C = 1e150
_LARGEST_GAIN = EPSILON**-0.5  # see `_growth`
# Least variance of a weight: it and its inverse, the precision, are normal doubles. Columns of
# 1e150 need variances nearly as small.
SMALLEST_VARIANCE = 1e-305
# Least variance of a pair, below which it is skipped: beta divides by it and must stay finite.
_SMALLEST_PAIR = 1e-290
_LARGEST_PAIR = 1e290  # variances from here on have no square times `_LARGEST_GAIN`^2

# z' Sigma z is a sum whose terms may cancel: below this share of the sum of z_i^2 Sigma_ii it may be
# nothing but rounding error. Above it plain sums still hold a digit or more, and pairs are learned from: to
# skip those below 1e-12 took away four in ten updates from copied columns with a C of 1024, and to skip none
# changes nothing for the defaults.
ROUNDING = 1e-15

# Largest standard deviation of a score that one column may cause, unless the algorithm is to be the paper's:
# see `narrowed`. All columns whose values differ by less than 131,072 are unaffected, which are all but ids,
# times and sentinels.
WIDEST = 2.0**17
# An update leaves its pair exactly at the wanted margin, up to rounding: without this slack the
# same pair could update again and again by amounts of 1e-16.
_ALL_BUT_ROUNDING = 1.0 - 1e-12
# Scores that differ by less than this share of their sizes may differ by rounding alone; the pair's
# margin is then computed from x - b, which is exactly 0 for a tie.
TIED = 1e-9


class FullModel(NamedTuple):
    """A Gaussian over weights with full covariance."""

    mu: np.ndarray  # (d,)
    Sigma: np.ndarray  # (d, d)
    lag: np.ndarray  # (d,) scaled difference of averaged mean and mean: see `boost_after`
    tally: np.ndarray  # (3,) rows, pairs, updates


def is_awake(model: FullModel) -> np.ndarray:
    """Say of each weight whether it is learned."""
    awake: np.ndarray = (
        (np.diagonal(model.Sigma) != ASLEEP) | (model.mu != 0.0) | (model.lag != 0.0)
    )
    return awake


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
    """A DiagonalModel for sparse rows.

    All numbers of a feature lie side by side, 32 bytes, so that one costs a single cache miss.
    """

    features: np.ndarray  # (d, 4) mu, 1 / G, lag, and scratch space of the sweep
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
        """Scaled difference of the averaged mean and the mean."""
        return self.features[:, 2]


class Parameters(NamedTuple):
    """Hyper-parameters, as the kernels take them."""

    C: float
    phi: float  # Phi^-1(eta), the wanted margin in standard deviations
    form: int  # of the diagonal update: PAPER, PRECISION or DROP
    reservoir: bool
    balanced: bool
    widest: float  # largest deviation of a score that one column may cause: WIDEST, or infinite
    selects: bool = False  # whether only features with a held weight are served


@jit
def scw_step(margin, variance, C, phi):
    """Return the step sizes alpha and beta of a pair (Propositions 1 and 2).

    Both are zero where the pair meets its constraint, margin >= phi sqrt(variance), and where the
    variance is next to zero, infinite or NaN.

    With m = margin / sqrt(variance) the paper's

        alpha = (-margin psi + sqrt(margin^2 phi^4 / 4 + variance phi^2 zeta)) / (variance zeta)

    is free of squares of the variance, which overflow. For m > 0 its two terms cancel; multiplied
    by their sum they are (phi^2 - m^2) zeta, which does not. Whether it is C or more, as it mostly is
    after some hundred rows, is told by squares: no root has to be waited for. Then beta, with p = alpha phi
    the paper's 2 p / (p variance + sqrt(p^2 variance^2 + 4 variance)), waits for one.
    """
    deviation = math.sqrt(max(variance, 0.0))
    wanted = phi * deviation * _ALL_BUT_ROUNDING
    if not (_SMALLEST_PAIR < variance < math.inf and margin < wanted):
        return 0.0, 0.0
    psi, zeta = 1.0 + phi**2 / 2.0, 1.0 + phi**2
    inverse = 1.0 / deviation  # one division: roots and divisions are what a step waits for
    m, alpha = margin * inverse, min(C, LARGEST_C)
    square = phi**2 * (m * m * phi**2 / 4.0 + zeta)
    least = m * psi + alpha * deviation * zeta  # of its root, for a step of C or more
    if not (least <= 0.0 or square >= least * least):
        root = math.sqrt(square)
        if m > 0.0:
            alpha = min(alpha, (phi**2 - m * m) * inverse / (m * psi + root))
        else:
            alpha = min(alpha, (root - m * psi) * inverse / zeta)
    if not alpha > 0.0:
        return 0.0, 0.0
    p = alpha * phi
    if p * p * variance < _LARGEST_GAIN**2 and variance < _LARGEST_PAIR:
        product = p * variance
        return alpha, 2.0 * p / (product + math.sqrt(product * product + 4.0 * variance))
    gain, growth = _growth(alpha, deviation, phi)
    return alpha, gain / growth * inverse * inverse


@jit
def _growth(alpha, deviation, phi):
    """Return g = alpha phi sqrt(variance), and the root of the factor by which the precision grows.

    With u, the variance of the pair after the step, the root is sqrt(variance / u) = (g + sqrt(g^2 + 4)) / 2,
    and its square, the factor, 1 + g times the root. g is kept at 1 / sqrt(EPSILON) at the most: a larger
    one would leave a variance that rounding cannot tell from zero.
    """
    gain = min(alpha * phi * deviation, _LARGEST_GAIN)
    return gain, (gain + math.sqrt(gain * gain + 4.0)) / 2.0


@jit
def scw_information(alpha, variance, phi):
    """Return alpha phi / sqrt(u), which a step adds to the precision along z."""
    gain, growth = _growth(alpha, math.sqrt(variance), phi)
    return gain * growth / variance


# The polynomial-decay average, avg += 4 / (t + 4) (mu - avg) after row t = 0, 1, ..., would touch
# every weight at every row. But while mu stays, avg - mu shrinks by the factor t / (t + 4) a row,
# and boost(t) = t (t + 1) (t + 2) (t + 3) / 24 grows by the inverse of it. So the product
# lag = boost * (avg - mu) changes only where mu does, by -boost * (change of mu): a sparse row
# costs no more than its non-zeros.


def boost_after(rows: int) -> float:
    """Return the factor by which `lag` exceeds (average - mean) after so many rows."""
    t = float(rows)
    return t * (t + 1.0) * (t + 2.0) * (t + 3.0) / 24.0


boost_of = jit(boost_after)


def averaged_mean(
    model: FullModel | DiagonalModel | SparseModel, columns: Any = slice(None)
) -> np.ndarray:
    """Return the polynomial-decay average of the means after each row so far."""
    rows = model.tally[ROWS]
    if not rows:
        return np.array(model.mu[columns])
    mean: np.ndarray = model.lag[columns] / boost_after(rows)
    mean += model.mu[columns]
    return mean


@jit
def per_lag_of(tally):
    """Return the factor of `lag` in the averaged mean."""
    return 1.0 / boost_of(tally[ROWS]) if tally[ROWS] > 0 else 0.0


@jit
def is_rounding(variance, z, square, variances):
    """Say whether z' Sigma z may be rounding error, given its size and that of its terms.

    For columns that are copies of each other Sigma holds the variance of their sum as a difference
    of large numbers. Once that is learned, the rest is rounding of any size and sign, and an update
    by it would move the mean anywhere. `square` is z.z, `variances` are those of the weights.
    """
    # The quick test first: variances of weights are at most 1, the prior's, so z.z is an upper
    # bound of the sum of z_i^2 Sigma_ii, and most pairs need no pass over the diagonal.
    if variance >= ROUNDING * square:
        return False
    square = 0.0
    for i in range(z.size):
        square += z[i] * z[i] * variances[i]
    return not variance >= ROUNDING * square


# Narrowing. The prior variance of a weight is 1, so that a column of 64-bit ids may move scores by
# 1e19: it would take hundreds of updates, and means as wild, to unlearn that. So no column may add
# more than `widest` to the standard deviation of a score. Before an update by a pair in which one
# would, the random weight w_i is replaced by factor * w_i: its mean, variance and covariances are
# scaled to match, and the distribution of the other weights stays. The paper has no such bound: in
# its algorithm `widest` is infinite.


@jit
def narrowed(z, variance, widest):
    """Return the factor by which a weight of this variance is narrowed; 1 for nearly all."""
    size = abs(z) * math.sqrt(variance)
    if not size > widest * (1.0 + TIED):
        return 1.0
    return max(widest / size, math.sqrt(SMALLEST_VARIANCE / variance))


@jit
def narrow(model, Sigma, z, widest):
    """Narrow the weights that are too wide for the pair z; say whether there were any."""
    any_narrowed = False
    for i in range(model.mu.size):
        factor = narrowed(z[i], Sigma[i, i], widest)
        if factor < 1.0:
            any_narrowed = True
            model.mu[i] *= factor
            model.lag[i] *= factor
            for j in range(Sigma.shape[0]):
                Sigma[i, j] *= factor
                Sigma[j, i] *= factor
    return any_narrowed


@jit
def shrink(Sigma, s, scale, least):
    """Subtract (scale s)(scale s)' from `Sigma`; `s` is scaled in place.

    s is scaled first, as s_i * s_j is then the same double as s_j * s_i and Sigma stays exactly
    symmetric. In exact arithmetic no variance falls below the share `least` = 1 - beta variance of
    what it was; that floor keeps rounding from making one negative.
    """
    least = max(least, EPSILON)
    for i in range(s.size):
        s[i] *= scale
    for i in range(s.size):
        floor = max(least * Sigma[i, i], SMALLEST_VARIANCE)
        for j in range(s.size):
            Sigma[i, j] -= s[i] * s[j]
        Sigma[i, i] = max(Sigma[i, i], floor)
