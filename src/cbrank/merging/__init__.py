"""Rankers that learned apart, made one.

* ``agreement``: which rankers can be merged
* ``gaussians``: their models, the prior counted once
* ``buffers``: their buffers, as if one had seen all rows
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cbrank import kernels
from cbrank.merging import buffers, gaussians
from cbrank.merging.agreement import refuse_different
from cbrank.rankers import record
from cbrank.rankers.halving import Halving, ended

if TYPE_CHECKING:
    from cbrank.rankers import CBRanker
    from cbrank.rankers.cbr import Learned

__all__ = ["merge", "tempered"]


def merge(rankers: "Sequence[CBRanker]", prior: "CBRanker | None" = None) -> "CBRanker":
    """Return the ranker of all rows that several rankers learned from apart.

    Gaussians are multiplied, with the prior that all of them began with counted once. Counts of
    rows and pairs add up. A FIFO buffer holds the latest rows, those of a later ranker being later;
    a reservoir is a uniform sample of all rows. `progressive_auc_` is that of all blocks. Merging is associative, up to rounding and the draws
    of reservoirs: rankers can be merged in a tree.

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
        its choice of C is over: it has the C that led with most rows.

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
    learned = [part.learned() for part in parts]
    known = start.learned() if start else None
    with kernels.threads.one_thread:
        model = gaussians.merged(
            [part.model for part in learned], known.model if known else parts[0].prior()
        )
    buffer = buffers.merged(
        [part.buffer for part in learned],
        known.buffer if known else None,
        reservoir=parts[0].policy == "reservoir",
    )
    kept = record.merged([part.record for part in learned], known.record if known else None)
    return parts[0].like(type(learned[0])(model, buffer, kept, _halving_ended(learned)))


def _halving_ended(learned: "Sequence[Learned]") -> Halving | None:
    """Return the end of the rankers' choices of C, if they had to choose."""
    halvings = [part.halving for part in learned if part.halving is not None]
    return ended(halvings, [int(part.buffer.seen.sum()) for part in learned]) if halvings else None


def tempered(merged: "CBRanker", prior: "CBRanker", shards: int) -> "CBRanker":
    """Return what `merge` made of a further round, its mean moved less far from the prior.

    Shards that go on from one prior mend the same faults, each in full: their moves add up to too
    much, above all where a diagonal cannot know that they are the same. What the prior is sure of
    counts sqrt(shards) times against a move, so that it is between the sum and the average.
    """
    learned = merged.learned()
    with kernels.threads.one_thread:
        model = gaussians.tempered(learned.model, prior.learned().model, shards)
    return merged.like(learned._replace(model=model))


def _plain(ranker: Any) -> Any:
    """Return a `CBRankerCV` that has learned as a `CBRanker`, and anything else as it is."""
    searched = hasattr(ranker, "to_cbranker") and ranker.__sklearn_is_fitted__()
    return ranker.to_cbranker() if searched else ranker
