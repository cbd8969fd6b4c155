"""Rankers that learned apart, made one.

* ``agreement``: which rankers can be merged
* ``learners``: which of the learners of rankers with C "auto"
* ``gaussians``: their models, the prior counted once
* ``buffers``: their buffers, as if one had seen all rows
"""

from collections.abc import Sequence
from copy import deepcopy
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cbrank import kernels
from cbrank.merging import buffers, gaussians, learners
from cbrank.merging.agreement import refuse_different
from cbrank.rankers import record

if TYPE_CHECKING:
    from cbrank.rankers import CBRanker

__all__ = ["merge", "tempered"]


def merge(rankers: "Sequence[CBRanker]", prior: "CBRanker | None" = None) -> "CBRanker":
    """Return the ranker of all rows that several rankers learned from apart.

    Gaussians are multiplied, with the prior that all of them began with counted once. Counts of
    rows and pairs add up. A FIFO buffer holds the latest rows, those of a later ranker being later;
    a reservoir is a uniform sample of all rows. `progressive_auc_` is that of all blocks,
    `recent_auc_` that of the latest. Rankers can be merged in a tree: up to rounding and the draws of
    reservoirs, merging is associative, but with a diagonal covariance not the probabilities, nor the
    shares of learners in `coef_` if C is "auto", which differ a little.

    Parameters
    ----------
    rankers : sequence of CBRanker
        Rankers with the same parameters (but for `random_state`), features and classes; they stay
        as they are. A `CBRankerCV` counts as the `CBRanker` with the C it chose.
    prior : CBRanker, default=None
        The ranker that all of them went on from, as it was then, in a further round; None if each
        began with nothing.

    Returns
    -------
    CBRanker
        A ranker that shares nothing with the others and can go on learning. Where C is "auto",
        the learners that all rankers have left are merged one by one; if there is none, those
        that lead, and the choice of C is over. A learner that forgets begins anew.

    Raises
    ------
    ValueError
        If the rankers do not go together. The sentence says which and why.

    Examples
    --------
    >>> import cbrank
    >>> from cbrank.datasets import load
    >>> X, y, facts = load("german")
    >>> shards = [slice(begin, 800, 4) for begin in range(4)]
    >>> rankers = [cbrank.CBRanker(0.0625).partial_fit(X[rows], y[rows]) for rows in shards]
    >>> merged = cbrank.merge(rankers)
    >>> int(merged.n_seen_.sum()), round(merged.score(X[800:], y[800:]), 2)
    (800, 0.81)

    A second round goes on from the first:

    >>> from copy import deepcopy
    >>> rankers = [deepcopy(merged).partial_fit(X[rows], y[rows]) for rows in shards]
    >>> merged = cbrank.merge(rankers, prior=merged)
    """
    parts: list[CBRanker] = [_plain(ranker) for ranker in rankers]
    start: CBRanker | None = None if prior is None else _plain(prior)
    refuse_different(parts, start)
    if len(parts) == 1:
        return deepcopy(parts[0])
    parts, start, finish = parts[0].together(parts, start)
    merged: CBRanker = finish(_merged(parts, start) if len(parts) > 1 else deepcopy(parts[0]))
    return merged


def _merged(parts: "Sequence[CBRanker]", start: "CBRanker | None") -> "CBRanker":
    """Return the ranker of all rows of rankers with the same features."""
    learned = [part.learned() for part in parts]
    known = start.learned() if start else None
    chosen = learners.chosen(learned, known)
    begun = cache(partial(learners.before, prior=known, fresh=parts[0].prior))
    models = {}
    with kernels.threads.one_thread:
        for number, each in chosen.items():
            own = [part.models[place] for place, part in zip(each, learned, strict=True)]
            models[number] = gaussians.merged(own, [*map(begun, each)], begun(number))
    buffer = buffers.merged(
        [part.buffer for part in learned],
        known.buffer if known else None,
        reservoir=parts[0].policy == "reservoir",
    )
    records, began = [part.record for part in learned], known.record if known else None
    rows, weights = [part.buffered_rows() for part in parts], record.shares(records, began)
    kept = record.merged(records, began)
    whole = type(learned[0])(models, buffer, kept, learners.halving_of(chosen, learned))
    kept = learners.taken_over(whole, chosen, learned, rows, weights)
    return parts[0].like(whole._replace(record=kept))


def tempered(merged: "CBRanker", prior: "CBRanker", shards: int) -> "CBRanker":
    """Return what `merge` made of a further round, its mean moved less far from the prior.

    Shards that go on from one prior mend the same faults, each in full: their moves add up to too
    much, above all where a diagonal cannot know that they are the same. What the prior is sure of
    counts sqrt(shards) times against a move, so that it is between the sum and the average.
    """
    [merged], begun, _ = merged.together([merged], prior)
    assert begun is not None
    learned, known = merged.learned(), begun.learned()
    with kernels.threads.one_thread:
        models = {
            number: gaussians.tempered(model, learners.before(number, known, merged.prior), shards)
            for number, model in learned.models.items()
        }
    whole, rows = learned._replace(models=models), [merged.buffered_rows()]
    chosen = learners.chosen([learned], None)
    kept = learners.taken_over(whole, chosen, [learned], rows, np.ones(1))
    return merged.like(whole._replace(record=kept))


def _plain(ranker: Any) -> Any:
    """Return a `CBRankerCV` that has learned as a `CBRanker`, and anything else as it is."""
    searched = hasattr(ranker, "to_cbranker") and ranker.__sklearn_is_fitted__()
    return ranker.to_cbranker() if searched else ranker
