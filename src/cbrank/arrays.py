"""Checks that arrays need before compiled code, which checks no bounds, gets hold of them."""

from typing import Any

import numpy as np
from numpy.ma import MaskedArray, getmaskarray
from numpy.typing import NDArray


def refuse_masked(name: str, values: Any) -> None:
    """Refuse a masked array some of whose cells are masked: what is behind a mask is not data."""
    if not isinstance(values, MaskedArray):
        return
    masked = np.argwhere(getmaskarray(values))
    if len(masked):
        words = zip(("row", "column"), masked[0].tolist(), strict=False)
        place = "".join(f", {word} {at}" for word, at in words)
        raise ValueError(
            f"{name} is masked{place.replace(',', ' at', 1)} ({len(masked)} such values in all): "
            "fill in or drop what is masked first."
        )


def refuse_unsound(name: str, X: Any) -> None:
    """Refuse a sparse matrix of two dimensions whose indices lead out of it."""
    if X.format in ("csr", "csc"):
        _refuse_unsound_lines(name, X)
    elif X.format == "bsr":
        X.check_format(full_check=True)
    elif X.format == "coo":
        for kind, indices, length in zip(("row", "column"), (X.row, X.col), X.shape, strict=True):
            _refuse_outside(name, kind, indices, length)


def _refuse_unsound_lines(name: str, X: Any) -> None:
    """Check the rows of a CSR matrix, or the columns of a CSC matrix."""
    by_rows = X.format == "csr"
    line, kind = ("row", "column") if by_rows else ("column", "row")
    lines, length = X.shape if by_rows else X.shape[::-1]
    indptr, indices = X.indptr, X.indices
    if not (
        indptr.dtype.kind == indices.dtype.kind == "i"
        and indptr.shape == (lines + 1,)
        and indices.shape == X.data.shape == (indices.size,)
        and 0 == indptr[0] <= indptr[-1] <= indices.size
    ):
        raise ValueError(
            f"{name} is no sound sparse matrix: its data, indices and indptr do not go together."
        )
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        raise ValueError(
            f"{name} is no sound sparse matrix: its indptr falls at {line} {falls.argmax()}."
        )
    _refuse_outside(name, kind, indices[: indptr[-1]], length, line, indptr)


def _refuse_outside(
    name: str,
    kind: str,
    indices: NDArray[Any],
    length: int,
    line: str = "entry",
    indptr: NDArray[Any] | None = None,
) -> None:
    if indices.size and not 0 <= indices.min() <= indices.max() < length:
        at = place = int(np.flatnonzero((indices < 0) | (indices >= length))[0])
        if indptr is not None:
            place = int(np.searchsorted(indptr, at, side="right")) - 1
        raise ValueError(
            f"{name} has {length} {kind}s and a {kind} index {indices[at]} at {line} {place}."
        )


def numeric_rows(
    estimator: Any, X: Any, *, reset: bool, finite: bool = True, wider: bool = False
) -> Any:
    """Return rows as float64, C-ordered or CSR, with as many features as the estimator knows.

    Parameters
    ----------
    estimator : object
        What takes the rows; if `reset`, it gets the number of features and their names.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        Rows; those that are in order are not copied.
    reset : bool
        Whether these are the first rows.
    finite : bool, default=True
        Whether NaN and infinity are refused.
    wider : bool, default=False
        Whether there may be any number of features, which the estimator is then not told of.

    Returns
    -------
    ndarray or sparse matrix of shape (n_samples, n_features)
        The rows.
    """
    if _is_in_order(X, finite=finite) and (wider or _fits(estimator, X.shape[1], reset)):
        return X
    from sklearn.utils.validation import check_array, validate_data  # noqa: PLC0415

    form: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": np.float64,
        "order": "C",
        "ensure_all_finite": finite,
    }
    return check_array(X, **form) if wider else validate_data(estimator, X, reset=reset, **form)


def _fits(estimator: Any, width: int, reset: bool) -> bool:
    """Say whether an estimator takes rows without names of this width; if `reset`, it does from now."""
    if hasattr(estimator, "feature_names_in_"):
        return False
    if reset:
        estimator.n_features_in_ = width
    return bool(estimator.n_features_in_ == width)


def _is_in_order(X: Any, *, finite: bool) -> bool:
    """Say whether rows are plainly such as learners take: float64, C-ordered or CSR, and some."""
    if type(X) is np.ndarray:
        sound, values = X.flags.c_contiguous, X
    elif getattr(X, "format", None) == "csr":
        sound, values = True, X.data
    else:
        return False
    if not (sound and X.ndim == 2 and min(X.shape) > 0 and values.dtype == np.float64):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return not finite or bool(np.isfinite(values.sum()))


def is_plainly_binary(y: Any) -> bool:
    """Say whether this is a column of whole numbers or texts, two different ones at most."""
    if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind not in "biuU" or not y.size:
        return False
    others = y[y != y[0]]
    return not others.size or bool((others == others[0]).all())


def canonical(X: Any) -> Any:
    """Return CSR with rising indices in each row; the caller's own is not touched.

    The matrix is not asked whether it is so: it may have changed since it was last looked at.
    """
    if _rises(X.indices[: X.indptr[-1]], X.indptr):
        return X
    X = type(X)((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    X.sum_duplicates()
    return X


def _rises(indices: NDArray[Any], indptr: NDArray[Any]) -> bool:
    rising = indices[1:] > indices[:-1]
    if rising.all():
        return True
    starts = indptr[1:-1]
    rising[starts[(starts > 0) & (starts < indices.size)] - 1] = True
    return bool(rising.all())


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to of an array that a kernel can read."""
    if not (array.flags.c_contiguous and array.flags.aligned):
        array = np.require(array, requirements=["C", "A"])
    view = array.view()
    view.flags.writeable = False
    return view
