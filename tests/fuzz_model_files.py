"""Open changed model files, many of them: python tests/fuzz_model_files.py --count 100000.

Nothing but a ModelFileError may come of it; what opens all the same must score and go on learning.
With --atheris, libFuzzer leads the changes to code they have not reached yet.
"""

import argparse
import contextlib
import random
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

guided = contextlib.nullcontext()
if "--atheris" in sys.argv:
    import atheris

    guided = atheris.instrument_imports(include=["cbrank.modelfile"])
with guided:
    from forgery import bytes_of, mutate, opened, small_models

    from cbrank.modelfile import ModelFileError

LONGEST = 5  # seconds


def seeds():
    with tempfile.TemporaryDirectory() as folder:
        return [bytes_of(model, Path(folder)) for _, model in small_models()]


def attempt(data):
    """Open a file and use what it holds; return whether it opened."""
    try:
        model = opened(data)
    except ModelFileError:
        return False
    row = np.linspace(-1.0, 1.0, model.n_features_in_)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # numbers may overflow
        model.predict([row])
        for label in model.classes_.tolist():
            model.learn_one(row, label)
    return True


def run(count, seed):
    files, rng = seeds(), random.Random(seed)
    assert all(map(attempt, files))
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    n_opened, slowest = 0, 0.0
    for _ in range(count):
        data = mutate(rng.choice(files), rng, files)
        start = time.perf_counter()
        try:
            n_opened += attempt(data)
        except BaseException:
            Path("fuzz-failure.cbrank").write_bytes(data)
            print("This file broke it: fuzz-failure.cbrank")
            raise
        slowest = max(slowest, time.perf_counter() - start)
    seconds = time.perf_counter() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(
        f"{count} files, {n_opened} opened, 0 failures, {count / seconds:.0f} a second, "
        f"slowest {slowest:.2f} s, memory grew by {grown:.0f} MB"
    )
    return slowest < LONGEST


def run_guided(count, seed):
    files = seeds()

    def change(data, max_size, seed):
        rng = random.Random(seed)
        return mutate(data if len(data) > 8 else rng.choice(files), rng, files)[:max_size]

    options = [f"-runs={count}", f"-seed={seed}", f"-timeout={LONGEST}", "-max_len=20000"]
    atheris.Setup([sys.argv[0], *options], attempt, custom_mutator=change)
    atheris.Fuzz()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--atheris", action="store_true", help="needs pip install atheris")
    given = parser.parse_args()
    if given.atheris:
        return run_guided(given.count, given.seed)
    return not run(given.count, given.seed)


if __name__ == "__main__":
    sys.exit(main())
