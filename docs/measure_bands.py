"""Print how often bands around curves cover the curves of refits (docs/confidence.md).

    python docs/measure_bands.py > docs/_bands_table.md

A ranker is fitted to some rows, and to samples of as many of them drawn with replacement. Counted are the
values of all curves, ten between the knots of each column, at which the curve of such a fit is inside the
band of 1.96 standard deviations around that of the first. "In units of the spread" divides each curve by the
standard deviation of its ranker's scores: scores have no unit of their own.
"""

import sys

import numpy as np

import cbrank
from cbrank import AdditiveRanker, datasets

SETS = {"svmguide3": 1243, "magic04": 1500}
REFITS = 5
SETTINGS = {"as it comes": {}, "C = 2^-7": {"C": 2.0**-7}}


def curves(ranker, X, grids):
    """Return effects and deviations at some values of all columns, and the spread of scores."""
    found = [ranker.curve(column) for column in range(X.shape[1])]
    effects, deviations = (
        np.concatenate(
            [
                np.interp(at, curve.grid, part) if len(curve.grid) > 1 else np.zeros(len(at))
                for at, curve, part in zip(grids, found, parts, strict=True)
            ]
        )
        for parts in ([curve.effect for curve in found], [curve.deviation for curve in found])
    )
    return effects, deviations, ranker.decision_function(X).std()


def row(name, rows, setting):
    X, y, _ = datasets.load(name)
    random = np.random.RandomState(0)
    chosen = random.permutation(len(y))[:rows]
    X, y = X[chosen], y[chosen]
    moving = [column for column in range(X.shape[1]) if len(np.unique(X[:, column])) > 1]
    X = X[:, moving]
    grids = [np.quantile(column, np.linspace(0.05, 0.95, 10)) for column in X.T]
    first = AdditiveRanker(trees=0, random_state=0, **SETTINGS[setting]).fit(X, y)
    effect, deviation, spread = curves(first, X, grids)
    band, scaled, away, widths = [], [], [], []
    for seed in range(REFITS):
        drawn = random.randint(0, len(y), len(y))
        refit = AdditiveRanker(trees=0, random_state=seed, **SETTINGS[setting]).fit(
            X[drawn], y[drawn]
        )
        other, _, its_spread = curves(refit, X, grids)
        counted = deviation > 0.0
        off = np.abs(other - effect)[counted]
        band.append((off <= 1.96 * deviation[counted]).mean())
        off = np.abs(other / its_spread - effect / spread)[counted]
        scaled.append((off <= 1.96 * deviation[counted] / spread).mean())
        away.append(np.sqrt((off**2).mean()))
        widths.append(np.sqrt((deviation[counted] ** 2).mean()) / spread)
    print(
        f"| {name}, {len(y):,} rows | {setting} | {np.mean(band):.0%} | {np.mean(scaled):.0%} | "
        f"{np.mean(widths):.2f} | {np.mean(away):.2f} |",
        flush=True,
    )


def main():
    print("| data set | ranker | covered, of 95% | in units of the spread | deviation (told) | "
          "distance of refits (found) |")  # fmt: skip
    print("|---|---|---|---|---|---|")
    for name, rows in SETS.items():
        if name in datasets.available():
            for setting in SETTINGS:
                row(name, rows, setting)
    print(f"\nMeans of {REFITS} refits; deviation and distance are root mean squares, in units of the "
          f"spread of scores. cbrank {cbrank.__version__}, NumPy {np.__version__}.")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
