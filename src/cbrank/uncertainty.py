"""Confidence put to use: what to label next, what to leave to people, what the ranker goes by."""

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cbrank.inspection.weights import by_effect

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cbrank.rankers.cbr import CBRanker

Floats = NDArray[np.float64]

__all__ = ["most_uncertain", "plot_weights", "standardized_margin"]


def standardized_margin(ranker: "CBRanker", X: Any) -> NDArray[np.float64]:
    """Return by how many of its standard deviations each row's score is off the operating point.

    The ranker's own probability that a row is on its side of it is Phi of this: one
    half at 0, 0.98 at 2. Leave the rows below some value to people, or see `most_uncertain`.

    Parameters
    ----------
    ranker : CBRanker
        One that has learned from both classes.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples,)
        The distances, 0 or more; 0 for a row without a feature that the ranker knows.

    See Also
    --------
    most_uncertain : The rows to label next.

    Examples
    --------
    >>> import numpy as np
    >>> from cbrank import CBRanker, uncertainty
    >>> from cbrank.datasets import load
    >>> X, y, facts = load("german")
    >>> ranker = CBRanker(random_state=0).fit(X[:800], y[:800])
    >>> sure = uncertainty.standardized_margin(ranker, X[800:])
    >>> right = ranker.predict(X[800:]) == y[800:]
    >>> kept = sure > np.quantile(sure, 0.2)
    >>> float(right.mean().round(2)), float(right[kept].mean().round(2))
    (0.72, 0.79)
    """
    scores, deviations = _scores_of_both_classes(ranker, X)
    return _in_deviations(scores, deviations)


def _scores_of_both_classes(ranker: "CBRanker", X: Any) -> tuple[Floats, Floats]:
    """Return scores and deviations of a ranker that knows what tells the classes apart."""
    if not hasattr(ranker, "preference_proba"):
        raise ValueError(f"{type(ranker).__name__} keeps no confidence: use a CBRanker.")
    scores, deviations = ranker.decision_function(X, return_std=True)
    if not ranker.n_seen_.all():
        raise ValueError("The ranker has seen one class only, so it has no operating point yet.")
    return scores, deviations


def _in_deviations(distances: Floats, deviations: Floats) -> Floats:
    return np.divide(
        np.abs(distances), deviations, out=np.zeros_like(distances), where=deviations > 0.0
    )


def most_uncertain(ranker: "CBRanker", X: Any, n: int) -> NDArray[np.int64]:
    """Return which rows the ranker is least sure of: those to label next.

    Their scores are the fewest standard deviations away from even odds. Let about half of the rows to label
    be others, chosen at random: rows that are all alike would teach the ranker little about the rest. With a
    rare class this finds many times as many of its rows as chance does on some data, and as few on other.

    Parameters
    ----------
    ranker : CBRanker
        One that has learned from both classes.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        Rows to choose from.
    n : int
        How many to choose, or all if there are fewer.

    Returns
    -------
    ndarray of shape (n,)
        Places of the rows in `X`, the least sure first.

    See Also
    --------
    standardized_margin : How sure the ranker is of its decision on each row.

    Examples
    --------
    >>> from cbrank import CBRanker, uncertainty
    >>> X, y = [[0.0], [0.2], [0.7], [1.0]], [0, 0, 1, 1]
    >>> ranker = CBRanker().fit(X, y)
    >>> uncertainty.most_uncertain(ranker, [[1.0], [0.6], [0.1]], 2)
    array([1, 0])
    """
    if operator.index(n) < 0:
        raise ValueError(f"n must be 0 or more, got {n}.")
    scores, deviations = _scores_of_both_classes(ranker, X)
    return np.argsort(_in_deviations(scores - ranker.even_odds(), deviations), kind="stable")[:n]


def plot_weights(ranker: "CBRanker", n: int = 20, ax: "Axes | None" = None) -> "Axes":
    """Draw the weights with the largest effect and their standard deviations.

    Weights are drawn per standard deviation of their feature among the buffered rows, so that
    features of different scale compare. A bar that crosses zero is a weight of unsure sign.

    Parameters
    ----------
    ranker : CBRanker
        One that has learned.
    n : int, default=20
        How many weights to draw, at most.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; a new figure if None.

    Returns
    -------
    matplotlib.axes.Axes
        Where they are drawn.

    Examples
    --------
    >>> from cbrank import CBRanker, uncertainty
    >>> from cbrank.datasets import load
    >>> X, y, facts = load("diabetes")
    >>> axes = uncertainty.plot_weights(CBRanker(random_state=0).fit(X, y), n=3)
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['2', '6', '1']
    """
    check_is_fitted(ranker)
    from cbrank.inspection.pictures import put_weights  # noqa: PLC0415
    from cbrank.plotting import matplotlib  # noqa: PLC0415

    if ax is None:
        ax = matplotlib("pyplot").subplots(layout="constrained")[1]
    weights = by_effect(ranker, n)
    named = getattr(ranker, "feature_names_in_", np.arange(1, ranker.n_features_in_ + 1))
    put_weights(ax, [str(name) for name in named[weights.features]], weights.standardised())
    ax.set_xlabel("weight per standard deviation of the feature, ± its own")
    return ax
