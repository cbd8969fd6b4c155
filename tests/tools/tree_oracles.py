"""Slow, plain readings of how trees are grown and read, as oracles for the compiled ones."""

import numpy as np
from oracles import MWC

from cbrank.kernels.trees import Binned, Nodes


def binned(X, thresholds):
    """Rows as the bins of their columns: 0 for missing values, else 1 + how many thresholds are below."""
    codes = np.zeros(X.shape, np.uint8)
    for row, column in np.ndindex(*X.shape):
        if not np.isnan(X[row, column]):
            codes[row, column] = 1 + sum(X[row, column] > end for end in thresholds[column])
    first = np.cumsum([0, *(2 + len(ends) for ends in thresholds)])
    usual = np.array([np.bincount(own).argmax() for own in codes.T])
    cells, begins = list[int](), [0]
    for row in codes:
        cells += [first[at] + code for at, code in enumerate(row) if code != usual[at]]
        begins.append(len(cells))
    return Binned(codes, first, usual, np.array(begins), np.array(cells, np.int32))


def room(trees, size):
    """Arrays for the nodes of so many trees, and for their roots."""
    kinds = np.int32, np.int32, np.bool_, np.int32, np.float64, np.float64
    return Nodes(*(np.empty(trees * size, kind) for kind in kinds)), np.empty(trees, np.int32)


def goes_left(codes, last, missing):
    """Say which rows go left."""
    return np.where(codes == 0, missing, codes <= last)


def gain_of(left, g, h):
    """What a split lessens the loss by, twice."""
    return (
        sum(g[side].sum() ** 2 / h[side].sum() for side in (left, ~left)) - g.sum() ** 2 / h.sum()
    )


def best_gain(codes, g, h, growth):
    """The largest gain of all splits of some rows by one column, 0.0 if none will do."""
    least, best = max(growth.hessian, growth.rows * h.sum() / len(h)), 0.0
    for last in range(int(codes.max()) + 1):
        for missing in (False, True):
            left = goes_left(codes, last, missing)
            if left.any() and not left.all() and min(h[left].sum(), h[~left].sum()) >= least:
                best = max(best, gain_of(left, g, h))
    return best if best > 1e-9 * h.sum() else 0.0


class Grower:
    """Checks grown trees: each split must be a best one, and of the leaf whose turn it is."""

    def __init__(self, codes, growth, random):
        self.codes, self.growth, self.random = codes, growth, random
        self.columns = [*range(codes.shape[1])]
        self.tries_all = growth.tried >= codes.shape[1]

    def check(self, nodes, root, rows, g, h):
        """Check the tree that was grown from some rows; return how many nodes it has, and its splits."""
        own, gains = {root: rows}, {}
        self._look(root, own, gains, g, h)
        count = 1
        while any(nodes.left[node] >= 0 for node in gains):
            best = max(gains, key=gains.get)
            if not self.tries_all:
                best = min(node for node, gain in gains.items() if gain)
            left = self._split(nodes, best, own, gains.pop(best), g, h)
            assert left == root + count
            count += 2
            if len(own) < self.growth.leaves:
                self._look(left, own, gains, g, h)
                self._look(left + 1, own, gains, g, h)
            else:
                break
        assert len(own) == self.growth.leaves or not any(gains.values())
        for node, within in own.items():
            assert nodes.left[node] == nodes.column[node] == -1
            assert nodes.cover[node] == len(within)
        return count, own

    def _look(self, node, own, gains, g, h):
        rows, gains[node], tried = own[node], 0.0, 0
        for k in range(len(self.columns)):
            if not self.tries_all:
                other = k + int(self.random.uniform() * (len(self.columns) - k))
                self.columns[k], self.columns[other] = self.columns[other], self.columns[k]
            gain = best_gain(self.codes[rows, self.columns[k]], g[rows], h[rows], self.growth)
            gains[node], tried = max(gain, gains[node]), tried + (gain > 0.0)
            if tried == self.growth.tried:
                return

    def _split(self, nodes, node, own, best, g, h):
        rows = own.pop(node)
        codes = self.codes[rows, nodes.column[node]]
        left = goes_left(codes, nodes.bin[node], nodes.missing[node])
        np.testing.assert_allclose(gain_of(left, g[rows], h[rows]), best, rtol=1e-9)
        if (codes > 0).all():
            assert nodes.missing[node] == (h[rows][left].sum() > h[rows][~left].sum())
        below = int(nodes.left[node])
        own[below], own[below + 1] = rows[left], rows[~left]
        assert nodes.cover[node] == len(rows)
        return below


def check_boosted(codes, labels, weights, held, rate, growth, nodes, roots):
    """Check boosted trees, and that there are no others."""
    kept, count = np.flatnonzero(~held), 0
    share = np.average(labels[kept], weights=weights[kept])
    scores, grower = (
        np.full(len(labels), np.log(share / (1.0 - share))),
        Grower(codes, growth, None),
    )
    for root in roots:
        assert root == count
        p = 1.0 / (1.0 + np.exp(-scores))
        g, h = weights * (p - labels), weights * p * (1.0 - p)
        size, leaves = grower.check(nodes, root, kept, g, h)
        for node, rows in leaves.items():
            value = -rate * g[rows].sum() / h[rows].sum()
            np.testing.assert_allclose(nodes.value[node], value, rtol=1e-9, atol=1e-12)
            scores[rows] += value
        count += size
    return count


def check_bagged(codes, labels, weights, growth, nodes, roots, seed):
    """Check trees of bootstrap samples; return how many nodes they have, and who is in which sample."""
    random, count, size = MWC(seed), 0, len(labels)
    grower, samples = Grower(codes, growth, random), []
    for root in roots:
        assert root == count
        drawn = [int(random.uniform() * size) for _ in range(size)]
        times = np.bincount(drawn, minlength=size)
        h = times * weights
        g = h * (np.average(labels, weights=weights) - labels)
        nodes_of_tree, leaves = grower.check(nodes, root, np.flatnonzero(times), g, h)
        for node, rows in leaves.items():
            share = np.average(labels[rows], weights=h[rows])
            value = share - np.average(labels, weights=weights)
            np.testing.assert_allclose(nodes.value[node], value, rtol=1e-9, atol=1e-12)
        count += nodes_of_tree
        samples.append(times > 0)
    return count, np.array(samples).T


def leaf_of(row, forest, root):
    """The leaf that a row reaches, a step at a time."""
    node = root
    while forest.left[node] >= 0:
        value = row[forest.column[node]]
        left = forest.missing[node] if np.isnan(value) else value <= forest.threshold[node]
        node = forest.left[node] + (not left)
    return node
