"""The learners with C "auto" and what is served of them.

They share rows and buffers and differ in C and in what they forget. None is ever dropped. Each has two
*readouts*, the mean of its weights and their polynomial-decay average. What is served is a mixture of
all readouts, each in units of its own class distance: the better its AUC on rows that it had not
learned from (``record``), the more it weighs. With a number for C there is one learner.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

# What the last learner forgets per row of a stream: streams that change want 0.001 to 0.01
# (docs/_drift_table.md), and the mixture with one that forgets nothing is best, or nearly, with the least.
FORGETS = 0.001
# Difference of two AUCs that makes one readout weigh e times the other. Between 0.005 and 0.02 nothing
# changes by more than chance (docs/defaults.md).
_TEMPERATURE = 0.01


class Learner(NamedTuple):
    """One of the learners of a pool."""

    C: float
    forgetting: float = 0.0  # share of the evidence that it forgets per row
    line: bool = False  # whether columns of a table are straight lines to it: no curves


# The learners, the last only where rows come in their order (docs/defaults.md). A small and a large C in the
# mixture do what one between them would on most data, and better where that is wrong. One that forgets has a C
# between: with one variance a feature a large one makes variances so small, with every wrong pair, that the mean
# can no more be moved in the time of its memory.
OF_LINES = Learner(2.0**-11), Learner(2.0**-3), Learner(2.0**-8, FORGETS)
OF_LINES_DIAGONAL = (
    Learner(2.0**-12),
    Learner(2.0**-5),
    Learner(2.0),
    Learner(2.0**-12, FORGETS),
)
# Of a table. Beside curves a straight line, which costs little: it is ahead where rows are few or noisy.
OF_CURVES = (
    Learner(2.0**-11),
    Learner(2.0**-6),
    Learner(2.0**-6, line=True),
    Learner(2.0**-8, FORGETS),
)
OF_CURVES_DIAGONAL = Learner(2.0**-8), Learner(2.0**-4), Learner(2.0**-8, FORGETS)

# Of the leaves of trees: weights that begin with what the trees say want to move little.
OF_LEAVES = Learner(2.0**-14), Learner(2.0**-9)

# Of columns of many categories, each category with a weight of its own.
OF_IDS = Learner(2.0**-12), Learner(2.0**-8)


def mixture(evidence: Floats, readouts: Sequence[int]) -> Floats:
    """Return the weights (learners, readouts) of readouts with these AUCs; of others than `readouts` 0."""
    mix = np.zeros(evidence.shape)
    served = [*readouts]
    known = evidence[:, served]
    weights = np.exp((known - known.max()) / _TEMPERATURE)
    mix[:, served] = weights / weights.sum()
    return mix


def leader(mix: Floats) -> int:
    """Return the place of the learner that leads: one of its readouts weighs most."""
    return int(mix.max(axis=1).argmax())
