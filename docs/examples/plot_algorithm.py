r"""
The algorithm in pictures
=========================

A linear ranker scores a row by :math:`w \cdot x`. CBR keeps not one :math:`w` but a Gaussian distribution
of it: rows are scored by the mean :math:`\mu`, and the covariance :math:`\Sigma` is the uncertainty. With two
columns it can be drawn. The formulas, and how they are computed fast, are in :doc:`/algorithm`.
"""

# %%
# A cloud of weights
# ------------------
# Two columns of diabetes, blood glucose and body mass index, each divided by its standard deviation.
# Before the first row the distribution is a round cloud around zero. Each row makes it smaller in the
# directions that the row is informative about. The dashed line is the direction that batch logistic
# regression finds after all rows; for a ranking only the direction counts.
#
# The two classes overlap, so there are always pairs that no weights rank right. The mean then
# shrinks together with the cloud: the unit of a score has no meaning. Its order has one, and so has
# its size relative to its standard deviation.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from cbrank import CBRanker
from cbrank.datasets import load
from cbrank.paper import update_buffer, update_ranker

X, y, _ = load("diabetes")
known = (X[:, 1] > 0) & (X[:, 5] > 0)  # zero stands for "not measured"
X, y = X[known][:, [1, 5]], y[known]
X = (X - X.mean(axis=0)) / X.std(axis=0)
NAMES = ["glucose", "body mass index"]


def draw_cloud(panel, mean, covariance, colour="C0"):
    """Draw where two thirds and where 95% of the weights lie."""
    lengths, axes = np.linalg.eigh(covariance)
    angle = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
    for share, alpha in [(0.95, 0.15), (0.67, 0.3)]:
        height, width = 2 * np.sqrt(lengths * -2 * np.log(1 - share))
        panel.add_patch(Ellipse(mean, width, height, angle=angle, color=colour, alpha=alpha, lw=0))
    panel.plot(*mean, "o", color=colour, markersize=4)


def prepare(panel, title, half=2.6):
    panel.axhline(0, color="0.85", linewidth=0.7, zorder=0)
    panel.axvline(0, color="0.85", linewidth=0.7, zorder=0)
    panel.grid(visible=False)
    panel.set(title=title, xlim=(-half, half), ylim=(-half, half), aspect="equal")
    panel.set(xticks=[-2, 0, 2], yticks=[-2, 0, 2])


batch = LogisticRegression().fit(X, y).coef_[0]
ranker = CBRanker(C=2**-8, average=False)
moments = [1, 10, 30, 60, 200, len(y)]
figure, panels = plt.subplots(2, 3, figsize=(7, 4.9), sharex=True, sharey=True)
seen = 0
for panel, rows in zip(panels.flat, moments, strict=True):
    ranker.partial_fit(X[seen:rows], y[seen:rows], classes=[0, 1])
    seen = rows
    prepare(panel, f"{rows} row{'s' * (rows > 1)}")
    panel.axline((0, 0), batch, color="0.5", linestyle="--", linewidth=0.9)
    draw_cloud(panel, ranker.coef_[0], ranker.covariance_)
figure.supxlabel(f"weight of {NAMES[0]}", fontsize=9.5)
figure.supylabel(f"weight of {NAMES[1]}", fontsize=9.5)
plt.show()

angle = np.degrees(
    np.arccos(ranker.coef_[0] @ batch / np.linalg.norm(ranker.coef_) / np.linalg.norm(batch))
)
print(f"after {seen} rows: {angle:.1f} degrees from batch logistic regression")
print(f"{ranker.n_pairs_} pairs, {ranker.n_updates_} of them updated the model")

# %%
# One pair
# --------
# A new row :math:`x` of class :math:`y_t` is paired with a buffered row :math:`b` of the other class. All
# that matters is their difference :math:`z`, with the sign by which its score should be positive: weights in
# the white half rank the pair right, weights in the grey half wrong. The share of the cloud in the white half
# is the ranker's confidence in the pair.
#
# * If it is :math:`\eta` or more, nothing happens.
# * Otherwise the cloud moves until its share is :math:`\eta`, staying as close as possible to what it
#   was, and it gets thinner along :math:`\Sigma z`, and only there.
# * No pair moves the mean by more than :math:`C` times :math:`\Sigma z`: one wrong label cannot turn it
#   around.
#
# The whole step is Algorithm 3 of the paper, here with one buffered row at zero; :mod:`cbrank.paper` has
# the paper's algorithms in plain NumPy:


def step(mean, covariance, z, C, eta):
    return update_ranker(mean, covariance, z, 1, [np.zeros_like(z)], C, norm.ppf(eta))


mean, covariance = np.array([0.9, 0.3]), np.array([[0.5, -0.1], [-0.1, 0.3]])
cases = [
    ("certain enough: stays", np.array([1.3, 0.6]), 1.0),
    ("wrong: moves, narrows", np.array([-0.9, 1.5]), 1.0),
    ("the same with small C", np.array([-0.9, 1.5]), 0.1),
]
figure, panels = plt.subplots(1, 3, figsize=(7, 2.7), sharex=True, sharey=True)
for panel, (title, z, C) in zip(panels, cases, strict=True):
    prepare(panel, title)
    panel.set_title(title, fontsize=9.5)
    across = np.array([-z[1], z[0]]) * 10
    corners = [across, -across, -across - 10 * z, across - 10 * z]
    panel.add_patch(plt.Polygon(corners, color="0.92", lw=0, zorder=0))
    panel.annotate("", z, (0, 0), arrowprops={"arrowstyle": "-|>", "color": "0.3"})
    panel.annotate("z", z, (3, 3), textcoords="offset points", color="0.3", style="italic")
    draw_cloud(panel, mean, covariance)
    after = step(mean, covariance, z, C, eta=0.7)
    if (after[0] != mean).any():
        draw_cloud(panel, *after, colour="C1")
        panel.annotate("", after[0], mean, arrowprops={"arrowstyle": "->", "color": "C1"})
panels[0].set_ylabel("blue: before, orange: after")
plt.show()

# %%
# What eta and C do
# -----------------
# How far a pair moves the mean, and how much of the variance along :math:`z` it removes, by the
# margin of the pair in standard deviations. A larger :math:`\eta` demands a larger margin and removes more
# variance, so that the ranker becomes certain sooner, perhaps too soon. :math:`C` limits the step where a
# pair is badly wrong: on noisy data a small :math:`C` limits the damage of wrong labels.

margins = np.linspace(-3, 2, 301)
figure, panels = plt.subplots(1, 2, sharex=True)
for place, eta in enumerate([0.6, 0.7, 0.9]):
    moved, taken = [], []
    for margin in margins:
        mu, Sigma = step(np.array([margin]), np.eye(1), np.ones(1), np.inf, eta)
        moved.append(mu[0] - margin)
        taken.append(1 - Sigma[0, 0])
    panels[0].plot(margins, moved, color=f"C{place}", label=f"eta = {eta}")
    panels[1].plot(margins, taken, color=f"C{place}", label=f"eta = {eta}")
panels[0].axhline(0.7, color="0.3", linestyle=":", linewidth=1.2)
panels[0].text(-3, 0.73, "C = 0.7 is the limit", va="bottom", color="0.3")
panels[0].set(title="Step of the mean", xlabel="margin, in standard deviations")
panels[1].set(title="Share of the variance removed", xlabel="margin, in standard deviations")
panels[0].legend(loc="upper right", bbox_to_anchor=(1, 0.95))
plt.show()

# %%
# Which rows are in the buffer
# ----------------------------
# A new row is paired with the buffered rows of the other class, 50 by default. First in, first out (FIFO)
# keeps the latest rows, and so follows a stream that changes. Reservoir sampling keeps each row so far with
# the same probability, which helps where rows come sorted. Here the buffer has room for 20 of 400 rows: each
# line is a row, drawn as long as it stays in the buffer.

ROWS = 400
random = np.random.default_rng(0)


def ends_of_stays(policy):
    """Return when each row that was buffered leaves the buffer, or 400."""
    buffer, ends = [], {}
    for row in range(ROWS):
        before = {*buffer}
        update_buffer(row, buffer, 20, row + 1, policy, random)
        ends |= dict.fromkeys(before.difference(buffer), row)
    return ends | dict.fromkeys(buffer, ROWS)


figure, panels = plt.subplots(1, 2, sharey=True)
for panel, title, policy in zip(panels, ["FIFO", "Reservoir"], ["fifo", "reservoir"], strict=True):
    ends = ends_of_stays(policy)
    colours = ["C1" if end == ROWS else "C0" for end in ends.values()]
    panel.hlines(list(ends), list(ends), list(ends.values()), colors=colours, linewidth=1)
    panel.set(title=title, xlabel="rows so far", xlim=(0, 400))
panels[0].set_ylabel("number of the buffered row")
panels[0].text(395, 10, "orange: there at the end", ha="right", color="C1")
plt.show()

# %%
# Scores and their deviations
# ---------------------------
# The result, over the two columns that it learned from. Colour is the score, dashed lines are its standard
# deviation. Rows far from all that was learned from have a score like any other, and a large deviation.

across, up = np.meshgrid(np.linspace(-3, 3, 61), np.linspace(-3, 5, 81))
grid = np.column_stack([across.ravel(), up.ravel()])
score, deviation = (
    part.reshape(across.shape) for part in ranker.decision_function(grid, return_std=True)
)

figure, panel = plt.subplots(figsize=(7, 4.2))
filled = panel.contourf(across, up, score, levels=14, alpha=0.55)
lines = panel.contour(
    across, up, deviation, levels=5, colors="0.2", linestyles="--", linewidths=0.8
)
panel.clabel(lines, fmt="± %.2f", fontsize=8)
for label, marker, name in [(0, "o", "healthy"), (1, "^", "diabetes")]:
    panel.scatter(
        *X[y == label].T,
        s=9,
        marker=marker,
        color=["white", "0.1"][label],
        edgecolors="0.2",
        linewidths=0.4,
        label=name,
    )
panel.set(
    xlabel=f"{NAMES[0]}, standardised",
    ylabel=f"{NAMES[1]}, standardised",
    xlim=(-3, 3),
    ylim=(-3, 5),
)
panel.grid(visible=False)
panel.legend(loc="upper left")
figure.colorbar(filled, label="score")
plt.show()
