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

from cbrank import kernels
from cbrank.arrays import canonical, read_only, refuse_unsound
from cbrank.estimator import check_random_state
from cbrank.rankers import checks, record
from cbrank.rankers.parts import assign, to_its_end, uninterrupted
from cbrank.rankers.state import Stateful

DENSE_BLOCK = 2**20  # numbers of a sparse matrix made dense at a time: 8 MiB
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


class Batch(NamedTuple):
    """Rows to learn from, as kernels take them."""

    X: Any
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]
    order: NDArray[np.int64]  # which rows, in which order


class Settings(NamedTuple):
    """What a stream is learned by for as long as no parameter changes."""

    read: Callable[[dict[str, Any]], tuple[Any, ...]]
    values: tuple[Any, ...]  # of the parameters, `read` from the attributes
    class_weight: Any  # a copy, for a dictionary changes within
    parameters: Any  # the kernel's
    weights: tuple[NDArray[np.float64], ...]  # of one row, by class


class Ranker(Stateful):
    """Base of the rankers: a subclass names its kernel, its model and its parameters."""

    class_weight: Literal["balanced"] | dict[Any, float] | None
    shuffle: bool
    n_passes: int
    random_state: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    # What a subclass says of itself ------------------------------------------------------------

    TAKES_TABLES: ClassVar[bool] = False  # as they come, with words and gaps; else numbers only

    @abstractmethod
    def _kernel(self) -> Callable[..., None]:
        """Return the function that streams rows, sparse if `_sparse`, into the model."""

    @abstractmethod
    def _kernel_parameters(self, balanced: bool) -> Any:
        """Return the tuple of numbers that the kernel goes by."""

    def _weights(self) -> NDArray[np.float64]:
        return self._model.w

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
                self._intercept = self._intercept_of(rows, kept, weights)
        self._warn_if_diverged()
        return self

    def _check_both_classes(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        X, y, weights = self._check(X, y, sample_weight, reset=True)
        if not weights.any():
            raise ValueError("All sample weights are zero: there is no row to learn from.")
        classes = checks.check_classes(y[weights > 0])
        labels = checks.encode(y, classes, weights)
        weighed = checks.weighed(weights, self.class_weights(classes), labels)
        checks.check_classes(y[weighed > 0])
        return Rows(X, y, weights, sample_weight is not None, classes, labels)

    def _fit_rows(
        self, rows: Rows, kept: NDArray[np.int64], random: np.random.RandomState
    ) -> NDArray[np.float64]:
        """Learn anew from the rows `kept`, as if there were no others; return the weights used."""
        counts = np.bincount(rows.labels[kept], minlength=2)
        class_weights = self.class_weights(rows.classes, counts)
        weights = checks.weighed(rows.weights, class_weights, rows.labels)
        self._start_with(rows.X, rows.classes, random)
        for number in range(self.n_passes):
            order = random.permutation(kept) if self.shuffle else kept
            batch = Batch(rows.X, rows.labels, weights, order)
            parameters, tested = self._kernel_parameters(False), number == 0
            self._learn(batch, parameters, tested=tested, shuffled=self.shuffle)
        return weights

    def _intercept_of(
        self, rows: Rows, kept: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> float:
        scores = self._scores(rows.X)[kept]
        return self._fitted_intercept(rows.labels[kept] == 1, scores, weights[kept])

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on learning from a chunk of a stream, in the order given.

        Any split of a stream into chunks gives the same model, up to rounding. Threads that share a
        ranker take turns to learn; scores and attributes can be read meanwhile, of weights in the
        midst of a row. Interrupted (Ctrl-C), a ranker has learned the rows up to some row of the chunk, every
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
            learn = self._go_on if hasattr(self, "_model") else self._begin
            learn(X, y, classes, sample_weight)
        self._warn_if_diverged()
        return self

    def learn_shuffled(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on learning from a chunk of rows that were shuffled: their order says nothing of time.

        It is `partial_fit` for rows that do not fit into memory and were shuffled elsewhere: no
        learner forgets, and probabilities go by all rows, as after `fit`.

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
            learn = self._go_on if hasattr(self, "_model") else self._begin
            learn(X, y, classes, sample_weight, shuffled=True)
        self._warn_if_diverged()
        return self

    def _begin(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, *, shuffled: bool = False
    ) -> None:
        """Begin a stream, unless there is nothing to learn from in its first chunk."""
        self._validate_params()
        with self._unchanged_on_error() as undo:
            X, y, weights = self._check(X, y, sample_weight, reset=True)
            if classes is None and not weights.any():
                undo()
                return
            known = checks.check_classes(y[weights > 0] if classes is None else classes)
            labels = checks.encode(y, known, weights)
            weights = checks.weighed(weights, self.class_weights(known), labels)
            if not weights.any():
                undo()
                return
            random = check_random_state(self.random_state)
            self._start_with(X, known, random)
            batch = Batch(X, labels, weights, np.arange(X.shape[0]))
            self._learn(batch, self._settings().parameters, shuffled=shuffled)

    def _start_with(self, X: Any, classes: NDArray[Any], random: np.random.RandomState) -> None:
        """Begin with rows like these."""
        self._start(X.shape[1], classes, sp.issparse(X), random)

    def learn_again(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn once more from rows of the stream, as a further pass does: they test nothing.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Rows that `partial_fit` has learned from.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        self : object
            The ranker itself.
        """
        with self._own.lock:
            shuffled = record.shuffled(self._record)
            self._go_on(X, y, None, sample_weight, tested=False, shuffled=shuffled)
        self._warn_if_diverged()
        return self

    def _go_on(
        self,
        X: Any,
        y: Any,
        classes: Any,
        sample_weight: Any,
        *,
        tested: bool = True,
        shuffled: bool = False,
    ) -> None:
        """Go on with a stream that has begun."""
        settings = self._settings()
        X, y, weights = self._check(X, y, sample_weight, reset=False)
        self._check_unchanged(classes)
        labels = checks.encode(y, self.classes_, weights)
        weights = checks.weighed(weights, np.concatenate(settings.weights), labels)
        batch = Batch(X, labels, weights, np.arange(X.shape[0]))
        self._learn(batch, settings.parameters, tested=tested, shuffled=shuffled)

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
        with self._own.lock:
            if classes is None and self.learn_at_once(x, y):
                return self
        if not hasattr(self, "_model"):
            return self.partial_fit(checks.as_one_row(x), [y], classes)
        with self._own.lock:
            if classes is not None:
                self._check_unchanged(classes)
            self.learn_row(self._check_row(x), self.encode_label(y))
        return self

    def learn_at_once(self, x: Any, y: Any) -> bool:  # noqa: ARG002
        """Learn a row that is plainly in order by one compiled call, if there is one.

        Parameters
        ----------
        x : object
            The row: an array of as many finite numbers as there are features.
        y : object
            Its label.

        Returns
        -------
        bool
            Whether it was learned. If not, nothing has changed, and the row is to be checked.
        """
        return False

    def encode_label(self, y: Any) -> int:
        """Return 0 for the label of the first class and 1 for that of the second.

        Parameters
        ----------
        y : object
            A label; any other is a ValueError.

        Returns
        -------
        int
            Its place in `classes_`.
        """
        try:
            return self._label_of[y]
        except (KeyError, TypeError):
            labels = np.array([y]).ravel()
            if labels.size != 1:
                raise ValueError(f"y must be one label, and it is {y!r}.") from None
            return int(checks.encode(labels, self.classes_)[0])

    def learn_row(self, row: Any, label: int) -> None:
        """Go on learning from one row, which is not checked.

        Parameters
        ----------
        row : ndarray or csr_array of shape (1, n_features)
            Finite float64 numbers; a sparse row has rising indices.
        label : int
            The place of its class in `classes_`.
        """
        settings = self._settings()
        batch = Batch(row, _ONE_LABEL[label], settings.weights[label], _ONE_ROW)
        usual = self._intercept is None and batch.weights[0]
        if usual and (isinstance(row, np.ndarray) or (self._sparse and sp.issparse(row))):
            record.set_shuffled(self._record, False)
            self._run(self._for_kernel(batch), settings.parameters)
        else:
            self._learn(batch, settings.parameters)
        self._warn_if_diverged(stacklevel=4)  # who called `learn_one`

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
        return self._check_rows(checks.as_one_row(x), reset=False)

    def _settings(self) -> Settings:
        """Return what a stream is learned by, looked at anew only if a parameter has changed."""
        known: Settings | None = self._own.known
        if (
            known is None
            or not all(map(is_, known.read(self.__dict__), known.values))
            or self.class_weight != known.class_weight
        ):
            self.check_parameters()
            read, class_weight = itemgetter(*self._get_param_names()), self.class_weight
            weights = self.class_weights(self.classes_)
            self._own.known = known = Settings(
                read,
                read(self.__dict__),
                dict(class_weight) if isinstance(class_weight, dict) else class_weight,
                self._kernel_parameters(class_weight == "balanced"),
                (weights[:1], weights[1:]),
            )
        return known

    def check_parameters(self, classes: ArrayLike | None = None) -> None:
        """Refuse parameters out of their range, or changed since a stream began that goes by them.

        Parameters
        ----------
        classes : array-like of shape (2,), default=None
            The two labels, which must be those of the stream.

        Examples
        --------
        >>> from cbrank import CBRanker
        >>> ranker = CBRanker(buffer_size=20).partial_fit([[0.0], [1.0]], [0, 1])
        >>> ranker.set_params(buffer_size=30).check_parameters()
        Traceback (most recent call last):
            ...
        ValueError: buffer_size was 20 when this stream began and cannot become 30 now: fit anew,
            or set it back.
        """
        self._validate_params()
        if hasattr(self, "_model"):
            self._check_unchanged(classes)

    def _check_unchanged(self, classes: ArrayLike | None) -> None:
        """Refuse what cannot change once a stream has begun."""
        if classes is not None:
            given = checks.check_classes(classes).tolist()
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

    def _check(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Any, NDArray[Any], NDArray[np.float64]]:
        X = checks.check_rows(self, X, reset=reset)
        return X, checks.check_labels(y, X), checks.check_weights(sample_weight, X)

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

    def _learn(
        self, batch: Batch, parameters: Any, *, tested: bool = True, shuffled: bool = False
    ) -> None:
        """Learn rows in the order given, all but those of weight 0.

        Rows that were learned from before, in an earlier pass, test nothing. Rows that were shuffled
        are no stream in time.
        """
        order = batch.order[batch.weights[batch.order] > 0.0]
        if not order.size:
            return
        intercept, before = self._intercept, self._buffer.seen.sum()
        was_shuffled = record.shuffled(self._record)
        try:
            self._intercept = None
            record.set_shuffled(self._record, shuffled)
            for block in self._blocks(batch._replace(order=order), tested):
                self._run(self._for_kernel(block), parameters, tested=tested)
        except BaseException:
            if self._buffer.seen.sum() == before:
                self._intercept = intercept
                record.set_shuffled(self._record, was_shuffled)
            raise

    def _blocks(self, batch: Batch, tested: bool) -> Iterator[Batch]:  # noqa: ARG002
        """Yield the rows; those of a sparse matrix that have to be dense a block at a time."""
        if self._sparse or isinstance(batch.X, np.ndarray):
            yield batch
            return
        size = max(1, DENSE_BLOCK // batch.X.shape[1])
        for begin in range(0, len(batch.order), size):
            rows = batch.order[begin : begin + size]
            here = np.arange(len(rows))
            yield Batch(batch.X[rows].toarray(), batch.labels[rows], batch.weights[rows], here)

    def _for_kernel(self, batch: Batch) -> Batch:
        """Return rows as kernels take them: read-only, so that one compiled version serves all."""
        if not self._sparse:
            return batch._replace(X=read_only(batch.X))
        rows = _csr(batch.X)
        longest = int(np.diff(rows.indptr)[batch.order].max(initial=0))
        self._buffer = kernels.buffers.widened(self._buffer, longest)
        return batch._replace(X=rows)

    def _run(self, batch: Batch, parameters: Any, *, tested: bool = True) -> None:
        """Learn rows that are as the kernel takes them, a part of a block at a time."""
        try:
            while batch.order.size:
                size = self._take_part(batch, parameters, tested)
                batch = batch._replace(order=batch.order[size:])
        finally:
            self._own.turn += 1

    def _take_part(self, batch: Batch, parameters: Any, tested: bool) -> int:
        """Learn the first rows of a batch, up to the end of a block; return how many."""
        if not record.rows_left(self._record):  # an interrupt came just before it ended
            self._end_block()
        order = batch.order[: record.rows_left(self._record) if tested else record.LONGEST]
        notes = record.notes_for(self._record, order.size, 1)
        rows, trail = batch._replace(order=order), notes.trail(self._record, 0)
        calls: list[Any] = [(self._kernel(), *rows, self._buffer, self._model, parameters, trail)]
        if tested:
            calls.append(record.noted(self._record, notes, self._numbers(), self._mix()))

        def go_on() -> None:
            if calls:
                uninterrupted([*calls, (calls.clear,)])
            if not record.rows_left(self._record):
                self._end_block()

        to_its_end(go_on, lambda: not calls)
        return order.size

    def _end_block(self) -> None:
        """Measure the block, which is full, and begin another that the weights of now will test."""
        measured = record.measured(self._record, self._numbers())
        view = self._bounded()
        after = record.next_block(measured, view._weights(), view._origin(), 1)
        calls = [(setattr, self, "_record", after)]
        if after.origin.size:
            calls.append(assign(self._buffer.means, view._buffer.means))
        uninterrupted(calls)

    @property
    def diverged_(self) -> bool:
        """Whether a step too large was refused, which ended the learning."""
        return bool(getattr(self._fitted("diverged_"), "diverged", (0,))[0])

    def _warn_if_diverged(self, stacklevel: int = 3) -> None:
        diverged = getattr(getattr(self, "_model", None), "diverged", None)
        if diverged is not None and diverged[0]:
            from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415

            warnings.warn(
                f"{type(self).__name__} diverged at row {diverged[0]} of its stream: "
                "its step is too large for the scale of these columns. The weights are kept as "
                "they were before that step; use a smaller step or scaled columns.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )


def _csr(X: Any) -> Any:
    X = X if sp.issparse(X) else sp.csr_array(X)
    parts = (
        X.data,
        X.indices.astype(np.int32, copy=False),
        X.indptr.astype(np.int64, copy=False),
    )
    return kernels.buffers.Csr(*map(read_only, parts))
