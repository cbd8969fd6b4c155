"""Print speed, memory and AUC of learning on a cluster (docs/merging.md).

    python docs/measure_dask.py [speed] [memory] [covtype] [--quick] > docs/_dask_measures.md

``speed``: the same partitions learned by one worker process and by two. ``memory``: how much the
client's memory grows with the data, which are larger than the memory of a worker. ``covtype``: AUC
of 16 and 64 partitions on 4 worker processes against one pass over all rows.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import one_class
from dask import delayed
from dask.distributed import Client, LocalCluster

from cbrank import CBRanker
from cbrank.dask import DaskRanker

WIDTH = 200
LIMIT = 600  # MiB of a worker
MIB = 2**20


def cluster(workers, **options):
    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", **options)


def made(seed, rows):
    """Return the rows and labels of a partition: 10% positive, with a shifted mean."""
    random = np.random.default_rng(seed)
    y = random.random(rows) < 0.1
    return random.standard_normal((rows, WIDTH)) + 0.1 * y[:, None], y.astype(int)


def stream(partitions, rows):
    parts = [delayed(made, nout=2)(seed, rows) for seed in range(partitions)]
    return [X for X, _ in parts], [y for _, y in parts]


def fitted(client, X, y, **parameters):
    return DaskRanker(CBRanker(random_state=0, **parameters), client=client).fit(X, y)


def speed(quick):
    partitions, rows = (8, 2_000) if quick else (16, 20_000)
    seconds, weights = {}, []
    for workers in (1, 2):
        with cluster(workers) as local, Client(local) as client:
            fitted(client, *stream(2 * workers, 100), C=0.01)  # loads what is compiled
            begin = time.perf_counter()
            weights.append(fitted(client, *stream(partitions, rows), C=0.01).coef_)
            seconds[workers] = time.perf_counter() - begin
    same = "the same ranker to the last bit" if np.array_equal(*weights) else "ANOTHER RANKER"
    print(
        f"- {partitions} partitions of {rows:,} rows and {WIDTH} features: {seconds[1]:.1f} s with one "
        f"worker, {seconds[2]:.1f} s with two, {seconds[2] / seconds[1]:.2f} of it; {same}."
    )


def memory(quick):
    """Run every size in a process of its own, so that each has its own peak memory."""
    for partitions in (4, 8) if quick else (16, 80):
        command = [sys.executable, __file__, "one_size", "--partitions", str(partitions)]
        subprocess.run(command, check=True)


def one_size(partitions):
    rows = 20_000
    with cluster(2, memory_limit=f"{LIMIT}MiB") as local, Client(local) as client:
        fitted(client, *stream(4, 100), C=0.01)
        before = peak()
        ranker = fitted(client, *stream(partitions, rows), C=0.01)
        grown = peak() - before
        spilled = max(info["metrics"]["spilled_bytes"]["disk"] for info in workers_of(client))
    print(
        f"- {ranker.n_seen_.sum():,} rows, {8 * WIDTH * rows * partitions / MIB:,.0f} MiB in "
        f"{partitions} partitions, two workers of {LIMIT} MiB each: the client's peak grew by "
        f"{grown:.0f} MiB to {before + grown:.0f} MiB; spilled to disk: {spilled / MIB:.0f} MiB."
    )


def workers_of(client):
    return client.scheduler_info(n_workers=-1)["workers"].values()


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def covtype(quick):
    X, y = one_class.load("covtype")
    order = np.random.RandomState(0).permutation(len(y))[: 50_000 if quick else None]
    train, test = np.split(order, [len(order) * 4 // 5])
    whole = CBRanker(random_state=0).partial_fit(X[train], y[train])
    auc = whole.score(X[test], y[test])
    print(f"- covtype, {len(train):,} rows, one pass: AUC {auc:.4f}.")
    with (
        tempfile.TemporaryDirectory() as folder,
        cluster(4) as local,
        Client(local) as client,
    ):
        for partitions in (16, 64):
            paths = []
            for number, rows in enumerate(np.array_split(train, partitions)):
                paths.append(Path(folder, f"{partitions}-{number}.npy"))
                np.save(paths[-1], np.column_stack([X[rows], y[rows]]))
            blocks = [delayed(np.load)(path) for path in paths]
            X_blocks = [block[:, :-1] for block in blocks]
            y_blocks = [block[:, -1] for block in blocks]
            begin = time.perf_counter()
            ranker = fitted(client, X_blocks, y_blocks)
            seconds, own = time.perf_counter() - begin, ranker.to_local().score(X[test], y[test])
            print(
                f"- covtype, {partitions} partitions, 4 worker processes: AUC {own:.4f} "
                f"({own - auc:+.4f}), {seconds:.1f} s."
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["speed", "memory", "covtype"])
    parser.add_argument("--quick", action="store_true", help="a tenth of it, to see that it runs")
    parser.add_argument("--partitions", type=int)
    given = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # in step with the processes it starts
    if given.what == ["one_size"]:
        one_size(given.partitions)
        return
    for what in given.what:
        {"speed": speed, "memory": memory, "covtype": covtype}[what](given.quick)


if __name__ == "__main__":
    main()
