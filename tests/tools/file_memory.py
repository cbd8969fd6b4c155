"""How much memory it takes to use a model file, above what the same takes with a small one.

``python tests/tools/file_memory.py open,inspect MODEL SMALL ROWS FOLDER`` prints the bytes by use.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from scipy import sparse

import cbrank
from cbrank.cli import main

ROOM, FACTOR = 2**26, 4
CLEAR, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def allowed(size):
    """Return the bytes that using a file of so many bytes may take."""
    return ROOM + FACTOR * size


def can_measure():
    return os.access(CLEAR, os.W_OK)


def resident(name="VmRSS"):
    """Return the bytes that this process has in memory, or with VmHWM has had at most."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def forget_peak():
    """Let VmHWM begin anew."""
    CLEAR.write_text("5")


# What is done with a file -------------------------------------------------------------------------


def rows_for(model):
    """Return a few rows as the model likes them; they touch few features."""
    width = model.n_features_in_
    places = np.unique(np.linspace(0, width - 1, 3).astype(int))
    indptr = np.arange(5) * places.size
    data = np.tile([1.0, -2.0, 0.5][: places.size], 4)
    rows = sparse.csr_array((data, np.tile(places, 4), indptr), shape=(4, width))
    dense = width <= 5000 or model.TAKES_TABLES
    return rows.toarray() if dense else rows, model.classes_[[0, 1, 1, 0]]


def opened(path):
    whole = cbrank.load(path)
    return whole if not hasattr(whole, "steps") else whole[-1]


def score(path, data, folder):
    model = opened(path)
    model.predict(rows_for(model)[0])


def learn(path, data, folder):
    model = opened(path)
    model.partial_fit(*rows_for(model))


def merge(path, data, folder):
    cbrank.merge([opened(path), opened(path)])


def command(*line):
    """Return what runs a command of the command line."""

    def call(path, data, folder):
        words = {"MODEL": str(path), "DATA": str(data), "OUT": str(folder / "out")}
        result = CliRunner().invoke(main, [words.get(word, word) for word in line])
        if result.exit_code not in (0, 1) or "internal error" in result.output:
            raise AssertionError(result.output) from result.exception

    return call


def open_only(path, data, folder):
    opened(path)


USES = {
    "open": open_only,
    "score": score,
    "learn": learn,
    "merge": merge,
    "inspect": command("inspect", "MODEL"),
    "export": command("export", "MODEL", "--onnx", "OUT"),
    "cli-score": command("score", "MODEL", "DATA", "--label", "--quiet"),
    "cli-update": command("update", "MODEL", "DATA", "-o", "OUT", "--quiet"),
}


def measure(uses, path, small, data, folder):
    """Use a small file, then another; return the bytes that the other took above that, by use."""
    for use in [*uses, *uses]:
        attempt(USES[use], small, data, folder)
    before, took = resident(), {}
    for use in uses:
        forget_peak()
        said = attempt(USES[use], path, data, folder)
        took[use] = resident("VmHWM") - before, said
    return took


def attempt(call, path, data, folder):
    try:
        call(path, data, folder)
    except (ValueError, OSError) as error:
        return str(error)[:200]
    return "done"


def measured(uses, path, small, data):
    """Do it in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        line = [sys.executable, __file__, ",".join(uses), *map(str, (path, small, data, folder))]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def main_program():
    uses, *paths = sys.argv[1:]
    print(json.dumps(measure(uses.split(","), *map(Path, paths))))


if __name__ == "__main__":
    main_program()
