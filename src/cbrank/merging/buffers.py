"""Buffers of rankers that learned apart, as one buffer of all their rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from cbrank import kernels

Places = NDArray[np.int64]

_OF_ROWS = {"rows", "values", "indices", "length"}  # fields by class and slot


def merged(buffers: Sequence[Any], prior: Any, *, reservoir: bool) -> Any:
    """Return the buffer of the prior's rows, if there is one, and of all rows seen since."""
    sources = _equally_wide([*buffers] if prior is None else [prior, *buffers])
    sources = _equally_long(sources, reservoir)
    random = np.random.default_rng([int(source.random[0]) for source in sources])
    whole = type(sources[0])(*(np.zeros_like(array) for array in sources[0]))
    whole.random[0], whole.least[0] = random.integers(1, 2**63), sources[0].least[0]
    capacity, before = whole.came.shape[1], _rows_before(sources, prior)
    for label in range(2):
        held = [_slots(source, label) for source in sources]
        came = np.array([source.seen[label] for source in sources])
        known = 0 if prior is None else int(came[0])
        if prior is not None:
            came[1:] -= known
            since = _changed if reservoir else _last
            held[1:] = [
                since(slots, source, sources[0], label)
                for slots, source in zip(held[1:], sources[1:], strict=True)
            ]
        kept = (
            _sample(held, came, capacity, random, known) if reservoir else _latest(held, capacity)
        )
        whole.size[label], whole.seen[label] = len(kept), came.sum()
        if "means" in whole._fields:
            whole.means[label] = _mean_rows(buffers, label, known)
        for slot, (place, old) in enumerate(kept):
            if not reservoir:
                whole.came[label, slot] = before[place] + sources[place].came[label, old]
            for field in _OF_ROWS.intersection(whole._fields):
                getattr(whole, field)[label, slot] = getattr(sources[place], field)[label, old]
    if "means" in whole._fields:
        whole.means[kernels.buffers.LOWER] = -kernels.buffers.BOUND
        whole.means[kernels.buffers.UPPER] = kernels.buffers.BOUND
        whole = whole._replace(means=kernels.buffers.bounded(whole))
    return kernels.buffers.latest(whole, int(whole.least[0]), capacity, reservoir=reservoir)


def _equally_wide(buffers: list[Any]) -> list[Any]:
    if "length" not in buffers[0]._fields:
        return buffers
    width = max(buffer.values.shape[2] for buffer in buffers)
    return [kernels.buffers.widened(buffer, width) for buffer in buffers]


def _equally_long(buffers: list[Any], reservoir: bool) -> list[Any]:
    """Return buffers of as many slots as the shortest has."""
    kept = min((int(buffer.least[0]), buffer.came.shape[1]) for buffer in buffers)
    return [kernels.buffers.with_room(buffer, *kept, reservoir=reservoir) for buffer in buffers]


def _rows_before(sources: list[Any], prior: Any) -> list[int]:
    """Return how many rows of other sources come before those of each, if all come one after another."""
    rows = [int(source.seen.sum()) for source in sources]
    known = 0 if prior is None else rows[0]
    since = [rows[0], *(count - known for count in rows[1:])]
    own = [0, *(known for _ in rows[1:])]
    return [sum(since[:place]) - less for place, less in enumerate(own)]


def _mean_rows(buffers: Sequence[Any], label: int, known: int) -> Any:
    """Return the mean of the means of a class, those of more rows since the prior weighing more."""
    rows = np.array([float(buffer.seen[label] - known) for buffer in buffers])
    shares = rows / rows.sum() if rows.any() else np.full(len(rows), 1.0 / len(rows))
    return sum(share * buffer.means[label] for share, buffer in zip(shares, buffers, strict=True))


def _slots(buffer: Any, label: int) -> Places:
    """Return the filled slots, the oldest row's first."""
    filled = np.arange(buffer.size[label])
    return (buffer.oldest[label] + filled) % buffer[0].shape[1]  # type: ignore[no-any-return]


def _last(slots: Places, buffer: Any, prior: Any, label: int) -> Places:
    """Return the slots of a queue that hold rows later than the prior's."""
    new = int(buffer.seen[label] - prior.seen[label])
    return slots[max(0, slots.size - new) :]


def _changed(slots: Places, buffer: Any, prior: Any, label: int) -> Places:
    """Return the slots of a reservoir that do not hold what they held in the prior."""
    same = np.ones(slots.size, bool)
    for field in _OF_ROWS.intersection(buffer._fields):
        ours, theirs = getattr(buffer, field)[label, slots], getattr(prior, field)[label, slots]
        same &= (ours == theirs).reshape(slots.size, -1).all(axis=1)
    new: Places = slots[~same | (slots >= prior.size[label])]
    return new


def _latest(held: list[Places], capacity: int) -> list[tuple[int, int]]:
    """Return source and slot of the last rows."""
    return [(place, slot) for place, slots in enumerate(held) for slot in slots][-capacity:]


def _sample(
    held: list[Places], came: Places, capacity: int, random: np.random.Generator, known: int
) -> list[tuple[int, int]]:
    """Draw a uniform sample of all rows that came, given uniform samples of each source's.

    `known` rows, the prior's, were among those that the later sources sampled, so one holds `own`
    of its rows by chance. Of these no more are wanted than it holds: `own` and `wanted` come from
    one quantile, and a larger crowd has fewer of them in its sample at every quantile.
    """
    left, crowd, drawn = capacity, int(came.sum()), []
    for place in range(len(held) - 1, -1, -1):
        rows, slots = int(came[place]), held[place]
        among = rows + (known if place else 0)
        own = _chances(among, rows, min(capacity, among))
        if slots.size:
            quantile = own[: slots.size].sum() + random.random() * own[slots.size :][:1].sum()
            wanted = np.cumsum(_chances(crowd, rows, min(left, crowd))).searchsorted(quantile)
            drawn += [(place, slot) for slot in random.permutation(slots)[: min(int(wanted), left)]]
        left, crowd = capacity - len(drawn), crowd - rows
    return drawn


def _chances(crowd: int, rows: int, drawn: int) -> NDArray[np.float64]:
    """Return the hypergeometric probabilities of 0, 1, ... of these rows among those drawn.

    By ratios of neighbours, since the work of scipy.stats.hypergeom grows with the crowd.
    """
    fewest = max(0, drawn - (crowd - rows))
    count = np.arange(fewest, min(rows, drawn), dtype=np.float64)
    more = (rows - count) * (drawn - count)
    fewer = (count + 1.0) * (crowd - rows - drawn + count + 1.0)
    chances = softmax(np.append(0.0, np.cumsum(np.log(more / fewer))))
    return np.append(np.zeros(fewest), chances)
