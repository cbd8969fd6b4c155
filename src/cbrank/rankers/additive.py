"""Beyond the straight line: curves and crosses of the columns of a table, learned by CBR.

Rows are tables as they come. A `TableEncoder` turns them into features; CBR learns their weights. What
the encoder decides, it decides from the first rows and at the end of blocks (see ``record``), so that any
split of a stream into chunks gives the same ranker. The rows of the block are kept until then.

Some learners make use of the line alone, some of the curves too. When crosses are chosen, copies of the
two best learners join, which make use of them; the honest AUC of each decides what it weighs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from cbrank import kernels
from cbrank.features.containers import dictionaries_of
from cbrank.features.crosses import (
    MOST_COLUMNS,
    Evidence,
    Products,
    gathered,
    no_evidence,
    ranked_pairs,
)
from cbrank.features.encoder import TableEncoder
from cbrank.features.table import Table as Rows
from cbrank.parameters import ADDITIVE, Table
from cbrank.rankers import checks, halving, record
from cbrank.rankers.base import Batch
from cbrank.rankers.cbr import CBRanker
from cbrank.rankers.effects import Curve, Effects, Map
from cbrank.rankers.scorer import LinearScorer

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]
Facts = dict[str, Any]

LINE, BENDS, CROSSES = range(3)  # kinds of features

# Rows that decide what columns are: those of a stream wait until there are so many, `fit` looks ahead.
FIRST, FIRST_OF_FIT = 256, 512
_MOST_AHEAD = 2**20  # features that an encoder in a file may have got since the last block
_ROOM = 512  # features of crosses if `crosses` is "auto"
_CHOICES = 512, 2048, 8192  # rows after which crosses are chosen


class Waiting(NamedTuple):
    """Rows that have come and not been learned from, because it is not known what columns are."""

    rows: Rows
    labels: Places
    weights: Floats


def _of_rows_so_far(name: str) -> Any:
    """Return the attribute of CBR; while rows wait, that of the ranker which they would make."""
    known = vars(CBRanker).get(name) or vars(LinearScorer)[name]

    def read(ranker: Any) -> Any:
        ranker._fitted(name)
        return known.fget(ranker._of_now())

    return property(read, doc=known.__doc__)


class AdditiveRanker(CBRanker):
    """Curves and crosses of the columns of a table, in one pass.

    A table is taken as it comes: numbers, words, booleans, dates, free text, gaps. A column of numbers
    becomes a curve, one of words a weight for each category, and pairs of columns that belong together
    are crossed. The weights of all these are learned as those of `CBRanker`, with a covariance that
    gives a band around every curve. How much of the curves and crosses is used is decided within the
    pass: some learners have the line only, and all are weighed by their honest AUC.

    In a stream, the first 256 rows wait until it is known what the columns are; until then the ranker
    serves what it would have learned of them.

    Attributes
    ----------
    encoder_ : TableEncoder
        What was decided about the columns.
    coef_ : ndarray of shape (1, n_encoded)
        Weights of the encoder's features.
    covariance_ : ndarray of shape (n_encoded, n_encoded) or (n_encoded,)
        Covariance of the weights, or their variances; of the learner that leads.
    C_ : float
        The C of the learner that leads.
    reach_ : {"line", "curves", "crosses"}
        What the learner that leads makes use of.
    forgetting_ : float
        Share of the evidence that it forgets per row.
    Cs_ : ndarray of shape (10,)
        Every C tried, first those with the line only; only if `C` is "auto".
    progressive_auc_path_ : ndarray of shape (10,)
        AUC of late blocks of the learner with each of `Cs_`; only if `C` is "auto".
    n_seen_ : ndarray of shape (2,)
        Rows learned from, or waiting, of the negative and of the positive class.
    n_pairs_ : int
        Pairs met.
    n_updates_ : int
        Pairs that moved the model.
    diverged_ : bool
        Always False: this ranker does not diverge.

    Examples
    --------
    >>> from cbrank import AdditiveRanker
    >>> from cbrank.datasets import load
    >>> from sklearn.model_selection import train_test_split
    >>> X, y, facts = load("svmguide3")
    >>> X, X_new, y, y_new = train_test_split(X, y, random_state=0)
    >>> round(AdditiveRanker(random_state=0).fit(X, y).score(X_new, y_new), 2)
    0.89
    """

    PARAMETERS: ClassVar[Table] = ADDITIVE
    ARMS: ClassVar[halving.Arms] = halving.Arms(
        (-10, -7, -4, -1, 2) * 2, (LINE,) * 5 + (BENDS,) * 5, 2
    )
    _shape_parameters: ClassVar[tuple[str, ...]] = (
        *CBRanker._shape_parameters,
        "pieces",
        "crosses",
        "kinds",
        "max_categories",
    )

    _encoder: TableEncoder
    _pending: list[Rows]  # of the block, all that have been learned from
    _waiting: Waiting | None  # before it is known what columns are
    _evidence: Evidence | None  # for crosses, as long as some may be chosen
    _stages: int  # how many times crosses have been chosen
    _seed: int
    _narrow: bool  # whether the covariance is full

    def __init__(
        self,
        pieces: int = 8,
        *,
        crosses: int | list[Any] | Literal["auto"] = "auto",
        kinds: dict[Any, str] | None = None,
        max_categories: int = 64,
        C: float | Literal["auto"] = "auto",
        eta: float = 0.7,
        buffer_size: int | Literal["auto"] = "auto",
        policy: Literal["fifo", "reservoir"] = "fifo",
        covariance: Literal["auto", "full", "diagonal"] = "auto",
        diagonal_update: Literal["paper", "precision", "drop"] = "paper",
        average: bool | Literal["auto"] = "auto",
        forgetting: float | Literal["auto"] = "auto",
        operating_point: Literal["balanced", "accuracy"] = "balanced",
        class_weight: Literal["balanced"] | dict[Any, float] | None = None,
        shuffle: bool = True,
        n_passes: int = 1,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            C,
            eta=eta,
            buffer_size=buffer_size,
            policy=policy,
            covariance=covariance,  # type: ignore[arg-type]
            diagonal_update=diagonal_update,
            average=average,
            forgetting=forgetting,
            operating_point=operating_point,
            class_weight=class_weight,
            shuffle=shuffle,
            n_passes=n_passes,
            random_state=random_state,
        )
        self.pieces = pieces
        self.crosses = crosses
        self.kinds = kinds
        self.max_categories = max_categories

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
        return self._of_now()._encoder

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
        known = encoder.feature_names_in_.tolist()
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

    # Beginning ---------------------------------------------------------------------------------

    def _start_with(self, X: Any, classes: NDArray[Any], random: np.random.RandomState) -> None:
        self._own.served = None  # what the rows of an earlier stream would have made
        self._seed = int(random.randint(1, 2**31 - 1))
        self._start(1, classes, False, random)
        self._pending, self._evidence, self._stages = [], None, 0
        if isinstance(self.crosses, list):
            self._asked_pairs()  # refuse what is none at once, not when rows have waited
        self._waiting = Waiting(X.take(slice(0, 0)), np.zeros(0, np.int64), np.zeros(0))

    def _start(
        self, n_features: int, classes: NDArray[Any], sparse: bool, random: np.random.RandomState
    ) -> None:
        self._narrow = not sparse
        super()._start(n_features, classes, sparse, random)

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
            self._encoder.cross(self._asked_pairs(), None, 2**20)
        wide = self._encoder.is_wide_
        random = np.random.RandomState(self._seed)
        self._waiting = None
        shuffled = record.shuffled(self._record)
        self._start(max(1, self._encoder.width_), self.classes_, wide, random)
        record.set_shuffled(self._record, shuffled)

    def _asked_pairs(self) -> list[tuple[int, int]]:
        names = [*self._encoder.kinds_]
        pairs = list[tuple[int, int]]()
        assert isinstance(self.crosses, list)
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
            self._widen()
            room = record.rows_left(self._record) if tested else record.LONGEST
            part = slice(begin, begin + room)
            some = rows.take(part)
            if tested:
                self._pending = [*self._learned_of_block(), some]
            yield Batch(self._encoded(some), labels[part], weights[part], np.arange(len(some)))
            begin += len(some)

    def _learned_of_block(self) -> list[Rows]:
        """Return the rows of the block that have been learned from, not those of an interrupt."""
        filled = int(self._record.position[record.FILLED])
        if not filled or not self._pending:  # the encoder has learned from them
            return []
        if sum(map(len, self._pending)) == filled:
            return self._pending
        return [Rows.concatenated(self._pending).take(slice(0, filled))]

    # The end of a block ------------------------------------------------------------------------

    def _end_block(self) -> None:
        if self._pending:  # else an interrupt came after this
            self._settle(Rows.concatenated(self._learned_of_block()))
        super()._end_block()
        self._widen()

    def _settle(self, rows: Rows) -> None:
        """Let the encoder learn from the rows of the block, which is full, and choose crosses."""
        encoder = deepcopy(self._encoder)
        before = int(self._record.position[record.ROWS])
        ahead = min(max(encoder.n_settled_ - before, 0), len(rows))
        if ahead < len(rows):
            encoder.settle(rows.take(slice(ahead, None)))
        after, changed = before + len(rows), {"_encoder": encoder, "_pending": []}
        if self._may_cross():
            evidence = self._gathered(rows)
            if after >= _CHOICES[self._stages]:
                room = _ROOM if self.crosses == "auto" else int(self.crosses)  # type: ignore[arg-type]
                room -= int((encoder.partners_ >= 0).sum())
                encoder.cross(ranked_pairs(evidence), evidence, room)
                changed["_stages"] = self._stages + 1
            changed["_evidence"] = evidence
        self.__dict__.update(changed)

    def _may_cross(self) -> bool:
        """Say whether crosses may still be chosen: never all too late, or for those who lost."""
        wanted = self.crosses == "auto" or (isinstance(self.crosses, int) and self.crosses > 0)
        if not wanted or self._sparse or self._stages == len(_CHOICES):
            return False
        if self.C != "auto" or not self._encoder.crosses():
            return True
        return bool((self._halving.reach[self._halving.alive] >= CROSSES).any())

    def _gathered(self, rows: Rows) -> Evidence:
        """Return the evidence for crosses with that of the rows of the block."""
        held = self._record
        log_odds = kernels.calibration.log_odds(held.served, held.shape, held.curve)
        p = expit(log_odds)
        X = self._encoded(rows)
        coarse, evidence = self._encoder.coarse(), self._evidence
        if evidence is None:
            evidence = no_evidence(self._most_moving(coarse, X))
        return gathered(evidence, coarse, X, held.labels - p, p * (1.0 - p))

    def _most_moving(self, coarse: list[Any], X: Floats) -> list[Any]:
        """Return the columns that move scores most, if there are too many to look at all."""
        if len(coarse) <= MOST_COLUMNS:
            return coarse
        moved = self._by_column(X).std(axis=0)
        order = np.argsort(-moved[[each.column for each in coarse]], kind="stable")
        return [coarse[at] for at in sorted(order[:MOST_COLUMNS].tolist())]

    # Growing -----------------------------------------------------------------------------------

    def _kinds_of_features(self) -> Places:
        """Return of each feature whether it belongs to the line, the bends or the crosses."""
        kinds = np.where(self._encoder.bends_, BENDS, LINE)
        asked = isinstance(self.crosses, list)  # they are there from the start, with the curves
        return np.where(self._encoder.partners_ >= 0, BENDS if asked else CROSSES, kinds)

    def _reaching(self, model: Any, reach: int) -> Any:
        fresh = super()._reaching(model, reach)
        kinds = self._kinds_of_features() if hasattr(self, "_encoder") else np.zeros(0)
        _narrow(fresh, np.flatnonzero(kinds[: self._width_of(model)] > reach))
        return fresh

    @staticmethod
    def _width_of(model: Any) -> int:
        return int(model.features.shape[-2] if "features" in model._fields else model.mu.shape[-1])

    def _widen(self) -> None:
        """Make room for the features that the encoder has got since, as at the beginning."""
        before, width = self._width(), self._encoder.width_
        if width <= before:
            return
        grown = self._resized(width)
        del grown["n_features_in_"]  # the encoder's
        kinds = self._kinds_of_features()
        new = np.arange(width) >= before
        self._narrow_beyond(grown, new)
        crosses = [each for each in self._encoder.crosses() if each.first >= before]
        self._fill_crosses(grown["_buffer"], crosses)
        if (kinds[new] == CROSSES).any():
            self._join(grown, np.flatnonzero(new & (kinds == CROSSES)))
        self.__dict__.update(grown)

    def _narrow_beyond(self, grown: dict[str, Any], new: NDArray[np.bool_]) -> None:
        """Give new features a slight prior in learners that make no use of them."""
        if not hasattr(self, "_halving"):
            return
        kinds = self._kinds_of_features()
        for place, number in enumerate(self._halving.alive):
            model = halving.of_stack(grown["_others"], place - 1) if place else grown["_model"]
            _narrow(model, np.flatnonzero(new & (kinds > self._halving.reach[number])))

    def _fill_crosses(self, buffer: Any, crosses: list[Any]) -> None:
        """Write some crosses of buffered rows, of which all other features are known."""
        if self._sparse:
            return
        products = Products(crosses)
        if not products.features.size:
            return
        for label, size in enumerate(buffer.size.tolist()):
            if size:
                found = products.of(buffer.rows[label, :size])
                buffer.rows[label, :size, products.features] = found.T
                if buffer.means.size:  # a diagonal covariance needs none
                    buffer.means[label, products.features] = found.mean(axis=0)

    def _join(self, grown: dict[str, Any], places: Places) -> None:
        """Let copies of the best learners join, which make use of the crosses.

        Beside them the two best without crosses go on: all are as wide from now on, so that each costs
        much.
        """
        if not hasattr(self, "_halving"):
            return
        choice, kept = self._halving, grown["_record"]
        if (choice.reach[choice.alive] >= CROSSES).any():
            return  # those that joined before have got the new features
        numbers = choice.alive.tolist()
        models = [
            grown["_model"],
            *(halving.of_stack(grown["_others"], at) for at in range(len(numbers) - 1)),
        ]
        known = dict(zip(numbers, models, strict=True))
        order = halving.ranked(choice, kept.evidence, self._readouts()).tolist()
        left = [number for number in order if number != choice.forgetful][: self.ARMS.later]
        first = len(self.ARMS.exponents)
        joined = list(range(first, first + len(left)))
        for number, like in zip(joined, left, strict=True):
            known[number] = type(known[like])(*(array.copy() for array in known[like]))
            _set_prior(known[number], places, 1.0)
            choice = halving.with_learner(choice, number, like, float(choice.forgetting[like]))
            choice.reach[number] = CROSSES
            kept = halving.like(kept, number, like)
        alive = [*left, *(n for n in numbers if n == choice.forgetful), *joined]
        sources = [numbers.index(left[joined.index(n)] if n in joined else n) for n in alive]
        grown["_model"] = known[alive[0]]
        grown["_others"] = halving.stack([known[number] for number in alive[1:]], known[alive[0]])
        grown["_halving"] = choice._replace(alive=np.array(alive))
        grown["_record"] = kept._replace(places=kept.places[sources])

    # For merging -------------------------------------------------------------------------------

    @property
    def waits(self) -> bool:  # type: ignore[override]
        """Whether rows wait until it is known what columns are."""
        return self._waiting is not None

    def together(
        self, rankers: Sequence[Any], prior: Any
    ) -> tuple[list[Any], Any, Callable[[Any], Any]]:
        """Return rankers with the features of all, as they can be merged.

        Parameters
        ----------
        rankers : sequence of AdditiveRanker
            This one and others like it.
        prior : AdditiveRanker or None
            What they went on from.

        Returns
        -------
        rankers : list of AdditiveRanker
            Those that have learned, with the features of all.
        prior : AdditiveRanker or None
            The prior, with these features too.
        finish : callable
            What is to be done with the merged one: it learns the rows that wait.

        Examples
        --------
        >>> from cbrank import AdditiveRanker
        >>> ranker = AdditiveRanker().partial_fit([[0.0], [1.0]], [0, 1])
        >>> len(ranker.together([ranker], None)[0])
        1
        """
        from cbrank.rankers.together import together  # noqa: PLC0415 (only merging needs it)

        room = self.crosses if isinstance(self.crosses, int) else _ROOM
        return together(rankers, prior, 2**20 if isinstance(self.crosses, list) else room)

    def prior(self, number: int = 0) -> Any:
        """Return the model of a learner before the first row.

        Parameters
        ----------
        number : int, default=0
            The learner's number.

        Returns
        -------
        FullModel, DiagonalModel or SparseModel
            A Gaussian that has met no pair; features that the learner makes no use of have a slight
            variance.

        Examples
        --------
        >>> from cbrank import AdditiveRanker
        >>> AdditiveRanker().partial_fit([[0.0], [1.0]], [0, 1]).prior().mu
        array([0.])
        """
        fresh = super().prior()
        if not hasattr(self, "_halving"):
            return fresh
        return self._reaching(fresh, int(self._halving.reach[number]))

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
        parts = dict[str, tuple[Arrays, Any]]()
        parts["encoder"] = self._encoder.get_state()
        kept, waiting = self._learned_of_block(), self._waiting
        if waiting is not None:
            kept = [waiting.rows]
            arrays |= {"waiting.labels": waiting.labels, "waiting.weights": waiting.weights}
        if sum(map(len, kept)):
            parts["rows"] = Rows.concatenated(kept).state()
        if self._evidence is not None:
            arrays |= {f"evidence.{k}": v for k, v in self._evidence._asdict().items()}
        for name, (own, _) in parts.items():
            arrays |= {f"{name}.{key}": array for key, array in own.items()}
        own_facts = {name: fact for name, (_, fact) in parts.items()}
        own_facts |= {"seed": self._seed, "stages": self._stages, "waits": waiting is not None}
        return arrays, facts | {"table": own_facts}

    @classmethod
    def from_state(cls, arrays: Arrays, facts: Facts) -> Self:
        own, parts = _apart(arrays)
        ranker = super().from_state(own, facts)
        ranker._take_up(parts, facts.get("table"), facts["n_features"])
        filled = int(ranker._record.position[record.FILLED])
        kept = sum(map(len, ranker._pending)) or (0 if record.rows_left(ranker._record) else filled)
        if ranker._waiting is None and kept != filled:
            raise ValueError("it has not the rows of its block")
        return ranker

    @classmethod
    def check_state(cls, arrays: Arrays, facts: Facts) -> Self:
        own, parts = _apart(arrays)
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
            } if 0 < seed < 2**31 and 0 <= stages <= len(_CHOICES):
                self._seed, self._stages, of_rows = seed, stages, facts.get("rows")
            case _:
                raise ValueError("it has no sound encoder")
        self._encoder = TableEncoder.from_state(parts["encoder"], encoder)
        names = [*self._encoder.kinds_]
        rows = Rows.from_state(parts["rows"], of_rows) if isinstance(of_rows, dict) else None
        if rows is not None and rows.names != names:
            raise ValueError("its rows have other columns than its encoder")
        self._pending = [] if rows is None or waits else [rows]
        self._waiting = self._waiting_of(parts["waiting"], rows) if waits else None
        self._evidence = _evidence_of(parts["evidence"], len(names))
        ahead = max(1, self._encoder.width_) - n_features
        if not waits and not 0 <= ahead <= _MOST_AHEAD:
            raise ValueError("its encoder has not the features of its ranker")

    def _waiting_of(self, arrays: Arrays, rows: Rows | None) -> Waiting:
        if rows is None:
            none = [np.zeros(0)] * len(self._encoder.kinds_)
            rows = Rows([*self._encoder.kinds_], none)
        labels, weights = (arrays.get(name, np.zeros(0)) for name in ("labels", "weights"))
        if not (
            labels.shape == weights.shape == (len(rows),)
            and labels.dtype == np.int64
            and weights.dtype == np.float64
            and len(rows) < FIRST
            and np.isin(labels, [0, 1]).all()
            and np.isfinite(weights).all()
            and (weights > 0.0).all()
        ):
            raise ValueError("the rows that wait have no sound labels")
        return Waiting(rows, labels, weights)

    # What is served before it is known what columns are ------------------------------------------

    def _of_now(self) -> Self:
        view = super()._of_now()
        return view if view._waiting is None else self._provisional(view)

    def _provisional(self, view: Self) -> Self:
        """Return the ranker that the rows so far would make; it is made anew every few rows."""
        assert view._waiting is not None
        known = _milestone(len(view._waiting.rows))
        key = "provisional", view._encoder.n_features_in_, known
        with self._own.lock:
            if self._own.served is None or self._own.served[0] != key:
                self._own.served = key, self._provisional_of(view, known)
            found: Self = self._own.served[1]
        return found

    def _provisional_of(self, view: Self, count: int) -> Self:
        waiting = view._waiting
        assert waiting is not None
        twin = object.__new__(type(self))
        twin.__dict__.update(view.__dict__)
        twin._own = type(self._own)()
        twin._encoder = deepcopy(view._encoder)
        twin._decide(waiting.rows.take(slice(0, max(1, count))))
        batch = Batch(waiting.rows, waiting.labels, waiting.weights, np.arange(count))
        if count:
            twin._learn(batch, twin._kernel_parameters(self.class_weight == "balanced"))
        return twin

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

    @property
    def reach_(self) -> str:
        """What the learner that leads makes use of."""
        self._fitted("reach_")
        now = self._of_now()
        reach = CROSSES if not hasattr(now, "_halving") else now._halving.reach[now._numbers()[0]]
        return ("line", "curves", "crosses")[int(reach)]

    # What columns do -----------------------------------------------------------------------------

    def _by_column(self, X: Any) -> Floats:
        """Return what each column adds to the scores of encoded rows, a cross half to each."""
        width = self._width()
        if not self._encoder.width_:  # no column moves
            return np.zeros((X.shape[0], self._encoder.n_features_in_))
        owners, partners = self._encoder.owners_[:width], self._encoder.partners_[:width]
        crossed = partners >= 0
        share = sp.csr_array(
            (
                np.concatenate([np.where(crossed, 0.5, 1.0), np.full(crossed.sum(), 0.5)]),
                (
                    np.concatenate([np.arange(width), np.flatnonzero(crossed)]),
                    np.concatenate([owners, partners[crossed]]),
                ),
            ),
            shape=(width, self._encoder.n_features_in_),
        )
        weighed = X * self._weights() if not sp.issparse(X) else X.multiply(self._weights()).tocsr()
        found = weighed @ share
        return np.asarray(found.todense() if sp.issparse(found) else found)

    def contributions(self, X: Any) -> Floats:
        """Return what each column adds to the score of each row.

        Parameters
        ----------
        X : array-like, dict, list of dict, or data frame of shape (n_samples, n_columns)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            With `intercept_` they sum to `decision_function`. What a cross adds is given half to
            each of its two columns.

        Examples
        --------
        >>> from cbrank import AdditiveRanker
        >>> from cbrank.datasets import load
        >>> X, y, facts = load("diabetes")
        >>> ranker = AdditiveRanker(random_state=0).fit(X, y)
        >>> parts = ranker.contributions(X)
        >>> bool(np.allclose(parts.sum(axis=1) + ranker.intercept_, ranker.decision_function(X)))
        True
        """
        check_is_fitted(self)
        now = self._of_now()
        return now._by_column(now._check_rows(X, reset=False))

    def effects(self) -> Effects:
        """Return what columns do to scores, as of now.

        Returns
        -------
        Effects
            Its `terms`, how far each `moves` scores, and the methods behind `curve` and `cross`.

        Examples
        --------
        >>> from cbrank import AdditiveRanker
        >>> from cbrank.datasets import load
        >>> X, y, facts = load("diabetes")
        >>> ranker = AdditiveRanker(random_state=0).fit(X, y)
        >>> len(ranker.effects().terms) >= 8  # columns, and crosses if there are some
        True
        """
        check_is_fitted(self)
        now = self._of_now()
        labels, rows = now.buffered_rows()
        counts = np.bincount(labels, minlength=2)
        shares = (now.n_seen_ / np.maximum(counts, 1))[labels]
        model = now._model
        return Effects(
            now._encoder,
            now._weights(),
            model.Sigma if now._is_full() else model.variances,
            now._unit_of_leader(),
            rows,
            shares / max(float(shares.sum()), 1.0),
        )

    def _unit_of_leader(self) -> float:
        """Return the unit of what is served in that of the learner that leads."""
        readout = int(self._mix()[0].argmax())
        number, model = self._learners()[0]
        weights = self._readout(model, readout, slice(None))
        return (
            self._served_anchor().unit / self._anchor(self._record, weights, number, readout).unit
        )

    def curve(self, column: Any) -> Curve:
        """Return what a column adds to the score at its values, without its crosses.

        Parameters
        ----------
        column : str or int
            The column's name or position. A time has four: ``"when"`` is its trend, and
            ``"when: month"``, ``"when: weekday"`` and ``"when: hour"`` are words.

        Returns
        -------
        grid : ndarray or list of str
            Of a number about a hundred values from the first to the last knot, of words the
            categories, "other" and "missing" last where there are such, of a time moments.
        effect : ndarray of shape (n_values,)
            What the column adds to the score. Of a number or time it is relative to the median, of
            words to their mean over the buffered rows, the classes weighed as they have come.
        deviation : ndarray of shape (n_values,)
            Standard deviation of the effect, by the covariance of the learner that leads, in the
            unit of the scores.

        Examples
        --------
        >>> from cbrank import AdditiveRanker
        >>> from cbrank.datasets import load
        >>> X, y, facts = load("diabetes")
        >>> ranker = AdditiveRanker(random_state=0).fit(X, y)
        >>> grid, effect, deviation = ranker.curve(1)
        >>> bool(effect[0] < 0 < effect[-1])  # more glucose, more diabetes
        True
        """
        return self.effects().curve(column)

    def cross(self, column: Any, other: Any) -> Map:
        """Return what the cross of two columns adds to the score, where there is one.

        Parameters
        ----------
        column, other : str or int
            Names or positions of the columns, in any order.

        Returns
        -------
        grid, other_grid : ndarray or list of str
            Values of the two columns.
        effect : ndarray of shape (n_values, n_other_values)
            What their cross adds; 0 where a number is at its median.

        Examples
        --------
        >>> from cbrank import AdditiveRanker
        >>> from cbrank.datasets import load
        >>> X, y, facts = load("diabetes")
        >>> ranker = AdditiveRanker(crosses=[(1, 5)], random_state=0).fit(X, y)
        >>> glucose, mass, effect = ranker.cross(1, 5)
        >>> effect.shape == (len(glucose), len(mass))
        True
        """
        return self.effects().cross(column, other)

    def explain(self, x: Any, among: Any = None) -> str:
        """Say what moved the score of a row most.

        Parameters
        ----------
        x : dict, array-like or data frame of one row
            The row.
        among : array-like, list of dict or data frame of shape (n_samples, n_columns), default=None
            Rows to rank it among; itself need not be one of them.

        Returns
        -------
        str
            Its rank or score, and up to five terms with what they add, relative to a typical row
            (numbers at their median, all else on average).

        Examples
        --------
        >>> from cbrank import AdditiveRanker
        >>> from cbrank.datasets import load
        >>> X, y, facts = load("diabetes")
        >>> ranker = AdditiveRanker(random_state=0).fit(X, y)
        >>> ranker.explain(X[0], among=X)  # doctest: +ELLIPSIS
        'ranked ... of 768: ...'
        """
        check_is_fitted(self)
        now = self._of_now()
        table = now._read([x] if isinstance(x, Mapping) else checks.as_one_row(x), reset=False)
        row = now._encoded(table)
        score = float(now._scores(row)[0])
        text = f"score {score + now._intercept_now():.3g}"
        if among is not None:
            scores = now._scores(now._check_rows(among, reset=False))
            count = len(scores) + (score not in scores)
            text = f"ranked {1 + int((scores > score).sum()):,} of {count:,}"
        return f"{text}: {now.effects().named(table, row)}"


def _apart(arrays: Arrays) -> tuple[Arrays, dict[str, Arrays]]:
    """Return the arrays of CBR, and those of what an additive ranker has beside them."""
    parts: dict[str, Arrays] = {"encoder": {}, "rows": {}, "waiting": {}, "evidence": {}}
    own: Arrays = {}
    for name, array in arrays.items():
        part, _, rest = name.partition(".")
        parts.get(part, own)[rest if part in parts else name] = array
    return own, parts


def _evidence_of(arrays: Arrays, columns: int) -> Evidence | None:
    """Return saved evidence; refuse what makes none."""
    if not arrays:
        return None
    if arrays.keys() != {*Evidence._fields}:
        raise ValueError("its evidence for crosses is not whole")
    evidence = Evidence(**arrays)
    cells = evidence.owners.size
    sound = (
        evidence.columns.dtype == evidence.owners.dtype == np.int64
        and evidence.columns.ndim == evidence.owners.ndim == 1
        and np.isin(evidence.columns, np.arange(columns)).all()
        and (np.diff(evidence.columns) > 0).all()
        and np.isin(evidence.owners, evidence.columns).all()
        and (np.diff(evidence.owners) >= 0).all()
        and all(
            array.shape == (cells, cells) and array.dtype == np.float64 and np.isfinite(array).all()
            for array in evidence[2:]
        )
        and (evidence.variances >= 0.0).all()
    )
    if not sound:
        raise ValueError("its evidence for crosses makes no sense")
    return evidence


def _milestone(rows: int) -> int:
    """Return the greatest of 1, 2, ..., 8, 9, 10, ... by steps of an eighth that is not above."""
    at = 0
    while (later := at + max(1, at // 8)) <= rows:
        at = later
    return at


def _narrow(model: Any, features: Places) -> None:
    """Give features of a model, which have taught it nothing so far, a slight prior."""
    _set_prior(model, features, halving.SLIGHT)


def _set_prior(model: Any, features: Places, variance: float) -> None:
    if "Sigma" in model._fields:
        model.Sigma[features, features] = variance
    elif "features" in model._fields:
        model.features[features, kernels.sparse_diagonal.VARIANCE] = variance
    else:
        model.G[features] = 1.0 / variance
