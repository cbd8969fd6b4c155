"""States of rankers that version 0.1.0 wrote, made states of this version.

Those files have no record of how a ranker did, a threshold in place of an intercept, and counts of the
pairs ranked right, which this version does not keep.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.rankers import record

if TYPE_CHECKING:
    from cbrank.rankers.state import Stateful

Arrays = dict[str, NDArray[Any]]
Facts = dict[str, Any]

_COUNTS = 3  # of a tally that this version keeps
# What parameters meant that the files do not name.
_MEANT = {"operating_point": "accuracy"}
# Evidence of the learner that leads: far above that of the others, of no weight, so that the first
# block that is measured takes its place.
_LEADS = 1.0
_FARTHEST = 20.0  # distances of the classes that a buffered row may be off the midpoint


def with_window(arrays: Arrays) -> Arrays:
    """Return arrays of a buffer that tell when rows came, if they do not: as long ago as can be."""
    rows = arrays.get("buffer.rows", arrays.get("buffer.values"))
    if rows is None or rows.ndim < 2 or "buffer.came" in arrays:
        return arrays
    came, least = np.zeros(rows.shape[:2], np.int64), np.array([rows.shape[1]])
    return arrays | {"buffer.came": came, "buffer.least": least}


def is_earlier(arrays: Arrays) -> bool:
    """Say whether these are the arrays of a ranker of version 0.1.0."""
    return not any(name.startswith("record.") for name in arrays)


def of_now(kind: "type[Stateful]", arrays: Arrays, facts: Facts) -> tuple[Arrays, Facts]:
    """Return arrays and facts as this version has them; what makes no sense is left to be refused."""
    new = {name: array for name, array in arrays.items() if not name.startswith("race.")}
    for name in ("model.tally", "rivals.tally"):
        if name in new and new[name].ndim:
            new[name] = new[name][..., :_COUNTS]
    if "model.w" in new and kind.__name__ == "OAMRanker":  # which could not say that it diverged
        new["model.diverged"] = np.zeros(1, np.int64)
    first = kind(**facts["parameters"] | _MEANT | facts["began_with"])
    means, (learners, alive, readouts) = first.takes_dense_rows(), first._record_shape()
    n_features = _width(arrays, facts["n_features"])
    if "race.C" in arrays and "race.alive" in arrays:
        new |= _halving(arrays, learners)
        alive = arrays["race.alive"].size
    if "buffer.rows" in arrays:
        new["buffer.means"] = _means(arrays, n_features if means else 0)
    begun = record.begin(n_features, learners, alive, readouts, means=means)
    new |= {f"record.{name}": array for name, array in begun._asdict().items()}
    threshold = facts["threshold"]
    known = type(threshold) is float and np.isfinite(threshold)
    intercept = -float(np.nextafter(threshold, -np.inf)) if known else None
    return new, facts | {"parameters": facts["parameters"] | _MEANT, "intercept": intercept}


def take_up(ranker: "Stateful") -> None:
    """Begin the record of a ranker with what its buffered rows tell.

    Its leader is served alone until a block has been measured. Until then the curve to probabilities
    is that of two normal distributions of equal variance (a linear discriminant).
    """
    held, (labels, rows) = ranker._record, ranker.buffered_rows()
    held.evidence[ranker._numbers()[0]] = _LEADS
    counts = np.bincount(labels, minlength=2)
    if not counts.all():
        return
    with np.errstate(all="ignore"):
        for learner, readout, weights in ranker._readout_weights():
            scores = rows @ weights
            centre = np.array([scores[labels == label].mean() for label in range(2)])
            if np.isfinite(centre).all():
                held.centre[learner, readout, :2] = centre
                held.level[learner, readout] = np.abs(scores - centre.mean()).mean()
        weights, anchor = ranker._weights(), ranker._served_anchor()
        places = (ranker._scores(rows) - anchor.middle) / anchor.unit
    if not (np.abs(places) < _FARTHEST).all():
        return
    centre = np.array([places[labels == label].mean() for label in range(2)])
    variance = (((places - centre[labels]) ** 2).sum() + 1.0) / labels.size
    seen = ranker.n_seen_
    slope = max(centre[1] - centre[0], 0.0) / variance
    held.curve[:2] = np.log(seen[1] / seen[0]) - slope * centre.mean(), slope
    held.share[:] = seen / seen.sum() * labels.size
    held.learned[0], held.position[record.ROWS] = labels.size, seen.sum()
    held.held[:], held.origin[:] = weights, ranker._origin()


def _width(arrays: Arrays, n_features: int) -> int:
    """Return the number of features, or 0 if no array is that long: it is refused for its shape."""
    longest = max((max(array.shape, default=0) for array in arrays.values()), default=0)
    return n_features if n_features <= longest else 0


def _halving(arrays: Arrays, learners: int) -> Arrays:
    """Return where learners stand, with one more, which will forget."""
    C = arrays["race.C"]
    return {
        "race.C": np.append(C, C[:1]) if C.ndim == 1 and C.size == learners - 1 else C,
        "race.forgetting": np.zeros(learners),
        "race.reach": np.zeros(learners, np.int64),
        "race.alive": arrays["race.alive"],
    }


def _means(arrays: Arrays, n_features: int) -> NDArray[np.float64]:
    """Return the means of the buffered rows of each class."""
    means = kernels.buffers.empty_dense(1, 1, n_features, 1, means=True).means
    rows, size = arrays["buffer.rows"], arrays.get("buffer.size")
    if (
        rows.ndim == 3
        and rows.shape[::2] == (2, n_features)
        and size is not None
        and size.shape == (2,)
    ):
        for label in range(2):
            held = rows[label, : max(int(size[label]), 0)]
            if len(held):
                means[label] = (held / len(held)).sum(axis=0)
    return means
