"""Categorical columns: which feature a category has."""

import re
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cbrank.texts import Texts, coded

ONEHOT = "onehot"
MOST_BITS = 24

# Limits of a model file: opening a forged one must not take much more memory than it has bytes. A
# `Table` takes some 400 bytes, a listed category some 150.
MOST_TABLES = 2**14
MOST_LISTED = 2**16

_HASH = re.compile(r"hash:(\d{1,2})")
# Categories of a model file that are put into a dictionary, which is fast and takes some 100 bytes
# for each; more of them stay in sorted arrays.
_FEW = 2**15


class Table:
    """The features of one categorical column."""

    __slots__ = ("_places", "bits", "first", "listed", "name", "number", "size")

    def __init__(self, number: int, name: str, how: str | Sequence[str]) -> None:
        self.number, self.name = number, name
        self.bits = self.first = 0
        self._places: dict[str, int] = {}
        self.listed: Sequence[str] = () if isinstance(how, str) else how
        self.size: int | None = len(self.listed)
        if isinstance(how, str):
            found = _HASH.fullmatch(how)
            self.bits = int(found[1]) if found else 0
            if how != ONEHOT and not 1 <= self.bits <= MOST_BITS:
                raise ValueError(
                    f"column {name!r} cannot be made categorical by {how!r}: use onehot, "
                    f"hash:BITS with 1 to {MOST_BITS} bits, or a list of the categories."
                )
            self.size = 2**self.bits if self.bits else None

    def place(self, first: int) -> int:
        """Give the column the features from `first` on; return the first one after them."""
        self.first = first
        self._places = {value: first + number for number, value in enumerate(self.listed)}
        return first + (self.size or 0)

    def find(self, value: str) -> int:
        """Return the feature of a category, or -1 if it has none."""
        if self.bits:
            return self.first + (zlib.crc32(value.encode()) & ((1 << self.bits) - 1))
        return self._places.get(value, -1)

    def add(self, value: str, feature: int) -> None:
        """Assign a feature to a category."""
        self._places[value] = feature

    def feature_name(self, feature: int) -> str:
        """Return the name of one of the features that were there from the start."""
        at = feature - self.first
        return f"{self.name}#{at}" if self.bits else f"{self.name}={self.listed[at]}"


def tables_of(categorical: Mapping[str, str | Sequence[str]]) -> dict[str, Table]:
    """Make a `Table` for each categorical column; refuse more than a model file may hold."""
    listed = sum(len(how) for how in categorical.values() if not isinstance(how, str))
    for count, most, what in (
        (len(categorical), MOST_TABLES, "categorical columns"),
        (listed, MOST_LISTED, "listed categories"),
    ):
        if count > most:
            raise ValueError(f"There are {count:,} {what}; at most {most:,} are allowed.")
    return {
        name: Table(number, name, how) for number, (name, how) in enumerate(categorical.items())
    }


class Met:
    """The categories seen in one-hot columns, in the order of their features.

    Each comes with the number of its column's table. Those of a model file stay in arrays. Up to
    `_FEW` of them are in the dictionaries of their tables too; more are found by binary search in
    a sorted array of their BLAKE2 digests. (With a weak hash such as CRC-32 the categories of a
    forged file could all collide, and every search would be linear.)
    """

    def __init__(self, texts: Texts | None = None, owners: NDArray[np.int32] | None = None) -> None:
        self._texts = Texts.of([]) if texts is None else texts
        self._owners = np.zeros(0, np.int32) if owners is None else owners
        self._new: list[tuple[int, str]] = []
        self._keys = self._order = np.zeros(0, np.int64)
        if len(self._texts) > _FEW:
            self._sort()

    def __len__(self) -> int:
        return len(self._texts) + len(self._new)

    def __getitem__(self, place: int) -> tuple[int, str]:
        if place < len(self._texts):
            return int(self._owners[place]), self._texts[place]
        return self._new[place - len(self._texts)]

    def __iter__(self) -> Iterator[tuple[int, str]]:
        yield from zip(self._owners.tolist(), self._texts, strict=True)
        yield from self._new

    @property
    def is_sorted(self) -> bool:
        """Whether there are categories that only `find` knows, not their tables."""
        return self._keys.size > 0

    def append(self, number: int, value: str) -> None:
        """Add a category of the table with this number."""
        self._new.append((number, value))

    def find(self, number: int, value: str) -> int:
        """Return the place of a category of the model file, or -1."""
        key, keys = _key(number, coded(value)), self._keys.data
        at = bisect_left(keys, key)
        while at < len(keys) and keys[at] == key:
            place = int(self._order[at])
            if self[place] == (number, value):
                return place
            at += 1
        return -1

    def arrays(self) -> tuple[Texts, NDArray[np.int32]]:
        """Return the categories and the numbers of their tables."""
        owners = np.fromiter((number for number, _ in self._new), np.int32, len(self._new))
        texts = self._texts + Texts.of(value for _, value in self._new)
        return texts, np.concatenate([self._owners, owners])

    def _sort(self) -> None:
        pairs = zip(self._owners, self._texts.coded(), strict=True)
        keys = np.fromiter((_key(*pair) for pair in pairs), np.int64, len(self._texts))
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        alike = np.flatnonzero(self._keys[1:] == self._keys[:-1])
        for one, other in pairwise(np.unique([alike, alike + 1]).tolist()):
            if self[int(self._order[one])] == self[int(self._order[other])]:
                raise ValueError("its columns have one category twice")


def _key(number: int, letters: bytes) -> int:
    """Return 64 bits that two categories share only by a rare accident."""
    digest = blake2b(letters, digest_size=8, salt=int(number).to_bytes(4, "little")).digest()
    return int.from_bytes(digest, "little", signed=True)


def with_categories(
    numbers: NDArray[np.float64], picks: NDArray[np.int64], width: int
) -> csr_array:
    """Return sparse rows of the numbers, and of a 1 for each category."""
    places = np.broadcast_to(np.arange(numbers.shape[1]), numbers.shape)
    features = np.hstack([places, picks])
    values = np.hstack([numbers, np.ones(picks.shape)])
    kept = np.hstack([numbers != 0, picks >= 0])
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
    X = csr_array(
        (values[kept], features[kept].astype(np.int32), indptr), shape=(len(numbers), width)
    )
    X.sort_indices()
    return X
