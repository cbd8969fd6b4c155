"""Rows from the highest score down: what is among the first of them, what thresholds do.

Rows of one score have no order among themselves. Whatever is said of the first so many rows is the
mean over all orders of such rows, which is what picking among them at random gives on average.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

SHARES = tuple(Fraction(per_mille, 1000) for per_mille in (1, 10, 50, 100))
_Z = 1.96  # deviations: 95% of a Gaussian


class Top(NamedTuple):
    """The rows of highest score.

    Attributes
    ----------
    name : str
        What was asked for: a share, or a number of rows.
    rows : int
        How many rows that are.
    positives : float
        How many of them are positive; the mean over all orders of rows of one score.
    precision : float
        The share of positives among them.
    recall : float
        The share of all positives that are among them.
    lift : float
        `precision` divided by the share of positives among all rows.
    """

    name: str
    rows: int
    positives: float
    precision: float
    recall: float
    lift: float


class Part(NamedTuple):
    """Rows between two places of the ranking, such as a tenth of all.

    Attributes
    ----------
    first, last : int
        The places of its first and its last row, from 1.
    positives : float
        How many of its rows are positive; the mean over all orders of rows of one score.
    share : float
        The share of positives in it.
    lift : float
        `share` divided by that among all rows.
    recall : float
        The share of all positives that are in it or before it.
    probability : float
        The mean of the probabilities that its rows were given.
    """

    first: int
    last: int
    positives: float
    share: float
    lift: float
    recall: float
    probability: float

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.last - self.first + 1

    def interval(self) -> tuple[float, float]:
        """Return Wilson's 95% confidence interval of the share of positives.

        Returns
        -------
        tuple of float
            The lower and the upper end.

        Examples
        --------
        >>> low, high = Part(1, 10, 1.0, 0.1, 1.0, 1.0, 0.1).interval()
        >>> round(low, 3), round(high, 3)
        (0.018, 0.404)
        """
        n, share = self.rows, self.share
        middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        reach = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
        return max(0.0, middle - reach), min(1.0, middle + reach)


class Decision(NamedTuple):
    """What a threshold on the score decides.

    Attributes
    ----------
    threshold : float
        Rows whose score is at least this are called positive, or, of the model's own threshold, above
        it; ``inf`` calls none.
    rows : int
        How many rows are called positive.
    precision : float
        The share of positives among them; nan if there are none.
    accuracy : float
        Share of all rows called right.
    fpr, tpr : float
        Shares of the negatives and of the positives that are called positive; `tpr` is the recall.
    """

    threshold: float
    rows: int
    precision: float
    accuracy: float
    fpr: float
    tpr: float


@dataclass(frozen=True)
class Ranked:
    """Labelled rows by their scores, from the highest down.

    Attributes
    ----------
    scores : ndarray of shape (n_scores,)
        The distinct scores, the highest first.
    rows, positives, chances : ndarray of shape (n_scores + 1,)
        How many rows have one of the first k scores, how many of them are positive, and the sum of
        their probabilities; k from 0.

    Examples
    --------
    >>> import numpy as np
    >>> y, scores = np.array([1, 0, 1, 0, 0]), np.array([3.0, 2.0, 2.0, 1.0, 0.0])
    >>> ranked = Ranked.of(y, scores, np.full(5, 0.4))
    >>> ranked.rows.tolist(), ranked.positives.tolist()
    ([0, 1, 3, 4, 5], [0, 1, 2, 2, 2])

    Of the first two rows one has the score 2, as likely the positive as the negative one:

    >>> ranked.top(2).positives, ranked.top(Fraction(3, 5)).recall
    (1.5, 1.0)
    """

    scores: NDArray[np.float64]
    rows: NDArray[np.int64]
    positives: NDArray[np.int64]
    chances: NDArray[np.float64]

    @classmethod
    def of(
        cls, y: NDArray[np.int8], scores: NDArray[np.float64], probabilities: NDArray[np.float64]
    ) -> Self:
        """Rank rows.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Labels, 1 for positive and 0 for negative; there are both.
        scores, probabilities : ndarray of shape (n_samples,)
            Their scores, finite, and the probabilities that they are positive.

        Returns
        -------
        Ranked
            The rows of each score, counted.
        """
        order = np.argsort(-scores, kind="stable")
        ordered = scores[order]
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
        counts = np.concatenate([[0], ends + 1])
        return cls(
            scores=ordered[ends],
            rows=counts,
            positives=np.concatenate([[0], np.cumsum(y[order], dtype=np.int64)])[counts],
            chances=np.concatenate([[0.0], np.cumsum(probabilities[order])])[counts],
        )

    @property
    def share(self) -> float:
        """The share of positives among all rows."""
        return float(self.positives[-1] / self.rows[-1])

    def average_precision(self) -> float:
        """Return the mean, over the positives, of the precision at the score of each.

        Returns
        -------
        float
            The average precision: the area under the steps of the precision-recall curve.
        """
        gained = np.diff(self.positives)
        return float((gained * self.positives[1:] / self.rows[1:]).sum() / self.positives[-1])

    # Places --------------------------------------------------------------------------------------

    def top(self, asked: int | Fraction) -> Top:
        """Look at the rows of highest score.

        Parameters
        ----------
        asked : int or Fraction
            How many rows, all at most; or which share of them, one row at least.

        Returns
        -------
        Top
            What is among them.
        """
        if isinstance(asked, Fraction):
            name, rows = f"{float(100 * asked):g}%", max(1, self._place(asked))
        else:
            name, rows = f"{asked:,} rows", min(asked, int(self.rows[-1]))
        positives = float(self._among(rows, self.positives))
        precision = positives / rows
        recall = positives / self.positives[-1]
        return Top(name, rows, positives, precision, float(recall), precision / self.share)

    def tops(self, also: Sequence[int | Fraction] = ()) -> list[Top]:
        """Look at the usual shares of the ranking, those of less than one row left out.

        Parameters
        ----------
        also : sequence of int or Fraction, default=()
            What else to look at, as `top` takes it.

        Returns
        -------
        list of Top
            From the fewest rows to the most.
        """
        usual = [share for share in SHARES if share * int(self.rows[-1]) >= 1]
        return sorted(map(self.top, dict.fromkeys([*usual, *also])), key=lambda top: top.rows)

    def parts(self, shares: Sequence[Fraction]) -> list[Part]:
        """Divide the ranking at shares of it.

        Parameters
        ----------
        shares : sequence of Fraction
            Where parts end, in ascending order; the last is 1.

        Returns
        -------
        list of Part
            The parts that have rows, highest scores first.
        """
        ends = np.unique([0, *map(self._place, shares)])
        positives, chances = (
            self._among(ends, counts) for counts in (self.positives, self.chances)
        )
        rows = np.diff(ends)
        share = np.diff(positives) / rows
        columns = (ends[:-1] + 1, ends[1:], np.diff(positives), share, share / self.share,
                   positives[1:] / self.positives[-1], np.diff(chances).clip(0) / rows)  # fmt: skip
        return [Part(*part) for part in zip(*(column.tolist() for column in columns), strict=True)]

    def _place(self, share: Fraction) -> int:
        """Return how many rows a share is, to the nearest; a half counts as one."""
        return int(share * int(self.rows[-1]) + Fraction(1, 2))

    def _among(self, places: Any, counts: NDArray[Any]) -> Any:
        """Return what is counted among the first rows: of a score's rows each as likely as another."""
        return np.interp(places, self.rows, counts)

    # Thresholds ----------------------------------------------------------------------------------

    def above(self, threshold: float) -> Decision:
        """Call rows positive whose score is above a threshold."""
        return self._decision(int((self.scores > threshold).sum()), threshold)

    def from_on(self, threshold: float) -> Decision:
        """Call rows positive whose score is at least a threshold."""
        return self._decision(int((self.scores >= threshold).sum()), threshold)

    def at_precision(self, precision: float) -> Decision | None:
        """Find the threshold of the highest recall among those of at least some precision.

        Parameters
        ----------
        precision : float
            Above 0, at most 1.

        Returns
        -------
        Decision or None
            What it decides; None if no threshold has such a precision.
        """
        reached = np.flatnonzero(self._precisions() >= precision)
        if not len(reached):
            return None
        best = reached[self.positives[1:][reached] == self.positives[1:][reached].max()][0]
        return self._decision(int(best) + 1, float(self.scores[best]))

    def at_recall(self, recall: float) -> Decision:
        """Find the threshold of the highest precision among those of at least some recall.

        Parameters
        ----------
        recall : float
            Above 0, at most 1.

        Returns
        -------
        Decision
            What it decides; of several such thresholds the lowest, which finds most.
        """
        reached = np.flatnonzero(self.positives[1:] / self.positives[-1] >= recall)
        precisions = self._precisions()[reached]
        best = reached[precisions == precisions.max()][-1]
        return self._decision(int(best) + 1, float(self.scores[best]))

    def written(self, threshold: float) -> str:
        """Write a threshold in six digits, or in as many more as it takes to call the same rows positive.

        Parameters
        ----------
        threshold : float
            Rows whose score is at least this are called positive.

        Returns
        -------
        str
            A number.
        """
        below = self.scores[self.scores < threshold].max(initial=-np.inf)
        texts = (f"{threshold:.{digits}g}" for digits in range(6, 18))
        return next(text for text in texts if below < float(text) <= threshold)

    def most_precise(self) -> float:
        """Return the highest precision that a threshold has."""
        return float(self._precisions().max())

    def _precisions(self) -> NDArray[np.float64]:
        precisions: NDArray[np.float64] = self.positives[1:] / self.rows[1:]
        return precisions

    def _decision(self, first: int, threshold: float) -> Decision:
        """Call the rows of the first scores positive."""
        rows, found = int(self.rows[first]), int(self.positives[first])
        total, positives = int(self.rows[-1]), int(self.positives[-1])
        return Decision(
            threshold=threshold,
            rows=rows,
            precision=found / rows if rows else float("nan"),
            accuracy=(found + total - positives - (rows - found)) / total,
            fpr=(rows - found) / (total - positives),
            tpr=found / positives,
        )
