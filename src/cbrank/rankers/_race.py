"""C chosen within the pass: learners that share rows and buffers and differ in C."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.rankers._unbroken import assign, unbroken

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

FIRST_CUT = 512  # rows before learners leave
FEWEST_RARE = 16  # of them of the rarer class
_EXPONENTS = np.arange(-12, 5, 2)
_LIKELIEST = -4.0  # exponent: the nearest to it is ahead where learners are level


class Race(NamedTuple):
    """Where the learners stand."""

    C: Floats  # (g,) every C that set out
    tally: Places  # (g, 4) of each learner when it last learned
    alive: Places  # places in C of the learners left, the leader's first


def begin(model: Any) -> tuple[Any, Race]:
    """Return rivals like `model`, stacked, and the race before its first row."""
    C = np.exp2(_EXPONENTS, dtype=np.float64)
    race = Race(C, np.zeros((len(C), 4), np.int64), np.arange(len(C)))
    return rivals_like(model, len(C) - 1), race._replace(alive=standings(race))


def most_models() -> int:
    """Return how many models there are at most: all, and the half that goes on."""
    return len(_EXPONENTS) + len(_EXPONENTS) // 2


def rivals_like(model: Any, count: int) -> Any:
    """Return `count` models like `model`, stacked along a new first axis of its arrays."""
    return type(model)(*(np.repeat(array[None], count, axis=0) for array in model))


def rival(rivals: Any, place: int) -> Any:
    """Return one of the stacked models; what is learned into it is learned into the stack."""
    return type(rivals)(*(array[place] for array in rivals))


def until_cut(labels: Places, seen: Places, race: Race) -> int:
    """Return after how many of the rows to come learners have to leave, or how many there are."""
    rows, rare = _wanted(race)
    if race.alive.size == 1 or sum(seen.tolist()) + labels.size < rows:
        return labels.size
    positive = np.cumsum(labels)
    negative = np.arange(1, labels.size + 1) - positive
    enough = np.minimum(seen[0] + negative, seen[1] + positive) >= rare
    due = enough & (seen.sum() + np.arange(1, labels.size + 1) >= rows)
    return int(due.argmax()) + 1 if due.any() else labels.size


def is_due(seen: Places, race: Race) -> bool:
    """Say whether learners have to leave now."""
    rows, rare = _wanted(race)
    counts = seen.tolist()
    return race.alive.size > 1 and sum(counts) >= rows and min(counts) >= rare


def _wanted(race: Race) -> tuple[int, int]:
    """Return how many rows, and of the rarer class, there must be before learners leave."""
    left, doubled = len(race.C), 1
    while left > race.alive.size:
        left, doubled = (left + 1) // 2, 2 * doubled
    return doubled * FIRST_CUT, doubled * FEWEST_RARE


def standings(race: Race) -> Places:
    """Return the places in C of the learners left, the best progressive AUC first."""
    auc = np.nan_to_num(progressive_auc(race)[race.alive], nan=0.5)
    return race.alive[
        np.lexsort((race.alive, np.abs(np.log2(race.C[race.alive]) - _LIKELIEST), -auc))
    ]


def promote(model: Any, rivals: Any, race: Race) -> None:
    """Let the best learner change places with the leader, whose arrays are `model`."""
    place = int(np.flatnonzero(race.alive == standings(race)[0])[0])
    if place:
        changes = [(race.alive[:], race.alive[_swapped(race.alive.size, place)])]
        for leading, others in zip(model, rivals, strict=True):
            before = leading.copy()
            changes += [(leading, others[place - 1]), (others[place - 1], before)]
        unbroken(assign(*change) for change in changes)


def _swapped(size: int, place: int) -> Places:
    order = np.arange(size)
    order[[0, place]] = place, 0
    return order


def drop_half(rivals: Any, race: Race) -> tuple[Any, Race]:
    """Return the race with the better half of its learners, rounded up."""
    kept = standings(race)[: (race.alive.size + 1) // 2]
    stay = np.isin(race.alive[1:], kept)
    rivals = type(rivals)(*(array[stay] for array in rivals))
    return rivals, race._replace(alive=np.append(race.alive[:1], race.alive[1:][stay]))


def ended(races: Sequence[Race], prior: Race | None) -> Race:
    """Return the end of races held apart: the C with which most pairs were met goes on."""
    tally = sum(race.tally for race in races)
    if prior is not None:
        tally = tally - (len(races) - 1) * prior.tally
    race = Race(races[0].C.copy(), np.array(tally), np.arange(len(races[0].C)))
    pairs = race.tally[:, kernels.confidence.PAIRS]
    most = race._replace(alive=np.flatnonzero(pairs == pairs.max()))
    return race._replace(alive=standings(most)[:1])


def progressive_auc(race: Race) -> Floats:
    """Return the progressive AUC of every learner, as it was when the learner left."""
    right = race.tally[:, kernels.confidence.TWICE_RIGHT]
    pairs = race.tally[:, kernels.confidence.PAIRS]
    with np.errstate(invalid="ignore"):
        return right / (2 * pairs)
