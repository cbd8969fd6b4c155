"""Groups of learners beside the others, the leaves of trees, of rankers that learned apart.

Trees that all rankers have, since they went on from one ranker, are merged as the other features are. Those that
rankers have grown by themselves the merged ranker has side by side.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank.learning import leaves, record
from cbrank.learning.method import Method
from cbrank.learning.state import Indicators, State
from cbrank.merging import buffers, gaussians

Floats = NDArray[np.float64]

MOST = 8  # groups that rankers have grown apart, of those with the most rows


def merged(
    whole: State, method: Method, learned: Sequence[State], known: State | None, weights: Floats
) -> State:
    """Return a merged state that has no groups with those of rankers, whose rows weigh so much."""
    blend = np.average([held.record.blend[0] for held in learned], weights=weights)
    held = whole.record._replace(blend=np.array([blend, 0.0]))
    whole = whole._replace(record=held)
    every = [leaves.known_groups(state) for state in learned]
    first = every[0] if known is None else leaves.known_groups(known)
    shared = [group for group in first if all(_has(own, group[0]) for own in every)]
    for group, *_ in shared:
        own = [next(each for each in have if _is_like(each[0], group)) for have in every]
        begun = None if known is None else group
        both = _merged(method.of_source(group.source), [each[0] for each in own], begun)
        about = record.Known(
            *(
                np.average(array, axis=0, weights=weights)
                for array in zip(*(each[1] for each in own), strict=True)
            )
        )
        weighs = float(np.average([each[2] for each in own], weights=weights))
        whole = leaves.with_group(whole, _growing(both), about, weighs)
    shares = weights / weights.sum()
    rest = [
        (share, group)
        for share, have in zip(shares, every, strict=True)
        for group in have
        if not _has(shared, group[0])
    ]
    for share, (group, about, weighs) in sorted(rest, key=lambda pair: -pair[0])[:MOST]:
        whole = leaves.with_group(whole, group, about, weighs * float(share))
    return whole


def _has(groups: Sequence[Any], group: Indicators) -> bool:
    return any(_is_like(own[0], group) for own in groups)


def _is_like(one: Indicators, other: Indicators) -> bool:
    """Say whether two groups are of the same trees, or of the same columns."""
    arrays, others = one.source.arrays(), other.source.arrays()
    names = arrays.keys() - {"words"}
    return arrays.keys() == others.keys() and all(
        np.array_equal(arrays[name], others[name]) for name in names
    )


def _growing(group: Indicators) -> Indicators:
    """Return a group beside which trees may be grown again."""
    if not getattr(group.source, "shared", False):
        return group
    return group._replace(source=group.source._replace(shared=False))


def _merged(method: Method, groups: Sequence[Indicators], known: Indicators | None) -> Indicators:
    """Return the group of all rows that groups have learned from after a known one, or after none."""
    fresh = leaves.begun(method, groups[0].source, 1) if known is None else known
    models = tuple(
        gaussians.merged([group.models[place] for group in groups], [begun] * len(groups), begun)
        for place, begun in enumerate(fresh.models)
    )
    reservoir = bool(method.parameters[0].reservoir)
    buffer = buffers.merged(
        [group.buffer for group in groups], known and known.buffer, reservoir=reservoir
    )
    return groups[0]._replace(models=models, buffer=buffer)
