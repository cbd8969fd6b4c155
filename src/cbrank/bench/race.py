"""Peers taking turns over one stream, so that whatever slows the machine slows them all."""

import math
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from cbrank.bench.peers import PEERS
from cbrank.bench.rows import Rows
from cbrank.bench.worker import Contestant, Failed, Process, Turn


@dataclass
class Result:
    """What is known of a peer on a workload: a line of ``results.csv``.

    Attributes
    ----------
    workload, peer : str
        Which.
    status : {"ok", "not installed", "not for these rows", "failed"}
        How it went; `note` says why.
    rows, held, features, nonzeros : float
        Rows of the stream and held out, features, and non-zeros of a row on average.
    auc : float
        On the rows held out, after one pass.
    cost, least : float
        Microseconds of a row after the lead-in: the median and the least over chunks.
    seconds : float
        The whole pass.
    memory : float
        How far the process's memory rose while it learned, in MiB.
    fired : float
        The share of CBR's pairs that fired after the lead-in.
    difference : float
        Largest relative difference between the plain loop and `CBRanker`.
    turns : list of list
        Every chunk, by passes.
    """

    workload: str
    peer: str
    status: str = "ok"
    note: str = ""
    rows: float = math.nan
    held: float = math.nan
    features: float = math.nan
    nonzeros: float = math.nan
    auc: float = math.nan
    cost: float = math.nan
    least: float = math.nan
    seconds: float = math.nan
    memory: float = math.nan
    fired: float = math.nan
    difference: float = math.nan
    turns: list[list[Turn]] = field(default_factory=list)

    @property
    def costs(self) -> list[float]:
        """Microseconds of a row in each chunk after the lead-in."""
        return [1e6 * turn.seconds / turn.rows for turns in self.turns for turn in turns[1:]]


def ratio(slow: Result, fast: Result) -> float:
    """Return how many times the cost of one peer is that of another, chunk by chunk."""
    pairs = list(zip(slow.costs, fast.costs, strict=False))
    if not pairs or len(slow.costs) != len(fast.costs):
        return slow.cost / fast.cost
    return median(one / other for one, other in pairs)


def race(
    workload: str, peers: tuple[str, ...], rows: Rows, cuts: list[int], passes: int
) -> list[Result]:
    """Measure peers on the same rows, each in a fresh process.

    Parameters
    ----------
    workload : str
        Its name.
    peers : tuple of str
        Who takes part.
    rows : Rows
        The stream.
    cuts : list of int
        Where its chunks end; the first chunk is the lead-in, which fills the buffers.
    passes : int
        How often the whole is done.

    Returns
    -------
    list of Result
        One for each peer, also of those that could not run.
    """
    with ExitStack() as stack:
        lanes = [_Lane(workload, peer, rows, stack) for peer in peers]
        for lane in lanes:
            lane.attempt(lane.load, rows)
        for lane in lanes:
            lane.attempt(lane.ready)
        for _ in range(passes):
            for lane in lanes:
                lane.attempt(lane.begin)
            for begin, end in zip([0, *cuts], cuts, strict=False):
                for lane in lanes:
                    lane.attempt(lane.turn, begin, end)
            for lane in lanes:
                lane.attempt(lane.finish)
    return [lane.result for lane in lanes]


class _Lane:
    """A peer's process and what it has told so far."""

    def __init__(self, workload: str, peer: str, rows: Rows, stack: ExitStack) -> None:
        n, d = rows.X.shape
        self.result = Result(workload, peer, rows=n, held=len(rows.y_held), features=d)
        self.result.nonzeros = rows.X.nnz / n if rows.kind == "sparse" else d
        self.process: Process | None = None
        if rows.kind not in PEERS[peer].takes:
            self.result.status, self.result.note = "not for these rows", f"no {rows.kind} rows"
        elif missing := PEERS[peer].missing():
            self.result.status, self.result.note = "not installed", missing
        else:
            self.process = stack.enter_context(Process())

    def attempt(self, do: Any, *arguments: Any) -> None:
        """Do something unless the peer has dropped out."""
        if self.result.status == "ok":
            try:
                do(*arguments)
            except Failed as reason:
                self.result.status, self.result.note = "failed", str(reason)

    def load(self, rows: Rows) -> None:
        self._process.make(Contestant, self.result.peer, rows).ask("warm_up")

    def ready(self) -> None:
        self._process.answer()

    def begin(self) -> None:
        self._process.call("start")
        self.result.turns.append([])

    def turn(self, begin: int, end: int) -> None:
        self.result.turns[-1].append(self._process.call("turn", begin, end))

    def finish(self) -> None:
        end = self._process.call("finish")
        self.result.auc, self.result.difference = end.auc, end.difference
        if end.batch:
            self.result.turns[-1] = [Turn(0, 0.0, 0.0), end.batch]
        _sum_up(self.result)

    @property
    def _process(self) -> Process:
        if self.process is None:
            raise Failed(self.result.note)
        return self.process


def _sum_up(result: Result) -> None:
    counted = [turn for turns in result.turns for turn in turns[1:]]
    result.cost, result.least = median(result.costs), min(result.costs)
    result.seconds = sum(turn.seconds for turn in result.turns[-1])
    result.memory = max(turn.memory for turns in result.turns for turn in turns)
    if pairs := sum(turn.pairs for turn in counted):
        result.fired = sum(turn.updates for turn in counted) / pairs
