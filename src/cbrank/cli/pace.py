"""How learning goes: the numbers that progress shows."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cbrank.streams import Stream
    from cbrank.training import Run


class Pace:
    """Rows, bytes, AUC and time of a run.

    Parameters
    ----------
    run : Run
        The run.
    clock : callable, optional
        What tells the time.
    """

    def __init__(self, run: "Run", clock: Callable[[], float] = time.monotonic) -> None:
        self.run, self.clock = run, clock
        self.began, self.rows_before = clock(), run.progress.rows
        self._first = None if run.progress.position else (self.began, 0)
        self._told = run.progressive_auc()

    def seconds(self) -> float:
        """Return the seconds since the run began in this process."""
        return self.clock() - self.began

    def now(self, stream: "Stream") -> dict[str, Any]:
        """Return how things stand."""
        from cbrank.training.run import auc_since  # noqa: PLC0415

        progress, measured = self.run.progress, self.run.progressive_auc()
        seconds, total = self.seconds(), stream.bytes_total
        return {
            "rows": progress.rows,
            "positives": progress.positives,
            "pass": progress.passes + 1,
            "rows_per_second": round((progress.rows - self.rows_before) / max(seconds, 1e-9)),
            "bytes_read": progress.passes * (total or 0) + stream.bytes_read,
            "bytes_total": total and total * self.run.passes,
            "progressive_auc": _number(measured[1]),
            "progressive_auc_since": _number(auc_since(self._told, measured)[1]),
            "seconds": round(seconds, 3),
            "seconds_left": self._left(stream),
        }

    def told(self) -> None:
        """Measure what comes from here on."""
        self._told = self.run.progressive_auc()

    def _left(self, stream: "Stream") -> float | None:
        """Return the seconds that remain, by the bytes read since the run was taken up."""
        if stream.bytes_total is None:
            return None
        read = self.run.progress.passes * stream.bytes_total + stream.bytes_read
        self._first = self._first or (self.clock(), read)
        began, before = self._first
        if read <= before:
            return None
        speed = (self.clock() - began) / (read - before)
        return round(speed * (stream.bytes_total * self.run.passes - read), 3)


def _number(value: float) -> float | None:
    return None if value != value else round(value, 6)  # noqa: PLR0124


def in_words(facts: dict[str, Any], since: str = "since the last line") -> str:
    """Say how things stand.

    Examples
    --------
    >>> in_words({"rows": 8192, "rows_per_second": 70123, "bytes_read": 2.1e6,
    ...           "bytes_total": 7.5e7, "progressive_auc": 0.81234,
    ...           "progressive_auc_since": None, "seconds_left": 83.4})
    '8,192 rows, 70,123 rows/s, AUC 0.8123, 1:23 left, 2.1 of 75.0 MB'
    """
    parts = [f"{facts['rows']:,} rows", f"{facts['rows_per_second']:,} rows/s"]
    if facts["progressive_auc"] is not None:
        parts.append(f"AUC {facts['progressive_auc']:.4f}")
    if facts["progressive_auc_since"] is not None:
        parts.append(f"{since} {facts['progressive_auc_since']:.4f}")
    if facts["seconds_left"] is not None:
        parts.append(f"{clock_time(facts['seconds_left'])} left")
    total = f" of {facts['bytes_total'] / 1e6:.1f}" if facts["bytes_total"] is not None else ""
    return ", ".join([*parts, f"{facts['bytes_read'] / 1e6:.1f}{total} MB"])


def clock_time(seconds: float) -> str:
    """Return seconds as minutes and seconds, and hours if there are some.

    Examples
    --------
    >>> clock_time(83.4), clock_time(7384)
    ('1:23', '2:03:04')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
