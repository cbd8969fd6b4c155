"""A made-up table with all that comes in tables, and how additive rankers of it are compared."""

import numpy as np

from cbrank.features.table import Table, in_words


def table(rows, seed=0):
    """Words that come late, gaps, dates, a column that begins to move, a unit that changes."""
    random = np.random.RandomState(seed)
    at, a = np.arange(rows), random.standard_normal(rows)
    words = random.choice(["x", "y", "z"], rows).astype(object)
    words[(at > rows // 2) & (random.random_sample(rows) < 0.2)] = "new"
    words[random.random_sample(rows) < 0.1] = None
    gaps = np.where(random.random_sample(rows) < 0.3, np.nan, random.standard_normal(rows).round(1))
    flag = random.random_sample(rows) < 0.5
    days = random.randint(700, size=rows)
    X = {
        "late": np.where(at < rows // 2, 3.0, 3.0 + random.standard_normal(rows)),
        "unit": np.where(at < 2 * rows // 3, a, 1000.0 * a),
        "word": words,
        "gaps": gaps,
        "when": np.datetime64("2020-01-01") + days,
        "flag": flag,
        "few": random.randint(5, size=rows),
    }
    score = a * (2.0 * flag - 1.0) + (words == "x") + random.standard_normal(rows)
    y = (score > 0.5).astype(int)
    for place in random.randint(1, rows, 5):  # rows twice
        y[place] = y[place - 1]
        for cells in X.values():
            cells[place] = cells[place - 1]
    return X, y


def part(X, rows):
    """Some rows of a dictionary of columns."""
    return {name: cells[rows] for name, cells in X.items()}


def state(ranker):
    """All that a ranker has learned; rows that it keeps as cells, whatever their words' codes are."""
    arrays, facts = ranker.get_state()
    table = facts.pop("front")
    rows = {
        name.removeprefix("rows."): arrays.pop(name) for name in [*arrays] if "rows." in name[:5]
    }
    cells = []
    for column in Table.from_state(rows, ranker.encoder_.names()).columns if rows else []:
        words = in_words(column)
        cells.append([words.values[code] if code >= 0 else None for code in words.codes])
    return arrays, table, cells


def assert_same(one, other, **tolerance):
    """Check that two additive rankers know the same, to the bit unless a tolerance is given."""
    (ours, our_table, our_cells), (theirs, their_table, their_cells) = state(one), state(other)
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        if tolerance and array.dtype.kind == "f":
            np.testing.assert_allclose(array, theirs[name], err_msg=name, **tolerance)
        else:
            np.testing.assert_array_equal(array, theirs[name], err_msg=name)
    assert (our_table, our_cells) == (their_table, their_cells)
