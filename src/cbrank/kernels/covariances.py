"""Cholesky factors and inverses of covariance matrices whose features differ widely in scale.

A matrix is written as D R D with R nearly a correlation matrix, its diagonal between 1/2 and 2, and
D a diagonal of powers of two, by which dividing is exact. R is factored instead of the matrix:
variances of 1e-300 beside 1 would otherwise overflow, or count as zero.
"""

import numpy as np
from scipy.linalg import LinAlgError, lapack

_EPSILON = np.finfo(np.float64).eps
# Attempts to make R positive definite, four times as much each time: from EPSILON up to 1e12, when
# the correlations are all but zero, as any finite R ends with.
_TRIES = 48


def scales(variances: np.ndarray) -> np.ndarray:
    """Return powers of two near the standard deviations; a variance of 0 or less counts as tiny."""
    least = max(_EPSILON * float(variances.max()), np.finfo(np.float64).tiny)
    _, exponents = np.frexp(np.where(variances > 0.0, variances, least))
    return np.ldexp(1.0, exponents // 2)  # type: ignore[no-any-return]


def factor(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the diagonal of D, and the lower Cholesky factor L of R = L L'.

    Where rounding has left R indefinite, its correlations are shrunk towards zero by the least of
    `_TRIES` factors that makes it definite; the variances stay.
    """
    scale = scales(np.diag(matrix))
    R = matrix / scale
    R /= scale[:, None]
    L, failed = lapack.dpotrf(R, lower=True)
    if failed:
        del L
        L = _factor_weakened(R)
    return scale, L


def _factor_weakened(R: np.ndarray) -> np.ndarray:
    diagonal = np.where(np.diag(R) > 0.0, np.diag(R), 1.0)
    most = np.outer(diagonal, diagonal)
    np.sqrt(most, out=most)
    np.minimum(R, most, out=R)
    np.maximum(R, np.negative(most, out=most), out=R)
    weakened = most
    for share in _EPSILON * 4.0 ** np.arange(_TRIES):
        np.divide(R, 1.0 + share, out=weakened)
        np.fill_diagonal(weakened, diagonal)
        L, failed = lapack.dpotrf(weakened, lower=True)
        if not failed:
            return L  # type: ignore[no-any-return]
        del L
    raise LinAlgError("a covariance has numbers that are not finite")


def inverse(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the diagonal of D, and the inverse of R, exactly symmetric."""
    scale, L = factor(matrix)
    whole = lapack.dpotri(L, lower=True, overwrite_c=True)[0]
    for place in range(len(whole) - 1):
        whole[place, place + 1 :] = whole[place + 1 :, place]
    return scale, whole.T
