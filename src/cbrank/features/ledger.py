"""Features in the order in which they came, and the plain arrays that a state is written to."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank.texts import Texts

_MOST_FEATURES = 2**31 - 1  # a place is an int32 in the rows that are encoded
_MOST_ARRAYS = {"ints": np.int64, "floats": np.float64}


class Entry(NamedTuple):
    """Features that came together, with one name and one owner."""

    owner: int  # the input column
    name: str
    bends: bool  # a piece of a curve
    size: int  # how many they are


class Ledger:
    """All features there are: they are added at the end and never leave or move."""

    __slots__ = ("entries", "width")

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.entries = [*entries]
        self.width = sum(entry.size for entry in entries)

    def add(self, owner: int, name: str, *, bends: bool = False, count: int = 1) -> int:
        """Add features and return the place of the first."""
        first, self.width = self.width, self.width + count
        if self.width > _MOST_FEATURES:
            raise ValueError(f"the columns have more than {_MOST_FEATURES} features in all.")
        self.entries.append(Entry(owner, name, bends, count))
        return first

    def owners(self) -> NDArray[np.int64]:
        """Return the input column of each feature."""
        return self._spread([entry.owner for entry in self.entries], np.int64)

    def bends(self) -> NDArray[np.bool_]:
        """Say of each feature whether it is a piece of a curve."""
        return self._spread([entry.bends for entry in self.entries], np.bool_)

    def names(self) -> NDArray[Any]:
        """Return the name of each feature, as an array of objects."""
        names: list[str] = []
        for entry in self.entries:
            if entry.size == 1:
                names.append(entry.name)
            else:
                names.extend(f"{entry.name} #{at}" for at in range(entry.size))
        found = np.empty(len(names), object)
        found[:] = names
        return found

    def _spread(self, values: list[Any], kind: Any) -> NDArray[Any]:
        return np.repeat(np.array(values, kind), [entry.size for entry in self.entries])


class Writer:
    """Numbers and texts of a state, one after the other."""

    def __init__(self) -> None:
        self.ints: list[int] = []
        self.floats: list[float] = []
        self.texts: list[str] = []

    def put(self, *ints: int) -> None:
        """Write whole numbers."""
        self.ints += ints

    def put_floats(self, values: Sequence[float] | NDArray[np.float64]) -> None:
        """Write how many numbers there are, and the numbers."""
        self.ints.append(len(values))
        self.floats += np.asarray(values, np.float64).tolist()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that was written."""
        return {
            "ints": np.array(self.ints, np.int64),
            "floats": np.array(self.floats, np.float64),
            **Texts.of(self.texts).arrays(),
        }


class Reader:
    """Reads what a `Writer` wrote, in the same order; a ValueError if it is not there."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], columns: int) -> None:
        if arrays.keys() != {"ints", "floats", "text", "ends"} or any(
            arrays[name].dtype != kind or arrays[name].ndim != 1
            for name, kind in _MOST_ARRAYS.items()
        ):
            raise ValueError("its encoder has not the arrays that it should have")
        # One by one: as lists they would take several times the memory.
        self._ints = iter(arrays["ints"].data)
        self._texts = iter(Texts.checked({"text": arrays["text"], "ends": arrays["ends"]}))
        self._floats, self._at = arrays["floats"], 0
        self.columns = columns
        self._features: dict[int, Entry] = {}  # of which nobody has said yet that they are its own

    def get(self, low: int = 0, high: int = 2**62) -> int:
        """Return a whole number between two limits."""
        value: int | None = next(self._ints, None)
        if value is None:
            raise ValueError("its encoder is cut off")
        if not low <= value <= high:
            raise ValueError(f"its encoder has {value} where {low} to {high} is possible")
        return value

    def get_floats(self, *, rising: bool = False) -> NDArray[np.float64]:
        """Return finite numbers, as many as were written."""
        begin, self._at = self._at, self._at + self.get()
        if self._at > len(self._floats):
            raise ValueError("its encoder is cut off")
        values = self._floats[begin : self._at].copy()
        if not np.isfinite(values).all() or (rising and not (values[1:] > values[:-1]).all()):
            raise ValueError("its encoder has numbers that make no sense")
        return values

    def get_text(self) -> str:
        """Return a text."""
        text = next(self._texts, None)
        if text is None:
            raise ValueError("its encoder is cut off")
        return text

    def get_feature(self, owner: int, count: int = 1) -> int:
        """Return the place of a feature of a column, which nobody else has; -1 for none."""
        first = self.get(-1)
        self.own(owner, first, count)
        return first

    def own(self, owner: int, first: int, count: int) -> None:
        """Refuse features that are not a column's own; there are none if `first` is -1."""
        place = first
        while first >= 0 and place < first + count:
            entry = self._features.pop(place, None)
            if entry is None or entry.owner != owner or place + entry.size > first + count:
                raise ValueError("its encoder has a feature twice, or one of another column")
            place += entry.size

    def get_ledger(self) -> Ledger:
        """Return the features; those read later must be among them."""
        entries = [
            Entry(
                self.get(0, self.columns - 1),
                self.get_text(),
                bool(self.get(0, 1)),
                self.get(1, 2**16),
            )
            for _ in range(self.get())
        ]
        ledger = Ledger()
        for entry in entries:
            self._features[ledger.width] = entry
            ledger.add(entry.owner, entry.name, bends=entry.bends, count=entry.size)
        return ledger

    def finish(self) -> None:
        """Refuse what nobody has read."""
        left = next(self._ints, None), next(self._texts, None)
        if left != (None, None) or self._at != len(self._floats):
            raise ValueError("its encoder has more numbers or texts than it can have")


def put_ledger(out: Writer, ledger: Ledger) -> None:
    """Write the features."""
    out.put(len(ledger.entries))
    for owner, name, bends, size in ledger.entries:
        out.put(owner, int(bends), size)
        out.texts.append(name)
