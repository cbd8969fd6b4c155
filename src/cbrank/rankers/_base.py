"""How all rankers learn: the scikit-learn face of a kernel that streams rows."""

import contextlib
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from operator import is_, itemgetter
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from cbrank import kernels
from cbrank.arrays import canonical, refuse_unsound
from cbrank.locking import Owner
from cbrank.parameters import Table, documented
from cbrank.rankers import _checks
from cbrank.rankers._scorer import LinearScorer

DENSE_BLOCK = 2**20  # numbers of a sparse matrix made dense at a time
_LAST_ROWS = 50  # kept of each class by rankers that learn without a buffer
_ONE_ROW = np.zeros(1, np.int64)
_ONE_LABEL = np.zeros(1, np.int64), np.ones(1, np.int64)


class Rows(NamedTuple):
    """The checked rows of a fit."""

    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64]
    weighted: bool
    classes: NDArray[Any]
    labels: NDArray[np.int64]


class Settings(NamedTuple):
    """What a stream is learned by for as long as no parameter changes."""

    read: Callable[[dict[str, Any]], tuple[Any, ...]]
    values: tuple[Any, ...]  # of the parameters, `read` from the attributes
    class_weight: Any  # a copy, for a dictionary changes within
    parameters: Any  # the kernel's
    weights: tuple[NDArray[np.float64], ...]  # of one row, by class


class Ranker(Owner, LinearScorer):
    """Base of the rankers: a subclass names its kernel, its model and its parameters."""

    class_weight: Literal["balanced"] | dict[Any, float] | None
    shuffle: bool
    n_passes: int
    random_state: Any

    PARAMETERS: ClassVar[Table]
    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    # Parameters that shape the model, so that they cannot change in the middle of a stream.
    _shape_parameters: ClassVar[tuple[str, ...]] = ("buffer_size", "covariance", "rank")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "PARAMETERS" in vars(cls):
            cls._parameter_constraints = _checks.constraints(cls.PARAMETERS)
            cls.__doc__ = documented(cls.__doc__, cls.PARAMETERS)

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

        An error or an interrupt (Ctrl-C) leaves the ranker as it was.

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
        with self._own.lock:
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
        weighed = _checks.weighed(weights, self._class_weights(classes), labels)
        _checks.check_classes(y[weighed > 0])
        return Rows(X, y, weights, sample_weight is not None, classes, labels)

    def _fit_rows(
        self, rows: Rows, kept: NDArray[np.int64], random: np.random.RandomState
    ) -> NDArray[np.float64]:
        """Learn anew from the rows `kept`, as if there were no others; return the weights used."""
        counts = np.bincount(rows.labels[kept], minlength=2)
        class_weights = self._class_weights(rows.classes, counts)
        weights = _checks.weighed(rows.weights, class_weights, rows.labels)
        self._start(rows.X, rows.classes, random)
        for _ in range(self.n_passes):
            order = random.permutation(kept) if self.shuffle else kept
            self._learn(rows.X, rows.labels, weights, order, self._kernel_parameters(False))
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

        Any split of a stream into chunks gives the same model. Threads that share a ranker take
        turns to learn; scores and attributes can be read meanwhile, of weights in the midst of a
        row. Interrupted (Ctrl-C), a ranker has learned the rows up to some row of the chunk, every
        learner alike and `n_seen_` in all, and goes on from there; interrupted in its first chunk,
        nothing.

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
        with self._own.lock:
            learn = self._go_on if self.__sklearn_is_fitted__() else self._begin
            learn(X, y, classes, sample_weight)
        self._warn_if_diverged()
        return self

    def _begin(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        """Begin a stream, unless there is nothing to learn from in its first chunk."""
        self._validate_params()
        with self._unchanged_on_error() as undo:
            X, y, weights = self._check(X, y, sample_weight, reset=True)
            if classes is None and not weights.any():
                undo()
                return
            known = _checks.check_classes(y[weights > 0] if classes is None else classes)
            labels = _checks.encode(y, known)
            weights = _checks.weighed(weights, self._class_weights(known), labels)
            if not weights.any():
                undo()
                return
            self._start(X, known, check_random_state(self.random_state))
            self._learn(X, labels, weights, np.arange(X.shape[0]), self._settings().parameters)

    def _go_on(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        """Go on with a stream that has begun."""
        settings = self._settings()
        X, y, weights = self._check(X, y, sample_weight, reset=False)
        self._check_unchanged(classes)
        labels = _checks.encode(y, self.classes_)
        weights = _checks.weighed(weights, np.concatenate(settings.weights), labels)
        self._learn(X, labels, weights, np.arange(X.shape[0]), settings.parameters)

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
        with self._own.lock:
            if classes is not None:
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
        settings = self._settings()
        labels, weights = _ONE_LABEL[label], settings.weights[label]
        usual = self._threshold is None and weights[0]
        if usual and (self._sparse or isinstance(row, np.ndarray)):
            self._stream(row, labels, weights, _ONE_ROW, settings.parameters)
        else:
            self._learn(row, labels, weights, _ONE_ROW, settings.parameters)
        self._warn_if_diverged()

    def _check_row(self, x: Any) -> Any:
        """Return one checked row; numbers that are in order, in an array or CSR, cost little."""
        if type(x) is np.ndarray and x.shape == (self.n_features_in_,) and x.dtype.kind in "fiub":
            row = np.array(x, dtype=np.float64, ndmin=2)
            if np.isfinite(row).all():
                return row
        elif sp.issparse(x) and x.format == "csr" and x.shape == (1, self.n_features_in_):
            refuse_unsound("X", x)
            if x.dtype == np.float64 and np.isfinite(x.data).all():
                return canonical(x)
        return _checks.check_rows(self, _checks.as_one_row(x), reset=False)

    def _settings(self) -> Settings:
        """Return what a stream is learned by, looked at anew only if a parameter has changed."""
        known: Settings | None = self._own.known
        if (
            known is None
            or not all(map(is_, known.read(self.__dict__), known.values))
            or self.class_weight != known.class_weight
        ):
            self._validate_params()
            self._check_unchanged(None)
            read, class_weight = itemgetter(*self._get_param_names()), self.class_weight
            weights = self._class_weights(self.classes_)
            self._own.known = known = Settings(
                read,
                read(self.__dict__),
                dict(class_weight) if isinstance(class_weight, dict) else class_weight,
                self._kernel_parameters(class_weight == "balanced"),
                (weights[:1], weights[1:]),
            )
        return known

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
                if hasattr(value, "features"):  # pickled in the midst of a row, it has notes of it
                    getattr(self, name).features[..., kernels.sparse_diagonal.PLACE] = 0.0

    def _check(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Any, NDArray[Any], NDArray[np.float64]]:
        X = _checks.check_rows(self, X, reset=reset)
        return X, _checks.check_labels(y, X), _checks.check_weights(sample_weight, X)

    @contextlib.contextmanager
    def _unchanged_on_error(self) -> Iterator[Callable[[], None]]:
        """Take back what was changed where there is an error, or when what this gives is called."""
        before = self.__dict__.copy()

        def undo() -> None:
            self.__dict__ = before

        try:
            yield undo
        except BaseException:
            undo()
            raise

    def _start(self, X: Any, classes: NDArray[Any], random: np.random.RandomState) -> None:
        seed = int(random.randint(1, 2**31 - 1)) * 2**31 + int(random.randint(2**31 - 1))
        n_features, capacity = X.shape[1], getattr(self, "buffer_size", _LAST_ROWS)
        self._sparse = sp.issparse(X) and not self._needs_matrix()
        self._threshold = self._stream_threshold = self._own.known = None
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
        with self._own.lock:
            self.__dict__.update(self._resized(n_features))

    def _resized(self, n_features: int) -> dict[str, Any]:
        """Return the attributes of a ranker with that many features that differ."""
        if self._sparse:
            buffer = self._buffer._make(
                map(np.copy, self._buffer)
            )  # the old goes with the old model
        else:
            fresh = kernels.buffers.empty_dense(self._buffer.rows.shape[1], n_features, 1)
            buffer = _refilled(fresh, self._buffer)
        model = _refilled(self._new_model(n_features), self._model)
        return {"_model": model, "_buffer": buffer, "n_features_in_": n_features}

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
        parameters: Any,
    ) -> None:
        """Learn rows in the order given, all but those of weight 0."""
        order = order[weights[order] > 0.0]
        if not order.size:
            return
        threshold, before = self._threshold, self._buffer.seen.sum()
        try:
            self._threshold = None
            self._learn_blocks(X, labels, weights, order, parameters)
        except BaseException:
            if self._buffer.seen.sum() == before:
                self._threshold = threshold
            raise

    def _learn_blocks(
        self,
        X: Any,
        labels: NDArray[np.int64],
        weights: NDArray[np.float64],
        order: NDArray[np.int64],
        parameters: Any,
    ) -> None:
        """Learn rows; those of a sparse matrix that have to be dense are made so a block at a time."""
        if self._sparse or isinstance(X, np.ndarray):
            self._stream(X, labels, weights, order, parameters)
            return
        block = max(1, DENSE_BLOCK // X.shape[1])
        for begin in range(0, len(order), block):
            rows = order[begin : begin + block]
            dense, here = X[rows].toarray(), np.arange(len(rows))
            self._stream(dense, labels[rows], weights[rows], here, parameters)

    def _stream(
        self,
        X: Any,
        labels: NDArray[np.int64],
        weights: NDArray[np.float64],
        order: NDArray[np.int64],
        parameters: Any,
    ) -> None:
        """Hand rows to the kernel, read-only so that one compiled version serves every caller."""
        if self._sparse:
            rows = _csr(X)
            self._buffer = kernels.buffers.widened(
                self._buffer, int(np.diff(rows.indptr)[order].max(initial=0))
            )
        else:
            rows = _read_only(X)
        self._run(rows, labels, weights, order, parameters)

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
        diverged = getattr(getattr(self, "_model", None), "diverged", None)
        if diverged is not None and diverged[0]:
            warnings.warn(
                f"{type(self).__name__} diverged at row {diverged[0]} of its stream: "
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
    return kernels.buffers.Csr(*map(_read_only, parts))


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to of an array that a kernel can read."""
    if not (array.flags.c_contiguous and array.flags.aligned):
        array = np.require(array, requirements=["C", "A"])
    view = array.view()
    view.flags.writeable = False
    return view
