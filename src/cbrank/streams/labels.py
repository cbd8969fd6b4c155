"""Two labels, whatever they are called, to 1 and 0."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST = 1000  # characters of a label, so that a model file has room for it
_SHOWN = 5


def canonical(label: Any) -> str:
    """Return a label as text; a number in one form, so that 1, 1.0 and +1 are one; NaN as "".

    Examples
    --------
    >>> canonical("+1.0"), canonical(-1.0), canonical(" yes")
    ('1', '-1', 'yes')
    """
    text = str(label).strip()
    value = _value(text)
    if value is None or not math.isfinite(value):
        return "" if value is not None and math.isnan(value) else text
    return str(int(value)) if value == int(value) else repr(value)


def _value(text: str) -> float | None:
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


class Labels:
    """The two labels of a stream: told, or learned as they come."""

    def __init__(self, positive: str | None = None) -> None:
        self.positive = None if positive is None else canonical(positive)
        self.negative: str | None = None
        _refuse_long(self.known(), "The positive label")

    def known(self) -> list[str]:
        """Return the labels known so far, the positive one last."""
        return [label for label in (self.negative, self.positive) if label is not None]

    def encode(
        self, labels: NDArray[np.float64] | list[str], *, learn: bool, where: str
    ) -> tuple[NDArray[np.int64], list[tuple[int, str]]]:
        """Return 1 and 0, and the rows that have neither label, with a sentence on each."""
        if isinstance(labels, np.ndarray):
            values, places = np.unique(labels, return_inverse=True)
            words: list[Any] = values.tolist()
        else:
            words = list(dict.fromkeys(labels))
            place_of = {word: place for place, word in enumerate(words)}
            places = np.fromiter(map(place_of.__getitem__, labels), np.int64, len(labels))
        known = [canonical(word) for word in words]
        if learn and self.negative is None:
            self._learn(dict.fromkeys(filter(None, known)), where)
        codes = {self.negative: 0, self.positive: 1}
        y = np.array([codes.get(label, -1) for label in known], dtype=np.int64)[places]
        bad = np.flatnonzero(y < 0).tolist()
        return y, [(row, self._complaint(known[places[row]])) for row in bad]

    def _learn(self, found: Iterable[str], where: str) -> None:
        new = [label for label in found if label != self.positive]
        if not new:
            return
        _refuse_long(new, f"{where}: the label")
        if self.positive is not None:
            self.negative = new[0]
            return
        if len(new) == 1:
            raise ValueError(
                f"{where}: the rows to begin with have one label only, {new[0]!r}; "
                "say which label is the positive one."
            )
        if len(new) > 2:
            more = ", ..." if len(new) > _SHOWN else ""
            raise ValueError(
                f"{where}: ranking needs two labels, and there are {len(new)}: "
                f"{', '.join(sorted(new, key=_order)[:_SHOWN])}{more}."
            )
        self.negative, self.positive = sorted(new, key=_order)

    def _complaint(self, label: str) -> str:
        if not label:
            return "the label is missing."
        names = " nor ".join(repr(known) for known in self.known())
        return f"the label {label!r} is neither {names}."


def _refuse_long(labels: Iterable[str], what: str) -> None:
    for label in labels:
        if len(label) > LONGEST:
            raise ValueError(
                f"{what} {label[:20]!r}... has {len(label):,} characters; {LONGEST:,} are enough "
                "for a label."
            )


def _order(label: str) -> tuple[bool, float, str]:
    """Return the key that puts numbers before words, each in their order."""
    value = _value(label)
    return value is None, 0.0 if value is None else value, label
