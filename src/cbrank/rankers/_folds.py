"""Fitting and measuring a ranker on folds of rows that are checked once and never copied."""

import inspect
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv

from cbrank.metrics.roc import auc_of
from cbrank.rankers._base import Ranker, Rows

Indices = NDArray[np.int64]


class Fold(NamedTuple):
    """Rows to fit and rows to measure, those of weight 0 left out."""

    fit: Indices
    measure: Indices


def split(rows: Rows, cv: Any) -> list[Fold]:
    """Return the folds that `cv` makes; each needs both classes to fit and to measure."""
    every, counts = np.arange(len(rows.y)), rows.weights > 0
    pairs = check_cv(cv, rows.y, classifier=True).split(rows.X, rows.y)
    folds = [Fold(*(every[part][counts[part]] for part in pair)) for pair in pairs]
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


def held_out_score(
    ranker: Ranker, rows: Rows, fold: Fold, scoring: Any, random: np.random.RandomState
) -> float:
    """Fit a new ranker and measure it on the rows held out: by their AUC if `scoring` is None."""
    weights = ranker._fit_rows(rows, fold.fit, random)
    held_weights = rows.weights[fold.measure]
    if scoring is None:
        scores = ranker._scores(rows.X)[fold.measure]
        positive = rows.labels[fold.measure] == 1
        return auc_of(positive, scores, held_weights) if np.isfinite(scores).all() else np.nan
    ranker.n_features_in_ = rows.X.shape[1]
    ranker._threshold = ranker._threshold_of(rows, fold.fit, weights)
    held = rows.X[fold.measure], rows.y[fold.measure]
    weighting = {"sample_weight": held_weights} if rows.weighted and _takes_weights(scoring) else {}
    return float(get_scorer(scoring)(ranker, *held, **weighting))


def _takes_weights(scoring: Any) -> bool:
    """Say whether a scorer can be given weights; a function of ranker, rows and labels cannot."""
    if isinstance(scoring, str) or hasattr(scoring, "_sign"):
        return True
    return "sample_weight" in inspect.signature(scoring).parameters
