"""The rows and the evidence of a ranker that takes tables, in files: checks of what comes from elsewhere."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank.features.crosses import Evidence
from cbrank.features.table import Table as Rows

Arrays = dict[str, NDArray[Any]]

FIRST = 256  # rows of a stream that wait until it is decided what columns are
MOST_AHEAD = 2**20  # features that an encoder in a file may have got since the last block


class Waiting(NamedTuple):
    """Rows that have come and not been learned from, because it is not known what columns are."""

    rows: Rows
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]


def apart(arrays: Arrays) -> tuple[Arrays, dict[str, Arrays]]:
    """Return the arrays of CBR, and those of what an additive ranker has beside them."""
    parts: dict[str, Arrays] = {"encoder": {}, "rows": {}, "waiting": {}, "evidence": {}}
    own: Arrays = {}
    for name, array in arrays.items():
        part, _, rest = name.partition(".")
        parts.get(part, own)[rest if part in parts else name] = array
    return own, parts


def evidence_of(arrays: Arrays, columns: int) -> Evidence | None:
    """Return saved evidence; refuse what makes none."""
    if not arrays:
        return None
    if arrays.keys() != {*Evidence._fields}:
        raise ValueError("its evidence for crosses is not whole")
    evidence = Evidence(**arrays)
    cells = evidence.owners.size
    sound = (
        evidence.columns.dtype == evidence.owners.dtype == np.int64
        and evidence.columns.ndim == evidence.owners.ndim == 1
        and np.isin(evidence.columns, np.arange(columns)).all()
        and (np.diff(evidence.columns) > 0).all()
        and np.isin(evidence.owners, evidence.columns).all()
        and (np.diff(evidence.owners) >= 0).all()
        and all(
            array.shape == (cells, cells) and array.dtype == np.float64 and np.isfinite(array).all()
            for array in evidence[2:]
        )
        and (evidence.variances >= 0.0).all()
    )
    if not sound:
        raise ValueError("its evidence for crosses makes no sense")
    return evidence


def waiting_of(arrays: Arrays, rows: Rows | None, names: list[str]) -> Waiting:
    """Return saved rows that wait, with their labels; refuse what makes none."""
    if rows is None:
        rows = Rows(names, [np.zeros(0)] * len(names))
    labels, weights = (arrays.get(name, np.zeros(0)) for name in ("labels", "weights"))
    if not (
        labels.shape == weights.shape == (len(rows),)
        and labels.dtype == np.int64
        and weights.dtype == np.float64
        and len(rows) < FIRST
        and np.isin(labels, [0, 1]).all()
        and np.isfinite(weights).all()
        and (weights > 0.0).all()
    ):
        raise ValueError("the rows that wait have no sound labels")
    return Waiting(rows, labels, weights)
