"""How well scored rows are ranked, and how good their probabilities are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank.inspection.groups import Group, Grouping
from cbrank.inspection.ranked import SHARES, Decision, Part, Ranked, Top
from cbrank.metrics import AUCInterval, auc_interval, optimal_operating_point

_DECILES = [Fraction(at, 10) for at in range(1, 11)]


@dataclass(frozen=True)
class Calibration:
    """How good probabilities are.

    Attributes
    ----------
    log_loss : float
        The mean of ``-log(p)`` of the positives and of ``-log(1 - p)`` of the negatives.
    base : float
        The log loss of giving each row the share of positives among all.
    error : float
        The expected calibration error: the mean over all rows of the distance, in the decile of the
        row, between the share of positives and the mean probability.
    mean : float
        The mean probability.
    parts : list of Part
        The deciles, the first divided at the shares that are looked at too: what the picture shows.
    """

    log_loss: float
    base: float
    error: float
    mean: float
    parts: list[Part]


@dataclass(frozen=True)
class Wanted:
    """A precision or a recall that was asked for, and the threshold that reaches it.

    Attributes
    ----------
    measure : {"precision", "recall"}
        Which of the two.
    value : float
        What was asked for.
    found : Decision or None
        The threshold that reaches it with the most of the other; None if there is none.
    """

    measure: str
    value: float
    found: Decision | None


@dataclass(frozen=True)
class Evaluation:
    """Measures of scored rows.

    Attributes
    ----------
    rows, positives : int
        How many there are.
    auc : AUCInterval
        The AUC with its 95% confidence interval.
    average_precision : float
        The average precision; that of a random order is the share of positives.
    calibration : Calibration
        How good the probabilities are.
    tops : list of Top
        What is among the rows of highest score.
    deciles : list of Part
        Tenths of the ranking; fewer of fewer than ten rows.
    own, best : Decision
        At the model's threshold, and at the optimal operating point of these very rows.
    wanted : list of Wanted
        The thresholds that were asked for.
    most_precise : float
        The highest precision that a threshold has.
    column : str or None
        The column whose values make the groups.
    groups : list of Group
        How well rows are ranked within each.
    ranked : Ranked
        The rows of each score, counted.
    """

    rows: int
    positives: int
    auc: AUCInterval
    average_precision: float
    calibration: Calibration
    tops: list[Top]
    deciles: list[Part]
    own: Decision
    best: Decision
    wanted: list[Wanted]
    most_precise: float
    column: str | None
    groups: list[Group]
    ranked: Ranked

    @property
    def share(self) -> float:
        """The share of positives."""
        return self.positives / self.rows

    def interval(self) -> str:
        """Say between what the AUC lies."""
        if math.isnan(self.auc.low):
            return "no interval from one row of a class"
        return f"95% interval {self.auc.low:.4f} to {self.auc.high:.4f}"

    def facts(self) -> dict[str, Any]:
        """Return all measures by their names, for machines.

        Returns
        -------
        dict
            Numbers, and lists and dicts of them.
        """
        facts: dict[str, Any] = {
            "rows": self.rows,
            "positives": self.positives,
            "share": self.share,
            **_interval(self.auc),
            "average_precision": self.average_precision,
            "log_loss": self.calibration.log_loss,
            "log_loss_of_share": self.calibration.base,
            "calibration_error": self.calibration.error,
            "mean_probability": self.calibration.mean,
            "at_model_threshold": self.own._asdict(),
            "at_best_threshold": self.best._asdict(),
            "tops": [_top(top) for top in self.tops],
            "deciles": [_part(part) for part in self.deciles],
            "calibration": [
                _part(part) | dict(zip(("low", "high"), part.interval(), strict=True))
                for part in self.calibration.parts
            ],
        }
        for measure in ("precision", "recall"):
            if asked := [wanted for wanted in self.wanted if wanted.measure == measure]:
                facts[f"at_{measure}"] = [
                    {"wanted": wanted.value} | (wanted.found or _NOTHING)._asdict()
                    for wanted in asked
                ]
        if self.column is not None:
            facts["groups"] = {"column": self.column, "groups": [_group(g) for g in self.groups]}
        return facts


_NAN = float("nan")
_NOTHING = Decision(threshold=_NAN, rows=0, precision=_NAN, accuracy=_NAN, fpr=_NAN, tpr=_NAN)


def evaluate(
    y: NDArray[np.int8],
    scores: NDArray[np.float64],
    probabilities: NDArray[np.float64],
    *,
    threshold: float = 0.0,
    at: Sequence[int | Fraction] = (),
    precisions: Sequence[float] = (),
    recalls: Sequence[float] = (),
    by: Grouping | None = None,
) -> Evaluation:
    """Measure scored rows.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels, 1 for positive and 0 for negative; there are both.
    scores : ndarray of shape (n_samples,)
        Their scores.
    probabilities : ndarray of shape (n_samples,)
        The probabilities that they are positive.
    threshold : float, default=0
        Scores above it are called positive by the model.
    at : sequence of int or Fraction, default=()
        How many of the first rows to look at, or which share of all, beside the usual shares.
    precisions, recalls : sequence of float, default=()
        What thresholds are to reach.
    by : Grouping, default=None
        Which row is in which group.

    Returns
    -------
    Evaluation
        The measures.

    Examples
    --------
    >>> import numpy as np
    >>> y, scores = np.array([0, 0, 1, 0, 1, 1]), np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    >>> found = evaluate(y, scores, scores, threshold=0.1, at=[2], precisions=[0.7])
    >>> round(found.auc.auc, 3), round(found.own.accuracy, 3), round(found.best.accuracy, 3)
    (0.889, 0.667, 0.833)
    >>> found.tops[-1].name, found.tops[-1].precision, round(found.tops[-1].recall, 3)
    ('2 rows', 1.0, 0.667)
    >>> found.wanted[0].found.threshold, found.wanted[0].found.tpr
    (0.3, 1.0)
    """
    # Both sort for themselves: before there is much else in memory.
    auc = auc_interval(y, scores, pos_label=1)
    best = optimal_operating_point(y, scores, pos_label=1).threshold
    ranked = Ranked.of(y, scores, probabilities)
    asked = [Wanted("precision", value, ranked.at_precision(value)) for value in precisions]
    asked += [Wanted("recall", value, ranked.at_recall(value)) for value in recalls]
    deciles = ranked.parts(_DECILES)
    return Evaluation(
        rows=len(y),
        positives=int(y.sum()),
        auc=auc,
        average_precision=ranked.average_precision(),
        calibration=_calibration(y, probabilities, ranked, deciles),
        tops=ranked.tops(at),
        deciles=deciles,
        own=ranked.above(threshold),
        best=ranked.from_on(best),
        wanted=asked,
        most_precise=ranked.most_precise(),
        column=by.column if by else None,
        groups=by.groups(y, scores) if by else [],
        ranked=ranked,
    )


def _calibration(
    y: NDArray[np.int8], probabilities: NDArray[np.float64], ranked: Ranked, deciles: list[Part]
) -> Calibration:
    share = ranked.share
    given = np.where(y == 1, probabilities, 1.0 - probabilities)
    # A probability of 0 for what happens would cost infinitely much; scikit-learn clips here as well.
    losses = -np.log(np.maximum(given, np.finfo(np.float64).eps))
    distances = [part.rows * abs(part.share - part.probability) for part in deciles]
    return Calibration(
        log_loss=float(losses.mean()),
        base=-share * math.log(share) - (1 - share) * math.log(1 - share),
        error=math.fsum(distances) / len(y),
        mean=float(probabilities.mean()),
        parts=ranked.parts(sorted({*SHARES, *_DECILES})),
    )


def _interval(auc: AUCInterval | None) -> dict[str, Any]:
    names = ("auc", "auc_low", "auc_high", "auc_std")
    return dict(zip(names, auc or [None] * len(names), strict=True))


def _top(top: Top) -> dict[str, Any]:
    facts = top._asdict()
    return {"top": facts.pop("name")} | facts


def _part(part: Part) -> dict[str, Any]:
    return {
        "rows": part.rows,
        "positives": part.positives,
        "share": part.share,
        "lift": part.lift,
        "cumulative_recall": part.recall,
        "mean_probability": part.probability,
    }


def _group(group: Group) -> dict[str, Any]:
    rest = group.values != 1
    named = {"group": None, "values": group.values or None} if rest else {"group": group.name}
    counts = {"rows": group.rows, "positives": group.positives}
    return named | counts | _interval(group.auc)
