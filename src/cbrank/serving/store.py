"""What the service keeps on disk: one SQLite database, and beside it snapshots of the model.

The database has the events (rows with their labels, in the order in which they are learned), the ids of
rows that wait for labels, the answers to requests with a key, and which snapshot holds which events. It is
the authority: a snapshot that it does not name is none. Every change is a transaction that is on the disk
when it ends (WAL mode, synchronous=FULL), and one thread makes them all. `cbrank.serving.database` verifies
what is read.
"""

import contextlib
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from cbrank.modelfile.container import ModelFileError, checksum
from cbrank.serving.database import DATABASE, Database, NotStoredError, StoreError, damaged
from cbrank.training.file_lock import alone

if TYPE_CHECKING:
    from cbrank.training.model import Model

__all__ = ["DATABASE", "Clock", "Event", "NotStoredError", "Snapshot", "Store", "StoreError"]

_SNAPSHOTS = 2  # that are kept, so that a damaged one loses nothing
WAITING, LABELLED, EXPIRED, DISCARDED = 0, 1, 2, 3  # states of an id
_FINISHED = LABELLED, EXPIRED, DISCARDED
ID_BYTES = 100  # what an id takes in the database beside its row


class Event(NamedTuple):
    """A row that was learned from."""

    number: int
    chunk: int  # rows that were learned in one call
    label: str
    row: bytes  # a JSON object


class Snapshot(NamedTuple):
    """A model file of the store."""

    number: int
    event: int  # the last one that it has learned from
    chunk: int
    file: str
    digest: str  # of the file
    given: bool  # whether it came from outside: it does not follow from the one before


class Store:
    """A folder with the database and the snapshots of one service.

    Use `open`. All methods but `open` and `close` are for one thread.
    """

    def __init__(self, folder: Path, database: Database, stack: contextlib.ExitStack):
        self.folder, self._database, self._stack = folder, database, stack

    # Opening -----------------------------------------------------------------------------------

    @classmethod
    def look_into(cls, folder: str | os.PathLike[str]) -> Self:
        """Open a store to read it as it is now, whether a service uses it or not.

        Raises
        ------
        StoreError
            If it is damaged, of another kind or of another version.
        """
        folder = Path(folder)
        _refuse_absent(folder)
        with contextlib.ExitStack() as stack:
            database = stack.enter_context(contextlib.closing(Database(folder / DATABASE)))
            database.verify()
            return cls(folder, database, stack.pop_all())

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, create: bool = False) -> Self:
        """Open a store, alone; a new one if there is none and `create`.

        Raises
        ------
        StoreError
            If it is damaged, of another kind or of another version.
        ValueError
            If another process uses it.
        """
        folder = Path(folder)
        if create:
            folder.mkdir(parents=True, exist_ok=True)
        else:
            _refuse_absent(folder)
        with contextlib.ExitStack() as stack:
            stack.enter_context(alone(folder / DATABASE, "store"))
            if create and not (folder / DATABASE).exists():
                (folder / DATABASE).touch()
            database = stack.enter_context(contextlib.closing(Database(folder / DATABASE)))
            if database.is_empty():
                _refuse_snapshots(folder)
                database.make_tables()
            database.verify()
            database.allow_writing()
            return cls(folder, database, stack.pop_all())

    def close(self) -> None:
        """Close the database and let go of the lock."""
        self._stack.close()

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """Make all changes inside, or none; at the end they are on the disk.

        Raises
        ------
        NotStoredError
            If they are not, as on a full disk.
        """
        return self._database.transaction()

    # Facts -------------------------------------------------------------------------------------

    def fact(self, name: str, default: Any = None) -> Any:
        """Return a fact, or the default, whose type it has."""
        for _, value in self._database.rows("facts", "WHERE name = ?", name):
            if default is not None and type(value) is not type(default):
                raise damaged(self._database.path, f"the fact {name} has another type")
            return value
        return default

    def set_fact(self, name: str, value: float | str) -> None:
        """Keep a number or a text."""
        self._database.drop("facts", "name = ?", name)
        self._database.put("facts", [(name, value)])

    def size(self) -> int:
        """Return how large the database is, with its write-ahead file."""
        paths = [self.folder / DATABASE, self.folder / f"{DATABASE}-wal"]
        return sum(path.stat().st_size for path in paths if path.exists())

    # Events ------------------------------------------------------------------------------------

    def add_events(self, events: Sequence[tuple[int, int, float, str | None, str, bytes]]) -> None:
        """Keep events: number, chunk, time, id, label and row of each."""
        self._database.put("events", events)

    def last_event(self) -> tuple[int, int]:
        """Return the numbers of the last event and of its chunk; zeros before the first."""
        found = self._database.run(
            "SELECT number, chunk FROM events UNION ALL SELECT event, chunk FROM snapshots "
            "ORDER BY 1 DESC, 2 DESC LIMIT 1"
        ).fetchone()
        return (0, 0) if found is None else (int(found[0]), int(found[1]))

    def chunks(self, after: int) -> Iterator[list[Event]]:
        """Yield the events after one of them, by the calls in which they were learned.

        Raises
        ------
        StoreError
            If one is missing, or is not as it was written.
        """
        chunk: list[Event] = []
        for number, group, _, _, label, row in self._database.rows(
            "events", "WHERE number > ? ORDER BY number", after
        ):
            after += 1
            if number != after:
                raise damaged(self._database.path, f"event {after} is missing")
            if chunk and chunk[-1].chunk != group:
                yield chunk
                chunk = []
            chunk.append(Event(number, group, label, row))
        if chunk:
            yield chunk

    def count_events(self, after: int = 0) -> int:
        """Return how many events are kept after one of them."""
        return int(self._database.value("SELECT count(*) FROM events WHERE number > ?", after))

    def first_event(self) -> int:
        """Return the number of the first event that is kept, or of the next one if there is none."""
        found = self._database.value("SELECT min(number) FROM events")
        return self.last_event()[0] + 1 if found is None else int(found)

    # Ids ---------------------------------------------------------------------------------------

    def waiting(self) -> tuple[int, int, int]:
        """Return how many rows wait, how many ids are known, and the bytes that all take."""
        found = self._database.run(
            "SELECT total(state = 0), count(*), total(ifnull(length(row), 0) + length(id)) FROM ids"
        ).fetchone()
        return int(found[0]), int(found[1]), int(found[2]) + ID_BYTES * int(found[1])

    def find_id(self, name: str) -> tuple[int, float, bytes | None] | None:
        """Return the state of an id, when it ends, and its row."""
        for _, state, end, row in self._database.rows("ids", "WHERE id = ?", name):
            return state, end, row
        return None

    def remember(self, rows: Sequence[tuple[str, float, bytes]]) -> None:
        """Keep rows until their labels come or their time ends."""
        self._database.put("ids", [(name, WAITING, end, row) for name, end, row in rows])

    def finish(self, ids: Sequence[tuple[str, float]], state: int) -> None:
        """Let rows go whose labels came or whose time ended; their ids are known for a while."""
        for name, end in ids:
            self._database.drop("ids", "id = ?", name)
            self._database.put("ids", [(name, state, end, None)])

    def _discard(self, until: float) -> None:
        """Let all rows that wait go without a label."""
        names = self._database.run(f"SELECT id FROM ids WHERE state = {WAITING}").fetchall()
        self.finish([(name, until) for (name,) in names], DISCARDED)

    def ended(self, now: float, most: int) -> list[tuple[str, bytes]]:
        """Return ids and rows whose time has ended without a label, the first first."""
        which = "WHERE state = 0 AND ends < ? ORDER BY ends, rowid LIMIT ?"
        return [
            (name, row or b"") for name, _, _, row in self._database.rows("ids", which, now, most)
        ]

    def forget_ids(self, now: float, most: int) -> int:
        """Forget ids of rows that are finished and whose time is over; return the bytes that they took."""
        size = 0
        for state in _FINISHED:
            which = "SELECT rowid FROM ids WHERE state = ? AND ends < ? ORDER BY ends LIMIT ?"
            where, values = f"rowid IN ({which})", (state, now, most)
            query = f"SELECT total(length(id) + {ID_BYTES}) FROM ids WHERE {where}"
            size += int(self._database.value(query, *values))
            self._database.drop("ids", where, *values)
        return size

    def next_end(self) -> float | None:
        """Return when the next row's time ends."""
        found: float | None = self._database.value("SELECT min(ends) FROM ids WHERE state = 0")
        return found

    # Answers -----------------------------------------------------------------------------------

    def answer(self, owner: str, key: str) -> tuple[bytes, bytes] | None:
        """Return the digest of the request with a key, and its answer."""
        for _, _, digest, _, answer in self._database.rows(
            "answers", "WHERE owner = ? AND key = ?", owner, key
        ):
            return digest, answer
        return None

    def keep_answer(self, owner: str, key: str, digest: bytes, now: float, answer: bytes) -> None:
        """Keep the answer to a request with a key that has none yet."""
        self._database.put("answers", [(owner, key, digest, now, answer)])

    def answers(self) -> int:
        """Return the bytes that answers take."""
        query = "SELECT total(length(answer) + length(key) + 100) FROM answers"
        return int(self._database.value(query))

    def forget_answers(self, before: float, most: int) -> int:
        """Forget old answers, and the oldest as long as all take too much; return what is left."""
        self._database.drop("answers", "time < ?", before)
        while (size := self.answers()) > most:
            oldest = "SELECT owner, key FROM answers ORDER BY time LIMIT 1000"
            self._database.drop("answers", f"(owner, key) IN ({oldest})")
        return size

    # Snapshots ---------------------------------------------------------------------------------

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots that may be begun with, the newest first."""
        found = list[Snapshot]()
        for row in self._database.rows("snapshots", "ORDER BY number DESC"):
            number, event, chunk, file, digest, _, given = row
            found.append(Snapshot(number, event, chunk, file, digest, bool(given)))
            if given:  # the one before it is another model
                break
        return found

    def add_snapshot(
        self,
        model: "Model",
        now: float,
        *,
        given: bool,
        keep_events: bool,
        discard_until: float | None = None,
    ) -> None:
        """Keep the model as it is after the last event, and let go of what it makes needless.

        If `discard_until` is given, rows that wait are discarded with it, and their ids stay known until
        then. The snapshot is whole and on the disk before older events go, and older snapshots go only
        when that is in the database itself and no more in its write-ahead file.
        """
        event, chunk = self.last_event()
        file = f"model-{event:012d}-{secrets.token_hex(4)}.cbrank"
        model.write(self.folder / file)
        digest, database = checksum(self.folder / file), self._database
        with self.transaction():
            number = database.value("SELECT ifnull(max(number), 0) + 1 FROM snapshots")
            database.put("snapshots", [(number, event, chunk, file, digest, now, int(given))])
            if discard_until is not None:
                self._discard(discard_until)
            oldest = [one.number for one in self.snapshots()][:_SNAPSHOTS][-1]
            if keep_events:  # from the first model on
                database.drop("snapshots", "given = 0 AND number < ?", oldest)
            else:
                database.drop("snapshots", "number < ?", oldest)
                database.drop("events", "number <= (SELECT min(event) FROM snapshots)")
        try:
            is_busy = database.value("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise NotStoredError(str(error)) from error
        if not is_busy:  # nobody reads what was before
            self.tidy()

    def keep_from_now(self) -> None:
        """Begin to keep all events, from the oldest snapshot that there is."""
        with self.transaction():
            for *row, given in [*self._database.rows("snapshots", "ORDER BY number LIMIT 1")]:
                if not given:
                    self._database.drop("snapshots", "number = ?", row[0])
                    self._database.put("snapshots", [(*row, 1)])

    def forget_after(self, snapshot: Snapshot) -> None:
        """Forget snapshots that are newer than this one, because they are damaged."""
        with self.transaction():
            self._database.drop("snapshots", "number > ?", snapshot.number)

    def tidy(self) -> None:
        """Remove snapshots that the database does not name, and drafts of killed processes."""
        named = {row[3] for row in self._database.rows("snapshots")}
        for path in [*self.folder.glob("model-*.cbrank"), *self.folder.glob(".cbrank-*.tmp")]:
            if path.name not in named:
                path.unlink(missing_ok=True)

    def path(self, snapshot: Snapshot) -> Path:
        """Return the file of a snapshot; a ModelFileError if it is missing or is another one."""
        path = self.folder / Path(snapshot.file).name
        if not path.exists():
            raise ModelFileError(f"{path} is missing.")
        if checksum(path) != snapshot.digest:
            raise ModelFileError(f"{path} is not the file that was written.")
        return path


def _refuse_absent(folder: Path) -> None:
    if not (folder / DATABASE).exists():
        raise StoreError(f"{folder} is no store of a service: it has no {DATABASE}.")


def _refuse_snapshots(folder: Path) -> None:
    if [*folder.glob("model-*.cbrank")]:
        raise StoreError(
            f"{folder} has snapshots, and its {DATABASE} is empty: bring the database back "
            "from a backup, or serve the newest model-*.cbrank with a new store."
        )


class Clock:
    """The time of day, which never goes back: neither within a process nor in a store.

    Examples
    --------
    >>> clock = Clock(last=4e9)
    >>> clock.now() >= 4e9
    True
    """

    def __init__(self, last: float = 0.0) -> None:
        self._begin = max(time.time(), last) - time.monotonic()

    def now(self) -> float:
        """Return seconds since 1970."""
        return self._begin + time.monotonic()
