"""What befalls a store beside kills: power that fails, a disk that is full, a clock, damage, a rival."""

import asyncio
import random
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from serve_damage import DATABASE, SmallDisk, damage_rounds
from serve_replacements import replace_rounds
from served import HANG, Connection, Launcher
from served_clients import Label, Learn, Remember, Score, load, quiet_load
from served_lives import Judge, Life, events_of

from cbrank.serving.database import LAST, StoreError
from cbrank.serving.store import Store

# A write-ahead file that is cut short -------------------------------------------------------------


def cut_rounds(launcher, rounds, seed, watch=print):
    """Kill a server, cut its write-ahead file short as if power had failed, and go on."""
    draw = random.Random(seed)
    for first in range(0, rounds, 15):
        with tempfile.TemporaryDirectory() as folder:
            life = Life(
                launcher, folder, draw, plain=first // 15 % 2 == 1, keep=first // 15 % 3 == 0
            )
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
    accept_the_loss(life, life.ledger.acknowledged.keys() - judge.serials.keys())
    life.ledger.forget(judge.serials)
    life.judge = judge
    return lost, len(data), at


def accept_the_loss(life, missing):
    """See that a store is refused that has lost what was acknowledged, and do what the error says."""
    copy, told = life.copy(), ""
    try:
        Store.look_into(copy).close()
    except StoreError as error:
        told = str(error)
        Path(life.store, LAST).unlink()
    assert f"remove {copy / LAST} to go on" in told if told else not missing, (told, missing)


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


# A disk that does not keep what it was given ------------------------------------------------------

SYNC = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
static int sync_by(const char *name, int file) {
    if (access(getenv("FAILING_SYNC"), F_OK) == 0) { errno = EIO; return -1; }
    return ((int (*)(int))dlsym(RTLD_NEXT, name))(file);
}
int fsync(int file) { return sync_by("fsync", file); }
int fdatasync(int file) { return sync_by("fdatasync", file); }
"""


def failing_sync(folder):
    """Return the environment in which no sync succeeds while a file is there, and that file."""
    flag, library = Path(folder, "failing"), Path(folder, "sync.so")
    line = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-ldl"]
    try:
        subprocess.run(line, input=SYNC.encode(), check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None, flag
    return {"LD_PRELOAD": str(library), "FAILING_SYNC": str(flag)}, flag


def sync_rounds(_launcher, rounds, seed, watch=print):
    """Let syncs fail: learning stops for good with a sentence, and after a restart nothing is lost."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as shared:
        environment, flag = failing_sync(shared)
        if environment is None:
            watch("sync: there is no compiler here, so it cannot be tried")
            return
        with Launcher(environment) as launcher:
            for number in range(rounds):
                with tempfile.TemporaryDirectory() as folder:
                    life = Life(launcher, folder, draw, plain=number % 2 == 0)
                    sync_round(life, flag)
                    watch(f"{number + 1}/{rounds}, sync: {life.judge.last} events, nothing lost")


def sync_round(life, flag):
    with life.start() as server:
        asyncio.run(quiet_load(server, life.ledger, life.draw.randint(1, 40)))
        flag.touch()
        try:
            asyncio.run(see_stopped(server, life.ledger))
        finally:
            flag.unlink()
        asyncio.run(see_stopped(server, life.ledger))  # nobody knows what is on the disk
        server.end(life.draw.choice([signal.SIGKILL, signal.SIGTERM]))
    life.ledger.sure = True
    life.check()
    life.killed_under_load(0.2)
    life.check()
    life.label_all()


async def see_stopped(server, ledger):
    """See that all that changes the store is refused, and scoring goes on."""
    ledger.sure = False
    async with Connection(server.port) as connection:
        for kind in (Learn, Remember, Label, Learn):
            answer = await kind(ledger, 2).send(connection)
            assert answer.status == 503, answer
            await Score(ledger).send(connection)


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


FAULTS = {
    "sync": sync_rounds,
    "wal": cut_rounds,
    "full": full_rounds,
    "clock": clock_rounds,
    "wait": wait_rounds,
    "damage": damage_rounds,
    "replace": replace_rounds,
}
