"""Stores that are damaged, of another program, in use or not to be written: served rightly, or refused."""

import asyncio
import contextlib
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

from served import Server
from served_clients import make_model, quiet_load
from served_lives import Life

DATABASE = "store.db"


def damage_rounds(launcher, rounds, seed, watch=print):
    """Damage stores; what is served is right, or refused with what to do."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        life = Life(launcher, folder, draw, plain=True, options=["--snapshot-every", "40"])
        life.ledger.models = []  # a model that was given has no snapshot before it
        sound_store(life)
        told = [f"{name}: {damage(life)}" for name, damage in DAMAGES.items()]
        watch("damage: " + "; ".join(told))
        found = [flipped_page(life) for _ in range(3 * rounds)]
        watch(
            "bits flipped in the database: "
            + ", ".join(f"{found.count(w)} {w}" for w in sorted({*found}))
        )


def sound_store(life):
    """Let a store have snapshots, events after the last of them, rows that wait, and a rival."""
    with life.start() as server:
        asyncio.run(quiet_load(server, life.ledger, 60))
        refused(life, life.store, "in use by process")
        asyncio.run(quiet_load(server, life.ledger, 5))
    life.check(replay=True)


def refused(life, store, *words, model=None):
    """See that a server does not start on a store, and says why; return its words."""
    with Server(life.launcher, model or life.model, store, *life.options) as server:
        end = server.end_at_start()
    assert end is not None, f"a server starts on a store that was to be refused for {words}"
    assert end.code in {1, 2}, end
    assert "Traceback" not in end.told, end
    assert all(word in end.told for word in words), (words, end.told)
    return end.told


def broken_copy(life):
    copy = life.folder / "broken"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(life.store, copy)
    return copy


def served_alike(life, store):
    """See that a server starts on a store and has the model of all the events."""
    sound, life.store = life.store, store
    try:
        with life.start() as server:
            life.check_model(server)
    finally:
        life.store = sound


def snapshots(store):
    return sorted(Path(store).glob("model-*.cbrank"))


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)


def newest_snapshot(life):
    for spoil in (
        lambda path: flip(path, path.stat().st_size // 2),
        lambda path: os.truncate(path, path.stat().st_size // 2),
        lambda path: os.truncate(path, 0),
        Path.unlink,
    ):
        store = broken_copy(life)
        spoil(snapshots(store)[-1])
        code, told = life.launcher.run(["serve", "--check", store])
        assert code == 1, told
        served_alike(life, store)
    return "the one before is used"


def all_snapshots(life):
    store = broken_copy(life)
    for path in snapshots(store):
        flip(path, path.stat().st_size // 2)
    return refused(life, store, "backup").strip()


def empty_database(life):
    store = broken_copy(life)
    for name in (DATABASE, f"{DATABASE}-wal"):
        Path(store, name).write_bytes(b"")
    before = snapshots(store)
    told = refused(life, store, "backup").strip()
    assert snapshots(store) == before, "snapshots are gone"
    return told


def no_database(life):
    store = broken_copy(life)
    for path in store.glob(f"{DATABASE}*"):
        path.unlink()
    return refused(life, store, "backup").strip()


def no_database_at_all(life):
    store = broken_copy(life)
    Path(store, DATABASE).write_bytes(b"this is no database, and never was one\n" * 500)
    return refused(life, store, "damaged").strip()


def another_program(life):
    store = broken_copy(life)
    for path in store.glob(f"{DATABASE}*"):
        path.unlink()
    with contextlib.closing(sqlite3.connect(Path(store, DATABASE))) as database:
        database.execute("CREATE TABLE songs (title TEXT)")
    return refused(life, store).strip()


def another_model(life):
    other = make_model(life.folder, plain=True, name="another")
    return refused(life, broken_copy(life), "another model", model=other).strip()


def read_only(life):
    with SmallDisk(tempfile.mkdtemp(dir=life.folder), 16) as disk:
        if disk.path:
            store = shutil.copytree(life.store, disk.path / "store")
            disk.change("ro")
        elif os.geteuid():
            store = broken_copy(life)
            for path in [*store.iterdir(), store]:
                path.chmod(path.stat().st_mode & ~0o222)
        else:
            return "cannot be tried here"
        try:
            return refused(life, store).strip()
        finally:
            if not disk.path:
                store.chmod(0o700)


def flipped_page(life):
    """Flip a bit of the database: refused, told by a check, or without any effect."""
    store = broken_copy(life)
    with contextlib.closing(sqlite3.connect(Path(store, DATABASE))) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sound = contents(database)
    path = Path(store, DATABASE)
    at = life.draw.randrange(path.stat().st_size)
    flip(path, at)
    code, told = life.launcher.run(["serve", "--check", store])
    assert "Traceback" not in told, told
    if code:
        with Server(life.launcher, life.model, store, *life.options) as server:
            end = server.end_at_start()
        assert end is None or "Traceback" not in end.told, end
        return "told by a check" if end is None else "refused"
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert contents(database) == sound, f"byte {at} of the database: nobody has noticed"
    return "without effect"


def contents(database):
    """Return all that models are made of."""
    queries = "number, chunk, label, row FROM events", "id, row FROM ids WHERE row IS NOT NULL"
    return [database.execute(f"SELECT {query}").fetchall() for query in queries]


DAMAGES = {
    "the newest snapshot": newest_snapshot,
    "all snapshots": all_snapshots,
    "an empty database": empty_database,
    "no database": no_database,
    "text in its place": no_database_at_all,
    "a database of another program": another_program,
    "the store of another model": another_model,
    "a folder that cannot be written": read_only,
}


class SmallDisk:
    """A file system of a few megabytes, or None in `path` where nobody may make one."""

    def __init__(self, folder, megabytes):
        path = Path(folder, "disk")
        path.mkdir()
        made = mounted("-t", "tmpfs", "-o", f"size={megabytes}m", "cbrank", path)
        self.path = path if made else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.path:
            subprocess.run(["umount", "--lazy", self.path], check=True)

    def change(self, options):
        assert mounted("-o", f"remount,{options}", self.path)


def mounted(*words):
    try:
        return subprocess.run(["mount", *words], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
