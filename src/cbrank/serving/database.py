"""The database of a store: SQLite that notices when its content is not what was written.

SQLite has no checksums. So every row has one, over the name of its table and all its values with their
types, and every read verifies it. The fact ``sum`` is the sum of the checksums of all other rows: a row that
is missing, added or doubled changes it. Before any other statement the schema is compared with the expected
one, so that no trigger or view of a stranger is executed. SQLite drops what follows a damaged part of its
write-ahead file without an error; a small file beside the database therefore has the number of the last
transaction, and a database that is behind it is refused.

All of that is against damage. Checksums without a secret key do not stop anyone who can write the store.
"""

import contextlib
import functools
import itertools
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import Any

import msgspec

DATABASE = "store.db"
LAST = "store.last"  # the number of the last transaction, and its checksum
_FORMAT = 2
_APPLICATION = 0x6362726B  # "cbrk": tells our databases from others
_LONGEST = 2**28  # bytes of a value; a forged one may claim more than there is memory

_SCHEMA = f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
    number INTEGER PRIMARY KEY, chunk INTEGER NOT NULL, time REAL NOT NULL,
    id TEXT, label TEXT NOT NULL, row BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE ids (
    id TEXT PRIMARY KEY, state INTEGER NOT NULL, ends REAL NOT NULL, row BLOB,
    crc INTEGER NOT NULL);
CREATE INDEX ids_by_end ON ids (state, ends);
CREATE TABLE answers (
    owner TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL, time REAL NOT NULL,
    answer BLOB NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (owner, key)) WITHOUT ROWID;
CREATE INDEX answers_by_time ON answers (time);
CREATE TABLE snapshots (
    number INTEGER PRIMARY KEY, event INTEGER NOT NULL, chunk INTEGER NOT NULL, file TEXT NOT NULL,
    digest TEXT NOT NULL, time REAL NOT NULL, given INTEGER NOT NULL, crc INTEGER NOT NULL);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_FORMAT};
"""
_TYPES: dict[str, list[tuple[type, ...]]] = {  # of the columns of each table, but for crc
    "facts": [(str,), (int, float, str)],
    "events": [(int,), (int,), (float,), (str, type(None)), (str,), (bytes,)],
    "ids": [(str,), (int,), (float,), (bytes, type(None))],
    "answers": [(str,), (str,), (bytes,), (float,), (bytes,)],
    "snapshots": [(int,), (int,), (int,), (str,), (str,), (float,), (int,)],
}
KINDS = {table: {*itertools.product(*types)} for table, types in _TYPES.items()}
_INSERT = {
    table: f"INSERT INTO {table} VALUES ({', '.join('?' * (len(types) + 1))})"
    for table, types in _TYPES.items()
}

FAULTS = sqlite3.Error, UnicodeDecodeError  # the latter if SQLite quotes what is no text
Values = Sequence[Any]


class StoreError(ValueError):
    """A store that cannot be used; the sentence says what to do."""


class NotStoredError(Exception):
    """A transaction that did not reach the disk."""


def damaged(path: Path, reason: object) -> StoreError:
    """Return the error about a database that cannot be read."""
    # SQLite quotes text that it cannot decode, and what clients sent is not for logs.
    words = str(reason).partition(" with text ")[0]
    if "readonly" in words or "unable to open" in words:
        return StoreError(f"{path} cannot be written: {words}. Mend its permissions.")
    if "full" in words or "I/O" in words:
        return StoreError(f"{path}: {words}. Make room on the disk, or look after it.")
    return StoreError(
        f"{path} is damaged ({words}). Bring the folder back from a backup, or serve its newest "
        "model-*.cbrank with a new store: the labels since that snapshot are lost then."
    )


class Database:
    """A connection to the database of a store, for one thread.

    It reads only, until `allow_writing`: SQLite would else remove a damaged write-ahead file when it closes it,
    and what could still be brought back from it would be lost.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sum = self._number = 0
        self._last_file: FileIO | None = None
        self._connect("ro")

    def _connect(self, mode: str) -> None:
        uri = f"{self.path.resolve().as_uri()}?mode={mode}"
        try:
            self._connection = sqlite3.connect(
                uri, uri=True, isolation_level=None, check_same_thread=False
            )
            self.run = self._connection.execute
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
            self.run("PRAGMA trusted_schema = OFF")
            self.run("PRAGMA cell_size_check = ON")
        except FAULTS as error:
            raise damaged(self.path, error) from error

    def allow_writing(self) -> None:
        """Make changes possible; for the only process that uses the store."""
        self._connection.close()
        self._connect("rw")
        try:
            self.run("PRAGMA journal_mode = WAL")
            self.run("PRAGMA synchronous = FULL")
        except FAULTS as error:
            raise damaged(self.path, error) from error

    def close(self) -> None:
        """Close the files."""
        self._connection.close()
        if self._last_file is not None:
            self._last_file.close()

    def value(self, statement: str, *values: Any) -> Any:
        """Return the first value of a query, or None."""
        row = self.run(statement, values).fetchone()
        return None if row is None else row[0]

    # Opening -------------------------------------------------------------------------------------

    def make_tables(self) -> None:
        """Make the tables of a new store."""
        self.allow_writing()
        try:
            self.run("BEGIN IMMEDIATE")
            for statement in filter(str.strip, _SCHEMA.split(";")):
                self.run(statement)
            self._seal()
            self.run("COMMIT")
            self.run("PRAGMA wal_checkpoint(TRUNCATE)")
        except FAULTS as error:
            raise damaged(self.path, error) from error

    def is_empty(self) -> bool:
        """Say whether there is no table yet."""
        try:
            return not self.value("SELECT count(*) FROM sqlite_master")
        except FAULTS as error:
            raise damaged(self.path, error) from error

    def verify(self) -> None:
        """Refuse a database that is of another kind, or not as it was written.

        Events are too many to read all of them at every start: of these only the sum is verified, and each
        one when it is read.

        Raises
        ------
        StoreError
            If it is not sound; the sentence says why, and what to do.
        """
        try:
            last = self._read_last()  # first: a service that runs makes it grow
            self.run("BEGIN")  # what is read from now on is of one moment
            self._refuse_others()
            self._refuse_damage()
            if last > self._number:
                raise self._behind(last)
        except FAULTS as error:
            raise damaged(self.path, error) from error

    def _refuse_others(self) -> None:
        if self.value("PRAGMA application_id") != _APPLICATION:
            raise StoreError(f"{self.path} is a database, but not that of a service.")
        if (found := self.value("PRAGMA user_version")) != _FORMAT:
            raise StoreError(
                f"{self.path} was written by {'a later' if found > _FORMAT else 'an earlier'} version of "
                f"cbrank (format {found}, this one knows {_FORMAT}): use that version, or a new store."
            )
        if _schema(self._connection) != _expected():
            raise damaged(self.path, "its tables, indexes or triggers are not those of a store")

    def _refuse_damage(self) -> None:
        if (found := self.value("PRAGMA integrity_check(1)")) != "ok":
            raise damaged(self.path, str(found).splitlines()[-1])
        facts: dict[str, Any] = dict(self.rows("facts"))
        for table in ("ids", "answers", "snapshots"):
            for _ in self.rows(table):
                pass
        total = sum(self.value(f"SELECT ifnull(sum(crc), 0) FROM {table}") for table in _TYPES)
        if type(facts.get("sum")) is not int or type(facts.get("number")) is not int:
            raise damaged(self.path, "facts are missing")
        self._sum, self._number = facts["sum"], facts["number"]
        if total - _checksum("facts", ("sum", self._sum)) != self._sum:
            raise damaged(self.path, "rows are missing, or there are too many")

    # Reading and writing -------------------------------------------------------------------------

    def rows(self, table: str, tail: str = "", *values: Any) -> Iterator[list[Any]]:
        """Yield rows of a table that are as they were written; `tail` says which.

        Raises
        ------
        StoreError
            If one is not.
        """
        kinds = KINDS[table]
        try:
            for *row, crc in self.run(f"SELECT * FROM {table} {tail}", values):
                if tuple(map(type, row)) not in kinds or _checksum(table, row) != crc:
                    name = (
                        f"row {row[0]}" if type(row[0]) is int else "a row"
                    )  # ids are not for logs
                    raise damaged(self.path, f"{name} of {table} is not as it was written")
                yield row
        except FAULTS as error:
            raise damaged(self.path, error) from error

    def put(self, table: str, rows: Iterable[Values]) -> None:
        """Add rows to a table."""
        sealed, kinds = list[Values](), KINDS[table]
        for row in rows:
            if (found := tuple(map(type, row))) not in kinds:  # SQLite would convert it
                raise TypeError(f"{table} cannot have {found}")
            sealed.append((*row, _checksum(table, row)))
        self._connection.executemany(_INSERT[table], sealed)
        self._sum += sum(row[-1] for row in sealed)

    def drop(self, table: str, where: str, *values: Any) -> None:
        """Remove rows from a table."""
        self._sum -= self.value(f"SELECT ifnull(sum(crc), 0) FROM {table} WHERE {where}", *values)
        self.run(f"DELETE FROM {table} WHERE {where}", values)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes inside, or none; at the end they are on the disk.

        Raises
        ------
        NotStoredError
            If they are not, as on a full disk.
        """
        before = self._sum, self._number
        try:
            self.run("BEGIN IMMEDIATE")
            yield
            if self._sum != before[0]:
                self._seal()
            self.run("COMMIT")
        except (*FAULTS, StoreError) as error:
            self._roll_back(*before)
            raise NotStoredError(str(error)) from error
        except BaseException:
            self._roll_back(*before)
            raise
        if self._number != before[1]:
            self._write_last()

    def _roll_back(self, total: int, number: int) -> None:
        self._sum, self._number = total, number
        with contextlib.suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self.run("ROLLBACK")

    def _seal(self) -> None:
        """Write the number of this transaction, and the sum of all checksums."""
        self._number += 1
        self.drop("facts", "name = 'number'")
        self.put("facts", [("number", self._number)])
        total = "sum", self._sum
        row = *total, _checksum("facts", total)
        self.run("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", row)

    # The last transaction ------------------------------------------------------------------------

    def _write_last(self) -> None:
        """Write the number of a transaction that is on the disk, in place and without waiting for it.

        After a power cut it may be an earlier one, which does no harm, and never a later one.
        """
        number = b"%020d" % self._number
        try:
            if self._last_file is None:
                path = self._last()
                self._last_file = path.open("r+b" if path.exists() else "w+b", buffering=0)
            self._last_file.seek(0)
            self._last_file.write(b"%b %08x\n" % (number, zlib.crc32(number)))
        except OSError as error:
            raise NotStoredError(str(error)) from error

    def _read_last(self) -> int:
        """Return the number of the last transaction; 0 if it is not known, as in a backup."""
        if not self._last().is_file():
            return 0
        with self._last().open("rb") as file:
            number, _, crc = file.read(100).partition(b" ")
        return int(number) if crc == b"%08x\n" % zlib.crc32(number) and number.isdigit() else 0

    def _last(self) -> Path:
        return self.path.with_name(LAST)

    def _behind(self, last: int) -> StoreError:
        return StoreError(
            f"{self.path} has {self._number:,} transactions, and {last:,} were made: its write-ahead file "
            f"is damaged or missing, or the database is an older one. Bring the folder back from a backup, "
            f"or remove {self._last()} to go on without what is missing: its labels are lost then."
        )


def _checksum(table: str, values: Values) -> int:
    return zlib.crc32(msgspec.msgpack.encode((table, *values)))  # which tells 1, 1.0 and "1" apart


def _schema(connection: sqlite3.Connection) -> list[Any]:
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name LIMIT 100"
    return connection.execute(query).fetchall()


@functools.cache
def _expected() -> list[Any]:
    """Return the schema of a store, as this SQLite writes it down."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        return _schema(connection)
