"""Feature selection: which weights are served where at most so many may differ from zero.

The strongest weights of the mixture are served, by one of three rules. Learners keep a *working set* of more
features, so that one which was cut too early can come back; at the end of each block all others
return to the prior. ``slots`` keeps the numbers of these features only.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

# Size of the working set, as a multiple of the features served, and at the least: of two the larger. Without the
# second, columns that matter are cut before they are known where very many others are as frequent
# (docs/_selection_table.md).
RESERVE, FLOOR = 8, 4096


class Selection(NamedTuple):
    """How many weights are served at the most, and by which rule they are chosen."""

    most: int
    rule: str

    def strengths(self, weights: Floats, precisions: Floats) -> Floats:
        """Return by how much each feature is wanted; 0 for one whose weight is 0."""
        if self.rule == "weight":
            return np.abs(weights)
        if self.rule == "confidence":
            return np.where(weights != 0.0, precisions, 0.0)
        return np.abs(weights) * np.sqrt(precisions)

    def cut(self, weights: Floats, precisions: Floats) -> Floats:
        """Return the weights of the strongest features, and 0 for all others."""
        if np.count_nonzero(weights) <= self.most:
            return weights
        kept, cut = (
            strongest(self.strengths(weights, precisions), self.most),
            np.zeros_like(weights),
        )
        cut[kept] = weights[kept]
        return cut


def strongest(strengths: Floats, count: int) -> Places:
    """Return the places of the largest numbers, in ascending order; of equal ones the first."""
    if count >= strengths.size:
        return np.arange(strengths.size)
    least = np.partition(strengths, -count)[-count]
    above, equal = np.flatnonzero(strengths > least), np.flatnonzero(strengths == least)
    return np.sort(np.concatenate([above, equal[: count - above.size]]))


def have_learned(models: Sequence[Any]) -> NDArray[np.bool_]:
    """Say of each feature whether any learner knows more of it than its prior."""
    moved = [(model.mu != 0.0) | (model.lag != 0.0) | (model.variances != 1.0) for model in models]
    found: NDArray[np.bool_] = np.logical_or.reduce(moved)
    return found
