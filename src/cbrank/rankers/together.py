"""Additive rankers that learned apart from one beginning, brought to the same features for merging."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cbrank.features.encoder import TableEncoder
from cbrank.rankers import growing
from cbrank.rankers.base import Batch

if TYPE_CHECKING:
    from cbrank.features.crosses import Evidence
    from cbrank.rankers.additive import AdditiveRanker

Places = NDArray[np.int64]


def together(
    rankers: "Sequence[AdditiveRanker]", prior: "AdditiveRanker | None", room: int
) -> tuple[list[Any], Any, Callable[[Any], Any]]:
    """Return rankers to merge, which have the features of all, and what is left to be done then.

    Rows of rankers that wait for more are learned by the merged one at the end.
    """
    decided = [ranker for ranker in rankers if not ranker.waits]
    known = 0
    if prior is not None and prior.waits:
        known, prior = len(prior._waiting.rows), None  # type: ignore[union-attr]
        if known and len(decided) > 1:
            raise ValueError(
                f"the prior has seen {known} rows, too few to decide what columns are, so that the "
                "rankers have done it apart: let it learn from more rows before others go on from it."
            )
    waiting = [ranker for ranker in rankers if ranker.waits]
    if not decided:
        decided, waiting = waiting[:1], waiting[1:]

    def finish(merged: Any) -> Any:
        for ranker in waiting:
            _learn_waiting(merged, ranker, known)
        return merged

    if len(decided) == 1 and prior is None:
        return decided, None, finish
    begun = None if prior is None else prior._encoder
    encoder, places = TableEncoder.joined([ranker._encoder for ranker in decided], begun, room)
    every = [*decided]
    if prior is not None:  # its features come first
        every, places = [*decided, prior], [*places, np.arange(prior._encoder.width_)]
    facts = {
        "_stages": max(ranker._stages for ranker in every),
        "_evidence": _evidence(decided, prior),
        "_pending": [],
    }
    moved = [_moved(ranker, encoder, own, facts) for ranker, own in zip(every, places, strict=True)]
    return (moved, None, finish) if prior is None else (moved[:-1], moved[-1], finish)


def _learn_waiting(merged: "AdditiveRanker", ranker: "AdditiveRanker", known: int) -> None:
    """Learn the rows that wait in a ranker, but for those that all have."""
    waiting = ranker._waiting
    assert waiting is not None
    batch = Batch(
        waiting.rows, waiting.labels, waiting.weights, np.arange(known, len(waiting.rows))
    )
    merged._learn(batch, merged._settings().parameters)


def _evidence(rankers: "Sequence[AdditiveRanker]", prior: "AdditiveRanker | None") -> Any:
    """Return the evidence of all rows for crosses, if all have sorted them into the same cells."""
    own: list[Evidence] = [each._evidence for each in rankers if each._evidence is not None]
    begun = None if prior is None else prior._evidence
    if len(own) < len(rankers) or any(
        not np.array_equal(each.owners, own[0].owners) for each in (*own, begun or own[0])
    ):
        return None
    sums = {
        name: sum(getattr(each, name) for each in own)
        - (0.0 if begun is None else (len(own) - 1) * getattr(begun, name))
        for name in ("residuals", "variances", "rows")
    }
    return own[0]._replace(**{**sums, "variances": np.maximum(sums["variances"], 0.0)})


def _moved(
    ranker: "AdditiveRanker", encoder: TableEncoder, places: Places, facts: dict[str, Any]
) -> Any:
    """Return a ranker with the features of an encoder, its own at some places, others as new ones."""
    own, width = np.full(ranker._width(), -1), max(1, encoder.width_)
    own[: places.size] = places[: own.size]
    places, kept = own, np.flatnonzero(own >= 0)
    order = np.full(width, -1)
    order[places[kept]] = kept
    order[order < 0] = places.size + np.arange(width - kept.size)
    new = order >= places.size
    wide = ranker._resized(places.size + width - kept.size)
    wide |= {name: _in_order(wide[name], order) for name in ("_model", "_others") if name in wide}
    wide["_buffer"] = _buffer_in_order(wide["_buffer"], order, places)
    record = wide["_record"]
    origin = record.origin[order] if record.origin.size else record.origin
    wide["_record"] = record._replace(held=record.held[order], origin=origin)
    del wide["n_features_in_"]  # the encoder's
    twin = copy(ranker)
    twin._own = type(ranker._own)()
    twin.__dict__.update(wide | facts | {"_encoder": encoder})
    growing.narrow_beyond(twin, wide, new)
    growing.fill_crosses(
        twin, wide["_buffer"], [each for each in encoder.crosses() if new[each.first]]
    )
    return twin


def _in_order(models: Any, order: Places) -> Any:
    """Return one model or some, stacked, with features in another order."""
    if "features" in models._fields:
        return models._replace(features=np.ascontiguousarray(models.features[..., order, :]))
    changed = {
        name: np.ascontiguousarray(getattr(models, name)[..., order])
        for name in models._fields
        if name not in {"tally", "Sigma"}
    }
    if "Sigma" in models._fields:
        changed["Sigma"] = np.ascontiguousarray(models.Sigma[..., order[:, None], order])
    return models._replace(**changed)


def _buffer_in_order(buffer: Any, order: Places, places: Places) -> Any:
    if "rows" in buffer._fields:
        rows = np.ascontiguousarray(buffer.rows[..., order])
        means = buffer.means[..., order] if buffer.means.size else buffer.means
        return buffer._replace(rows=rows, means=np.ascontiguousarray(means))
    for label, slot in np.argwhere(buffer.length > 0):
        some = slice(0, buffer.length[label, slot])
        indices = places[buffer.indices[label, slot, some]]
        rising = np.argsort(indices)
        buffer.indices[label, slot, some] = indices[rising]
        buffer.values[label, slot, some] = buffer.values[label, slot, some][rising]
    return buffer
