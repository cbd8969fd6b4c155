"""Cells that do not fit what was decided about their column: they count as gaps."""

from collections import Counter
from typing import Any

from cbrank.features.table import Table, Words, in_words
from cbrank.streams import Chunk


class Misfits:
    """The words that stand where numbers or dates do, counted by column.

    Attributes
    ----------
    counts : Counter
        How many there were in each column.

    Examples
    --------
    >>> misfits = Misfits()
    >>> misfits.counts["age"], misfits.first["age"] = 3, "people.csv, line 17: 'old'"
    >>> misfits.sentences()
    ["column 'age': 3 cells fit no number and count as gaps; the first: people.csv, line 17: 'old'."]
    """

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.first: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._places: dict[str, tuple[int, int]] = {}

    def add(self, model: Any, chunk: Chunk, *, strict: bool = False) -> None:
        """Count the misfits of rows of a model of tables; if strict, refuse them."""
        if not isinstance(chunk.X, Table) or not any(
            isinstance(column, Words) for column in chunk.X.columns
        ):
            return
        encoder, before = model.ranker.encoder_, len(self.first)
        found, kinds = encoder.misfits(chunk.X), encoder.kinds_
        for at, own in enumerate(kinds):
            if own not in found:
                continue
            rows = found[own]
            name = chunk.X.names[at]  # which the encoder does not know if it learned without names
            self.counts[name] += len(rows)
            place, row = min((_place(chunk, row), row) for row in rows)
            if name not in self.first or place < self._places[name]:
                words = in_words(chunk.X.columns[at])
                self.first[name] = _where(chunk, place, words.values[words.codes[row]])
                self._kinds[name], self._places[name] = kinds[own], place
        if strict and len(self.first) > before:
            raise ValueError(f"{' '.join(self.sentences())} Without `strict` they would be gaps.")

    def sentences(self) -> list[str]:
        """Say what was found, a sentence for each column."""
        return [
            f"column {name!r}: {self.counts[name]:,} cell{'s fit' if count > 1 else ' fits'} no "
            f"{'date' if self._kinds.get(name) == 'time' else 'number'} and "
            f"count{'' if count > 1 else 's'} as {'gaps' if count > 1 else 'a gap'}; the first: "
            f"{self.first[name]}."
            for name, count in self.counts.items()
        ]


def _place(chunk: Chunk, row: int) -> tuple[int, int]:
    """Return the number of the file that a row comes from, and its line there."""
    file = chunk.position.file if chunk.sources is None else int(chunk.sources[row])
    return file, 0 if chunk.lines is None else int(chunk.lines[row])


def _where(chunk: Chunk, place: tuple[int, int], word: str) -> str:
    shown = repr(word if len(word) <= 24 else f"{word[:24]}...")
    return f"{chunk.position.files[place[0]].name}, line {place[1]}: {shown}"
