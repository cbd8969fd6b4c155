"""How all rankers learn: the scikit-learn face of a kernel that streams rows."""

import contextlib
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from cbrank import kernels
from cbrank.rankers import _checks
from cbrank.rankers._scorer import LinearScorer

_DENSE_BLOCK = 2**20  # numbers of a sparse matrix made dense at a time
_LAST_ROWS = 50  # kept of each class by rankers that learn without a buffer
_ONE_ROW = np.zeros(1, np.int64)
_ONE_WEIGHT = np.ones(1)
_ONE_LABEL = np.zeros(1, np.int64), np.ones(1, np.int64)


class Rows(NamedTuple):
    """The checked rows of a fit."""

    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64]
    weighted: bool
    classes: NDArray[Any]
    labels: NDArray[np.int64]


class Ranker(LinearScorer):
    """Base of the rankers: a subclass names its kernel, its model and its parameters."""

    class_weight: Literal["balanced"] | dict[Any, float] | None
    shuffle: bool
    n_passes: int
    random_state: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "shuffle": ["boolean"],
        "n_passes": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    # Parameters that shape the model, so that they cannot change in the middle of a stream.
    _shape_parameters: ClassVar[tuple[str, ...]] = ("buffer_size", "covariance", "rank")

    # What a subclass says of itself ------------------------------------------------------------

    @abstractmethod
    def _new_model(self, n_features: int) -> Any:
        """Return the tuple of arrays that the kernel learns into."""

    @abstractmethod
    def _kernel(self) -> Callable[..., None]:
        """Return the function that streams rows, sparse if `_sparse`, into the model."""

    @abstractmethod
    def _kernel_parameters(self, balanced: bool) -> Any:
        """Return the tuple of numbers that the kernel goes by."""

    def _needs_matrix(self) -> bool:
        """Say whether the model is d x d, so that rows are taken one dense row at a time."""
        return False

    def _weights(self) -> NDArray[np.float64]:
        return self._model.w  # type: ignore[no-any-return]

    # Learning ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn anew from `n_passes` over the rows, shuffled unless ``shuffle=False``.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Rows; a C-ordered float64 array or a CSR matrix is not copied.
        y : array-like of shape (n_samples,)
            Two labels; the greater is the positive class.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C, or of the step. A row of weight 0 is as good as absent.

        Returns
        -------
        self : object
            The ranker itself.
        """
        self._validate_params()
        with self._unchanged_on_error():
            rows = self._check_both_classes(X, y, sample_weight)
            kept = np.flatnonzero(rows.weights)
            weights = self._fit_rows(rows, kept, check_random_state(self.random_state))
            self._threshold = self._threshold_of(rows, kept, weights)
        self._warn_if_diverged()
        return self

    def _check_both_classes(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        X, y, weights = self._check(X, y, sample_weight, reset=True)
        if not weights.any():
            raise ValueError("All sample weights are zero: there is no row to learn from.")
        classes = _checks.check_classes(y[weights > 0])
        labels = _checks.encode(y, classes)
        _checks.check_classes(y[weights * self._class_weights(classes)[labels] > 0])
        return Rows(X, y, weights, sample_weight is not None, classes, labels)

    def _fit_rows(
        self, rows: Rows, kept: NDArray[np.int64], random: np.random.RandomState
    ) -> NDArray[np.float64]:
        """Learn anew from the rows `kept`, as if there were no others; return the weights used."""
        counts = np.bincount(rows.labels[kept], minlength=2)
        weights = rows.weights * self._class_weights(rows.classes, counts)[rows.labels]
        self._start(rows.X, rows.classes, random)
        for _ in range(self.n_passes):
            order = random.permutation(kept) if self.shuffle else kept
            self._learn(rows.X, rows.labels, weights, order, balanced=False)
        return weights

    def _threshold_of(
        self, rows: Rows, kept: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> float:
        scores = self._scores(rows.X)[kept]
        return self._operating_point(rows.labels[kept], scores, sample_weight=weights[kept])

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on learning from a chunk of a stream, in the order given.

        Any split of a stream into chunks gives the same model.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Rows, one or many, of one class or both.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (2,), default=None
            The two labels; needed at the first call unless `y` has both.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C, or of the step. A row of weight 0 is as good as absent.

        Returns
        -------
        self : object
            The ranker itself.
        """
        first = not self.__sklearn_is_fitted__()
        self._validate_params()
        with self._unchanged_on_error():
            X, y, weights = self._check(X, y, sample_weight, reset=first)
            if first:
                known = _checks.check_classes(y if classes is None else classes)
                labels = _checks.encode(y, known)
                self._class_weights(known)
                self._start(X, known, check_random_state(self.random_state))
            else:
                self._check_unchanged(classes)
                labels = _checks.encode(y, self.classes_)
        balanced = self.class_weight == "balanced"
        if not balanced:
            weights *= self._class_weights(self.classes_)[labels]
        self._learn(X, labels, weights, np.arange(X.shape[0]), balanced=balanced)
        self._warn_if_diverged()
        return self

    def learn_one(self, x: Any, y: Any, classes: ArrayLike | None = None) -> Self:
        """Go on learning from one row: `partial_fit` without its overhead.

        Parameters
        ----------
        x : array-like of shape (n_features,) or sparse matrix of shape (1, n_features)
            The row.
        y : object
            Its label.
        classes : array-like of shape (2,), default=None
            The two labels; needed if this is the first row.

        Returns
        -------
        self : object
            The ranker itself.
        """
        if not self.__sklearn_is_fitted__():
            return self.partial_fit(_checks.as_one_row(x), [y], classes)
        self._check_unchanged(classes)
        self._learn_row(self._check_row(x), self._encode_one(y))
        return self

    def _encode_one(self, y: Any) -> int:
        """Return 0 for the label of the first class and 1 for that of the second."""
        try:
            return self._label_of[y]
        except (KeyError, TypeError):
            return int(_checks.encode(np.array([y]).ravel(), self.classes_)[0])

    def _learn_row(self, row: Any, label: int) -> None:
        """Go on learning from one row that is as `check_rows` gives it."""
        balanced = self.class_weight == "balanced"
        weight = _ONE_WEIGHT
        if isinstance(self.class_weight, dict):
            weight = np.array([self.class_weight.get(list(self._label_of)[label], 1.0)], float)
        self._learn(row, _ONE_LABEL[label], weight, _ONE_ROW, balanced)
        self._warn_if_diverged()

    def _check_row(self, x: Any) -> Any:
        """Return one checked row; a plain array of numbers that is in order costs little."""
        if type(x) is np.ndarray and x.shape == (self.n_features_in_,) and x.dtype.kind in "fiub":
            row = np.array(x, dtype=np.float64, ndmin=2)
            if np.isfinite(row).all():
                return row
        return _checks.check_rows(self, _checks.as_one_row(x), reset=False)

    def _check_unchanged(self, classes: ArrayLike | None) -> None:
        """Refuse what cannot change once a stream has begun."""
        if classes is not None:
            given = _checks.check_classes(classes).tolist()
            if given != self.classes_.tolist():
                raise ValueError(
                    f"classes={given} is not the classes of the first call, "
                    f"{self.classes_.tolist()}."
                )
        for name, value in self._shape.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name} was {value!r} when this stream began and cannot become "
                    f"{getattr(self, name)!r} now: fit anew, or set it back."
                )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name, value in vars(self).items():
            if isinstance(value, tuple) and hasattr(value, "_fields"):
                setattr(self, name, _writeable(value))

    def _check(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Any, NDArray[Any], NDArray[np.float64]]:
        X = _checks.check_rows(self, X, reset=reset)
        return X, _checks.check_labels(y, X), _checks.check_weights(sample_weight, X)

    @contextlib.contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _start(self, X: Any, classes: NDArray[Any], random: np.random.RandomState) -> None:
        seed = int(random.randint(1, 2**31 - 1)) * 2**31 + int(random.randint(2**31 - 1))
        n_features, capacity = X.shape[1], getattr(self, "buffer_size", _LAST_ROWS)
        self._sparse = sp.issparse(X) and not self._needs_matrix()
        self._stream_threshold = None
        self._model = self._new_model(n_features)
        if self._sparse:
            self._buffer = kernels.buffers.empty_sparse(capacity, seed)
        else:
            self._buffer = kernels.buffers.empty_dense(capacity, n_features, seed)
        known = self.get_params(deep=False)
        self._shape = {name: known[name] for name in self._shape_parameters if name in known}
        self.classes_ = classes
        self._label_of = {label: index for index, label in enumerate(classes.tolist())}

    def _resize(self, n_features: int) -> None:
        """Make room for features a stream has not shown before, which are as at its start.

        A width below the present one cuts off features that it has not shown.
        """
        self._model = _refilled(self._new_model(n_features), self._model)
        if not self._sparse:
            fresh = kernels.buffers.empty_dense(self._buffer.rows.shape[1], n_features, 1)
            self._buffer = _refilled(fresh, self._buffer)
        self.n_features_in_ = n_features

    def _class_weights(
        self, classes: NDArray[Any], counts: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return the weights of the two classes; `counts` are what "balanced" goes by."""
        if self.class_weight is None:
            return np.ones(2)
        if self.class_weight == "balanced":
            return np.ones(2) if counts is None else counts.sum() / (2.0 * np.maximum(counts, 1))
        weights = np.array([self.class_weight.get(label, 1.0) for label in classes.tolist()])
        unknown = set(self.class_weight) - set(classes.tolist())
        if unknown or not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError(
                f"class_weight={self.class_weight} must give a finite weight >= 0 to labels among "
                f"the classes {classes.tolist()}."
            )
        return weights

    def _learn(
        self,
        X: Any,
        labels: NDArray[np.int64],
        weights: NDArray[np.float64],
        order: NDArray[np.int64],
        balanced: bool,
    ) -> None:
        self._threshold = self._stream_threshold = None
        if self._sparse or isinstance(X, np.ndarray):
            self._stream(X, labels, weights, order, balanced)
            return
        block = max(1, _DENSE_BLOCK // X.shape[1])
        for begin in range(0, len(order), block):
            rows = order[begin : begin + block]
            dense, here = X[rows].toarray(), np.arange(len(rows))
            self._stream(dense, labels[rows], weights[rows], here, balanced)

    def _stream(
        self,
        X: Any,
        labels: NDArray[np.int64],
        weights: NDArray[np.float64],
        order: NDArray[np.int64],
        balanced: bool,
    ) -> None:
        """Hand rows to the kernel, read-only so that one compiled version serves every caller."""
        if self._sparse:
            rows = _csr(X)
            self._buffer = kernels.buffers.widened(
                self._buffer, int(np.diff(rows.indptr)[order].max(initial=0))
            )
        else:
            rows = X.view()
            rows.flags.writeable = False
        self._run(rows, labels, weights, order, self._kernel_parameters(balanced))

    def _run(
        self,
        rows: Any,
        labels: NDArray[np.int64],
        weights: NDArray[np.float64],
        order: NDArray[np.int64],
        parameters: Any,
    ) -> None:
        """Learn rows that are as the kernel wants them."""
        self._kernel()(rows, labels, weights, order, self._buffer, self._model, parameters)

    @property
    def diverged_(self) -> bool:
        """Whether a step too large was refused, which ended the learning."""
        return bool(getattr(self._fitted("diverged_"), "diverged", (0,))[0])

    def _warn_if_diverged(self) -> None:
        if self.diverged_:
            warnings.warn(
                f"{type(self).__name__} diverged at row {self._model.diverged[0]} of its stream: "
                "its step is too large for the scale of these columns. The weights are kept as "
                "they were before that row; use a smaller step or scaled columns.",
                ConvergenceWarning,
                stacklevel=3,
            )


def _writeable(arrays: Any) -> Any:
    """Return a tuple of arrays that can be learned into: joblib maps large ones read-only."""
    if all(array.flags.writeable for array in arrays):
        return arrays
    return type(arrays)(*(np.array(array) for array in arrays))


def _refilled(fresh: Any, arrays: Any) -> Any:
    """Return a tuple of fresh arrays, filled with others as far as both reach."""
    for new, old in zip(fresh, arrays, strict=True):
        both = tuple(map(slice, np.minimum(new.shape, old.shape)))
        new[both] = old[both]
    return fresh


def _csr(X: Any) -> Any:
    X = X if sp.issparse(X) else sp.csr_array(X)
    parts = (
        X.data,
        X.indices.astype(np.int32, copy=False),
        X.indptr.astype(np.int64, copy=False),
    )
    views = [np.require(part, requirements=["C", "A"]).view() for part in parts]
    for view in views:
        view.flags.writeable = False
    return kernels.buffers.Csr(*views)
