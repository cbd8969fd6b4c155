"""Columns of free text: words and pairs of words, hashed into features of a fixed number."""

import re
import zlib
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cbrank.features.ledger import Ledger, Reader, Writer
from cbrank.features.table import Words
from cbrank.texts import coded

SLOTS = 2**16
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class TextColumn:
    """What is known of a column of free text."""

    kind: ClassVar[str] = "text"

    owner: int
    name: str
    slots: int = -1  # the first of them
    gap: int = -1

    def settled(self, column: Words, ledger: Ledger) -> "TextColumn":
        """Return the column after the rows of a block; features are added to the ledger."""
        state = self
        if self.slots < 0:
            first = ledger.add(self.owner, f"{self.name}: words", count=SLOTS)
            state = replace(state, slots=first)
        if self.gap < 0 and (column.codes < 0).any():
            state = replace(state, gap=ledger.add(self.owner, f"{self.name}: missing"))
        return state

    def entries(
        self, column: Words
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return rows, features and values of all words and pairs of words."""
        hashed = [_slots(value) for value in column.values]
        texts = column.codes[column.codes >= 0]
        sizes = np.array([len(slots) for slots in hashed], np.int64)
        rows = np.repeat(np.flatnonzero(column.codes >= 0), sizes[texts])
        if not len(rows):
            return rows, rows, np.zeros(0)
        features = np.concatenate([hashed[text] for text in texts]) + self.slots
        return rows, features, 1.0 / np.sqrt(np.repeat(sizes[texts], sizes[texts]))

    def describe(self) -> str:
        """Return a phrase about the features."""
        return f"words and pairs of words in {SLOTS} features"

    def save(self, out: Writer) -> None:
        """Write all that changes."""
        out.put(self.slots, self.gap)

    def load(self, source: Reader) -> "TextColumn":
        """Return the column as it was written."""
        slots = source.get_feature(self.owner, SLOTS)
        return replace(self, slots=slots, gap=source.get_feature(self.owner))


def _slots(text: str) -> NDArray[np.int64]:
    """Return the different places of the words and pairs of words of a text, in order."""
    found = set[int]()
    before = b""
    for token in _TOKEN.findall(text.lower()):
        word = coded(token)
        found.add(zlib.crc32(word) % SLOTS)
        if before:
            found.add(zlib.crc32(before + b" " + word) % SLOTS)
        before = word
    return np.array(sorted(found), np.int64)
