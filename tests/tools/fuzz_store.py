"""Stores with one flipped bit or one random edit: refused, or served exactly as if nothing had happened.

``python tests/tools/fuzz_store.py --count 10000`` flips so many single bits in the files of stores, then makes
as many random edits by SQL, each in a copy of its own. A start of the service refuses the copy with a
`StoreError`, or has the same model to the bit and the same ids, rows, answers and numbers. What a start
refuses, ``cbrank serve --check`` reports, and ``cbrank replay`` makes the same model or refuses. Edits that
also compute all checksums anew are forgeries, not damage, and are not tried.
"""

import argparse
import asyncio
import collections
import contextlib
import logging
import os
import random
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

import numpy as np

import cbrank
from cbrank.modelfile import ModelFileError
from cbrank.serving.database import DATABASE, LAST, StoreError
from cbrank.serving.jobs import Once
from cbrank.serving.replay import replay
from cbrank.serving.served import begun, faults_of
from cbrank.serving.service import Service
from cbrank.serving.store import EXPIRED, Store
from cbrank.serving.writer import Settings
from cbrank.training import Model
from cbrank.training.model import columns_of

IDS = [f"id-{number}" for number in range(12)]
KEYS = [f"key-{number}" for number in range(12)]
KEY_COLUMNS = {"facts": "name", "answers": "owner, key"}  # of the others: rowid


# Sound stores -------------------------------------------------------------------------------------


class Sound:
    """A store as a killed service leaves it, with all that it may hold."""

    def __init__(self, folder, *, keep_events, wal):
        self.folder, self._keep = Path(folder), keep_events
        self.model = self.folder / "a.model"
        made = cbrank.CBRanker().partial_fit([[0, 1, 0], [1, 0, 0], [1, 1, 1]], [0, 1, 1])
        Model(made, None, columns_of(made)).write(self.model)
        self.store = self.folder / "sound"
        self._expire_one()
        asyncio.run(self._live_and_copy())
        if not wal:
            with contextlib.closing(sqlite3.connect(self.store / DATABASE)) as database:
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (self.store / f"{DATABASE}-shm").unlink(missing_ok=True)
        assert not self.told(
            self.copy()
        )  # a look at the store itself would fold its write-ahead file
        assert (self.store / f"{DATABASE}-wal").exists() == wal
        self.served = self.start(self.copy())
        self.replayed = replay(self.copy())[0].to_bytes()

    def _expire_one(self):
        store = Store.open(self.folder / "lived", create=True)
        with store.transaction():
            store.remember([(IDS[0], 1e10, b"{}")])
            store.finish([(IDS[0], 1e10)], EXPIRED)
        store.close()

    async def _live_and_copy(self):
        settings = Settings(keep_events=self._keep, snapshot_every=20)
        service = Service.open(self.model, self.folder / "lived", settings)
        service.start()
        try:
            rows = made_rows(60)
            for number, key in enumerate(KEYS):
                await service.learn(rows[5 * number : 5 * number + 5], once=Once("shop", key))
            scored = Once(key="scored")
            await service.answer(rows[:10], remember=True, ids=IDS[1:11], once=scored)
            await service.learn_labels([(IDS[3], "1"), (IDS[7], "0")])
            left_out = shutil.ignore_patterns("*-lock")
            shutil.copytree(self.folder / "lived", self.store, ignore=left_out)
        finally:
            await service.close()

    def copy(self):
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        return shutil.copytree(self.store, copy)

    def start(self, folder):
        """Return all that a service that starts here serves and answers."""
        store = Store.open(folder)
        try:
            given = self.model.read_bytes()
            served = begun(store, given, self.model, keep_events=self._keep)
            return {
                "model": served.model.to_bytes(),
                "numbers": (
                    store.last_event(),
                    store.waiting(),
                    store.next_end(),
                    store.fact("time"),
                ),
                "ids": [store.find_id(name) for name in IDS],
                "answers": [store.answer("shop", key) for key in KEYS]
                + [store.answer("", "scored")],
                "ended": store.ended(1e12, 100),
            }
        finally:
            store.close()

    def told(self, folder):
        """Return what ``cbrank serve --check`` reports."""
        try:
            store = Store.look_into(folder)
        except StoreError as error:
            return [str(error)]
        try:
            return faults_of(store)
        finally:
            store.close()

    def outcome(self, damage):
        """Damage a copy; return what became of it, or raise an AssertionError."""
        copy = self.copy()
        done = damage(copy)
        told = self.told(copy)
        with contextlib.suppress(StoreError, ModelFileError):
            assert replay(copy)[0].to_bytes() == self.replayed, f"{done}: another model is replayed"
        shutil.rmtree(copy)
        damage(self.copy())
        try:
            found = self.start(copy)
        except StoreError:
            if told:
                return "refused"
            raise AssertionError(f"{done}: a start refuses, and a check finds nothing") from None
        wrong = [name for name, value in found.items() if value != self.served[name]]
        assert not wrong, f"{done}: other {wrong} and nobody notices"
        return "reported by a check, served right" if told else "served right"


def made_rows(count):
    random_state = np.random.RandomState(0)
    rows = []
    for number in range(count):
        values = random_state.randint(-3, 4, 3).tolist()
        rows.append({"1": values[0], "2": values[1], "3": values[2], "label": str(number % 3 % 2)})
    return rows


# Damage -------------------------------------------------------------------------------------------


def flip(sound, draw):
    """Return a function that flips a bit of a store."""
    names = sorted(path.name for path in sound.store.iterdir() if path.stat().st_size)
    name = draw.choice(names if draw.random() < 0.5 else [n for n in names if DATABASE in n])
    data = bytearray((sound.store / name).read_bytes())
    written = [at for at, byte in enumerate(data) if byte]  # much of a page is never used
    at = draw.choice(written) if draw.random() < 0.8 else draw.randrange(len(data))
    data[at] ^= 1 << draw.randrange(8)

    def damage(folder):
        (folder / name).write_bytes(data)
        return f"byte {at} of {name}"

    return damage


def edit(sound, draw):
    """Return a function that edits a store."""
    seed = draw.random()

    def damage(folder):
        again = random.Random(seed)
        while True:
            change = again.choice(EDITS)
            database = sqlite3.connect(folder / DATABASE, isolation_level=None)
            with contextlib.closing(database), contextlib.suppress(sqlite3.Error):
                return f"{change.__name__} {change(database, again, folder)}"

    return damage


def random_value(draw):
    text = "".join(draw.choices("abc\u00e9\0 019.", k=draw.randrange(9)))
    return draw.choice(
        [None, draw.randrange(-3, 100), draw.getrandbits(62), draw.uniform(-9, 1e10), float("inf"), text,
         text.encode(), b"\xff" * draw.randrange(5), "1", b"{}"]
    )  # fmt: skip


def random_table(draw):
    return draw.choice(["facts", "events", "ids", "answers", "snapshots"])


def columns(database, table):
    return [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]


def random_row(database, draw, table):
    """Return the condition that names a row, and its key."""
    key = KEY_COLUMNS.get(table, "rowid")
    count = database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    at = draw.randrange(count)
    found = database.execute(f"SELECT {key} FROM {table} LIMIT 1 OFFSET {at}").fetchone()
    return f"({key}) = ({', '.join('?' * len(found))})", found


def update_a_cell(database, draw, _):
    table = random_table(draw)
    column = draw.choice(columns(database, table))
    where, key = random_row(database, draw, table)
    value = random_value(draw)
    new = "CAST(? AS TEXT)" if isinstance(value, bytes) and draw.random() < 0.5 else "?"
    database.execute(f"UPDATE {table} SET {column} = {new} WHERE {where}", (value, *key))
    return table, column, key, value


def delete_a_row(database, draw, _):
    table = random_table(draw)
    where, key = random_row(database, draw, table)
    database.execute(f"DELETE FROM {table} WHERE {where}", key)
    return table, key


def delete_the_end(database, draw, _):
    table, count = draw.choice(["events", "ids", "snapshots"]), draw.randrange(1, 9)
    last = f"SELECT rowid FROM {table} ORDER BY rowid DESC LIMIT {count}"
    database.execute(f"DELETE FROM {table} WHERE rowid IN ({last})")
    return table, count


def empty_a_table(database, draw, _):
    table = random_table(draw)
    database.execute(f"DELETE FROM {table}")
    return table


def insert_a_row(database, draw, _):
    table = random_table(draw)
    where, key = random_row(database, draw, table)
    [row] = database.execute(f"SELECT * FROM {table} WHERE {where}", key)
    new = [value if draw.random() < 0.6 else random_value(draw) for value in row]
    new[0] = row[0] + draw.randrange(1, 3) if isinstance(row[0], int) else random_value(draw)
    database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(new))})", new)
    return table, new


def swap_values(database, draw, _):
    """Swap a value, or all but the key, of two rows."""
    table = random_table(draw)
    names = columns(database, table)
    first, one = random_row(database, draw, table)
    second, two = random_row(database, draw, table)
    chosen = draw.choice([[draw.choice(names)], names[1:], names[1:-1]])
    listed, places = ", ".join(chosen), ", ".join(f"{name} = ?" for name in chosen)
    query = f"SELECT {listed} FROM {table} WHERE"
    [left], [right] = (
        database.execute(f"{query} {first}", one),
        database.execute(f"{query} {second}", two),
    )
    database.execute("BEGIN")
    database.execute(f"UPDATE {table} SET {places} WHERE {first}", (*right, *one))
    database.execute(f"UPDATE {table} SET {places} WHERE {second}", (*left, *two))
    database.execute("COMMIT")
    return table, chosen, one, two


def change_the_schema(database, draw, _):
    statement = draw.choice(SCHEMA_EDITS)
    database.executescript(statement)
    return statement


def replace_a_snapshot(_, draw, folder):
    """Put another sound model in the place of a snapshot, or remove it."""
    path = draw.choice(sorted(folder.glob("model-*.cbrank")))
    other = draw.choice([*sorted(folder.glob("model-*.cbrank")), folder.parent / "a.model", None])
    if other is None:
        path.unlink()
    else:
        path.write_bytes(other.read_bytes())
    return path.name, other and other.name


def lose_a_file(_, draw, folder):
    path = draw.choice([folder / f"{DATABASE}-wal", folder / LAST])
    if path.exists() and draw.random() < 0.5:
        os.truncate(path, draw.randrange(path.stat().st_size + 1))
    else:
        path.unlink(missing_ok=True)
    return path.name


ENDLESS = (
    "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) "
    "SELECT 'a' AS name, i AS value, 1 AS crc FROM r"
)
SCHEMA_EDITS = [
    "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END",
    "CREATE TRIGGER facts AFTER UPDATE ON ids BEGIN UPDATE ids SET state = 0; END",
    "CREATE VIEW v AS SELECT * FROM ids",
    "CREATE INDEX events_by_label ON events (label)",
    "CREATE TABLE more (a)",
    "DROP INDEX ids_by_end",
    "ALTER TABLE events ADD COLUMN more",
    "ALTER TABLE ids RENAME COLUMN ends TO begins",
    f"ALTER TABLE facts RENAME TO f; CREATE VIEW facts AS {ENDLESS}",
    "PRAGMA user_version = 3",
    "PRAGMA user_version = 0",
    "PRAGMA application_id = 7",
    "PRAGMA journal_mode = DELETE",
    "VACUUM",
    "ANALYZE",
]
EDITS = [*[update_a_cell] * 6, delete_a_row, delete_a_row, insert_a_row, insert_a_row, swap_values,
         swap_values, delete_the_end, empty_a_table, change_the_schema, replace_a_snapshot,
         lose_a_file]  # fmt: skip
DAMAGE = {"flipped bits": flip, "edits": edit}


def fuzz(count, seed=0, watch=print):
    """Damage stores so often in each way; return the outcomes."""
    logging.getLogger("cbrank.serving").setLevel(logging.CRITICAL)
    outcomes = collections.Counter()
    with contextlib.ExitStack() as stack:
        sounds = [
            Sound(stack.enter_context(tempfile.TemporaryDirectory()), keep_events=keep, wal=wal)
            for keep in (False, True)
            for wal in (True, False)
        ]
        for name, kind in DAMAGE.items():
            draw = random.Random(seed)
            for number in range(count):
                sound = sounds[number % len(sounds)]
                outcomes[name, sound.outcome(kind(sound, draw))] += 1
            found = {outcome: times for (what, outcome), times in outcomes.items() if what == name}
            watch(f"{count:,} {name}: " + ", ".join(f"{found[o]:,} {o}" for o in sorted(found)))
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    fuzz(options.count, options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
