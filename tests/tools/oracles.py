"""Slow, plain-NumPy readings of the online ranking learners, used as oracles by the tests.

Everything here is written from the paper and the algorithm notes alone, formula by formula, and
shares no code with the library. Clarity comes before speed: loops over rows and pairs throughout,
in any floating type NumPy has (``np.longdouble`` included).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
from scipy.stats import norm

AVERAGE_DECAY = 3  # the p of the polynomial-decay average
WIDEST = 2**17  # the standard deviation that one column may bring into the score of a pair


def quiet() -> np.errstate:
    """Decorate a function whose overflows and NaNs are expected, not worth a warning."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


# ---------------------------------------------------------------------------------------------
# Random numbers and buffers
# ---------------------------------------------------------------------------------------------


class MWC:
    """Multiply-with-carry generator: 64-bit state, 32-bit output, in Python integers."""

    def __init__(self, state: int) -> None:
        self.t = int(state)

    def next32(self) -> int:
        """Return the next 32-bit integer."""
        x = self.t & 0xFFFFFFFF
        c = self.t >> 32
        self.t = 4294883355 * x + c
        return x ^ c

    def uniform(self) -> float:
        """Return a float64 in [0, 1) with 53 random bits."""
        a = self.next32() >> 5
        b = self.next32() >> 6
        return (a * 2**26 + b) / 2**53

    def normal(self) -> float:
        """Return a standard normal float64 (Box-Muller, the cosine half only)."""
        u1 = self.uniform()
        u2 = self.uniform()
        return math.sqrt(-2.0 * math.log(1.0 - u1)) * math.cos(2.0 * math.pi * u2)


class Buffer:
    """One buffer of `capacity` rows per class, under the "fifo" or the "reservoir" policy."""

    def __init__(self, capacity: int, policy: str, rng: MWC) -> None:
        if policy not in ("fifo", "reservoir"):
            raise ValueError(f"unknown policy {policy!r}")
        self.capacity = capacity
        self.policy = policy
        self.rng = rng
        self.count = [0, 0]  # rows offered, per class
        self.stored: list[list[np.ndarray]] = [[], []]

    def add(self, c: int, x: np.ndarray) -> None:
        """Offer row `x` to the buffer of class `c`; the row is copied."""
        self.count[c] += 1
        slots = self.stored[c]
        if len(slots) < self.capacity:
            slots.append(x.copy())
        elif self.policy == "fifo":
            slots.pop(0)
            slots.append(x.copy())
        else:
            j = math.floor(self.rng.uniform() * self.count[c])
            if j < self.capacity:
                slots[j] = x.copy()

    def rows(self, c: int) -> list[np.ndarray]:
        """Return copies of the rows of class `c`: oldest first (fifo) or in slot order."""
        return [row.copy() for row in self.stored[c]]


class Window:
    """All rows since the latest `least` of the class whose are older, of each class at most `room`."""

    def __init__(self, least: int, room: int) -> None:
        self.least, self.room = least, room
        self.came: list[tuple[int, np.ndarray]] = []  # all rows ever, with their class

    def add(self, c: int, x: np.ndarray) -> None:
        """Take a row of class `c`, which is copied."""
        self.came.append((c, x.copy()))

    def places(self, c: int) -> list[int]:
        """Return the places in the stream of the rows of class `c`, oldest first."""
        times = [[t for t, (own, _) in enumerate(self.came) if own == label] for label in range(2)]
        begin = min(own[-self.least] if len(own) >= self.least else 0 for own in times)
        return [t for t in times[c] if t >= begin][-self.room :]

    def rows(self, c: int) -> list[np.ndarray]:
        """Return copies of the rows of class `c`, oldest first."""
        return [self.came[t][1].copy() for t in self.places(c)]


def buffer_of(size: int | tuple[int, int], policy: str, state: int) -> Buffer | Window:
    """Return a buffer of a size, or the window of so many rows at the least and at the most."""
    return Window(*size) if isinstance(size, tuple) else Buffer(size, policy, MWC(state))


# ---------------------------------------------------------------------------------------------
# What all learners share: the stream of rows
# ---------------------------------------------------------------------------------------------


def stream(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray | None, balanced: bool, dtype: type
) -> Iterator[tuple[np.ndarray, int, np.floating, np.floating, list[int]]]:
    """Yield (x, class, sign, factor of C or of the step, class counts with this row included).

    Rows of weight 0 are left out as if they were not in the data.
    """
    kind = np.dtype(dtype).type
    X = np.asarray(X).astype(kind)
    y = np.asarray(y)
    counts = [0, 0]
    for i in range(X.shape[0]):
        weight = kind(1) if weights is None else kind(weights[i])
        if weight == 0:
            continue
        c = int(y[i])
        counts[c] += 1
        factor = weight
        if balanced:
            factor = factor * (kind(counts[0] + counts[1]) / kind(2 * counts[c]))
        yield X[i].copy(), c, kind(2 * c - 1), factor, list(counts)


# ---------------------------------------------------------------------------------------------
# Confidence-weighted bipartite ranking
# ---------------------------------------------------------------------------------------------


@quiet()
def scw_step(m: float, v: float, C: float, phi: float) -> tuple[np.floating, np.floating]:
    """Return (alpha, beta) of Proposition 1; both roots of sums of squares are taken by hypot.

    A v that is not positive, or anything not finite in m or v, gives (0, 0).
    """
    kind = np.result_type(*(np.asarray(a).dtype for a in (m, v, C, phi)), np.float64).type
    m, v, C, phi = kind(m), kind(v), kind(C), kind(phi)
    zero = kind(0)
    if not (np.isfinite(m) and np.isfinite(v) and v > 0):
        return zero, zero
    psi = 1 + phi**2 / 2
    zeta = 1 + phi**2
    # sqrt(m^2 phi^4 / 4 + v phi^2 zeta)
    root = np.hypot(m * phi**2 / 2, phi * np.sqrt(v * zeta))
    alpha = min(C, max(zero, (-m * psi + root) / (v * zeta)))
    # sqrt(alpha^2 v^2 phi^2 + 4 v)
    root = np.hypot(alpha * v * phi, 2 * np.sqrt(v))
    u = (-alpha * v * phi + root) ** 2 / 4
    beta = alpha * phi / (np.sqrt(u) + v * alpha * phi)
    return alpha, beta


def precision_gain(alpha: np.floating, v: np.floating, phi: np.floating) -> np.floating:
    """Return k = alpha phi / sqrt(u), with (-a + r)/2 written as 2 v / (a + r): no cancellation."""
    a = alpha * v * phi
    root = np.hypot(a, 2 * np.sqrt(v))
    sqrt_u = 2 * v / (a + root)
    return alpha * phi / sqrt_u


def fires(m: np.floating, v: np.floating, phi: np.floating) -> bool:
    """Tell whether a pair moves the model: v > 0 and m < phi sqrt(v), all finite."""
    return bool(np.isfinite(m) and np.isfinite(v) and v > 0 and m < phi * np.sqrt(v))


def narrowing(z: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the factors by which weights are narrowed before a pair z that fires updates them."""
    size = np.abs(z) * np.sqrt(variances)
    return np.where(size > WIDEST * (1 + 1e-9), WIDEST / np.maximum(size, 1), 1)


def run_cbr(
    X: np.ndarray,
    y: np.ndarray,
    C: float,
    mu: np.ndarray,
    average: np.ndarray,
    pair: Callable[[np.ndarray, np.floating, np.floating], bool],
    buffer: Buffer | Window,
    weights: np.ndarray | None,
    balanced: bool,
    dtype: type,
    forgetting: float = 0.0,
    forget: Callable[[float], None] | None = None,
    after_row: Callable[[int], None] | None = None,
) -> SimpleNamespace:
    """Run Algorithm 1; `pair(z, sign, C_t)` updates `mu` in place and says whether it fired.

    `forget(k)` leaves a share k of the evidence, at every so many rows that half of
    1 / forgetting has gone by, 64 at least; the average then counts 4 / forgetting rows at most.
    """
    kind = np.dtype(dtype).type
    averaged = 0
    n_pairs = 0
    n_updates = 0
    before = []  # mean and average at the beginning of each row
    p = AVERAGE_DECAY
    for x, c, sign, factor, counts in stream(X, y, weights, balanced, dtype):
        C_t = kind(C) * factor
        buffer.add(c, x)
        opposite = buffer.rows(1 - c)

        before.append((mu.copy(), average.copy()))
        for b in opposite:
            n_pairs += 1
            if pair(x - b, sign, C_t):
                n_updates += 1

        average += kind(p + 1) / kind(averaged + p + 1) * (mu - average)
        averaged += 1
        every = max(64, math.floor(0.5 / forgetting)) if forgetting else math.inf
        if forget and sum(counts) % every == 0:
            forget((1 - forgetting) ** every)
            averaged = min(averaged, math.floor(4 / forgetting))
        if after_row:
            after_row(sum(counts))
    return SimpleNamespace(
        mu=mu,
        average=average,
        n_pairs=n_pairs,
        n_updates=n_updates,
        mu_before=[mean for mean, _ in before],
        average_before=[held for _, held in before],
        buffer=buffer,
    )


@quiet()
def cbr_full(
    X: np.ndarray,
    y: np.ndarray,
    C: float,
    eta: float = 0.7,
    buffer_size: int | tuple[int, int] = 50,
    policy: str = "fifo",
    weights: np.ndarray | None = None,
    balanced: bool = False,
    state: int = 1,
    dtype: type = np.float64,
    forgetting: float = 0.0,
) -> SimpleNamespace:
    """CBR with the full covariance (Proposition 1, Algorithms 1 to 3)."""
    kind = np.dtype(dtype).type
    d = np.asarray(X).shape[1]
    phi = kind(norm.ppf(eta))
    mu, average = np.zeros(d, dtype=kind), np.zeros(d, dtype=kind)
    Sigma = np.eye(d, dtype=kind)

    def pair(z: np.ndarray, sign: np.floating, C_t: np.floating) -> bool:
        if not fires(sign * (mu @ z), z @ Sigma @ z, phi):
            return False
        narrower = narrowing(z, np.diag(Sigma))
        mu[:], average[:] = narrower * mu, narrower * average
        Sigma[:] = narrower[:, None] * Sigma * narrower
        s = Sigma @ z
        m = sign * (mu @ z)
        v = z @ s
        if not fires(m, v, phi):
            return False
        alpha, beta = scw_step(m, v, C_t, phi)
        mu[:] = mu + alpha * sign * s
        Sigma[:] = Sigma - beta * np.outer(s, s)
        return bool(alpha > 0)

    def forget(kept: float) -> None:
        Sigma[:] = np.linalg.inv(kept * np.linalg.inv(Sigma) + (1 - kept) * np.eye(d))

    buffer = buffer_of(buffer_size, policy, state)
    result = run_cbr(
        X, y, C, mu, average, pair, buffer, weights, balanced, dtype, forgetting, forget
    )
    result.Sigma = Sigma
    return result


@quiet()
def cbr_diagonal(
    X: np.ndarray,
    y: np.ndarray,
    C: float,
    eta: float = 0.7,
    buffer_size: int | tuple[int, int] = 50,
    policy: str = "fifo",
    form: str = "paper",
    weights: np.ndarray | None = None,
    balanced: bool = False,
    state: int = 1,
    dtype: type = np.float64,
    forgetting: float = 0.0,
    select: Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> SimpleNamespace:
    """CBR-diag: Proposition 2 to the letter ("paper"), or the "precision" or "drop" form.

    `select(rows, mu, average, G)` says after each row which features return to the prior.
    """
    if form not in ("paper", "precision", "drop"):
        raise ValueError(f"unknown form {form!r}")
    kind = np.dtype(dtype).type
    d = np.asarray(X).shape[1]
    phi = kind(norm.ppf(eta))
    mu, average = np.zeros(d, dtype=kind), np.zeros(d, dtype=kind)
    G = np.ones(d, dtype=kind)

    def look(z: np.ndarray, sign: np.floating, C_t: np.floating) -> tuple[np.floating, np.floating]:
        return sign * (mu @ z), np.sum(z**2 / (G + C_t if form == "paper" else G))

    def pair(z: np.ndarray, sign: np.floating, C_t: np.floating) -> bool:
        if not fires(*look(z, sign, C_t), phi):
            return False
        narrower = narrowing(z, 1 / G)
        mu[:], average[:], G[:] = narrower * mu, narrower * average, G / narrower**2
        m, v = look(z, sign, C_t)
        if not fires(m, v, phi):
            return False
        alpha, beta = scw_step(m, v, C_t, phi)
        mu[:] = mu + alpha * sign * z / G
        if form == "paper":
            G[:] = G + beta * z**2
        elif form == "precision":
            G[:] = G + precision_gain(alpha, v, phi) * z**2
        else:
            G[:] = 1 / (1 / G - beta * (z / G) ** 2)
        return bool(alpha > 0)

    def forget(kept: float) -> None:
        G[:] = kept * G + (1 - kept)

    def cut(rows: int) -> None:
        assert select is not None
        lost = select(rows, mu, average, G)
        mu[lost], average[lost], G[lost] = 0, 0, 1

    buffer, after_row = buffer_of(buffer_size, policy, state), cut if select else None
    result = run_cbr(
        X, y, C, mu, average, pair, buffer, weights, balanced, dtype, forgetting, forget, after_row
    )
    result.G = G
    return result


# ---------------------------------------------------------------------------------------------
# Baselines
# ---------------------------------------------------------------------------------------------


@quiet()
def oam(
    X: np.ndarray,
    y: np.ndarray,
    C: float,
    buffer_size: int = 50,
    update: str = "sequential",
    policy: str = "reservoir",
    weights: np.ndarray | None = None,
    balanced: bool = False,
    state: int = 1,
    dtype: type = np.float64,
) -> SimpleNamespace:
    """Online AUC maximisation (Zhao et al. 2011), OAM_seq or OAM_gra, with the halved C_t."""
    if update not in ("sequential", "gradient"):
        raise ValueError(f"unknown update {update!r}")
    kind = np.dtype(dtype).type
    w = np.zeros(np.asarray(X).shape[1], dtype=kind)
    buffer = Buffer(buffer_size, policy, MWC(state))
    for x, c, sign, factor, counts in stream(X, y, weights, balanced, dtype):
        buffer.add(c, x)
        C_t = kind(C) * factor * max(kind(1), kind(counts[1 - c]) / kind(buffer_size))
        if update == "sequential":
            for b in buffer.rows(1 - c):
                z = x - b
                squared_norm = z @ z
                margin = sign * (w @ z)
                if not (np.isfinite(margin) and np.isfinite(squared_norm) and squared_norm > 0):
                    continue
                tau = min(C_t / 2, max(kind(0), 1 - margin) / squared_norm)
                w = w + tau * sign * z
        else:
            total = np.zeros_like(w)
            for b in buffer.rows(1 - c):
                z = x - b
                if sign * (w @ z) <= 1:
                    total = total + sign * z
            w = w + C_t / 2 * total
    return SimpleNamespace(w=w, buffer=buffer)


class ClassMoments:
    """Running count, mean and covariance of each class, by OPAUC's own recursion."""

    def __init__(self, d: int, kind: type) -> None:
        self.kind = kind
        self.count = [0, 0]
        self.mean = [np.zeros(d, dtype=kind), np.zeros(d, dtype=kind)]
        self.gamma = [np.zeros((d, d), dtype=kind), np.zeros((d, d), dtype=kind)]

    def add(self, c: int, x: np.ndarray) -> None:
        """Take row `x` into the statistics of class `c`."""
        self.count[c] += 1
        T = self.kind(self.count[c])
        old = self.mean[c]
        new = old + (x - old) / T
        gamma = self.gamma[c]
        old_square = np.outer(old, old)
        new_square = np.outer(new, new)
        change = (np.outer(x, x) - gamma - old_square) / T + old_square - new_square
        self.gamma[c] = gamma + change
        self.mean[c] = new


def opauc_gradient(
    w: np.ndarray,
    x: np.ndarray,
    sign: np.floating,
    mean: np.ndarray,
    gamma: np.ndarray,
    lam: np.floating,
) -> np.ndarray:
    """OPAUC's gradient at row `x`, given the opposite class's mean and covariance."""
    z = x - mean
    return lam * w - sign * z + z * (z @ w) + gamma @ w


@quiet()
def opauc(
    X: np.ndarray,
    y: np.ndarray,
    step: float,
    regularization: float = 1e-4,
    weights: np.ndarray | None = None,
    balanced: bool = False,
    dtype: type = np.float64,
) -> SimpleNamespace:
    """One-pass AUC optimisation with the square loss (Gao et al. 2013)."""
    kind = np.dtype(dtype).type
    d = np.asarray(X).shape[1]
    lam = kind(regularization)
    w = np.zeros(d, dtype=kind)
    moments = ClassMoments(d, kind)
    for x, c, sign, factor, _ in stream(X, y, weights, balanced, dtype):
        moments.add(c, x)
        o = 1 - c
        if moments.count[o] > 0:
            g = opauc_gradient(w, x, sign, moments.mean[o], moments.gamma[o], lam)
            w = w - kind(step) * factor * g
    return SimpleNamespace(w=w, means=moments.mean, gammas=moments.gamma, counts=moments.count)


@quiet()
def opauc_sketch(
    X: np.ndarray,
    y: np.ndarray,
    step: float,
    regularization: float = 1e-4,
    rank: int = 50,
    sketch: str = "published",
    weights: np.ndarray | None = None,
    balanced: bool = False,
    state: int = 1,
    dtype: type = np.float64,
) -> SimpleNamespace:
    """OPAUCr: OPAUC with each covariance replaced by a random sketch of `rank` columns.

    The sketch is that of the authors' program, or the same of the centred rows.
    """
    kind = np.dtype(dtype).type
    d = np.asarray(X).shape[1]
    lam = kind(regularization)
    rng = MWC(state)
    w = np.zeros(d, dtype=kind)
    count = [0, 0]
    mean = [np.zeros(d, dtype=kind), np.zeros(d, dtype=kind)]
    Z = [np.zeros((d, rank), dtype=kind), np.zeros((d, rank), dtype=kind)]
    h = [np.zeros(rank, dtype=kind), np.zeros(rank, dtype=kind)]
    for x, c, sign, factor, _ in stream(X, y, weights, balanced, dtype):
        a = np.array([kind(rng.normal()) for _ in range(rank)], dtype=kind) / np.sqrt(kind(rank))
        count[c] += 1
        T = kind(count[c])
        mean[c] = mean[c] + (x - mean[c]) / T
        h[c] = h[c] + (a - h[c]) / T
        Z[c] = Z[c] + np.outer(x, a)
        o = 1 - c
        if count[o] > 0:
            T = kind(count[o])
            if sketch == "centred":
                centred = Z[o] - T * np.outer(mean[o], h[o])
                gamma = centred @ centred.T / T
            else:
                centre = np.outer(mean[o], h[o])
                gamma = Z[o] @ Z[o].T / T - centre @ centre.T
            g = opauc_gradient(w, x, sign, mean[o], gamma, lam)
            w = w - kind(step) * factor * g
    return SimpleNamespace(w=w, means=mean, sketches=Z, sketch_means=h, counts=count)


@quiet()
def adaoam(
    X: np.ndarray,
    y: np.ndarray,
    step: float,
    regularization: float = 1e-4,
    smoothing: float = 0.5,
    weights: np.ndarray | None = None,
    balanced: bool = False,
    dtype: type = np.float64,
) -> SimpleNamespace:
    """AdaOAM (Ding et al. 2015): OPAUC's gradient, per-feature steps, AdaGrad's projection to a ball."""
    kind = np.dtype(dtype).type
    d = np.asarray(X).shape[1]
    lam = kind(regularization)
    w = np.zeros(d, dtype=kind)
    s = np.zeros(d, dtype=kind)
    moments = ClassMoments(d, kind)
    radius = 1 / np.sqrt(lam)  # infinite without regularisation: no projection then
    for x, c, sign, factor, _ in stream(X, y, weights, balanced, dtype):
        moments.add(c, x)
        o = 1 - c
        if moments.count[o] > 0:
            g = opauc_gradient(w, x, sign, moments.mean[o], moments.gamma[o], lam)
            s = s + g**2
            H = kind(smoothing) + np.sqrt(s)
            w = nearest_in_ball(w - kind(step) * factor * g / H, H, radius)
    return SimpleNamespace(
        w=w, squares=s, means=moments.mean, gammas=moments.gamma, counts=moments.count
    )


def nearest_in_ball(w: np.ndarray, H: np.ndarray, radius: np.floating) -> np.ndarray:
    """Return the u with |u| <= radius that has the least sum of H (u - w)^2, by halving an interval.

    By Lagrange H (u - w) = -pull u, with a pull of 0 inside the ball.
    """
    low, high = 0 * radius, H.max() * np.sqrt(w @ w) / radius
    if w @ w <= radius**2:
        return w
    for _ in range(200):
        pull = (low + high) / 2
        u = H * w / (H + pull)
        low, high = (pull, high) if u @ u > radius**2 else (low, pull)
    return H * w / (H + high)


@quiet()
def uniexp(
    X: np.ndarray,
    y: np.ndarray,
    step: float,
    weights: np.ndarray | None = None,
    balanced: bool = False,
    dtype: type = np.float64,
) -> SimpleNamespace:
    """Online Uni-Exp (Kotlowski et al. 2011): class-weighted exponential loss, row by row."""
    kind = np.dtype(dtype).type
    w = np.zeros(np.asarray(X).shape[1], dtype=kind)
    for x, c, sign, factor, counts in stream(X, y, weights, balanced, dtype):
        share = kind(counts[c]) / kind(counts[0] + counts[1])  # p for positives, 1 - p otherwise
        class_weight = 1 / (2 * share)
        w = w + kind(step) * factor * class_weight * sign * np.exp(-sign * (w @ x)) * x
    return SimpleNamespace(w=w)


# ---------------------------------------------------------------------------------------------
# Measures
# ---------------------------------------------------------------------------------------------


def auc(y: np.ndarray, scores: np.ndarray) -> float:
    """Share of (positive, negative) pairs ranked right, ties half; NaN if there is no pair."""
    y = np.asarray(y)
    scores = np.asarray(scores)
    positives = [s for s, label in zip(scores, y, strict=True) if label == 1]
    negatives = [s for s, label in zip(scores, y, strict=True) if label == 0]
    if not positives or not negatives:
        return math.nan
    twice_right = 0
    for s in positives:
        for r in negatives:
            twice_right += 2 if s > r else 1 if s == r else 0
    return twice_right / (2 * len(positives) * len(negatives))


@dataclass(frozen=True)
class OperatingPoint:
    """A point of the ROC curve; unpacks as (threshold, fpr, tpr)."""

    threshold: float
    fpr: float
    tpr: float
    accuracy: float

    def __iter__(self) -> Iterator[float]:
        """Yield threshold, fpr, tpr."""
        return iter((self.threshold, self.fpr, self.tpr))


def optimal_operating_point(
    y: np.ndarray,
    scores: np.ndarray,
    cost_fp: float = 1.0,
    cost_fn: float = 1.0,
    prior: float | None = None,
) -> OperatingPoint:
    """Minimise FPR - TPR/S over all thresholds, lowest FPR on ties, in exact fractions.

    S = cost_fp/cost_fn * N/P, with N/P read as (1 - prior)/prior where a prior is given.
    """
    y = np.asarray(y)
    scores = np.asarray(scores)
    P = sum(1 for label in y if label == 1)
    N = sum(1 for label in y if label == 0)
    if P == 0 or N == 0:
        raise ValueError("both classes are needed")
    if prior is None:
        share_pos, share_neg = Fraction(P, P + N), Fraction(N, P + N)
    else:
        share_pos, share_neg = Fraction(float(prior)), 1 - Fraction(float(prior))
    # FPR - TPR/S, times the positive constant cost_fp * share_neg: costs of 0 stay defined
    slope_fpr = Fraction(float(cost_fp)) * share_neg
    slope_tpr = Fraction(float(cost_fn)) * share_pos

    best: tuple[Fraction, Fraction] | None = None
    point = OperatingPoint(math.inf, 0.0, 0.0, N / (P + N))
    for threshold in [math.inf, *sorted(set(scores.tolist()))]:
        fp = 0
        tp = 0
        if threshold != math.inf:
            for s, label in zip(scores.tolist(), y, strict=True):
                if s >= threshold:
                    tp += int(label == 1)
                    fp += int(label == 0)
        fpr, tpr = Fraction(fp, N), Fraction(tp, P)
        key = (slope_fpr * fpr - slope_tpr * tpr, fpr)
        if best is None or key < best:
            best = key
            accuracy = (tpr * P + (1 - fpr) * N) / (P + N)
            point = OperatingPoint(threshold, float(fpr), float(tpr), float(accuracy))
    return point
