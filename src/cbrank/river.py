"""Rankers in River: rows are dictionaries, whose features come and go."""

import copy
import itertools
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone

from cbrank import checks
from cbrank.locking import Owner
from cbrank.rankers import AdditiveRanker, CBRanker
from cbrank.rankers.base import Ranker

try:
    from river.base import MiniBatchClassifier
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"cbrank.river needs {error.name}: pip install 'cbrank[river]'.", name=error.name
    ) from error

__all__ = ["RankingClassifier"]

Floats = NDArray[np.float64]
Columns = NDArray[np.int32]
Batch = tuple[list[Any], Any, NDArray[Any]]  # names, rows, labels


class RankingClassifier(Owner, MiniBatchClassifier):
    """A ranker as a River classifier.

    Features are told apart by name: each gets a column when it first appears, and is zero in rows
    that lack it. Rankers with a matrix of all features (full covariance) learn from dense rows, all
    others from sparse ones, where a row costs what it has in it however many features there are.

    An `AdditiveRanker` takes rows as they are, with words, numbers, times and gaps: a key that a row
    lacks is a gap. Its columns are the keys of the first 256 rows; keys that come later are left out.

    Parameters
    ----------
    ranker : ranker, default=None
        Any ranker of cbrank; it stays as it is, and a copy learns. By default ``CBRanker()``.
    classes : collection of two labels, default=None
        The labels; the greater is the positive class. True and False need not be given. Of other
        labels only one is known until a row of the other class comes: rows are held in memory
        until then, and are learned from in their order. With `classes` none are held.

    Attributes
    ----------
    ranker_ : ranker
        A copy of the ranker as it is now, with a column for each of `feature_names_`. It can be
        saved, inspected and asked for confidences.
    feature_names_ : list
        The features in the order of their columns, which is that of their first appearance.

    Notes
    -----
    Probabilities are the ranker's own (`predict_proba`), which follow the stream. Where positives are
    rare, probabilities are small, as they should be, and `river.metrics.ROCAUC` needs more than its
    ten thresholds to tell them apart.

    Examples
    --------
    >>> from cbrank import CBRanker
    >>> from cbrank.datasets import load
    >>> from cbrank.river import RankingClassifier
    >>> from river import evaluate, metrics, preprocessing, stream
    >>> X, y, facts = load("german")
    >>> rows = stream.iter_array(X, y == 1)
    >>> model = preprocessing.StandardScaler() | RankingClassifier(CBRanker(random_state=0))
    >>> auc = evaluate.progressive_val_score(rows, model, metrics.ROCAUC(n_thresholds=100))
    >>> round(float(auc.get()), 2)
    0.76
    >>> model["RankingClassifier"].ranker_.n_seen_  # negative and positive rows
    array([700, 300])
    """

    def __init__(self, ranker: Ranker | None = None, classes: Collection[Any] | None = None):
        self.ranker = CBRanker() if ranker is None else ranker
        if not isinstance(self.ranker, Ranker):
            raise ValueError(  # noqa: TRY004
                f"ranker must be one of cbrank's rankers, not {ranker!r}."
            )
        self.classes = classes
        self._labels = (
            set() if classes is None else set(checks.check_classes(list(classes)).tolist())
        )
        self._reads_tables = isinstance(self.ranker, AdditiveRanker)
        self._takes_dense_rows = not self._reads_tables and self.ranker.takes_dense_rows()
        self._held: list[Batch] = []
        self._columns: dict[Any, int] = {}
        self._learner: Ranker | None = None  # it may be wider than there are features

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"ranker": CBRanker(random_state=0)}
        yield {"ranker": CBRanker(covariance="diagonal", random_state=0)}
        yield {"ranker": AdditiveRanker(random_state=0)}

    @property
    def ranker_(self) -> Ranker:
        """A copy of the ranker as it is now, with a column for each of `feature_names_`."""
        if self._learner is None:
            raise AttributeError(
                "There is no ranker_ before a row was learned with both labels known."
            )
        with self._own.lock:
            ranker = copy.deepcopy(self._learner)
        if self._reads_tables:
            return ranker
        ranker.resize(max(1, len(self._columns)))
        if self._columns and all(isinstance(name, str) for name in self._columns):
            ranker.feature_names_in_ = np.array(self.feature_names_, dtype=object)
        return ranker

    @property
    def feature_names_(self) -> list[Any]:
        """The features in the order of their columns."""
        if self._reads_tables and self._learner is not None:
            names: list[Any] = self._learner.feature_names_in_.tolist()
            return names
        return list(self._columns)

    # Learning ----------------------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn from a row.

        Parameters
        ----------
        x : dict
            Its features by name: finite numbers, or cells of any kind for an `AdditiveRanker`.
        y : bool, int or str
            Its label.
        """
        if self._reads_tables:
            with self._own.lock:
                self._learn_rows([], _Cells([x]), [y])
            return
        with self._own.lock:
            learner, row = self._learner, self._plain_row(x)
            if learner is not None and row is not None and learner.learn_at_once(row, y):
                return
            values = _numbers(x)
            if learner is None:
                self._learn_rows(list(x), values[None], [y])
                return
            label = learner.encode_label(y)
            if (
                isinstance(learner.class_weight, dict)
                and not learner.class_weights(learner.classes_)[label]
            ):
                return
            columns = self._place(x)
            learner.learn_row(self._row(columns, values), label)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from rows, in their order: the same as learning them one by one.

        Parameters
        ----------
        X : DataFrame
            The rows, dense or of sparse columns.
        y : Series
            Their labels.
        """
        names = X.columns.tolist()
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"X has more than one column {twice!r}: give each its own name.")
        if len(X):
            with self._own.lock:
                if self._reads_tables:
                    self._learn_rows([], _Cells(X.to_dict(orient="records")), y)
                else:
                    self._learn_rows(names, _table(X), y)

    def _learn_rows(self, names: list[Any], rows: Any, y: Any) -> None:
        """Learn from rows, or hold them until both labels are known."""
        labels = checks.check_labels(y, rows)
        if self._learner is not None:
            classes = self._learner.classes_
            for batch in _of_weight([(names, rows, labels)], self._learner, classes):
                self._learn_batch(self._learner, *batch)
            return
        if self.classes is not None:
            checks.encode(labels, checks.check_classes(list(self._labels)))
        seen = self._labels.union({False, True} if labels.dtype.kind == "b" else labels.tolist())
        if len(seen) < 2:
            self._held.append((names, rows, labels))
        else:
            batches = [*self._held, (names, rows, labels)]
            self._begin(batches, checks.check_classes(list(seen)))
        self._labels = seen

    def _begin(self, batches: list[Batch], classes: NDArray[Any]) -> None:
        """Let a fresh ranker learn from all that was held, with a column for each of its features."""
        learner = clone(self.ranker)
        batches = _of_weight(batches, learner, classes)
        for names, _, _ in batches:
            self._place(names)
        for batch in batches:
            self._learn_batch(learner, *batch, classes)
        self._learner = learner if batches else None
        self._held = []

    def _learn_batch(
        self,
        learner: Ranker,
        names: list[Any],
        rows: Any,
        labels: NDArray[Any],
        classes: NDArray[Any] | None = None,
    ) -> None:
        if isinstance(rows, _Cells):
            if known := hasattr(learner, "feature_names_in_"):
                rows = _Cells(_with_known(learner, row) for row in rows)
            if known and len(rows) == 1:
                learner.learn_one(rows[0], labels[0])
            else:
                learner.partial_fit([*rows], labels, classes)
            return
        columns = self._place(names)
        learner.partial_fit(self._rows(columns, rows), labels, classes)

    def _plain_row(self, x: dict[Any, Any]) -> Floats | None:
        """Return a row that has all features, and in their order, as a learner of dense rows takes it."""
        if not self._takes_dense_rows or [*x] != [*self._columns]:
            return None
        try:
            return np.fromiter(x.values(), np.float64, len(x))
        except (TypeError, ValueError, OverflowError):
            return None

    def _place(self, names: Collection[Any]) -> Columns:
        """Return the columns of features, new ones included, for which room is made."""
        try:
            return np.fromiter(map(self._columns.__getitem__, names), np.int32, len(names))
        except KeyError:
            new = [name for name in names if name not in self._columns]
            self._make_room(len(self._columns) + len(new))
            self._columns.update(zip(new, itertools.count(len(self._columns)), strict=False))
            return self._place(names)

    def _make_room(self, n_features: int) -> None:
        """Widen the learner: a matrix by what is needed, since a row costs d x d too; else by doubling."""
        if self._learner is not None and n_features > self._learner.n_features_in_:
            matrix = self._learner.takes_dense_rows()
            self._learner.resize(n_features if matrix else 2 * n_features)

    def _width(self) -> int:
        return max(1, len(self._columns)) if self._learner is None else self._learner.n_features_in_

    def _row(self, columns: Columns, values: Floats) -> Any:
        """Return a row as the ranker takes it, dense or sparse."""
        if self.ranker.takes_dense_rows():
            row = np.zeros((1, self._width()))
            row[0, columns] = values
            return row
        rising = columns.argsort()
        rising = rising[values[rising] != 0.0]
        parts = values[rising], columns[rising], np.array([0, rising.size], np.int32)
        return sp.csr_array(parts, shape=(1, self._width()))

    def _rows(self, columns: Columns, values: Any) -> Any:
        """Return rows as the ranker takes them, dense or sparse."""
        shape = (values.shape[0], self._width())
        if self.ranker.takes_dense_rows():
            rows = np.zeros(shape)
            rows[:, columns] = values.toarray() if sp.issparse(values) else values
            return rows
        rising = columns.argsort()
        few = sp.csr_array(values[:, rising])
        few.eliminate_zeros()
        return sp.csr_array((few.data, columns[rising][few.indices], few.indptr), shape=shape)

    # Predicting --------------------------------------------------------------------------------

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:  # noqa: ARG002
        """Return the probability of each label.

        Parameters
        ----------
        x : dict
            The features of a row; those never learned from make no difference.
        **kwargs : object
            Not used.

        Returns
        -------
        dict
            The probability of the negative and of the positive label. Before any row this is one
            half each; of the one label known so far, one.
        """
        if self._reads_tables and self._learner is not None:
            found = self._learner.predict_proba([_with_known(self._learner, x)])[0]
            return dict(zip(self._learner.classes_.tolist(), found.tolist(), strict=True))
        learner, row = self._learner, self._plain_row(x)
        if learner is not None and row is not None:
            found = np.empty((1, 2))
            if learner.say_at_once("probabilities", row[None], found):
                return dict(zip(learner.classes_.tolist(), found[0].tolist(), strict=True))
        values = np.zeros(0) if self._reads_tables else _numbers(x)
        if self._learner is None:
            return self._uninformed()
        score = np.dot(values, self._weights(self._learner, x))
        return {
            label: float(share)
            for label, share in self._probabilities(self._learner, score).items()
        }

    def predict_proba_many(self, X: Any) -> Any:
        """Return the probability of each label for each row.

        Parameters
        ----------
        X : DataFrame
            Rows, dense or of sparse columns; those columns never learned from make no difference.

        Returns
        -------
        DataFrame
            A column for each label.
        """
        if self._reads_tables and self._learner is not None and len(X):
            cells = [_with_known(self._learner, x) for x in X.to_dict(orient="records")]
            found = self._learner.predict_proba(cells)
            return type(X)(found, index=X.index, columns=self._learner.classes_.tolist())
        rows = np.zeros((len(X), 0)) if self._reads_tables else _table(X)
        if self._learner is None:
            return type(X)(self._uninformed(), index=X.index)
        scores = rows @ self._weights(self._learner, X.columns)
        return type(X)(self._probabilities(self._learner, scores), index=X.index)

    def _uninformed(self) -> dict[Any, float]:
        """Return the labels known so far, all equally likely."""
        labels = sorted(self._labels) or [False, True]
        return {label: 1.0 / len(labels) for label in labels}

    def _weights(self, learner: Ranker, names: Collection[Any]) -> Floats:
        """Return the weights of features, zero for those not known."""
        columns = np.array([self._columns.get(name, -1) for name in names], np.int32)
        known = columns >= 0
        if known.all():
            return learner.weights(columns)
        weights = np.zeros(len(columns))
        weights[known] = learner.weights(columns[known])
        return weights

    def _probabilities(self, learner: Ranker, score: Any) -> dict[Any, Any]:
        """Return the probabilities of the two labels at a score or at many."""
        positive = expit(learner.log_odds(np.atleast_1d(score)))
        if np.ndim(score) == 0:
            positive = positive[0]
        return dict(zip(learner.classes_.tolist(), [1.0 - positive, positive], strict=True))


class _Cells(list[Any]):
    """Rows as they are: dictionaries, of which some can be chosen."""

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), 0

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, np.ndarray):
            return _Cells(row for row, chosen in zip(self, rows, strict=True) if chosen)
        return super().__getitem__(rows)


def _with_known(learner: Ranker, x: dict[Any, Any]) -> dict[Any, Any]:
    """Return a row that has a key which the learner knows: a gap if there is no other."""
    first = learner.feature_names_in_[0]
    return x if first in x else {**x, first: None}


def _of_weight(batches: list[Batch], learner: Ranker, classes: NDArray[Any]) -> list[Batch]:
    """Leave out rows whose class has weight 0; they bring no features either."""
    kept = []
    for names, rows, labels in batches:
        counts = learner.class_weights(classes)[checks.encode(labels, classes)] > 0.0
        if counts.all():
            kept.append((names, rows, labels))
        elif counts.any():
            kept.append((names, rows[counts], labels[counts]))
    return kept


def _numbers(x: dict[Any, Any]) -> Floats:
    """Return the values of a row, which must be finite numbers."""
    try:
        values = np.fromiter(x.values(), np.float64, len(x))
        if np.isfinite(values).all():
            return values
    except (TypeError, ValueError, OverflowError):
        pass
    name, value = next((name, value) for name, value in x.items() if not _is_finite(value))
    raise ValueError(
        f"Feature {name!r} is {value!r}, and rankers take finite numbers: encode it by "
        "river.preprocessing.OneHotEncoder, impute it by StatImputer, or leave it out."
    )


def _is_finite(value: Any) -> bool:
    try:
        return bool(np.isfinite(np.fromiter([value], np.float64, 1))[0])
    except (TypeError, ValueError, OverflowError):
        return False


def _table(X: Any) -> Any:
    """Return the numbers of a frame, sparse if its columns are; all must be finite."""
    try:
        rows = sp.csr_array(X.sparse.to_coo()) if hasattr(X, "sparse") else X.to_numpy(np.float64)
        if np.isfinite(rows.data if sp.issparse(rows) else rows).all():
            return rows
    except (TypeError, ValueError, OverflowError):
        pass
    return np.array([_numbers(x) for x in X.to_dict(orient="records")])
