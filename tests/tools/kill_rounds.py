"""Kill ``cbrank train`` and ``update`` at random moments, resume, and compare the model files.

``python tests/tools/kill_rounds.py --rounds 500`` prints what each round did and fails on the first model
that differs from that of a run which was never killed. In a round a run is killed, or stopped by a
signal, up to three times; each time it goes on with another number of threads and of cores, and reads
blocks of another size. ``--only wide,pipe`` is for some of the scenes.
"""

import argparse
import contextlib
import gzip
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from forks import servers
from pyarrow import parquet

from cbrank import modelfile

EVERY = ["--checkpoint", "run.ckpt", "--every", "1", "--resume", "--quiet"]
SKIP = ["--on-error", "skip", "--max-errors", "1000000"]
NASTY = ["--label", "y", "--positive", "yes", "--id", "id", "--drop", "comment", *SKIP]
TRAIN = {
    "full": ["rows.svm", "more.svm", "--positive", "1", "--in-order"],
    "diagonal": ["rows.svm", "more.svm", "--positive", "1", "--covariance", "diagonal",
                 "--scale", "standard", "--holdout", "20%"],
    "reservoir": ["rows.svm", "--policy", "reservoir", "--passes", "2", "--class-weight", "2",
                  "--positive", "1", "--in-order"],
    "table": ["rows.csv.gz", "--label", "y", "--positive", "yes", "--categorical", "city=onehot"],
    "passes": ["rows.csv.gz", "--label", "y", "--positive", "yes", "--categorical", "city=onehot",
               "--passes", "2", "--C", "1", "--seed", "7"],
    "shuffled-pipe": ["-", *NASTY, "--shuffle", "--C", "1"],
    "skipping": ["nasty.csv", *NASTY, "--C", "1", "--in-order"],
    "curves": ["rows.csv.gz", "--label", "y", "--holdout", "20%"],
    "curves-in-order": ["nasty.csv", *NASTY, "--in-order"],
    "curves-parquet": ["rows.parquet", "--label", "y"],
    "columns": ["rows.csv.gz", "rows.csv.gz", "--label", "y", "--columns", "run.toml"],
    "columns-all": ["nasty.csv", *NASTY, "--columns", "run.toml", "--holdout", "20%", "--passes", "2"],
    "columns-in-order": ["rows.parquet", "--label", "y", "--columns", "run.toml", "--in-order"],
    "columns-pipe": ["-", *NASTY, "--columns", "run.toml"],
    "members": ["nasty.csv.gz", *NASTY, "--passes", "2", "--covariance", "diagonal", "--in-order"],
    "pipe": ["-", *NASTY, "--C", "1"],
    "pipe-gz": ["-", *NASTY, "--policy", "reservoir", "--forgetting", "0.001"],
    "parquet": ["rows.parquet", "--label", "y", "--positive", "1", "--categorical", "city=hash:4",
                *SKIP],
    "wide": ["wide.csv", "--label", "y", "--positive", "1", "--scale", "none", "--C", "0.1",
             "--buffer-size", "20"],
    "wide-forgetting": ["wide.csv", "--label", "y", "--positive", "1", "--scale", "none",
                        "--C", "0.5", "--buffer-size", "20", "--forgetting", "0.01"],
}  # fmt: skip
UPDATE = {
    "in-place": ["rows.svm", "more.svm"],
    "beside": ["more.svm", "rows.svm", "-o", "out.model"],
    "twice": ["rows.svm", "--passes", "2"],
    "shuffled": ["more.svm", "rows.svm", "--shuffle", "--seed", "3"],
}
PIPED = {"pipe": "nasty.csv", "pipe-gz": "nasty.csv.gz", "shuffled-pipe": "nasty.csv.gz",
         "columns-pipe": "nasty.csv"}  # fmt: skip
SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
BLOCKS = [1000, 65_536, 2**20]
CHUNK = 60_000  # bytes, so that small files have many chunks


class Scene:
    """One command, and the bytes it gives when nobody kills it."""

    def __init__(self, data, command, name, server):
        self.data, self.command, self.name = data, command, name
        self.arguments = (TRAIN if command == "train" else UPDATE)[name]
        self.piped = PIPED.get(name)
        with self.folder() as folder:
            begin = time.perf_counter()
            self.run(server, folder)
            self.seconds = time.perf_counter() - begin
            self.expected, self.columns = self.result(folder), self.columns_in(folder)

    def folder(self):
        folder = tempfile.TemporaryDirectory()
        for path in Path(self.data).iterdir():
            if path.name == "base.model":
                shutil.copy(path, folder.name)
            else:
                Path(folder.name, path.name).symlink_to(path)
        return folder

    def line(self):
        if self.command == "train":
            return ["train", *self.arguments, "-o", "out.model", *EVERY]
        return ["update", "base.model", *self.arguments, *EVERY]

    def result(self, folder):
        in_place = self.command == "update" and "-o" not in self.arguments
        return Path(folder, "base.model" if in_place else "out.model").read_bytes()

    def columns_in(self, folder):
        """Return the file of columns, if the command wrote one."""
        file = Path(folder, "run.toml")
        return file.read_bytes() if file.exists() else None

    def run(self, server, folder, block=BLOCKS[-1], kill=None):
        """Run the command; return the code with which it ends, 0 unless it was killed."""
        errors = f"{folder}.errors"
        Path(errors).touch()
        piped = self.piped and str(Path(self.data, self.piped))
        try:
            process = server.start(
                folder, self.line(), errors=errors, piped=piped, block=block, chunk=CHUNK
            )
            if kill:
                time.sleep(kill[0])
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, kill[1])
            code, told = server.end(), Path(errors).read_text()
        finally:
            Path(errors).unlink(missing_ok=True)
        fine = {0, -kill[1], 128 + kill[1]} if kill else {0}
        if kill and "Aborted!" in told:  # click says so of an interrupt when all is done
            fine.add(1)
        assert code in fine, f"{self.line()} gave {code} with {server.name}: {told}"
        return code

    def round(self, draw, kills, ready):
        """Kill up to `kills` times, run to the end, compare; return the moments of the kills."""
        moments = []
        with self.folder() as folder:
            for _ in range(kills):
                kill = draw.uniform(0, 1.1 * self.seconds), draw.choice(SIGNALS)
                if self.run(draw.choice(ready), folder, draw.choice(BLOCKS), kill) == 0:
                    break
                moments.append(kill[0])
            self.run(draw.choice(ready), folder, draw.choice(BLOCKS))
            assert self.result(folder) == self.expected, f"{self.line()} killed at {moments}"
            assert self.columns_in(folder) == self.columns, f"{self.line()} killed at {moments}"
            left = {path.name for path in Path(folder).glob("run.*")} - {"run.toml"}
            assert not left, f"{left} left behind"
        return moments


def learned(scene):
    """Return what a model file holds, but for the names of the files it was learned from."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        path.write_bytes(scene.expected)
        arrays, facts = modelfile.read(path)
    run = facts.pop("last_run")["asked"]
    return {name: array.tobytes() for name, array in arrays.items()}, facts, run


# The data -----------------------------------------------------------------------------------------


def make_data(folder, rows=12_000):
    """Write rows whose features appear late, as text and as tables, and nastier ones."""
    draw, folder = random.Random(0), Path(folder)
    for name, count in (("rows.svm", rows), ("more.svm", rows // 3)):
        with (folder / name).open("w") as file:
            for row in range(count):
                width = 5 + row * 10 // count
                cells = " ".join(f"{j}:{draw.gauss(0, 1):.3f}" for j in range(1, width, 2))
                file.write(f"{1 if draw.random() < 0.2 else -1} {cells}\n")
    with gzip.open(folder / "rows.csv.gz", "wt", compresslevel=1) as file:
        file.write("a,city,y\n")
        for row in range(rows):
            city = draw.randrange(2 + row * 20 // rows)
            file.write(f"{draw.gauss(0, 1):.3f},c{city},{'yes' if draw.random() < 0.2 else 'no'}\n")
    make_nasty(folder, rows, draw)
    make_parquet(folder / "rows.parquet", rows)
    make_wide(folder / "wide.csv", rows // 3)


def make_nasty(folder, rows, draw):
    """Write a table with malformed rows, cells of several lines, and lines in them like rows."""
    text = ["\ufeffid,a,b,comment,y\r\n"]
    for row in range(rows):
        label = "maybe" if row % 1009 == 1000 else "yes" if draw.random() < 0.2 else "no"
        a = "NA" if draw.random() < 0.1 else f"{draw.gauss(0, 1):.4f}"
        lines = "\n".join(
            f"r{draw.randrange(99)},{draw.gauss(0, 1):.2f},1,note,{draw.choice(['yes', 'no'])}"
            for _ in range(draw.choice([1, 2, 2, 9]))
        )
        comment = draw.choice(["", "plain", f'"they said:\r\n{lines}\nbye ""now"""'])
        if row % 701 == 700:
            comment = draw.choice(['"open', f'"closed\n{lines}" and on', '"', f'"{lines}'])
        end = "" if row == rows - 1 else draw.choice(["\n", "\n", "\r\n", "\n\r\n"])
        text.append(f"r{row},{a},{draw.gauss(0, 1):.3f},{comment},{label}{end}")
    data = "".join(text).encode()
    (folder / "nasty.csv").write_bytes(data)
    third = len(data) // 3
    members = data[:third], data[third : 2 * third], data[2 * third :]
    (folder / "nasty.csv.gz").write_bytes(b"".join(gzip.compress(part, 1) for part in members))


def make_parquet(path, rows):
    rng = np.random.RandomState(0)
    values = rng.standard_normal((rows, 3)).round(3)
    values[rng.randint(0, rows, rows // 50), 1] = np.nan
    table: dict[str, Any] = {"a": values[:, 0], "b": values[:, 1], "c": values[:, 2]}
    table["city"] = [f"c{number}" for number in rng.randint(0, 40, rows)]
    table["y"] = (values[:, 0] + rng.standard_normal(rows) > 1).astype(int)
    parquet.write_table(pa.table(table), path, row_group_size=rows // 5)


def make_wide(path, rows, width=140):
    rng = np.random.RandomState(1)
    X = rng.standard_normal((rows, width)).round(2)
    y = X[:, 0] + rng.standard_normal(rows) > 1
    with path.open("w") as file:
        file.write(",".join(f"f{column}" for column in range(width)) + ",y\n")
        for row, label in zip(X.tolist(), y, strict=True):
            file.write(",".join(map(str, row)) + f",{int(label)}\n")


def make_model(folder, server):
    """Write the model that updates begin with."""
    line = ["train", "rows.svm", "-o", "base.model", "--covariance", "diagonal", "--quiet"]
    server.start(folder, line, errors=os.devnull, piped=None, block=BLOCKS[-1], chunk=CHUNK)
    assert server.end() == 0


def settings():
    """Return numbers of threads, and the cores they run on."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
    one = {min(cores)}
    return [(1, one), (4, cores), (2, cores), (2, one)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--kills", type=int, default=3, help="at most, in one round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="scenes, with commas between them")
    options = parser.parse_args()
    names = [("train", name) for name in TRAIN] + [("update", name) for name in UPDATE]
    if options.only:
        names = [(command, name) for command, name in names if name in options.only.split(",")]
    draw, killed = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory() as folder, servers(settings()) as ready:
        make_data(folder)
        make_model(folder, ready[0])
        scenes = {}
        begin = time.monotonic()
        for number in range(options.rounds):
            command, name = names[number % len(names)]
            if (command, name) not in scenes:
                scenes[command, name] = Scene(folder, command, name, ready[0])
            scene = scenes[command, name]
            moments = scene.round(draw, draw.randint(1, options.kills), ready)
            killed += len(moments)
            told = ", ".join(f"{moment:.2f}" for moment in moments) or "never, it was done before"
            left = (time.monotonic() - begin) / (number + 1) * (options.rounds - number - 1)
            print(
                f"{number + 1}/{options.rounds}: {command} {name}, {scene.seconds:.2f} s, killed "
                f"at {told}: identical; {left // 60:.0f} min {left % 60:.0f} s left",
                flush=True,
            )
    print(f"{options.rounds} rounds, {killed} kills, every model file identical")
    return 0


if __name__ == "__main__":
    sys.exit(main())
