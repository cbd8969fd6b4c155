"""The one thread that changes the model: rows are read, learned, stored, and then answered.

All requests that wait go into one transaction. Inside it the writer applies them in order, reads their rows,
learns from them in chunks of a few, and commits. So an answer, and the key under which it is kept, are on the
disk only with rows that the model has learned from, and no row that it cannot learn from is ever stored.
The chunks are stored too: a model that learns from the events again is the same to the bit. Meanwhile scores
come from the model as it was before (`Served.refresh`).
"""

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
from cbrank.serving.errors import Refused, sentence_of
from cbrank.serving.jobs import Batch, Expire, Job, Teach
from cbrank.serving.store import Clock, NotStoredError, Store

if TYPE_CHECKING:
    from cbrank.serving.served import Served

Answer = tuple[bytes, bool] | Refused  # JSON, and whether it was given before

log = logging.getLogger("cbrank.serving")

_MOST_ROWS = 4096  # of one transaction
_TICK = 1.0  # seconds after which the writer looks for rows whose wait has ended
_SNAPSHOT_SECONDS = 600.0  # after which a snapshot is made of whatever there is
_KNOWN_SECONDS = 86400.0  # for which an id is known at most when its row waits no more
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
        What rows that wait may take, together with the ids of earlier ones that are still known.
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


class _UnreadableError(Exception):
    """Rows that the model cannot read, by the jobs that brought them."""

    def __init__(self, refused: dict[int, Refused]) -> None:
        super().__init__()
        self.refused = refused  # by the identity of the job


class _NotLearnedError(Exception):
    """Rows that were read and that learning failed on: the model in memory may be half changed."""

    def __init__(self, batch: Batch) -> None:
        super().__init__()
        self.batch = batch


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
    restore : callable
        Returns the model of the store again.
    """

    def __init__(
        self,
        store: Store,
        served: "Served",
        settings: Settings,
        counts: Counts,
        restore: Callable[[], "Served"],
    ) -> None:
        self.thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self.store, self.served, self.settings, self.counts = store, served, settings, counts
        self._restored = restore
        self.lock = threading.Lock()  # held while the model changes
        self.stopped: str | None = None
        self.is_ahead = False  # whether the model has learned from rows that are not in the store
        self.clock = Clock(float(store.fact("time", 0.0)))
        self._queue: queue.SimpleQueue[Job | Callable[[], None] | None] = queue.SimpleQueue()
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
            del jobs, action  # their memory is counted until they are answered, and no longer

    def _turn(self, jobs: list[Job], action: Callable[[], None] | None, is_last: bool) -> None:
        if jobs:
            self._do(jobs)
        if self._is_due():
            self._do([Expire()])
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
        """Do jobs in one transaction, and answer them."""
        if self.stopped is not None:
            self._answer(jobs, [Refused(503, self.stopped)] * len(jobs))
            return
        try:
            self._answer(jobs, self._transact(jobs))
        except NotStoredError as error:
            sentence = self._give_up(f"the store could not be written ({error})")
            if self.is_ahead:
                self._restore()
            self._answer(jobs, [Refused(503, sentence)] * len(jobs))
        except _UnreadableError as error:
            refused = [job for job in jobs if id(job) in error.refused]
            self._answer(refused, [error.refused[id(job)] for job in refused])
            self._do([job for job in jobs if id(job) not in error.refused])
        except _NotLearnedError as error:
            self._isolate(jobs, error)

    def _transact(self, jobs: list[Job]) -> list[Answer]:
        """Apply jobs, learn what they bring, and store both; return their answers."""
        batch = Batch(self.clock.now(), self.number, self.chunk)
        begin = time.perf_counter()
        with self.store.transaction():
            found = [self._once(job, batch) for job in jobs]
            done = {id(job): job for job in found if isinstance(job, Job)}
            seconds = self._learn(batch) if batch.fresh else 0.0
            bodies = {number: self._kept(job, batch) for number, job in done.items()}
            if bodies:
                self.store.add_events([*batch.events()])
                self.store.set_fact("time", batch.now)
        self.is_ahead = False
        if bodies:
            self.counts.commits += 1
            self.counts.commit_seconds += time.perf_counter() - begin - seconds
        self._count(batch)
        return [
            (bodies[id(one)], one is not job) if isinstance(one, Job) else one
            for job, one in zip(jobs, found, strict=True)
        ]

    def _once(self, job: Job, batch: Batch) -> Job | Answer:
        """Apply a job, unless one with its key was done before: then that one's answer counts."""
        if job.key is not None:
            twin = batch.keyed.get((job.owner, job.key))
            found = self.store.answer(job.owner, job.key) if twin is None else (twin.digest, b"")
            if found is not None and found[0] != job.digest:
                return Refused(409, "another request had this Idempotency-Key: give each its own.")
            if found is not None:
                batch.counts["replays"] += 1
                return (found[1], True) if twin is None else twin
        try:
            job.result = job.apply(self, batch)
        except Refused as refused:
            return refused
        if job.key is not None:
            batch.keyed[job.owner, job.key] = job
        return job

    def _kept(self, job: Job, batch: Batch) -> bytes:
        """Return the answer to a job that was done, kept under its key."""
        answer = msgspec.json.encode(job.result)
        if job.key is not None:
            self.store.keep_answer(job.owner, job.key, job.digest, batch.now, answer)
        return answer

    def _count(self, batch: Batch) -> None:
        """Count what a transaction changed, once it is on the disk."""
        for name, change in batch.counts.items():
            setattr(self.counts, name, getattr(self.counts, name) + change)
        self.number, self.chunk = batch.last, batch.last_chunk
        self.counts.events = self.number
        self._since += len(batch.fresh)
        if batch.fresh:
            self.served.refresh()

    def _answer(self, jobs: Sequence[Job], answers: Sequence[Answer]) -> None:
        pairs = [
            (job.future, answer)
            for job, answer in zip(jobs, answers, strict=True)
            if job.future is not None
        ]
        if pairs:
            pairs[0][0].get_loop().call_soon_threadsafe(_deliver, pairs)

    def _give_up(self, reason: str) -> str:
        """Learn no more: what is on the disk is not known, or there is no room on it."""
        self.stopped = (
            f"Learning has stopped, because {reason}. Scores go on, and nothing that was answered is "
            "lost. Mend the cause, then restart the service."
        )
        log.error("learning stopped", extra={"facts": {"reason": reason}})
        return self.stopped

    # Learning ------------------------------------------------------------------------------------

    def _learn(self, batch: Batch) -> float:
        """Read all rows of a transaction, then learn from them; return the seconds this took.

        Raises
        ------
        _UnreadableError
            If the model cannot read rows; it has learned from none then.
        _NotLearnedError
            If learning failed.
        """
        begin = time.perf_counter()
        chunks = [*batch.chunks()]
        try:
            tables = [self.served.read([fresh.row for fresh in chunk]) for chunk in chunks]
        except ValueError as error:
            if refused := self._unreadable(batch):
                raise _UnreadableError(refused) from None
            raise _NotLearnedError(batch) from error
        self.is_ahead = True
        for chunk, X in zip(chunks, tables, strict=True):
            for column, rows in self.served.unreadable(X, self.served.model.ranker).items():
                batch.counts["cells_unreadable"] += len(rows)
                for at in rows:
                    chunk[at].job.report(chunk[at].at, column)
            labels = [fresh.label for fresh in chunk]
            try:
                with self.lock:
                    self.served.learn(labels, X)
            except Exception as error:
                raise _NotLearnedError(batch) from error
            batch.counts["positives_learned"] += labels.count(self.served.labels[1])
        batch.counts["rows_learned"] += len(batch.fresh)
        return time.perf_counter() - begin

    def _unreadable(self, batch: Batch) -> dict[int, Refused]:
        """Return the refusals of the jobs whose own rows cannot be read."""
        refused = dict[int, Refused]()
        jobs = {id(fresh.job): fresh.job for fresh in batch.fresh}.values()
        for job in [job for job in jobs if job.future is not None]:
            own = [fresh for fresh in batch.fresh if fresh.job is job]
            try:
                self.served.read([fresh.row for fresh in own])
            except ValueError as error:
                refused[id(job)] = Refused(400, sentence_of(error))
        return refused

    def _isolate(self, jobs: list[Job], error: _NotLearnedError) -> None:
        """Do jobs one by one after learning failed on one of them, which is refused alone."""
        fault = type(error.__cause__).__name__  # its text may quote a row, which is not for the log
        log.error("not learned", extra={"facts": {"requests": len(jobs), "reason": fault}})
        self._restore()
        if len(jobs) > 1:
            for job in jobs:
                self._do([job])
        elif isinstance(jobs[0], Expire):
            self._do([jobs[0].with_less(error.batch)])
        else:
            reason = f"The rows could not be learned from ({fault})"
            self._answer(jobs, [Refused(503, f"{reason}; nothing of the request was stored.")])

    def _restore(self) -> None:
        """Go on with the model of the store: the one in memory is ahead of it."""
        try:
            served = self._restored()
        except Exception as error:
            log.exception("the model was not restored")
            if self.stopped is None:
                self._give_up(f"the model could not be restored ({type(error).__name__})")
            return
        with self.lock:
            self.served, self.is_ahead = served, False

    # Inside a transaction ------------------------------------------------------------------------

    def let_go(self, batch: Batch, name: str, row: bytes, state: int) -> None:
        """Let go of a row that waited; its id is known for as long again, at most for a day."""
        self.store.finish([(name, batch.now + self._known_seconds())], state)
        batch.counts.subtract({"waiting": 1, "waiting_bytes": len(row)})

    def _known_seconds(self) -> float:
        return min(self.settings.wait, _KNOWN_SECONDS)

    def make_room(self, batch: Batch, size: int) -> None:
        """Refuse rows for which there is no room, in bytes, among those that wait."""
        most = self.settings.wait_bytes - size
        while (taken := self.counts.waiting_bytes + batch.counts["waiting_bytes"]) > most and (
            forgotten := self.store.forget_ids(batch.now, _FORGOTTEN)
        ):
            batch.counts["waiting_bytes"] -= forgotten
        if taken > most:
            raise Refused(
                429,
                f"{self.counts.waiting:,} rows wait for labels, and with the ids of earlier ones there is "
                "no room for more: send labels, score without remember, or give the service more room.",
                headers={"Retry-After": "60"},
            )

    # After it ------------------------------------------------------------------------------------

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

    def replace(self, given: "Served", *, discard: bool) -> int:
        """Serve another model from now on; return how many rows that waited were discarded.

        Raises
        ------
        Refused
            If rows wait that mean something else to it, and they are not to be discarded.
        """
        if self.stopped is not None:
            raise Refused(503, self.stopped)
        waiting = 0 if given.reads_rows_of(self.served) else self.counts.waiting
        if waiting and not discard:
            raise Refused(
                409,
                f"{waiting:,} rows wait for labels, and the model has other columns or labels than "
                "the one that scored them: send it again when they have their labels, or with "
                "?waiting=discard, which forgets them.",
            )
        self.snapshot(given, discard=waiting > 0)
        if self.stopped is not None:
            raise Refused(503, self.stopped)
        self.counts.discarded += waiting
        return waiting

    def snapshot(self, given: "Served | None" = None, *, discard: bool = False) -> None:
        """Write a snapshot of the model, or of one that takes its place."""
        begin, now = time.perf_counter(), self.clock.now()
        served = given or self.served
        keep = self.settings.keep_events
        known_until = now + self._known_seconds() if discard else None
        try:
            self.store.add_snapshot(
                served.model,
                now,
                given=given is not None,
                keep_events=keep,
                discard_until=known_until,
            )
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
        if discard:
            self._recount()


def _deliver(pairs: list[tuple[Any, Answer]]) -> None:
    for future, answer in pairs:
        if future.done():  # its request was given up
            continue
        if isinstance(answer, Refused):
            future.set_exception(answer)
        else:
            future.set_result(answer)
