"""Which rankers can be merged."""

import reprlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cbrank.merging.gaussians import variances

if TYPE_CHECKING:
    from cbrank.rankers import CBRanker


def refuse_different(rankers: Sequence[Any], prior: Any) -> None:
    """Raise a ValueError that names the first thing that does not go together."""
    if not rankers:
        raise ValueError("There are no rankers to merge.")
    named = {f"rankers[{place}]": ranker for place, ranker in enumerate(rankers)}
    if prior is not None:
        named["prior"] = prior
    for name, ranker in named.items():
        _refuse_other_kinds(name, ranker)
        _refuse_no_covariance(name, ranker)
    first = _facts(rankers[0])
    for name, ranker in named.items():
        for fact, value in _facts(ranker).items():
            if fact in first and value != first[fact]:
                where, ours, theirs = _difference(fact, value, first[fact])
                raise ValueError(
                    f"{name} has {where} {ours} and rankers[0] has {theirs}: only rankers that "
                    "agree in it can be merged."
                )
    if prior is not None:
        if prior.forgetting not in {"auto", 0.0} and prior.n_seen_.any():
            raise ValueError(
                f"forgetting is {prior.forgetting}, so the rankers have lost some of what the prior "
                "knew and it cannot be counted once: merge rankers that began with nothing."
            )
        for name, ranker in named.items():
            if (ranker.n_seen_ < prior.n_seen_).any():
                raise ValueError(
                    f"{name} has seen fewer rows than the prior, so it did not go on from it."
                )


def _difference(fact: str, value: Any, other: Any) -> tuple[str, str, str]:
    """Return what differs, in few words: of names, of which there may be very many, the first."""
    if fact == "feature_names_in_" and None not in (value, other):
        pairs = enumerate(zip(value, other, strict=True))
        place, (value, other) = next((place, pair) for place, pair in pairs if pair[0] != pair[1])
        fact = f"{fact}[{place}]"
    return fact, reprlib.repr(value), reprlib.repr(other)


def _refuse_other_kinds(name: str, ranker: Any) -> None:
    if not hasattr(ranker, "together"):
        raise ValueError(
            f"{name} is {ranker!r}: only a CBRanker, whose model is a Gaussian, can be merged."
        )
    if not ranker.__sklearn_is_fitted__():
        raise ValueError(f"{name} has learned nothing yet: leave it out, or fit it.")


def _refuse_no_covariance(name: str, ranker: "CBRanker") -> None:
    """Refuse a covariance that is not positive and finite, as only a forged file can have it."""
    for model in ranker.learned().models:
        _refuse_no_covariance_of(name, model)


def _refuse_no_covariance_of(name: str, model: Any) -> None:
    held = variances(model)
    bad = np.flatnonzero(~(np.isfinite(held) & (held > 0.0)))
    if bad.size:
        fault = f"the variance of feature {bad[0]} is {held[bad[0]]}"
    elif np.isfinite(getattr(model, "Sigma", held)).all():
        return
    else:
        fault = "it has numbers that are not finite"
    raise ValueError(
        f"{name} has a covariance that is none, {fault}: leave it out, or let it learn anew."
    )


def _facts(ranker: "CBRanker") -> dict[str, Any]:
    """Return what rankers must have in common, by name."""
    names = getattr(ranker, "feature_names_in_", None)
    _, state = ranker.get_state()
    facts: dict[str, Any] = state["parameters"] | state["began_with"]
    facts.pop("random_state")
    kept = {} if ranker.waits else {"rows kept": "sparse" if state["sparse"] else "dense"}
    return {"class": state["class"], **facts, **kept} | {
        "n_features_in_": ranker.n_features_in_,
        "feature_names_in_": None if names is None else names.tolist(),
        "classes_": state["classes"].tolist(),
    }
