"""Columns of times: their parts as words, the year and the time since the first as numbers."""

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


@dataclass(frozen=True)
class TimeColumn:
    """What is known of a column of times."""

    kind: ClassVar[str] = "time"

    owner: int
    name: str
    year: NumberColumn
    days: NumberColumn
    parts: tuple[WordColumn, ...]
    first: float | None = None  # seconds since 1970
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
        if not gaps.all() and self.first is None:
            state = replace(state, first=float(column.seconds[~gaps].min()))
        if gaps.any() and self.gap < 0 and state.first is not None:
            state = replace(state, gap=ledger.add(self.owner, f"{self.name}: missing"))
        years, parts = _parts_of(column.seconds)
        return replace(
            state,
            year=self.year.settled(years, ledger),
            days=self.days.settled(state.days_of(column), ledger),
            parts=tuple(
                known.settled(words, ledger) for known, words in zip(self.parts, parts, strict=True)
            ),
        )

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

    def describe(self) -> str:
        """Return a phrase about what varies."""
        if self.first is None:
            return "nothing known so far"
        used = ["year"] if self.year.curve is not None else []
        used += [part for (part, _), known in zip(PARTS, self.parts, strict=True) if known.features]
        text = ", ".join([*used, "days"]) + f" since {time_text(self.first)}"
        return text if self.days.curve is not None else "one value so far"

    def save(self, out: Writer) -> None:
        """Write all that changes."""
        out.put(self.gap)
        out.put_floats([] if self.first is None else [self.first])
        self.year.save(out)
        self.days.save(out)
        for part in self.parts:
            part.save(out)

    def load(self, source: Reader) -> "TimeColumn":
        """Return the column as it was written."""
        gap, first = source.get_feature(self.owner), source.get_floats()
        if len(first) > 1:
            raise ValueError(f"its encoder has no sound times of column {self.name!r}")
        return replace(
            self,
            gap=gap,
            first=float(first[0]) if len(first) else None,
            year=self.year.load(source),
            days=self.days.load(source),
            parts=tuple(part.load(source) for part in self.parts),
        )
