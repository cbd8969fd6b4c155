"""Model selection: the value of the tuned parameter with the best mean AUC on held-out rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from cbrank.methods import Method
from cbrank.study.measures import auc
from cbrank.study.settings import Grid
from cbrank.study.sketch_grid import fit_steps

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

_FOLDS = 3  # the paper's
_WORST = -np.inf  # AUC of a value whose fit diverged, so that it ranks last
_ROUNDING = 1e-12  # of a mean AUC


class Fold(NamedTuple):
    """Rows to fit and rows held out."""

    X: Any
    y: Labels
    X_test: Any
    y_test: Labels


class Choice(NamedTuple):
    """What was chosen, and among what.

    Attributes
    ----------
    parameter : float
        The value with the best mean AUC.
    lowest, highest : int
        The ends of what was tried, as powers of two.
    diverged : int
        How many of the fits, folds times values, diverged.
    """

    parameter: float
    lowest: int
    highest: int
    diverged: int


def cross_validation(X: Any, y: Labels) -> list[Fold]:
    """Divide training rows into the folds of cross-validation.

    They are stratified, so that each has both classes, and keep the order of the rows.
    """
    if np.bincount(y, minlength=2).min() < _FOLDS:
        raise ValueError(f"cross-validation needs {_FOLDS} training rows of each class.")
    return [
        Fold(X[fit], y[fit], X[held], y[held]) for fit, held in StratifiedKFold(_FOLDS).split(X, y)
    ]


def choose(method: Method, folds: Sequence[Fold], grid: Grid, seed: int) -> Choice:
    """Choose the tuned parameter by its mean AUC over folds.

    If more than the paper's grid may be tried, values beside the best are, until its neighbours
    were. A value with a fit that diverged or gave scores that are not finite ranks last.

    Parameters
    ----------
    method : Method
        What learns.
    folds : sequence of Fold
        Rows to fit and to measure on.
    grid : Grid
        What to choose from.
    seed : int
        Seed of every fit.

    Returns
    -------
    Choice
        The value, what was tried, and how many fits diverged.
    """
    aucs: dict[int, Floats] = {}
    best, more = 0, grid.first
    while more:
        aucs |= held_out_aucs(method, folds, more, seed)
        best = best_of({exponent: float(found.mean()) for exponent, found in aucs.items()})
        more = grid.beside(best, aucs)
    diverged = sum(int(np.isneginf(found).sum()) for found in aucs.values())
    return Choice(2.0**best, min(aucs), max(aucs), diverged)


def best_of(means: dict[int, float]) -> int:
    """Return the exponent with the best mean AUC, among equals the one nearest to zero.

    Where a parameter no longer changes the ranking, all further values are equal: the nearest to
    zero is then where that begins. If all diverged, the lowest is returned, as their steps were
    too large.

    Examples
    --------
    >>> best_of({-3: 0.75, -2: 0.75, -1: 0.75, 0: 0.7, 1: 0.5})
    -1
    """
    top = max(means.values())
    if top == _WORST:
        return min(means)
    equal = [exponent for exponent, mean in means.items() if mean >= top - _ROUNDING]
    return min(equal, key=lambda exponent: (abs(exponent), exponent))


def held_out_aucs(
    method: Method, folds: Sequence[Fold], exponents: Sequence[int], seed: int
) -> dict[int, Floats]:
    """Return the AUC on the held-out rows of each fold, by the parameter's power of two."""
    grid = [2.0**exponent for exponent in exponents]
    aucs = np.array([_aucs_of(method, fold, grid, seed) for fold in folds])
    return dict(zip(exponents, aucs.T, strict=True))


def _aucs_of(method: Method, fold: Fold, grid: list[float], seed: int) -> list[float]:
    ranker = method.new(grid[0], seed)
    if getattr(ranker, "rank", None):
        W, diverged = fit_steps(ranker, fold.X, fold.y, grid)
        return [
            _held_out_auc(fold, scores, lost)
            for scores, lost in zip((fold.X_test @ W).T, diverged, strict=True)
        ]
    return [_plain_auc(method.new(value, seed), fold) for value in grid]


def _plain_auc(ranker: Any, fold: Fold) -> float:
    scores = ranker.fit(fold.X, fold.y).decision_function(fold.X_test)
    return _held_out_auc(fold, scores, ranker.diverged_)


def _held_out_auc(fold: Fold, scores: Floats, diverged: bool) -> float:
    return _WORST if diverged or not np.isfinite(scores).all() else auc(fold.y_test, scores)
