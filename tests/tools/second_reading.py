"""A second reading of the paper's learner, independent of `cbrank.paper` and of the oracles.

It keeps to the text (Algorithms 1 to 3, Propositions 1 and 2) in the order in which the paper computes things,
and takes nothing from elsewhere but the draws of the reservoir, which are those of the ranker under test. Any
floating type will do: in ``np.longdouble`` it tells how much of a difference is rounding of doubles.

``python tests/tools/second_reading.py`` compares 240 fits with `CBRanker.paper` and says where they differ.
"""

import itertools
from typing import NamedTuple

import numpy as np
from oracles import MWC
from real_data import SCALINGS, real
from scipy.stats import norm
from sklearn.base import clone

from cbrank import CBRanker


class Read(NamedTuple):
    """What a stream has taught."""

    mu: np.ndarray
    spread: np.ndarray  # Sigma, or the diagonal G
    updates: int
    least: float  # the least share of v in the sum of z_i^2 Sigma_ii: below 1e-16 doubles hold none of it


def read(X, signs, C, covariance, policy="fifo", state=0, dtype=np.float64, M=50, eta=0.7):
    """Learn from rows with labels +1 and -1; `state` is the first of the reservoir's random numbers."""
    X, full, draws = X.astype(dtype), covariance == "full", MWC(state)
    phi, d = dtype(norm.ppf(eta)), X.shape[1]
    psi, zeta, C = 1 + phi**2 / 2, 1 + phi**2, dtype(C)
    mu, spread = np.zeros(d, dtype), np.eye(d, dtype=dtype) if full else np.ones(d, dtype)
    seen, kept = {1: 0, -1: 0}, {1: np.zeros((0, d), dtype), -1: np.zeros((0, d), dtype)}
    updates, least = 0, np.inf
    for x, y in zip(X, signs, strict=True):
        seen[y] += 1
        if len(kept[y]) < M:
            kept[y] = np.vstack([kept[y], x])
        elif policy == "fifo":
            kept[y] = np.vstack([kept[y][1:], x])
        else:
            place = int(draws.uniform() * seen[y])
            if place < M:
                kept[y][place] = x
        for z in x - kept[-y]:
            direction = spread @ z if full else z / spread
            v = z @ direction if full else np.sum(z**2 / (spread + C))
            m = y * (mu @ z)
            # An update ends at m = phi sqrt(v); a row that comes twice must not begin another one there.
            if v <= 0 or m >= phi * np.sqrt(v) * (1 - 1e-12):
                continue
            root = np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * zeta)
            alpha = min(C, max(dtype(0), (-m * psi + root) / (v * zeta)))
            u = (-alpha * v * phi + np.sqrt(alpha**2 * v**2 * phi**2 + 4 * v)) ** 2 / 4
            beta = alpha * phi / (np.sqrt(u) + v * alpha * phi)
            if alpha > 0:
                updates += 1
                least = min(least, float(v / (z**2 @ np.diag(spread)))) if full else 1.0
                mu = mu + alpha * y * direction
                spread = (
                    spread - beta * np.outer(direction, direction) if full else spread + beta * z**2
                )
    return Read(mu, spread, updates, least)


def one_hot(X, most=5):
    """Rows, and beside them a column for each value of every column that has few."""
    few = [values for values in X.T if len(np.unique(values)) <= most]
    return np.column_stack([X, *(values == value for values in few for value in np.unique(values))])


COLUMNS = {
    "svmguide3": ("svmguide3", lambda X: X),
    "one-hot": ("german", one_hot),
    "copies": ("diabetes", lambda X: np.column_stack([X, X[:, :5]])),
    "sums": (
        "diabetes",
        lambda X: np.column_stack([X, X[:, :4].sum(1), X[:, 2:7].sum(1) - X[:, 0]]),
    ),
}
CS = [2.0**-10, 2.0**-5, 1.0, 2.0**5, 2.0**10]
SAME = 1e-6  # of the largest weight
VAGUE = 1e-9  # shares below which weights may differ by more: see docs/algorithm.md


class Comparison(NamedTuple):
    """A fit beside its second reading."""

    columns: str
    scaling: str
    C: float
    covariance: str
    policy: str
    updates: tuple[int, int]
    gap: float  # of weights and covariances, as a share of the largest
    least: float
    exact: tuple[float, float]  # what of the gap is ours and what the reading's, by long doubles

    @property
    def same(self):
        """Whether nothing but rounding differs."""
        return self.updates[0] == self.updates[1] and self.gap <= SAME


def rows_of(columns, scaling, n=300):
    """Return rows with added columns, scaled, and labels."""
    name, add = COLUMNS[columns]
    X, y = real(name, n)
    return np.ascontiguousarray(SCALINGS[scaling](add(X).astype(float))), y


def reservoir_state(ranker):
    """Return the first of the random numbers that a ranker's reservoir uses, with a random_state of 0."""
    new = clone(ranker)
    new.start(ranker.n_features_in_, ranker.classes_)
    return new._learned.state.buffer.random[0]


def apart(ranker, read):
    """Return how far weights and covariances are apart, as a share of the largest."""
    own = ranker.covariance_ if read.spread.ndim == 2 else 1 / ranker.covariance_
    pairs = (ranker.coef_[0], read.mu), (own, read.spread)
    return max(float(np.abs(ours - theirs).max() / np.abs(theirs).max()) for ours, theirs in pairs)


def compare(columns, scaling, C, covariance, policy):
    """Fit `CBRanker.paper`, and read the paper again."""
    X, y = rows_of(columns, scaling)
    ranker = CBRanker.paper(C, policy, covariance).set_params(random_state=0).fit(X, y)
    asked = X, 2 * y - 1, C, covariance, policy, reservoir_state(ranker)
    found = read(*asked)
    made = Comparison(
        columns, scaling, C, covariance, policy, (ranker.n_updates_, found.updates),
        apart(ranker, found), found.least, exact=(0.0, 0.0),
    )  # fmt: skip
    if made.same:
        return made
    truth = read(*asked, dtype=np.longdouble)
    ours, theirs = (
        float(np.abs(weights - truth.mu).max() / np.abs(truth.mu).max())
        for weights in (ranker.coef_[0], found.mu)
    )
    return made._replace(exact=(ours, theirs), least=float(truth.least))


def main():
    cases = itertools.product(COLUMNS, SCALINGS, CS, ("full", "diagonal"), ("fifo", "reservoir"))
    made = [compare(*case) for case in cases]
    same = [each for each in made if each.same]
    equal = sum(each.updates[0] == each.updates[1] for each in made)
    print(
        f"{len(made)} fits: updates equal in {equal}, and weights within {SAME:.0e} in {len(same)},"
        f" at most {max(each.gap for each in same):.1e} apart. The others:"
    )
    print("columns  scaling   C     policy     updates       least share  off by  reading off by")
    for each in made:
        if not each.same:
            print(
                f"{each.columns:8} {each.scaling:9} 2^{np.log2(each.C):<3.0f} {each.policy:10} "
                f"{each.updates[0]:5} of {each.updates[1]:5} {each.least:11.1e} "
                f"{each.exact[0]:9.1e} {each.exact[1]:10.1e}  {each.covariance}"
            )


if __name__ == "__main__":
    main()
