"""Columns of numbers: a line, pieces between knots, values that are categories, gaps."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import frexp, isinf
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.features.ledger import Ledger, Reader, Writer

Numbers = NDArray[np.float64]

# Pieces have variances like those of standardised columns.
_PIECES_SPREAD = 3.5
_FARTHEST = 10.0  # standard deviations: an outlier must not outweigh all other columns
ENOUGH = 64  # values for knots: fewer put them anywhere
_WINDOW = 128  # values that say whether a column has left its knots
_RARE, _FEW_MOVES, _LONG = 0.01, 16, 1024
# Where one value is most of a column, others that come so often may mean something of their own, as single
# capital gains do that no knots could part.
_OFTEN, MOST_SINGLES = 8, 64
_MOST_MET = 1024  # values that are counted
# Where numbers are beyond this, differences of two may overflow: work with them scaled down.
_LARGE, _SMALLER = 1e300, 2.0**-16
_LARGEST = float(np.finfo(np.float64).max)
_MIDDLE = np.array([0.05, 0.95])  # levels between which most values are

# Columns are many, and most have none: these are shared, and never changed.
_NOTHING: Mapping[float, int] = {}
_NO_VALUES: Numbers = np.zeros(0)


class Curve(NamedTuple):
    """The line and the pieces of a column of numbers, as its first values gave them."""

    mean: float
    spread: float
    median: float
    knots: Numbers
    sentinels: Numbers  # isolated values: categories of their own, gaps for the curve
    low: float
    high: float


def fitted(values: Numbers, pieces: int, of_lumps: int) -> Curve:
    """Return the curve of the first values, which are finite.

    Where one value is most of them, the others have up to `of_lumps` pieces.
    """
    sentinels = _sentinels(values)
    if sentinels.size:
        values = values[~np.isin(values, sentinels)]
    mean, spread = _moments(values)
    median = float(_quantiles(values, np.array([0.5]))[0])
    return Curve(
        mean,
        spread,
        median,
        _knots(values, pieces, of_lumps),
        sentinels,
        values.min(),
        values.max(),
    )


def _moments(values: Numbers) -> tuple[float, float]:
    """Return mean and standard deviation, which overflow only if the values do."""
    # A power of two scales without rounding.
    scale = 2.0 ** (frexp(max(float(np.abs(values).max()), 2.0**-1000))[1] - 1)
    parts = values / scale
    mean, spread = float(parts.mean()) * scale, float(parts.std()) * scale
    if values.min() == values.max():
        return float(values[0]), 1.0
    return mean, min(spread, _LARGEST) or 1.0


def _knots(values: Numbers, pieces: int, of_lumps: int) -> Numbers:
    distinct = np.unique(values)
    if len(distinct) <= 2:
        return np.zeros(0)
    if len(distinct) <= pieces + 1:
        return distinct
    knots = np.unique(_quantiles(values, _levels(pieces)))
    if len(knots) <= 0.75 * pieces:  # one value is most of the column
        knots = np.union1d(knots, _quantiles(distinct, _levels(of_lumps)))
    return knots


def _levels(pieces: int) -> Numbers:
    """Return at which shares of the rows the knots are.

    Pieces are narrower towards both ends, where curves bend most; docs/_curves_table.md has them beside pieces
    of equally many rows.
    """
    levels: Numbers = np.sin(np.linspace(0.0, 0.5 * np.pi, pieces + 1)) ** 2
    return levels


def _quantiles(values: Numbers, levels: Numbers) -> Numbers:
    if np.abs(values).max() > _LARGE:
        return _interpolated(values * _SMALLER, levels) / _SMALLER
    return _interpolated(values, levels)


def _interpolated(values: Numbers, levels: Numbers) -> Numbers:
    """Return quantiles, to the bit those of `np.quantile`, which takes ten times as long."""
    ordered, places = np.sort(values), levels * (len(values) - 1)
    below = np.floor(places)
    shares, at = places - below, below.astype(np.intp)
    low, high = ordered[at], ordered[np.minimum(at + 1, len(values) - 1)]
    return np.where(shares < 0.5, low + (high - low) * shares, high - (high - low) * (1.0 - shares))


def _sentinels(values: Numbers) -> Numbers:
    """Return the largest or smallest value if it is frequent and far away from all others."""
    distinct, counts = np.unique(values, return_counts=True)
    found = []
    for end, neighbour in ((0, 1), (-1, -2)):
        if len(distinct) < 4 or counts[end] < max(3, _RARE * len(values)):
            continue
        others = values[values != distinct[end]] * _SMALLER
        low, high = _interpolated(others, _MIDDLE).tolist()
        away = abs(distinct[end] * _SMALLER - distinct[neighbour] * _SMALLER)
        if low < high and away > 10.0 * (high - low):
            found.append(distinct[end])
    return np.array(found, np.float64)


class Pieces:
    """Lines and pieces of several columns, as arrays: all rows are encoded at once."""

    def __init__(self, columns: list[tuple["NumberColumn", int]]) -> None:
        """Take columns with the places of their values in the rows."""
        parts: list[tuple[int, int, float, float, float, float, float]] = []
        lines: list[tuple[int, int, float, float]] = []
        for column, place in columns:
            curve = column.curve
            if curve is None:
                continue
            if column.line >= 0:
                lines.append((column.line, place, curve.mean, curve.spread))
            height = _PIECES_SPREAD / np.sqrt(max(1, len(curve.knots) - 1))
            for at, (low, high) in enumerate(pairwise(curve.knots.tolist())):
                scale = _SMALLER if isinf(high - low) else 1.0
                ends = low * scale, high * scale
                parts.append((column.pieces + at, place, *ends, curve.median, height, scale))
        self._lines = _arrays(lines, 4)
        self._parts = _arrays(parts, 7)
        self._bases = np.zeros(0)
        self.features = np.concatenate([self._lines[0], self._parts[0]]).astype(np.int64)
        self._order = np.argsort(self.features)
        self.features = self.features[self._order]
        if parts:
            with np.errstate(over="ignore"):
                self._bases = self._shares(self._parts[4][None, :])[0]

    def _shares(self, values: Numbers) -> Numbers:
        """Return how much of each piece lies below the values, one column of them for a piece."""
        _, _, low, high, _, _, scale = self._parts
        shares: Numbers = (values * scale - low) / (high - low)
        np.clip(shares, 0.0, 1.0, out=shares)
        return shares

    def encoded(self, values: Numbers) -> Numbers:
        """Return the features of rows of numbers; gaps give zeros."""
        with np.errstate(over="ignore", invalid="ignore"):
            _, places, mean, spread = self._lines
            lines = (values[:, places.astype(np.intp)] - mean) / spread
            np.clip(lines, -_FARTHEST, _FARTHEST, out=lines)
            places, height = self._parts[1], self._parts[5]
            pieces = (self._shares(values[:, places.astype(np.intp)]) - self._bases) * height
        found = np.concatenate([lines, pieces], axis=1)[:, self._order]
        found[np.isnan(found)] = 0.0
        return found

    def ramps(self) -> Any:
        """Return what `encoded` computes, for the kernel and for other runtimes."""
        _, of_lines, mean, spread = self._lines
        _, of_parts, low, high, _, height, scale = self._parts
        one, none = np.ones(len(mean)), np.zeros(len(low))
        both = [
            (of_lines, of_parts),
            (one, scale),
            (mean, low),
            (spread, high - low),
            (-_FARTHEST * one, none),
            (_FARTHEST * one, none + 1.0),
            (0.0 * one, self._bases),
            (one, height),
        ]
        places, *others = (np.concatenate(pair)[self._order] for pair in both)
        return kernels.encoding.Ramps(self.features, places.astype(np.int64), *others)


def _arrays(rows: list[Any], width: int) -> Numbers:
    return np.array(rows, np.float64).T if rows else np.zeros((width, 0))


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """What is known of a column of numbers."""

    kind: ClassVar[str] = "number"

    owner: int
    name: str
    most: int  # pieces
    of_lumps: int  # pieces where one value is most of the column
    tells_gaps: bool = True
    needed: int = 0  # values before there are knots; 0 before the first rows
    curve: Curve | None = None
    version: int = 0  # how many curves there were before
    line: int = -1
    pieces: int = -1  # the first of them
    sentinels: tuple[int, ...] = ()
    gap: int = -1
    singles: Mapping[float, int] = field(
        default_factory=lambda: _NOTHING
    )  # with features of their own
    met: Mapping[float, int] = field(
        default_factory=lambda: _NOTHING
    )  # how often other values came
    waiting: Numbers = field(default_factory=lambda: _NO_VALUES)
    seen: int = 0
    next_look: int = 0  # values after which knots may move

    def settled(self, values: Numbers, ledger: Ledger) -> "NumberColumn":
        """Return the column after the rows of a block; features are added to the ledger."""
        column = self
        if not self.needed:
            needed = min(ENOUGH, max(1, len(values) // 4))
            column = replace(column, needed=needed)
        finite = values[np.isfinite(values)]
        column = replace(column, seen=column.seen + len(finite))
        has_gaps = self.tells_gaps and len(values) and bool(np.isnan(values).any())
        if has_gaps and self.gap < 0 and (column.seen or self.seen):
            column = replace(column, gap=ledger.add(self.owner, f"{self.name}: missing"))
        if not len(finite):
            return column
        waiting = np.concatenate([column.waiting, finite])
        begun = column.curve is not None
        column = column._watched(waiting, ledger) if begun else column._begun(waiting, ledger)
        return column._counted(finite, ledger)

    def _begun(self, waiting: Numbers, ledger: Ledger) -> "NumberColumn":
        """Return the column with a curve, if there are values enough."""
        moved = waiting != waiting[0]
        if not moved.any():
            return replace(self, waiting=waiting[:1], needed=self._needed_after(waiting))
        if self.needed > ENOUGH:  # it was constant, and now moves: look at what comes after
            since = waiting[moved.argmax() :][:_LONG]
            others = int((since != waiting[0]).sum())
            if len(since) < ENOUGH or (others < _FEW_MOVES and len(since) < _LONG):
                return replace(self, waiting=np.append(waiting[:1], since))
            waiting = since
        elif len(waiting) < self.needed:
            return replace(self, waiting=waiting)
        return self._curved(waiting, ledger)

    def _needed_after(self, waiting: Numbers) -> int:
        return ENOUGH + 1 if self.seen >= self.needed or len(waiting) >= ENOUGH else self.needed

    def _curved(self, values: Numbers, ledger: Ledger) -> "NumberColumn":
        """Return the column with new features from the values."""
        curve = fitted(values, self.most, self.of_lumps)
        name = f"{self.name} ({self.version + 1})" if self.version else self.name
        line = pieces = -1
        if curve.low < curve.high:
            line = ledger.add(self.owner, name)
        marks = _marks(curve.knots)
        for at, low in enumerate(marks[:-1]):
            place = ledger.add(self.owner, f"{name}: {low} to {marks[at + 1]}", bends=True)
            pieces = place if at == 0 else pieces
        sentinels = [
            ledger.add(self.owner, f"{name} = {value:.6g}") for value in curve.sentinels.tolist()
        ]
        return replace(
            self,
            curve=curve,
            version=self.version + 1,
            line=line,
            pieces=pieces,
            sentinels=tuple(sentinels),
            waiting=_NO_VALUES,
            # Twice as many values each time, so that a column that only ever grows has few curves.
            next_look=2 * self.seen,
        )

    def _watched(self, waiting: Numbers, ledger: Ledger) -> "NumberColumn":
        """Return the column with a new curve if most of the latest values are off its knots."""
        curve = self.curve
        assert curve is not None
        if len(waiting) >= _WINDOW and self.seen >= self.next_look:
            known = np.isin(waiting, curve.sentinels)
            outside = ((waiting < curve.low) | (waiting > curve.high)) & ~known
            latest = waiting[len(waiting) // 2 :]
            if outside.mean() > 0.5 and latest.min() < latest.max():
                return self._curved(latest, ledger)
        return replace(self, waiting=waiting[1 - _WINDOW :])

    def _counted(self, values: Numbers, ledger: Ledger) -> "NumberColumn":
        """Return the column with features of values that come often, if one value is most of it."""
        curve = self.curve
        if curve is None or self.of_lumps <= self.most or len(curve.knots) - 1 <= self.most:
            return self  # columns are too many, or no value is most of this one
        known = np.array([curve.median, *curve.sentinels, *self.singles])
        found, counts = np.unique(values[~np.isin(values, known)], return_counts=True)
        met, singles = dict(self.met), dict(self.singles)
        for value, count in zip(found.tolist(), counts.tolist(), strict=True):
            met[value] = met.get(value, 0) + count
            if met[value] >= _OFTEN and len(singles) < MOST_SINGLES:
                del met[value]
                name = f"{self.name} = {_short(value)}"
                singles[value] = ledger.add(self.owner, name, bends=True)
        if len(met) > _MOST_MET or len(singles) >= MOST_SINGLES:
            met = {}  # hardly any comes again, or there is no room for it
        return replace(self, met=met, singles=singles)

    def singled(self, values: Numbers) -> NDArray[np.int64]:
        """Return the feature of each value that has one of its own; -1 for all others."""
        found = np.full(len(values), -1)
        for value, feature in self.singles.items():
            found[values == value] = feature
        return found

    def parted(self, values: Numbers) -> tuple[Numbers, list[NDArray[np.int64]]]:
        """Return the numbers for the curve, and of each indicator its feature or -1 for each row."""
        found = []
        if self.gap >= 0:
            found.append(np.where(np.isnan(values), self.gap, -1))
        if self.singles:
            found.append(self.singled(values))
        if self.sentinels and self.curve is not None:
            for feature, value in zip(self.sentinels, self.curve.sentinels, strict=True):
                found.append(np.where(values == value, feature, -1))
            values = np.where(np.isin(values, self.curve.sentinels), np.nan, values)
        return values, found

    def all_singles(self) -> list[tuple[float, int, bool]]:
        """Return values with a feature of their own, that, and whether it is all they have; rising."""
        found = [(value, feature, False) for value, feature in self.singles.items()]
        if self.curve is not None:
            ends = zip(self.curve.sentinels.tolist(), self.sentinels, strict=True)
            found += [(value, feature, True) for value, feature in ends]
        return sorted(found)

    def describe(self) -> str:
        """Return a phrase about the curve."""
        curve = self.curve
        if curve is None:
            return ("nothing known", "constant", "too few values")[
                min(2, len(self.waiting))
            ] + " so far"
        low, high = f"{curve.low:.6g}", f"{curve.high:.6g}"
        if self.line < 0:
            text = "one value"
        elif self.pieces < 0:
            text = f"two values, {low} and {high}"
        else:
            text = f"{len(curve.knots) - 1} pieces between {low} and {high}"
        for value in curve.sentinels.tolist():
            text += f"; {value:.6g} is a category of its own"
        if self.singles:
            text += f"; {len(self.singles)} values have a weight of their own"
        return text

    def save(self, out: Writer) -> None:
        """Write all that changes."""
        out.put(self.needed, self.version, self.gap, self.seen, self.next_look)
        out.put_floats(self.waiting)
        for counts in (self.singles, self.met):
            out.put_floats([*counts])
            out.put(*counts.values())
        curve = self.curve
        out.put(int(curve is not None))
        if curve is not None:
            out.put(self.line, self.pieces)
            out.put_floats([curve.mean, curve.spread, curve.median, curve.low, curve.high])
            out.put_floats(curve.knots)
            out.put_floats(curve.sentinels)
            out.put(*self.sentinels)

    def load(self, source: Reader) -> "NumberColumn":
        """Return the column as it was written."""
        column = replace(
            self,
            needed=source.get(0, ENOUGH + 1),
            version=source.get(),
            gap=source.get_feature(self.owner),
            seen=source.get(),
            next_look=source.get(),
            waiting=source.get_floats(),
            singles={
                value: source.get_feature(self.owner) for value in source.get_floats().tolist()
            },
            met={value: source.get(1) for value in source.get_floats().tolist()},
        )
        if -1 in column.singles.values():
            raise ValueError(f"its encoder has no sound values of column {self.name!r}")
        if not source.get(0, 1):
            return column
        line, pieces = source.get_feature(self.owner), source.get(-1)
        moments, knots = source.get_floats(), source.get_floats(rising=True)
        sentinels = source.get_floats(rising=True)
        if len(moments) != 5 or not moments[1] > 0 or (len(knots) > 0) != (pieces >= 0):
            raise ValueError(f"its encoder has no sound curve of column {self.name!r}")
        source.own(self.owner, pieces, len(knots) - 1)
        mean, spread, median, low, high = moments.tolist()
        features = tuple(source.get_feature(self.owner) for _ in sentinels)
        if not low <= median <= high or -1 in features:
            raise ValueError(f"its encoder has no sound curve of column {self.name!r}")
        return replace(
            column,
            curve=Curve(mean, spread, median, knots, sentinels, low, high),
            line=line,
            pieces=pieces,
            sentinels=features,
        )


def _short(value: float) -> str:
    """Return a number as a text that no other number has."""
    short = f"{value:.6g}"
    return short if float(short) == value else repr(value)


def _marks(knots: Numbers) -> list[str]:
    """Return knots as texts, short ones if they differ."""
    marks = [f"{knot:.6g}" for knot in knots.tolist()]
    return marks if len({*marks}) == len(marks) else [repr(knot) for knot in knots.tolist()]


def singles_of(columns: list[NumberColumn]) -> Any:
    """Return the gaps and the values with features of their own of several columns, for the kernel."""
    parts = [column.all_singles() for column in columns]
    flat = [one for part in parts for one in part]
    values, features, hides = zip(*flat, strict=True) if flat else ((), (), ())
    return kernels.encoding.Singles(
        np.array([column.gap for column in columns], np.int64),
        np.cumsum([0, *map(len, parts)]),
        np.array(values, np.float64),
        np.array(features, np.int64),
        np.array(hides, np.bool_),
    )
