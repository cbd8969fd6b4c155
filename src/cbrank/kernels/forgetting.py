"""Evidence that fades: the precision goes back towards the prior's, and the average follows.

With a share f of the evidence forgotten per row, B rows leave k = (1 - f)^B of it:

    Sigma^-1 <- k Sigma^-1 + (1 - k) I,

so that Sigma never exceeds its prior I, however long nothing is learned. The mean stays. The
average with polynomial decay would remember ever longer; its rate is kept at that of 4 / f rows.
"""

import numpy as np
from scipy import linalg

from cbrank.kernels import covariances
from cbrank.kernels.confidence import (
    ROWS,
    DiagonalModel,
    FullModel,
    SparseModel,
    boost_after,
)

_MOST_OFTEN = 64  # rows between two times; else a quarter of the memory, as good and cheaper
_NEVER = 2.0**62  # rows: no stream is as long
_LEAST_KEPT = 1e-6  # of the evidence: what is left below is rounding


def rows_between(share: float) -> int:
    """Return after how many rows there is forgetting."""
    return int(min(max(_MOST_OFTEN, 1.0 / (4.0 * share)), _NEVER))


def forget(
    model: FullModel | DiagonalModel | SparseModel, share: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return arrays of a model and what they are once it has forgotten as after `rows_between` rows."""
    kept = max((1.0 - share) ** rows_between(share), _LEAST_KEPT)
    hastened = _hastened(model, int(min(4.0 / share, _NEVER)))
    if isinstance(model, FullModel):
        return [(model.Sigma, _widened(model.Sigma, kept)), *hastened]
    if isinstance(model, DiagonalModel):
        return [(model.G, kept * model.G + (1.0 - kept)), *hastened]
    variances = model.variances
    return [(variances, variances / (kept + (1.0 - kept) * variances)), *hastened]


def _widened(Sigma: np.ndarray, kept: float) -> np.ndarray:
    """Return F (k I + (1 - k) F'F)^-1 F' for Sigma = F F': symmetric and positive as it stands."""
    scale, F = covariances.factor(Sigma)
    F *= scale[:, None]
    inner = F.T @ F
    inner *= 1.0 - kept
    inner[np.diag_indices_from(inner)] += kept
    inner = linalg.cholesky(inner, lower=True, overwrite_a=True, check_finite=False)
    root = linalg.solve_triangular(inner, F.T, lower=True, check_finite=False)
    del inner, F  # each as large as Sigma
    return root.T @ root  # type: ignore[no-any-return]


def _hastened(
    model: FullModel | DiagonalModel | SparseModel, most: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return what lets the average go on as if there had been no more than `most` rows."""
    rows = model.tally[ROWS]
    if rows <= most:
        return []
    tally = model.tally.copy()
    tally[ROWS] = most
    return [(model.lag, model.lag * (boost_after(most) / boost_after(rows))), (model.tally, tally)]
