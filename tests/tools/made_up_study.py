"""A made-up study, and its folder written as the runner would."""

import csv
import json

from cbrank import datasets
from cbrank.methods import names
from cbrank.study.report import published
from cbrank.study.results import COLUMNS
from cbrank.study.times_file import PLAIN, Time

SETS = ("glass", "german", "heart", "farm-ads", "sector")
EXTRAS = {"Batch LR": 0.01, "SCW": -0.02, "Something New": -0.03}
SHIFT = {"unit": 0.004, "standard": 0.01, "none": -0.03}


def result(dataset, scaling, method, run, **changes):
    """Make a line: the paper's figure plus a shift for scaling and run."""
    kind = datasets.info(dataset).table
    auc, accuracy = (
        table.figures.get((dataset, method), (0.9 + EXTRAS.get(method, 0.0), 0))[0]
        for table in published.TABLES
        if table.kind == kind
    )
    shift = SHIFT[scaling] + 0.02 * run - 0.01
    line = dict.fromkeys(COLUMNS, 0) | {
        "table": kind,
        "dataset": dataset,
        "scaling": scaling,
        "method": method,
        "run": run,
        "auc": auc + shift,
        "accuracy": accuracy + shift,
        "accuracy_held": accuracy + shift - 0.01,
        "balanced_held": accuracy + shift - 0.02,
        "parameter": 2.0 ** (run - 3),
        "lowest": -10,
        "highest": 10,
        "tune_seconds": 2,
        "fit_seconds": 0.001 * (len(method) + run),
        "train_rows": 80,
        "test_rows": 20,
        "features": 9,
        "positives": 0.25,
        "sample": int(dataset == "sector"),
        "status": "ok",
        "error": "",
    }
    return line | changes


def study(sets=SETS, scalings=("unit", "standard", "none"), extras=tuple(EXTRAS), runs=2):
    """Make all lines of a study."""
    return [
        result(dataset, scaling, method, run)
        for dataset in sets
        for kind in [datasets.info(dataset).table]
        for scaling in (scalings if kind == "benchmark" else scalings[:1])
        for method in (*names("paper", kind=kind), *extras)
        for run in range(runs)
    ]


def write_csv(path, columns, lines):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(lines)


def write_study(folder, lines, *, curves=True, facts=True):
    """Write a study's folder as the runner would."""
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "results.csv", COLUMNS, lines)
    if curves:
        keys = dict.fromkeys((x["dataset"], x["scaling"], x["method"]) for x in lines)
        points = [(*key, rows, 0.5 + rows / 300) for key in keys for rows in (10, 30, 100)]
        columns = ("dataset", "scaling", "method", "rows", "auc")
        write_csv(
            folder / "curves.csv", columns, [dict(zip(columns, p, strict=True)) for p in points]
        )
    if facts:
        told = {
            "command": "cbrank reproduce --seed 3",
            "settings": {"seed": 3, "exponents": [-4, 0, 4], "benchmark_rows": 1000},
            "versions": {"numpy": "2.0"},
            "machine": {"cpu": "An <abacus>"},
            "seconds": 90.0,
        }
        (folder / "study.json").write_text(json.dumps(told), encoding="utf-8")
    return folder


def times_of(lines):
    """Make the times of the fits with unit rows: milliseconds as many as letters in the method's name."""
    for x in lines:
        if (x["scaling"], x["status"]) == ("unit", "ok") and x["method"] != "Batch LR":
            for method in filter(None, (PLAIN.get(x["method"]), x["method"])):
                named = x["table"], x["dataset"], method, x["run"], x["parameter"]
                yield Time(*named, x["train_rows"], x["features"], 3, 0.001 * len(method))
