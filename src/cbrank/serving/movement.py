"""What moved last in a model while it serves: its curves, or its weights.

They are compared in units of the spread of scores, so that weights that all grow alike, which ranks no
row otherwise, are no movement, and told with their standard errors, so that noise is not taken for news.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.serving.drift import along

if TYPE_CHECKING:
    from cbrank.rankers.effects import Curve, Effects, Term

Floats = NDArray[np.float64]

_SHOWN, _SHOWN_WEIGHTS = 3, 6
_MOST_POINTS, _MOST_BARS, _LONGEST_NAME = 48, 8, 60
_MOST_FEATURES = 2**18  # copies of more weights than these would hold up the writer
# A model is compared with itself of about a minute ago.
_SPACING, _KEPT = 20.0, 4  # seconds between moments that are kept, and how many
_SPAN = _SPACING * (_KEPT - 1)


class Sight(NamedTuple):
    """What is known of a model at a moment."""

    moment: float
    rows: int
    weights: Floats
    effects: "Effects | None"  # of a ranker with curves

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

    def spread_of_features(self) -> Floats:
        """Return the standard deviations of features."""
        if not sp.issparse(self.rows):
            return np.asarray(self.spread(self.rows))
        squares = self.shares @ self.rows.multiply(self.rows).tocsr()
        found: Floats = np.sqrt(np.maximum(squares - (self.shares @ self.rows) ** 2, 0.0))
        return found


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
        if effects is None:
            shares = (seen / np.maximum(np.bincount(labels, minlength=2), 1))[labels]
            typical = Typical(rows, shares / shares.sum())
            terms = _moved_weights(sight, before, typical, deviations, model.columns.feature_name)
        else:
            terms = self._moved_curves(sight, before)
        if terms is None:
            return None
        return {"seconds": now - before.moment, "rows": sight.rows - before.rows, "terms": terms}

    def _moved_curves(self, now: Sight, before: Sight) -> list[dict[str, Any]] | None:
        assert now.effects is not None
        assert before.effects is not None
        table = now.effects.sample
        parts = [each.parts(each.encode(table)) for each in (now.effects, before.effects)]
        spreads = [float(each.sum(axis=1).std()) for each in parts]
        if not min(spreads) > 0.0:
            return None
        found, curves = _moved_terms(now.effects, before.effects, parts, spreads), {}
        with self._lock:  # the covariance is the model's own
            for term, _ in found:
                if term.kind not in {"text", "id"}:
                    curves[term.name] = now.effects.curve(term.name)
        drawn = []
        for term, moved in found:
            if term.name in curves:
                old = before.effects.curve(term.name) if _has(before.effects, term) else None
                picture = _of_curve(term, curves[term.name], old, spreads)
            else:
                picture = _of_features(term, now, before, spreads)
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
    found: Floats = np.sqrt(covariance.diagonal() if covariance.ndim == 2 else covariance)
    return found


def _moved_weights(
    now: Sight,
    before: Sight,
    typical: Typical,
    deviations: Floats | None,
    name: Callable[[int], str],
) -> list[dict[str, Any]] | None:
    """Return the weights that moved most, each times the spread of its feature."""
    spreads = [
        typical.spread(np.asarray(typical.rows @ each.weights_like(now))) for each in (now, before)
    ]
    if not min(spreads) > 0.0:
        return None
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
    now: "Effects", before: "Effects", both: Sequence[Floats], spreads: Sequence[float]
) -> "list[tuple[Term, float]]":
    """Return the terms that moved most, and how far: the spread of what they add now and did not."""
    parts = both[0] / spreads[0]
    places = {(term.name, term.kind): at for at, term in enumerate(now.terms)}
    earlier = both[1] / spreads[1]
    for at, term in enumerate(before.terms):
        if (place := places.get((term.name, term.kind))) is not None:
            parts[:, place] -= earlier[:, at]
    moved = parts.std(axis=0)
    order = np.argsort(-moved, kind="stable")[:_SHOWN].tolist()
    return [(now.terms[at], float(moved[at])) for at in order if moved[at] > 0.0]


def _has(effects: "Effects", term: "Term") -> bool:
    return any(other.name == term.name and other.kind == term.kind for other in effects.terms)


def _of_curve(
    term: "Term", curve: "Curve", old: "Curve | None", spreads: Sequence[float]
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
        grid: list[Any] = [_short(str(curve.grid[at])) for at in shown]
        kind = "bars"
    else:
        shown = along(np.arange(len(after), dtype=np.float64), _MOST_POINTS)
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
    term: "Term", now: Sight, before: Sight, spreads: Sequence[float]
) -> dict[str, Any]:
    """Return bars of the features of a text that moved most."""
    after = now.weights[term.places] / spreads[0]
    earlier = before.weights_like(now)[term.places] / spreads[1]
    shown = np.sort(np.argsort(-np.abs(after - earlier), kind="stable")[:_MOST_BARS])
    assert now.effects is not None
    names = now.effects.encoder.get_feature_names_out()
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
