"""How a ranker that takes tables grows at the end of a block.

The encoder learns from the rows of the block, and crosses are chosen from what they say. Then there is
room for the new features in every learner, and copies of the best learners join that use the crosses.
"""

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from cbrank import kernels
from cbrank.features.crosses import (
    MOST_COLUMNS,
    Evidence,
    Products,
    gathered,
    no_evidence,
    ranked_pairs,
    with_columns,
)
from cbrank.rankers import halving, record

if TYPE_CHECKING:
    from cbrank.features.table import Table as Rows
    from cbrank.rankers.tabular import TabularRanker

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

LINE, BENDS, CROSSES = range(3)  # kinds of features

MOST_ASKED = 2**20  # features of crosses that were asked for
CHOICES = 512, 2048, 8192, 32768  # rows after which crosses are chosen
# Features of crosses after each choice if `crosses` is "auto": many rows can teach more of them.
_ROOMS = 512, 512, 512, 1024
# Variance of their weights after the last choice: a learner that is sure of all others would lean on what is
# new, and rank worse for a while (docs/_rows_table.md).
_LATE = 0.1


def settle(ranker: "TabularRanker", rows: "Rows") -> None:
    """Let the encoder learn from the rows of the block, which is full, and choose crosses."""
    encoder = deepcopy(ranker._encoder)
    before = int(ranker._record.position[record.ROWS])
    ahead = min(max(encoder.n_settled_ - before, 0), len(rows))
    if ahead < len(rows):
        encoder.settle(rows.take(slice(ahead, None)))
    if isinstance(ranker.crosses, list):  # a column that was constant can be crossed once it moves
        encoder.cross(ranker.asked_pairs(), None, MOST_ASKED)
    after, changed = before + len(rows), {"_encoder": encoder, "_pending": [], "_encoded_parts": []}
    if _may_cross(ranker):
        evidence = _gathered(ranker, rows)
        if after >= CHOICES[ranker._stages]:
            choices = ranker._stages + 1
            free = room(ranker, choices) - int((encoder.partners_ >= 0).sum())
            encoder.cross(ranked_pairs(evidence), evidence, free)
            changed["_stages"] = choices
        changed["_evidence"] = evidence
    ranker.__dict__.update(changed)


def room(ranker: "TabularRanker", choices: int) -> int:
    """Return how many features of crosses there may be after so many choices."""
    if isinstance(ranker.crosses, list):
        return MOST_ASKED
    return int(ranker.crosses) if ranker.crosses != "auto" else _ROOMS[max(choices, 1) - 1]


def _may_cross(ranker: "TabularRanker") -> bool:
    """Say whether crosses may still be chosen: never all too late, or for those who lost."""
    wanted = ranker.crosses == "auto" or (isinstance(ranker.crosses, int) and ranker.crosses > 0)
    if not wanted or ranker._sparse or ranker._stages == len(CHOICES):
        return False
    if ranker.C != "auto" or not ranker._encoder.crosses():
        return True
    return bool((ranker._halving.reach[ranker._halving.alive] >= CROSSES).any())


def _gathered(ranker: "TabularRanker", rows: "Rows") -> Evidence:
    """Return the evidence for crosses with that of the rows of the block."""
    held = ranker._record
    log_odds = kernels.calibration.log_odds(held.served, held.shape, held.curve)
    p = expit(log_odds)
    X = ranker._encoded_block(rows)
    coarse, evidence = ranker._encoder.coarse(), ranker._evidence
    if evidence is None:
        evidence = no_evidence(_most_moving(ranker, coarse, X))
    else:
        evidence = with_columns(evidence, coarse)
    return gathered(evidence, coarse, X, held.labels - p, p * (1.0 - p))


def _most_moving(ranker: "TabularRanker", coarse: list[Any], X: Floats) -> list[Any]:
    """Return the columns that move scores most, if there are too many to look at all."""
    if len(coarse) <= MOST_COLUMNS:
        return coarse
    moved = ranker._by_column(X).std(axis=0)
    order = np.argsort(-moved[[each.column for each in coarse]], kind="stable")
    return [coarse[at] for at in sorted(order[:MOST_COLUMNS].tolist())]


def kinds_of_features(ranker: "TabularRanker") -> Places:
    """Return of each feature whether it belongs to the line, the bends or the crosses."""
    kinds = np.where(ranker._encoder.bends_, BENDS, LINE)
    asked = isinstance(ranker.crosses, list)  # they are there from the start, with the curves
    return np.where(ranker._encoder.partners_ >= 0, BENDS if asked else CROSSES, kinds)


def widen(ranker: "TabularRanker") -> None:
    """Make room for the features that the encoder has got since, as at the beginning."""
    before, width = ranker._width(), ranker._encoder.width_
    if width <= before:
        return
    grown = ranker._resized(width)
    del grown["n_features_in_"]  # the encoder's
    kinds = kinds_of_features(ranker)
    new = np.arange(width) >= before
    narrow_beyond(ranker, grown, new)
    crosses = [each for each in ranker._encoder.crosses() if each.first >= before]
    fill_crosses(ranker, grown["_buffer"], crosses)
    crossed = np.flatnonzero(new & (kinds == CROSSES))
    if crossed.size:
        if ranker._stages == len(CHOICES):
            for model, reach in _models(ranker, grown):
                set_prior(model, crossed, _LATE if reach >= CROSSES else halving.SLIGHT)
        _join(ranker, grown, crossed)
    ranker.__dict__.update(grown)


def narrow_beyond(ranker: "TabularRanker", grown: dict[str, Any], new: NDArray[np.bool_]) -> None:
    """Give new features a slight prior in learners that make no use of them."""
    kinds = kinds_of_features(ranker)
    for model, reach in _models(ranker, grown):
        narrow(model, np.flatnonzero(new & (kinds > reach)))


def _models(ranker: "TabularRanker", grown: dict[str, Any]) -> list[tuple[Any, int]]:
    """Return the models of all learners, the leader's first, and the kinds of features they use."""
    if not hasattr(ranker, "_halving"):
        return [(grown["_model"], CROSSES)]
    choice = ranker._halving
    others = [halving.of_stack(grown["_others"], at) for at in range(choice.alive.size - 1)]
    reaches = choice.reach[choice.alive].tolist()
    return [*zip([grown["_model"], *others], reaches, strict=True)]


def fill_crosses(ranker: "TabularRanker", buffer: Any, crosses: list[Any]) -> None:
    """Write some crosses of buffered rows, of which all other features are known."""
    if ranker._sparse:
        return
    products = Products(crosses)
    if not products.features.size:
        return
    for label, held in enumerate(kernels.buffers.filled(buffer)):
        if held.any():
            slots = np.flatnonzero(held)
            found = products.of(buffer.rows[label, slots])
            buffer.rows[label, slots[:, None], products.features] = found
            if buffer.means.size:  # a diagonal covariance needs none
                buffer.means[label, products.features] = found.mean(axis=0)


def _join(ranker: "TabularRanker", grown: dict[str, Any], places: Places) -> None:
    """Let copies of the best learners join, which make use of the crosses.

    Beside them the two best without crosses go on: all are as wide from now on, so that each costs
    much.
    """
    if not hasattr(ranker, "_halving"):
        return
    choice, kept = ranker._halving, grown["_record"]
    if (choice.reach[choice.alive] >= CROSSES).any():
        return  # those that joined before have got the new features
    numbers = choice.alive.tolist()
    known = dict(zip(numbers, (model for model, _ in _models(ranker, grown)), strict=True))
    order = halving.ranked(choice, kept.evidence, ranker._readouts()).tolist()
    left = [number for number in order if number != choice.forgetful][: ranker.ARMS.later]
    first = len(ranker.ARMS.exponents)
    joined = list(range(first, first + len(left)))
    for number, like in zip(joined, left, strict=True):
        known[number] = type(known[like])(*(array.copy() for array in known[like]))
        set_prior(known[number], places, 1.0)
        choice = halving.with_learner(choice, number, like, float(choice.forgetting[like]))
        choice.reach[number] = CROSSES
        kept = halving.like(kept, number, like)
    alive = [*left, *(n for n in numbers if n == choice.forgetful), *joined]
    sources = [numbers.index(left[joined.index(n)] if n in joined else n) for n in alive]
    grown["_model"] = known[alive[0]]
    grown["_others"] = halving.stack([known[number] for number in alive[1:]], known[alive[0]])
    grown["_halving"] = choice._replace(alive=np.array(alive))
    grown["_record"] = kept._replace(places=kept.places[sources])


def narrow(model: Any, features: Places) -> None:
    """Give features of a model, which have taught it nothing so far, a slight prior."""
    set_prior(model, features, halving.SLIGHT)


def set_prior(model: Any, features: Places, variance: float) -> None:
    if "Sigma" in model._fields:
        model.Sigma[features, features] = variance
    elif "features" in model._fields:
        model.features[features, kernels.sparse_diagonal.VARIANCE] = variance
    else:
        model.G[features] = 1.0 / variance
