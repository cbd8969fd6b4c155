r"""
A rare class in a CSV file
==========================

Fraud, faults, churn: a table, a column that says what a row turned out to be, and three rows in a
hundred that matter. The question is rarely "is it fraud?"; it is "which rows do we look at first, and
how many?"

No bank gives its table away, so this one is made from a data set that comes with the package: image patches
of seven kinds, of which one is made rare. Names and files are as in real life.
"""

# %%
# The files
# ---------

import csv
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from cbrank import CBRanker
from cbrank.datasets import load
from cbrank.metrics import auc_interval, optimal_operating_point
from cbrank.streams import Columns, open_stream

X, kinds, _ = load("segment", labels="original")
random = np.random.RandomState(7)
rare = random.permutation(np.flatnonzero(kinds == 5))[:60]
rows = random.permutation(np.concatenate([rare, np.flatnonzero(kinds != 5)]))

folder = Path(tempfile.mkdtemp())
for name, part in [("past.csv", rows[:1200]), ("new.csv", rows[1200:])]:
    with (folder / name).open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["case", *(f"m{i:02d}" for i in range(1, 20)), "outcome"])
        for row in part:
            table.writerow([row, *X[row].tolist(), "fraud" if kinds[row] == 5 else "fine"])
print((folder / "past.csv").read_text()[:170], "...")

# %%
# Three commands
# --------------
# Columns are matched by name; numbers are used raw, whatever their scale. Rows are read and learned in
# chunks, so the files may be larger than memory.


def cbrank(arguments):
    print("$ cbrank", arguments)
    command = [sys.executable, "-m", "cbrank", *shlex.split(arguments)]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    print(ended.stdout)


cbrank("train past.csv --label outcome --positive fraud --id case -o fraud.model")
cbrank("score fraud.model new.csv --std --label -o scores.csv")
cbrank("evaluate fraud.model new.csv")

# %%
# With so few positives the AUC is known only within its interval, and accuracy says
# nothing: calling every row fine is right more than 97 times in 100.
#
# Which rows first?
# -----------------
# Look at the cases from the top of the list. The curve says how much of the fraud is found by
# then.


def column(name, of):
    with (folder / name).open() as file:
        return np.array([row[of] for row in csv.DictReader(file)])


scores = column("scores.csv", "score").astype(float)
fraud = column("new.csv", "outcome") == "fraud"

found = np.cumsum(fraud[np.argsort(-scores)]) / fraud.sum()
looked_at = np.arange(1, len(fraud) + 1) / len(fraud)
figure, panel = plt.subplots(figsize=(7, 3.6))
panel.plot(looked_at, looked_at, color="0.6", linewidth=1, linestyle="--")
panel.step(looked_at, found, where="post")
for share in [0.05, 0.2]:
    reached = found[int(share * len(fraud)) - 1]
    panel.plot(share, reached, "o", color="C1")
    panel.annotate(
        f"look at {share:.0%}, find {reached:.0%}",
        (share, reached),
        (8, -12),
        textcoords="offset points",
    )
panel.text(0.8, 0.74, "in random order", color="0.4")
panel.set(
    title=f"{fraud.sum()} frauds among {len(fraud)} new cases",
    xlabel="share of the cases looked at",
)
panel.set(ylabel="share of the fraud found", xlim=(0, 1), ylim=(0, 1.02))
plt.show()

# %%
# How many?
# ---------
# That depends on what errors cost. If a missed fraud costs as much as forty needless looks, the threshold
# should be far lower than the one of best accuracy. Here is the same model in Python, from the same file in
# chunks, with a threshold for these costs by :func:`~cbrank.metrics.optimal_operating_point`: chosen on
# the past, evaluated on the new cases.


def read(name):
    with open_stream(folder / name, columns=columns, chunk_rows=100) as stream:
        yield from stream


columns = Columns(label="outcome", positive="fraud", id="case")
ranker = CBRanker(random_state=0)
for chunk in read("past.csv"):
    ranker.partial_fit(chunk.X, chunk.y, classes=[0, 1])


def score_and_label(name):
    parts = [(ranker.decision_function(chunk.X), chunk.y) for chunk in read(name)]
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


past_scores, past_y = score_and_label("past.csv")
new_scores, new_y = score_and_label("new.csv")
chosen = optimal_operating_point(past_y, past_scores, cost_fp=1, cost_fn=40).threshold
equal = optimal_operating_point(past_y, past_scores).threshold


def cost(threshold):
    looked = new_scores >= threshold
    return 40 * np.sum(new_y[~looked]) + np.sum(looked & (new_y == 0))


for name, threshold in [
    ("look at nothing", np.inf),
    ("look at everything", -np.inf),
    ("threshold for equal costs", equal),
    ("threshold for these costs", chosen),
]:
    looked = new_scores >= threshold
    print(
        f"{name:26} {looked.sum():4} looks, {new_y[looked].sum():2} found, cost {cost(threshold):4}"
    )

thresholds = np.sort(new_scores)[::-1]
figure, panel = plt.subplots(figsize=(7, 3.2))
panel.plot(np.arange(1, len(new_y) + 1), [cost(each) for each in thresholds])
for place, (threshold, name) in enumerate([(equal, "equal costs"), (chosen, "these costs")], 1):
    looks = np.sum(new_scores >= threshold)
    panel.plot(looks, cost(threshold), "o", color=f"C{place}", label=f"threshold for {name}")
panel.set(
    title="What the new cases cost", xlabel="cases looked at", ylabel="cost, in needless looks"
)
panel.set(xlim=(0, len(new_y)), ylim=(0, None))
panel.legend(loc="lower right")
plt.show()

# %%
# What to keep in mind
# --------------------
# * Learning from pairs is not affected by the imbalance: a new row of either class is paired with the buffered rows
#   of the other. ``class_weight`` changes costs and step sizes; the ranking does not need it.
# * Few positives mean wide intervals. :func:`~cbrank.metrics.auc_interval` says how wide:

found_auc = auc_interval(new_y, new_scores)
print(f"AUC {found_auc.auc:.3f}, 95% interval {found_auc.low:.3f} to {found_auc.high:.3f}")
