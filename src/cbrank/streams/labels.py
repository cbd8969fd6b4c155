"""The two labels of a stream, numbers or words, as 0 and 1."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

LONGEST = 1000  # characters of a label: the header of a model file must have room for it
_SHOWN, _LETTERS = 5, 40  # labels that a message lists, and letters of each
# Affirmative labels and what is said otherwise, in small letters; 1 beside 2 affirms nothing.
_OPPOSITES = {
    "1": ("0", "-1"),
    "true": ("false",),
    "yes": ("no",),
    "y": ("n",),
    "t": ("f",),
    "positive": ("negative",),
    "pos": ("neg",),
}
_CASES: tuple[Callable[[str], str], ...] = (str.lower, str.capitalize, str.upper)
_VAGUE = 2**53  # from here on several whole numbers are the same double


def canonical(label: Any) -> str:
    """Return a label as text: numbers in one form, so that 1, 1.0 and +1 are one label; NaN as "".

    All digits count, also those that a double has no room for.

    Examples
    --------
    >>> canonical("+1.0"), canonical(-1.0), canonical(" yes"), canonical("9007199254740993")
    ('1', '-1', 'yes', '9007199254740993')
    """
    text = str(label).strip()
    exact = _number(text)
    if exact is None:
        return text
    if exact.is_nan():
        return ""
    value = float(exact)
    if math.isinf(value):
        return text
    if exact == exact.to_integral_value():
        return str(int(exact))
    if exact == Decimal(repr(value)):
        return repr(value)
    sign, digits, power = exact.as_tuple()
    kept = "".join(map(str, digits)).rstrip("0")
    return f"{'-' * sign}{kept}e{int(power) + len(digits) - len(kept)}"


def _number(text: str) -> Decimal | None:
    """Return the number that a text stands for, with all its digits; None if it is none."""
    try:
        float(text)
        return None if "_" in text else Decimal(text)
    except (ValueError, InvalidOperation):  # the latter where an exponent has many digits
        return None


class Labels:
    """The two labels of a stream: given, or learned from its first rows."""

    def __init__(self, positive: str | None = None) -> None:
        self.positive = None if positive is None else canonical(positive)
        self.negative: str | None = None
        self._others: list[str] = []  # labels to begin with, as long as no row is positive
        _refuse_long(self.known(), "The positive label")

    @classmethod
    def of(cls, negative: str, positive: str) -> Self:
        """Return two labels that are known."""
        labels = cls(positive)
        labels.negative = canonical(negative)
        return labels

    def known(self) -> list[str]:
        """Return the labels so far, the positive one last."""
        return [label for label in (self.negative, self.positive) if label is not None]

    def encode(
        self,
        labels: NDArray[np.float64] | list[str],
        *,
        learn: bool,
        where: str,
        gaps: Collection[str] = (),
    ) -> tuple[NDArray[np.int64], list[tuple[int, str]]]:
        """Return the labels as 0, 1 and -1 for neither, with a message on each that is no gap."""
        if isinstance(labels, np.ndarray):
            values, places = np.unique(labels, return_inverse=True)
            words: list[Any] = values.tolist()
        else:
            words = list(dict.fromkeys(labels))
            place_of = {word: place for place, word in enumerate(words)}
            places = np.fromiter(map(place_of.__getitem__, labels), np.int64, len(labels))
        known = ["" if _is_vague(word) else canonical(word) for word in words]
        known = ["" if label.lower() in gaps else label for label in known]
        if learn and self.negative is None:
            counts = Counter[str]()
            for label, count in zip(known, np.bincount(places, minlength=len(known)), strict=True):
                counts[label] += int(count)
            del counts[""]
            self.learn(counts, where)
        if self.positive in known:
            self._others = []
        codes = {self.negative: 0, self.positive: 1}
        y = np.array([codes.get(label, -1) for label in known], dtype=np.int64)[places]
        bad = np.flatnonzero(y < 0).tolist()
        bad = [row for row in bad if not gaps or known[places[row]]]
        return y, [(row, self._complaint(words[places[row]])) for row in bad]

    def learn(self, counts: Mapping[str, int], where: str) -> None:
        """Learn the labels of the first rows, given how many have each."""
        new = [label for label in counts if label != self.positive]
        if not new:
            return
        _refuse_long(new, f"{where}: the label")
        if self.positive is not None:
            self.negative = new[0]
            self._others = [] if self.positive in counts else new
            return
        if len(new) == 1 and new[0].lower() in _OPPOSITES:
            self.positive = new[0]
            return
        if len(new) == 1 and (opposite := _affirmed(new[0])):
            self.negative, self.positive = new[0], opposite
            return
        if len(new) == 1:
            raise ValueError(
                f"{where}: the rows to begin with have one label only, {new[0]!r}; "
                "say which label is the positive one by `positive=...`."
            )
        if len(new) > 2:
            raise ValueError(
                f"{where}: ranking needs two labels, and there are {len(new)}: {_listed(new)}. Make "
                "one label of all that are not the positive one."
            )
        one, other = sorted(new, key=_order)
        is_swapped = _affirms(one, other) or (
            not _affirms(other, one) and counts[one] < counts[other]
        )
        self.negative, self.positive = (other, one) if is_swapped else (one, other)

    def _complaint(self, word: Any) -> str:
        if _is_vague(word):
            return (
                f"the label {word!r} is too large: labels of svmlight text are doubles, which tell "
                "whole numbers apart below 2^53 only."
            )
        label = canonical(word)
        if not label:
            return "the label is missing."
        if len(self._others) > 1:
            return (
                f"the label {label!r} is one too many: no row so far is labelled {self.positive!r} "
                f"(`positive=...`), and there are {_listed(self._others)}."
            )
        names = " nor ".join(repr(known) for known in self.known())
        return f"the label {label!r} is neither {names}."


def _affirms(label: str, other: str) -> bool:
    """Say whether a label is the affirmative one of two."""
    opposites = _OPPOSITES.get(label.lower())
    if opposites is None or other.lower() in _OPPOSITES:
        return False
    return not label.isdecimal() or other in opposites


def _affirmed(label: str) -> str | None:
    """Return the affirmative label that goes with a negative one, written alike; None if none does.

    Examples
    --------
    >>> _affirmed("No"), _affirmed("0"), _affirmed("Oslo")
    ('Yes', '1', None)
    """
    for affirmative, opposites in _OPPOSITES.items():
        for opposite in opposites:
            for case in _CASES:
                if label == case(opposite):
                    return case(affirmative)
    return None


def _refuse_long(labels: Iterable[str], what: str) -> None:
    for label in labels:
        if len(label) > LONGEST:
            raise ValueError(
                f"{what} {label[:20]!r}... has {len(label):,} characters; a label may have "
                f"{LONGEST:,} at most."
            )


def _listed(labels: Iterable[str]) -> str:
    """Return the first few labels, in order."""
    found = sorted(labels, key=_order)
    return ", ".join([*map(_shown, found[:_SHOWN]), *["..."] * (len(found) > _SHOWN)])


def _shown(label: str) -> str:
    """Return a label as messages list it, in one line."""
    return label if len(label) <= _LETTERS and label.isprintable() else repr(label[:_LETTERS])


def _is_vague(word: Any) -> bool:
    """Say whether a label is a double to which several whole numbers are rounded."""
    return isinstance(word, float) and abs(word) >= _VAGUE


def _order(label: str) -> tuple[bool, Decimal, str]:
    """Return the key that puts numbers before words, each in their order."""
    value = _number(label)
    return value is None, value or Decimal(0), label
