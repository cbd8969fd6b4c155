"""How all rankers learn: the scikit-learn face of a kernel that streams rows."""

import contextlib
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from copy import deepcopy
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from cbrank import checks
from cbrank.estimator import check_is_fitted, check_random_state
from cbrank.learning import blocks, record
from cbrank.learning.method import Method, Settings
from cbrank.learning.orders import learn_anew, prepare
from cbrank.learning.state import Batch, Cell, State, begin
from cbrank.parameters import Table, constructor, documented
from cbrank.rankers import interface, single
from cbrank.rankers.operating_point import intercept_of_fit
from cbrank.rankers.scorer import Scorer


class Rows(NamedTuple):
    """The checked rows of a fit."""

    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64]
    weighted: bool
    classes: NDArray[Any]
    labels: NDArray[np.int64]


class Ranker(Scorer, metaclass=ABCMeta):
    """Base of the rankers: a subclass has a table of parameters, and says how rows are learned."""

    PARAMETERS: ClassVar[Table]
    TAKES_TABLES: ClassVar[bool] = False  # with words and missing values; else numbers only
    # Parameters that shape the model, so that they cannot change in the middle of a stream.
    SHAPE: ClassVar[tuple[str, ...]] = ("buffer_size", "covariance", "policy", "rank")

    class_weight: Literal["balanced"] | dict[Any, float] | None
    shuffle: bool
    n_passes: int
    random_state: Any

    _shape: dict[str, Any]  # the values of these when the stream began

    if TYPE_CHECKING:  # made of `PARAMETERS`

        def __init__(self, *first: Any, **others: Any) -> None: ...

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "PARAMETERS" in vars(cls):
            cls.KINDS = {parameter.name: parameter.kinds for parameter in cls.PARAMETERS}
            cls.__doc__ = documented(cls.__doc__, cls.PARAMETERS)
            if "__init__" not in vars(cls):
                cls.__init__ = constructor(cls.PARAMETERS)  # type: ignore[method-assign]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class, tags.input_tags.sparse = False, not self.TAKES_TABLES
        for kind in ("allow_nan", "string", "categorical", "dict"):
            setattr(tags.input_tags, kind, self.TAKES_TABLES)
        return tags

    __dir__, __setstate__ = interface.public_names, interface.set_state

    # Rows that are to be learned, checked: of the first chunk of a stream, if `reset`, or of one that follows.
    _rows_to_learn = checks.check_rows

    # What a subclass says of itself ------------------------------------------------------------

    @abstractmethod
    def _method(self, state: State | None = None, *, fits: bool = False) -> Method:
        """Return how rows are learned, by the parameters."""

    def _balances(self, fits: bool) -> bool:
        """Say whether kernels weigh classes by the running counts; in a fit, weights of rows do it."""
        return self.class_weight == "balanced" and not fits

    def takes_dense_rows(self) -> bool:
        """Say whether the model is d x d, so that sparse rows are made dense, as far as that is known."""
        return False

    def _is_pool(self, state: State | None) -> bool:
        """Say whether C is "auto"; it may have been changed since a stream began."""
        return (vars(self) if state is None else self._shape).get("C") == "auto"

    def _front_of(self, parts: Any, facts: Any, n_features: int) -> Any:  # noqa: ARG002
        """Return the front of a saved state."""
        if facts or any(parts[part] for part in parts if part):
            raise ValueError("it has a front, which no such ranker has")

    def _front(self, X: Any) -> Any:  # noqa: ARG002
        """Return the front of a stream of rows like these, if they do not become features as they come."""
        return None

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
                self._set_intercept(rows, kept, weights)
        self._warn_if_diverged()
        return self

    def _check_both_classes(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        X, y, weights = self._check(X, y, sample_weight)
        if not weights.any():
            raise ValueError("All sample weights are zero: there is no row to learn from.")
        classes = checks.check_classes(y[weights > 0])
        labels = checks.encode(y, classes, weights)
        own = checks.class_weights(self.class_weight, classes)
        weighed = checks.weighed(weights, own, labels)
        checks.check_classes(y[weighed > 0])
        return Rows(X, y, weights, sample_weight is not None, classes, labels)

    def _fit_rows(
        self, rows: Rows, kept: NDArray[np.int64], random: np.random.RandomState
    ) -> NDArray[np.float64]:
        """Learn anew from the rows `kept`, as if there were no others; return the weights used."""
        counts = np.bincount(rows.labels[kept], minlength=2)
        own = checks.class_weights(self.class_weight, rows.classes, counts)
        weights = checks.weighed(rows.weights, own, rows.labels)
        self._start(rows.X, rows.classes, random, shuffled=self.shuffle)
        cell, batch = self._learned, Batch(rows.X, rows.labels, weights, kept)
        for number in range(self.n_passes):
            method, first = self._method(cell.state, fits=True), number == 0
            if self.shuffle and first:
                batch = learn_anew(cell, method, batch, random)
                continue
            if first:
                blocks.decide(cell, method, batch)
            batch = batch._replace(order=random.permutation(kept) if self.shuffle else kept)
            blocks.learn(cell, method, batch, shuffled=self.shuffle, tested=first)
        return weights

    def _set_intercept(
        self, rows: Rows, kept: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> None:
        """Take the operating point from the rows of a fit."""
        method, now = self._near()
        scores, positive = self._scores(rows.X, now, method)[kept], rows.labels[kept] == 1
        seen = np.bincount(positive, minlength=2)
        found = intercept_of_fit(
            now,
            self._anchor(method, now),
            (positive, scores, weights[kept]),
            self._costs(seen),
            self.operating_point == "balanced",
        )
        self._learned.state = self._learned.state._replace(intercept=found)

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
        self._take_up(X, y, classes, sample_weight)
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
        learner that forgets joins the others, and probabilities go by all rows, as after `fit`.

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
        self._take_up(X, y, classes, sample_weight, shuffled=True)
        return self

    def learn_again(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn once more from rows of the stream, as a further pass does: they test nothing.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Rows that `partial_fit` has learned from; those that wait are not learned twice.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        self : object
            The ranker itself.
        """
        check_is_fitted(self)
        if not self.waits:
            shuffled = record.shuffled(self._learned.state.record)
            self._take_up(X, y, None, sample_weight, tested=False, shuffled=shuffled)
        return self

    def _take_up(
        self,
        X: Any,
        y: Any,
        classes: Any,
        sample_weight: Any,
        *,
        tested: bool = True,
        shuffled: bool = False,
    ) -> None:
        """Go on with a stream, or begin one, unless there is nothing to learn from in its first chunk."""
        with self._own.lock:
            if "_learned" not in self.__dict__:
                self._begin(X, y, classes, sample_weight, shuffled)
            else:
                settings = self._settings()
                self._check_unchanged(classes)
                rows = self._rows_to_learn(X, reset=False)
                labels, weights = checks.check_labels_and_weights(
                    y, sample_weight, rows, self.classes_, settings.weights
                )
                batch = Batch(rows, labels, weights, np.arange(rows.shape[0]))
                blocks.learn(
                    self._learned, settings.method, batch, shuffled=shuffled, tested=tested
                )
        self._warn_if_diverged(4)

    def _begin(self, X: Any, y: Any, classes: Any, sample_weight: Any, shuffled: bool) -> None:
        self._validate_params()
        with self._unchanged_on_error() as undo:
            X, y, weights = self._check(X, y, sample_weight)
            if classes is None and not weights.any():
                undo()
                return
            known = checks.check_classes(y[weights > 0] if classes is None else classes)
            labels = checks.encode(y, known, weights)
            own = checks.class_weights(self.class_weight, known)
            weights = checks.weighed(weights, own, labels)
            if not weights.any():
                undo()
                return
            self._start(X, known, check_random_state(self.random_state), shuffled=shuffled)
            batch = Batch(X, labels, weights, np.arange(X.shape[0]))
            blocks.learn(self._learned, self._settings().method, batch, shuffled=shuffled)

    def _start(
        self, X: Any, classes: NDArray[Any], random: np.random.RandomState, *, shuffled: bool
    ) -> None:
        """Begin with rows like these; other threads see all of it or nothing."""
        seed = int(random.randint(1, 2**31 - 1)) * 2**31 + int(random.randint(2**31 - 1))
        front = self._front(X)
        width = X.shape[1] if front is None else front.first_width(X.shape[1])
        method = self._method()
        state = begin(method, width, seed, front, sparse=sp.issparse(X), shuffled=shuffled)
        self._own.known = self._own.session = self._own.provisional = None
        self._begin_like(classes, {"_learned": Cell(state)})

    def start_by(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Begin a stream whose columns and trees are decided by some rows, of which nothing else is learned."""
        with self._own.lock:
            self._validate_params()
            with self._unchanged_on_error():
                rows = self._check_both_classes(X, y, sample_weight)
                random = check_random_state(self.random_state)
                self._start(rows.X, rows.classes, random, shuffled=False)
                own = checks.class_weights(self.class_weight, rows.classes)
                weights = checks.weighed(rows.weights, own, rows.labels)
                batch = Batch(rows.X, rows.labels, weights, np.arange(rows.X.shape[0]))
                prepare(self._learned, self._method(self._learned.state), batch, random)
        return self

    def _begin_like(self, classes: NDArray[Any], learned: dict[str, Any] | None = None) -> None:
        known = self.get_params(deep=False)
        fresh: dict[str, Any] = {
            "_shape": {name: deepcopy(known[name]) for name in self.SHAPE if name in known},
            "classes_": classes,
            "_label_of": {label: index for index, label in enumerate(classes.tolist())},
        }
        if known.get("C") == "auto":
            fresh["_shape"]["C"] = "auto"
        self.__dict__ = self.__dict__ | fresh | (learned or {})

    learn_one = single.learn_one
    encode_label, learn_row = single.encode_label, single.learn_row

    def _check_row(self, x: Any) -> Any:
        """Return one checked row."""
        row = checks.as_one_row(x, tables=self.TAKES_TABLES)
        if type(row) is np.ndarray and row.dtype.kind in "iub" and not self.TAKES_TABLES:
            row = row.astype(np.float64)
        return self._check_rows(row, reset=False)

    def learn_at_once(self, x: Any, y: Any) -> bool:  # noqa: ARG002
        """Learn a row that is plainly in order by one compiled call; say whether it could."""
        return False

    def _settings(self) -> Settings:
        """Return what a stream is learned by, looked at anew only if a parameter has changed."""
        known: Settings | None = self._own.known
        if (
            known is None
            or not all(map(is_, known.read(self.__dict__), known.values))
            or self.class_weight != known.class_weight
            or known.sparse is not self._learned.state.sparse
        ):
            self.check_parameters()
            read, class_weight = itemgetter(*self._get_param_names()), self.class_weight
            self._own.known = known = Settings(
                read,
                read(self.__dict__),
                dict(class_weight) if isinstance(class_weight, dict) else class_weight,
                self._method(self._learned.state),
                self._learned.state.sparse,
                checks.class_weights(class_weight, self.classes_),
            )
        return known

    def check_parameters(self, classes: ArrayLike | None = None) -> None:
        """Refuse parameters out of their range, or changed since a stream began that goes by them."""
        self._validate_params()
        if "_learned" in self.__dict__:
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
        if getattr(self, "C", None) == "auto" and "C" not in self._shape:
            raise ValueError(
                "C was a number when this stream began and cannot become 'auto' now: fit anew, or "
                "set it back."
            )
        for name, value in self._shape.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name} was {value!r} when this stream began and cannot become "
                    f"{getattr(self, name)!r} now: fit anew, or set it back."
                )

    def _check(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, NDArray[Any], NDArray[np.float64]]:
        rows = self._rows_to_learn(X, reset=True)
        return rows, checks.check_labels(y, rows), checks.check_weights(sample_weight, rows)

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

    def _warn_if_diverged(self, stacklevel: int = 3) -> None:
        if "_learned" not in self.__dict__:
            return
        diverged = getattr(self._learned.state.models[0], "diverged", None)
        if diverged is not None and diverged[0]:
            from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415

            warnings.warn(
                f"{type(self).__name__} diverged at row {diverged[0]} of its stream: "
                "its step is too large for the scale of these columns. The weights are kept as "
                "they were before that step; use a smaller step or scaled columns.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )

    # For the other packages --------------------------------------------------------------------

    start, reseed, resize = interface.start, interface.reseed, interface.resize
    weights, class_weights = interface.weights, interface.class_weights
    buffered_rows, waits = interface.buffered_rows, property(interface.waits)
    learned, prior = interface.learned, interface.prior
    lasting, like = interface.lasting, interface.like
    method = interface.method
    kernel_call, rank_later_rows = interface.kernel_call, interface.rank_later_rows
    learned_in_order = interface.learned_in_order
    get_state = interface.get_state
    from_state, check_state = classmethod(interface.from_state), classmethod(interface.check_state)
