"""A scaler that learns its statistics from a stream, row by row."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.checks import canonical, numeric_rows, refuse_masked, refuse_unsound
from cbrank.estimator import (
    Estimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    check_is_fitted,
)
from cbrank.locking import Owner
from cbrank.parameters import Kind

Known = dict[str, NDArray[Any]]

_BY_FEATURE = {"standard": ("counts", "means", "squares"), "maxabs": ("largest",)}

_HUGE = np.finfo(np.float64).max
_MANY = 2**52  # rows: more than any stream has, and exact as a double
_MOST_SQUARED = 1e306  # a sum of squares to which 2^52 rows more can be added without overflow


class StreamScaler(Owner, OneToOneFeatureMixin, TransformerMixin, Estimator):
    """Scale rows by the statistics of the stream so far.

    Sparse rows are never centred, and may have more features than those before. A constant
    feature is divided by 1.

    Parameters
    ----------
    kind : {"standard", "unit", "maxabs", "none"}, default="standard"
        "standard" divides each feature by its standard deviation, for dense rows after subtracting
        its mean (numbers beyond 1e145 in size count as that); "unit" divides each row by its
        Euclidean length; "maxabs" divides each feature by its largest absolute value; "none"
        leaves rows as they are.

    Attributes
    ----------
    n_rows_seen_ : int
        The number of rows learned from.
    n_features_in_ : int
        The number of features so far.

    Examples
    --------
    >>> from cbrank.streams import StreamScaler
    >>> scaler = StreamScaler("maxabs")
    >>> scaler.learn_transform([[2.0], [4.0], [1.0]])
    array([[1.  ],
           [1.  ],
           [0.25]])
    >>> scaler.transform([[8.0]])
    array([[2.]])
    """

    _known: Known
    n_features_in_: int
    kind: Literal["standard", "unit", "maxabs", "none"]

    KINDS: ClassVar[dict[str, tuple[Kind, ...]]] = {"kind": ("standard", "unit", "maxabs", "none")}

    def __init__(self, kind: str = "standard") -> None:
        self.kind = kind  # type: ignore[assignment]

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn the statistics anew.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        StreamScaler
            The scaler itself.
        """
        self._validate_params()
        with self._own.lock:
            self._learn(X, anew=True)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Update the statistics.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        StreamScaler
            The scaler itself.
        """
        self.learn_transform(X)
        return self

    def learn_transform(self, X: Any) -> Any:
        """Learn from each row in turn and scale it by the statistics that include it.

        Any split of the rows into chunks gives the same result to the last bit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; they are not changed.

        Returns
        -------
        ndarray or csr_array of shape (n_samples, n_features)
            The scaled rows.
        """
        self._validate_params()
        with self._own.lock:
            return self._learn(X, anew=not self.__sklearn_is_fitted__())

    def transform(self, X: Any) -> Any:
        """Scale rows by the statistics as they are.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; they are not changed.

        Returns
        -------
        ndarray or csr_array of shape (n_samples, n_features)
            The scaled rows.
        """
        check_is_fitted(self)
        X, known = self._check(X, reset=False), self._known_so_far()
        return self._scaled(
            X, known if sp.issparse(X) else _widened(known, X.shape[1]), learn=False
        )

    @property
    def n_rows_seen_(self) -> int:
        """The number of rows learned from."""
        return int(self._known["rows"][0])

    # Statistics, by kind -------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_known")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _learn(self, X: Any, *, anew: bool) -> Any:
        """Learn from all rows and return them scaled; after an error, have learned from none."""
        before = self.__dict__.copy()
        try:
            X = self._check(X, reset=anew)
            width = X.shape[1] if anew else max(self.n_features_in_, X.shape[1])
            known = _widened(_nothing(self.kind) if anew else self._known_so_far(), width)
            scaled = self._scaled(X, known, learn=True)
            self.__dict__.update(_known=known, n_features_in_=width)
        except BaseException:
            self.__dict__ = before
            raise
        return scaled

    def resize(self, width: int) -> None:
        """Add features that the stream did not have before.

        Parameters
        ----------
        width : int
            The number of features from now on.
        """
        with self._own.lock:
            self._known = _widened(self._known, width)
            self.n_features_in_ = max(self.n_features_in_, width)

    def _known_so_far(self) -> Known:
        if self._known.keys() != {"rows", *_BY_FEATURE.get(self.kind, ())}:
            raise ValueError(
                f"kind cannot become {self.kind!r} in the middle of a stream: fit anew."
            )
        return self._known

    def _check(self, X: Any, *, reset: bool) -> Any:
        """Return checked rows; sparse ones may be wider than those before."""
        refuse_masked("X", X)
        if sp.issparse(X) and X.ndim == 2:
            refuse_unsound("X", X)
        with np.errstate(over="ignore", invalid="ignore"):  # the sum of huge numbers
            X = numeric_rows(self, X, reset=reset, wider=sp.issparse(X) and not reset)
        return canonical(X) if sp.issparse(X) else X

    def _scaled(self, X: Any, known: Known, *, learn: bool) -> Any:
        if self.kind == "none":
            known["rows"] += X.shape[0] if learn else 0
            return X
        if not sp.issparse(X):
            return self._scaled_dense(X, known, learn)
        out = self._scaled_entries(X, known, learn)
        return type(X)((out, X.indices, X.indptr), shape=X.shape)

    def _scaled_dense(
        self, X: NDArray[np.float64], known: Known, learn: bool
    ) -> NDArray[np.float64]:
        scaling, out = kernels.scaling, np.empty(X.shape)
        if self.kind == "standard":
            scaling.standard(X, learn, scaling.Moments(**known), out)
        elif self.kind == "maxabs":
            scaling.largest(X, learn, known["rows"], known["largest"], out)
        else:
            ends = np.arange(X.shape[0] + 1) * X.shape[1]
            scaling.unit(ends, X.ravel(), learn, known["rows"], out.ravel())
        return out

    def _scaled_entries(self, X: Any, known: Known, learn: bool) -> NDArray[np.float64]:
        scaling, out = kernels.scaling, np.empty(X.data.size)
        indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
        if self.kind == "standard":
            moments = scaling.Moments(**known)
            scaling.standard_sparse(indptr, indices, X.data, learn, moments, out)
        elif self.kind == "maxabs":
            largest = known["largest"]
            scaling.largest_sparse(indptr, indices, X.data, learn, known["rows"], largest, out)
        else:
            scaling.unit(indptr, X.data, learn, known["rows"], out)
        return out

    def centre_and_divisor(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what is subtracted from dense rows, and what they are divided by.

        Returns
        -------
        centre : ndarray of shape (n_features,)
            What is subtracted from each feature.
        divisor : ndarray of shape (n_features,)
            What it is then divided by.
        """
        known, width = self._known, self.n_features_in_
        ones = sp.csr_array((np.ones(width), np.arange(width), np.arange(width + 1)))
        centre = np.zeros(width)
        if self.kind == "standard":
            centre = known["means"] * (known["counts"] / known["rows"])
        return centre, 1.0 / self.transform(ones).data

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the state, to be saved.

        Returns
        -------
        arrays : dict of str to ndarray
            The arrays, not copied.
        facts : dict
            Values that JSON can hold.
        """
        return dict(self._known), {"kind": self.kind, "n_features_in": self.n_features_in_}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Self:
        """Make a scaler from the state of `get_state`.

        Parameters
        ----------
        arrays : dict of str to ndarray
            The arrays of `get_state`.
        facts : dict
            Its facts.

        Returns
        -------
        StreamScaler
            The scaler, which goes on where it stopped.

        Raises
        ------
        ValueError
            If the state is inconsistent.
        """
        scaler = cls(facts["kind"])
        scaler._validate_params()
        scaler.n_features_in_ = width = facts["n_features_in"]
        fresh = _nothing(scaler.kind)
        shapes = {name: (1,) if name == "rows" else (width,) for name in fresh}
        if (
            type(width) is not int
            or width < 1
            or {name: known.shape for name, known in arrays.items()} != shapes
            or any(known.dtype != fresh[name].dtype for name, known in arrays.items())
            or not 1 <= arrays["rows"][0] < _MANY
            or not all(_is_sound(name, arrays) for name in fresh)
        ):
            raise ValueError(f"its StreamScaler of {width!r} features makes no sense")
        scaler._known = dict(arrays)
        return scaler


def _is_sound(name: str, arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Say whether statistics could have been learned from rows."""
    known = arrays[name]
    bounds = {
        "counts": (0, int(arrays["rows"][0])),
        "means": (-kernels.scaling.LARGEST, kernels.scaling.LARGEST),
        "squares": (0, _MOST_SQUARED),
    }
    least, most = bounds.get(name, (0, _HUGE))
    return bool(least <= known.min() and known.max() <= most)


def _nothing(kind: str) -> Known:
    """Return the statistics before any row: the count of rows, and arrays by feature."""
    rows = {"rows": np.zeros(1, np.int64)}
    return rows | {name: np.zeros(0) for name in _BY_FEATURE.get(kind, ())}


def _widened(known: Known, width: int) -> Known:
    """Return statistics of `width` features; new arrays if they have to grow or are read-only."""
    missing = {name: max(0, width - len(array)) for name, array in known.items() if name != "rows"}
    if not any(missing.values()) and all(array.flags.writeable for array in known.values()):
        return known
    return {
        name: np.append(array, np.zeros(missing.get(name, 0), array.dtype))
        for name, array in known.items()
    }
