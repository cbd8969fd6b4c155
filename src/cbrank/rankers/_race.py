"""C chosen within the pass: learners that share rows and buffers and differ in C."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank import kernels

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

FIRST_CUT = 512
_EXPONENTS = np.arange(-12, 5, 2)
_LIKELIEST = -4  # of the exponents: ahead where learners are level


class Race(NamedTuple):
    """Where the learners stand."""

    C: Floats  # (g,) every C that set out
    tally: Places  # (g, 4) of each learner when it last learned
    alive: Places  # places in C of the learners left, the leader's first


def begin(model: Any) -> tuple[Any, Race]:
    """Return rivals like `model`, stacked, and the race before its first row."""
    C = np.exp2(_EXPONENTS, dtype=np.float64)
    race = Race(C, np.zeros((len(C), 4), np.int64), _by_likelihood(np.arange(len(C))))
    return rivals_like(model, len(C) - 1), race


def n_learners() -> int:
    """Return how many learners set out."""
    return len(_EXPONENTS)


def rivals_like(model: Any, count: int) -> Any:
    """Return `count` models like `model`, stacked along a new first axis of its arrays."""
    return type(model)(*(np.repeat(array[None], count, axis=0) for array in model))


def rival(rivals: Any, place: int) -> Any:
    """Return one of the stacked models; what is learned into it is learned into the stack."""
    return type(rivals)(*(array[place] for array in rivals))


def parts(order: Places, rows: int) -> Iterator[tuple[Places, bool]]:
    """Split rows where learners have to leave: after 512 rows of the stream, 1,024 and so on."""
    cut = FIRST_CUT
    while order.size:
        while cut <= rows:
            cut *= 2
        part, order = order[: cut - rows], order[cut - rows :]
        rows += part.size
        yield part, rows == cut


def standings(race: Race) -> Places:
    """Return the places in C of the learners left, the best progressive AUC first."""
    alive = _by_likelihood(np.sort(race.alive))
    right = race.tally[alive, kernels.confidence.TWICE_RIGHT]
    return alive[np.argsort(-right, kind="stable")]


def promote(model: Any, rivals: Any, race: Race) -> None:
    """Put the best learner's arrays into `model`."""
    best = standings(race)[0]
    place = int(np.flatnonzero(race.alive == best)[0])
    if place:
        for leading, others in zip(model, rivals, strict=True):
            before = leading.copy()
            leading[...] = others[place - 1]
            others[place - 1] = before
        race.alive[[0, place]] = race.alive[[place, 0]]


def drop_half(rivals: Any, race: Race) -> tuple[Any, Race]:
    """Return the race with the better half of its learners, rounded up."""
    kept = standings(race)[: (race.alive.size + 1) // 2]
    stay = np.isin(race.alive[1:], kept)
    rivals = type(rivals)(*(array[stay] for array in rivals))
    return rivals, race._replace(alive=np.append(race.alive[:1], race.alive[1:][stay]))


def progressive_auc(race: Race) -> Floats:
    """Return the progressive AUC of every learner, as it was when the learner left."""
    right, pairs = (
        race.tally[:, kernels.confidence.TWICE_RIGHT],
        race.tally[:, kernels.confidence.PAIRS],
    )
    with np.errstate(invalid="ignore"):
        return right / (2 * pairs)


def _by_likelihood(places: Places) -> Places:
    return places[np.argsort(np.abs(_EXPONENTS[places] - _LIKELIEST), kind="stable")]
