"""Tables as they come: curves, categories and trees of their columns, learned by CBR."""

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from cbrank import checks
from cbrank.estimator import check_is_fitted
from cbrank.features.encoder import TableEncoder
from cbrank.features.table import Table as Rows
from cbrank.learning import blocks, memory, tables
from cbrank.learning.front import none_waiting
from cbrank.learning.method import Method
from cbrank.learning.pool import OF_CURVES, OF_CURVES_DIAGONAL, OF_IDS, OF_LEAVES, Learner
from cbrank.learning.state import State
from cbrank.learning.tables import Tables, tables_from
from cbrank.parameters import ADDITIVE, MOST_OF_CURVES, Table
from cbrank.rankers import gaussian
from cbrank.rankers.base import Ranker
from cbrank.rankers.cbr import method_of
from cbrank.rankers.effects import Curve, Effects, effects_of, sample_of
from cbrank.rankers.reasons import MOST_NAMED, Reason, reasons_of, sentence

Floats = NDArray[np.float64]

_IMPORTANT = 1024  # rows that importances are of


_KEPT = 50  # rows of each class that new ones meet beside the curves


def _kept_beside(asked: Any, _: int) -> tuple[int, int]:
    """Return how many rows of each class are kept beside the curves, and for how many there is room."""
    count = _KEPT if asked == "auto" else int(asked)
    return count, count


class AdditiveRanker(Ranker):
    """Curves of the columns of a table, and trees beside them, in one pass.

    A table is taken as it comes: numbers, words, booleans, dates, free text, missing values. A column of numbers
    becomes a curve, and one of words a weight for each category. The weights of all these are learned as
    those of `CBRanker`, with a covariance that gives a band around every curve. How far curves bend is a
    matter of their prior.

    Beside the curves, trees are grown from rows that were learned; each leaf is a feature with a weight that is
    learned in the same way, from rows that the tree was grown without. Columns with many categories have a weight for
    each of them too. How much the curves, the trees and the categories count is decided by how well each ranked
    rows before it learned from them.

    In a stream, the first 256 rows wait until it is known what the columns are; until then the ranker
    serves what it would have learned of them. Trees are grown when 1,024 rows have come, and again each time that
    there are four times as many.

    Attributes
    ----------
    encoder_ : TableEncoder
        What was decided about the columns.
    coef_ : ndarray of shape (1, n_encoded)
        Weights of the encoder's features.
    covariance_ : ndarray of shape (n_encoded, n_encoded) or (n_encoded,)
        Covariance of the weights, or their variances; of the learner that weighs most.
    C_ : float
        The C of the learner that weighs most.
    forgetting_ : float
        Share of the evidence that it forgets per row.
    n_seen_ : ndarray of shape (2,)
        Rows learned from, or waiting, of the negative and of the positive class.
    n_pairs_ : int
        Pairs met.
    n_updates_ : int
        Pairs that moved the model.
    feature_importances_ : ndarray of shape (n_columns,)
        How far each column moves scores, as shares that sum to 1.
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
    TAKES_TABLES: ClassVar[bool] = True
    MOST_KEPT: ClassVar[tuple[int, int]] = MOST_OF_CURVES
    SHAPE: ClassVar[tuple[str, ...]] = (
        *Ranker.SHAPE,
        "pieces",
        "trees",
        "kinds",
        "max_categories",
    )

    def __init__(
        self,
        pieces: int = 8,
        *,
        trees: int | Literal["auto"] = "auto",
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
        horizon: Literal["auto", "next", "later"] = "auto",
        operating_point: Literal["balanced", "accuracy"] = "balanced",
        class_weight: Literal["balanced"] | dict[Any, float] | None = None,
        shuffle: bool = True,
        n_passes: int = 1,
        random_state: Any = None,
    ) -> None:
        self.pieces = pieces
        self.trees = trees
        self.kinds = kinds
        self.max_categories = max_categories
        self.C = C
        self.eta = eta
        self.buffer_size = buffer_size
        self.policy = policy
        self.covariance = covariance
        self.diagonal_update = diagonal_update
        self.average = average
        self.forgetting = forgetting
        self.horizon = horizon
        self.operating_point = operating_point
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_passes = n_passes
        self.random_state = random_state

    # How it learns -------------------------------------------------------------------------------

    def takes_dense_rows(self) -> bool:
        if self.covariance != "auto" or not self.__sklearn_is_fitted__():
            return self.covariance == "full"
        return not self._learned.state.sparse

    def _method(self, state: State | None = None, *, fits: bool = False) -> Method:
        is_pool, balanced = self._is_pool(state), self._balances(fits)
        if self.covariance != "auto":
            return self._method_of(self.covariance == "full", is_pool, balanced)
        diagonal, full = (self._method_of(each, is_pool, balanced) for each in (False, True))
        method = diagonal if state is not None and state.sparse else full
        return replace(method, of_matrix=(diagonal, full))

    def _method_of(self, full: bool, is_pool: bool, balanced: bool) -> Method:
        pool = (OF_CURVES if full else OF_CURVES_DIAGONAL) if is_pool else None
        return replace(
            method_of(self, pool, full=full, balanced=balanced),
            new_memory=memory.begin,
            leaves=self._method_of_leaves(balanced),
            ids=self._method_beside(OF_IDS, balanced) if is_pool else None,
        )

    def _method_of_leaves(self, balanced: bool) -> Method | None:
        if self.trees == 0 or (self.trees == "auto" and self.C != "auto"):
            return None
        count = None if self.trees == "auto" else int(self.trees)
        return replace(self._method_beside(OF_LEAVES, balanced), trees=count)

    def _method_beside(self, learners: tuple[Learner, ...], balanced: bool) -> Method:
        """Return how features beside those of the encoder are learned."""
        return replace(
            method_of(self, learners, full=False, balanced=balanced),
            lasting=len(learners),
            rows_kept=partial(_kept_beside, self.buffer_size),
            joins=False,
        )

    def _front(self, X: Rows) -> Tables:
        tables.refuse_too_wide(X.shape[1], self._method(), self.covariance, self.pieces)
        return Tables(self._encoder, none_waiting(X.take(slice(0, 0))))

    def _front_of(self, parts: Any, facts: Any, n_features: int) -> Tables:
        return tables_from(parts, facts, n_features)

    # Rows ----------------------------------------------------------------------------------------

    @property
    def encoder_(self) -> TableEncoder:
        """What was decided about the columns."""
        self._fitted("encoder_")
        encoder: TableEncoder = self._now()[1].front.encoder
        return encoder

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        self._fitted("n_features_in_")
        return self._learned.state.front.encoder.n_features_in_

    @n_features_in_.setter
    def n_features_in_(self, _: int) -> None:
        """Do nothing: that is the encoder's."""

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns, where the first rows had some."""
        self._fitted("feature_names_in_")
        return self._learned.state.front.encoder.feature_names_in_

    def _read(self, X: Any, *, reset: bool) -> Rows:
        if sp.issparse(X):
            raise TypeError(
                "Sparse data was passed, and AdditiveRanker takes tables: use CBRanker, or X.toarray()."
            )
        if not reset:
            return self._learned.state.front.encoder.read(X)
        self._encoder = TableEncoder(self.pieces, self.kinds, self.max_categories)
        return self._encoder.read(X)

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        return X if isinstance(X, Rows) else self._read(X, reset=reset)

    def _features(self, rows: Any, state: State) -> Any:
        return blocks.encoded(state, rows) if isinstance(rows, Rows) else rows

    def _rows_to_learn(self, X: Any, *, reset: bool) -> Rows:
        """Return checked rows; dictionaries may name columns for the first time while rows wait."""
        if not reset:
            cell, front = self._learned, self._learned.state.front
            if front.waiting is not None and hasattr(front.encoder, "feature_names_in_"):
                cell.state = tables.with_new_columns(cell.state, X)
        return self._read(X, reset=reset)

    # Learning ------------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn anew from `n_passes` over the rows, shuffled unless ``shuffle=False``.

        Parameters
        ----------
        X : array-like, dict, list of dict, or data frame of shape (n_samples, n_columns)
            Rows; what columns are is decided from a sample of them, and new categories are added as they come.
        y : array-like of shape (n_samples,)
            Two labels; the greater is the positive class.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C. A row of weight 0 is as good as absent.

        Returns
        -------
        AdditiveRanker
            The ranker itself.

        Examples
        --------
        >>> from cbrank import AdditiveRanker
        >>> ranker = AdditiveRanker().fit({"city": ["Oslo", "Rome"] * 20}, [0, 1] * 20)
        >>> ranker.predict({"city": ["Rome"]})
        array([1])
        """
        return super().fit(X, y, sample_weight)

    def _set_intercept(self, *_: Any) -> None:
        """Leave the operating point to the honest curve, so that no row is encoded twice."""

    def learn_one(self, x: Any, y: Any, classes: Any = None) -> Self:
        """Go on learning from one row.

        Parameters
        ----------
        x : dict, or array-like of shape (n_columns,)
            The row. Of a dictionary, keys that the first 256 rows did not have are left out, and
            keys that it lacks are missing values.
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
        return super().learn_one(x, y, classes)

    # What columns do -----------------------------------------------------------------------------

    def contributions(self, X: Any) -> Floats:
        """Return what each column adds to the score of each row.

        Parameters
        ----------
        X : array-like, dict, list of dict, or data frame of shape (n_samples, n_columns)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            With `intercept_` they sum to `decision_function`.

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
        rows = self._check_rows(X, reset=False)
        return self._effects(rows.shape[0]).by_column(rows)

    def effects(self) -> Effects:
        """Return what columns do to scores, as of now.

        Returns
        -------
        Effects
            Its `terms`, how far each `moves` scores, and the method behind `curve`.

        Examples
        --------
        >>> from cbrank import AdditiveRanker
        >>> from cbrank.datasets import load
        >>> X, y, facts = load("diabetes")
        >>> ranker = AdditiveRanker(random_state=0).fit(X, y)
        >>> len(ranker.effects().terms) >= 8
        True
        """
        check_is_fitted(self)
        return self._effects()

    def _effects(self, rows: int = 1) -> Effects:
        method, state = self._now(rows)
        return effects_of(method, state, self._served_of(method, state))

    @property
    def feature_importances_(self) -> Floats:
        """How far each column moves scores, of shape (n_columns,), as shares that sum to 1.

        It is the mean absolute deviation of what the column adds (`contributions`), over up to 1,024 of the rows
        learned. All are 0 if no column moves scores.
        """
        state = self._fitted("feature_importances_")
        parts = self._effects().by_column(sample_of(state, _IMPORTANT))
        size = (
            np.abs(parts - parts.mean(axis=0)).mean(axis=0)
            if len(parts)
            else np.zeros(parts.shape[1])
        )
        return size / (size.sum() or 1.0)

    def curve(self, column: Any) -> Curve:
        """Return what a column adds to the score at its values.

        Parameters
        ----------
        column : str or int
            The column's name or position. A time has four: ``"when"`` is its trend, and
            ``"when: month"``, ``"when: weekday"`` and ``"when: hour"`` are words.

        Returns
        -------
        grid : ndarray or list of str
            Of a number about a hundred values from the first to the last knot and those that have a
            weight of their own, of words the categories, "other" and "missing" last where there are
            such, of a time moments.
        effect : ndarray of shape (n_values,)
            What the column adds to the score: its curve or its weights, and the mean score that trees give
            64 of the rows learned if they have the value there (partial dependence). Of a number or time it is
            relative to the median, of words to their mean over rows learned.
        deviation : ndarray of shape (n_values,)
            Standard deviation of the effect, by the covariance of the learner that weighs most and by the
            variances of the leaves that these rows reach, taken as independent.

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
            Its rank or score, and up to five terms with what they add, more than they do on
            average.

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
        method, state = self._now()
        one = checks.as_one_row(x, "explain", "contributions", tables=True)
        table = self._read(one, reset=False)
        score = float(self._scores(table, state, method)[0])
        text = f"score {score + self._intercept_now(method, state):.3g}"
        if among is not None:
            scores = self._scores(self._check_rows(among, reset=False), state, method)
            count = len(scores) + (score not in scores)
            text = f"ranked {1 + int((scores > score).sum()):,} of {count:,}"
        return f"{text}: {sentence(self.reasons(table, MOST_NAMED)[0])}"

    def reasons(self, X: Any, most: int = 3) -> list[list[Reason]]:
        """Return what moved the score of each row most, away from the average.

        Parameters
        ----------
        X : array-like, dict, list of dict, or data frame of shape (n_samples, n_columns)
            Rows.
        most : int, default=3
            How many terms to name for each row.

        Returns
        -------
        list of list of Reason
            For each row the terms that add or take most, the largest first: column, value and
            contribution, which is what the term adds to this score less what it adds on average, to
            256 of the rows learned. Over all terms they sum to the score less the average score.

        Examples
        --------
        >>> from cbrank import AdditiveRanker
        >>> from cbrank.datasets import load
        >>> X, y, facts = load("diabetes")
        >>> ranker = AdditiveRanker(random_state=0).fit(X, y)
        >>> [[reason]] = ranker.reasons(X[:1], most=1)
        >>> reason.column, reason.value, reason.contribution > 0  # more glucose, more diabetes
        ('x1', 148.0, True)
        """
        check_is_fitted(self)
        table = self._check_rows(X, reset=False)
        return reasons_of(self._effects(table.shape[0]), table, most)

    # What a Gaussian can say ---------------------------------------------------------------------

    decision_function, preference_proba = gaussian.decision_function, gaussian.preference_proba
    _std = gaussian.deviations
    together = gaussian.together
    covariance_ = property(gaussian.covariance)
    C_, forgetting_ = property(gaussian.C), property(gaussian.forgetting)
    n_pairs_, n_updates_ = property(gaussian.n_pairs), property(gaussian.n_updates)
