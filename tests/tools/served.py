"""Servers that start at once, and a client that sees every byte.

``python tests/tools/served.py`` imports and compiles what serving needs and then forks for each line of
JSON on standard input: it answers with the process, and later with its end. A server is told its clock by a
file, the largest file it may write, and whether it keeps the events that it deletes.
"""

import asyncio
import contextlib
import ctypes
import itertools
import json
import os
import queue
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

HANG = 20  # seconds; on a busy machine a start takes a few


class Lost(Exception):
    """The connection ended before the answer."""


class Ended(AssertionError):
    """A server that was to serve has ended, with its code and what it said."""

    def __init__(self, code, told):
        super().__init__(f"the server ended with {code}: {told}")
        self.code, self.told = code, told


class Launcher:
    """A process that forks servers; `environment` is more than this one's."""

    def __init__(self, environment=None):
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__],
            env=os.environ | (environment or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._folder, self._words = tempfile.TemporaryDirectory(), itertools.count()
        self._started, self._ends = queue.Queue(), {}
        self._ended = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._reader.join()
        self._process.stdout.close()
        self._process.wait()
        self._folder.cleanup()

    def _read(self):
        for line in self._process.stdout:
            match line.split():
                case ["launcher:", "started", process]:
                    self._started.put(int(process))
                case ["launcher:", "ended", process, code]:
                    with self._ended:
                        self._ends[int(process)] = int(code)
                        self._ended.notify_all()

    def file(self):
        """Return a file for the words of a command."""
        return Path(self._folder.name, f"told {next(self._words)}")

    def start(self, line, told, **how):
        """Start a command whose words go to the file `told`; return its process."""
        request = {"line": [str(word) for word in line], "told": str(told), **how}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return self._started.get(timeout=4 * HANG)

    def wait(self, process, seconds=HANG):
        """Return the code with which a command ended; below 0 for a signal."""
        with self._ended:
            assert self._ended.wait_for(lambda: process in self._ends, seconds), "it does not end"
            return self._ends[process]

    def ended(self, process):
        with self._ended:
            return process in self._ends

    def run(self, line):
        """Run a command to its end; return its code and what it said."""
        told = self.file()
        code = self.wait(self.start(line, told))
        return code, told.read_text()


class Server:
    """``cbrank serve`` on a port of its own.

    `clock` is a file with the seconds by which its clock is off, `largest` the size that its files may have.
    """

    def __init__(self, launcher, model, store, *options, **how):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._launcher = launcher
        self._told = launcher.file()
        line = ["serve", model, "--store", store, "--port", self.port, *options]
        self.process = launcher.start(line, self._told, **how)

    def told(self):
        return self._told.read_text()

    def wait_ready(self):
        """Wait until it answers; `Ended` if it never will."""
        begin = time.monotonic()
        while time.monotonic() - begin < HANG:
            if self._launcher.ended(self.process):
                raise Ended(self.wait(), self.told())
            with contextlib.suppress(OSError, Lost):
                if asyncio.run(self._ping()) == 200:
                    return self
            time.sleep(0.01)
        raise AssertionError(f"no answer in {HANG} s: {self.told()}")

    def end_at_start(self):
        """Return how it ended before it ever answered, or None when it does answer."""
        try:
            self.wait_ready()
        except Ended as end:
            return end
        return None

    async def _ping(self):
        async with Connection(self.port) as connection:
            return (await connection.ask("GET", "/ping")).status

    def ask(self, *arguments, **headers):
        """Ask one thing over a connection of its own."""

        async def asked():
            async with Connection(self.port) as connection:
                return await connection.ask(*arguments, **headers)

        return asyncio.run(asked())

    def end(self, how=signal.SIGKILL):
        """End it, if it has not ended; return its code."""
        if not self._launcher.ended(self.process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process, how)
        return self.wait()

    def wait(self):
        return self._launcher.wait(self.process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


# The client ---------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


async def read_answer(reader, method="GET"):
    """Read one answer; raise Lost when the connection ends before it is whole."""
    try:
        status, headers = 100, {}
        while status < 200:  # "go on, send the body" is no answer yet
            head = await reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")[:-2]
            cells = (line.partition(":") for line in lines)
            headers = {name.lower(): value.strip() for name, _, value in cells}
            status = int(first.split()[1])
        if method == "HEAD" or status in {204, 304}:
            body = b""
        elif "content-length" in headers:
            body = await reader.readexactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            body = await _read_chunks(reader)
        else:
            body = await reader.read()
    except (OSError, asyncio.IncompleteReadError) as error:
        raise Lost from error
    return Answer(status, headers, body)


async def _read_chunks(reader):
    parts = []
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        parts.append((await reader.readexactly(size + 2))[:-2])
    await reader.readuntil(b"\r\n")
    return b"".join(parts)


class Connection:
    """A connection that is kept open from request to request."""

    def __init__(self, port):
        self.port, self._reader, self._writer = port, None, None

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.close()

    def close(self):
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def open(self):
        """Return a reader and a writer."""
        if self._writer is None or self._reader.at_eof():
            self.close()
            try:
                self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError as error:
                raise Lost from error
        return self._reader, self._writer

    async def ask(self, method, path, body=b"", **headers):
        """Send a request, its body as JSON unless it is bytes; return the answer or raise Lost."""
        reader, writer = await self.open()
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        kind = {"Content-Type": "application/json"} if data else {}
        whole = {"Host": "localhost", "Content-Length": str(len(data))} | kind | given
        lines = [f"{name}: {value}\r\n" for name, value in whole.items()]
        try:
            writer.write(f"{method} {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode() + data)
            await writer.drain()
            async with asyncio.timeout(HANG):
                answer = await read_answer(reader, method)
        except TimeoutError:
            raise AssertionError(f"no answer to {method} {path} in {HANG} s") from None
        except OSError as error:
            self.close()
            raise Lost from error
        except Lost:
            self.close()
            raise
        if answer.headers.get("connection") == "close":
            self.close()
        return answer


# In the launcher ----------------------------------------------------------------------------------


def launch():
    warm_up()
    alive = set()

    def reap(*_):
        while alive:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            alive.discard(process)
            tell("ended", process, os.waitstatus_to_exitcode(status))

    signal.signal(signal.SIGCHLD, reap)
    for request in sys.stdin:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        process = os.fork()
        if not process:
            carry_out(**json.loads(request))
        alive.add(process)
        tell("started", process)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    for process in alive:
        os.kill(process, signal.SIGKILL)


def tell(*words):
    os.write(1, (" ".join(map(str, ("launcher:", *words))) + "\n").encode())


def warm_up():
    """Import and load what serving needs, by commands of a few rows."""
    from cbrank.optional import do_without  # noqa: PLC0415

    do_without("sklearn")
    from cbrank.cli import main  # noqa: PLC0415
    from cbrank.serving import app, server  # noqa: F401, PLC0415

    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.csv")
        rows.write_text(
            "t,a,c,y\n" + "".join(f"{at},{at % 7},c{at % 3},{at % 2}\n" for at in range(99))
        )
        plain = ["--scale", "standard", "--categorical", "c=onehot"]
        for more in [], plain:
            with contextlib.suppress(SystemExit):
                main(["train", str(rows), "--label", "y", "-o", f"{folder}/m", "--quiet", *more])


def carry_out(line, told, clock=None, largest=None, keep_gone=False):
    """Run a command and end the process."""
    code = 70
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: none outlives the launcher
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        words = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(words, 1)
        os.dup2(words, 2)
        if clock:
            set_clock(clock)
        if keep_gone:
            keep_deleted_events()
        if largest:
            import resource  # noqa: PLC0415 - not on every system

            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        code = command(line)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def command(line):
    from cbrank.cli import main  # noqa: PLC0415

    try:
        main(line, prog_name="cbrank")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def set_clock(path):
    """Let the clock be off by the seconds in a file, which may change."""
    now, now_ns = time.time, time.time_ns

    def off():
        return int(Path(path).read_text())

    time.time = lambda: now() + off()
    time.time_ns = lambda: now_ns() + 10**9 * off()


def keep_deleted_events():
    """Let a store keep the events that it deletes, in a database beside its own."""
    from cbrank.serving.database import Database  # noqa: PLC0415

    drop = Database.drop

    def kept(database, table, where, *values):
        if table == "events":
            rows = database.run(
                f"SELECT number, chunk, label, row FROM events WHERE {where}", values
            )
            with contextlib.closing(sqlite3.connect(database.path.with_name("gone.db"))) as gone:
                gone.execute(
                    "CREATE TABLE IF NOT EXISTS gone (number PRIMARY KEY, chunk, label, row)"
                )
                gone.executemany("INSERT OR REPLACE INTO gone VALUES (?, ?, ?, ?)", rows)
                gone.commit()
        drop(database, table, where, *values)

    setattr(Database, "drop", kept)  # noqa: B010 - type checkers refuse the plain assignment


if __name__ == "__main__":
    launch()
