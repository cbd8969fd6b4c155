"""How well rows are ranked within each group of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank.metrics import AUCInterval, auc_interval

MOST_SHOWN = 50
_MOST_VALUES = 100_000  # that are told apart, some ten megabytes; the code of all later ones


class Group(NamedTuple):
    """The rows of one value of a column, or of all values that are not shown.

    Attributes
    ----------
    name : str
        The value; empty for the rest.
    values : int
        1; for the rest how many it has, or 0 if not all of them were told apart.
    rows, positives : int
        How many there are.
    auc : AUCInterval or None
        The AUC within the group; None if its rows have one label only.
    """

    name: str
    values: int
    rows: int
    positives: int
    auc: AUCInterval | None


class Grouping:
    """Which row has which value of a column, four bytes a row.

    Values that come after the first 100,000 are not told apart.

    Parameters
    ----------
    column : str
        The column.

    Examples
    --------
    >>> import numpy as np
    >>> grouping = Grouping("city")
    >>> grouping.add(["Oslo", "Rome", "Oslo"])
    >>> grouping.add(["Oslo", "Bonn"])
    >>> y, scores = np.array([0, 1, 1, 0, 0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> for group in grouping.groups(y, scores):
    ...     print(group.name, group.rows, group.positives, group.auc and group.auc.auc)
    Oslo 3 1 0.5
    Bonn 1 0 None
    Rome 1 1 None
    """

    def __init__(self, column: str) -> None:
        self.column = column
        self._codes: dict[str, int] = {}
        self._rows: list[NDArray[np.int32]] = []

    def add(self, cells: Sequence[str]) -> None:
        """Take the cells of the next rows.

        Parameters
        ----------
        cells : sequence of str
            The values.
        """
        codes = self._codes
        for cell in dict.fromkeys(cells):
            if cell not in codes and len(codes) < _MOST_VALUES:
                codes[cell] = len(codes)
        self._rows.append(np.array([codes.get(cell, _MOST_VALUES) for cell in cells], np.int32))

    def groups(
        self, y: NDArray[np.int8], scores: NDArray[np.float64], most: int = MOST_SHOWN
    ) -> list[Group]:
        """Measure each group.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Labels of the rows added, 1 for positive and 0 for negative.
        scores : ndarray of shape (n_samples,)
            Their scores.
        most : int, default=50
            How many values have a group of their own; the rows of all others, if there are two or
            more, are one group.

        Returns
        -------
        list of Group
            Those of most rows first, the rest last.
        """
        codes = np.concatenate([np.zeros(0, np.int32), *self._rows])
        names = list(self._codes)
        counts = np.bincount(codes, minlength=len(names))
        by_rows = sorted(range(len(names)), key=lambda code: (-counts[code], names[code]))
        shown = by_rows[: most + 1] if len(names) == most + 1 else by_rows[:most]
        place = np.full(max(len(counts), len(names)), len(shown))
        place[shown] = np.arange(len(shown))
        order = np.argsort(place[codes], kind="stable")
        ends = np.cumsum(np.bincount(place[codes], minlength=len(shown) + 1))
        found = []
        for at, rows in enumerate(np.split(order, ends[:-1])):
            if at < len(shown):
                found.append(_group(names[shown[at]], 1, y[rows], scores[rows]))
            elif len(rows):
                told_apart = _MOST_VALUES not in codes[rows]
                values = len(names) - len(shown) if told_apart else 0
                found.append(_group("", values, y[rows], scores[rows]))
        return found


def _group(name: str, values: int, y: NDArray[np.int8], scores: NDArray[np.float64]) -> Group:
    positives = int(y.sum())
    auc = auc_interval(y, scores, pos_label=1) if 0 < positives < len(y) else None
    return Group(name, values, len(y), positives, auc)
