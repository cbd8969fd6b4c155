"""What the service counts: plain numbers, read by the page and by ``/metrics``."""

from bisect import bisect_left
from collections import Counter
from collections.abc import MutableMapping
from dataclasses import dataclass, field

import numpy as np

# Seconds: from a row that is scored alone to a request that nearly ran out of time.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LATEST = 4096  # requests by which latencies are told


class Latency:
    """How long requests of one kind take.

    Attributes
    ----------
    buckets : list of int
        How many took up to the seconds of `BUCKETS`, and how many took longer; not cumulative.
    seconds : float
        All of them added up.

    Examples
    --------
    >>> latency = Latency()
    >>> latency.quantiles()
    (nan, nan, nan)
    >>> for ms in range(101):
    ...     latency.add(ms / 1000)
    >>> [round(seconds, 3) for seconds in latency.quantiles()]
    [0.05, 0.09, 0.099]
    """

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0
        self._latest = np.zeros(_LATEST)
        self._count = 0

    def add(self, seconds: float) -> None:
        """Count a request."""
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds
        self._latest[self._count % _LATEST] = seconds
        self._count += 1

    def quantiles(self) -> tuple[float, float, float]:
        """Return the median, the 90th and the 99th percentile of the latest requests, in seconds."""
        latest = self._latest[: min(self._count, _LATEST)]
        if not latest.size:
            return (np.nan,) * 3
        middle, high, highest = np.quantile(latest, (0.5, 0.9, 0.99)).tolist()
        return middle, high, highest


@dataclass
class Counts:
    """Numbers since the service began, but for those that tell how things are.

    Parameters
    ----------
    refused : mapping of int to int
        Requests that were refused, by their status.
    latencies : dict
        How long requests took, by what was asked for.
    """

    requests: int = 0
    refused: MutableMapping[int, int] = field(default_factory=Counter)
    rows_scored: int = 0
    scores_above: int = 0  # scores above zero, the operating point
    probabilities: float = 0.0  # of all rows scored, added up
    rows_learned: int = 0
    positives_learned: int = 0
    remembered: int = 0
    labels_already: int = 0
    labels_unknown: int = 0
    labels_expired: int = 0
    labels_discarded: int = 0
    discarded: int = 0
    cells_unreadable: int = 0
    defaulted: int = 0
    expired: int = 0
    replays: int = 0
    commits: int = 0
    commit_seconds: float = 0.0
    snapshots: int = 0
    snapshot_seconds: float = 0.0
    # As things are:
    events: int = 0  # the number of the last one
    waiting: int = 0
    waiting_bytes: int = 0
    store_bytes: int = 0
    listeners: int = 0
    memory: int = 0  # bytes that requests have reserved
    memory_limit: int = 0
    latencies: dict[str, Latency] = field(
        default_factory=lambda: {"score": Latency(), "learn": Latency()}
    )
