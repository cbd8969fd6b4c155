"""States of rankers that version 0.1.0 wrote, made states of this version.

Those files have no record of how a ranker did, a threshold in place of an intercept, and counts of the
pairs ranked right, which this version does not keep.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cbrank.rankers import halving, record

if TYPE_CHECKING:
    from cbrank.rankers.state import Stateful

Arrays = dict[str, NDArray[Any]]
Facts = dict[str, Any]

_COUNTS = 3  # of a tally that this version keeps
# What parameters meant that the files do not name.
_MEANT = {"operating_point": "accuracy"}


def is_earlier(arrays: Arrays) -> bool:
    """Say whether these are the arrays of a ranker of version 0.1.0."""
    return not any(name.startswith("record.") for name in arrays)


def of_now(kind: "type[Stateful]", arrays: Arrays, facts: Facts) -> tuple[Arrays, Facts]:
    """Return arrays and facts as this version has them; what makes no sense is left to be refused."""
    new = {name: array for name, array in arrays.items() if not name.startswith("race.")}
    for name in ("model.tally", "rivals.tally"):
        if name in new and new[name].ndim:
            new[name] = new[name][..., :_COUNTS]
    first = kind(**facts["parameters"] | _MEANT | facts["began_with"])
    means, learners = first.takes_dense_rows(), first._record_shape()
    n_features, alive = facts["n_features"], learners[1]
    if "race.C" in arrays and "race.alive" in arrays:
        new |= _halving(arrays)
        alive = arrays["race.alive"].size
    if "buffer.rows" in arrays:
        new["buffer.means"] = _means(arrays, n_features if means else 0)
    begun = record.begin(_width(arrays, n_features), learners[0], alive, learners[2], means=means)
    new |= {f"record.{name}": array for name, array in begun._asdict().items()}
    threshold = facts["threshold"]
    known = type(threshold) is float and np.isfinite(threshold)
    intercept = -float(np.nextafter(threshold, -np.inf)) if known else None
    return new, facts | {"parameters": facts["parameters"] | _MEANT, "intercept": intercept}


def _width(arrays: Arrays, n_features: int) -> int:
    """Return the number of features, or 0 if no array is that long: it is refused for its shape."""
    longest = max((max(array.shape, default=0) for array in arrays.values()), default=0)
    return n_features if n_features <= longest else 0


def _halving(arrays: Arrays) -> Arrays:
    C = arrays["race.C"]
    return {
        "race.C": np.append(C, C[:1]) if C.ndim == 1 and C.size == halving.FORGETFUL else C,
        "race.forgetting": np.zeros(halving.FORGETFUL + 1),
        "race.alive": arrays["race.alive"],
    }


def _means(arrays: Arrays, n_features: int) -> NDArray[np.float64]:
    """Return the means of the buffered rows of each class."""
    means = np.zeros((2, n_features))
    rows, size = arrays["buffer.rows"], arrays.get("buffer.size")
    if (
        rows.ndim == 3
        and rows.shape[::2] == means.shape
        and size is not None
        and size.shape == (2,)
    ):
        for label in range(2):
            held = rows[label, : max(int(size[label]), 0)]
            if len(held):
                means[label] = (held / len(held)).sum(axis=0)
    return means
