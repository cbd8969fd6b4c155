"""Print how much the order of rows in a file changes the model of ``cbrank train`` (docs/command_line.md).

    CBRANK_DATA=... python docs/measure_order.py > docs/_order_table.md

A random fifth of at most 20,000 rows of each table in the folder ``tables`` is held out. The others are written to files:
in four random orders, as they lie, and sorted by each of the three columns that rank the rows best alone. The number is
the AUC of the rows held out by the model that ``cbrank train`` makes of the file, mean of `--seed` 0 and 1. For the
random orders it is the mean and the largest distance of one model from it. `--in-order` is the mean over the rows as they lie
and the three sorted files, and the lowest of these.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score

import cbrank

ROWS, ORDERS, SEEDS, COLUMNS = 20_000, 4, 2, 3
LEAKS = {"hotel": ["reservation_status", "reservation_status_date"]}  # which know the label


def tables():
    """Return name, label and positive label of the tables."""
    folder = Path(os.environ["CBRANK_DATA"], "tables")
    with (folder / "MANIFEST.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            yield row["file"].removesuffix(".csv.xz"), row["label"], row["positive"]


def read(name):
    """Return the rows to learn from and those held out as the file has them, all cells as text."""
    path = Path(os.environ["CBRANK_DATA"], "tables", f"{name}.csv.xz")
    text = {"sep": ";" if name == "bank" else ",", "dtype": str, "keep_default_na": False}
    frame = pd.read_csv(path, **text).drop(columns=LEAKS.get(name, []))
    random = np.random.RandomState(0)
    frame = frame.iloc[np.sort(random.permutation(len(frame))[:ROWS])]
    held = random.random_sample(len(frame)) < 0.2
    return frame[~held], frame[held]


def places(cells):
    """Return the rank of each cell, as numbers if most cells are some."""
    numbers = pd.to_numeric(cells, errors="coerce")
    return (numbers if numbers.notna().mean() > 0.5 else cells).rank(na_option="top").to_numpy()


def orders(frame, label, positive):
    """Return the places of the rows in each file, by what the file is called."""
    y = frame[label] == positive
    alone = {
        name: abs(roc_auc_score(y, places(frame[name])) - 0.5)
        for name in frame.columns.drop(label)
        if len(frame[name].unique()) > 1
    }
    found = {
        f"random {at}": np.random.RandomState(at).permutation(len(frame)) for at in range(ORDERS)
    }
    found["as it lies"] = np.arange(len(frame))
    for name in sorted(alone, key=lambda name: -alone[name])[:COLUMNS]:
        found[f"`{name}`"] = np.argsort(places(frame[name]), kind="stable")
    return found


def measure(name, label, positive, file, seed, how):
    """Return the AUC of the rows held out."""
    learned, held = read(name)
    rows = orders(learned, label, positive)[file]
    with tempfile.TemporaryDirectory() as folder:
        train, test, model = (Path(folder, part) for part in ("train.csv", "test.csv", "model"))
        learned.iloc[rows].to_csv(train, index=False)
        held.to_csv(test, index=False)
        given = ["--label", label, "--positive", positive, "--seed", str(seed), how]
        _cbrank("train", train, "-o", model, "--quiet", *given)
        return json.loads(_cbrank("evaluate", model, test, "--json"))["auc"]


def _cbrank(*arguments):
    command = [Path(sys.executable).with_name("cbrank"), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def line(name, found):
    """Return a line of the table."""
    aucs = {  # by how and file, of each seed
        key: np.array(
            [found[task] for task in found if (task[0], task[5], task[3]) == (name, *key)]
        )
        for key in dict.fromkeys((task[5], task[3]) for task in found if task[0] == name)
    }
    mixed = np.array([each for (how, file), each in aucs.items() if file.startswith("random")])
    cells = [name, f"{mixed.mean():.4f} ± {abs(mixed - mixed.mean()).max():.4f}"]
    shuffled = {file: each.mean() for (how, file), each in aucs.items() if how == "--shuffle"}
    in_order = [each.mean() for (how, _), each in aucs.items() if how == "--in-order"]
    cells.append(f"{shuffled['as it lies']:.4f}")
    by = [f"{auc:.4f} by {file}" for file, auc in shuffled.items() if file.startswith("`")]
    cells += [*by, *[""] * (COLUMNS - len(by))]
    cells.append(f"{np.mean(in_order):.4f}, lowest {min(in_order):.4f}")
    return cells


def main():
    tasks = []
    for name, label, positive in tables():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        for file in orders(read(name)[0], label, positive):
            hows = ["--shuffle"] if file.startswith("random") else ["--shuffle", "--in-order"]
            tasks += [
                (name, label, positive, file, seed, how) for seed in range(SEEDS) for how in hows
            ]
    with Parallel(n_jobs=-1, verbose=5) as parallel:
        found = dict(zip(tasks, parallel(delayed(measure)(*task) for task in tasks), strict=True))
    heads = ["table", "random orders", "as it lies", *["sorted"] * COLUMNS, "`--in-order`"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for name in dict.fromkeys(task[0] for task in tasks):
        print("| " + " | ".join(line(name, found)) + " |")
    print(f"\ncbrank {cbrank.__version__}, NumPy {np.__version__}.")


if __name__ == "__main__":
    sys.exit(main())
