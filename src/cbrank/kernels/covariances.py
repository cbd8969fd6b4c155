"""Factors of covariances, and of precisions, whose features may be very far apart in scale.

A matrix is taken as D R D, where R has a diagonal near one and D, of powers of two, costs no
rounding: what is done with R neither overflows nor takes a small variance for nothing.
"""

import numpy as np
from scipy.linalg import LinAlgError, lapack

_EPSILON = np.finfo(np.float64).eps
_TRIES = 48  # with four times as much each time: far more than any finite R needs


def scales(variances: np.ndarray) -> np.ndarray:
    """Return the powers of two next to the deviations; what is no variance counts as a tiny one."""
    least = max(_EPSILON * float(variances.max()), np.finfo(np.float64).tiny)
    _, exponents = np.frexp(np.where(variances > 0.0, variances, least))
    return np.ldexp(1.0, exponents // 2)  # type: ignore[no-any-return]


def factor(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return D, as an array, and the lower L with L L' = R.

    Where rounding has made R indefinite, its correlations are weakened by as little as helps; the
    variances stay.
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
    """Return D and the inverse of R, symmetric to the bit."""
    scale, L = factor(matrix)
    whole = lapack.dpotri(L, lower=True, overwrite_c=True)[0]
    for place in range(len(whole) - 1):
        whole[place, place + 1 :] = whole[place + 1 :, place]
    return scale, whole.T
