"""Times in words."""

import re
from datetime import UTC, datetime, timedelta

import numpy as np

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK = (
    r"(?:[T ]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?P<fraction>[.,]\d+)?)?"
    r"\s*(?:Z|UTC|[+-]\d{2}:?\d{2}(?::?\d{2})?)?)?"
)
_FORMS = (
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})" + _CLOCK),
    re.compile(r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})" + _CLOCK),
    re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})" + _CLOCK),
)
_DAY_FIRST = re.compile(r"(?P<day>\d{1,2})/(?P<month>\d{1,2})/(?P<year>\d{4})" + _CLOCK)
_MONTH_FIRST = re.compile(r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})" + _CLOCK)
_FIELDS = ("year", "month", "day", "hour", "minute", "second")


def parsed_time(text: str, day_first: bool = False) -> float:
    """Return the seconds since 1970 of a time in words, NaN if it is none.

    The time is that of the clock on the wall: a zone, if there is one, is left out. Whether the day
    is first in 3/4/2020, the caller has to know.

    Examples
    --------
    >>> parsed_time("1970-01-02T01:00"), parsed_time("2.1.1970"), parsed_time("noon")
    (90000.0, 86400.0, nan)
    """
    if len(text) < 8 or not (text[0].isdigit() and text[-1] != "."):
        return np.nan
    for form in (*_FORMS, _DAY_FIRST if day_first else _MONTH_FIRST):
        if match := form.fullmatch(text):
            parts = [int(match[name] or 0) for name in _FIELDS]
            fraction = round(float("0." + (match["fraction"] or "00")[1:]) * 1e6)
            try:
                moment = datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]
            except ValueError:
                return np.nan
            return float((moment - _EPOCH + timedelta(microseconds=fraction)).total_seconds())
    return np.nan
