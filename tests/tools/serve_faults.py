"""What befalls a store beside kills: power that fails, a disk that is full, a clock, damage, a rival."""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from served import HANG, Connection, Server
from served_clients import Label, Learn, Remember, Score, load, quiet_load
from served_lives import Judge, Life, events_of

DATABASE = "store.db"


# A write-ahead file that is cut short -------------------------------------------------------------


def cut_rounds(launcher, rounds, seed, watch=print):
    """Kill a server, cut its write-ahead file short as if power had failed, and go on."""
    draw = random.Random(seed)
    for first in range(0, rounds, 15):
        with tempfile.TemporaryDirectory() as folder:
            life = Life(launcher, folder, draw, plain=first // 15 % 2 == 1)
            for number in range(first, min(rounds, first + 15)):
                life.killed_under_load(draw.uniform(0.05, 0.6))
                life.check()
                lost, size, at = cut(life)
                watch(
                    f"{number + 1}/{rounds}, cut: {at:,} of {size:,} bytes left, {lost} events lost"
                )
            life.label_all()


def cut(life):
    """Cut the write-ahead file at random; what it held before the cut is there, and no more."""
    wal = Path(life.store, f"{DATABASE}-wal")
    data = wal.read_bytes() if wal.exists() else b""
    at = life.draw.choice([0, len(data), *(life.draw.randint(0, len(data)) for _ in range(6))])
    if data:
        wal.write_bytes(data[:at])
    if life.draw.random() < 0.5:
        Path(life.store, f"{DATABASE}-shm").unlink(missing_ok=True)
    judge = Judge(life.model)
    judge.follow(life.copy())
    known = dict([*life.judge.serials.items()][: judge.last])
    assert judge.serials == known, "the events that are left are not the first ones"
    if data:
        assert judge.last == events_before(life, data[: last_commit(data[:at])])
    lost = life.judge.last - judge.last
    life.ledger.forget(judge.serials)
    life.judge = judge
    return lost, len(data), at


def last_commit(data):
    """Return where the last transaction ends that is whole in a write-ahead file."""
    if len(data) < 32:
        return 0
    size, salt, end = struct.unpack(">I", data[8:12])[0], data[16:24], 0
    for at in range(32, len(data) - size - 23, 24 + size):
        if data[at + 8 : at + 16] != salt:  # of an earlier use of the file
            break
        if data[at + 4 : at + 8] != bytes(4):
            end = at + 24 + size
    return end


def events_before(life, data):
    """Return how many events a store has whose write-ahead file holds just this."""
    copy = life.copy()
    Path(copy, f"{DATABASE}-shm").unlink(missing_ok=True)
    Path(copy, f"{DATABASE}-wal").write_bytes(data)
    return count_events(copy)


def count_events(store):
    return len(events_of(store)[0])


# A full disk --------------------------------------------------------------------------------------


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


def full_rounds(launcher, rounds, seed, watch=print, *, by_limit=None):
    """Fill the disk of a store; learning stops with a sentence, scoring goes on, nothing is lost."""
    draw = random.Random(seed)
    for number in range(rounds):
        with (
            tempfile.TemporaryDirectory() as folder,
            SmallDisk(folder, draw.choice([1, 2])) as disk,
        ):
            limited = not disk.path or (number % 2 == 1 if by_limit is None else by_limit)
            store = None if limited else disk.path / "store"
            life = Life(launcher, folder, draw, plain=number % 4 != 3, store=store)
            how = {"largest": draw.randint(400_000, 900_000)} if limited else {}
            with life.start(**how) as server:
                asyncio.run(fill(server, life.ledger))
                assert server.ask("GET", "/model").status == 200
                server.end(draw.choice([signal.SIGKILL, signal.SIGTERM]))
            life.check()
            if not limited:
                disk.change("size=64m")
            life.killed_under_load(0.2)
            life.check()
            life.label_all()
            kind = "files up to a limit" if limited else "a small disk"
            watch(f"{number + 1}/{rounds}, full, {kind}: {life.judge.last} events, nothing lost")


async def fill(server, ledger):
    """Learn until the disk is full; see that scoring goes on."""
    async with Connection(server.port) as one, Connection(server.port) as two:
        for _ in range(4000):
            answers = await asyncio.gather(
                Learn(ledger, 60).send(one),
                ledger.draw.choice([Learn, Remember])(ledger, 20).send(two),
            )
            if any(answer.status == 503 for answer in answers):
                break
        else:
            raise AssertionError("the disk is never full")
        for _ in range(5):
            await Score(ledger).send(one)
            answer = await Learn(ledger, 1).send(two)
            assert answer.status == 503, "it learns again, and nobody has looked after the disk"
            await Remember(ledger, 1).send(two)
        if ledger.waiting:
            await Label(ledger, 1).send(two)


# A clock that is set back -------------------------------------------------------------------------


def clock_rounds(launcher, rounds, seed, watch=print):
    """Set the clock of a server back and forth; rows that wait are labelled all the same."""
    draw = random.Random(seed)
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            clock = Path(folder, "clock")
            clock.write_text("0")
            life = Life(launcher, folder, draw, plain=number % 2 == 0, options=["--wait", "6h"])
            moments = [0]
            for _ in range(3):
                with life.start(clock=str(clock)) as server:
                    life.check_model(server)
                    asyncio.run(quiet_load(server, life.ledger, 30))
                    # Back by minutes or years, at times a little forward.
                    moments.append(draw.choice([-60, -7200, -86_400, -(10**9), -40_000, 3600]))
                    set_clock(clock, moments[-1])
                    asyncio.run(load(server, life.ledger, 0.15))
                    server.wait()
                life.check()
            waiting = len(life.ledger.waiting)
            with life.start(clock=str(clock)) as server:
                asyncio.run(life.finish(server))
            life.check(replay=True)
            watch(f"{number + 1}/{rounds}, clock at {moments}: {waiting} rows waited, all labelled")


def set_clock(clock, seconds):
    draft = clock.with_name("draft")
    draft.write_text(str(seconds))
    draft.replace(clock)


def wait_rounds(launcher, rounds, seed, watch=print):
    """Let waits end under kills: every row that waited is learned from once, by label or default."""
    draw = random.Random(seed)
    options = ["--wait", "1s", "--default-label", "no"]
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            life = Life(
                launcher, folder, draw, plain=number % 2 == 0, options=options, expires=True
            )
            for _ in range(3):
                life.killed_under_load(draw.uniform(0.2, 1.3))
                life.check()
            clock = Path(folder, "clock")
            clock.write_text("60")
            deadline = time.monotonic() + HANG
            while life.ledger.remembered - life.judge.serials.keys():
                assert time.monotonic() < deadline, "rows that waited are lost"
                with life.start(clock=str(clock)):
                    time.sleep(1.5)  # the writer looks every second
                life.check(replay=True)
            labelled = life.ledger.counts["learned"]
            waited = len(life.ledger.remembered)
            watch(f"{number + 1}/{rounds}, waits: {waited} rows waited, {labelled} had labels")


# Damage, and others at the same store -------------------------------------------------------------


def damage_rounds(launcher, rounds, seed, watch=print):
    """Damage stores; what is served is right, or refused with what to do."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        life = Life(launcher, folder, draw, plain=True, options=["--snapshot-every", "40"])
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
        code, told = life.launcher.run(["serve", "--check", store], life.folder)
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
    code, told = life.launcher.run(["serve", "--check", store], life.folder)
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
    "a folder that cannot be written": read_only,
}
FAULTS = {
    "wal": cut_rounds,
    "full": full_rounds,
    "clock": clock_rounds,
    "wait": wait_rounds,
    "damage": damage_rounds,
}
