"""Made-up tables, and a slow plain reading of how their columns become features."""

import itertools
import math

import numpy as np
from hypothesis import strategies as st

NUMBERS = st.one_of(
    st.none(),
    st.floats(),
    st.integers(-3, 3),
    st.sampled_from([5e-324, 1e-320, 1e308, -1.7e308, 2.0**1023, -999.0, 0.0]),
)
WORDS = st.one_of(st.none(), st.sampled_from(["Oslo", " Oslo ", "?", "N/A", "", "Bø", "x y"]))
NUMBERS_IN_WORDS = st.sampled_from(["1", "2.5", " 1,234 ", "-7", "1e3", "?", "NA", "0"])
TIMES = st.one_of(
    st.none(), st.datetimes().map(lambda moment: moment.isoformat()), st.just("2020-02-29")
)
TEXTS = st.lists(st.sampled_from(["win", "a", "prize", "now", "!", "£9"]), max_size=9).map(" ".join)
ANYTHING = st.one_of(NUMBERS, WORDS, st.booleans(), st.dates(), st.binary(max_size=3), st.text())
COLUMNS = st.sampled_from([NUMBERS, WORDS, NUMBERS_IN_WORDS, TIMES, TEXTS, ANYTHING])


@st.composite
def tables(draw, most_rows=80):
    """Dictionaries of columns of equal length, of every kind."""
    rows = draw(st.integers(1, most_rows))
    kinds = draw(st.lists(COLUMNS, min_size=1, max_size=4))
    return {
        f"c{at}": draw(st.lists(kind, min_size=rows, max_size=rows))
        for at, kind in enumerate(kinds)
    }


@st.composite
def cuts(draw, rows):
    """Where rows are cut into chunks."""
    places = draw(st.sets(st.integers(1, rows), max_size=6))
    return sorted({0, *places, rows})


def part(columns, begin, end):
    """Rows of a dictionary of columns."""
    return {name: cells[begin:end] for name, cells in columns.items()}


def curve(first, pieces):
    """The knots of the first values, cell by cell as the issue words it; no value stands apart."""
    first = [x for x in first if math.isfinite(x)]
    distinct = sorted({*first})
    if len(distinct) <= 2:
        return []
    if len(distinct) <= pieces + 1:
        return distinct
    levels, finer = (np.sin(np.linspace(0, np.pi / 2, n + 1)) ** 2 for n in (pieces, 4 * pieces))
    knots = np.unique(np.quantile(first, levels))
    if len(knots) <= 0.75 * pieces:
        knots = np.unique([*knots, *np.quantile(distinct, finer)])
    return knots.tolist()


def often(first, pieces):
    """Values that come often beside one that is most of the column."""
    lumpy = len(curve(first, pieces)) - 1 > pieces
    others = {x for x in first if math.isfinite(x) and x != np.median(first)}
    return [x for x in sorted(others) if lumpy and first.count(x) >= 8]


def features_of_number(x, first, pieces):
    """The line and the pieces of one cell, and whether it is a value that comes often."""
    first = [value for value in first if math.isfinite(value)]
    knots, singles = curve(first, pieces), often(first, pieces)
    if math.isnan(x):
        return [0.0] * (1 + max(0, len(knots) - 1) + len(singles))
    line = (x - np.mean(first)) / (np.std(first) or 1.0)
    found = [min(max(line, -10.0), 10.0)]
    for low, high in itertools.pairwise(knots):
        share, base = (
            min(max((value - low) / (high - low), 0.0), 1.0) for value in (x, np.median(first))
        )
        found.append((share - base) * 3.5 / math.sqrt(len(knots) - 1))
    return [*found, *(float(x == value) for value in singles)]
