"""Commands in processes of their own that start at once: forks of one that has imported it all.

``python tests/tools/forks.py CORES`` imports and compiles what learning needs, on the given cores, and then
forks for each line of JSON on standard input: it answers with the process and then with its end.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

STOPS = [signal.SIGINT, signal.SIGTERM]


class Server:
    """A process that forks; `threads` and `cores` are what its children compute with."""

    def __init__(self, threads, cores):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
        self.name = f"{threads} threads on {len(cores)} cores"
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, json.dumps(sorted(cores))],
            env=os.environ | dict.fromkeys(names, str(threads)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, folder, line, **how):
        """Start a command; `end` waits for it."""
        request = json.dumps({"folder": str(folder), "line": line, **how})
        print(request, file=self._process.stdin, flush=True)
        return int(self._answer())

    def end(self):
        """Return the code with which the command ended; below 0 for a signal."""
        return int(self._answer())

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _answer(self):
        for answer in self._process.stdout:
            if answer.startswith("forks: "):
                return answer.removeprefix("forks: ")
        raise RuntimeError(f"the server of {self.name} has ended")


@contextlib.contextmanager
def servers(settings):
    """Start a server for each pair of threads and cores."""
    started = [Server(threads, cores) for threads, cores in settings]
    try:
        yield started
    finally:
        for server in started:
            server.close()


# In the server ------------------------------------------------------------------------------------


def serve():
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, json.loads(sys.argv[1]))  # before NumPy counts them
    warm_up()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # for children, until they are on their way
    for request in sys.stdin:
        process = os.fork()
        if not process:
            carry_out(**json.loads(request))
        print("forks:", process, flush=True)
        _, status = os.waitpid(process, 0)
        print("forks:", os.waitstatus_to_exitcode(status), flush=True)


def warm_up():
    """Import and load what the commands need, by commands of a few rows."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.svm")
        rows.write_text("1 1:2 2:3\n0 1:1\n1 2:4\n0 1:5\n")
        table = Path(folder, "rows.csv")
        table.write_text("a,c,y\n1,x,0\n2,z,1\n3,x,0\n4,x,1\n")
        wide = Path(folder, "wide.csv")
        names = ",".join(f"f{column}" for column in range(140))
        wide.write_text(f"{names},y\n" + "".join(f"{'7,' * 140}{row % 2}\n" for row in range(9)))
        model = str(Path(folder, "model"))
        for line in (
            ["train", str(rows), "-o", model, "--checkpoint", f"{folder}/run", "--every", "1"],
            ["train", str(rows), "-o", model, "--covariance", "diagonal", "--scale", "standard"],
            ["train", str(table), "--label", "y", "--categorical", "c=onehot", "-o", model],
            ["update", model, str(table)],
            ["train", str(wide), "--label", "y", "-o", model, "--C", "1"],
        ):
            command([*line, "--quiet"])
    import pyarrow.parquet  # noqa: F401, PLC0415


def command(line):
    from cbrank.cli import main  # noqa: PLC0415

    try:
        main(line)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def carry_out(folder, line, errors, piped, block, chunk):
    """Run a command and end the process."""
    code = 70
    try:
        os.chdir(folder)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        told = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(feed(piped) if piped else os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(told, 1)
        os.dup2(told, 2)
        resize(block, chunk)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        code = command(line)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    finally:
        os._exit(code)


def feed(path):
    """Return a pipe that another process fills from a file, some bytes at a time."""
    taken, given = os.pipe()
    if os.fork():
        os.close(given)
        return taken
    os.close(taken)
    with Path(path).open("rb") as file:
        draw = random.Random(os.getpid())
        with contextlib.suppress(BrokenPipeError):
            while block := file.read(draw.randint(1, 60_000)):
                os.write(given, block)
    os._exit(0)


def resize(block, chunk):
    """Read blocks and give chunks of other sizes."""
    from cbrank.streams import reading, rows, text  # noqa: PLC0415
    from cbrank.training import shuffling  # noqa: PLC0415

    text._BLOCK = block
    for module in (reading, rows, shuffling):
        vars(module)["CHUNK_BYTES"] = chunk


if __name__ == "__main__":
    serve()
