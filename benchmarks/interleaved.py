"""Peers that learn from the same stream in alternation, chunk by chunk.

Whatever slows the machine down for a while then slows all of them, and their ratios stay right.
"""

import math
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from benchmarks.peers import PEERS
from benchmarks.processes import Process, ProcessFailed, matrix_rate, timed
from benchmarks.workloads import SHORT, Split

# Rows that a throw-away learner takes before the clock starts: enough for CBR's defaults to have a learner that
# forgets, and fewer where a row takes long.
_WARM_UP_ROWS, _FEW = 700, 60


class Chunk(NamedTuple):
    """What was measured while a peer learned from a chunk.

    Attributes
    ----------
    rows : int
        How many it learned from.
    seconds : float
        How long that took.
    memory : float
        How far the process's memory rose, in MiB.
    pairs, updates : int
        CBR's pairs, and those that fired.
    rate : float
        Operations per second of a matrix product just before, for peers that consist of them.
    """

    rows: int
    seconds: float
    memory: float
    pairs: int = 0
    updates: int = 0
    rate: float = 0.0


class EndOfStream(NamedTuple):
    """What is known when all rows are learned: AUC on those held out, difference, batch fit."""

    auc: float
    difference: float
    batch: Chunk | None


class Timer:
    """Measures a peer on the rows of a workload, inside its process."""

    def __init__(self, peer: str, split: Split) -> None:
        self.make, self.split = PEERS[peer].make, split

    def start(self) -> None:
        """Begin the stream with a new learner."""
        self.learner = self.make()

    def warm_up(self) -> None:
        """Let a learner that is thrown away load and compile what it needs."""
        self.start()
        rows = _WARM_UP_ROWS if self.split.X.shape[1] <= SHORT else _FEW
        self.learn(0, min(rows, len(self.split.y)))
        self.learner.gather()
        self.learner.finish()
        self.learner.scores(self.split.X_held[:2])

    def learn(self, begin: int, end: int) -> Chunk:
        """Go on learning from rows `begin` to `end`."""
        rows = self.learner.prepare(self.split.X[begin:end], self.split.y[begin:end])
        pairs, updates = self.learner.counts()
        rate = matrix_rate() if self.learner.matrices else 0.0
        seconds, memory = timed(self.learner.learn, rows)
        all_pairs, all_updates = self.learner.counts()
        learned = self.learner.learned or end - begin
        return Chunk(learned, seconds, memory, all_pairs - pairs, all_updates - updates, rate)

    def finish(self) -> EndOfStream:
        """End the stream."""
        from sklearn.metrics import roc_auc_score  # noqa: PLC0415

        self.learner.gather()
        taken = min(timed(self.learner.finish) for _ in range(self.learner.tries))
        whole = Chunk(len(self.split.y) * self.learner.passes, *taken, *self.learner.counts())
        scores = self.learner.scores(self.split.X_held)
        return EndOfStream(
            auc=math.nan if scores is None else float(roc_auc_score(self.split.y_held, scores)),
            difference=self.learner.difference(),
            batch=whole if self.learner.batch else None,
        )


@dataclass
class Result:
    """What was measured of a peer on a workload: a line of ``results.csv``.

    Attributes
    ----------
    workload, peer : str
        Their names.
    status : {"ok", "not installed", "not for these rows", "failed"}
        How it went; `note` says why.
    rows, held, features, nonzeros : float
        Rows learned from and held out, features, and non-zeros of a row on average.
    auc : float
        On the rows held out.
    cost, least : float
        Microseconds of a row after the lead-in: the median and the least over chunks.
    seconds : float
        The whole stream.
    memory : float
        How far the process's memory rose while it learned, in MiB.
    fired : float
        The share of CBR's pairs that fired after the lead-in.
    difference : float
        Largest relative difference between the plain loop and `CBRanker`.
    chunks : list of list of Chunk
        Every chunk, by repeats.
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
    chunks: list[list[Chunk]] = field(default_factory=list)

    @property
    def timed_chunks(self) -> list[Chunk]:
        """The chunks of all repeats, without the lead-ins."""
        return [chunk for chunks in self.chunks for chunk in chunks[1:]]

    @property
    def costs(self) -> list[float]:
        """Microseconds of a row in each chunk after the lead-in."""
        return [1e6 * chunk.seconds / chunk.rows for chunk in self.timed_chunks]

    def summarise(self) -> None:
        """Fill in what follows from the chunks."""
        self.cost, self.least = median(self.costs), min(self.costs)
        self.seconds = sum(chunk.seconds for chunk in self.chunks[-1])
        self.memory = max(chunk.memory for chunks in self.chunks for chunk in chunks)
        if pairs := sum(chunk.pairs for chunk in self.timed_chunks):
            self.fired = sum(chunk.updates for chunk in self.timed_chunks) / pairs


def time_ratio(slow: Result, fast: Result) -> float:
    """Return the time of whole streams, lead-in and all, divided by that of another peer.

    It is the median over repeats, of which both have as many.
    """

    def times(result: Result) -> list[float]:
        return [sum(chunk.seconds for chunk in chunks) for chunks in result.chunks]

    pairs = zip(times(slow), times(fast), strict=True)
    return median(one / other for one, other in pairs)


def cost_ratio(slow: Result, fast: Result) -> float:
    """Return the cost of a row of one peer divided by that of another.

    It is the median over chunks where both have the same ones, else the ratio of the medians.
    """
    pairs = list(zip(slow.costs, fast.costs, strict=False))
    if not pairs or len(slow.costs) != len(fast.costs):
        return slow.cost / fast.cost
    return median(one / other for one, other in pairs)


def interleave(
    pairs: list[tuple[str, str]], splits: dict[str, Split], ends: list[int], repeats: int
) -> list[Result]:
    """Measure peers on the rows of workloads, each in a fresh process.

    Parameters
    ----------
    pairs : list of tuple of str
        Names of a workload and of a peer.
    splits : dict of str to Split
        The rows of each workload.
    ends : list of int
        Where chunks end; the first chunk is the lead-in, which fills CBR's buffers.
    repeats : int
        How often the whole is measured.

    Returns
    -------
    list of Result
        One for each pair, also for those that could not run.
    """
    with ExitStack() as stack:
        runs = [_PeerRun(workload, peer, splits[workload], stack) for workload, peer in pairs]
        for run in runs:
            run.attempt(run.load, splits[run.result.workload])
        for run in runs:
            run.attempt(run.ready)
        for _ in range(repeats):
            for run in runs:
                run.attempt(run.start)
            for begin, end in zip([0, *ends], ends, strict=False):
                for run in runs:
                    run.attempt(run.learn, begin, end)
            for run in runs:
                run.attempt(run.finish)
    return [run.result for run in runs]


class _PeerRun:
    """A peer's process and its result so far."""

    def __init__(self, workload: str, peer: str, split: Split, stack: ExitStack) -> None:
        n, d = split.X.shape
        self.result = Result(workload, peer, rows=n, held=len(split.y_held), features=d)
        self.result.nonzeros = split.X.nnz / n if split.kind == "sparse" else d
        if split.kind not in PEERS[peer].takes:
            self.result.status, self.result.note = "not for these rows", f"no {split.kind} rows"
        elif missing := PEERS[peer].missing():
            self.result.status, self.result.note = "not installed", missing
        else:
            self.process = stack.enter_context(Process())

    def attempt(self, do: Any, *arguments: Any) -> None:
        """Do something unless the peer cannot run or has failed before."""
        if self.result.status == "ok":
            try:
                do(*arguments)
            except ProcessFailed as reason:
                self.result.status, self.result.note = "failed", str(reason)

    def load(self, split: Split) -> None:
        self.process.make(Timer, self.result.peer, split).ask("warm_up")

    def ready(self) -> None:
        self.process.answer()

    def start(self) -> None:
        self.process.call("start")
        self.result.chunks.append([])

    def learn(self, begin: int, end: int) -> None:
        self.result.chunks[-1].append(self.process.call("learn", begin, end))

    def finish(self) -> None:
        end = self.process.call("finish")
        self.result.auc, self.result.difference = end.auc, end.difference
        if end.batch:  # stands for the chunks, whose rows were only kept; no lead-in before it
            self.result.chunks[-1] = [Chunk(0, 0.0, 0.0), end.batch]
        self.result.summarise()
