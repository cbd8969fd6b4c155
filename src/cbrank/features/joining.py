"""Encodings that went on apart from one beginning, made one: the union of their features.

Features are matched by what they mean. A category is its column and its word. The line, the pieces and
the isolated values of a column of numbers belong to its curve: where two encodings have given a column
another curve since they parted, the later one is kept, and the features of the other are never again
other than zero, as those of a curve that a column has left.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank.features.curves import Curve, NumberColumn
from cbrank.features.encoding import Encoding, Known, Settled
from cbrank.features.ledger import Entry, Ledger
from cbrank.features.text import TextColumn
from cbrank.features.times import TimeColumn
from cbrank.features.words import WordColumn

Places = NDArray[np.int64]

_CURE = "let them go on from one `cbrank.prepare(ranker, X, y)`, which decides what columns are."


def joined(encodings: Sequence[Encoding], shared: Encoding | None) -> tuple[Encoding, list[Places]]:
    """Return the encoding that has the features of all, and where it has those of each.

    Parameters
    ----------
    encodings : sequence of Encoding
        What is made one; later ones are later.
    shared : Encoding, optional
        What all of them went on from.

    Returns
    -------
    Encoding
        The union.
    list of ndarray
        For each encoding, the place of each of its features in the union.

    Raises
    ------
    ValueError
        If they did not decide together what columns are.
    """
    every = [*encodings] if shared is None else [shared, *encodings]
    begun = _common(every, shared)
    ledger, known, places = Ledger(begun), dict[Any, int](), []
    for encoding in every:
        tokens = _curve_tokens(encoding)
        own = np.full(encoding.ledger.width, -1, np.int64)
        own[: Ledger(begun).width] = np.arange(Ledger(begun).width)
        for at, entry in _entries(encoding, len(begun)):
            key = entry.owner, entry.name, entry.size, tokens.get(at)
            if key not in known:
                known[key] = ledger.add(
                    entry.owner, entry.name, bends=entry.bends, count=entry.size
                )
            own[at : at + entry.size] = known[key] + np.arange(entry.size)
        places.append(own)
    union = Encoding(every[0].settings)
    union.columns = [
        _joined_column(each, shared is not None, union.settings.names[at])
        for at, each in enumerate(_moved_columns(every, places))
    ]
    union.ledger = ledger
    return union, places if shared is None else places[1:]


def _common(every: Sequence[Encoding], shared: Encoding | None) -> list[Entry]:
    """Return the first features, which all have in common."""
    ledgers = [encoding.ledger.entries for encoding in every]
    rows = zip(*ledgers, strict=False)
    begun = [row[0] for row in takewhile(lambda row: len({*row}) == 1, rows)]
    if shared is not None:
        if len(begun) < len(shared.ledger.entries):
            raise ValueError(f"the rankers did not all go on from the prior: {_CURE}")
        return [*shared.ledger.entries]
    return begun


def _entries(encoding: Encoding, first: int) -> Iterator[tuple[int, Entry]]:
    """Yield the features from some entry on, with their places."""
    entries = encoding.ledger.entries
    at = sum(entry.size for entry in entries[:first])
    for entry in entries[first:]:
        yield at, entry
        at += entry.size


# Curves ------------------------------------------------------------------------------------------


def _numbers_of(known: Known | None) -> list[tuple[NumberColumn, float | None]]:
    """Return columns of numbers, those of a time with where its days begin."""
    if isinstance(known, NumberColumn):
        return [(known, None)]
    return [(known.year, None), (known.days, known.first)] if isinstance(known, TimeColumn) else []


def _token(curve: Curve, begin: float | None) -> tuple[Any, ...]:
    numbers = [np.asarray(part, np.float64).tobytes() for part in curve]
    return (*numbers, begin)


def _curve_tokens(encoding: Encoding) -> dict[int, Any]:
    """Return what tells curves apart, by the places of their features."""
    found = dict[int, Any]()
    for column in encoding.columns:
        for known, begin in _numbers_of(column.known):
            if known.curve is not None:
                pieces = range(known.pieces, known.pieces + max(0, len(known.curve.knots) - 1))
                token = _token(known.curve, begin)
                found |= dict.fromkeys([known.line, *pieces, *known.sentinels], token)
    return found


# Columns -----------------------------------------------------------------------------------------


def _moved_columns(every: Sequence[Encoding], places: list[Places]) -> Iterator[list[Settled]]:
    """Yield the states of each column, with the places that features have in the union."""
    parts = [
        [replace(column, known=_moved(column.known, own)) for column in encoding.columns]
        for encoding, own in zip(every, places, strict=True)
    ]
    yield from map(list, zip(*parts, strict=True))


def _moved(known: Any, places: Places) -> Any:
    def to(place: int) -> int:
        return int(places[place]) if place >= 0 else -1

    if isinstance(known, NumberColumn):
        return replace(
            known,
            line=to(known.line),
            pieces=to(known.pieces),
            sentinels=tuple(map(to, known.sentinels)),
            gap=to(known.gap),
            singles={value: to(place) for value, place in known.singles.items()},
        )
    if isinstance(known, WordColumn):
        features = {word: to(place) for word, place in known.features.items()}
        other, buckets = to(known.other), to(known.buckets)
        return replace(known, features=features, other=other, buckets=buckets, gap=to(known.gap))
    if isinstance(known, TimeColumn):
        return replace(
            known,
            year=_moved(known.year, places),
            days=_moved(known.days, places),
            parts=tuple(_moved(part, places) for part in known.parts),
            gap=to(known.gap),
        )
    if isinstance(known, TextColumn):
        return replace(known, slots=to(known.slots), gap=to(known.gap))
    return known


def _joined_column(states: list[Settled], have_parted: bool, name: str) -> Settled:
    """Return one state of a column; the first is the shared one, if they `have_parted` from it."""
    decided = [state for state in states if state.known is not None]
    if not decided:
        return max(states, key=lambda state: state.rows)
    kinds = [state.decision.kind for state in decided]
    if len({*kinds}) > 1:
        if not have_parted:
            raise _decided_apart(name, f"is a {kinds[0]} and a {kinds[-1]}")
        kept = next(state for state in reversed(decided) if state.decision.kind != kinds[0])
        decided = [state for state in decided if state.decision.kind == kept.decision.kind]
    known = [state.known for state in decided]
    return replace(decided[0], known=_joined_known(known, have_parted, name))


def _decided_apart(name: str, how: str) -> ValueError:
    return ValueError(f"column {name!r} {how}, for the rankers decided it apart: {_CURE}")


def _joined_known(known: list[Any], have_parted: bool, name: str) -> Any:
    if isinstance(known[0], WordColumn):
        return _joined_words(known)
    if isinstance(known[0], NumberColumn):
        return _joined_numbers(known, have_parted, name)
    gap = _any_of([each.gap for each in known])
    if isinstance(known[0], TextColumn):
        return replace(known[0], gap=gap, slots=_any_of([each.slots for each in known]))
    if len({each.first for each in known} - {None}) > 1 and not have_parted:
        raise _decided_apart(name, "is a time that begins at different days")
    latest = next((each for each in reversed(known) if each.first is not None), known[0])
    alike = [each for each in known if each.first == latest.first]
    parts = zip(*(each.parts for each in known), strict=True)
    return replace(
        latest,
        gap=gap,
        span=max(each.span for each in alike),
        seen=_seen_by_all(known, have_parted),
        mixed=next((each.mixed for each in reversed(known) if each.mixed is not None), None),
        year=_joined_numbers([each.year for each in known], have_parted, name),
        days=_joined_numbers([each.days for each in alike], have_parted, name),
        parts=tuple(_joined_words([*each]) for each in parts),
    )


def _any_of(places: Sequence[int]) -> int:
    return next((place for place in places if place >= 0), -1)


def _seen_by_all(known: Sequence[NumberColumn] | Sequence[TimeColumn], have_parted: bool) -> int:
    begun = known[0].seen if have_parted else 0
    return begun + sum(each.seen - begun for each in known[have_parted:])


def _joined_numbers(known: Sequence[NumberColumn], have_parted: bool, name: str) -> NumberColumn:
    """Return the column with the latest curve; those before it must be the same."""
    curves = {_token(each.curve, None) for each in known if each.curve is not None}
    if len(curves) > 1 and not have_parted:
        raise _decided_apart(name, "has different knots")
    latest = max(reversed(known), key=lambda each: (each.version, len(each.waiting)))
    seen = _seen_by_all(known, have_parted)
    singles = {value: place for each in known for value, place in each.singles.items()}
    met = Counter[float]()
    for each in known:
        met |= Counter(each.met)  # the most that one has met
    return replace(
        latest,
        gap=_any_of([each.gap for each in known]),
        seen=max(seen, latest.seen),
        needed=max(each.needed for each in known),
        next_look=max(each.next_look for each in known),
        singles=singles,
        met={value: count for value, count in met.items() if value not in singles},
    )


def _joined_words(known: Sequence[WordColumn]) -> WordColumn:
    """Return the column with the words of all: one that two have met once counts as met once."""
    features = {word: place for each in known for word, place in each.features.items()}
    buckets = _any_of([each.buckets for each in known])
    alone = {each.only for each in known} - {""}
    met = frozenset[str]().union(*(each.once for each in known), alone) - features.keys()
    whole = replace(
        known[0],
        features=features,
        once=met if buckets < 0 else frozenset(),
        only="",
        only_met=0,
        other=_any_of([each.other for each in known]),
        buckets=buckets,
        gap=_any_of([each.gap for each in known]),
    )
    nothing_else = not features and whole.other < 0 and buckets < 0 and len(met) == 1
    if alone and nothing_else:
        times = min(2, sum(each.only_met for each in known))
        return replace(whole, once=frozenset(), only=min(alone), only_met=times)
    return whole
