"""How long a model keeps: how well rows are ranked by how much later than the last row learned they come."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

_ERRORS = 2.0  # standard errors of a difference that is told


class Age(NamedTuple):
    """How well rows of one age are ranked.

    Attributes
    ----------
    rows : float
        How many rows came between them and the last row learned, on the average.
    auc : float
        Their AUC.
    error : float
        Its standard error.
    """

    rows: float
    auc: float
    error: float


def ages_of(ranker: Any) -> list[Age]:
    """Measure how well a ranker ranks rows by their age, the youngest first; this takes seconds.

    Parameters
    ----------
    ranker : ranker
        One that has learned.

    Returns
    -------
    list of Age
        Empty if the rows were shuffled, were too few or are not kept: C is a number then.
    """
    if not ranker.learned_in_order():
        return []
    return [Age(*line) for line in ranker.auc_by_age_.tolist()]


def in_words(ages: Sequence[Age]) -> str | None:
    """Say that a model which is put away does not keep, if chance does not explain it.

    Parameters
    ----------
    ages : sequence of Age
        What `ages_of` returned.

    Returns
    -------
    str or None
        A sentence; None if the oldest rows are ranked as well as the youngest, or nobody can tell.

    Examples
    --------
    >>> in_words([Age(512, 0.85, 0.01), Age(9000, 0.71, 0.02)])
    'put away, this model will not keep: rows that come about 9,000 rows later are ranked with an AUC of 0.710 (standard error 0.020), those about 512 rows later with 0.850 (0.010)'
    >>> in_words([Age(512, 0.85, 0.03), Age(9000, 0.80, 0.03)]) is None
    True
    """
    if len(ages) < 2:
        return None
    young, old = ages[0], ages[-1]
    if young.auc - old.auc <= _ERRORS * math.hypot(young.error, old.error):
        return None
    return (
        f"put away, this model will not keep: rows that come about {old.rows:,.0f} rows later are ranked "
        f"with an AUC of {old.auc:.3f} (standard error {old.error:.3f}), those about "
        f"{young.rows:,.0f} rows later with {young.auc:.3f} ({young.error:.3f})"
    )


def as_facts(ages: Sequence[Age]) -> list[dict[str, float]]:
    """Return the ages for JSON.

    Examples
    --------
    >>> as_facts([Age(512, 0.85, 0.01)])
    [{'rows': 512, 'auc': 0.85, 'error': 0.01}]
    """
    return [age._asdict() for age in ages]
