"""Streams of any width: two clouds of unit spread, with few or with many labels turned round."""

import numpy as np

from cbrank.bench.rows import Rows

NOISE = {"easy": 0.02, "noisy": 0.3}
_APART = 2.0


def stream(d: int, noise: str, rows: int, held: int, seed: int) -> Rows:
    """Draw rows of d features to learn from, and others to be held out.

    Parameters
    ----------
    d : int
        Features.
    noise : {"easy", "noisy"}
        Whether nearly no pair of a sweep fires, or a quarter to a half of them.
    rows, held : int
        How many rows.
    seed : int
        What decides them.

    Returns
    -------
    Rows
        As many positive as negative ones, about.
    """
    random = np.random.default_rng([seed, d])
    direction = random.standard_normal(d)
    direction *= _APART / np.linalg.norm(direction)
    truth = random.integers(0, 2, rows + held)
    X = random.standard_normal((rows + held, d)) / np.sqrt(d)
    X += np.outer(2.0 * truth - 1.0, direction / 2.0)
    y = np.where(random.random(rows + held) < NOISE[noise], 1 - truth, truth)
    return Rows(X[:rows], y[:rows], X[rows:], y[rows:])
