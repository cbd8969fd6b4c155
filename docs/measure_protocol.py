"""Print which reading of the paper's protocol its printed figures speak for (rows of unit length).

    CBRANK_DATA=FOLDER python docs/measure_protocol.py RUNS > docs/_protocol_table.md

Section 4.2 leaves open what exactly is cut to 8,000 rows (2,000 of text), and whether one fold of five or
each is tested on. Every reading's runs are written to ``results.csv`` in the folder RUNS, and only those that
are missing there are done. Choosing the parameter on the test fold is measured here and used nowhere.
"""

import argparse
import csv
import math
import sys
from collections import defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import f as f_distribution

import cbrank
from cbrank import datasets
from cbrank.methods import METHODS, names
from cbrank.study.protocol import learn
from cbrank.study.report.against_paper import Gap
from cbrank.study.report.published import TABLES
from cbrank.study.report.scores import Score
from cbrank.study.selection import Fold, best_of, cross_validation, held_out_aucs
from cbrank.study.settings import RUNS, Grid, Settings
from cbrank.study.splits import split
from cbrank.workers import Workers

LARGE = ("magic04", "cod-rna", "covtype", "farm-ads", "reuters")
SMALL = (
    "glass", "ionosphere", "german", "svmguide4", "svmguide3", "heart", "australian", "diabetes",
    "vehicle",
)  # fmt: skip
FOLDS = 5
COLUMNS = ("seed", "dataset", "method", "run", "reading", "auc", "accuracy", "exponent")
CUTS = {
    "all": "all rows, then five folds",
    "fewer": "training rows to 6,400 (1,600), whole fold tested",
    "training": "training rows to 8,000 (2,000), whole fold tested",
}


# The runs ---------------------------------------------------------------------------------------


def runs(seed, dataset, method, run):
    """Return the lines of one run: its measures by each reading of the protocol."""
    key, method = (seed, dataset, method, run), METHODS[method]
    settings = Settings(seed)
    rows = split(dataset, run, "unit", settings)
    seed = settings.run_seed(dataset, run)
    found = held_out_aucs(method, cross_validation(rows.X, rows.y), settings.exponents, seed)
    means = {exponent: aucs.mean() for exponent, aucs in found.items()}
    smallest = min(e for e, mean in means.items() if mean >= max(means.values()) - 1e-12)

    def with_exponent(exponent, rows=rows):
        return learn(method, rows, Grid((exponent,)), seed)

    outcomes = {"training": with_exponent(best_of(means)), "smallest": with_exponent(smallest)}
    if dataset in LARGE:
        fewer = replace(settings, benchmark_rows=6400, text_rows=1600)
        outcomes["fewer"] = learn(
            method, split(dataset, run, "unit", fewer), fewer.grid("unit"), seed
        )
        # The same training rows, so the same choice.
        rows = split(dataset, run, "unit", replace(settings, cut="all"))
        outcomes["all"] = with_exponent(exponent_of(outcomes["fewer"]), rows)
    else:
        test = [Fold(rows.X, rows.y, rows.X_test, rows.y_test)]
        outcomes["test"] = learn(method, rows, settings.grid("unit"), seed, test)
        for fold in range(FOLDS - 1):
            rows = split(dataset, run, "unit", settings, fold)
            outcomes[f"fold {fold}"] = learn(method, rows, settings.grid("unit"), seed)
    return [
        dict(zip(COLUMNS, (*key, name, *o.measures[:2], exponent_of(o)), strict=True))
        for name, o in outcomes.items()
    ]


def exponent_of(outcome):
    """Return the exponent that a run chose."""
    return round(math.log2(outcome.choice.parameter))


def plan(seeds, sets, most):
    """List all runs, at most so many of a data set with a seed."""
    return [
        (seed, dataset, method, run)
        for seed, dataset in product(seeds, sets)
        for kind in [datasets.info(dataset).table]
        for run, method in product(range(min(most, RUNS[kind])), names("paper", kind=kind))
    ]


def results(path, tasks, jobs):
    """Do the runs that are missing, and return the lines of all."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    done = set(map(key_of, read(path)))
    calls = [task for task in tasks if task not in done]
    for lines in Workers(jobs).unordered(runs, calls):
        with path.open("a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, COLUMNS, lineterminator="\n").writerows(lines)
    return [line for line in read(path) if key_of(line) in tasks]


def key_of(line):
    """Return the run that a line is of."""
    return int(line["seed"]), line["dataset"], line["method"], int(line["run"])


def read(path):
    """Read the lines of a file of results."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# The tables -------------------------------------------------------------------------------------


class Found:
    """Our figures and the paper's."""

    def __init__(self, lines):
        self.values = defaultdict(dict)
        for line in lines:
            cell = line["dataset"], line["method"], line["reading"]
            run = line["seed"], line["run"]
            for measure in ("auc", "accuracy"):
                self.values[(measure, *cell)][run] = float(line[measure])
            self.values[("exponent", *cell)][run] = int(line["exponent"])
        self.paper = {
            (table.measure, *cell): Score(*figures, RUNS[table.kind])
            for table in TABLES
            for cell, figures in table.figures.items()
        }
        for cell in [key[:3] for key in self.values if key[3] == "fold 0"]:
            folds = [(*cell, "training"), *((*cell, f"fold {k}") for k in range(FOLDS - 1))]
            shared = set.intersection(*(set(self.values[fold]) for fold in folds))
            self.values[(*cell, "five")] = {
                run: np.mean([self.values[fold][run] for fold in folds]) for run in shared
            }

    def cells(self, sets):
        """Name the cells of the paper's tables that were measured."""
        return [
            cell for cell in self.paper if cell[1] in sets and (*cell, "training") in self.values
        ]

    def score(self, cell, reading):
        """Return mean and deviation over runs; the deviation is that within seeds."""
        seeds = defaultdict(list)
        for (seed, _), value in self.values[(*cell, reading)].items():
            seeds[seed].append(value)
        several = [values for values in seeds.values() if len(values) > 1]
        variance = np.mean([np.var(values, ddof=1) for values in several])
        every = np.concatenate(list(seeds.values()))
        return Score(float(every.mean()), float(np.sqrt(variance)), len(every))


def support(ours, paper):
    """Return the log-probability of the paper's printed deviation, if its runs are as ours."""
    ends = [max(paper.deviation + by, 0.0) / ours.deviation for by in (-0.0005, 0.0005)]
    low, high = (f_distribution.cdf(end**2, paper.runs - 1, ours.runs - 1) for end in ends)
    return math.log(max(high - low, 1e-12))


def show(header, rows):
    """Print a table."""
    print(f"| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print()


def pair(score):
    """Write mean and deviation."""
    return f"{score.mean:.3f} ± {score.deviation:.4f}"


def compare(found, sets, readings):
    """Print how well each reading goes with the paper's figures, by set.

    The log-probability is that of the paper's printed deviations, if its runs are as ours.
    """
    rows = []
    for name in (*sets, "all"):
        cells = found.cells(sets if name == "all" else [name])
        for reading, words in readings.items() if cells else ():
            beside = [(found.score(cell, reading), found.paper[cell]) for cell in cells]
            z = [abs(Gap("", "", ours, paper).z) for ours, paper in beside]
            spread = [np.median([s.deviation for s in side]) for side in zip(*beside, strict=True)]
            rows.append(
                (
                    name, words, f"{spread[0]:.4f}", f"{spread[1]:.4f}",
                    f"{sum(support(*both) for both in beside):.1f}",
                    f"{sum(value <= 2 for value in z)} of {len(z)}", f"{np.median(z):.2f}",
                )
            )  # fmt: skip
    header = ("data set", "reading", "median deviation", "the paper's", "its log-probability",
              "means within 2 s.e.", "median z")  # fmt: skip
    show(header, rows)


def each(found, sets, readings):
    """Print mean and deviation of each cell, by reading."""
    show(
        ("data set", "method", "measure", *readings.values(), "paper"),
        [
            (cell[1], cell[2], cell[0], *(pair(found.score(cell, name)) for name in readings),
             f"{found.paper[cell].mean:.3f} ± {found.paper[cell].deviation:.3f}")
            for cell in found.cells(sets)
        ],
    )  # fmt: skip


def chosen_on_test(found):
    """Print what choosing on the test fold would give, as means less the paper's."""
    cells = found.cells(SMALL)
    rows = []
    for measure, method in product(("auc", "accuracy"), names("paper", kind="benchmark")):
        own = [cell for cell in cells if (cell[0], cell[2]) == (measure, method)]
        for reading, words in (("training", "cross-validation"), ("test", "the test fold")):
            beside = [(found.score(cell, reading), found.paper[cell]) for cell in own]
            off = [ours.mean - paper.mean for ours, paper in beside]
            near = sum(abs(Gap("", "", *both).z) <= 2 for both in beside)
            rows.append(
                (measure, method, words, f"{np.mean(off):+.4f}", f"{np.sqrt(np.mean(np.square(off))):.4f}",
                 f"{near} of {len(own)}")
            )  # fmt: skip
    header = (
        "measure",
        "method",
        "chosen on",
        "ours less the paper's",
        "root mean square",
        "within 2 s.e.",
    )
    show(header, rows)


def ties(found):
    """Print what it matters which of equal values is taken."""
    rows = []
    for method in dict.fromkeys((*names("paper", kind="benchmark"), *names("paper"))):
        changed, off, count = 0, [], 0
        for key, runs_of in list(found.values.items()):
            if key[0] == "exponent" and key[2:] == (method, "training"):
                other = found.values[(*key[:3], "smallest")]
                moved = [run for run in runs_of if runs_of[run] != other[run]]
                ours, theirs = (
                    found.values[("auc", key[1], method, r)] for r in ("training", "smallest")
                )
                changed, count = changed + len(moved), count + len(runs_of)
                off += [ours[run] - theirs[run] for run in runs_of]
        if count:
            rows.append((method, f"{changed} of {count}", f"{np.mean(off):+.5f}"))
    show(("method", "runs in which the rule matters", "mean change of AUC"), rows)


def main():
    """Do the runs and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--runs", type=int, default=max(RUNS.values()))
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--sets", nargs="+", default=[*LARGE, *SMALL])
    given = parser.parse_args()
    sets = [name for name in given.sets if name in datasets.available()]
    found = Found(
        results(given.folder / "results.csv", plan(given.seeds, sets, given.runs), given.jobs)
    )
    print("What is cut:\n")
    compare(found, LARGE, CUTS)
    each(found, LARGE, CUTS)
    print("What is tested:\n")
    compare(found, SMALL, {"training": "one fold", "five": "the mean of five folds"})
    print("What the parameter is chosen on:\n")
    chosen_on_test(found)
    each(found, SMALL, {"training": "cross-validation", "test": "the test fold"})
    print("Among equal mean AUCs the value nearest to 1, compared with the smallest:\n")
    ties(found)
    print(
        f"At most {given.runs} runs with each of the seeds {given.seeds}; rows of unit length. "
        f"cbrank {cbrank.__version__}, NumPy {np.__version__}."
    )


if __name__ == "__main__":
    sys.exit(main())
