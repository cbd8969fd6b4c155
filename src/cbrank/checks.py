"""Checks of what callers pass in, before compiled code, which checks no bounds, gets hold of it.

Errors name the row and the column.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.ma import MaskedArray, getmaskarray
from numpy.typing import ArrayLike, NDArray

Rows = Any  # a C-ordered float64 array or a canonical CSR matrix

# Rows ---------------------------------------------------------------------------------------------


def check_rows(estimator: Any, X: Any, *, reset: bool) -> Rows:
    """Return `X` as float64 rows, C-ordered or CSR, copied only where it must be."""
    if type(X) is np.ndarray and _is_in_order(estimator, X, reset=reset):
        return X
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X is a LazyFrame, which has no rows yet: collect it first.")
    names = getattr(X, "columns", None)
    refuse_masked("X", X)
    if sp.issparse(X) and X.ndim == 2:
        refuse_unsound("X", X)
    try:
        rows = numeric_rows(estimator, X, reset=reset, finite=False)
    except (ValueError, TypeError) as error:
        _name_non_numeric_cell(X, names, error)
        if "setting an array element" in str(error):
            kind = type(X).__name__
            raise ValueError(f"X, a {kind}, is no table of numbers: {error}") from error
        raise
    rows = canonical(rows) if sp.issparse(rows) else np.require(rows, requirements=["C", "A"])
    _refuse_non_finite(estimator, rows, names)
    return rows


def numeric_rows(
    estimator: Any, X: Any, *, reset: bool, finite: bool = True, wider: bool = False
) -> Any:
    """Return rows as float64, C-ordered or CSR, with as many features as the estimator knows.

    If `reset`, these are its first and it is told of their width and names; with `wider`, they may be of any width.
    """
    if _is_in_order(estimator, X, reset=reset, finite=finite, wider=wider):
        return X
    from sklearn.utils.validation import check_array, validate_data  # noqa: PLC0415

    form: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": np.float64,
        "order": "C",
        "ensure_all_finite": finite,
    }
    return check_array(X, **form) if wider else validate_data(estimator, X, reset=reset, **form)


def _is_in_order(
    estimator: Any, X: Any, *, reset: bool, finite: bool = True, wider: bool = False
) -> bool:
    """Say whether rows are plainly such as an estimator takes: float64, C-ordered or CSR, and some."""
    dense = type(X) is np.ndarray
    if not dense and getattr(X, "format", None) != "csr":
        return False
    values, ordered = (X, X.flags.c_contiguous and X.flags.aligned) if dense else (X.data, True)
    if not ordered or X.ndim != 2 or min(X.shape) == 0 or values.dtype != np.float64:
        return False
    fits = reset or wider or estimator.n_features_in_ == X.shape[1]
    if not fits or (not wider and hasattr(estimator, "feature_names_in_")):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        if finite and not np.isfinite(values.sum()):
            return False
    if reset and not wider:
        estimator.n_features_in_ = X.shape[1]
    return True


def as_one_row(
    x: Any, taker: str = "learn_one", for_many: str = "partial_fit", *, tables: bool = False
) -> Any:
    """Return a row as a table of one row; anything else is refused, with a method that takes it."""
    if type(x) is np.ndarray and x.ndim == 1:
        return x[None]
    if isinstance(x, Mapping) and tables:
        return [x]
    if isinstance(x, Mapping):
        raise ValueError(  # noqa: TRY004
            "x is a dictionary, and learn_one takes numbers in the order of the columns: pass a list "
            "of them, or learn by cbrank.river.RankingClassifier."
        )
    if hasattr(x, "index") and hasattr(x, "to_frame"):
        x = x.to_frame().T
    elif not hasattr(x, "columns") and not sp.issparse(x):
        x = np.atleast_2d(x)
    if x.shape[0] != 1:
        raise ValueError(f"{taker} takes one row, and x has {x.shape[0]}: use {for_many}.")
    return x


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


def _name_non_numeric_cell(X: Any, names: Any, error: Exception) -> None:
    """Raise an error that names the first cell that is no number, if there is one."""
    if sp.issparse(X) or "complex" in str(error).lower():
        return
    try:
        cells = np.asarray(X, dtype=object)
    except ValueError:
        return
    if cells.ndim != 2:
        return
    for (row, column), cell in np.ndenumerate(cells):
        try:
            float(cell)
        except (TypeError, ValueError):
            where = _place(row, column, names)
            message = f"X has {cell!r} at {where}, which is not a number. {error}"
            raise type(error)(message) from error


def _place(row: int, column: int, names: Any) -> str:
    name = "" if names is None else f" ({str(names[column])!r})"
    return f"row {row}, column {column}{name}"


def _refuse_non_finite(estimator: Any, X: Rows, names: Any) -> None:
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    bad = np.argwhere(~np.isfinite(values))
    if not len(bad):
        return
    if sp.issparse(X):
        at = bad[0, 0]
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, X.indices[at]
        value = X.data[at]
    else:
        row, column = bad[0]
        value = X[row, column]
    kind = "NaN" if np.isnan(value) else "infinity"
    where = _place(row, column, names)
    raise ValueError(
        f"Input X contains {kind} at {where} ({len(bad)} such values in all); "
        f"{type(estimator).__name__} takes finite numbers: impute or drop them first."
    )


# Labels and weights -------------------------------------------------------------------------------


def check_labels_and_weights(
    y: Any,
    sample_weight: Any,
    X: Rows,
    classes: NDArray[Any],
    class_weights: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return 0 or 1 for each row, its class, and its weight times that of the class."""
    labels, weights = check_labels(y, X), check_weights(sample_weight, X)
    places = encode(labels, classes, weights)
    return places, weighed(weights, class_weights, places)


def check_labels(y: Any, X: Rows) -> NDArray[Any]:
    """Return `y` as a one-dimensional array of labels without gaps, as long as `X`."""
    if y is None:
        raise ValueError("This ranker requires y to be passed, but the target y is None.")
    labels: NDArray[Any] = y
    if is_plainly_binary(y) and len(y) == X.shape[0]:
        return labels
    refuse_masked("y", y)
    from sklearn.utils import multiclass, validation  # noqa: PLC0415

    y = labels = validation.column_or_1d(y, warn=True)
    validation.check_consistent_length(X, y)
    missing = np.flatnonzero(_missing(y))
    if len(missing):
        raise ValueError(f"Input y contains NaN at row {missing[0]} ({len(missing)} in all).")
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise ValueError(f"Input y contains infinity at row {np.flatnonzero(np.isinf(y))[0]}.")
    try:
        multiclass.check_classification_targets(y)
    except (TypeError, ValueError) as error:
        if y.dtype.kind != "O":
            raise
        kinds = ", ".join(sorted({type(label).__name__ for label in y}))
        raise ValueError(f"y holds {kinds}: use numbers alone or texts alone. {error}") from error
    return labels


def is_plainly_binary(y: Any) -> bool:
    """Say whether this is a column of whole numbers or texts, two different ones at most."""
    if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind not in "biuU" or not y.size:
        return False
    others = y[y != y[0]]
    return not others.size or bool((others == others[0]).all())


def _missing(labels: NDArray[Any]) -> Any:
    """Say of each label whether it is None, NaN, NaT or pandas' NA."""
    if labels.dtype.kind == "O":
        return [
            label is None or type(label).__name__ == "NAType" or label != label  # noqa: PLR0124
            for label in labels
        ]
    return labels != labels if labels.dtype.kind in "fmM" else []  # noqa: PLR0124


def check_classes(classes: ArrayLike) -> NDArray[Any]:
    """Return the two labels in order; the second is the positive class."""
    refuse_masked("classes", classes)
    labels = np.asarray(classes)
    if np.any(_missing(labels)):
        raise ValueError(f"classes has a missing label: {labels.tolist()}.")
    try:
        found = np.unique(labels)
    except TypeError as error:
        raise TypeError(f"classes must be numbers alone or texts alone: {error}") from None
    if len(found) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"there are {len(found)} classes, {', '.join(map(str, found[:5]))}"
            f"{', ...' if len(found) > 5 else ''}."
        )
    if len(found) < 2:
        raise ValueError(
            f"Ranking needs two classes, and this is one class only or none: {found.tolist()}; "
            "in a stream, pass both as classes= with the first rows of weight above 0."
        )
    return found


def encode(
    y: NDArray[Any], classes: NDArray[Any], weights: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Return 0 for rows of the first class and 1 for those of the second.

    Any other label is refused, unless its row has weight 0.
    """
    labels: NDArray[np.int64] = (y == classes[1]).astype(np.int64)
    unknown = np.flatnonzero((labels == 0) & (y != classes[0]))
    if weights is not None:
        unknown = unknown[weights[unknown] > 0.0]
    if len(unknown):
        label, (one, other) = y[unknown[:1]].tolist()[0], classes.tolist()
        raise ValueError(
            f"y has {label!r} at row {unknown[0]}, which is neither of the classes "
            f"{one!r} and {other!r} that this ranker started with."
        )
    return labels


def check_weights(sample_weight: Any, X: Rows) -> NDArray[np.float64]:
    """Return one finite weight >= 0 for each row."""
    n_rows = X.shape[0]
    if sample_weight is None:
        return np.ones(n_rows)
    refuse_masked("sample_weight", sample_weight)
    weights = np.array(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array.")
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}, one for each row of X."
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise ValueError(
            f"sample_weight has {weights[bad[0]]} at row {bad[0]} ({len(bad)} such values in all); "
            "weights must be finite and not negative."
        )
    return weights


def class_weights(
    asked: Any, classes: NDArray[Any], counts: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Return the weights of the two classes; "balanced" goes by `counts`, without them it gives 1 to both."""
    if asked is None:
        return np.ones(2)
    if asked == "balanced":
        return np.ones(2) if counts is None else counts.sum() / (2.0 * np.maximum(counts, 1))
    weights = np.array([asked.get(label, 1.0) for label in classes.tolist()])
    unknown = set(asked) - set(classes.tolist())
    if unknown or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(
            f"class_weight={asked} must give a finite weight >= 0 to labels among "
            f"the classes {classes.tolist()}."
        )
    return weights


def weighed(
    weights: NDArray[np.float64], class_weights: NDArray[np.float64], labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the weights of rows times those of their classes, which must be finite too."""
    with np.errstate(over="ignore"):
        products: NDArray[np.float64] = weights * class_weights[labels]
    infinite = np.flatnonzero(np.isinf(products))
    if len(infinite):
        raise ValueError(
            f"sample_weight times class_weight is infinite at row {infinite[0]}: use smaller ones."
        )
    return products


# Masks and sparse matrices ------------------------------------------------------------------------


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
