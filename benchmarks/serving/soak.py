"""Mixed load for minutes: whether memory, latency and the store stay flat."""

import itertools
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from scipy.special import stdtrit

from benchmarks.serving.sending import Sender, Target
from benchmarks.serving.servers import Server
from benchmarks.serving.traffic import (
    Delay,
    Measured,
    Row,
    Traffic,
    milliseconds,
    open_traffic,
    rows_of,
)

# Rows wait for labels, and ids are known afterwards, for so long: much longer than labels take here,
# and short enough that the store is as full as it gets when the minutes begin to count.
WAIT = "1m"
_WARM = 3  # minutes that do not count: compiled code, caches, ids and snapshots fill up
_MATERIAL = 0.05  # of the median: growth over the whole run that would matter
_DELAY = Delay(5.0, exponential=True)
_CONNECTIONS = 64
RULE = (
    "A line is fitted to the minutes after the third. A number is not flat if its growth over these "
    "minutes, slope times minutes less the half width of the slope's 95% interval, is more than 5% "
    "of its median; latencies also count as flat if they grow by less than 0.2 ms."
)
_LEAST = {"p50_ms": 0.2, "p99_ms": 0.2}  # growth of these, below the clock's and the sender's noise


class Minute(NamedTuple):
    """What was measured in a minute."""

    memory_mib: float
    p50_ms: float
    p99_ms: float
    store_mib: float
    waiting: float


class Soak:
    """Rows over and over, each labelled later.

    Parameters
    ----------
    server : Server
        The server.
    store : path
        Its folder.
    rows : path
        A table.
    label : str
        The column of the label.
    rate : float
        Rows a second.
    minutes : float
        How long.
    """

    def __init__(
        self, server: Server, store: Path, rows: Path, label: str, rate: float, minutes: float
    ) -> None:
        self.server, self.store, self.minutes = server, store, minutes
        self.traffic = Traffic(
            _over_and_over(rows, label), rate=rate, delay=_DELAY, seconds=60 * minutes
        )
        self.found: list[Minute] = []
        self.errors = 0
        self._next = 0.0

    def run(self) -> None:
        """Send the load; print a line for each minute."""
        click.echo(f"minute {' '.join(f'{name:>10}' for name in Minute._fields)}   errors")
        Sender(Target.of(self.server.url), self.traffic, _CONNECTIONS, self._tick).run()
        if len(self.found) < round(self.minutes):
            self._take()

    def _tick(self) -> None:
        now = time.perf_counter()
        self._next = self._next or now + 60.0
        if now >= self._next:
            self._next += 60.0
            self._take()

    def _take(self) -> None:
        measured, self.traffic.measured = self.traffic.measured, Measured()
        times = milliseconds(measured.latencies["score"]) or {"p50": math.nan, "p99": math.nan}
        minute = Minute(
            self.server.memory(),
            times["p50"],
            times["p99"],
            store_size(self.store),
            self.server.metric("cbrank_waiting_labels"),
        )
        self.found.append(minute)
        self.errors += measured.errors.total()
        cells = " ".join(f"{value:10.2f}" for value in minute)
        click.echo(f"{len(self.found):6} {cells} {measured.errors.total():8}")


def store_size(folder: Path) -> float:
    """Return what the files of a store take, in MiB."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def growth(values: list[float]) -> tuple[float, float]:
    """Return the slope of a line through numbers, and the half width of its 95% interval.

    Examples
    --------
    >>> slope, reach = growth([1.0, 2.0, 3.0, 4.1])
    >>> round(slope, 2), round(reach, 2)
    (1.03, 0.07)
    """
    x = np.arange(len(values)) - (len(values) - 1) / 2
    y = np.array(values)
    slope = float(x @ y / (x @ x))
    rest = y - y.mean() - slope * x
    error = math.sqrt(float(rest @ rest) / (len(values) - 2) / float(x @ x))
    return slope, float(stdtrit(len(values) - 2, 0.975)) * error


def is_flat(name: str, values: list[float]) -> bool:
    """Say whether numbers, one a minute, are flat by the rule.

    Examples
    --------
    >>> is_flat("memory_mib", [100.0, 101.0, 100.0, 101.0]), is_flat("memory_mib", [1.0, 2.0, 3.0, 4.1])
    (True, False)
    """
    slope, reach = growth(values)
    grown = (slope - reach) * (len(values) - 1)
    return grown <= max(_MATERIAL * float(np.median(values)), _LEAST.get(name, 0.0))


class Judged(NamedTuple):
    """Whether a number is flat, None if that is not known, and its slope in words."""

    name: str
    flat: bool | None
    slope: str

    def __str__(self) -> str:
        said = {None: "not known", True: "flat", False: "not flat"}[self.flat]
        return f"{self.name}: {said}{self.slope}"


def judged(minutes: list[Minute]) -> Iterator[Judged]:
    """Return a judgement of each number."""
    kept = minutes[_WARM:]
    for at, name in enumerate(Minute._fields):
        values = [minute[at] for minute in kept]
        if len(values) < 3 or not all(map(math.isfinite, values)):
            yield Judged(name, None, "")
            continue
        slope, reach = growth(values)
        said = f", {slope:+.4f} a minute, give or take {reach:.4f}"
        yield Judged(name, is_flat(name, values), said)


def _over_and_over(path: Path, label: str) -> Iterator[Row]:
    with open_traffic([str(path)], label) as stream:
        rows = [*rows_of(stream)]
    return itertools.cycle(rows)
