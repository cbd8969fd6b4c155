"""Send the largest requests together: ``python tests/tools/serve_memory.py --count 200 --limit 4096``.

A server whose address space is limited (as by ``ulimit -v``) gets requests of the largest allowed size of every
kind, all at once, while ``/ping`` is asked all the time. It must answer each with 200, 400, 413 or 503, never
with 500; it must answer ``/ping`` within a second, and its memory must be what it was within 10% afterwards.
"""

import argparse
import collections
import contextlib
import json
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SECONDS = 1.0  # for an answer to /ping
SHARE = 0.1  # by which the memory may be more afterwards
PATIENCE = 20  # seconds until memory is back
BODY = 16 << 20


# Bodies of the largest size -----------------------------------------------------------------------


def rows(row, before, after=b"]}", most=10_000):
    """Return as many rows as are allowed."""
    count = min(most, (BODY - len(before) - len(after)) // (len(row) + 1))
    return before + b",".join([row] * count) + after


def cells(columns):
    return ",".join(f'"c{column}":"{column % 89:02d}"' for column in range(columns))


def tensor(datatype, size, columns=2):
    """Return a binary tensor with as many rows as are allowed, and the length of its JSON."""
    count = min(10_000, BODY // (columns * size))
    parameters = {"binary_data_size": count * columns * size}
    about = {"name": "input", "shape": [count, columns], "datatype": datatype}
    head = json.dumps({"inputs": [about | {"parameters": parameters}]}).encode()
    return head + bytes(count * columns * size), len(head)


def requests():
    """Return path, type of body, body and further headers of each kind of request, by its name."""
    wide = f'{{"x":1.0,{cells(135)}}}'.encode()
    taught = f'{{"x":1.0,"kind":"A",{cells(130)}}}'.encode()
    table = ",".join(["x", *(f"c{column}" for column in range(300))])
    lines = "\n".join([table, *[",".join(["1"] * 301)] * 10_000])[:BODY].rpartition("\n")[0]
    binary, length = tensor("INT8", 1, 1600)
    kind = "application/json"
    return {
        "rows": ("/score", kind, rows(wide, b'{"rows":['), {}),
        "rows that wait": ("/score", kind, rows(wide, b'{"remember":true,"rows":['), {}),
        "empty rows": ("/score", kind, rows(b"{}", b'{"rows":[', most=10**9), {}),
        "numbers, not rows": ("/score", kind, rows(b"1", b'{"rows":[', most=10**9), {}),
        "labelled rows": ("/learn", kind, rows(taught, b'{"rows":['), {}),
        "records": ("/invocations", kind, rows(wide, b'{"dataframe_records":['), {}),
        "CSV": ("/invocations", "text/csv", lines.encode(), {}),
        "tensor": ("/v2/models/ab/infer", "application/octet-stream", binary,
                   {"Inference-Header-Content-Length": str(length)}),
    }  # fmt: skip


# The server ---------------------------------------------------------------------------------------


def make_model(folder):
    """Learn a model of two numbers and a word."""
    table = Path(folder, "ab.csv")
    lines = [f"{at % 97 / 9:.3f},{at % 31},{'red' if at % 3 else 'blue'}," for at in range(2000)]
    kinds = ["B" if at % 97 > 60 + at % 31 else "A" for at in range(2000)]
    table.write_text("x,y,color,kind\n" + "\n".join(map("".join, zip(lines, kinds, strict=True))))
    line = ["train", str(table), "--label", "kind", "-o", str(table.with_suffix(".model"))]
    subprocess.run([sys.executable, "-m", "cbrank", *line, "--quiet"], check=True)
    return table.with_suffix(".model")


@contextlib.contextmanager
def serving(model, folder, limit, *options):
    """Serve with so many MiB of addresses; yield the process and the port."""
    line = [sys.executable, "-m", "cbrank", "serve", str(model), "--store", f"{folder}/store"]
    within = ["sh", "-c", f'ulimit -v {limit << 10} && exec "$@"', "sh"]
    process = subprocess.Popen(
        [*within, *line, "--port", "0", *options], stderr=subprocess.PIPE, text=True
    )
    told: list[str] = []
    reader = threading.Thread(target=lambda: told.extend(process.stderr))
    try:
        for text in process.stderr:
            told.append(text)
            facts = json.loads(text) if text.startswith("{") else {}
            if facts.get("event") == "serving":
                break
        else:
            raise AssertionError(f"no server: {told}")
        reader.start()
        yield process, int(facts["url"].rpartition(":")[2]), told
    finally:
        process.terminate()
        process.wait(60)
        if reader.is_alive():
            reader.join()
        process.stderr.close()


def resident(process, what="VmRSS"):
    """Return the memory of a process, in MiB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"{process} has ended")


# The clients --------------------------------------------------------------------------------------


def ask(port, request, together=None):
    """Send a request, its last byte when all others have theirs; return the status."""
    path, kind, body, more = request
    headers = {"Host": "localhost", "Content-Type": kind, "Content-Length": len(body), **more}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=90) as connection:
            connection.sendall(f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode())
            connection.sendall(memoryview(body)[:-1])
            if together is not None:
                with contextlib.suppress(threading.BrokenBarrierError):
                    together.wait(20)
            connection.sendall(body[-1:])
            return connection.recv(64).decode("latin-1")[9:12] or "closed"
    except OSError as error:
        return type(error).__name__


def ping(port, ended, slowest):
    """Ask for /ping until the end; keep the longest time of an answer."""
    while not ended.is_set():
        begin = time.monotonic()
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                connection.sendall(b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
                took = time.monotonic() - begin if b" 200 " in connection.recv(64) else 1e9
        except OSError:
            took = 1e9
        took = max(took, time.monotonic() - begin)
        slowest.value = max(slowest.value, took)
        time.sleep(0.02)


class Round:
    """What requests of one kind did to a server."""

    def __init__(self, process, port, request, count):
        fresh = multiprocessing.get_context("spawn")
        ended, slowest = fresh.Event(), fresh.Value("d", 0.0)
        pinger = fresh.Process(target=ping, args=(port, ended, slowest))
        pinger.start()
        Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # the peak begins anew
        together = threading.Barrier(count)
        statuses: list[str] = []

        def one():
            statuses.append(ask(port, request, together))

        begin = time.monotonic()
        threads = [threading.Thread(target=one) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.seconds = time.monotonic() - begin
        ended.set()
        pinger.join()
        self.statuses = collections.Counter(statuses)
        self.slowest, self.alive = slowest.value, process.poll() is None
        self.peak = resident(process.pid, "VmHWM") if self.alive else 0.0

    def __str__(self):
        statuses = ", ".join(f"{count} x {what}" for what, count in sorted(self.statuses.items()))
        return (
            f"{statuses}; {self.seconds:.1f} s, /ping within {self.slowest:.2f} s, "
            f"peak {self.peak:,.0f} MiB"
        )

    def faults(self):
        """Return what was not as it should be."""
        return [
            fault
            for fault, holds in {
                "the server has ended": self.alive,
                "statuses": {*self.statuses} <= {"200", "400", "413", "503"},
                f"/ping took {self.slowest:.2f} s": self.slowest <= SECONDS,
            }.items()
            if not holds
        ]


def settled(process, most):
    """Return the memory of a server as soon as it is at most so much, or at last."""
    until = time.monotonic() + PATIENCE
    while (now := resident(process.pid)) > most and time.monotonic() < until:
        time.sleep(0.1)
    return now


def run(count, limit, options=(), kinds=None, watch=print):
    """Send requests of each kind; return what was not as it should be."""
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        model = make_model(folder)
        with serving(model, folder, limit, *options) as (process, port, told):
            small = ("/score", "application/json", b'{"rows":[{"x":1}]}', {})
            assert ask(port, small) == "200"
            before = resident(process.pid)
            watch(f"idle {before:,.0f} MiB, addresses {resident(process.pid, 'VmSize'):,.0f} MiB")
            for name, request in requests().items():
                if kinds and name not in kinds:
                    continue
                done = Round(process, port, request, count)
                watch(f"{name} of {len(request[2]) / 2**20:.1f} MiB, {count} at once: {done}")
                faults += [f"{name}: {fault}" for fault in done.faults()]
                if not done.alive:
                    break
                after = settled(process, (1 + SHARE) * before)
                watch(f"    afterwards {after:,.0f} MiB")
                if after > (1 + SHARE) * before:
                    faults.append(f"{name}: {before:,.0f} MiB became {after:,.0f} MiB")
            faults += [line for line in told if '"level": "error"' in line]
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="requests at once")
    parser.add_argument("--limit", type=int, default=4096, help="MiB of addresses of the server")
    parser.add_argument("--kind", action="append", choices=[*requests()], help="only these")
    parser.add_argument("options", nargs="*", help="of cbrank serve, after --")
    given = parser.parse_args()
    faults = run(given.count, given.limit, given.options, given.kind)
    for fault in faults:
        print("FAILED:", fault)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
