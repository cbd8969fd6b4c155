"""Beyond the straight line: curves and crosses of the columns of a table, learned by CBR.

Some learners make use of the line alone, some of the curves too. When crosses are chosen, copies of the
two best learners join, which make use of them; the honest AUC of each decides what it weighs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.estimator import check_is_fitted
from cbrank.features.table import Table as Rows
from cbrank.parameters import ADDITIVE, Table
from cbrank.rankers import checks, growing, halving
from cbrank.rankers.effects import Curve, Effects, Map
from cbrank.rankers.growing import BENDS, CROSSES, LINE
from cbrank.rankers.reasons import MOST_NAMED, Reason, reasons_of, sentence
from cbrank.rankers.tabular import TabularRanker

Floats = NDArray[np.float64]


class AdditiveRanker(TabularRanker):
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

    def _begun(self) -> int:
        return len(self.ARMS.exponents)

    @property
    def reach_(self) -> str:
        """What the learner that leads makes use of."""
        self._fitted("reach_")
        now = self._of_now()
        reach = CROSSES if not hasattr(now, "_halving") else now._halving.reach[now._numbers()[0]]
        return ("line", "curves", "crosses")[int(reach)]

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

        choices = max(ranker._stages for ranker in rankers)
        return together(rankers, prior, growing.room(self, choices))

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
            now._weights().copy(),  # they may be the model's own, which goes on learning
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
            Of a number about a hundred values from the first to the last knot and those that have a
            weight of their own, of words the categories, "other" and "missing" last where there are
            such, of a time moments.
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
        now = self._of_now()
        one = [x] if isinstance(x, Mapping) else checks.as_one_row(x, "explain", "contributions")
        table = now._read(one, reset=False)
        row = now._encoded(table)
        score = float(now._scores(row)[0])
        text = f"score {score + now._intercept_now():.3g}"
        if among is not None:
            scores = now._scores(now._check_rows(among, reset=False))
            count = len(scores) + (score not in scores)
            text = f"ranked {1 + int((scores > score).sum()):,} of {count:,}"
        return f"{text}: {sentence(now._reasons(table, row, MOST_NAMED)[0])}"

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
            the buffered rows, classes weighed as they came. Over all terms they sum to the score
            less the average score.

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
        now = self._of_now()
        table = X if isinstance(X, Rows) else now._read(X, reset=False)
        return now._reasons(table, now._encoded(table), most)

    def _reasons(self, table: Rows, encoded: Any, most: int) -> list[list[Reason]]:
        cells = Rows(table.names, self._encoder.as_decided(table))
        return reasons_of(self.effects(), cells, encoded, most)
