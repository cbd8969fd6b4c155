"""How long the commands take with very wide tables, and how much memory.

``python tests/tools/wide_tables.py 20000x300 100000x100 1000000x20`` writes a CSV file of so many columns
and rows, then trains, scores, evaluates and inspects, once with the table as it comes and once as plain
numbers. A table that is refused must be refused by one sentence and within ``--refused`` seconds; a model
must score its rows from the command line and from Python.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

AGAIN = "import cbrank; cbrank.save(cbrank.load({!r}), {!r})"
PLAIN = ["--scale", "standard", "--covariance", "diagonal"]


def write(path, columns, rows):
    """Write a table of small whole numbers, the first five of which tell of the label."""
    random = np.random.default_rng(0)
    with path.open("w") as file:
        file.write(",".join(f"c{at}" for at in range(columns)) + ",y\n")
        for row in range(rows):
            label = int(random.random() < 0.4) if row > 1 else row
            cells = random.integers(0, 9, columns)
            cells[:5] += 3 * label
            file.write(",".join(map(str, cells.tolist())) + f",{label}\n")


def measured(*line):
    """Run Python; return its exit code, what it said, its seconds of processor and its peak in MiB."""
    command = [sys.executable, *map(str, line)]
    with tempfile.TemporaryFile("w+") as said:
        done = subprocess.Popen(command, stdout=said, stderr=said)
        _, status, spent = os.wait4(done.pid, 0)
        said.seek(0)
        text = said.read()
    code = os.waitstatus_to_exitcode(status)
    done.returncode = code  # it was waited for
    return code, text, spent.ru_utime + spent.ru_stime, spent.ru_maxrss / 2**10


def try_table(folder, columns, rows, options, refused):
    """Print what each command took; stop at the first that fails."""
    table, model = folder / f"{columns}x{rows}.csv", folder / "model"
    if not table.exists():
        write(table, columns, rows)
    name = f"{columns:,} x {rows}{', plain numbers' if options else ''}"
    begin = time.perf_counter()
    train = "train", table, "--label", "y", "-o", model, "--quiet", *options
    code, said, seconds, peak = measured("-m", "cbrank", *train)
    if code:
        assert said.startswith("Error: "), said
        assert said.count("\n") == 1, said
        assert time.perf_counter() - begin < refused, said
        print(f"{name}: {said.strip()}")
        return
    told = [f"train {seconds:.0f} s, {peak:,.0f} MiB, a file of {model.stat().st_size >> 20:,} MiB"]
    for line in (("score", model, table), ("evaluate", model, table), ("inspect", model)):
        code, said, seconds, peak = measured("-m", "cbrank", *line)
        assert code == 0, said
        told.append(f"{line[0]} {seconds:.0f} s, {peak:,.0f} MiB")
    code, said, seconds, peak = measured("-c", AGAIN.format(str(model), str(folder / "again")))
    assert code == 0, said
    told.append(f"load and save {seconds:.0f} s, {peak:,.0f} MiB")
    print(f"{name}: {'; '.join(told)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="+", metavar="COLUMNSxROWS")
    parser.add_argument("--refused", type=float, default=60.0, help="seconds until a refusal")
    parser.add_argument("--only", choices=["table", "plain"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes:
            columns, rows = map(int, size.split("x"))
            for kind, more in (("table", []), ("plain", PLAIN)):
                if options.only in (None, kind):
                    try_table(Path(folder), columns, rows, more, options.refused)


if __name__ == "__main__":
    main()
