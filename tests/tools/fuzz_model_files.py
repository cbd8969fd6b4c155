"""Forge and damage model files, very many of them, and use whatever opens.

``python tests/tools/fuzz_model_files.py --count 1000000`` changes files of every kind, most of them with
a checksum that fits, opens them in two processes, and scores, learns, inspects, saves, exports and
merges what opens. Nothing but a sentence may come of it: no crash, no hang, no error of any other
kind, and no more memory than `file_memory.allowed` says (Linux tells). A file that breaks it is kept as
``fuzz-failure-NUMBER.cbrank``, and ``--only NUMBER`` with the same seed makes it again.

With --atheris, libFuzzer leads changes of bytes to code they have not reached yet.
"""

import argparse
import collections
import contextlib
import copy
import faulthandler
import functools
import io
import json
import mmap
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

guided = contextlib.nullcontext()
if "--atheris" in sys.argv:
    import atheris

    guided = atheris.instrument_imports(include=["cbrank.modelfile"])
with guided:
    import cbrank.onnx
    from cbrank import AdditiveRanker, CBRanker
    from cbrank.cli import inspect, main
    from cbrank.inspection.contents import Contents
    from cbrank.inspection.display import ends_of, panels_of
    from cbrank.inspection.scoring import say
    from cbrank.inspection.weights import by_effect
    from cbrank.modelfile import ModelFileError, gather, restore
    from cbrank.streams import open_stream
    from cbrank.training import Checkpoint, Every, Model, Run

from click.testing import CliRunner
from file_memory import CLEAR, allowed, can_measure, resident
from forged_models import ASKED, forge, packed, seeds, unpacked
from forgery import mutate

# scikit-learn looks up the parameters of a class at every look at an estimator, which takes as long
# as all that is tested here.
BaseEstimator._get_param_names = classmethod(
    functools.cache(BaseEstimator._get_param_names.__func__)
)

LONGEST = 10  # seconds that one file may take
BATCH = 2000  # files of one process, which then begins anew
WORKERS = 2
BY_COMMAND = 150  # one of so many files that open also goes through the commands themselves
NOT_OURS = (
    "broadcast",
    "shape mismatch",
    "could not convert",
    "too big",
    "setting an array",
    "NaT",
)


class Hang(BaseException):
    """A file took too long."""


class Broken(Exception):
    """A file did what none should."""


# What is done with a file -------------------------------------------------------------------------


def attempt(data, random, rows=b"", folder=None):
    """Open a file and use what it holds; return whether it opened."""
    try:
        arrays, facts = unpacked(data)
        if "columns" in facts and rows and random.random() < 0.7:  # as the commands do
            contents = Contents.of(Path(__file__), arrays, facts)
            whole = Model(contents.ranker, contents.scaler, contents.columns)
        else:
            whole = restore("model", arrays, facts)
            facts.pop("columns", None)
            ranker, scaler = _parts(whole)
            contents = Contents(Path(__file__), ranker, scaler, None, facts, {})
    except ModelFileError:
        return False
    with _expected():
        _inspect(contents)
    with _expected():
        _export(contents)
    if contents.columns is not None:
        _use_model(whole, rows)
    else:
        ranker, scaler = _parts(whole)
        _use_ranker(whole, ranker, scaler, random)
    if isinstance(contents.ranker, CBRanker | AdditiveRanker):
        with _expected():
            cbrank.merge([contents.ranker, copy.deepcopy(contents.ranker)])
    if folder and "run" in facts and random.random() < 0.2:
        _go_on(data, rows, Path(folder))
    if folder and random.randrange(BY_COMMAND) == 0:
        by_command(data, rows, Path(folder))
    return True


def _parts(whole):
    """Return the ranker, and the scaler before it."""
    if not hasattr(whole, "steps"):
        return whole, None
    return whole[-1], whole[0] if len(whole.steps) > 1 else None


def _inspect(contents):
    if hasattr(contents.ranker, "effects"):
        for panel in panels_of(contents.ranker, n=20):
            ends_of(panel)
        inspect._summary(contents, ages=False)
        return
    weights = by_effect(contents.ranker, 20)
    names = contents.names(weights.features.tolist())
    inspect._summary(contents, ages=False)
    inspect._table(names, weights)


def _export(contents):
    if hasattr(contents.ranker, "effects"):
        cbrank.onnx.to_onnx(contents.ranker, contents.scaler, labels=contents.labels())
    elif contents.columns is None or not contents.columns.categorical:
        names, labels = contents.feature_names(), contents.labels()
        cbrank.onnx.to_onnx(contents.ranker, contents.scaler, features=names, labels=labels)


def _use_ranker(whole, ranker, scaler, random):
    """Score and learn rows that touch only some features, dense or sparse."""
    labels, width = ranker.classes_.tolist(), ranker.n_features_in_
    with _expected():
        whole.predict(_rows(ranker, random))
    with _expected():
        rows = _rows(ranker, random)
        rows = rows if scaler is None else scaler.learn_transform(rows)
        ranker.partial_fit(rows, [labels[random.randrange(2)] for _ in range(3)])
    with _expected():
        ranker.learn_one(np.linspace(-1.0, 1.0, width), labels[1])
    with _expected():
        packed(*gather(model=whole))


def _rows(ranker, random):
    width = ranker.n_features_in_
    X = np.zeros((3, width))
    X[np.arange(3), [random.randrange(width) for _ in range(3)]] = [1.0, -2.0, 1e3]
    is_sparse = random.random() < 0.5 and not hasattr(ranker, "effects")
    return sparse.csr_array(X) if is_sparse else X


def _use_model(model, rows):
    """Do what score and update do."""
    with _expected():
        [chunk] = open_stream(io.BytesIO(rows), columns=model.columns, learn=False)
        sure = isinstance(model.ranker, CBRanker | AdditiveRanker)
        say(model, chunk.X, std=sure, confidence=sure, proba=False, label=True)
    with _expected():
        [chunk] = open_stream(io.BytesIO(rows), columns=model.columns)
        model.learn(chunk)
        packed(*model._gathered())


def _sentence(error):
    """Raise an error that no one could make sense of."""
    said = str(error)
    if not said.strip() or any(words in said for words in NOT_OURS):
        raise Broken(f"{type(error).__name__}: {said[:300]}") from error


@contextlib.contextmanager
def _expected():
    try:
        yield
    except (ValueError, OSError) as error:
        _sentence(error)


def by_command(data, rows, folder):
    """Give a file to the commands, as a user would."""
    (folder / "forged").write_bytes(data)
    (folder / "rows").write_bytes(rows)
    model, given, out = (str(folder / name) for name in ("forged", "rows", "out"))
    for line in (
        ["inspect", model, "--json"],
        ["score", model, given, "--std", "--label"],
        ["evaluate", model, given],
        ["update", model, given, "-o", out, "--quiet"],
        ["update", model, given, "--checkpoint", out + ".ckpt", "--resume", "-o", out],
        ["export", model, "--onnx", out],
    ):
        result = CliRunner().invoke(main, line)
        left = result.exception is not None and not isinstance(result.exception, SystemExit)
        if left or result.exit_code not in (0, 1) or "internal error" in result.output:
            raise Broken(f"{line[0]}: {result.output[-300:]}") from result.exception
        (folder / "out.ckpt").unlink(missing_ok=True)


def _go_on(data, rows, folder):
    """Do what --resume does with a checkpoint."""
    (folder / "forged").write_bytes(data)
    (folder / "rows").write_bytes(rows)
    with _expected():
        found = Checkpoint(folder / "forged", ASKED, Every()).open()
        if found:
            collections.deque(Run(found[0], [str(folder / "rows")], found[1]), maxlen=0)


# Very many files ----------------------------------------------------------------------------------


class Case:
    """The file of a number, which depends on that and on the seed alone."""

    def __init__(self, files, seed, number):
        self.random = random.Random(f"{seed}/{number}")
        self.chosen = self.random.choice(files)
        self.data = forge(self.chosen, self.random, files)

    def attempt(self, folder):
        return attempt(self.data, self.random, self.chosen.rows, folder)


def carry_out(files, seed, numbers, now, folder):
    """Try the files of some numbers; return how many opened, what broke, seconds and bytes."""
    signal.signal(signal.SIGALRM, _alarm)
    warnings.simplefilter("ignore")  # numbers may overflow
    np.seterr(all="ignore")
    # Room for the compiler and for what is mapped, not for a file that swells.
    limit = resident("VmSize") + 2**31
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    n_opened, slowest, most, broken = 0, 0.0, 0, {}
    _forget_peak()
    before = resident()
    for number in numbers:
        now[:8] = number.to_bytes(8, "little")
        case, start = Case(files, seed, number), time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, LONGEST)
        try:
            n_opened += case.attempt(folder)
        except Hang:
            broken[number] = f"hang: more than {LONGEST} s"
        except BaseException as error:  # noqa: BLE001
            where = traceback.extract_tb(error.__traceback__)[-1]
            broken[number] = f"{type(error).__name__}: {str(error)[:200]} ({where.name})"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        slowest = max(slowest, time.perf_counter() - start)
        took = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        most = max(most, took)
        if took > allowed(len(case.data)):
            broken.setdefault(number, f"memory: {took / 2**20:.0f} MiB")
            _forget_peak()
    return {"opened": n_opened, "slowest": slowest, "most": most, "broken": broken}


def _alarm(*_):
    raise Hang


def _forget_peak():
    if can_measure():
        CLEAR.write_text("5")


class Worker:
    """A process that tries the files of a batch, and can crash without harm."""

    def __init__(self, files, seed, numbers):
        self.numbers, self.now = numbers, mmap.mmap(-1, 8)
        self.seen, self.since = numbers[0], time.monotonic()
        inward, outward = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(outward)
            self.pipe = os.fdopen(inward, "rb")
            return
        with tempfile.TemporaryDirectory() as folder:
            try:
                faulthandler.enable()
                found = carry_out(files, seed, numbers, self.now, folder)
                os.write(outward, json.dumps(found).encode())
            except BaseException:  # noqa: BLE001
                traceback.print_exc()
            finally:
                shutil.rmtree(folder, ignore_errors=True)
                os._exit(0)

    def at(self):
        return int.from_bytes(self.now[:8], "little")

    def is_stuck(self):
        if self.at() != self.seen:
            self.seen, self.since = self.at(), time.monotonic()
        return time.monotonic() - self.since > 6 * LONGEST

    def result(self):
        """Return what it found, and the numbers that are left if it crashed."""
        said = self.pipe.read()
        self.pipe.close()
        _, status = os.waitpid(self.pid, 0)
        if said:
            return json.loads(said), []
        at = self.at()
        code = os.waitstatus_to_exitcode(status)
        what = {at: "crash" if code != -signal.SIGKILL else "hang that had to be killed"}
        left = [number for number in self.numbers if number > at]
        return {"opened": 0, "slowest": 0.0, "most": 0, "broken": what}, left


class Tally:
    """What came of the files so far."""

    def __init__(self, count):
        self.count, self.done, self.opened = count, 0, 0
        self.slowest, self.most, self.broken = 0.0, 0, {}
        self.began = self.told = time.monotonic()

    def add(self, numbers, found):
        self.done += numbers
        self.opened += found["opened"]
        self.slowest, self.most = (
            max(self.slowest, found["slowest"]),
            max(self.most, found["most"]),
        )
        self.broken |= {int(number): what for number, what in found["broken"].items()}

    def tell(self):
        if time.monotonic() - self.told < 5:
            return
        self.told = time.monotonic()
        rate = self.done / (self.told - self.began)
        left = (self.count - self.done) / rate if rate else 0
        print(
            f"{self.done:,} of {self.count:,} files, {self.opened:,} opened, {len(self.broken)} "
            f"failures, {rate:.0f} a second, {left / 60:.0f} min left",
            flush=True,
        )

    def __str__(self):
        rate = self.done / max(time.monotonic() - self.began, 1e-9)
        return (
            f"{self.done} files, {self.opened} opened, {len(self.broken)} failures, {rate:.0f} a "
            f"second, slowest {self.slowest:.2f} s, at most {self.most / 2**20:.0f} MiB"
        )


def run(count, seed, keep=True, workers=WORKERS):
    """Try so many files; return what came of it."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = seeds(Path(folder))
        for file in files:  # compile all there is before processes part
            assert attempt(file.data, random.Random(0), file.rows), file.name
            if file.rows:
                by_command(file.data, file.rows, Path(folder))
    tally = Tally(count)
    batches = [range(at, min(at + BATCH, count)) for at in range(0, count, BATCH)][::-1]
    busy = []
    while batches or busy:
        while batches and len(busy) < workers:
            busy.append(Worker(files, seed, batches.pop()))
        ready, _, _ = select.select([worker.pipe for worker in busy], [], [], 1.0)
        for worker in list(busy):
            if worker.is_stuck():
                os.kill(worker.pid, signal.SIGKILL)
            if worker.pipe in ready:
                busy.remove(worker)
                found, left = worker.result()
                tally.add(len(worker.numbers) - len(left), found)
                batches += [left] if left else []
                for number, what in found["broken"].items():
                    _report(files, seed, int(number), what, keep)
        tally.tell()
    return tally


def _report(files, seed, number, what, keep):
    case = Case(files, seed, number)
    print(f"{number} ({case.chosen.name}): {what}", flush=True)
    if keep:
        Path(f"fuzz-failure-{number}.cbrank").write_bytes(case.data)


def run_one(seed, number):
    """Try one file in this process."""
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        case = Case(seeds(Path(folder)), seed, number)
        print(f"made of {case.chosen.name}, {len(case.data)} bytes")
        print("opened" if case.attempt(folder) else "refused")


def run_guided(count, seed):
    with tempfile.TemporaryDirectory() as folder:
        files = [file.data for file in seeds(Path(folder))]

    def change(data, max_size, seed):
        rng = random.Random(seed)
        return mutate(data if len(data) > 8 else rng.choice(files), rng, files)[:max_size]

    options = [f"-runs={count}", f"-seed={seed}", f"-timeout={LONGEST}", "-max_len=20000"]
    atheris.Setup(
        [sys.argv[0], *options],
        lambda data: attempt(data, random.Random(0)),
        custom_mutator=change,
    )
    atheris.Fuzz()


def main_program():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="try the file of this number")
    parser.add_argument("--atheris", action="store_true", help="needs pip install atheris")
    given = parser.parse_args()
    if given.atheris:
        return run_guided(given.count, given.seed)
    if given.only is not None:
        return run_one(given.seed, given.only)
    tally = run(given.count, given.seed)
    print(tally)
    return bool(tally.broken)


if __name__ == "__main__":
    sys.exit(main_program())
