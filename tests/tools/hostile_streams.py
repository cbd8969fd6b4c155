"""Streams whose columns are as real tables have them at their worst, and what must hold on them.

``python tests/tools/hostile_streams.py --count 1000`` learns so many, each in one call, in two other
splits and by the plain sweep, and says how far the models are apart.
"""

import argparse
import time

import numpy as np

from cbrank import CBRanker, kernels

WIDTHS = 8, 100, 191, 192, 300, 1000
ROWS = {8: 600, 100: 500, 191: 400, 192: 400, 300: 300, 1000: 160}
ALIKE = 1e-8  # of the spread of scores


def _sentinel(random, n, value):
    return np.where(
        random.random(n) < random.choice([0.005, 0.02, 0.3, 0.9]), value, random.normal(size=n)
    )


HOSTILE = {
    "float32's no data": lambda random, n: _sentinel(random, n, -3.4028234663852886e38),
    "1e20 for missing": lambda random, n: _sentinel(random, n, 1e20),
    "largest int64 for missing": lambda random, n: _sentinel(random, n, 2.0**63),
    "-999 for missing": lambda random, n: _sentinel(random, n, -999.0),
    "64-bit id": lambda random, n: random.integers(0, 2**63, n).astype(float),
    "row number": lambda random, n: np.arange(n) + 1e12,
    "nanoseconds": lambda random, n: 1.7e18 + np.cumsum(random.integers(0, 10**9, n)),
    "nanoseconds or never": lambda random, n: np.where(
        random.random(n) < 0.3, 0.0, 1.7e18 + random.integers(0, 10**15, n)
    ),
    "Cauchy": lambda random, n: random.standard_cauchy(n),
    "Cauchy cubed": lambda random, n: random.standard_cauchy(n) ** 3,
    "log-normal": lambda random, n: random.lognormal(0.0, 10.0, n),
    "constant": lambda random, n: np.full(n, random.choice([0.0, 1.0, 1e9, -3e38])),
    "1e-300": lambda random, n: random.normal(size=n) * 1e-300,
    "1e-8": lambda random, n: random.normal(size=n) * 1e-8,
    "1e100": lambda random, n: random.normal(size=n) * 1e100,
    "one outlier": lambda random, n: np.where(np.arange(n) == random.integers(n), 1e15, 0.5),
}  # fmt: skip


def stream(seed, width=None):
    """Return rows, labels and which columns are hostile."""
    random = np.random.default_rng(seed)
    d = width or WIDTHS[seed % len(WIDTHS)]
    n = ROWS[d]
    X = random.normal(size=(n, d))
    y = (X[:, : d // 2].sum(axis=1) + random.normal(size=n) * d**0.5 > 0).astype(int)
    columns = random.permutation(d)[: random.integers(1, 5)]
    for column, kind in zip(columns, random.choice(list(HOSTILE), len(columns)), strict=True):
        X[:, column] = HOSTILE[kind](random, n)
    if random.random() < 0.5:  # a copy of an ordinary column
        ordinary = np.setdiff1d(np.arange(d), columns)
        one, other = random.choice(ordinary, 2, replace=False)
        X[:, one] = X[:, other]
    if random.random() < 0.2:  # many equal rows
        X = X[random.integers(0, n, n) // 4]
    return X, y, np.sort(columns)


def learned(X, y, cuts=(), plain=False, **parameters):
    """Return a ranker that learned a stream in pieces, pair by pair if `plain`."""
    usual = kernels.blocked.WORTHWHILE
    kernels.blocked.WORTHWHILE = X.shape[1] + 1 if plain else usual
    try:
        ranker = CBRanker(random_state=0, **parameters)
        for begin, end in zip([0, *cuts], [*cuts, len(y)], strict=True):
            ranker.partial_fit(X[begin:end], y[begin:end], classes=[0, 1])
    finally:
        kernels.blocked.WORTHWHILE = usual
    return ranker


def apart(one, other, X, hostile):
    """Return how far the scores of two rankers are apart, in units of their spread.

    Columns that drown all others are looked at alone, and scores are taken from that of a row, since
    only their differences mean anything.
    """
    ordinary = np.setdiff1d(np.arange(X.shape[1]), hostile)
    X, worst = X - np.median(X, axis=0), 0.0
    for some in [ordinary, *([column] for column in hostile)]:
        ours, theirs = (X[:, some] @ ranker.coef_[0, some] for ranker in (one, other))
        gap = np.abs(ours - theirs).max() / max(ours.std(), 1e-290)
        worst = max(worst, gap if np.isfinite(gap) else np.inf)
    return worst


def faults(seed, width=None):
    """Return what does not hold on one stream, and how far its models are apart."""
    X, y, hostile = stream(seed, width)
    random = np.random.default_rng([seed, 1])
    C = (
        "auto"
        if X.shape[1] < 300 and seed % 3 == 0
        else float(random.choice([0.004, 0.1, 1.0, 16.0]))
    )
    parameters = {"C": C, "average": bool(random.random() < 0.5)}
    if seed % 2:  # with a number for C and no average, the paper's algorithm to the letter
        parameters["buffer_size"] = 50
    whole = learned(X, y, **parameters)
    some = np.sort(1 + random.choice(len(y) - 1, 4, replace=False)).tolist()
    found, worst = [], 0.0
    others = {
        "splits": learned(X, y, some, **parameters),
        "pairs": learned(X, y, plain=True, **parameters),
    }
    others["rows"] = learned(X, y, range(1, 40), **parameters)
    for name, other in others.items():
        if other.C_ != whole.C_:
            found.append(f"{name}: C {whole.C_} and {other.C_}")
            continue
        gap = apart(whole, other, X, hostile)
        worst = max(worst, gap)
        if not gap <= ALIKE:
            found.append(f"{name}: scores {gap:.1e} of their spread apart")
    for name, ranker in {"whole": whole, **others}.items():
        Sigma = ranker.covariance_
        if not (np.isfinite(ranker.coef_).all() and np.isfinite(Sigma).all()):
            found.append(f"{name}: not finite")
        elif (Sigma != Sigma.T).any() or (Sigma.diagonal() <= 0).any():
            found.append(f"{name}: no covariance")
    return found, worst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    began, bad, worst = time.monotonic(), 0, 0.0
    for done, seed in enumerate(range(asked.seed, asked.seed + asked.count), 1):
        found, gap = faults(seed)
        worst, bad = max(worst, gap), bad + bool(found)
        if found:
            print(f"\rstream {seed}: {'; '.join(found)}")
        pace = (time.monotonic() - began) / done
        print(
            f"\r{done} streams, {1 / pace:.1f} a second, {pace * (asked.count - done):.0f} s left ",
            end="",
        )
    print(
        f"\n{asked.count} hostile streams: {bad} with faults; scores at most {worst:.1e} of their spread apart"
    )
    raise SystemExit(bad > 0)


if __name__ == "__main__":
    main()
