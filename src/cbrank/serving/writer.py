"""The one thread that writes: labels to the disk first, then into the model, then the answer.

All that waits goes into one transaction. Its rows are learned in chunks of a few, and which rows made a
chunk is written down with them: a model that is made from events again is the same to the bit. Meanwhile
scores are given by what the model was before (`Served.refresh`).
"""

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from cbrank.serving.counts import Counts
from cbrank.serving.errors import Refused
from cbrank.serving.jobs import Job, Teach, takes
from cbrank.serving.store import EXPIRED, Clock, NotStoredError, Store
from cbrank.streams.objects import Row

if TYPE_CHECKING:
    from cbrank.serving.served import Served

log = logging.getLogger("cbrank.serving")

CHUNK = 64  # rows learned in one call; what looks at the model waits meanwhile, scores do not
_MOST_ROWS = 4096  # of one transaction
_TICK = 1.0  # seconds after which the writer looks for rows whose wait has ended
_ENDED = 1000  # of them that are taken at a time
_SNAPSHOT_SECONDS = 600.0  # after which a snapshot is made of whatever there is
_ANSWER_SECONDS = 86400.0  # for which answers to requests with a key are kept
_ANSWER_BYTES = 2**28  # that they may take
_ANSWER_LOOK = 60.0  # seconds between two looks at them
_TIDY_SECONDS = 5.0  # between two looks for what is too old
_FORGOTTEN = 10_000  # ids that are forgotten at a time, so that nobody waits long


@dataclass(frozen=True)
class Settings:
    """What the service is asked to do.

    Parameters
    ----------
    wait : float
        Seconds for which a row waits for its label.
    wait_bytes : int
        What all rows that wait may take.
    default_label : str, optional
        The label of rows whose wait ends without one; else nothing is learned from them.
    keep_events : bool
        Whether all events are kept, for `replay`.
    snapshot_every : int
        Events after which a snapshot is made.
    """

    wait: float = 7 * 86400.0
    wait_bytes: int = 2**30
    default_label: str | None = None
    keep_events: bool = False
    snapshot_every: int = 10_000


class Writer:
    """The thread that changes the store and the model.

    Parameters
    ----------
    store : Store
        The store, which is this thread's from now on.
    served : Served
        The model after all events of the store.
    settings : Settings
        What is asked.
    counts : Counts
        Where things are counted.
    """

    def __init__(self, store: Store, served: "Served", settings: Settings, counts: Counts) -> None:
        self.thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self.store, self.served, self.settings, self.counts = store, served, settings, counts
        self.lock = threading.Lock()  # held while the model changes
        self.stopped: str | None = None
        self.clock = Clock(float(store.fact("time", 0.0)))
        self._queue: queue.SimpleQueue[Job | Callable[[], None] | None] = queue.SimpleQueue()
        self._fresh: list[tuple[str, Row]] = []
        self._events: list[tuple[int, int, float, str | None, str, bytes]] = []
        self._changed = False
        self._tidied = self._looked = self._snapshot_time = self.clock.now()
        self._recount()
        self._since = store.count_events(store.snapshots()[0].event)

    def _recount(self) -> None:
        """Take numbers from the store."""
        self.number, self.chunk = self.store.last_event()
        counts = self.counts
        counts.waiting, _, counts.waiting_bytes = self.store.waiting()
        counts.events, counts.store_bytes = self.number, self.store.size()

    # From other threads --------------------------------------------------------------------------

    def put(self, job: Job) -> None:
        """Have a job done."""
        self._queue.put(job)

    def call(self, action: Callable[[], None]) -> None:
        """Have something done between two transactions."""
        self._queue.put(action)

    def end(self) -> None:
        """Have the thread end when all that waits is done and a snapshot is made."""
        self._queue.put(None)

    # The thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        """Do what comes until the end."""
        is_last = False
        while not is_last:
            jobs, action, is_last = self._take()
            try:
                self._turn(jobs, action, is_last)
            except Exception as error:  # nobody would be answered any more if the thread ended
                log.exception("the writer failed")
                # What others say may hold rows, and the reason is logged.
                words = f": {error}" if isinstance(error, sqlite3.Error | OSError) else ""
                reason = f"of an internal error ({type(error).__name__}{words})"
                self._answer(jobs, [Refused(503, self._give_up(reason))] * len(jobs))
            self._fresh, self._events = [], []
            del jobs, action  # their memory is counted until they are answered, and no longer

    def _turn(self, jobs: list[Job], action: Callable[[], None] | None, is_last: bool) -> None:
        if jobs or self._is_due():
            self._do(jobs)
        if action is not None:
            action()
        if not is_last:
            self._look_after()
        elif self._since and self.stopped is None:
            self.snapshot()

    def _take(self) -> tuple[list[Job], Callable[[], None] | None, bool]:
        """Return all jobs that wait, up to what is no job."""
        jobs, rows = list[Job](), 0
        while rows < _MOST_ROWS:
            try:
                item = self._queue.get_nowait() if jobs else self._queue.get(timeout=_TICK)
            except queue.Empty:
                break
            if item is None:
                return jobs, None, True
            if not isinstance(item, Job):
                return jobs, item, False
            jobs.append(item)
            rows += len(item.objects) if isinstance(item, Teach) else item.rows
        return jobs, None, False

    def _is_due(self) -> bool:
        """Say whether the wait of a row has ended."""
        if not self.counts.waiting or self.stopped:
            return False
        end = self.store.next_end()
        return end is not None and end < self.clock.now()

    def _do(self, jobs: list[Job]) -> None:
        """Do jobs in one transaction, learn what they bring, and answer them."""
        if self.stopped is not None:
            self._answer(jobs, [Refused(503, self.stopped)] * len(jobs))
            return
        begin = time.perf_counter()
        self._fresh, self._events, self._changed = [], [], False
        answers = list[Any]()
        try:
            with self.store.transaction():
                now = self.clock.now()
                answers += [self._once(job, now) for job in jobs]
                self._expire(now)
                if self._changed:
                    self.store.add_events(self._events)
                    self.store.set_fact("time", now)
        except NotStoredError as error:
            sentence = self._give_up(f"the store could not be written ({error})")
            self._answer(jobs, [Refused(503, sentence)] * len(jobs))
            return
        if self._changed:
            self.counts.commits += 1
            self.counts.commit_seconds += time.perf_counter() - begin
        fault = self._learn() if self._fresh else None
        if fault is not None:
            sentence = f"The rows are stored, but could not be learned from: {fault}"
            answers = [Refused(503, sentence)] * len(jobs)
        self._answer(jobs, answers)

    def _once(self, job: Job, now: float) -> tuple[bytes, bool] | Refused:
        """Do a job, unless one with its key was done before: then that one's answer counts."""
        found = None if job.key is None else self.store.answer(job.owner, job.key)
        if found is not None:
            if found[0] != job.digest:
                return Refused(409, "another request had this Idempotency-Key: give each its own.")
            self.counts.replays += 1
            return found[1], True
        try:
            answer = msgspec.json.encode(job.apply(self, now))
        except Refused as refused:
            return refused
        if job.key is not None:
            self.store.keep_answer(job.owner, job.key, job.digest, now, answer)
        self._changed = True
        return answer, False

    def _answer(self, jobs: list[Job], answers: Sequence[tuple[bytes, bool] | Refused]) -> None:
        if jobs:
            pairs = [(job.future, answer) for job, answer in zip(jobs, answers, strict=True)]
            jobs[0].future.get_loop().call_soon_threadsafe(_deliver, pairs)

    def _give_up(self, reason: str) -> str:
        """Learn no more: what is on the disk is not known, or there is no room on it."""
        self.stopped = (
            f"Learning has stopped, because {reason}. Scores go on, and nothing that was answered is "
            "lost. Mend the cause, then restart the service."
        )
        log.error("learning stopped", extra={"facts": {"reason": reason}})
        return self.stopped

    # Inside a transaction ------------------------------------------------------------------------

    def add_event(self, now: float, name: str | None, label: str, row: Row, blob: bytes) -> None:
        """Learn from a row, when it is on the disk."""
        if len(self._fresh) % CHUNK == 0:
            self.chunk += 1
        self.number += 1
        self._events.append((self.number, self.chunk, now, name, label, blob))
        self._fresh.append((label, row))

    def let_go(self, name: str, row: bytes, now: float, state: int) -> None:
        """Let go of a row that waited; its id is known for as long again."""
        self.store.finish([(name, now + self.settings.wait)], state)
        self.counts.waiting -= 1
        self.counts.waiting_bytes -= len(row)

    def count_in(self, ids: Sequence[str], rows: Sequence[bytes]) -> None:
        """Count rows that begin to wait."""
        self.counts.remembered += len(ids)
        self.counts.waiting += len(ids)
        self.counts.waiting_bytes += sum(map(takes, ids, rows))

    def make_room(self, size: int, now: float) -> None:
        """Make sure that so many bytes may wait, or refuse."""
        most, taken = self.settings.wait_bytes - size, self.counts
        while taken.waiting_bytes > most and (
            forgotten := self.store.forget_ids(now + 2 * self.settings.wait, _FORGOTTEN)
        ):  # ids that have their label
            taken.waiting_bytes -= forgotten
        if taken.waiting_bytes > most:
            raise Refused(
                429,
                f"{self.counts.waiting:,} rows wait for labels, and there is no room for more: send "
                "labels, or score without remember.",
                headers={"Retry-After": "60"},
            )

    def _expire(self, now: float) -> None:
        """Let go of rows whose wait has ended, with the label that this stands for, if any."""
        ended = self.store.ended(now, _ENDED) if self.counts.waiting else []
        default = self.settings.default_label
        for name, row in ended:
            if default is not None:
                self.add_event(now, name, default, msgspec.json.decode(row), row)
            self.let_go(name, row, now, EXPIRED)
        self._changed |= bool(ended)
        if default is None:
            self.counts.expired += len(ended)
        else:
            self.counts.defaulted += len(ended)

    # After it ------------------------------------------------------------------------------------

    def _learn(self) -> str | None:
        """Learn from the rows of a transaction, chunk by chunk; return what went wrong, if anything."""
        faults = list[str]()
        for begin in range(0, len(self._fresh), CHUNK):
            labels, rows = zip(*self._fresh[begin : begin + CHUNK], strict=True)
            with self.lock:
                fault = self.served.learn(labels, rows)
            if fault is not None:
                # The reason may name what is in a row: it is for the client alone.
                log.error("not learned", extra={"facts": {"rows": len(labels)}})
                faults.append(fault)
            self.counts.positives_learned += labels.count(self.served.labels[1])
        self.served.refresh()
        self.counts.rows_learned += len(self._fresh)
        self.counts.events = self.number
        self._since += len(self._fresh)
        return faults[0] if faults else None

    def _look_after(self) -> None:
        """Make a snapshot, and forget what is too old, when it is time."""
        now = self.clock.now()
        if self.stopped is not None:
            return
        late = self._since and now - self._snapshot_time > _SNAPSHOT_SECONDS
        if self._since >= self.settings.snapshot_every or late:
            self.snapshot()
        if now - self._tidied > _TIDY_SECONDS:
            self._tidied = now
            self._tidy(now)

    def _tidy(self, now: float) -> None:
        try:
            with self.store.transaction():
                forgotten = self.store.forget_ids(now, _FORGOTTEN)
                if now - self._looked > _ANSWER_LOOK:  # they have to be added up
                    self._looked = now
                    self.store.forget_answers(now - _ANSWER_SECONDS, _ANSWER_BYTES)
            self.counts.waiting_bytes -= forgotten
            self.counts.store_bytes = self.store.size()
        except NotStoredError as error:
            self._give_up(f"the store could not be written ({error})")

    def snapshot(self, given: "Served | None" = None) -> None:
        """Write a snapshot of the model, or of one that takes its place."""
        begin, now = time.perf_counter(), self.clock.now()
        served = given or self.served
        keep = self.settings.keep_events
        try:
            self.store.add_snapshot(served.model, now, given=given is not None, keep_events=keep)
            if given is not None:  # one more, as of any other model
                self.store.add_snapshot(served.model, now, given=False, keep_events=keep)
        except (OSError, ValueError, NotStoredError) as error:
            self._give_up(f"a snapshot could not be written ({error})")
            return
        self._since, self._snapshot_time = 0, now
        self.counts.snapshots += 1
        self.counts.snapshot_seconds += time.perf_counter() - begin
        self.counts.store_bytes = self.store.size()
        if given is not None:
            with self.lock:
                self.served = given


def _deliver(pairs: list[tuple["asyncio.Future[Any]", Any]]) -> None:
    for future, answer in pairs:
        if future.done():  # its request was given up
            continue
        if isinstance(answer, Refused):
            future.set_exception(answer)
        else:
            future.set_result(answer)
