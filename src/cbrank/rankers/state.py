"""The state of a ranker, for the other packages: `Stateful` is all that they know of it.

* beginning and widening: `start`, `reseed`, `resize`
* looking in: `weights`, `class_weights`, `buffered_rows`, `takes_dense_rows`
* taking out and putting in: `get_state`, `from_state`, `check_state`

Model files, merging, Dask, River and the command line go by these methods; no package but this one reads
an attribute of a ranker that begins with an underscore, which ``make lint`` checks.
"""

from abc import abstractmethod
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.locking import Owner
from cbrank.parameters import Table, documented
from cbrank.rankers import checks, record, state_checks
from cbrank.rankers.earlier import is_earlier, of_now, take_up, with_window
from cbrank.rankers.scorer import LinearScorer
from cbrank.rankers.state_checks import Arrays, Facts

_LAST_ROWS = 50  # kept of each class by rankers that learn without a buffer

# What files call the arrays of attributes; the last two as they have since their first format.
_PARTS = {
    "_model": "model",
    "_buffer": "buffer",
    "_record": "record",
    "_others": "rivals",
    "_halving": "race",
}

_SIZES = "buffer_size", "rank"  # parameters that arrays are as long as


class Stateful(Owner, LinearScorer):
    """A ranker as the other packages know it."""

    PARAMETERS: ClassVar[Table]

    # Parameters that shape the model, so that they cannot change in the middle of a stream.
    _shape_parameters: ClassVar[tuple[str, ...]] = (
        "buffer_size",
        "covariance",
        "policy",
        "rank",
    )

    class_weight: Literal["balanced"] | dict[Any, float] | None

    _shape: dict[str, Any]  # the values of these when the stream began

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "PARAMETERS" in vars(cls):
            cls.KINDS = {parameter.name: parameter.kinds for parameter in cls.PARAMETERS}
            cls.__doc__ = documented(cls.__doc__, cls.PARAMETERS)

    @abstractmethod
    def _new_model(self, n_features: int) -> Any:
        """Return the tuple of arrays that the kernel learns into."""

    def takes_dense_rows(self) -> bool:
        """Say whether the model is d x d, so that rows are taken one dense row at a time.

        Returns
        -------
        bool
            Whether sparse rows are made dense before they are learned from.
        """
        return self._needs_matrix()

    def _needs_matrix(self) -> bool:
        return False

    def _rows_kept(self, n_features: int) -> tuple[int, int]:  # noqa: ARG002
        """Return how many rows of each class are kept when a stream begins, and for how many there is room."""
        kept = int(getattr(self, "buffer_size", _LAST_ROWS))
        return kept, kept

    def _record_shape(self) -> tuple[int, int, int]:
        """Return how many learners there may be, how many begin, and how many readouts each has."""
        return 1, 1, 1

    # Beginning and widening --------------------------------------------------------------------

    def start(
        self,
        n_features: int,
        classes: NDArray[Any],
        *,
        sparse: bool = False,
        random: np.random.RandomState | None = None,
    ) -> Self:
        """Begin a stream, before its first row.

        Parameters
        ----------
        n_features : int
            Number of features.
        classes : ndarray of shape (2,)
            The two labels in order.
        sparse : bool, default=False
            Whether rows will be sparse.
        random : RandomState, default=None
            Source of the seed of the reservoir or the sketch; by default always the same.

        Returns
        -------
        self : object
            The ranker itself.
        """
        self._validate_params()
        self.class_weights(classes)
        self.__dict__.pop("feature_names_in_", None)
        self._start(n_features, np.array(classes), sparse, random or np.random.RandomState(0))
        self.n_features_in_ = n_features
        return self

    def _start(
        self, n_features: int, classes: NDArray[Any], sparse: bool, random: np.random.RandomState
    ) -> None:
        """Begin with nothing learned; other threads see all of it or nothing."""
        fresh = LinearScorer._of_now(self)
        fresh._set_up(n_features, classes, sparse, random)
        self._own.known = self._own.session = None
        self.__dict__ = fresh.__dict__

    def _set_up(
        self, n_features: int, classes: NDArray[Any], sparse: bool, random: np.random.RandomState
    ) -> None:
        seed = int(random.randint(1, 2**31 - 1)) * 2**31 + int(random.randint(2**31 - 1))
        kept = self._rows_kept(n_features)
        self._sparse = sparse and not self.takes_dense_rows()
        self._intercept = None
        self._model = self._new_model(n_features)
        if self._sparse:
            self._buffer = kernels.buffers.empty_sparse(*kept, seed)
        else:
            means = self.takes_dense_rows()
            self._buffer = kernels.buffers.empty_dense(*kept, n_features, seed, means=means)
        means = self.takes_dense_rows()
        self._record = record.begin(n_features, *self._record_shape(), means=means)
        known = self.get_params(deep=False)
        self._shape = {name: known[name] for name in self._shape_parameters if name in known}
        self.classes_ = classes
        self._label_of = {label: index for index, label in enumerate(classes.tolist())}

    def reseed(self, seed: int) -> None:
        """Let chance in the buffer go on from another seed.

        Parameters
        ----------
        seed : int
            From 1 to 2^63 - 1.
        """
        self._buffer.random[0] = seed

    def resize(self, n_features: int) -> None:
        """Make room for features that the stream has not shown before, which are as at its start.

        Parameters
        ----------
        n_features : int
            How many there are from now on. Fewer than now cuts off features that the stream has
            not shown.
        """
        with self._own.lock:
            self.__dict__.update(self._resized(n_features))
            self._own.session = None  # it would keep what was before

    def _resized(self, n_features: int) -> dict[str, Any]:
        """Return the attributes of a ranker with that many features that differ."""
        if self._sparse:  # a copy, for the old buffer goes with the old model
            buffer = self._buffer._make(map(np.copy, self._buffer))
        else:
            room, means = self._buffer.rows.shape[1], self.takes_dense_rows()
            fresh = kernels.buffers.empty_dense(room, room, n_features, 1, means=means)
            buffer = refilled(fresh, self._buffer)
        model = refilled(self._new_model(n_features), self._model)
        wide = {name: np.zeros(n_features) for name in ("held", "origin")}
        if not self._record.origin.size:
            del wide["origin"]
        kept = self._record._replace(
            **{
                name: refilled((new,), (getattr(self._record, name),))[0]
                for name, new in wide.items()
            }
        )
        return {
            "_model": model,
            "_buffer": buffer,
            "_record": kept,
            "n_features_in_": n_features,
        }

    # Looking in --------------------------------------------------------------------------------

    def weights(self, columns: Any = slice(None)) -> NDArray[np.float64]:
        """Return the weights of some features, without making those of all.

        Parameters
        ----------
        columns : slice or array of int
            Which features; by default all.

        Returns
        -------
        ndarray
            Their weights, as in `coef_`; not to be changed.
        """
        return self._weights_of(columns)

    def class_weights(
        self, classes: NDArray[Any], counts: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return the weights of the two classes.

        Parameters
        ----------
        classes : ndarray of shape (2,)
            The labels.
        counts : ndarray of shape (2,), default=None
            Rows of each class, which "balanced" goes by; without them it gives 1 to both.

        Returns
        -------
        ndarray of shape (2,)
            The weights.
        """
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

    def buffered_rows(self) -> tuple[NDArray[np.int64], Any]:
        """Return the rows that are kept to meet new ones.

        Returns
        -------
        labels : ndarray of shape (n_buffered,)
            0 for a row of the first class, 1 for one of the second.
        rows : ndarray or csr_array of shape (n_buffered, n_features)
            The rows, copied.
        """
        return self._rows_of(self._buffer)

    # Taking out and putting in -----------------------------------------------------------------

    def get_state(self) -> tuple[Arrays, Facts]:
        """Return all that is needed to go on learning.

        Returns
        -------
        arrays : dict of str to ndarray
            The arrays, not copied.
        facts : dict
            The class's name, parameters and other values.
        """
        return self._arrays(), {
            "class": type(self).__name__,
            "parameters": self.get_params(deep=False),
            "began_with": dict(self._shape),
            "classes": self.classes_,
            "n_features": self._width(),
            "sparse": bool(self._sparse),
            "intercept": self._intercept,
        }

    def _arrays(self) -> Arrays:
        return {
            f"{part}.{field}": state_checks.kept(field, np.asarray(value))
            for part, held in self._parts().items()
            for field, value in held._asdict().items()
        }

    def _parts(self) -> dict[str, Any]:
        """Return the tuples of arrays, by the names that files have for them."""
        held = vars(self)
        return {part: held[name] for name, part in _PARTS.items() if name in held}

    @classmethod
    def from_state(cls, arrays: Arrays, facts: Facts) -> Self:
        """Return the ranker of `get_state`.

        Parameters
        ----------
        arrays : dict of str to ndarray
            The arrays, which become the ranker's own.
        facts : dict
            The facts.

        Returns
        -------
        Ranker
            The ranker, which goes on as if it had never stopped.

        Raises
        ------
        ValueError
            If the arrays and facts are not those of a sound ranker.
        """
        earlier, arrays = is_earlier(arrays), with_window(arrays)
        if earlier:
            arrays, facts = of_now(cls, arrays, facts)
        ranker = cls.check_state(arrays, facts)
        for name, part in _PARTS.items():
            if name in vars(ranker):
                held = state_checks.filled(vars(ranker)[name], part, arrays)
                setattr(ranker, name, held)
        if earlier:
            take_up(ranker)
        return ranker

    @classmethod
    def check_state(cls, arrays: Arrays, facts: Facts) -> Self:
        """Check the state of a ranker, in little memory.

        Parameters
        ----------
        arrays : dict of str to ndarray
            The arrays.
        facts : dict
            The facts.

        Returns
        -------
        Ranker
            A small ranker in the place of the one that `from_state` gives back.

        Raises
        ------
        ValueError
            If the arrays and facts are not those of a sound ranker.
        """
        arrays = with_window(arrays)
        if is_earlier(arrays):
            arrays, facts = of_now(cls, arrays, facts)
        sparse, n_features = facts["sparse"], facts["n_features"]
        now = cls(**facts["parameters"])
        policy = {"policy": now.policy} if hasattr(now, "policy") else {}  # files of 0.1.0 lack it
        began_with = policy | facts["began_with"]
        first = cls(**facts["parameters"] | began_with)
        classes = _two_labels(facts["classes"])
        now._validate_params()
        try:
            now.class_weights(classes)
        except TypeError:
            raise ValueError("its class weights are not numbers") from None
        first._validate_params()
        sizes = {state_checks.WIDTH: n_features} | {
            name: getattr(first, name)
            for name in _SIZES
            if isinstance(getattr(first, name, None), Integral)
        }
        ranker: Self = state_checks.small_ranker(first, arrays, sizes, sparse, classes)
        if ranker._sparse is not sparse or ranker._shape.keys() != began_with.keys():
            raise ValueError("what it began with makes no sense")
        state_checks.refuse_bad_arrays(arrays, n_features)
        for name, value in now.get_params(deep=False).items():
            setattr(ranker, name, value)
        ranker._shape = {name: began_with[name] for name in ranker._shape}
        ranker.n_features_in_ = n_features
        ranker._intercept = state_checks.check_intercept(facts["intercept"])
        return ranker

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name in _PARTS.keys() & vars(self).keys():
            held = _writeable(vars(self)[name])
            setattr(self, name, held)
            if "features" in held._fields:  # pickled in the midst of a row, it has notes of it
                held.features[..., kernels.sparse_diagonal.PLACE] = 0.0


def refilled(fresh: Any, arrays: Any) -> Any:
    """Return a tuple of fresh arrays, filled with others as far as both reach."""
    for new, old in zip(fresh, arrays, strict=True):
        both = tuple(map(slice, np.minimum(new.shape, old.shape)))
        new[both] = old[both]
    return fresh


def _writeable(arrays: Any) -> Any:
    """Return a tuple of arrays that can be learned into: joblib maps large ones read-only."""
    if all(array.flags.writeable for array in arrays):
        return arrays
    return type(arrays)(*(np.array(array) for array in arrays))


def _two_labels(classes: Any) -> NDArray[Any]:
    """Return two labels in order; refuse anything else."""
    labels: NDArray[Any] = np.asarray(classes)
    try:
        if np.array_equal(labels, checks.check_classes(labels)):
            return labels
    except TypeError:
        pass
    raise ValueError("its classes are not two labels in order")
