"""The order in which a run met the two labels, and whether the last rows ranked worse than the rest."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

# How unlikely an order must be among rows that were mixed well before anything is said of it: many files
# are learned from, and one false alarm in a thousand would be too many.
_CHANCE = 1e-6
_DEVIATIONS = 5.0  # of a normal variable, which is about that chance
# The AUC of the row number as a score, or of its negative, from which on it all but decides the label. A
# share of positives that rises steadily from none to all gives 0.83; the rarest class of covtype, 0.89.
_NEARLY = 0.95

_RECENT_ROWS = 1000  # that `recent_auc_` is about
_NORMAL_95 = 1.96  # standard errors to each side of an interval of 95%
_ERRORS = 3.0  # standard errors, and the least difference that is worth a sentence
_LEAST_FALL = 0.02


@dataclass
class LabelOrder:
    """How the labels followed each other: counts alone, so that a run can stop and go on.

    Parameters
    ----------
    negatives, positives : int
        The rows of each label.
    negative_blocks, positive_blocks : int
        The blocks that they come in: rows of one label with none of the other between them.
    positive_first : int
        The pairs of a positive and a negative row in which the positive one came first.
    last : int
        The label of the last row; -1 before the first.

    Examples
    --------
    >>> order = LabelOrder()
    >>> order.add(np.repeat([1, 0], [151, 3012]))
    >>> order.in_words()
    'all 151 positive rows come before row 152, the first negative one'
    >>> order.add(np.tile([1, 0, 0, 1], 500))
    >>> order.in_words() is None
    True
    """

    negatives: int = 0
    positives: int = 0
    negative_blocks: int = 0
    positive_blocks: int = 0
    positive_first: int = 0
    last: int = -1

    def add(self, y: NDArray[np.int64]) -> None:
        """Count rows in.

        Parameters
        ----------
        y : ndarray of int64
            Their labels, 0 or 1, in order.
        """
        if not len(y):
            return
        begins = np.diff(y, prepend=self.last) != 0
        positive = int(y.sum())
        before = self.positives + np.cumsum(y)
        self.positive_first += int(before[y == 0].sum())
        self.positives += positive
        self.negatives += len(y) - positive
        self.positive_blocks += int((begins & (y == 1)).sum())
        self.negative_blocks += int((begins & (y == 0)).sum())
        self.last = int(y[-1])

    def in_words(self, files: int = 1) -> str | None:
        """Say in which way the rows are sorted by label, if they are.

        They are if all rows of one label come in a single block (in several files: in as many
        blocks as there are files), or if the row number all but decides the label; and only if
        there are so many rows that chance does not do that. Labels that come in runs, as in many
        streams in time, are in more blocks.

        Parameters
        ----------
        files : int, default=1
            The files that the rows came from.

        Returns
        -------
        str or None
            What was seen; None if the rows are not sorted.
        """
        if not (self.positives and self.negatives):
            return None
        blocks = min(self.positive_blocks, self.negative_blocks)
        if blocks <= files and self._chance() < _CHANCE:
            return self._blocks_in_words(blocks)
        share = self.positive_first / (self.positives * self.negatives)
        if max(share, 1 - share) >= _NEARLY and abs(share - 0.5) >= _DEVIATIONS * self._deviation():
            first = "positive" if share > 0.5 else "negative"
            return (
                f"of a positive and a negative row, the {first} one comes first in "
                f"{max(share, 1 - share):.1%} of all pairs"
            )
        return None

    def _blocks_in_words(self, blocks: int) -> str:
        if self.positive_blocks == self.negative_blocks == 1:
            first, later = ("negative", "positive") if self.last else ("positive", "negative")
            count = self.negatives if self.last else self.positives
            return (
                f"all {count:,} {first} rows come before row {count + 1:,}, the first {later} one"
            )
        label, count = "positive", self.positives
        if self.negative_blocks < self.positive_blocks:
            label, count = "negative", self.negatives
        where = "one block" if blocks == 1 else f"{blocks:,} blocks"
        return f"all {count:,} {label} rows stand in {where}, with no other rows between them"

    def _chance(self) -> float:
        """Return the probability of so few blocks of one of the labels in rows that are mixed well."""
        from scipy.stats import hypergeom  # noqa: PLC0415 (it takes long to import)

        rows = self.positives + self.negatives
        return max(
            float(hypergeom.cdf(blocks, rows, others + 1, count))
            for blocks, count, others in (
                (self.positive_blocks, self.positives, self.negatives),
                (self.negative_blocks, self.negatives, self.positives),
            )
        )

    def _deviation(self) -> float:
        """Return the standard deviation of Mann and Whitney's statistic, as a share of the pairs."""
        rows, pairs = self.positives + self.negatives, self.positives * self.negatives
        return math.sqrt((rows + 1) / (12 * pairs))

    def to_json(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Self:
        """Take the counts from what `to_json` gave; anything else is a ValueError."""
        if facts.keys() != {field.name for field in fields(cls)}:
            raise ValueError("its order of labels makes no sense")
        if not all(type(count) is int and -1 <= count < 2**126 for count in facts.values()):
            raise ValueError("its order of labels makes no sense")
        order = cls(**facts)
        sound = (
            0 <= order.positive_blocks <= order.positives < 2**63
            and 0 <= order.negative_blocks <= order.negatives < 2**63
            and 0 <= order.positive_first <= order.positives * order.negatives
            and order.last <= 1
        )
        if not sound:
            raise ValueError("its order of labels makes no sense")
        return order


def fall_in_words(ranker: Any) -> str | None:
    """Say that the last rows were ranked worse than the rows so far, if chance does not explain it.

    Parameters
    ----------
    ranker : ranker
        A fitted ranker with ``progressive_auc_``, ``recent_auc_``, the intervals of both, and
        ``n_seen_``.

    Returns
    -------
    str or None
        Both AUCs; None if they do not part, or nobody can tell.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> ranker = SimpleNamespace(
    ...     progressive_auc_=0.83, progressive_auc_interval_=(0.82, 0.84),
    ...     recent_auc_=0.63, recent_auc_interval_=(0.60, 0.66), n_seen_=np.array([26000, 19000]),
    ... )
    >>> fall_in_words(ranker)
    'the last 1,000 rows or so were ranked with an AUC of 0.630, all rows with 0.830'
    >>> ranker.n_seen_ = np.array([260, 190])
    >>> fall_in_words(ranker) is None
    True
    """
    overall, recent = ranker.progressive_auc_, ranker.recent_auc_
    intervals = ranker.progressive_auc_interval_, ranker.recent_auc_interval_
    error = math.hypot(*((high - low) / (2 * _NORMAL_95) for low, high in intervals))
    fell = overall - recent >= max(_LEAST_FALL, _ERRORS * error)  # false where one is not known
    if not fell or math.isnan(error) or ranker.n_seen_.sum() < 2 * _RECENT_ROWS:
        return None
    return (
        f"the last {_RECENT_ROWS:,} rows or so were ranked with an AUC of {recent:.3f}, all rows "
        f"with {overall:.3f}"
    )
