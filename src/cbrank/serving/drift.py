"""How a model does while it serves: its honest AUC along the stream, drift, and its probabilities.

Words are said only where numbers are sure: a page looks at every moment of a stream, and would find
something in chance alone.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MEMORY = 1000.0  # rows that `recent_auc_` remembers
_POINTS = 240  # of a path that is sent to a page
_NORMAL_95 = 1.959963984540054
# Standard errors. A page looks for days, and 95% intervals of a steady stream are apart now and then.
_SURE = 3.0


class Interval(NamedTuple):
    """A number with the ends of its 95% interval."""

    value: float
    low: float
    high: float

    def widened(self) -> tuple[float, float]:
        """Return the ends of the interval that words go by."""
        half = _SURE / _NORMAL_95 * max(self.value - self.low, self.high - self.value)
        return self.value - half, self.value + half

    def apart(self, other: "Interval") -> int:
        """Return 1 if this is surely above the other, -1 if surely below, 0 if neither."""
        (low, high), (other_low, other_high) = self.widened(), other.widened()
        return int(low > other_high) - int(high < other_low)


# The AUC along the stream -------------------------------------------------------------------------


def path(history: NDArray[Any], *, rare: bool) -> list[list[float]]:
    """Return the honest AUC along a stream, of all rows so far and of the recent ones.

    A block has p positives and n negatives; its weight 2 p n / (p + n) and its rows say how many, up
    to which of them are the rarer class. Their variance is that of Hanley and McNeil.

    Parameters
    ----------
    history : structured ndarray
        `progressive_auc_history_` of a ranker.
    rare : bool
        Whether positives are the rarer class.

    Returns
    -------
    list of lists
        Rows, AUC, the ends of its 95% interval, recent AUC and the ends of its.

    Examples
    --------
    >>> from cbrank import CBRanker
    >>> from cbrank.datasets import load
    >>> X, y, facts = load("german")
    >>> ranker = CBRanker().partial_fit(X, y)
    >>> last = path(ranker.progressive_auc_history_, rare=True)[-1]
    >>> bool(abs(last[1] - ranker.progressive_auc_) < 1e-5 > abs(last[4] - ranker.recent_auc_))
    True
    """
    if not len(history):
        return []
    rows, weight = history["rows"].astype(float), history["weight"]
    size = np.diff(rows, prepend=0.0)
    fewer = 0.5 * size * (1.0 - np.sqrt(np.maximum(1.0 - 2.0 * weight / size, 0.0)))
    positives, negatives = (fewer, size - fewer) if rare else (size - fewer, fewer)
    share = weight**2 / np.maximum(positives * negatives, 1.0)
    found = np.column_stack(
        [weight, weight * history["auc"], share, share * (positives - 1), share * (negatives - 1)]
    )
    left = np.exp(-size / _MEMORY)
    recent, total = np.empty_like(found), np.zeros(5)
    for at, kept in enumerate(left):
        total = total * [kept, kept, kept**2, kept**2, kept**2] + found[at]
        recent[at] = total
    shown = along(rows, _POINTS)
    so_far = _intervals(np.cumsum(found, axis=0)[shown])
    points = np.column_stack([rows[shown], *so_far, *_intervals(recent[shown])])
    return [[float(f"{value:.6g}") if at else int(value) for at, value in enumerate(point)]
            for point in points.tolist()]  # fmt: skip


def _intervals(sums: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the AUC of sums of blocks, and the ends of its 95% interval (Hanley and McNeil 1982)."""
    auc = sums[:, 1] / sums[:, 0]
    above, below = auc / (2.0 - auc) - auc**2, 2.0 * auc**2 / (1.0 + auc) - auc**2
    variance = sums[:, 2] * auc * (1.0 - auc) + sums[:, 3] * above + sums[:, 4] * below
    half = _NORMAL_95 * np.sqrt(np.maximum(variance, 0.0)) / sums[:, 0]
    return auc, np.maximum(auc - half, 0.0), np.minimum(auc + half, 1.0)


def along(values: Floats, most: int) -> NDArray[np.int64]:
    """Return places of ascending values that are about evenly far apart, the ends among them."""
    if len(values) <= most:
        return np.arange(len(values))
    wanted = np.linspace(values[0], values[-1], most)
    return np.unique(np.append(np.searchsorted(values, wanted), len(values) - 1))


# Drift --------------------------------------------------------------------------------------------


def verdict(auc: Interval, recent: Interval) -> tuple[str, str]:
    """Say whether a model ranks recent rows as it did all along.

    Parameters
    ----------
    auc, recent : Interval
        The honest AUC of all rows, and of about the last thousand.

    Returns
    -------
    word, sentence : str
        "none", "steady", "falling" or "rising", and what that means.

    Examples
    --------
    >>> verdict(Interval(0.80, 0.79, 0.81), Interval(0.78, 0.75, 0.81))[0]
    'steady'
    >>> verdict(Interval(0.80, 0.79, 0.81), Interval(0.70, 0.67, 0.73))[0]
    'falling'
    """
    if math.isnan(auc.value) or math.isnan(recent.value):
        return "none", "There is no AUC yet: it takes some rows of both classes, with their labels."
    sign = recent.apart(auc)
    if sign < 0:
        return "falling", (
            "Recent rows are ranked worse than the rows before them, by more than chance explains."
        )
    if sign > 0:
        return "rising", (
            "Recent rows are ranked better than the rows before them, by more than chance explains."
        )
    return "steady", "Recent rows are ranked about as well as all rows: chance explains the rest."


def calibration(scored: int, mean: float, learned: int, positives: int) -> dict[str, Any]:
    """Compare the probabilities that were served with the labels that came.

    Labels may come late, and those that come first may be of one kind, as clicks are. So all that is
    held against the probabilities is what no label to come could mend: rows without a label are
    taken to be negative on one side, positive on the other.

    Parameters
    ----------
    scored : int
        Rows scored.
    mean : float
        The mean of their probabilities.
    learned, positives : int
        Labels that came, and how many of them were positive.

    Returns
    -------
    dict
        The mean, the share of positives with its 95% interval (Wilson's), "labelled" as a share of
        the rows scored, a "word" ("none", "foreign", "open", "agrees", "too low" or "too high", by
        three standard errors and a twentieth) and a "sentence".

    Examples
    --------
    >>> calibration(400, 0.10, 400, 44)["word"]
    'agrees'
    >>> calibration(400, 0.30, 400, 44)["word"]
    'too high'
    >>> calibration(400, 0.30, 200, 22)["word"]  # half of the labels may yet be positive
    'open'
    """
    share = None
    if learned:
        share = Interval(positives / learned, *_wilson(positives, learned, _NORMAL_95))._asdict()
    known = {
        "mean": mean if scored else None,
        "share": share,
        "labelled": min(learned / scored, 1.0) if scored else None,
    }
    word = _calibrated(scored, mean, learned, positives)
    return {**known, "word": word, "sentence": _CALIBRATED[word]}


_CALIBRATED = {
    "none": "It takes rows that were scored and labels for them.",
    "foreign": "Labels came for many rows that were not scored here: the two are of different rows.",
    "open": "Too many rows wait for their labels to say whether the two agree.",
    "agrees": "The probabilities agree with the labels that came.",
    "too low": "More rows are positive than the probabilities said, whatever labels are to come.",
    "too high": "Fewer rows are positive than the probabilities said, whatever labels are to come.",
}
_CLOSE = 0.05  # of the share: with very many rows a smaller difference is sure too, and of no use
_MORE_LABELS = 1.1  # labels for each row scored; beyond, they are of other rows
_MOST_WAITING = 0.1  # share of rows without a label up to which "agrees" says something


def _calibrated(scored: int, mean: float, learned: int, positives: int) -> str:
    if not scored or not learned:
        return "none"
    labelled = learned / scored
    if labelled > _MORE_LABELS:
        return "foreign"
    low, high = (min(labelled, 1.0) * end for end in _wilson(positives, learned, _SURE))
    missing = max(1.0 - labelled, 0.0)
    if mean < (1.0 - _CLOSE) * low:
        return "too low"
    if mean > (1.0 + _CLOSE) * (high + missing):
        return "too high"
    return "agrees" if missing <= _MOST_WAITING else "open"


def _wilson(positives: int, rows: int, errors: float) -> tuple[float, float]:
    """Return the ends of Wilson's interval of a share."""
    share, square = positives / rows, errors**2 / rows
    middle = (share + 0.5 * square) / (1.0 + square)
    half = errors * math.sqrt(share * (1.0 - share) / rows + square / (4.0 * rows)) / (1.0 + square)
    return max(middle - half, 0.0), min(middle + half, 1.0)
