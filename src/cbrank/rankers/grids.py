"""Values of the columns of a table to draw them at, and their features there."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank.features.curves import NumberColumn, Pieces
from cbrank.features.table import Times
from cbrank.features.times import TimeColumn
from cbrank.features.words import BUCKETS, WordColumn

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

_POINTS = 100
_DAY = 86400.0
OTHER, MISSING = "other", "missing"


def _grid_of(known: NumberColumn) -> Floats:
    """Return values of a column from its first to its last knot; each piece has its share of them."""
    curve = known.curve
    if curve is None:
        return np.unique(known.waiting)
    if not len(curve.knots):
        return np.unique([curve.low, curve.high])
    count = max(1, _POINTS // (len(curve.knots) - 1))
    share = np.arange(count) / count
    # Written so that the largest numbers do not overflow.
    parts = [low * (1.0 - share) + high * share for low, high in pairwise(curve.knots.tolist())]
    return np.unique(np.concatenate([*parts, curve.knots[-1:], [*known.singles]]))


def of_numbers(known: NumberColumn | TimeColumn) -> tuple[Any, Places, Floats]:
    """Return a grid of a column, its features and their values there."""
    numbers = known if isinstance(known, NumberColumn) else known.days
    return _encoded(known, _grid_of(numbers))


def middle_of(known: NumberColumn | TimeColumn) -> tuple[Any, Places, Floats]:
    """Return the median of a column, its features and their values there."""
    curve = known.curve if isinstance(known, NumberColumn) else known.days.curve
    grid, places, Z = _encoded(known, np.array([np.nan if curve is None else curve.median]))
    return grid, places, Z[0]


def _encoded(known: NumberColumn | TimeColumn, values: Floats) -> tuple[Any, Places, Floats]:
    if isinstance(known, NumberColumn):
        pieces = Pieces([(known, 0)])
        singles = np.array([*known.singles.values()], np.int64)
        Z = np.hstack([pieces.encoded(values[:, None]), known.singled(values)[:, None] == singles])
        return values, np.concatenate([pieces.features, singles]), Z
    seconds = (known.first or 0.0) + _DAY * values
    years, days, _ = known.taken_apart(Times(seconds))
    pieces = Pieces([(known.year, 0), (known.days, 1)])
    moments = np.where(np.isnan(seconds), 0.0, seconds).round().astype("M8[s]")
    return moments, pieces.features, pieces.encoded(np.column_stack([years, days]))


def of_words(known: WordColumn, own: Places) -> tuple[list[str], Places, Floats]:
    """Return the categories of a column, its features and their values there."""
    if known.only:
        return [known.only], np.zeros(0, np.int64), np.zeros((1, 0))
    groups: dict[str, list[int]] = {}
    if known.buckets >= 0:  # what they add on average
        groups[OTHER] = [*range(known.buckets, known.buckets + BUCKETS)]
    elif known.other >= 0:
        groups[OTHER] = [known.other]
    if known.gap >= 0:
        groups[MISSING] = [known.gap]
    names = [*known.features, *groups]
    found = [[place] for place in known.features.values()] + [*groups.values()]
    Z = np.array([np.isin(own, group) / len(group) for group in found])
    return names, own, Z.reshape(len(found), len(own))
