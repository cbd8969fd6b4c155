"""How much of `cbrank train` is reading, and how much memory it takes.

``python tests/tools/reading_share.py covtype.svm --copies 1 20`` learns from a file, and from so many
copies of it one after the other, each in a process of its own. With ``--label NAME`` the file is a table,
which is taken as it comes, and curves are learned. With ``--shuffle`` rows are shuffled first, and the size of
their temporary files is printed too.
"""

import argparse
import resource
import subprocess
import sys
import time

from cbrank import AdditiveRanker, CBRanker
from cbrank.streams import Columns, StreamScaler, TableColumns
from cbrank.training import Model, Run
from cbrank.training.shuffling import Buckets


def new_model(covariance, buffer_size, label):
    if label is not None:
        ranker = AdditiveRanker(covariance=covariance, random_state=0)
        return Model(ranker, None, TableColumns(label))
    ranker = CBRanker(covariance=covariance, buffer_size=buffer_size, random_state=0)
    scaler = StreamScaler("unit") if covariance == "diagonal" else None
    return Model(ranker, scaler, Columns())


def learn(path, copies, covariance, buffer_size, label, shuffle):
    """Learn, and print rows, seconds, the share that is not learning, and the peak of memory."""
    model = new_model(covariance, buffer_size, label)
    spent = 0.0

    def timed(chunk, learn=model.learn):
        nonlocal spent
        begin = time.perf_counter()
        learn(chunk)
        spent += time.perf_counter() - begin

    vars(model)["learn"] = timed
    sizes = []

    def noted(buckets, width, shuffled=Buckets.shuffled):
        sizes.append(sum(file.size for file in buckets._files))
        return shuffled(buckets, width)

    setattr(Buckets, "shuffled", noted)  # noqa: B010
    run = Run(model, [path] * copies, shuffle=shuffle)
    steps = iter(run)
    next(steps)  # the first chunk loads, or compiles, the kernels
    begin, spent = time.perf_counter(), 0.0
    for _ in steps:
        pass
    whole = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        2**20 if sys.platform == "darwin" else 2**10
    )
    print(
        f"{covariance}, {copies} copies: {run.progress.rows:,} rows in {whole:.1f} s, "
        f"reading {1 - spent / whole:.1%} of it; peak memory {peak:.0f} MiB"
        + (f"; temporary files {sizes[0] / 2**20:,.0f} MiB" if sizes else "")
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--copies", type=int, nargs="+", default=[1])
    parser.add_argument("--covariance", nargs="+", default=["full", "diagonal"])
    parser.add_argument("--buffer-size", type=int, default=10)
    parser.add_argument("--label")
    parser.add_argument("--shuffle", action="store_true")
    options = parser.parse_args()
    size, table = ["--buffer-size", str(options.buffer_size)], []
    if options.label is not None:
        table = ["--label", options.label]
    table += ["--shuffle"] if options.shuffle else []
    if len(options.copies) == len(options.covariance) == 1:
        one = options.copies[0], options.covariance[0], options.buffer_size, options.label
        learn(options.path, *one, options.shuffle)
        return
    for covariance in options.covariance:
        for copies in options.copies:
            alone = ["--copies", str(copies), "--covariance", covariance]
            line = [options.path, *alone, *size, *table]
            subprocess.run([sys.executable, __file__, *line], check=True)


if __name__ == "__main__":
    main()
