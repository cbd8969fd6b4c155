"""Confidence-weighted bipartite ranking with C chosen by cross-validation."""

import inspect
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from threadpoolctl import threadpool_limits

from cbrank.metrics.roc import auc_of
from cbrank.parameters import (
    COUNT,
    FLAG,
    LINEAR,
    Number,
    Other,
    Parameter,
    Table,
)
from cbrank.rankers.base import Rows
from cbrank.rankers.cbr import CBRanker
from cbrank.rankers.sound import Arrays, Facts

_LARGEST_EXPONENT = 10  # the paper's grid is 2^-10, ..., 2^10

_SEARCH: Table = (
    Parameter(
        "Cs",
        (COUNT, Other("array-like of shape (n_Cs,)", "array-like")),
        2 * _LARGEST_EXPONENT + 1,
        "Values of C to choose from, or how many, spaced evenly from 2^-10 to 2^10 on a log scale. "
        "The default is the paper's grid, the powers of two.",
    ),
    Parameter(
        "cv",
        (Other("int, splitter or iterable of (train, test) indices", "cv_object"),),
        3,
        "A number of folds is stratified and keeps the order of the rows. Where rows belong to "
        "groups, pass ``cv=list(GroupKFold().split(X, y, groups))``.",
    ),
    Parameter(
        "scoring",
        (Other("str", StrOptions(set(get_scorer_names()))), Other("callable", callable), None),
        None,
        "What to be best at: a scorer's name, or a function of a ranker, rows and labels. By "
        "default the ROC AUC.",
    ),
    Parameter(
        "n_jobs",
        (Number(int), None),
        None,
        "Fits at a time, each in a thread; -1 means one for every core, None one.",
    ),
    Parameter(
        "refit",
        (FLAG,),
        True,
        "Whether to learn from all rows with the C chosen. If not, the ranker has chosen but not "
        "learned, and `partial_fit` starts a stream with `C_`.",
    ),
)
_SHARED = tuple(parameter for parameter in LINEAR if parameter.name not in {"C", "horizon"})


class _Fold(NamedTuple):
    """Rows to fit and rows to measure, those of weight 0 left out."""

    fit: NDArray[np.int64]
    measure: NDArray[np.int64]


class CBRankerCV(CBRanker):
    """Confidence-weighted bipartite ranking with C chosen by cross-validation.

    Every C is fitted on every fold and measured on the rows held out. The C with the best mean
    is chosen, the smallest among equals, and the ranker learns from all rows with it. The fits
    run in threads over one copy of the data, and choose what a plain loop over `CBRanker` would.
    With ``buffer_size=50, average=False`` they are of the paper's algorithm, and the grid is the paper's.

    Attributes
    ----------
    C_ : float
        The C chosen, with which `partial_fit` goes on too.
    Cs_ : ndarray of shape (n_Cs,)
        The values it was chosen from.
    scores_ : ndarray of shape (n_folds, n_Cs)
        Score of each fold's held-out rows with each C; nan, which ranks last, where the ranking
        was not finite.
    best_score_ : float
        Mean score of the C chosen.
    coef_ : ndarray of shape (1, n_features)
        Mean of the weights, averaged over the stream if `average`.
    covariance_ : ndarray of shape (n_features, n_features) or (n_features,)
        Covariance of the weights, or their variances where it is diagonal.
    n_seen_ : ndarray of shape (2,)
        Rows learned from, of the negative and of the positive class.
    n_pairs_ : int
        Pairs met.
    n_updates_ : int
        Pairs that moved the model.
    diverged_ : bool
        Always False: this ranker does not diverge.

    See Also
    --------
    CBRanker : The same ranker with a C of your own.

    Examples
    --------
    >>> from cbrank import CBRankerCV
    >>> from cbrank.datasets import load
    >>> X, y, facts = load("german")
    >>> ranker = CBRankerCV(n_jobs=2, random_state=0).fit(X[:800], y[:800])
    >>> ranker.C_, ranker.scores_.shape
    (1.0, (3, 21))
    >>> round(ranker.score(X[800:], y[800:]), 2)
    0.8
    """

    PARAMETERS: ClassVar[Table] = (*_SEARCH, *_SHARED)

    Cs: int | ArrayLike
    cv: int | BaseCrossValidator | Iterable[Any]
    scoring: str | Callable[..., float] | None
    n_jobs: int | None
    refit: bool
    _chosen: float
    _tried: NDArray[np.float64]
    scores_: NDArray[np.float64]
    best_score_: float

    if TYPE_CHECKING:  # made of `PARAMETERS`

        def __init__(self, *first: Any, **others: Any) -> None: ...

    @property
    def C_(self) -> float:
        """The C chosen."""
        if not hasattr(self, "_chosen"):
            name = type(self).__name__
            raise NotFittedError(f"{name} chooses C in fit: call fit first, or use CBRanker.")
        return self._chosen

    @property
    def Cs_(self) -> NDArray[np.float64]:
        """Every C tried."""
        _ = self.C_
        return self._tried.copy()

    @property
    def C(self) -> float:  # type: ignore[override]
        """The C that this ranker learns with: the one chosen."""
        return self.C_

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose C by cross-validation, then learn anew from all rows unless ``refit=False``.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Rows; a C-ordered float64 array or a CSR matrix is not copied.
        y : array-like of shape (n_samples,)
            Two labels; the greater is the positive class.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C, and weights of the rows held out. A row of weight 0 is neither learned
            from nor measured; it has its place when folds are made.

        Returns
        -------
        CBRankerCV
            The ranker itself.

        Examples
        --------
        >>> from cbrank import CBRankerCV
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"]
        >>> CBRankerCV(Cs=[0.5, 1.0], cv=2, shuffle=False).fit(X, y).scores_
        array([[1., 1.],
               [1., 1.]])
        """
        with self._own.lock:
            self._validate_params()
            with self._unchanged_on_error():
                self._choose(X, y, sample_weight)
                if self.refit:
                    return super().fit(X, y, sample_weight)
                self.__dict__.pop("_learned", None)
        return self

    @property
    def partial_fit(self) -> Callable[..., Self]:
        """Go on learning from a chunk of a stream with `C_`, as `CBRanker.partial_fit` does."""
        _ = self.C_
        return super().partial_fit

    def _choose(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        """Set `C_` and what it was chosen by."""
        Cs, rows = self._grid(), self._check_both_classes(X, y, sample_weight)
        folds = _split(rows, self.cv)
        self._tried, self.scores_ = Cs, self._held_out_scores(Cs.tolist(), rows, folds)
        means = self.scores_.mean(axis=0)
        if np.isnan(means).all():
            raise ValueError(
                "No C has a score in every fold: scale the columns, or use another scoring."
            )
        self.best_score_ = float(np.nanmax(means))
        self._chosen = float(Cs[means == self.best_score_].min())

    def _grid(self) -> NDArray[np.float64]:
        if isinstance(self.Cs, int | np.integer):
            return np.logspace(-_LARGEST_EXPONENT, _LARGEST_EXPONENT, int(self.Cs), base=2.0)
        Cs = np.array(self.Cs, dtype=np.float64)
        if Cs.ndim != 1 or not Cs.size or not (np.isfinite(Cs) & (Cs > 0)).all():
            raise ValueError(f"Cs must be finite numbers above 0, at least one; got {self.Cs!r}.")
        return Cs

    def _shared(self) -> dict[str, Any]:
        """Return the parameters that `CBRanker` has too."""
        return {parameter.name: getattr(self, parameter.name) for parameter in _SHARED}

    def get_state(self) -> tuple[Arrays, Facts]:
        """Return the state of the `CBRanker` with the C chosen.

        Returns
        -------
        arrays : dict of str to ndarray
            The arrays, not copied.
        facts : dict
            The class's name, parameters and other values.

        Examples
        --------
        >>> from cbrank import CBRankerCV
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"]
        >>> ranker = CBRankerCV(Cs=[0.5, 1.0], cv=2, shuffle=False).fit(X, y)
        >>> ranker.get_state()[1]["class"]
        'CBRanker'
        """
        return self.to_cbranker().get_state()

    def to_cbranker(self) -> CBRanker:
        """Return the ranker without its search.

        Returns
        -------
        CBRanker
            With the C chosen and what has been learned, which both then share.

        Examples
        --------
        >>> from cbrank import CBRankerCV
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"]
        >>> ranker = CBRankerCV(Cs=[0.5, 1.0], cv=2, shuffle=False).fit(X, y)
        >>> ranker.to_cbranker()
        CBRanker(C=0.5, shuffle=False)
        """
        ranker = CBRanker(self.C_, **self._shared())
        search = {
            *self.get_params(deep=False),
            "_tried",
            "scores_",
            "best_score_",
            "_chosen",
            "_own",
        }
        learned = {name: value for name, value in self.__dict__.items() if name not in search}
        ranker.__dict__.update(learned)
        return ranker

    def _held_out_scores(
        self, Cs: list[float], rows: Rows, folds: list[_Fold]
    ) -> NDArray[np.float64]:
        """Return the scores (n_folds, n_Cs); a small C, whose pairs fire most, is fitted first."""
        shared = self._shared()
        random = check_random_state(self.random_state)
        with threadpool_limits(1 if effective_n_jobs(self.n_jobs) > 1 else None, "blas"):
            scores = Parallel(self.n_jobs, require="sharedmem")(
                delayed(_held_out_score)(
                    CBRanker(C, **shared), rows, fold, self.scoring, deepcopy(random)
                )
                for C in Cs
                for fold in folds
            )
        return np.reshape(scores, (len(Cs), len(folds))).T


# Folds of rows that are checked once and never copied -------------------------------------------


def _split(rows: Rows, cv: Any) -> list[_Fold]:
    """Return the folds that `cv` makes; each needs both classes to fit and to measure."""
    every, counts = np.arange(len(rows.y)), rows.weights > 0
    pairs = check_cv(cv, rows.y, classifier=True).split(rows.X, rows.y)
    folds = [_Fold(*(every[part][counts[part]] for part in pair)) for pair in pairs]
    if not folds:
        raise ValueError("cv gives no folds: pass a number, a splitter or pairs of indices.")
    for number, fold in enumerate(folds):
        for purpose, part in fold._asdict().items():
            found = rows.classes[np.unique(rows.labels[part])].tolist()
            if len(found) < 2:
                raise ValueError(
                    f"Fold {number} of cv has rows of one class only, or none, to {purpose}: "
                    f"{found}; use fewer folds, stratified folds or more rows of the other class."
                )
    return folds


def _held_out_score(
    ranker: CBRanker, rows: Rows, fold: _Fold, scoring: Any, random: np.random.RandomState
) -> float:
    """Fit a new ranker and measure it on the rows held out: by their AUC if `scoring` is None."""
    weights = ranker._fit_rows(rows, fold.fit, random)
    held_weights = rows.weights[fold.measure]
    method, state = ranker._now()
    if scoring is None:
        scores = ranker._scores(rows.X, state, method)[fold.measure]
        positive = rows.labels[fold.measure] == 1
        return auc_of(positive, scores, held_weights) if np.isfinite(scores).all() else np.nan
    ranker.n_features_in_ = rows.X.shape[1]
    ranker._set_intercept(rows, fold.fit, weights)
    held = rows.X[fold.measure], rows.y[fold.measure]
    weighting = {"sample_weight": held_weights} if rows.weighted and _takes_weights(scoring) else {}
    return float(get_scorer(scoring)(ranker, *held, **weighting))


def _takes_weights(scoring: Any) -> bool:
    """Say whether a scorer can be given weights; a function of ranker, rows and labels cannot."""
    if isinstance(scoring, str) or hasattr(scoring, "_sign"):
        return True
    return "sample_weight" in inspect.signature(scoring).parameters
