"""A made-up stream in time: columns that say something beside indicators that walk from month to month."""

import numpy as np

MONTHS = 40


def walking_rows(rows, seed):
    """Return five ordinary columns and four random walks with one step a month, and labels."""
    random = np.random.RandomState(seed)
    columns = random.randn(rows, 5)
    walks = np.cumsum(random.randn(MONTHS, 4), axis=0)[np.arange(rows) * MONTHS // rows]
    evidence = columns[:, 0] + 0.7 * np.sin(2 * columns[:, 1]) + 0.5 * np.abs(columns[:, 2])
    y = evidence + 1.2 * random.randn(rows) > 1.6
    return np.column_stack([columns, walks]), y.astype(int)
