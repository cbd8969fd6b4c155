"""Decide which rows are positive."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from cbrank.datasets.entry import Positive


def positive_rows(labels: NDArray[np.int64], rule: Positive, name: str) -> NDArray[np.bool_]:
    """Return which rows are positive under a rule of the registry.

    Examples
    --------
    >>> positive_rows(np.array([1, 2, 3]), 3, "any")
    array([False, False,  True])
    >>> positive_rows(np.array([1, 2, 3]), (1, 3), "any")
    array([ True, False,  True])
    >>> positive_rows(np.array([-1, 1]), "greater", "any")
    array([False,  True])
    """
    if rule == "greater":
        return np.isin(labels, labels.max())
    if rule == "quarter":
        return np.isin(labels, quarter_of_classes(labels, name))
    return np.isin(labels, rule)


def quarter_of_classes(labels: NDArray[np.int64], name: str) -> list[int]:
    """Pick a random group of classes that together hold at most a quarter of the rows.

    The classes are sorted by a hash of `name` and label, so their order is the same on every
    machine; going through them, each class that still fits joins the group.

    Examples
    --------
    >>> quarter_of_classes(np.arange(8), "news20")
    [5, 6]
    """
    classes, counts = np.unique(labels, return_counts=True)
    sizes = dict(zip(classes.tolist(), counts.tolist(), strict=True))
    room, chosen = len(labels) // 4, []
    for label in sorted(sizes, key=lambda label: _draw(name, label)):
        if sizes[label] <= room:
            room -= sizes[label]
            chosen.append(label)
    return sorted(chosen)


def _draw(name: str, label: int) -> bytes:
    return hashlib.sha256(f"{name} {label}".encode()).digest()
