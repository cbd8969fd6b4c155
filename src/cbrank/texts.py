"""A list of strings in two arrays: a Python list would take some sixty bytes more for each."""

import codecs
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

_BLOCK = 2**12  # strings that exist as Python objects at a time
_BYTES = 2**16  # decoded at a time, to check that they are UTF-8


class Texts(Sequence[str]):
    """A sequence of strings that takes their UTF-8 bytes and eight more for each.

    Parameters
    ----------
    text : ndarray of uint8
        All strings, one after the other, in UTF-8 (lone surrogates are kept).
    ends : ndarray of int64
        The position after each.

    Examples
    --------
    >>> texts = Texts.of(["age", "income", "größe"])
    >>> texts.ends
    array([ 3,  9, 16])
    >>> texts[2], list(texts[:2])
    ('größe', ['age', 'income'])
    """

    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self.text, self.ends = text, ends

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Make the sequence from a list or any iterable of strings."""
        parts, sizes, rest = list[NDArray[np.uint8]](), list[NDArray[np.int64]](), iter(texts)
        while some := [coded(text) for text in islice(rest, _BLOCK)]:
            parts.append(np.frombuffer(b"".join(some), np.uint8))
            sizes.append(np.fromiter(map(len, some), np.int64, len(some)))
        whole = np.concatenate([np.zeros(0, np.uint8), *parts])
        return cls(whole, np.cumsum(np.concatenate([np.zeros(0, np.int64), *sizes])))

    @classmethod
    def checked(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make the sequence from the two arrays, checked: they may come from a forged file."""
        text, ends = (arrays.get(name, np.zeros(0)) for name in ("text", "ends"))
        whole = len(arrays) == 2 and text.ndim == ends.ndim == 1
        if not whole or text.dtype != np.uint8 or ends.dtype != np.int64:
            raise ValueError("its names are not a list of texts")
        last = int(ends[-1]) if ends.size else 0
        if last != text.size or (ends[:1] < 0).any() or (ends[1:] < ends[:-1]).any():
            raise ValueError("its names are not a list of texts")
        decoder = codecs.getincrementaldecoder("utf-8")("surrogatepass")
        try:
            for begin in range(0, text.size, _BYTES):
                decoder.decode(text[begin : begin + _BYTES].tobytes())
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            raise ValueError("its names are not UTF-8") from None
        begins = ends[:-1][ends[:-1] < text.size]
        if (text[begins] & 0xC0 == 0x80).any():
            raise ValueError("its names are cut within a character")
        return cls(text, ends)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the two arrays by name."""
        return {"text": self.text, "ends": self.ends}

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Self: ...

    def __getitem__(self, place: int | slice) -> str | Self:
        if isinstance(place, slice):
            first, last, step = place.indices(len(self))
            assert step == 1
            begin, ends = self._begin(first), self.ends[first : max(first, last)]
            end = int(ends[-1]) if ends.size else begin
            return type(self)(self.text[begin:end], ends - begin)
        at = range(len(self))[place]
        return self.text[self._begin(at) : self.ends[at]].tobytes().decode(*_CODE)

    def __iter__(self) -> Iterator[str]:
        return (letters.decode(*_CODE) for letters in self.coded())

    def coded(self) -> Iterator[bytes]:
        """Yield the texts in UTF-8."""
        for first in range(0, len(self), _BLOCK):
            some = self[first : first + _BLOCK]
            letters, begin = some.text.tobytes(), 0
            for end in some.ends.tolist():
                yield letters[begin:end]
                begin = end

    def __add__(self, other: "Texts") -> Self:
        text = np.concatenate([self.text, other.text])
        return type(self)(text, np.concatenate([self.ends, other.ends + self.text.size]))

    def _begin(self, place: int) -> int:
        return int(self.ends[place - 1]) if place else 0


def has_twins(texts: Sequence[str]) -> bool:
    """Say whether a string occurs twice.

    Examples
    --------
    >>> has_twins(["a", "b", "a"]), has_twins(Texts.of(["a", "b"]))
    (True, False)
    """
    if not isinstance(texts, Texts):
        return len(set(texts)) < len(texts)
    keys = np.fromiter(map(hash, texts.coded()), np.int64, len(texts))
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    alike = np.flatnonzero(keys[1:] == keys[:-1])
    return any(texts[order[at]] == texts[order[at + 1]] for at in alike)


_CODE = "utf-8", "surrogatepass"


def coded(text: str) -> bytes:
    """Return a string in UTF-8; a lone surrogate, which a CSV header may hold, is kept."""
    return text.encode(*_CODE)
