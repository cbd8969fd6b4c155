"""Models to serve, the server and the echo, each in a process of its own."""

import contextlib
import csv
import lzma
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.comparison import table_path, why_no_table
from cbrank import datasets
from cbrank.features.table import number_text

_START = 60.0  # seconds: a server that has not answered by then never will


class Served(NamedTuple):
    """A model that is served.

    Attributes
    ----------
    name : str
        Its name on the command line.
    text : str
        What it is.
    source : str
        An embedded data set, or a table in the folder that CBRANK_DATA names.
    label : str
        The column of the label.
    options : tuple of str
        Options of ``cbrank train``.
    """

    name: str
    text: str
    source: str
    label: str
    options: tuple[str, ...] = ()

    def why_not(self) -> str:
        """Return why the data are not there, or nothing."""
        return "" if self.source in datasets.names() else why_no_table(self.source)

    def write(self, folder: Path) -> Path:
        """Write the rows as a table."""
        path = folder / f"{self.name}.csv"
        if self.source in datasets.names():
            X, y, _ = datasets.load(self.source)
            with path.open("w", encoding="utf-8", newline="") as file:
                rows = csv.writer(file)
                rows.writerow([*(f"x{at + 1}" for at in range(X.shape[1])), self.label])
                for row, label in zip(X.tolist(), y.tolist(), strict=True):
                    rows.writerow([*map(number_text, row), label])
        else:
            with lzma.open(table_path(self.source)) as packed, path.open("wb") as plain:
                shutil.copyfileobj(packed, plain)
        return path

    def train(self, folder: Path) -> tuple[Path, Path]:
        """Return a model of the rows, and the rows."""
        rows, model = self.write(folder), folder / f"{self.name}.model"
        asked = ["train", rows, "--label", self.label, "-o", model, "--quiet", *self.options]
        subprocess.run([sys.executable, "-m", "cbrank", *map(str, asked)], check=True)
        return model, rows


# To learn from a row takes longer with curves than with lines alone, and it is most of what the service
# does with it.
DATA = (
    Served("german-lines", "german, --shape linear", "german", "class", ("--shape", "linear")),
    Served("german", "german, with curves", "german", "class"),
    Served("adult", "adult, with curves", "adult", "income"),
)


class Server:
    """A server in a process.

    Parameters
    ----------
    arguments : list of str
        What Python is to run, with PORT in the place of the port.
    log : path
        Where what it prints goes.
    """

    def __init__(self, arguments: list[str], log: Path) -> None:
        self.log, self.port = log, _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        asked = [str(self.port) if word == "PORT" else word for word in arguments]
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, *asked], stdout=file, stderr=subprocess.STDOUT
            )

    def wait(self) -> None:
        """Wait until it answers."""
        until = time.monotonic() + _START
        while time.monotonic() < until and self.process.poll() is None:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), 1),
            ):
                return
            time.sleep(0.05)
        raise ValueError(f"the server did not start: {self.log.read_text('utf-8')[-2000:]}")

    def get(self, path: str) -> str:
        """Return what a path has."""
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    def metric(self, name: str) -> float:
        """Return a number of ``/metrics``, NaN if there is none of this name."""
        text = ""
        with contextlib.suppress(OSError):
            text = self.get("/metrics")
        found = re.search(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else float("nan")

    def memory(self) -> float:
        """Return the memory it takes, in MiB; NaN where the system has no such file."""
        try:
            text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        except OSError:
            return float("nan")
        return int(text.partition("VmRSS:")[2].split()[0]) / 1024

    def end(self) -> None:
        """End it, as an operator would."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def running(*arguments: Any, log: Path) -> Iterator[Server]:
    """Run a server while a block runs."""
    server = Server([*map(str, arguments)], log)
    try:
        server.wait()
        yield server
    finally:
        server.end()


def serve(model: Path, store: Path, *options: str) -> Any:
    """Run ``cbrank serve`` while a block runs."""
    asked = ("-m", "cbrank", "serve", model, "--store", store, "--port", "PORT", *options)
    return running(*asked, log=store.with_suffix(".log"))


def echo(folder: Path) -> Any:
    """Run the echo while a block runs."""
    return running("-m", "benchmarks.serving.echo", "PORT", log=folder / "echo.log")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


def sync_milliseconds(folder: Path, times: int = 50) -> float:
    """Measure how long the disk takes to have four KiB for sure, the median."""
    took = []
    with (folder / "sync").open("wb") as file:
        for _ in range(times):
            file.write(bytes(4096))
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    (folder / "sync").unlink()
    return sorted(took)[times // 2] * 1e3
