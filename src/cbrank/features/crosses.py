"""Crosses: products of coarse features of two columns, for the pairs that the rows so far speak for.

A column of numbers is crossed by up to four coarse pieces, each the mean of some of its pieces; one of
two values by an indicator; a column of words by its first categories, and one feature for all others.

Which pairs of columns belong together is seen in what the ranker got wrong. Rows are sorted into cells by
the coarse values of two columns. With r the label less the probability that the ranker gave before it
learned the row, and v = p (1 - p), a cell speaks for the pair by (sum of r)^2 / (sum of v + 3), about 1 if
there is nothing to see. What either column shows by itself is taken off: that is no cross.
"""

from itertools import combinations, pairwise
from math import isinf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.features.curves import PIECES_SPREAD, SMALLER, NumberColumn
from cbrank.features.ledger import Reader, Writer
from cbrank.features.words import WordColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

COARSE = 3  # pieces of a column of numbers (docs/_curves_table.md has 4)
WORDS = 7  # categories of a column of words that are crossed one by one
_SIDE = 1.87  # so that crosses of pieces spread about half as far as the pieces themselves
_PRIOR = 3.0  # of the sum of v in a cell: a few rows alone say little
_FEW_ROWS = 5  # a cell with fewer is expected to say nothing
_LEAST_ROWS = 20  # of a cell of words that gets a feature
# More than chance gives on average: learners without crosses go on beside those with them, so that a pair
# too many costs little (docs/_curves_table.md has a limit of 3).
_LEAST_EVIDENCE = 0.0
_FEW_PAIRS = 45  # so many are all crossed, whatever the evidence: it says which come first
MOST_COLUMNS = 128  # that are looked at: the evidence is a matrix of all their cells


class Coarse(NamedTuple):
    """The coarse features of a column: weighted sums of its features, and an offset."""

    column: int
    groups: tuple[tuple[int, ...], ...]  # places of features whose sum each is made of
    factors: tuple[float, ...]
    offsets: tuple[float, ...]
    bases: float  # of a curve, the sum of its pieces at the median
    is_words: bool


def coarse_of(column: int, known: Any) -> Coarse | None:
    """Return the coarse features of a column, or None if it has nothing to cross."""
    if isinstance(known, WordColumn):
        places = [*known.features.values()]
        groups = [(place,) for place in places[:WORDS]]
        rest = (*places[WORDS:], *((known.other,) if known.other >= 0 else ()))
        groups += [rest] if rest else []
        ones = (1.0,) * len(groups)
        return Coarse(column, tuple(groups), ones, (0.0,) * len(groups), 0.0, True)
    if not isinstance(known, NumberColumn) or known.curve is None or known.line < 0:
        return None
    curve = known.curve
    if known.pieces < 0:
        low, median, high = (
            (x - curve.mean) / curve.spread for x in (curve.low, curve.median, curve.high)
        )
        return Coarse(
            column, ((known.line,),), (1.0 / (high - low),), (-median / (high - low),), 0.0, False
        )
    count = len(curve.knots) - 1
    height = PIECES_SPREAD / np.sqrt(count)
    # Knots are closer towards the ends (see ``curves``): these parts have about equally many rows.
    shares = np.linspace(0.0, 1.0, min(COARSE, count) + 1)
    ends = np.unique(np.rint(count * 2.0 / np.pi * np.arcsin(np.sqrt(shares))).astype(np.int64))
    parts = np.split(known.pieces + np.arange(count), ends[1:-1])
    side = _SIDE / np.sqrt(len(parts))
    scale = SMALLER if isinf(float(curve.knots[-1]) - float(curve.knots[0])) else 1.0
    knots = curve.knots * scale
    bases = float(np.clip((curve.median * scale - knots[:-1]) / np.diff(knots), 0.0, 1.0).sum())
    return Coarse(
        column,
        tuple(tuple(part.tolist()) for part in parts),
        tuple(float(side / (len(part) * height)) for part in parts),
        (0.0,) * len(parts),
        bases,
        False,
    )


def values_of(coarse: Coarse, X: Floats) -> Floats:
    """Return the coarse features of rows (n, k)."""
    sums = [X[:, list(group)].sum(axis=1) for group in coarse.groups]
    return np.column_stack(sums) * coarse.factors + coarse.offsets


def cells_of(coarse: Coarse | None, X: Floats, count: int) -> Floats:
    """Say of each of a column's cells which rows are in it (n, count), as 0 and 1."""
    found = np.zeros((len(X), count))
    if coarse is None or count != n_cells(coarse):  # it has become another kind of column
        return found
    if coarse.is_words:
        for at, group in enumerate(coarse.groups):
            found[:, at] = X[:, list(group)].any(axis=1)
        return found
    if len(coarse.groups) == 1:
        places = (values_of(coarse, X)[:, 0] != 0.0).astype(np.int64)
    else:
        flat = [place for group in coarse.groups for place in group]
        height = PIECES_SPREAD / np.sqrt(len(flat))
        share = (X[:, flat].sum(axis=1) / height + coarse.bases) / len(flat)
        most = len(coarse.groups) - 1
        places = np.clip((share * len(coarse.groups)).astype(np.int64), 0, most)
    found[np.arange(len(X)), places] = 1.0
    return found


def n_cells(coarse: Coarse) -> int:
    """Return how many cells a column has, some of which may be empty."""
    return WORDS + 1 if coarse.is_words else COARSE


class Evidence(NamedTuple):
    """Sums over the rows so far, for each pair of cells."""

    columns: Places  # (c,) that are looked at
    owners: Places  # (cells,) column of each cell
    residuals: Floats  # (cells, cells) sums of r
    variances: Floats  # sums of v
    rows: Floats


def no_evidence(coarse: "Sequence[Coarse]") -> Evidence:
    """Return the sums before the first row, for some columns."""
    columns = np.array([each.column for each in coarse], np.int64)
    owners = np.repeat(columns, [n_cells(each) for each in coarse])
    empty = np.zeros((owners.size, owners.size))
    return Evidence(columns, owners, empty, empty.copy(), empty.copy())


def with_columns(evidence: Evidence, coarse: "Sequence[Coarse]") -> Evidence:
    """Return the sums with room for columns that have begun to move, as far as not too many."""
    room = MOST_COLUMNS - evidence.columns.size
    new = [each for each in coarse if each.column not in evidence.columns][: max(room, 0)]
    if not new:
        return evidence
    columns = np.sort(np.append(evidence.columns, [each.column for each in new]))
    owners = np.sort(np.append(evidence.owners, no_evidence(new).owners))
    old = np.flatnonzero(np.isin(owners, evidence.columns))
    wider = Evidence(columns, owners, *np.zeros((3, owners.size, owners.size)))
    for name in ("residuals", "variances", "rows"):
        getattr(wider, name)[np.ix_(old, old)] = getattr(evidence, name)
    return wider


def gathered(
    evidence: Evidence, coarse: "Sequence[Coarse]", X: Floats, r: Floats, v: Floats
) -> Evidence:
    """Return the sums with those of more rows, by the coarse features that columns have now."""
    if not evidence.columns.size:
        return evidence
    known = {each.column: each for each in coarse}
    counts = [int((evidence.owners == column).sum()) for column in evidence.columns]
    pairs = zip(evidence.columns.tolist(), counts, strict=True)
    cells = np.hstack([cells_of(known.get(column), X, count) for column, count in pairs])
    return evidence._replace(
        residuals=evidence.residuals + cells.T @ (cells * r[:, None]),
        variances=evidence.variances + cells.T @ (cells * v[:, None]),
        rows=evidence.rows + cells.T @ cells,
    )


def ranked_pairs(evidence: Evidence) -> list[tuple[int, int]]:
    """Return the pairs of columns that something speaks for, or all if they are few; the best first."""
    columns, owners = evidence.columns, evidence.owners
    if not owners.size:
        return []
    each = evidence.residuals**2 / (evidence.variances + _PRIOR) - (evidence.rows > _FEW_ROWS)
    own = (owners[:, None] == columns).astype(np.float64)
    both = own.T @ each @ own
    alone = np.maximum(own.T @ np.diag(each), 0.0)
    both -= alone[:, None] + alone
    pairs = [*combinations(range(columns.size), 2)]
    few = len(pairs) <= _FEW_PAIRS
    found = [
        (both[a, b], int(columns[a]), int(columns[b]))
        for a, b in pairs
        if few or both[a, b] > _LEAST_EVIDENCE
    ]
    return [pair[1:] for pair in sorted(found, key=lambda found: -found[0])]


class Cross(NamedTuple):
    """The features of a pair of columns: products of their coarse features."""

    left: Coarse
    right: Coarse
    chosen: tuple[tuple[int, int], ...]  # coarse features of the two, by place
    first: int  # place of the first feature

    def save(self, out: Writer) -> None:
        """Write all of it."""
        for coarse in (self.left, self.right):
            out.put(coarse.column, int(coarse.is_words), len(coarse.groups))
            for group in coarse.groups:
                out.put(len(group), *group)
            out.put_floats([*coarse.factors, *coarse.offsets, coarse.bases])
        out.put(self.first, len(self.chosen), *(place for pair in self.chosen for place in pair))

    @classmethod
    def load(cls, source: Reader) -> "Cross":
        """Return what was written; a ValueError if it makes no sense."""
        left, right = _loaded(source), _loaded(source)
        first = source.get(0)
        chosen = tuple(
            (source.get(0, len(left.groups) - 1), source.get(0, len(right.groups) - 1))
            for _ in range(source.get(1))
        )
        source.own(left.column, first, len(chosen))
        return cls(left, right, chosen, first)


def _loaded(source: Reader) -> Coarse:
    column, is_words = source.get(0, source.columns - 1), bool(source.get(0, 1))
    groups = tuple(source.get_places() for _ in range(source.get(1, 64)))
    numbers = source.get_floats().tolist()
    if len(numbers) != 2 * len(groups) + 1 or not all(groups):
        raise ValueError("its encoder has no sound cross")
    factors, offsets = tuple(numbers[: len(groups)]), tuple(numbers[len(groups) : -1])
    return Coarse(column, groups, factors, offsets, numbers[-1], is_words)


def crossed(left: Coarse, right: Coarse, evidence: Evidence | None, first: int) -> Cross:
    """Return the cross of two columns; of words, without cells that few rows have been in."""
    shape = len(left.groups), len(right.groups)
    enough = np.ones(shape, bool)
    if evidence is not None:
        of_left, of_right = evidence.owners == left.column, evidence.owners == right.column
        if (of_left.sum(), of_right.sum()) != (n_cells(left), n_cells(right)):
            return Cross(left, right, (), first)  # one has become another kind of column
        rows = evidence.rows[np.ix_(of_left, of_right)]
        # Cells of words are their coarse features; of numbers, those of all cells are counted.
        rows = rows[: shape[0]] if left.is_words else rows.sum(axis=0, keepdims=True)
        rows = rows[:, : shape[1]] if right.is_words else rows.sum(axis=1, keepdims=True)
        enough = np.broadcast_to(rows >= _LEAST_ROWS, shape)
    chosen = tuple((int(i), int(j)) for i, j in np.argwhere(enough))
    return Cross(left, right, chosen, first)


class Products:
    """All crosses of an encoder, as arrays: their features are computed at once."""

    def __init__(self, crosses: "Sequence[Cross]") -> None:
        """Take crosses; what several have in common is computed once."""
        places: dict[tuple[tuple[int, ...], float, float], int] = {}
        pairs, features = list[tuple[int, int]](), list[int]()
        for cross in crosses:
            sides = [
                [places.setdefault(each, len(places)) for each in _terms(coarse)]
                for coarse in (cross.left, cross.right)
            ]
            pairs += [(sides[0][i], sides[1][j]) for i, j in cross.chosen]
            features += range(cross.first, cross.first + len(cross.chosen))
        groups = [group for group, _, _ in places]
        left, right = np.array(pairs, np.int64).reshape(-1, 2).T
        self.features = np.array(features, np.int64)
        self.arrays = kernels.encoding.Products(
            np.array([place for group in groups for place in group], np.int64),
            np.cumsum([0, *map(len, groups)]),
            np.array([factor for _, factor, _ in places], np.float64),
            np.array([offset for _, _, offset in places], np.float64),
            left.copy(),
            right.copy(),
            self.features,
        )

    def of(self, X: Floats) -> Floats:
        """Return the features of rows that have all others."""
        found = np.empty((len(X), self.features.size))
        kernels.encoding.multiply(np.ascontiguousarray(X), self.arrays, found)
        return found


def _terms(coarse: Coarse) -> list[tuple[tuple[int, ...], float, float]]:
    return [*zip(coarse.groups, coarse.factors, coarse.offsets, strict=True)]


def labels_of(known: Any, coarse: Coarse) -> list[str]:
    """Return a name for each coarse feature of a column."""
    if coarse.is_words:
        names = {place: word for word, place in known.features.items()}
        return [
            f"{known.name}={names[group[0]]}"
            if len(group) == 1 and group[0] in names
            else f"{known.name}: other"
            for group in coarse.groups
        ]
    if len(coarse.groups) == 1:
        return [known.name]
    ends = np.cumsum([0, *map(len, coarse.groups)])
    marks = [f"{known.curve.knots[end]:.4g}" for end in ends]
    return [f"{known.name} {low} to {high}" for low, high in pairwise(marks)]
