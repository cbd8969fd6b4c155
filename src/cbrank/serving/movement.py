"""How a model changes while it serves: its honest AUC along the stream, drift, and what moved last.

Curves and weights are compared in units of the spread of scores, so that weights that all grow alike,
which ranks no row otherwise, are no movement.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.rankers.effects import Curve, Effects, Term

Floats = NDArray[np.float64]

_SHOWN, _SHOWN_WEIGHTS = 3, 6
_MOST_POINTS, _MOST_BARS = 48, 8
_LONGEST_NAME = 60
_MOST_FEATURES = 2**18  # copies of more weights than these would hold up the writer
# A picture is compared with one of about a minute ago.
_SPACING, _KEPT = 20.0, 4  # seconds between pictures that are kept, and how many
_SPAN = _SPACING * (_KEPT - 1)
_MEMORY = 1000.0  # rows that `recent_auc_` remembers
_POINTS_OF_PATH = 240
_NORMAL_95 = 1.959963984540054
# A page looks at every moment of a stream, so that one recent 95% interval in twenty is off by chance;
# intervals of three standard errors are one in some hundred windows.
_SURE = 3.0 / _NORMAL_95


class Interval(NamedTuple):
    """A number with the ends of its 95% interval."""

    value: float
    low: float
    high: float

    def widened(self) -> tuple[float, float]:
        """Return the ends of the interval that words go by."""
        half = _SURE * max(self.value - self.low, self.high - self.value)
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
    >>> bool(abs(last[1] - ranker.progressive_auc_) < 1e-9 > abs(last[4] - ranker.recent_auc_))
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
    shown = _along(rows, _POINTS_OF_PATH)
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


def _along(values: Floats, most: int) -> NDArray[np.int64]:
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
    low, high = (min(labelled, 1.0) * end for end in _wilson(positives, learned, 3.0))
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


# What moved last ----------------------------------------------------------------------------------


class Sight(NamedTuple):
    """What is known of a model at a moment."""

    moment: float
    rows: int
    weights: Floats
    effects: Effects | None  # of a ranker with curves

    def weights_like(self, other: "Sight") -> Floats:
        """Return the weights of the features of a later moment; those to come were 0."""
        weights = np.zeros(len(other.weights))
        weights[: len(self.weights)] = self.weights[: len(weights)]
        return weights


class Typical(NamedTuple):
    """Rows that say what is typical, and how much each of them counts."""

    rows: Any
    shares: Floats

    def spread(self, values: Floats) -> Any:
        """Return the standard deviation of each column of values of the rows."""
        return np.sqrt(np.maximum(self.shares @ (values - self.shares @ values) ** 2, 0.0))

    def spread_of_scores(self, weights: Floats) -> float:
        """Return the standard deviation of scores."""
        return float(self.spread(np.asarray(self.rows @ weights)))

    def spread_of_features(self) -> Floats:
        """Return the standard deviations of features."""
        if not sp.issparse(self.rows):
            return np.asarray(self.spread(self.rows))
        squares = self.shares @ self.rows.multiply(self.rows).tocsr()
        return np.sqrt(np.maximum(squares - (self.shares @ self.rows) ** 2, 0.0))


class Movement:
    """What moved last in the model of a service: its curves, or its weights.

    Weights are copied under the lock; all else is worked out without it.

    Parameters
    ----------
    lock : context manager
        Held while the model is read.
    clock : callable, default=time.monotonic
        The time in seconds.
    """

    def __init__(self, lock: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock, self._clock = lock, clock
        self._earlier: deque[Sight] = deque(maxlen=_KEPT)
        self._ranker: Any = None

    def look(self, model: Any) -> dict[str, Any] | None:
        """Look at the model and say what has moved in about the last minute.

        Parameters
        ----------
        model : Model
            The model of the service.

        Returns
        -------
        dict or None
            "seconds" and "rows" since the earlier moment and the "terms" that moved most, the
            farthest first: "name", "kind" ("curve", "time", "bars" or "weight"), "moved" in units of
            the spread of scores, "errors" (that in standard errors, None where the model knows
            none), "grid", "before", "after" and "deviation" (or None). None if there is nothing
            to compare yet.
        """
        ranker, now = model.ranker, self._clock()
        late = self._earlier and now - self._earlier[-1].moment > 2.0 * _SPAN
        if self._ranker is not ranker or late:
            self._ranker = ranker
            self._earlier.clear()
        with self._lock:
            if not _can_be_followed(ranker):
                self._earlier.clear()
                return None
            labels, rows = ranker.buffered_rows()
            seen = ranker.n_seen_
            effects = ranker.effects() if ranker.TAKES_TABLES else None
            sight = Sight(now, int(seen.sum()), ranker.weights().copy(), effects)
            deviations = None if effects else _deviations(ranker)
        before = self._earlier[0] if self._earlier else None
        if before is None or now - self._earlier[-1].moment >= _SPACING:
            self._earlier.append(sight)
        if before is None or before.rows >= sight.rows or not len(labels):
            return None
        shares = (seen / np.maximum(np.bincount(labels, minlength=2), 1))[labels]
        typical = Typical(rows, shares / shares.sum())
        spreads = [typical.spread_of_scores(each.weights_like(sight)) for each in (sight, before)]
        if not min(spreads) > 0.0:
            return None
        if effects is None:
            name = model.columns.feature_name
            terms = _moved_weights(sight, before, typical, spreads, deviations, name)
        else:
            terms = self._moved_curves(sight, before, typical, spreads, ranker.encoder_)
        return {"seconds": now - before.moment, "rows": sight.rows - before.rows, "terms": terms}

    def _moved_curves(
        self, now: Sight, before: Sight, typical: Typical, spreads: Sequence[float], encoder: Any
    ) -> list[dict[str, Any]]:
        assert now.effects is not None
        assert before.effects is not None
        found, curves = _moved_terms(now.effects, before.effects, typical, spreads), {}
        with self._lock:  # the covariance is the model's own
            for term, _ in found:
                if term.kind not in {"cross", "text"}:
                    curves[term.name] = now.effects.curve(term.name)
        drawn = []
        for term, moved in found:
            if term.name in curves:
                old = before.effects.curve(term.name) if _has(before.effects, term) else None
                picture = _of_curve(term, curves[term.name], old, spreads)
            else:
                picture = _of_features(term, now, before, spreads, encoder)
            drawn.append({"name": _short(term.name), "moved": _rounded(moved), **picture})
        return drawn


def _can_be_followed(ranker: Any) -> bool:
    """Say whether the features of a ranker keep their numbers, and are not too many to copy."""
    if not ranker.__sklearn_is_fitted__() or getattr(ranker, "waits", False):
        return False  # while rows wait, columns are decided anew
    return len(ranker.weights()) <= _MOST_FEATURES


def _deviations(ranker: Any) -> Floats | None:
    covariance = getattr(ranker, "covariance_", None)
    if covariance is None:
        return None
    return np.sqrt(covariance.diagonal() if covariance.ndim == 2 else covariance)


def _moved_weights(
    now: Sight,
    before: Sight,
    typical: Typical,
    spreads: Sequence[float],
    deviations: Floats | None,
    name: Callable[[int], str],
) -> list[dict[str, Any]]:
    """Return the weights that moved most, each times the spread of its feature."""
    size = typical.spread_of_features()[: len(now.weights)]
    after, earlier = now.weights * size / spreads[0], before.weights_like(now) * size / spreads[1]
    moved, drawn = np.abs(after - earlier), []
    for at in np.argsort(-moved, kind="stable")[:_SHOWN_WEIGHTS].tolist():
        if moved[at] > 0.0:
            error = None if deviations is None else float(deviations[at] * size[at] / spreads[0])
            drawn.append({
                "name": _short(name(at)),
                "kind": "weight",
                "moved": _rounded(moved[at]),
                "errors": _rounded(moved[at] / error) if error else None,
                "grid": [],
                "before": _numbers([earlier[at]]),
                "after": _numbers([after[at]]),
                "deviation": None if error is None else _numbers([error]),
            })  # fmt: skip
    return drawn


def _moved_terms(
    now: Effects, before: Effects, typical: Typical, spreads: Sequence[float]
) -> list[tuple[Term, float]]:
    """Return the terms that moved most, and how far: the spread of what they add now and did not."""
    parts = now.parts(typical.rows) / spreads[0]
    places = {(term.name, term.kind): at for at, term in enumerate(now.terms)}
    earlier = before.parts(typical.rows) / spreads[1]
    for at, term in enumerate(before.terms):
        if (place := places.get((term.name, term.kind))) is not None:
            parts[:, place] -= earlier[:, at]
    moved = typical.spread(parts)
    order = np.argsort(-moved, kind="stable")[:_SHOWN].tolist()
    return [(now.terms[at], float(moved[at])) for at in order if moved[at] > 0.0]


def _has(effects: Effects, term: Term) -> bool:
    return any(other.name == term.name and other.kind == term.kind for other in effects.terms)


def _of_curve(
    term: Term, curve: Curve, old: Curve | None, spreads: Sequence[float]
) -> dict[str, Any]:
    """Return a curve, or bars, of now and before at the same values."""
    after, deviation = curve.effect / spreads[0], curve.deviation / spreads[0]
    words = isinstance(curve.grid, list)
    before = np.zeros(len(after))
    if old is not None and words:
        known = dict(zip(old.grid, (old.effect / spreads[1]).tolist(), strict=True))
        before = np.array([known.get(value, math.nan) for value in curve.grid])
    elif old is not None and len(old.grid):
        x, known_x = (np.asarray(grid, np.float64) for grid in (curve.grid, old.grid))
        before = np.interp(x, known_x, old.effect / spreads[1])
    if words:  # their level is no more than that of the rows at hand
        before += np.nan_to_num(np.nanmean(np.append(after - before, math.nan)) if old else 0.0)
        before = np.nan_to_num(before)
    error = math.sqrt(float(np.mean(deviation**2)))
    errors = math.sqrt(float(np.mean((after - before) ** 2))) / error if error > 0.0 else None
    if words or len(after) <= 2:
        farthest = np.argsort(-np.abs(after - before), kind="stable")[:_MOST_BARS]
        shown = np.sort(farthest)
        grid = [_short(str(curve.grid[at])) for at in shown]
        kind = "bars"
    else:
        shown = _along(np.arange(len(after), dtype=np.float64), _MOST_POINTS)
        grid = _numbers(np.asarray(curve.grid, np.float64)[shown])
        kind = "time" if term.kind == "time" else "curve"
    return {
        "kind": kind,
        "errors": None if errors is None else _rounded(errors),
        "grid": grid,
        "before": _numbers(before[shown]),
        "after": _numbers(after[shown]),
        "deviation": _numbers(deviation[shown]),
    }


def _of_features(
    term: Term, now: Sight, before: Sight, spreads: Sequence[float], encoder: Any
) -> dict[str, Any]:
    """Return bars of the features of a cross or a text that moved most."""
    after = now.weights[term.places] / spreads[0]
    earlier = before.weights_like(now)[term.places] / spreads[1]
    shown = np.sort(np.argsort(-np.abs(after - earlier), kind="stable")[:_MOST_BARS])
    names = encoder.get_feature_names_out()
    return {
        "kind": "bars",
        "errors": None,
        "grid": [_short(str(names[place])) for place in term.places[shown].tolist()],
        "before": _numbers(earlier[shown]),
        "after": _numbers(after[shown]),
        "deviation": None,
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _numbers(values: Any) -> list[float]:
    return [_rounded(value) for value in np.asarray(values).tolist()]


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
