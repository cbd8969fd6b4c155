"""Requests of a kind, their rates and latencies, and the ratios to what only echoes."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec
import numpy as np

from benchmarks.serving.sending import Answer, Request, Sender, Target
from benchmarks.serving.servers import Server
from benchmarks.serving.traffic import Row, open_traffic, rows_of
from cbrank.features.table import Table
from cbrank.streams import open_stream
from cbrank.training import Model

_CONNECTIONS = 64
_MANY = 1000  # rows of a large request
_AT_ONCE = 32  # rows learned in one call without a service, which takes up to twice as many
_KEPT = 4000  # different rows that are sent, over and over
_QUIET_RATE = 200.0  # single rows a second while the latency of scores is taken
_LEARNING = 0.5  # the share of its highest rate at which learning goes on meanwhile


class Kind(NamedTuple):
    """A kind of request: its path and its bodies."""

    path: str
    bodies: list[bytes]


class Stint:
    """Requests of some kinds for some seconds: a source for `Sender`.

    Parameters
    ----------
    seconds : float
        For how long.
    kinds : list of tuple of Kind and float or None
        What is sent, each kind at so many requests a second; None to send it as fast as answers
        come, which only one kind can be.
    """

    def __init__(self, seconds: float, *kinds: tuple[Kind, float | None]) -> None:
        self.seconds, self.kinds = seconds, kinds
        self.latencies: list[list[float]] = [[] for _ in kinds]
        self._bodies = [itertools.cycle(kind.bodies) for kind, _ in kinds]
        self._sent = [0] * len(kinds)
        self.began = self.ended = 0.0
        self.busy = 0.0  # the share of the time for which the sender itself was at work

    def next(self, now: float) -> Request | float | None:
        """Return the request that has been due for the longest time, or when one will be."""
        self.began = self.began or now
        if now >= self.began + self.seconds:
            return None
        dues = [
            now if rate is None else self.began + sent / rate
            for (_, rate), sent in zip(self.kinds, self._sent, strict=True)
        ]
        at = dues.index(min(dues))
        if dues[at] > now:
            return dues[at]
        self._sent[at] += 1
        return Request(self.kinds[at][0].path, next(self._bodies[at]), dues[at], at)

    def answered(self, request: Request, answer: Answer) -> None:
        """Take an answer; any that is not as asked for ends the measurement."""
        if answer.status != 200:
            said = answer.body[:200].decode(errors="replace")
            raise ValueError(f"{request.path} was answered with {answer.status}: {said}")
        self.latencies[request.about].append(answer.seconds)
        self.ended = time.perf_counter()

    def run(self, server: Server, connections: int = _CONNECTIONS) -> "Stint":
        """Send all of it to a server."""
        busy, began = time.process_time(), time.perf_counter()
        Sender(Target.of(server.url), self, connections).run()
        self.busy = (time.process_time() - busy) / (time.perf_counter() - began)
        return self

    def rate(self) -> float:
        """Return the requests a second of the first kind."""
        return len(self.latencies[0]) / (self.ended - self.began)

    def percentile(self, percent: float) -> float:
        """Return a percentile of the latencies of the first kind, in milliseconds."""
        return float(np.percentile(self.latencies[0], percent, method="higher")) * 1e3


# What is compared ---------------------------------------------------------------------------------


@dataclass
class Compared:
    """Two numbers that were measured in turns.

    Attributes
    ----------
    name : str
        What is measured.
    unit, other : str
        Of both numbers, and what the second one is.
    target : float or None
        What the ratio should reach, or stay below if `most`; None if it only tells.
    most : bool
        Whether the target is an upper limit.
    pairs : list of tuple of float
        The numbers.
    """

    name: str
    unit: str
    other: str
    target: float | None
    most: bool = False
    pairs: list[tuple[float, float]] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return median(one / other for one, other in self.pairs)

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the greatest of the ratios."""
        ratios = [one / other for one, other in self.pairs]
        return min(ratios), max(ratios)

    def reached(self) -> bool:
        """Say whether the target is reached."""
        if self.target is None:
            return False
        return self.ratio <= self.target if self.most else self.ratio >= self.target


class Bench:
    """All measurements of one model.

    Parameters
    ----------
    server, echo : Server
        The server, and what only echoes.
    model, rows : path
        What is served, and a table of rows.
    label : str
        The column of the label.
    seconds : float
        For each measurement, of which there are as many as rounds.
    """

    def __init__(
        self, server: Server, echo: Server, model: Path, rows: Path, label: str, seconds: float
    ) -> None:
        self.server, self.echo, self.seconds = server, echo, seconds
        self.busiest = 0.0  # the largest share of the time for which the sender was at work
        self.model, self.pupil = Model.open(model), Model.open(model)
        with open_traffic([str(rows)], label) as stream:
            kept = [*itertools.islice(rows_of(stream), _KEPT)]
        self.single = Kind("/score", [_body([row.cells]) for row in kept])
        self.many = Kind("/score", [_body([row.cells for row in part]) for part in _parts(kept)])
        self.learning = Kind("/learn", [_body([row.cells | {label: row.label}]) for row in kept])
        with open_stream([str(rows)], columns=self.model.columns, learn=False) as stream:
            chunk = next(stream)
        assert isinstance(chunk.X, Table)
        assert chunk.y is not None
        self.table, self.y = chunk.X, chunk.y
        places = np.arange(len(self.many.bodies) * _MANY) % len(self.table)
        self.parts = [
            self.table.take(places[at : at + _MANY]) for at in range(0, len(places), _MANY)
        ]
        self.dictionaries = [msgspec.json.decode(body)["rows"] for body in self.many.bodies]
        self.compared = [
            Compared(f"single-row score, {_CONNECTIONS} connections", "1/s", "echo", 0.6),
            Compared("single-row score, 1 connection", "1/s", "echo", 0.6),
            Compared(f"durable single-row learn, {_CONNECTIONS} connections", "1/s", "echo", 0.35),
            Compared(f"learning alone, {_AT_ONCE} rows a call", "rows/s", "echo", None),
            Compared(
                "1,000-row score", "rows/s", "decision_function, the same dictionaries", 1 / 3
            ),
            Compared("1,000-row score", "rows/s", "decision_function, a table read before", None),
            Compared("p99 of score, labels at the same rate", "ms", "p99 without", 3.0, most=True),
            Compared("p99 of score, half the most labels", "ms", "p99 without", 3.0, most=True),
        ]

    def warm_up(self) -> None:
        """Let everything be compiled and cached before it counts."""
        for kind in (self.single, self.many, self.learning):
            self.rate(self.server, kind)
            self.rate(self.echo, self._echoed(kind))
        self.own_rate(self.parts)
        self.learning_alone()

    def tasks(self, rounds: int) -> list[str]:
        """Return the names of all measurements."""
        return [f"{one.name}, {at + 1}" for at in range(rounds) for one in self.compared]

    def measure(self, rounds: int) -> Iterator[str]:
        """Measure everything, a round after the other; yield the name of each that is done."""
        done = iter(self.tasks(rounds))
        for _ in range(rounds):
            for compared, measured in zip(self.compared, self._round(), strict=True):
                compared.pairs.append(measured)
                yield next(done)

    def _round(self) -> Iterator[tuple[float, float]]:
        yield self.beside_echo(self.single)
        yield self.beside_echo(self.single, connections=1)
        yield self.beside_echo(self.learning)
        yield self.learning_alone(), self.compared[2].pairs[-1][1]
        many = self.rate(self.server, self.many, 2) * _MANY
        yield many, self.own_rate(self.dictionaries)
        yield many, self.own_rate(self.parts)
        quiet = self.p99()
        yield self.p99(_QUIET_RATE), quiet
        yield self.p99(_LEARNING * median(one for one, _ in self.compared[2].pairs)), quiet

    def beside_echo(self, kind: Kind, connections: int = _CONNECTIONS) -> tuple[float, float]:
        """Return the rates of a request and of its echo."""
        one = self.rate(self.server, kind, connections)
        return one, self.rate(self.echo, self._echoed(kind), connections)

    def rate(self, server: Server, kind: Kind, connections: int = _CONNECTIONS) -> float:
        """Return how many requests a second are answered."""
        stint = Stint(self.seconds, (kind, None)).run(server, connections)
        self.busiest = max(self.busiest, stint.busy)
        return stint.rate()

    def learning_alone(self) -> float:
        """Return the rows a second that a model of its own learns from, without a service."""
        places = itertools.cycle(range(0, len(self.y) - _AT_ONCE + 1, _AT_ONCE))
        began, rows = time.perf_counter(), 0
        for at in places:
            part = slice(at, at + _AT_ONCE)
            self.pupil.learn_rows(self.table.take(part), self.y[part])
            rows += _AT_ONCE
            if (taken := time.perf_counter() - began) > self.seconds:
                break
        return rows / taken

    def own_rate(self, parts: list[Any]) -> float:
        """Return the rows a second of `decision_function`, in calls of as many rows."""
        began, rows = time.perf_counter(), 0
        for part in itertools.cycle(parts):
            self.model.ranker.decision_function(part)
            rows += _MANY
            if (taken := time.perf_counter() - began) > self.seconds:
                break
        return rows / taken

    def p99(self, learning: float = 0.0) -> float:
        """Return the 99th percentile of scores while so many labels a second are learned."""
        seconds = 3 * self.seconds  # a percentile takes more requests than a rate
        kinds = [(self.single, _QUIET_RATE), *([(self.learning, learning)] if learning else [])]
        return Stint(seconds, *kinds).run(self.server).percentile(99)

    def _echoed(self, kind: Kind) -> Kind:
        return Kind("/echo", kind.bodies)


def _body(rows: list[Any]) -> bytes:
    return msgspec.json.encode({"rows": rows})


def _parts(rows: list[Row]) -> list[list[Row]]:
    """Return parts of as many rows as a large request has, over and over if need be."""
    endless = itertools.cycle(rows)
    return [[*itertools.islice(endless, _MANY)] for _ in range(max(1, len(rows) // _MANY))]
