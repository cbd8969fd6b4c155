"""CBR on tables as they come: an encoder before the kernels.

What the encoder decides, it decides from the first rows and at the end of blocks (see ``record``), so that
any split of a stream into chunks gives the same ranker. The rows of the block are kept until then. Before
it is known what columns are, rows wait, and the ranker serves what they would make.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.features.containers import dictionaries_of
from cbrank.features.crosses import Evidence
from cbrank.features.encoder import TableEncoder
from cbrank.features.table import Table as Rows
from cbrank.rankers import checks, growing, halving, record, table_state
from cbrank.rankers.base import Batch, Ranker
from cbrank.rankers.cbr import CBRanker
from cbrank.rankers.memory import refuse_beyond
from cbrank.rankers.scorer import LinearScorer
from cbrank.rankers.table_state import FIRST, Waiting

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]
Facts = dict[str, Any]

FIRST_OF_FIT = 512  # rows that `fit` looks ahead to decide what columns are
# Features of a full covariance that nobody asked for by name: 32 MiB for each learner, all of it read
# for each pair. A table of 1,000 columns of numbers has 8,000, and took a second for each row.
_WIDEST_FULL = 2048
_MOST_PAIRS = 4096  # of columns to be crossed: they are in the header of a model file
# Bytes of a feature for each row of a class that is kept, and for the rows of a block: 12 where it is not
# zero, as in about half of the rows; buffers exist twice while they grow. By tests/tools/wide_tables.py.
_NUMBERS_HELD, _NUMBERS_MORE = 24.0, 1700.0


def _of_rows_so_far(name: str) -> Any:
    """Return the attribute of CBR; while rows wait, that of the ranker which they would make."""
    known = vars(CBRanker).get(name) or vars(LinearScorer)[name]

    def read(ranker: Any) -> Any:
        ranker._fitted(name)
        return known.fget(ranker._of_now())

    return property(read, doc=known.__doc__)


class TabularRanker(CBRanker):
    """A `CBRanker` that learns from tables, by the features of an encoder."""

    TAKES_TABLES: ClassVar[bool] = True
    _shape_parameters: ClassVar[tuple[str, ...]] = (
        *CBRanker._shape_parameters,
        "pieces",
        "crosses",
        "kinds",
        "max_categories",
    )

    pieces: int
    crosses: int | list[Any] | Literal["auto"]
    kinds: dict[Any, str] | None
    max_categories: int

    _encoder: TableEncoder
    _encoded_parts: list[Any]  # these rows as the model takes them, unless they come from a file
    _pending: list[Rows]  # of the block, all that have been learned from
    _waiting: Waiting | None  # before it is known what columns are
    _evidence: Evidence | None  # for crosses, as long as some may be chosen
    _stages: int  # how many times crosses have been chosen
    _seed: int
    _narrow: bool  # whether the covariance is full

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.dict = True
        return tags

    # Rows --------------------------------------------------------------------------------------

    @property
    def encoder_(self) -> TableEncoder:
        """What was decided about the columns."""
        self._fitted("encoder_")
        view = super()._of_now()
        return view._encoder if view._waiting is None else self._decided(view)._encoder

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        self._fitted("n_features_in_")
        return self._encoder.n_features_in_

    @n_features_in_.setter
    def n_features_in_(self, _: int) -> None:
        """Do nothing: that is the encoder's."""

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns, where the first rows had some."""
        self._fitted("feature_names_in_")
        return self._encoder.feature_names_in_

    def _width(self) -> int:
        return int(self._record.held.size)

    def _read(self, X: Any, *, reset: bool) -> Rows:
        if sp.issparse(X):
            raise TypeError(
                "Sparse data was passed, and AdditiveRanker takes tables: use CBRanker, or X.toarray()."
            )
        encoder = self._new_encoder() if reset else self._encoder
        rows = encoder.read(X)
        if reset:
            self._encoder = encoder
        return rows

    def _new_encoder(self) -> TableEncoder:
        return TableEncoder(self.pieces, self.kinds, self.max_categories)

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        rows = X if isinstance(X, Rows) else self._read(X, reset=reset)
        return self._encoded(rows)

    def _encoded(self, rows: Rows) -> Any:
        """Return rows as the model takes them."""
        width = self._width()  # the encoder may be ahead, in the midst of growing
        if self._sparse:
            return self._encoder.encode(rows)[:, :width]
        encoded = self._encoder.encode_dense(rows)
        if not encoded.shape[1]:  # no column moves
            return np.zeros((len(rows), width))
        return np.ascontiguousarray(encoded[:, :width])

    def _check(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Any, NDArray[Any], Floats]:
        if not reset:
            self._take_in_columns(X)
        rows = self._read(X, reset=reset)
        return rows, checks.check_labels(y, rows), checks.check_weights(sample_weight, rows)

    def _check_row(self, x: Any) -> Any:
        row = [x] if isinstance(x, Mapping) else checks.as_one_row(x)
        self._take_in_columns(row)
        return self._read(row, reset=False)

    def _take_in_columns(self, X: Any) -> None:
        """Take in columns that rows as dictionaries name for the first time, while rows wait."""
        encoder, waiting = self._encoder, self._waiting
        if waiting is None or not hasattr(encoder, "feature_names_in_"):
            return
        known = dict.fromkeys(encoder.feature_names_in_.tolist())
        new = dict.fromkeys(str(name) for row in dictionaries_of(X) for name in row)
        gaps = [np.full(len(waiting.rows), np.nan) for name in new if name not in known]
        if gaps:
            names = dict.fromkeys([*known, *new])
            rows, wider = Rows(names, [*waiting.rows.columns, *gaps]), self._new_encoder()
            wider._begin(rows)
            self.__dict__.update(_encoder=wider, _waiting=waiting._replace(rows=rows))

    def learn_one(self, x: Any, y: Any, classes: Any = None) -> Self:
        """Go on learning from one row.

        Parameters
        ----------
        x : dict, or array-like of shape (n_columns,)
            The row. Of a dictionary, keys that the first 256 rows did not have are left out, and
            keys that it lacks are gaps.
        y : object
            Its label.
        classes : array-like of shape (2,), default=None
            The two labels; needed if this is the first row.

        Returns
        -------
        object
            The ranker itself.

        Examples
        --------
        >>> from cbrank import AdditiveRanker
        >>> ranker = AdditiveRanker().learn_one({"age": 31, "city": "Oslo"}, 0, classes=[0, 1])
        >>> ranker.learn_one({"age": 45}, 1).n_seen_
        array([1, 1])
        """
        row = [x] if isinstance(x, Mapping) else checks.as_one_row(x)
        if not hasattr(self, "_model"):
            return self.partial_fit(row, [y], classes)
        if self._waiting is not None:
            with self._own.lock:
                self._take_in_columns(row)
                return self.partial_fit(row, [y], classes)
        return super().learn_one(x, y, classes)

    learn_at_once, say_at_once = Ranker.learn_at_once, Ranker.say_at_once  # no cell is plain

    # Beginning ---------------------------------------------------------------------------------

    def _start_with(self, X: Any, classes: NDArray[Any], random: np.random.RandomState) -> None:
        self._refuse_too_wide(X.shape[1])
        self._own.served = None  # what the rows of an earlier stream would have made
        self._seed = int(random.randint(1, 2**31 - 1))
        self._start(1, classes, False, random)
        self._pending, self._encoded_parts, self._evidence, self._stages = [], [], None, 0
        if isinstance(self.crosses, list):
            self.asked_pairs()  # refuse what is none at once, not when rows have waited
        self._waiting = Waiting(X.take(slice(0, 0)), np.zeros(0, np.int64), np.zeros(0))

    def _refuse_too_wide(self, columns: int) -> None:
        """Refuse a table that memory will not hold before a row waits, as if all were numbers."""
        if self.covariance == "full":
            cure = 'leave columns out, or use `covariance="diagonal"`'
            refuse_beyond(8.0 * columns**2, f"{columns:,} columns squared take", cure)
        features = columns * (self.pieces + 1)
        learners = halving.most_models(self.ARMS) if self.C == "auto" else 1
        kept = self._rows_kept(features)[0]
        refuse_beyond(
            features * (_NUMBERS_HELD * kept + _NUMBERS_MORE + 64.0 * learners),
            f"{columns:,} columns, of which {kept} rows of each class are kept, take",
            "leave columns out, or have fewer `pieces` or a smaller `buffer_size`",
        )

    def _set_up(
        self, n_features: int, classes: NDArray[Any], sparse: bool, random: np.random.RandomState
    ) -> None:
        self._narrow = not sparse
        super()._set_up(n_features, classes, sparse, random)

    def _needs_matrix(self) -> bool:
        wanted: str = self.covariance
        return self._narrow if wanted == "auto" else wanted == "full"

    def takes_dense_rows(self) -> bool:
        """Say whether the model is d x d, so that rows are taken one dense row at a time.

        Returns
        -------
        bool
            Whether that is so, as far as it is known what columns are.

        Examples
        --------
        >>> from cbrank import AdditiveRanker
        >>> AdditiveRanker().partial_fit([[0.0], [1.0]], [0, 1]).takes_dense_rows()
        True
        """
        return self._needs_matrix() if hasattr(self, "_narrow") else False

    def _decide(self, rows: Rows) -> None:
        """Decide what columns are by some rows, and begin to learn."""
        self._encoder.settle(rows)
        if isinstance(self.crosses, list):
            self._encoder.cross(self.asked_pairs(), None, growing.MOST_ASKED)
        wide = self._encoder.is_wide_ or self._encoder.width_ > _WIDEST_FULL
        random = np.random.RandomState(self._seed)
        self._waiting = None
        shuffled = record.shuffled(self._record)
        self._start(max(1, self._encoder.width_), self.classes_, wide, random)
        record.set_shuffled(self._record, shuffled)

    def asked_pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of columns that are to be crossed, by position."""
        names = self._encoder.names()
        pairs = list[tuple[int, int]]()
        assert isinstance(self.crosses, list)
        if len(self.crosses) > _MOST_PAIRS:
            raise ValueError(
                f"`crosses` has {len(self.crosses):,} pairs, of at most {_MOST_PAIRS:,}."
            )
        for pair in self.crosses:
            try:
                one, other = (at if at in range(len(names)) else names.index(at) for at in pair)
                if one == other:
                    raise ValueError
            except (TypeError, ValueError):
                raise ValueError(
                    f"`crosses` has {pair!r}, which is no pair of columns of X."
                ) from None
            pairs.append((min(one, other), max(one, other)))
        return [*dict.fromkeys(pairs)]

    def _reaching(self, model: Any, reach: int) -> Any:
        fresh = super()._reaching(model, reach)
        kinds = growing.kinds_of_features(self) if hasattr(self, "_encoder") else np.zeros(0)
        growing.narrow(fresh, np.flatnonzero(kinds[: fresh.mu.size] > reach))
        return fresh

    # Learning ----------------------------------------------------------------------------------

    def _fit_rows(self, rows: Any, kept: Places, random: np.random.RandomState) -> Floats:
        self._looks_ahead = True
        try:
            return super()._fit_rows(rows, kept, random)
        finally:
            del self._looks_ahead

    def _intercept_of(self, rows: Any, kept: Places, weights: Floats) -> Any:  # noqa: ARG002
        return None  # that of the honest curve: no row is encoded twice

    def _go_on(self, *args: Any, **kwargs: Any) -> None:
        if self._waiting is None:
            super()._go_on(*args, **kwargs)
            return
        with self._unchanged_on_error():
            self._encoder = deepcopy(self._encoder)
            super()._go_on(*args, **kwargs)

    def learn_again(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn once more from rows of the stream; those that wait have not been learned from yet.

        Parameters
        ----------
        X : array-like, dict, list of dict, or data frame of shape (n_samples, n_columns)
            Rows that `partial_fit` has taken.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        object
            The ranker itself.

        Examples
        --------
        >>> from cbrank import AdditiveRanker
        >>> ranker = AdditiveRanker().partial_fit([[0.0], [1.0]], [0, 1])
        >>> ranker.learn_again([[0.0], [1.0]], [0, 1]).n_seen_
        array([1, 1])
        """
        return self if self._waiting is not None else super().learn_again(X, y, sample_weight)

    def _blocks(self, batch: Batch, tested: bool) -> Iterator[Batch]:
        rows, labels = batch.X.take(batch.order), batch.labels[batch.order]
        weights = batch.weights[batch.order]
        if self._waiting is not None:
            waiting = Waiting(
                Rows.concatenated([self._waiting.rows, rows]),
                np.append(self._waiting.labels, labels),
                np.append(self._waiting.weights, weights),
            )
            ahead = hasattr(self, "_looks_ahead")
            if len(waiting.rows) < FIRST and not ahead:
                self._waiting = waiting
                return
            self._decide(waiting.rows.take(slice(0, FIRST_OF_FIT if ahead else FIRST)))
            rows, labels, weights = waiting
        begin = 0
        while begin < len(rows):
            if not record.rows_left(self._record):
                self._end_block()
            growing.widen(self)
            room = record.rows_left(self._record) if tested else record.LONGEST
            part = slice(begin, begin + room)
            some = rows.take(part)
            X = self._encoded(some)
            if tested:
                self._pending = [*self._learned_of_block(), some]
                self._encoded_parts = [*self._encoded_parts, X]
            yield Batch(X, labels[part], weights[part], np.arange(len(some)))
            begin += len(some)

    def _learned_of_block(self) -> list[Rows]:
        """Return the rows of the block that have been learned from, not those of an interrupt."""
        filled = int(self._record.position[record.FILLED])
        if not filled or not self._pending:  # the encoder has learned from them
            return []
        if sum(map(len, self._pending)) == filled:
            return self._pending
        return [Rows.concatenated(self._pending).take(slice(0, filled))]

    def _multiplies(self) -> bool:
        return True  # features are added while rows are learned, and pairs are judged by products

    def _run(self, batch: Batch, parameters: Any, *, tested: bool = True) -> None:
        try:
            super()._run(batch, parameters, tested=tested)
        finally:  # an interrupt may have come after a block, before there was room for its features
            growing.widen(self)

    def _encoded_block(self, rows: Rows) -> Any:
        """Return the rows of the block as the model takes them, those of this process as they are."""
        if sum(part.shape[0] for part in self._encoded_parts) != len(rows):
            return self._encoded(rows)
        return np.concatenate(self._encoded_parts)

    def _end_block(self) -> None:
        if self._pending:  # else an interrupt came after this
            growing.settle(self, Rows.concatenated(self._learned_of_block()))
        super()._end_block()
        growing.widen(self)

    # Taking out and putting in -------------------------------------------------------------------

    def get_state(self) -> tuple[Arrays, Facts]:
        """Return all that is needed to go on learning.

        Returns
        -------
        arrays : dict of str to ndarray
            The arrays, not copied, with those of the encoder and of rows that are still needed.
        facts : dict
            The class's name, parameters and other values.

        Examples
        --------
        >>> from cbrank import AdditiveRanker
        >>> arrays, facts = AdditiveRanker().partial_fit([[0.0], [1.0]], [0, 1]).get_state()
        >>> arrays["waiting.labels"]
        array([0, 1])
        """
        arrays, facts = super().get_state()
        encoder, own_facts = self._encoder.get_state()
        arrays |= {f"encoder.{name}": array for name, array in encoder.items()}
        kept, waiting = self._learned_of_block(), self._waiting
        if waiting is not None:
            kept = [waiting.rows]
            arrays |= {"waiting.labels": waiting.labels, "waiting.weights": waiting.weights}
        if sum(map(len, kept)):
            rows = Rows.concatenated(kept).state()
            arrays |= {f"rows.{name}": array for name, array in rows.items()}
        if self._evidence is not None:
            arrays |= {f"evidence.{k}": v for k, v in self._evidence._asdict().items()}
        table = {"encoder": own_facts, "seed": self._seed, "stages": self._stages}
        return arrays, facts | {"table": table | {"waits": waiting is not None}}

    @classmethod
    def from_state(cls, arrays: Arrays, facts: Facts) -> Self:
        own, parts = table_state.apart(arrays)
        ranker = super().from_state(own, facts)
        ranker._take_up(parts, facts.get("table"), facts["n_features"])
        filled = int(ranker._record.position[record.FILLED])
        kept = sum(map(len, ranker._pending)) or (0 if record.rows_left(ranker._record) else filled)
        if ranker._waiting is None and kept != filled:
            raise ValueError("it has not the rows of its block")
        return ranker

    @classmethod
    def check_state(cls, arrays: Arrays, facts: Facts) -> Self:
        own, parts = table_state.apart(arrays)
        ranker = super().check_state(own, facts)
        if len(own) < len(arrays):  # else `from_state` does the rest
            ranker._take_up(parts, facts.get("table"), facts["n_features"])
        return ranker

    def _take_up(self, parts: dict[str, Arrays], facts: Any, n_features: int) -> None:
        """Go on with an encoder and rows that were saved; refuse what makes no sense."""
        match facts:
            case {
                "encoder": dict(encoder),
                "seed": int(seed),
                "stages": int(stages),
                "waits": bool(waits),
            } if 0 < seed < 2**31 and 0 <= stages <= len(growing.CHOICES):
                self._seed, self._stages = seed, stages
            case _:
                raise ValueError("it has no sound encoder")
        self._encoder = TableEncoder.from_state(parts["encoder"], encoder)
        names = self._encoder.names()
        rows = Rows.from_state(parts["rows"], names) if parts["rows"] else None
        self._pending = [] if rows is None or waits else [rows]
        self._encoded_parts = []
        self._waiting = table_state.waiting_of(parts["waiting"], rows, names) if waits else None
        self._evidence = table_state.evidence_of(parts["evidence"], len(names))
        ahead = max(1, self._encoder.width_) - n_features
        if not waits and not 0 <= ahead <= table_state.MOST_AHEAD:
            raise ValueError("its encoder has not the features of its ranker")

    # What is served before it is known what columns are ------------------------------------------

    def _of_now(self) -> Self:
        view = super()._of_now()
        return view if view._waiting is None else self._provisional(view)

    def _provisional(self, view: Self) -> Self:
        """Return the ranker that the rows so far would make."""
        with self._own.lock:
            twin, waiting = self._decided(view), view._waiting
            if twin._own.turn == 0:
                assert waiting is not None
                order = np.arange(_milestone(len(waiting.rows)))
                batch = Batch(waiting.rows, waiting.labels, waiting.weights, order)
                if order.size:
                    twin._learn(batch, twin._kernel_parameters(self.class_weight == "balanced"))
                twin._own.turn += 1
        return twin

    def _decided(self, view: Self) -> Self:
        """Return that ranker before it learns: what columns are is often all that is asked.

        It is made anew every few rows, and where a parameter has changed.
        """
        assert view._waiting is not None
        count = _milestone(len(view._waiting.rows))
        # As text, for lists and dictionaries change within; the seed has been drawn.
        parameters = repr(view.get_params(deep=False) | {"random_state": None})
        key = "provisional", view._encoder.n_features_in_, count, parameters
        with self._own.lock:
            if self._own.served is None or self._own.served[0] != key:
                self._refuse_too_wide(view._encoder.n_features_in_)  # it may come from a file
                twin = object.__new__(type(self))
                twin.__dict__.update(view.__dict__)
                twin._own = type(self._own)()
                twin._encoder = deepcopy(view._encoder)
                twin._decide(view._waiting.rows.take(slice(0, max(1, count))))
                self._own.served = key, twin
            found: Self = self._own.served[1]
        return found

    def _weights_of(self, columns: Any) -> Floats:
        if self._waiting is not None:
            return self._of_now()._weights_of(columns)
        return super()._weights_of(columns)

    @property
    def n_seen_(self) -> Places:
        """Rows learned from, or waiting, of the negative and of the positive class."""
        self._fitted("n_seen_")
        if self._waiting is not None:
            return np.bincount(self._waiting.labels, minlength=2)
        return np.array(self._buffer.seen)

    intercept_ = _of_rows_so_far("intercept_")
    covariance_ = _of_rows_so_far("covariance_")
    C_ = _of_rows_so_far("C_")
    forgetting_ = _of_rows_so_far("forgetting_")
    n_pairs_ = _of_rows_so_far("n_pairs_")
    n_updates_ = _of_rows_so_far("n_updates_")


def _milestone(rows: int) -> int:
    """Return the greatest of 1, 2, ..., 8, 9, 10, ... by steps of an eighth that is not above."""
    at = 0
    while (later := at + max(1, at // 8)) <= rows:
        at = later
    return at
