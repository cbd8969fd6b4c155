"""Rankers that learned apart, made one.

* ``agreement``: which rankers can be merged
* ``learners``: what is known of the learners of a merged ranker
* ``gaussians``: their models, the prior counted once
* ``buffers``: their buffers, as if one had seen all rows
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from cbrank import kernels
from cbrank.learning import memory, record
from cbrank.learning.state import State, buffered_rows
from cbrank.merging import buffers, gaussians, learners
from cbrank.merging.agreement import refuse_different

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from cbrank.rankers import CBRanker

__all__ = ["merge", "prepare", "tempered"]


def prepare(
    ranker: "CBRanker", X: Any, y: "ArrayLike", sample_weight: "ArrayLike | None" = None
) -> "CBRanker":
    """Return a ranker that knows what columns are and has learned nothing: the start of rankers that learn apart.

    A sample of the rows decides what a ranker else decides by its own first rows, or as they come: the scales
    of columns, and of tables also their kinds, knots and categories, and trees. Rankers that go on from copies of one
    start have the same features, so that `merge` loses less; they grow no trees of their own.

    Parameters
    ----------
    ranker : CBRanker or AdditiveRanker
        Its parameters count; it stays as it is.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        A sample of the rows, some thousands if there are trees. Best it is learned by none of the rankers: trees have
        seen its labels, so that honest measures of the same rows would flatter.
    y : array-like of shape (n_samples,)
        Labels, of both classes.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows for trees.

    Returns
    -------
    CBRanker or AdditiveRanker
        A new ranker before its first row.

    See Also
    --------
    merge : Make one ranker of those that have learned.

    Examples
    --------
    >>> from copy import deepcopy
    >>> import cbrank
    >>> from cbrank.datasets import load
    >>> X, y, facts = load("segment")
    >>> start = cbrank.prepare(cbrank.AdditiveRanker(random_state=0), X[::5], y[::5])
    >>> int(start.n_seen_.sum())
    0
    >>> shards = [slice(begin, None, 5) for begin in (1, 2, 3)]
    >>> rankers = [deepcopy(start).partial_fit(X[rows], y[rows]) for rows in shards]
    >>> merged = cbrank.merge(rankers, prior=start)
    >>> round(merged.score(X[4::5], y[4::5]), 2)
    1.0
    """
    plain = _plain(ranker)
    prepared: CBRanker = type(plain)(**deepcopy(plain.get_params(deep=False))).start_by(
        X, y, sample_weight
    )
    return prepared


def merge(rankers: "Sequence[CBRanker]", prior: "CBRanker | None" = None) -> "CBRanker":
    """Return the ranker of all rows that several rankers learned from apart.

    Gaussians are multiplied, with the prior that all of them began with counted once. Counts of
    rows and pairs add up. A FIFO buffer holds the latest rows, those of a later ranker being later;
    a reservoir is a uniform sample of all rows. `progressive_auc_` is that of all blocks,
    `recent_auc_` that of the latest. Rankers can be merged in a tree: up to rounding and the draws of
    reservoirs, merging is associative, but with a diagonal covariance not the probabilities, nor the
    shares of learners in `coef_` if C is "auto", which differ a little. Rows that wait in a ranker are
    learned by the merged one, at the end.

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
        learners are merged one by one; that which forgets begins anew. Columns are in the units of the
        prior, or of the first ranker.

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
    count = parts[0].lasting()
    learned = [_of_first(part.learned(), count) for part in parts]
    known = _of_first(start.learned(), count) if start else None
    models = []
    with kernels.threads.one_thread:
        for place in range(count):
            own = [part.models[place] for part in learned]
            if known is None:
                begun = [part.prior(place) for part in parts]
            else:
                begun = [known.models[place]] * len(own)
            models.append(gaussians.merged(own, begun, begun[0]))
    buffer = buffers.merged(
        [part.buffer for part in learned],
        known.buffer if known else None,
        reservoir=parts[0].policy == "reservoir",
    )
    records, began = [part.record for part in learned], known.record if known else None
    rows, weights = [buffered_rows(part) for part in learned], record.shares(records, began)
    kept = record.merged(records, began)
    positions = [held.position for held in records]
    rows_known = 0 if began is None else int(began.position[record.ROWS])
    sample = memory.merged([part.memory for part in learned], positions, rows_known)
    whole = learned[0]._replace(models=tuple(models), buffer=buffer, record=kept, memory=sample)
    kept = learners.taken_over(whole, learned, rows, weights)
    whole = whole._replace(record=kept)
    if any(part.learned().beside for part in parts):
        method = parts[0].method()
        from cbrank.merging import groups  # noqa: PLC0415 (only tables have such)

        before = start.learned() if start else None
        whole = groups.merged(whole, method, [part.learned() for part in parts], before, weights)
    found: CBRanker = parts[0].like(whole)
    return found


def _of_first(state: State, learners: int) -> State:
    """Return a state with only the first so many learners."""
    known = record.with_learners(state.record, range(learners))
    known = known._replace(blend=known.blend[[0, -1]], certainty=np.eye(2))
    return state._replace(models=state.models[:learners], record=known, beside=())


def tempered(merged: "CBRanker", prior: "CBRanker", shards: int) -> "CBRanker":
    """Return what `merge` made of a further round, its mean moved less far from the prior.

    Shards that go on from one prior mend the same faults, each in full: their moves add up to too
    much, above all where a diagonal cannot know that they are the same. What the prior is sure of
    counts sqrt(shards) times against a move, so that it is between the sum and the average.
    """
    [merged], begun, _ = merged.together([merged], prior)
    if begun is None:  # rows of the prior wait
        whole: CBRanker = merged
        return whole
    learned, known = merged.learned(), begun.learned()
    with kernels.threads.one_thread:
        pairs = zip(learned.models, known.models, strict=False)
        models = tuple(gaussians.tempered(*pair, shards) for pair in pairs)
    tamed, rows = learned._replace(models=models), [buffered_rows(learned)]
    kept = learners.taken_over(tamed, [learned], rows, np.ones(1))
    found: CBRanker = merged.like(tamed._replace(record=kept))
    return found


def _plain(ranker: Any) -> Any:
    """Return a `CBRankerCV` that has learned as a `CBRanker`, and anything else as it is."""
    searched = hasattr(ranker, "to_cbranker") and ranker.__sklearn_is_fitted__()
    return ranker.to_cbranker() if searched else ranker
