"""Columns of words: a feature for each frequent word, one or a few for all others."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cbrank.features.ledger import Ledger, Reader, Writer
from cbrank.features.table import Words, is_gap_word
from cbrank.texts import coded

BUCKETS = 32  # features that the words beyond the limit share
_ONCE = 4  # times the limit of categories: so many words met only once, and the column is hashed


def without_gap_words(column: Words) -> Words:
    """Return words with gaps for those that stand for one."""
    gaps = [at for at, value in enumerate(column.values) if is_gap_word(value)]
    if not gaps:
        return column
    places = np.arange(-1, len(column.values), dtype=np.int32)
    places = np.append(places[1:], np.int32(-1))
    places[gaps] = -1
    return Words(places[column.codes], column.values, column.declared)


@dataclass(frozen=True, slots=True)
class WordColumn:
    """What is known of a column of words."""

    kind: ClassVar[str] = "word"

    owner: int
    name: str
    most: int  # categories
    tells_gaps: bool = True
    features: Mapping[str, int] = field(default_factory=dict)
    once: frozenset[str] = frozenset()  # words met once
    only: str = ""  # the word of a column that has no other so far
    only_met: int = 0
    other: int = -1
    buckets: int = -1  # the first of them
    gap: int = -1

    def settled(self, column: Words, ledger: Ledger) -> "WordColumn":
        """Return the column after the rows of a block; features are added to the ledger."""
        found, begins, counts = np.unique(column.codes, return_index=True, return_counts=True)
        state = self
        known = bool(self.features or self.once or self.only)
        if found.size and found[0] < 0:
            if self.gap < 0 and self.tells_gaps and (len(found) > 1 or known):
                state = replace(state, gap=ledger.add(self.owner, f"{self.name}: missing"))
            found, begins, counts = found[1:], begins[1:], counts[1:]
        if not found.size:
            return state
        words = {
            column.values[found[at]]: int(counts[at]) for at in np.argsort(begins, kind="stable")
        }
        return state._counted(words, ledger)

    def _counted(self, words: dict[str, int], ledger: Ledger) -> "WordColumn":
        """Return the column after words that were met so many times, in order of appearance."""
        if not self.features and not self.once and self.other < 0 and self.buckets < 0:
            if self.only:
                met = self.only_met + words.pop(self.only, 0)
                words = {self.only: met} | words
            if len(words) == 1:
                [(word, met)] = words.items()
                return replace(self, only=word, only_met=min(met, 2))
        state = replace(self, only="", only_met=0)
        new = {word: met for word, met in words.items() if word not in state.features}
        if self.buckets >= 0 or not new:
            return state
        twice = [word for word, met in new.items() if met > 1 or word in self.once]
        free = max(0, self.most - len(self.features))  # of several encoders, there may be more
        if len(twice) > free:  # the most frequent; the sort keeps the order of those alike
            twice = sorted(twice, key=lambda word: -new[word])
        chosen = {word: ledger.add(self.owner, f"{self.name}={word}") for word in twice[:free]}
        once = (self.once | new.keys()) - chosen.keys()
        state = replace(state, features={**self.features, **chosen}, once=once)
        if len(twice) > free or len(once) > _ONCE * self.most:
            first = ledger.add(self.owner, f"{self.name}: other", count=BUCKETS)
            return replace(state, buckets=first, once=frozenset())
        if once and self.other < 0:
            state = replace(state, other=ledger.add(self.owner, f"{self.name}: other"))
        return state

    def places(self, column: Words) -> NDArray[np.int64]:
        """Return the feature of each row, or -1."""
        found = [self._place(value) for value in column.values]
        return np.array([*found, self.gap], np.int64)[column.codes]

    def place(self, column: Words, *, asked: bool) -> int:
        """Return the feature of the only row, or -1; that of `places`, in a fifth of the time."""
        code = column.codes[0]
        word = column.values[code] if code >= 0 else ""
        is_gap = not word or (not asked and is_gap_word(word))
        return self.gap if is_gap else self._place(word)

    def _place(self, word: str) -> int:
        place = self.features.get(word)
        if place is not None:
            return place
        if self.buckets >= 0:
            return self.buckets + zlib.crc32(coded(word)) % BUCKETS
        return self.other

    def describe(self) -> str:
        """Return a phrase about the categories."""
        if self.only:
            return f"{self.only!r} in all cells so far"
        if not self.features and self.other < 0 and self.buckets < 0:
            return "nothing known so far"
        text = f"{len(self.features)} categor{'y' if len(self.features) == 1 else 'ies'}"
        if self.buckets >= 0:
            return f"{text} and {BUCKETS} buckets for all others"
        return f"{text} and one for all others" if self.other >= 0 else text

    def save(self, out: Writer) -> None:
        """Write all that changes."""
        out.put(self.gap, self.other, self.buckets, self.only_met, len(self.once))
        out.put(len(self.features), *self.features.values())
        out.texts += [self.only, *sorted(self.once), *self.features]

    def load(self, source: Reader) -> "WordColumn":
        """Return the column as it was written."""
        gap, other = source.get_feature(self.owner), source.get_feature(self.owner)
        buckets, only_met = source.get_feature(self.owner, BUCKETS), source.get(0, 2)
        size = source.get()
        places = [source.get_feature(self.owner) for _ in range(source.get())]
        only = source.get_text()
        once = frozenset(source.get_text() for _ in range(size))
        features = {source.get_text(): place for place in places}
        if (
            -1 in places
            or len(once) != size
            or len(features) != len(places)
            or not once.isdisjoint(features)
            or (only_met > 0) != bool(only)
        ):
            raise ValueError(f"its encoder has no sound words of column {self.name!r}")
        return replace(
            self,
            features=features,
            once=once,
            only=only,
            only_met=only_met,
            other=other,
            buckets=buckets,
            gap=gap,
        )
