"""What the service keeps on disk: one SQLite database, and beside it snapshots of the model.

The database has the events (rows with their labels, in the order in which they are learned), the ids of
rows that wait for labels, the answers to requests with a key, and which snapshot holds which events. It is
the authority: a snapshot that it does not name is none. Every change is a transaction that is on the disk
when it ends (WAL mode, synchronous=FULL), and one thread makes them all.
"""

import contextlib
import os
import secrets
import sqlite3
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from cbrank.modelfile.container import ModelFileError, read
from cbrank.training.file_lock import alone

if TYPE_CHECKING:
    from cbrank.training.model import Model

DATABASE = "store.db"
_FORMAT = 1
_APPLICATION = 0x6362726B  # "cbrk": tells our databases from others
_SNAPSHOTS = 2  # that are kept, so that a damaged one loses nothing
WAITING, LABELLED, EXPIRED, DISCARDED = 0, 1, 2, 3  # states of an id
ID_BYTES = 100  # what an id takes in the database beside its row

_SCHEMA = f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE events (
    number INTEGER PRIMARY KEY, chunk INTEGER NOT NULL, time REAL NOT NULL,
    id TEXT, label TEXT NOT NULL, row BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE ids (
    id TEXT PRIMARY KEY, state INTEGER NOT NULL, ends REAL NOT NULL, row BLOB,
    crc INTEGER NOT NULL);
CREATE INDEX ids_by_end ON ids (state, ends);
CREATE TABLE answers (
    owner TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL, time REAL NOT NULL,
    answer BLOB NOT NULL, PRIMARY KEY (owner, key)) WITHOUT ROWID;
CREATE INDEX answers_by_time ON answers (time);
CREATE TABLE snapshots (
    number INTEGER PRIMARY KEY, event INTEGER NOT NULL, chunk INTEGER NOT NULL, file TEXT NOT NULL,
    time REAL NOT NULL, given INTEGER NOT NULL);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_FORMAT};
"""


class StoreError(ValueError):
    """A store that cannot be used; the sentence says what to do."""


class NotStoredError(Exception):
    """A transaction that did not reach the disk."""


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
    given: bool  # whether it came from outside: it does not follow from the one before


class Store:
    """A folder with the database and the snapshots of one service.

    Use `open`. All methods but `open` and `close` are for one thread.
    """

    def __init__(self, folder: Path, database: sqlite3.Connection, lock: contextlib.ExitStack):
        self.folder, self._database, self._lock = folder, database, lock
        self._run = database.execute

    # Opening -----------------------------------------------------------------------------------

    @classmethod
    def look_into(cls, folder: str | os.PathLike[str]) -> Self:
        """Open a store to read it, whether a service uses it or not."""
        path = Path(folder) / DATABASE
        if not path.exists():
            raise StoreError(f"{folder} is no store of a service: it has no {DATABASE}.")
        store = cls(Path(folder), _connected(path), contextlib.ExitStack())
        store._lock.enter_context(contextlib.closing(store._database))
        try:
            store._run("PRAGMA query_only = ON")
            store._refuse_others(path)
            store._run("BEGIN")
        except sqlite3.Error as error:
            store.close()
            raise damaged(path, error) from error
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, create: bool = False) -> Self:
        """Open a store, alone; a new one if there is none and `create`.

        Raises
        ------
        StoreError
            If it is damaged, of another kind or of a later version.
        ValueError
            If another process uses it.
        """
        folder = Path(folder)
        path = folder / DATABASE
        if create:
            folder.mkdir(parents=True, exist_ok=True)
        if not path.exists() and not create:
            raise StoreError(f"{folder} is no store of a service: it has no {DATABASE}.")
        with contextlib.ExitStack() as stack:
            stack.enter_context(alone(path, "store"))
            database = stack.enter_context(contextlib.closing(_connected(path)))
            store = cls(folder, database, stack.pop_all())
        try:
            store._prepare(path)
        except BaseException:
            store.close()
            raise
        return store

    def _prepare(self, path: Path) -> None:
        try:
            if not self._value("SELECT count(*) FROM sqlite_schema"):
                self._begin()
            self._refuse_others(path)
            self._run("PRAGMA journal_mode = WAL")
            self._run("PRAGMA synchronous = FULL")
            if (found := self._value("PRAGMA quick_check(1)")) != "ok":
                raise sqlite3.DatabaseError(str(found).splitlines()[-1])
        except sqlite3.Error as error:
            raise damaged(path, error) from error

    def _begin(self) -> None:
        """Make the tables of a new store."""
        if [*self.folder.glob("model-*.cbrank")]:
            raise StoreError(
                f"{self.folder} has snapshots, and its {DATABASE} is empty: bring the database back "
                "from a backup, or serve the newest model-*.cbrank with a new store."
            )
        self._run("PRAGMA journal_mode = WAL")
        self._run("BEGIN IMMEDIATE")
        for statement in filter(str.strip, _SCHEMA.split(";")):
            self._run(statement)
        self._run("COMMIT")
        self._run("PRAGMA wal_checkpoint(TRUNCATE)")

    def _refuse_others(self, path: Path) -> None:
        if self._value("PRAGMA application_id") != _APPLICATION:
            raise StoreError(f"{path} is a database, but not that of a service.")
        if (found := self._value("PRAGMA user_version")) > _FORMAT:
            raise StoreError(
                f"{path} was written by a later version of cbrank (format {found}, this one knows "
                f"{_FORMAT}): update cbrank."
            )

    def close(self) -> None:
        """Close the database and let go of the lock."""
        self._lock.close()

    # Transactions ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes inside, or none; at the end they are on the disk.

        Raises
        ------
        NotStoredError
            If they are not, as on a full disk.
        """
        try:
            self._run("BEGIN IMMEDIATE")
            yield
            self._run("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise NotStoredError(str(error)) from error
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._database.in_transaction:
                self._run("ROLLBACK")

    def _value(self, statement: str, *values: Any) -> Any:
        row = self._run(statement, values).fetchone()
        return None if row is None else row[0]

    # Facts -------------------------------------------------------------------------------------

    def fact(self, name: str, default: Any = None) -> Any:
        """Return a fact, or the default."""
        row = self._run("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return default if row is None else row[0]

    def set_fact(self, name: str, value: Any) -> None:
        """Keep a number or a text."""
        self._run("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def size(self) -> int:
        """Return how large the database is, with its write-ahead file."""
        paths = [self.folder / DATABASE, self.folder / f"{DATABASE}-wal"]
        return sum(path.stat().st_size for path in paths if path.exists())

    # Events ------------------------------------------------------------------------------------

    def add_events(self, events: Sequence[tuple[int, int, float, str | None, str, bytes]]) -> None:
        """Keep events: number, chunk, time, id, label and row of each."""
        self._database.executemany(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((*event, _crc(event[0], event[1], event[4], event[5])) for event in events),
        )

    def last_event(self) -> tuple[int, int]:
        """Return the numbers of the last event and of its chunk; zeros before the first."""
        found = self._run(
            "SELECT number, chunk FROM events UNION ALL SELECT event, chunk FROM snapshots "
            "ORDER BY 1 DESC, 2 DESC LIMIT 1"
        ).fetchone()
        return (0, 0) if found is None else (int(found[0]), int(found[1]))

    def chunks(self, after: int) -> Iterator[list[Event]]:
        """Yield the events after one of them, by the calls in which they were learned."""
        chunk: list[Event] = []
        rows = self._run(
            "SELECT number, chunk, label, row, crc FROM events WHERE number > ? ORDER BY number",
            (after,),
        )
        for *found, crc in rows:
            event = Event(*found)
            if _crc(*event) != crc:
                error = ValueError(f"event {event.number} is not as it was written")
                raise damaged(self.folder / DATABASE, error)
            if chunk and chunk[-1].chunk != event.chunk:
                yield chunk
                chunk = []
            chunk.append(event)
        if chunk:
            yield chunk

    def count_events(self, after: int = 0) -> int:
        """Return how many events are kept after one of them."""
        return int(self._value("SELECT count(*) FROM events WHERE number > ?", after))

    # Ids ---------------------------------------------------------------------------------------

    def waiting(self) -> tuple[int, int, int]:
        """Return how many rows wait, how many ids are known, and the bytes that all take."""
        found = self._run(
            "SELECT total(state = 0), count(*), total(ifnull(length(row), 0) + length(id)) FROM ids"
        ).fetchone()
        return int(found[0]), int(found[1]), int(found[2]) + ID_BYTES * int(found[1])

    def find_id(self, name: str) -> tuple[int, float, bytes | None] | None:
        """Return the state of an id, when it ends, and its row."""
        found = self._run("SELECT state, ends, row, crc FROM ids WHERE id = ?", (name,)).fetchone()
        if found is None:
            return None
        state, end, row, crc = found
        return int(state), float(end), _intact(name, row, crc)

    def remember(self, rows: Sequence[tuple[str, float, bytes]]) -> None:
        """Keep rows until their labels come or their time ends."""
        self._database.executemany(
            "INSERT INTO ids VALUES (?, 0, ?, ?, ?)",
            ((name, end, row, _crc(name, row)) for name, end, row in rows),
        )

    def finish(self, ids: Sequence[tuple[str, float]], state: int) -> None:
        """Let rows go whose labels came or whose time ended; their ids are known for a while."""
        self._database.executemany(
            f"UPDATE ids SET state = {state:d}, ends = ?, row = NULL WHERE id = ?",
            ((end, name) for name, end in ids),
        )

    def _discard(self, until: float) -> None:
        """Let all rows that wait go without a label."""
        self._run(
            f"UPDATE ids SET state = {DISCARDED}, ends = ?, row = NULL WHERE state = {WAITING}",
            (until,),
        )

    def ended(self, now: float, most: int) -> list[tuple[str, bytes]]:
        """Return ids and rows whose time has ended without a label, the first first."""
        rows = self._run(
            "SELECT id, row, crc FROM ids WHERE state = 0 AND ends < ? ORDER BY ends, rowid "
            "LIMIT ?",
            (now, most),
        )
        return [(name, _intact(name, row, crc) or b"") for name, row, crc in rows]

    def forget_ids(self, now: float, most: int) -> int:
        """Forget ids that were finished long ago, the first first; return the bytes that they took."""
        found = self._run(
            "SELECT rowid, length(id) FROM ids WHERE state > 0 AND ends < ? ORDER BY state, ends "
            "LIMIT ?",
            (now, most),
        ).fetchall()
        self._database.executemany("DELETE FROM ids WHERE rowid = ?", ((row,) for row, _ in found))
        return sum(length + ID_BYTES for _, length in found)

    def next_end(self) -> float | None:
        """Return when the next row's time ends."""
        found: float | None = self._value("SELECT min(ends) FROM ids WHERE state = 0")
        return found

    # Answers -----------------------------------------------------------------------------------

    def answer(self, owner: str, key: str) -> tuple[bytes, bytes] | None:
        """Return the digest of the request with a key, and its answer."""
        found = self._run(
            "SELECT digest, answer FROM answers WHERE owner = ? AND key = ?", (owner, key)
        ).fetchone()
        return None if found is None else (found[0], found[1])

    def keep_answer(self, owner: str, key: str, digest: bytes, now: float, answer: bytes) -> None:
        """Keep the answer to a request with a key."""
        values = owner, key, digest, now, answer
        self._run("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", values)

    def answers(self) -> int:
        """Return the bytes that answers take."""
        return int(self._value("SELECT total(length(answer) + length(key) + 100) FROM answers"))

    def forget_answers(self, before: float, most: int) -> int:
        """Forget old answers, and the oldest as long as all take too much; return what is left."""
        self._run("DELETE FROM answers WHERE time < ?", (before,))
        while (size := self.answers()) > most:
            self._run(
                "DELETE FROM answers WHERE (owner, key) IN "
                "(SELECT owner, key FROM answers ORDER BY time LIMIT 1000)"
            )
        return size

    # Snapshots ---------------------------------------------------------------------------------

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots that may be begun with, the newest first."""
        rows = self._run(
            "SELECT number, event, chunk, file, given FROM snapshots ORDER BY number DESC"
        )
        found = []
        for row in rows:
            number, event, chunk, file, given = row
            found.append(Snapshot(number, event, chunk, file, bool(given)))
            if found[-1].given:  # the one before it is another model
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
        row = event, chunk, file, now, int(given)
        with self.transaction():
            self._run(
                "INSERT INTO snapshots (event, chunk, file, time, given) VALUES (?, ?, ?, ?, ?)",
                row,
            )
            if discard_until is not None:
                self._discard(discard_until)
            kept = [one.number for one in self.snapshots()][:_SNAPSHOTS]
            if keep_events:  # from the first model on
                self._run("DELETE FROM snapshots WHERE given = 0 AND number < ?", (min(kept),))
            else:
                self._run("DELETE FROM snapshots WHERE number < ?", (min(kept),))
                first = self._value("SELECT min(event) FROM snapshots")
                self._run("DELETE FROM events WHERE number <= ?", (first,))
        try:
            is_busy = self._value("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise NotStoredError(str(error)) from error
        if not is_busy:  # nobody reads what was before
            self.tidy()

    def keep_from_now(self) -> None:
        """Begin to keep all events, from the oldest snapshot that there is."""
        with self.transaction():
            self._run(
                "UPDATE snapshots SET given = 1 WHERE number = (SELECT min(number) FROM snapshots)"
            )

    def tidy(self) -> None:
        """Remove snapshots that the database does not name, and drafts of killed processes."""
        named = {name for (name,) in self._run("SELECT file FROM snapshots")}
        for path in [*self.folder.glob("model-*.cbrank"), *self.folder.glob(".cbrank-*.tmp")]:
            if path.name not in named:
                path.unlink(missing_ok=True)

    def path(self, snapshot: Snapshot) -> Path:
        """Return the file of a snapshot; a ModelFileError if it is not there."""
        path = self.folder / Path(snapshot.file).name
        if not path.exists():
            raise ModelFileError(f"{path} is missing.")
        return path

    # Checking ----------------------------------------------------------------------------------

    def faults(self) -> list[str]:
        """Return all that is wrong: a long look at every page, index, row and snapshot."""
        faults = []
        try:
            rows = self._run("PRAGMA integrity_check(20)").fetchall()
            faults += [str(row[0]) for row in rows if row[0] != "ok"]
            numbers = self._run("SELECT min(number), max(number), count(*) FROM events").fetchone()
            if numbers[2] and numbers[1] - numbers[0] + 1 != numbers[2]:
                faults.append(
                    f"there are {numbers[2]:,} events between {numbers[0]} and {numbers[1]}."
                )
            oldest = self.snapshots()[-1:]
            if oldest and numbers[2] and numbers[0] > oldest[0].event + 1:
                faults.append(f"events before number {numbers[0]} are missing.")
            for _ in self.chunks(0):
                pass
            for name, row, crc in self._run("SELECT id, row, crc FROM ids WHERE row IS NOT NULL"):
                _intact(name, row, crc)
        except (sqlite3.Error, StoreError) as error:
            faults.append(str(error))
            return faults
        for snapshot in self.snapshots():
            try:
                read(self.path(snapshot))
            except (OSError, ModelFileError) as error:
                faults.append(str(error))
        return faults


def _crc(*parts: object) -> int:
    """Return a checksum: SQLite has none, and notices no bit that flips inside a row."""
    return zlib.crc32(b"\0".join(p if isinstance(p, bytes) else str(p).encode() for p in parts))


def _intact(name: str, row: bytes | None, crc: int) -> bytes | None:
    """Return the row of an id, if there is one and it is as it was written."""
    if row is not None and _crc(name, row) != crc:
        raise sqlite3.DatabaseError("the row of an id is not as it was written")
    return row


def _connected(path: Path) -> sqlite3.Connection:
    try:
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> StoreError:
    """Return the error about a database that cannot be read."""
    if "readonly" in str(error) or "unable to open" in str(error):
        return StoreError(f"{path} cannot be written: {error}. Mend its permissions.")
    if "full" in str(error) or "I/O" in str(error):
        return StoreError(f"{path}: {error}. Make room on the disk, or look after it.")
    return StoreError(
        f"{path} is damaged ({error}). Bring the folder back from a backup, or serve its newest "
        "model-*.cbrank with a new store: the labels since that snapshot are lost then."
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
