"""A slow, plain reading of how rankers are tested before they learn, and of what they serve.

The rows of a stream go in one by one, with the weights that each learner has before it learns from the
row; nothing here is taken from the library. Places, curve and shape are those of the module
kernels.prequential.
"""

import itertools
import math
from collections import deque
from types import SimpleNamespace

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

FARTHEST = 20.0
FOREIGN = 1024.0  # usual distances from the middle beyond which values and scores do not count


def blocks(rows):
    """Return the ends of the blocks that so many rows fill: 32, then an eighth, 1,024 at most."""
    ends, end = [], 0
    while True:
        end += min(max(32, end // 8), 1024)
        if end > rows:
            return ends
        ends.append(end)


def weighted_auc(history):
    """Return the mean of (rows, auc, weight)."""
    return sum(auc * weight for _, auc, weight in history) / sum(w for _, _, w in history)


def honest_auc(X, y, weights, digits=None):
    """Return the AUC of blocks; `weights` are those at the beginning of each row."""
    found = []
    for begin, end in itertools.pairwise(blocks(len(y))):
        labels, scores = y[begin:end], np.asarray(X[begin:end] @ weights[begin], float)
        scores = scores if digits is None else scores.round(digits)
        m, n = int(labels.sum()), int((1 - labels).sum())
        if m and n:
            found.append((end, roc_auc_score(labels, scores), 2 * m * n / (m + n)))
    return weighted_auc(found)


def standard_error(parts, auc):
    """Return the standard error of a weighted mean of AUCs by Hanley and McNeil's formula.

    `parts` has (weight, positives, negatives) of each block.
    """
    above, below = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    total = 0.0
    for weight, m, n in parts:
        spread = auc * (1 - auc) + (m - 1) * (above - auc**2) + (n - 1) * (below - auc**2)
        total += weight**2 * spread / (m * n)
    return math.sqrt(total) / sum(weight for weight, _, _ in parts)


class Curve:
    """Log odds of a place: an offset, a shape, a straight line and a trend, learned row by row."""

    def __init__(self, shuffled):
        self.shuffled = shuffled
        self.theta, self.H = np.array([0.0, 1.0, 0.0, 0.0]), np.eye(4)
        self.errors, self.share, self.rows = np.zeros(2), np.zeros(2), 0
        self.knots = None  # places and evidence

    def evidence(self, place):
        if self.knots is None:
            return place
        at, height = self.knots
        inside = np.clip(place, at[0], at[-1])
        if place == inside:
            return float(np.interp(place, at, height))
        k = 1 if place < at[0] else len(at) - 1
        slope = (height[k] - height[k - 1]) / (at[k] - at[k - 1])
        end = height[0] if place < at[0] else height[-1]
        return end + np.sign(place - inside) * np.log1p(slope * abs(place - inside))

    def trend(self):
        return 0.0 if self.shuffled else self.errors[0] / (self.errors[1] + 5.0)

    def rarity(self):
        """Return how many times as many rows it takes for a tenth of them of the rarer class."""
        return max(1.0, 0.1 * (self.share.sum() + 1) / (min(self.share) + 0.5))

    def log_odds(self, place):
        along, line = max(self.theta[1], 0.0), max(self.theta[2], 0.0)
        if along + line < 0.05:
            along = 0.05
        steady = self.theta[0] + along * self.evidence(place) + line * place
        return steady + self.theta[3] * self.trend()

    def place_of(self, log_odds):
        def off(place):
            return self.log_odds(place) - log_odds

        if off(-FARTHEST) > 0:
            return -FARTHEST
        return FARTHEST if off(FARTHEST) <= 0 else brentq(off, -FARTHEST, FARTHEST, xtol=1e-14)

    def learn(self, place, label):
        self.rows += 1
        memory = max(self.rows / 2, 16.0)
        memory = memory if self.shuffled else min(memory, 1000.0 * self.rarity())
        inputs = np.array([1.0, self.evidence(place), place, self.trend()])
        p = expit(np.clip(self.theta @ inputs, -30, 30))
        self.H = (1 - 1 / memory) * self.H + max(p * (1 - p), 1e-4) * np.outer(inputs, inputs)
        pull = (label - p) * inputs - self.theta / memory * [0, 0, 1, 1]
        self.theta = self.theta + np.clip(np.linalg.solve(self.H + np.eye(4), pull), -1, 1)
        p = expit(np.clip(self.theta[:3] @ inputs[:3], -30, 30))
        self.errors = self.errors * (1 - 1 / 15) + [label - p, p * (1 - p)]
        self.share = self.share * (1 - 1 / memory)
        self.share[label] += 1


def count(counts, kept, places, labels):
    """Return rows of each class and the sum of places by bin, those of before faded."""
    edges = 0.1 * np.sinh(np.linspace(-1, 1, 129) * np.arcsinh(FARTHEST / 0.1))
    bins, counts = np.digitize(places, edges[1:-1]), kept * counts
    np.add.at(counts, (labels, bins), 1.0)
    np.add.at(counts[2], bins, places)
    return counts


def grouped(counts):
    """Yield neighbouring bins together: negatives, positives and the sum of their places.

    A group ends where it has enough rows and leaves enough to the rest. Fading makes numbers of rows
    such as 8 - 1e-15, which are 8 or not by the order of a sum: so sums are taken from the left.
    """
    total = counts[0].sum() + counts[1].sum()
    enough, rest, own = max(8.0, total / 32), total, np.zeros(3)
    for number, of_bin in enumerate(counts.T, 1):
        own = own + of_bin
        held = own[0] + own[1]
        if (held >= enough and rest - own[0] - own[1] >= enough) or number == counts.shape[1]:
            rest -= held
            if held > 0:
                yield own
            own = np.zeros(3)


def shape(counts, curve):
    """Return knots of the evidence of places: log odds in groups of bins, isotonic, centred."""
    negatives, positives = counts[0].sum(), counts[1].sum()
    if min(negatives, positives) < 1:
        return None
    prior, at, height, size = math.log(positives / negatives), [], [], []
    for low, high, places in grouped(counts):
        place = places / (low + high)
        p = expit(np.clip(prior + curve.evidence(place), -30, 30))
        at.append(place)
        height.append(math.log((high + 8 * p) / (low + 8 * (1 - p))) - prior)
        size.append(low + high)
    rising = IsotonicRegression().fit_transform(np.arange(len(at)), height, sample_weight=size)
    level = np.concatenate([[0], np.cumsum(np.diff(rising) > 1e-12)])
    if level[-1] == 0:
        return None
    both = [
        np.bincount(level, np.multiply(size, v)) / np.bincount(level, size) for v in (at, rising)
    ]
    return np.array(both)


class Honest:
    """What a ranker says of rows before it learns from them, and what follows from it.

    `by_rows` says whether the means of rows anchor scores, and not the means of scores; `kept` are the
    rows of each class in the buffer, which bound the values that count for the means.
    """

    def __init__(self, width, learners, readouts, *, by_rows, served=None, shuffled=False, kept=50):
        self.by_rows, self.shuffled, self.learners = by_rows, shuffled, list(learners)
        self.served = range(readouts) if served is None else served
        self.means, self.seen = np.zeros((2, width)), np.zeros(2, int)
        many = 1 + max(self.learners)
        self.level, self.centre = np.zeros((many, readouts)), np.zeros((many, readouts, 2))
        self.typical = np.zeros((many, readouts))
        self.bounds = [(-math.inf, math.inf)] * width
        self.buffer = [deque(maxlen=kept), deque(maxlen=kept)]
        self.auc, self.auc_weight = np.full((many, readouts), 0.5), 0.0
        self.curve, self.held, self.end = Curve(shuffled), np.zeros(width), 32
        self.rows, self.history, self.parts = [], [], []
        self.counts = np.zeros((3, 128))
        self.handicap = {}  # AUC that is taken from some learners

    def mix(self):
        """Return the weight of each readout served: e times as much for 0.01 more of AUC."""
        shares = {
            (g, r): math.exp((self.auc[g, r] - self.handicap.get(g, 0.0)) / 0.01)
            for g in self.learners
            for r in self.served
        }
        return {key: share / sum(shares.values()) for key, share in shares.items()}

    def anchor(self, g, r, w):
        """Return midpoint and unit of a readout, whose weights are w."""
        if self.by_rows:
            middle, gap = w @ self.means.mean(axis=0), w @ (self.means[1] - self.means[0])
        else:
            middle, gap = self.centre[g, r].mean(), np.diff(self.centre[g, r])[0]
        unit = max(gap, 0.5 * self.level[g, r])
        return middle, unit if 0 < unit < math.inf else 1.0

    def serve(self, weights):
        """Return the weights that are served, and their midpoint and unit.

        Readouts with a share of less than a millionth are left out.
        """
        mix = self.mix()
        best = max(mix, key=mix.get)
        unit = self.anchor(best[0], best[1], weights[best[0]][best[1]])[1]
        w, middle = 0.0, 0.0
        for (g, r), share in mix.items():
            if share <= 1e-6:
                continue
            own, of_own = self.anchor(g, r, weights[g][r])
            w = w + share * unit / of_own * weights[g][r]
            middle += share * unit / of_own * own
        return SimpleNamespace(w=w, middle=middle, unit=unit)

    def proba(self, x, weights):
        served = self.serve(weights)
        return expit(self.curve.log_odds((served.w @ x - served.middle) / served.unit))

    def intercept(self, weights, log_odds):
        served = self.serve(weights)
        return -(served.middle + served.unit * self.curve.place_of(log_odds))

    def take(self, x, label, weights):
        """Take a row; `weights` has the readouts of each learner before the row, by number."""
        count, mix, places = self.curve.rows + 1, self.mix(), {}
        memory = min(count, max(50.0, count / 4) if self.shuffled else 50.0)
        for g in self.learners:
            for r, w in enumerate(weights[g]):
                middle, unit = self.anchor(g, r, w)
                place = float(np.clip((w @ x - middle) / unit, -FARTHEST, FARTHEST))
                places[g, r] = round(place * 2**30) / 2**30
                distance = abs(w @ x - middle)
                if not self.is_typical(g, r, distance):
                    continue
                usual = unit * min(distance / unit, 100.0)
                self.level[g, r] += (usual - self.level[g, r]) / min(memory, 50.0)
                if not self.by_rows:
                    off = (w @ x - self.centre[g, r, label]) / unit
                    rate = 1 / min(self.curve.share[label] + 1, memory)
                    self.centre[g, r, label] += np.clip(off, -100, 100) * unit * rate
        place = sum(share * places[key] for key, share in mix.items())
        self.curve.learn(place, label)
        self.seen[label] += 1
        forget = 1 / (self.seen[label] if self.shuffled else min(self.seen[label], 50))
        for column, (lower, upper) in enumerate(self.bounds):
            if lower < x[column] < upper:
                self.means[label, column] += forget * (x[column] - self.means[label, column])
        self.buffer[label].append(x)
        self.rows.append((self.held @ x, label, place, places))
        return self.curve.rows == self.end

    def is_typical(self, g, r, distance):
        """Say whether a score is not far beyond all others, by the typical distance so far."""
        before = self.typical[g, r]
        if distance > 0 and before > 0:
            self.typical[g, r] = np.clip(distance, before / 2, before * 2)
        elif distance > 0:
            self.typical[g, r] = distance
        return before == 0 or distance <= FOREIGN * before

    def bound(self):
        """Find the bounds of each column by the rows in the buffer."""
        rows = np.array([*self.buffer[0], *self.buffer[1]])
        for column, (lower, upper) in enumerate(self.bounds):
            middle = np.median(rows[:, column])
            off = sorted(abs(value - middle) for value in rows[:, column] if value != middle)
            known = upper < math.inf
            if off:
                drift = abs(middle - (lower + upper) / 2) if known else 0.0
                radius = FOREIGN * (off[9 * len(off) // 10] + drift)
                radius = min(radius, upper - lower) if known else radius
                lower, upper = middle - radius, middle + radius  # noqa: PLW2901
            elif not lower < middle < upper:
                lower, upper = -math.inf, math.inf  # noqa: PLW2901
            self.bounds[column] = lower, upper
            for label in range(2):
                if not lower < self.means[label, column] < upper:
                    self.means[label, column] = middle

    def measure(self):
        """End a block: its AUC, the evidence for each readout, and the shape of the curve."""
        tested, labels, served, places = (np.array(part) for part in zip(*self.rows, strict=True))
        size, self.rows = len(labels), []
        m, n = int(labels.sum()), int(size - labels.sum())
        kept = max(1 - 2 * size / self.end, 0.0)
        memory = 2000 * self.curve.rarity()
        kept = kept if self.shuffled else min(kept, math.exp(-size / memory))
        if m and n:
            weight = 2 * m * n / size
            if self.held.any():
                self.history.append((self.end, roc_auc_score(labels, tested), weight))
                self.parts.append((self.end, weight, m, n))
            old = kept * self.auc_weight
            for key in places[0]:
                auc = roc_auc_score(labels, [own[key] for own in places])
                self.auc[key] = (old * self.auc[key] + weight * auc) / (old + weight)
            self.auc_weight = old + weight
        self.counts = count(self.counts, kept, served.astype(float), labels.astype(int))
        self.curve.knots = shape(self.counts, self.curve)

    def begin(self, weights):
        """Begin a block, which is tested by what is served now."""
        self.bound()
        self.held = self.serve(weights).w
        self.end += min(max(32, self.end // 8), 1024)

    def recent(self):
        """Return AUC and standard error of the blocks, those that end by `end` rows ago fading."""
        last = blocks(self.curve.rows)[-1]
        fade = {end: math.exp(-(last - end) / 1000) for end, *_ in self.parts}
        auc = weighted_auc([(end, auc, fade[end] * weight) for end, auc, weight in self.history])
        return auc, standard_error([(fade[end] * w, m, n) for end, w, m, n in self.parts], auc)
