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
# Years of two digits: with dots, days and months have two as well, since 1.2.30 is a version.
_SHORT = re.compile(r"(?P<day>\d{2})\.(?P<month>\d{2})\.(?P<year>\d{2})" + _CLOCK)
_SHORT_DAY_FIRST = re.compile(r"(?P<day>\d{1,2})/(?P<month>\d{1,2})/(?P<year>\d{2})" + _CLOCK)
_SHORT_MONTH_FIRST = re.compile(r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{2})" + _CLOCK)
_FIRST_YEAR = 69  # of two digits, as in POSIX: 69 is 1969, 68 is 2068
_FIELDS = ("year", "month", "day", "hour", "minute", "second")


def parsed_time(text: str, day_first: bool = False, short_years: bool = False) -> float:
    """Return the seconds since 1970 of a time in words, NaN if it is none.

    The time is that of the clock on the wall: a zone, if there is one, is left out. Whether the day
    is first in 3/4/2020, the caller has to know, and whether years may have two digits, from 1969 to
    2068.

    Examples
    --------
    >>> parsed_time("1970-01-02T01:00"), parsed_time("2.1.1970"), parsed_time("noon")
    (90000.0, 86400.0, nan)
    >>> parsed_time("02.01.70"), parsed_time("02.01.70", short_years=True)
    (nan, 86400.0)
    """
    if len(text) < 6 or not (text[0].isdigit() and text[-1] != "."):
        return np.nan
    forms = [*_FORMS, _DAY_FIRST if day_first else _MONTH_FIRST]
    if short_years:
        forms += [_SHORT, _SHORT_DAY_FIRST if day_first else _SHORT_MONTH_FIRST]
    for form in forms:
        if match := form.fullmatch(text):
            parts = [int(match[name] or 0) for name in _FIELDS]
            if len(match["year"]) == 2:
                parts[0] += 2000 if parts[0] < _FIRST_YEAR else 1900
            fraction = round(float("0." + (match["fraction"] or "00")[1:]) * 1e6)
            try:
                moment = datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]
            except ValueError:
                return np.nan
            return float((moment - _EPOCH + timedelta(microseconds=fraction)).total_seconds())
    return np.nan
