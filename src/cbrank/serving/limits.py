"""What a request may take: how often, how large, how deep and how long."""

import math
from dataclasses import dataclass

import numpy as np

from cbrank.serving.errors import Refused
from cbrank.serving.memory import MODEL_TIMES

# Times its size that the memory must be for a body: that of rows in JSON takes some thirteen times.
_BODY_TIMES = 16
_MOST_BUCKETS = 10_000  # clients whose rate is known; those at rest are forgotten beyond it


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a request may take.

    Parameters
    ----------
    body : int
        Bytes of a body.
    memory : int
        Bytes that all requests together may take: bodies, rows, queued jobs and answers.
    rows : int
        Rows of a request.
    columns : int
        Columns of a row.
    depth : int
        Arrays and objects of JSON inside each other.
    rate : float
        Requests a second of each token, or of each address if there are no tokens; 0 for any.
    burst : float
        Requests that may come at once after a rest; 0 for twice `rate`.
    connections : int
        Connections, and requests, that are open together; those of one address are three quarters
        at most.
    seconds : float
        Seconds for a request to arrive, for its answer to begin, and for each piece of the answer
        to be taken.

    Examples
    --------
    >>> Limits(rate=5).burst
    10
    """

    body: int = 16 << 20
    memory: int = 1 << 30
    rows: int = 10_000
    columns: int = 10_000
    depth: int = 8
    rate: float = 0
    burst: float = 0
    connections: int = 1024
    seconds: float = 30

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            least = "0 or above" if name in ("rate", "burst") else "above 0"
            if not math.isfinite(value) or value < 0 or (value == 0 and least == "above 0"):
                raise ValueError(f"`{name}` must be {least}: {value} was given.")
        if self.burst == 0:
            object.__setattr__(self, "burst", max(1, 2 * self.rate))
        if self.burst < 1:
            raise ValueError(f"`burst` must be at least 1: {self.burst} was given.")
        if self.memory < _BODY_TIMES * self.body:
            raise ValueError(
                f"`memory` must be at least {_BODY_TIMES} times `max_body`, which is {self.body} bytes, as "
                f"decoded rows take more than their JSON: {self.memory} was given."
            )

    @property
    def model(self) -> int:
        """Bytes of a model file."""
        return self.memory // MODEL_TIMES

    @property
    def connections_of_one(self) -> int:
        """Connections of one address, so that none can keep all others out."""
        return max(1, self.connections * 3 // 4)


# JSON that is not too deep -----------------------------------------------------------------------

_DROPPED = bytes(set(range(256)) - set(b'"[]{}'))
_STEPS = bytes(1 if byte in b"[{" else 255 if byte in b"]}" else 0 for byte in range(256))
_SHORT = 4096  # up to here it is faster to count brackets first


def is_within_depth(body: bytes, depth: int) -> bool:
    """Say whether no part of a JSON text is inside more than `depth` arrays and objects.

    Brackets in strings do not count. In a text that is no JSON, what comes before the first mistake
    is judged right, and no reader goes beyond it.

    Examples
    --------
    >>> is_within_depth(b'{"rows": [{"a": "[[["}]}', 3)
    True
    >>> is_within_depth(b'{"rows": [{"a": [1]}]}', 3)
    False
    """
    if len(body) <= _SHORT and body.count(b"[") + body.count(b"{") <= depth:
        return True
    if b"\\" in body:  # pairs first: the quote after two backslashes ends its string
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    steps = np.frombuffer(body.translate(_STEPS, _DROPPED), dtype=np.int8)
    in_string = np.add.accumulate(steps == 0, dtype=np.uint8) & 1  # 256 is even: it may wrap
    steps = steps * (1 - in_string).view(np.int8)
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0)) <= depth


def refuse_too_deep(body: bytes, depth: int) -> None:
    """Refuse a JSON text that is nested too deep."""
    if not is_within_depth(body, depth):
        raise Refused(400, f"the JSON is nested more than {depth} deep.")


# How often ---------------------------------------------------------------------------------------


class Buckets:
    """Requests a second: a bucket for each client, filled at `rate` and holding `burst`.

    Examples
    --------
    >>> buckets = Buckets(rate=2, burst=1)
    >>> buckets.wait("shop", now=0.0), buckets.wait("shop", now=0.0), buckets.wait("shop", now=0.5)
    (0.0, 0.5, 0.0)
    """

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._full_at = dict[str, float]()  # when the bucket of a client will be full again

    def wait(self, who: str, now: float) -> float:
        """Take one from the bucket and return 0, or return the seconds until there is one."""
        full_at = max(self._full_at.get(who, now), now)
        missing = (full_at - now) * self.rate
        if missing > self.burst - 1 + 1e-9:  # the sums are rounded
            return (missing - self.burst + 1) / self.rate
        if len(self._full_at) >= _MOST_BUCKETS and who not in self._full_at:
            self._full_at = {name: at for name, at in self._full_at.items() if at > now}
        self._full_at[who] = full_at + 1 / self.rate
        return 0.0
