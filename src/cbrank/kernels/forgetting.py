"""Evidence that fades: the precision goes back towards the prior's, and the average follows.

With a share f of the evidence forgotten per row, B rows leave k = (1 - f)^B of it:

    Sigma^-1 <- k Sigma^-1 + (1 - k) I,

so that Sigma never exceeds its prior I, however long nothing is learned. The mean stays. The
average with polynomial decay would remember ever longer; its rate is kept at that of 4 / f rows.
"""

import numpy as np
from scipy import linalg

from cbrank.kernels.confidence import (
    EPSILON,
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


def forget(model: FullModel | DiagonalModel | SparseModel, share: float) -> None:
    """Let a model forget what `rows_between` rows make it forget."""
    kept = max((1.0 - share) ** rows_between(share), _LEAST_KEPT)
    if isinstance(model, FullModel):
        model.Sigma[...] = _widened(model.Sigma, kept)
    elif isinstance(model, DiagonalModel):
        model.G[...] = kept * model.G + (1.0 - kept)
    else:
        model.variances[...] /= kept + (1.0 - kept) * model.variances
    _hasten(model, int(min(4.0 / share, _NEVER)))


def _widened(Sigma: np.ndarray, kept: float) -> np.ndarray:
    """Return F (k I + (1 - k) F'F)^-1 F' for Sigma = F F': symmetric and positive as it stands."""
    F = _factor(Sigma)
    inner = (1.0 - kept) * (F.T @ F)
    inner[np.diag_indices_from(inner)] += kept
    root = linalg.solve_triangular(
        linalg.cholesky(inner, lower=True, check_finite=False), F.T, lower=True, check_finite=False
    )
    return root.T @ root  # type: ignore[no-any-return]


def _factor(Sigma: np.ndarray) -> np.ndarray:
    try:
        return linalg.cholesky(Sigma, lower=True, check_finite=False)  # type: ignore[no-any-return]
    except linalg.LinAlgError:  # rounding has made a small eigenvalue negative
        values, vectors = linalg.eigh(Sigma, check_finite=False)
        return vectors * np.sqrt(np.maximum(values, EPSILON * values[-1]))  # type: ignore[no-any-return]


def _hasten(model: FullModel | DiagonalModel | SparseModel, most: int) -> None:
    """Let the average go on as if there had been no more than `most` rows."""
    rows = model.tally[ROWS]
    if rows > most:
        model.lag[...] *= boost_after(most) / boost_after(rows)
        model.tally[ROWS] = most
