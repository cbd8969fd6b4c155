"""How much memory it takes to use a model file: python tests/file_memory.py.

Files that are large, or made to swell, are opened, inspected, scored with, learned into, exported
and merged, each in a process of its own. What that takes above what the same takes with a small
file must stay below `allowed`.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse

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
    dense = width <= 5000
    return rows.toarray() if dense else rows, model.classes_[[0, 1, 1, 0]]


def opened(path):
    import cbrank

    whole = cbrank.load(path)
    return whole if not hasattr(whole, "steps") else whole[-1]


def score(path, data, folder):
    model = opened(path)
    model.predict(rows_for(model)[0])


def learn(path, data, folder):
    model = opened(path)
    model.partial_fit(*rows_for(model))


def merge(path, data, folder):
    import cbrank

    cbrank.merge([opened(path), opened(path)])


def command(*line):
    """Return what runs a command of the command line."""

    def call(path, data, folder):
        from click.testing import CliRunner

        from cbrank.cli import main

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


def measure(use, path, small, data, folder):
    """Use a small file, then another; return the bytes that the other took above that."""
    for _ in range(2):
        attempt(USES[use], small, data, folder)
    before = resident()
    forget_peak()
    said = attempt(USES[use], path, data, folder)
    return resident("VmHWM") - before, said


def attempt(call, path, data, folder):
    try:
        call(path, data, folder)
    except (ValueError, OSError) as error:
        return str(error)[:200]
    return "done"


def measured(use, path, small, data):
    """Do it in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        line = [sys.executable, __file__, use, *map(str, (path, small, data, folder))]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    use, *paths = sys.argv[1:]
    path, small, data, folder = map(Path, paths)
    print(json.dumps(measure(use, path, small, data, folder)))
