"""Exponential forgetting: the precision decays towards the prior's, so that old evidence fades.

With a share f of the evidence forgotten per row, B rows keep k = (1 - f)^B of it:

    Sigma^-1 <- k Sigma^-1 + (1 - k) I.

The prior I is a fixed point, so that Sigma never exceeds it, however long a feature is absent
(plain exponential forgetting, Sigma / k, would grow without bound). The mean stays; it only becomes
easier to move. The polynomial-decay average has a memory that grows with the stream: its count of
rows is held at 4 / f at the most, which makes its rate 4 / (t + 4) about f.
"""

import numpy as np
from scipy.linalg import LinAlgError, blas, lapack

from cbrank.kernels import covariances
from cbrank.kernels.confidence import (
    ROWS,
    DiagonalModel,
    FullModel,
    SparseModel,
    boost_after,
    is_awake,
)

# Rows between two steps of forgetting: half of the memory 1 / f, and never fewer than this. A step costs
# O(d^3), and at half of the memory it does as well as at a quarter, and that as well as at every row.
_MOST_OFTEN = 64
_NEVER = 2.0**62  # more rows than any stream has, and still an int64
_LEAST_KEPT = 1e-6  # of the evidence: what is left below that is rounding error


def rows_between(share: float) -> int:
    """Return the number of rows between two steps of forgetting."""
    return int(min(max(_MOST_OFTEN, 1.0 / (2.0 * share)), _NEVER))


def forget(
    model: FullModel | DiagonalModel | SparseModel, share: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of an array of the model and its content after one step of forgetting.

    The caller copies all of them in one go, so that an interrupt leaves no step half done.
    """
    kept = max((1.0 - share) ** rows_between(share), _LEAST_KEPT)
    hastened = _hastened(model, int(min(4.0 / share, _NEVER)))
    if isinstance(model, FullModel):
        Sigma, awake = model.Sigma, np.flatnonzero(is_awake(model))
        if awake.size == len(Sigma):
            return [(Sigma, _widened(Sigma, kept)), *hastened]
        widened, square = Sigma.copy(), np.ix_(awake, awake)
        if awake.size:
            widened[square] = _widened(Sigma[square], kept)
        return [(Sigma, widened), *hastened]
    if isinstance(model, DiagonalModel):
        return [(model.G, kept * model.G + (1.0 - kept)), *hastened]
    variances = model.variances
    return [(variances, variances / (kept + (1.0 - kept) * variances)), *hastened]


def _widened(Sigma: np.ndarray, kept: float) -> np.ndarray:
    """Return (k Sigma^-1 + (1 - k) I)^-1.

    With Sigma = F F' that is F (k I + (1 - k) F'F)^-1 F'. As root'root of a triangular solve it is
    symmetric and positive semi-definite by construction, and no Sigma is inverted.
    """
    scale, F = covariances.factor(Sigma)
    F *= scale[:, None]
    inner = F.T @ F
    inner *= 1.0 - kept
    inner.flat[:: len(inner) + 1] += kept
    # Symmetric, so its transpose is the same matrix in Fortran's order.
    inner, failed = lapack.dpotrf(inner.T, lower=True, overwrite_a=True)
    if failed:
        raise LinAlgError("a covariance has numbers that are not finite")
    root = blas.dtrsm(1.0, inner, F.T, lower=True)
    del inner, F  # each as large as Sigma
    return root.T @ root  # type: ignore[no-any-return]


def _hastened(
    model: FullModel | DiagonalModel | SparseModel, most: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the arrays by which the average goes on as if there had been `most` rows at the most.

    `lag` is (average - mean) times the boost of the count of rows, so it is rescaled with it.
    """
    rows = model.tally[ROWS]
    if rows <= most:
        return []
    tally = model.tally.copy()
    tally[ROWS] = most
    return [(model.lag, model.lag * (boost_after(most) / boost_after(rows))), (model.tally, tally)]
