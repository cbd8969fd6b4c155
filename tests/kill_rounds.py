"""Kill ``cbrank train`` and ``update`` at random moments, resume, and compare the model files.

``python tests/kill_rounds.py --rounds 40`` prints what each round did and fails on the first model
that differs from that of a run which was never killed.
"""

import argparse
import gzip
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# The child says when it is about to begin, so that kills fall into the run and not into imports.
CHILD = """
import sys
import cbrank.training, cbrank.streams.scaling, cbrank.kernels.svmlight, cbrank.kernels.csv
from cbrank.cli import main
print("ready", flush=True)
main(sys.argv[1:])
"""
EVERY = ["--checkpoint", "run.ckpt", "--every", "1", "--resume", "--quiet"]
TRAIN = {
    "full": ["rows.svm", "more.svm"],
    "diagonal": ["rows.svm", "more.svm", "--covariance", "diagonal", "--scale", "standard"],
    "reservoir": ["rows.svm", "--policy", "reservoir", "--passes", "2", "--class-weight", "2"],
    "table": ["rows.csv.gz", "--label", "y", "--categorical", "city=onehot"],
}
UPDATE = {
    "in-place": ["rows.svm", "more.svm"],
    "beside": ["more.svm", "rows.svm", "-o", "out.model"],
    "twice": ["rows.svm", "--passes", "2"],
}


class Scene:
    """One command, and the bytes it gives when nobody kills it."""

    def __init__(self, data, command, arguments):
        self.data, self.command, self.arguments = data, command, arguments
        with self.folder() as folder:
            self.seconds = run(folder, self.line())
            self.expected = self.result(folder)

    def folder(self):
        folder = tempfile.TemporaryDirectory()
        shutil.copytree(self.data, folder.name, dirs_exist_ok=True)
        return folder

    def line(self):
        if self.command == "train":
            return ["train", *self.arguments, "-o", "out.model", *EVERY]
        return ["update", "base.model", *self.arguments, *EVERY]

    def result(self, folder):
        in_place = self.command == "update" and "-o" not in self.arguments
        return Path(folder, "base.model" if in_place else "out.model").read_bytes()

    def round(self, rng, kills):
        """Kill up to `kills` times, run to the end, compare; return the moments of the kills."""
        moments = []
        with self.folder() as folder:
            for _ in range(kills):
                moment = rng.uniform(0, 1.1 * self.seconds)
                if run(folder, self.line(), moment) is not None:
                    break
                moments.append(moment)
            run(folder, self.line())
            assert self.result(folder) == self.expected, f"{self.line()} killed at {moments}"
            left = {path.name for path in Path(folder).iterdir()} & {"run.ckpt", "run.ckpt.lock"}
            assert not left, f"{left} left behind"
        return moments


def run(folder, line, kill_after=None):
    """Run a command; return its seconds, or None if it was killed before it ended."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, *line], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout.readline() == "ready\n"
        begin = time.perf_counter()
        try:
            code = child.wait(kill_after)
        except subprocess.TimeoutExpired:
            child.kill()
            code = child.wait()
        seconds = time.perf_counter() - begin
    assert code in (0, -9), f"{line} gave {code}"
    return seconds if code == 0 else None


def make_data(folder, rows=50_000):
    """Write rows whose features appear late, as text and as a compressed table, and a model."""
    rng = random.Random(0)
    folder = Path(folder)
    for name, count in (("rows.svm", rows), ("more.svm", rows // 3)):
        with (folder / name).open("w") as file:
            for row in range(count):
                width = 5 + row * 10 // count
                cells = " ".join(f"{j}:{rng.gauss(0, 1):.3f}" for j in range(1, width, 2))
                file.write(f"{1 if rng.random() < 0.2 else -1} {cells}\n")
    with gzip.open(folder / "rows.csv.gz", "wt", compresslevel=1) as file:
        file.write("a,city,y\n")
        for row in range(rows):
            city = rng.randrange(2 + row * 20 // rows)
            file.write(f"{rng.gauss(0, 1):.3f},c{city},{'yes' if rng.random() < 0.2 else 'no'}\n")
    run(folder, ["train", "rows.svm", "-o", "base.model", "--covariance", "diagonal", "--quiet"])


def scenes(folder):
    """Yield the scenes, each made when it is first asked for."""
    make_data(folder)
    for name, arguments in TRAIN.items():
        yield f"train {name}", Scene(folder, "train", arguments)
    for name, arguments in UPDATE.items():
        yield f"update {name}", Scene(folder, "update", arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--kills", type=int, default=3, help="at most, in one round")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, killed = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory() as folder:
        ready = list(scenes(folder))
        for number in range(options.rounds):
            name, scene = ready[number % len(ready)]
            moments = scene.round(rng, rng.randint(1, options.kills))
            killed += len(moments)
            told = ", ".join(f"{moment:.2f}" for moment in moments) or "never, it was done before"
            print(
                f"{number + 1}: {name}, {scene.seconds:.2f} s, killed at {told}: identical",
                flush=True,
            )
    print(f"{options.rounds} rounds, {killed} kills, every model file identical")


if __name__ == "__main__":
    main()
