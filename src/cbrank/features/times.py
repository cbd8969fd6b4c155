"""Columns of times: their parts as words, the year and the time since the first as numbers.

Where times come *in order*, as in a log, they say when a row came and not of what kind it is. A new row then
meets buffered rows that are older, those of the rarer label by far the most: any weight of what only ever
rises would learn which label is the rarer one. So the year and the days since the first are left out there,
and a part is used only if it comes round while few rows pass: the buffers then have rows of all its words.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cbrank.features.curves import NumberColumn
from cbrank.features.ledger import Ledger, Reader, Writer
from cbrank.features.table import Times, Words, time_text
from cbrank.features.words import WordColumn

Numbers = NDArray[np.float64]

_DAY = 86400.0
LONGEST = 2.0**55 / 1e6  # seconds: more does not fit into NumPy's microseconds
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_HOURS = tuple(f"{hour}h" for hour in range(24))
PARTS = (("month", _MONTHS), ("weekday", _WEEKDAYS), ("hour", _HOURS))
_CYCLES = (365.25 * _DAY, 7.0 * _DAY, _DAY)  # seconds in which each part comes round
_ROUNDS, _ROWS = 3, 256  # a part of times in order comes round so often, each time in so many rows
_FEW = 32  # times: of fewer, nothing can be said of their order
_AGAINST = 0.1  # share of times that go against the order of the others, at the most
TIME_MARKS = len(PARTS) + 1  # features of a time that are 1: of each part, and of a gap
CALENDAR = {word: at for _, words in PARTS for at, word in enumerate(words)}  # order of the parts


def _parts_of(seconds: Numbers) -> tuple[Numbers, list[Words]]:
    """Return years, and month, weekday and hour as words."""
    gaps = ~(np.abs(seconds) < LONGEST)
    moments = np.where(gaps, 0, seconds).astype("M8[s]")
    years = moments.astype("M8[Y]").astype(np.float64) + 1970.0
    months = moments.astype("M8[M]").astype(np.int64) % 12
    days = moments.astype("M8[D]").astype(np.int64)
    hours = (moments.astype(np.int64) // 3600) % 24
    years[gaps] = np.nan
    found = []
    for codes, (_, values) in zip((months, (days + 3) % 7, hours), PARTS, strict=True):
        found.append(Words(np.where(gaps, -1, codes).astype(np.int32), values))
    return years, found


def _are_mixed(times: Numbers) -> bool | None:
    """Say whether times come in no order; None if all are the same, or nearly.

    Each is compared with the one half a block before, so that it does no harm if neighbours are swapped.
    """
    if times.size < _FEW:
        return True
    half = times.size // 2
    later = times[half:] - times[: times.size - half]
    rises, falls = int((later > 0).sum()), int((later < 0).sum())
    if rises + falls < _FEW // 2:
        return None
    return min(rises, falls) > _AGAINST * (rises + falls)


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """What is known of a column of times."""

    kind: ClassVar[str] = "time"

    owner: int
    name: str
    year: NumberColumn
    days: NumberColumn
    parts: tuple[WordColumn, ...]
    first: float | None = None  # seconds since 1970
    span: float = 0.0  # seconds from there to the farthest
    seen: int = 0  # times
    mixed: bool | None = None  # whether times come in no order, None as long as nothing can be said
    gap: int = -1

    @classmethod
    def new(cls, owner: int, name: str, pieces: int) -> "TimeColumn":
        """Return the column before any row."""
        return cls(
            owner,
            name,
            NumberColumn(owner, f"{name}: year", pieces, pieces, tells_gaps=False),
            NumberColumn(owner, f"{name}: days", pieces, pieces, tells_gaps=False),
            tuple(
                WordColumn(owner, f"{name}: {part}", len(values), tells_gaps=False)
                for part, values in PARTS
            ),
        )

    def settled(self, column: Times, ledger: Ledger) -> "TimeColumn":
        """Return the column after the rows of a block; features are added to the ledger."""
        gaps, state = ~(np.abs(column.seconds) < LONGEST), self
        if not gaps.all():
            state = state._followed(column.seconds[~gaps])
        if gaps.any() and self.gap < 0 and state.first is not None:
            state = replace(state, gap=ledger.add(self.owner, f"{self.name}: missing"))
        years, parts = _parts_of(column.seconds)
        if state.mixed:
            year = self.year.settled(years, ledger)
            state = replace(state, year=year, days=self.days.settled(state.days_of(column), ledger))
        return replace(
            state,
            parts=tuple(
                known.settled(words, ledger) if state.mixed or state._comes_round(cycle) else known
                for known, words, cycle in zip(self.parts, parts, _CYCLES, strict=True)
            ),
        )

    def _followed(self, times: Numbers) -> "TimeColumn":
        """Return the column with what times say of how they come."""
        first = float(times.min()) if self.first is None else self.first
        span = max(self.span, float(np.abs(times - first).max()))
        mixed = _are_mixed(times) if self.mixed is None else self.mixed
        return replace(self, first=first, span=span, seen=self.seen + times.size, mixed=mixed)

    def _comes_round(self, cycle: float) -> bool:
        """Say whether times in order have passed a cycle of so many seconds often, in few rows each."""
        rounds = self.span / cycle
        return rounds >= _ROUNDS and self.seen <= _ROWS * rounds

    def days_of(self, column: Times) -> Numbers:
        """Return the days since the first time that was seen."""
        if self.first is None:
            return np.full(len(column), np.nan)
        days = (column.seconds - self.first) / _DAY
        return np.where(np.abs(column.seconds) < LONGEST, days, np.nan)

    def taken_apart(self, column: Times) -> tuple[Numbers, Numbers, list[NDArray[np.int64]]]:
        """Return years, days, and of each part its feature or -1 for each row."""
        years, parts = _parts_of(column.seconds)
        words = [known.places(part) for known, part in zip(self.parts, parts, strict=True)]
        words.append(np.where(np.isnan(years), self.gap, -1))
        return years, self.days_of(column), words

    def numbers(self, column: Times) -> tuple[Numbers, ...]:
        """Return days, month, weekday and hour as numbers."""
        _, parts = _parts_of(column.seconds)
        return self.days_of(column), *(
            np.where(part.codes < 0, np.nan, part.codes) for part in parts
        )

    def describe(self) -> str:
        """Return a phrase about what varies."""
        if self.first is None:
            return "nothing known so far"
        used = ["year"] if self.year.curve is not None else []
        used += [part for (part, _), known in zip(PARTS, self.parts, strict=True) if known.features]
        if not self.mixed:
            text = ", ".join(used) or "nothing so far"
            return f"{text}, as it comes in order" if self.span else "one value so far"
        text = ", ".join([*used, "days"]) + f" since {time_text(self.first)}"
        return text if self.days.curve is not None else "one value so far"

    def save(self, out: Writer) -> None:
        """Write all that changes."""
        out.put(self.gap, self.seen, -1 if self.mixed is None else int(self.mixed))
        out.put_floats([] if self.first is None else [self.first, self.span])
        self.year.save(out)
        self.days.save(out)
        for part in self.parts:
            part.save(out)

    def load(self, source: Reader) -> "TimeColumn":
        """Return the column as it was written."""
        gap, seen = source.get_feature(self.owner), source.get()
        mixed, reach = source.get(-1, 1), source.get_floats()
        if len(reach) not in (0, 2) or (reach[1:] < 0.0).any():
            raise ValueError(f"its encoder has no sound times of column {self.name!r}")
        return replace(
            self,
            gap=gap,
            first=float(reach[0]) if len(reach) else None,
            span=float(reach[1]) if len(reach) else 0.0,
            seen=seen,
            mixed=None if mixed < 0 else bool(mixed),
            year=self.year.load(source),
            days=self.days.load(source),
            parts=tuple(part.load(source) for part in self.parts),
        )
