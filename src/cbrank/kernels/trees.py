"""Trees of decisions: grown from histograms of binned columns, and read by thresholds.

A tree is grown from the root: the leaf whose split lessens the loss most is split first, until there are enough
leaves. The loss is that of Newton's method: with G the sum of the gradients of some rows and H that of their
second derivatives, the best value for all of them is -G / H, and lessens the loss by G^2 / (2 H). So a split is
looked for by the sums of G and H for each bin of a column (its histogram); the histogram of the
larger child is that of its parent less that of the smaller one, whose rows alone are read.

Bin 0 of a column are its missing values, which go to the side where they lessen the loss more. Where a
node has none, missing values go where most of its rows do.
"""

from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import allocating_jit, jit, kernel
from cbrank.kernels.random import uniform

BINS = 64  # with that of missing values
NO_NODE = -1
GRADIENT, HESSIAN = range(2)  # places in a cell of a histogram
# Share of the sums that a gain must exceed: less is their rounding error.
_LEAST_GAIN = 1e-10


class Nodes(NamedTuple):
    """The nodes of all trees, one tree after the other; a right child follows its left one."""

    column: np.ndarray  # that decides; of a leaf `NO_NODE`
    bin: np.ndarray  # greatest that goes left
    missing: np.ndarray  # whether missing values go left
    left: np.ndarray  # the left child; of a leaf `NO_NODE`
    value: np.ndarray  # what a leaf adds to the score
    cover: np.ndarray  # rows it was grown from


class Binned(NamedTuple):
    """Rows as the bins of their columns.

    Most values of many columns are in one bin. The rows of that need not be read: its sums are those of the node
    less those of the other bins.
    """

    codes: np.ndarray  # (rows, columns) bins
    first: (
        np.ndarray
    )  # (columns + 1,) the cell of the first bin of each column in a histogram of all
    usual: np.ndarray  # (columns,) the bin with most values
    begins: np.ndarray  # (rows + 1,) where the cells of each row begin
    cells: np.ndarray  # of the bins of each row, but for usual ones


class Growth(NamedTuple):
    """What trees are grown by."""

    leaves: int  # of a tree at most
    rows: int  # of a leaf at least
    hessian: float  # sum of second derivatives of a leaf at least
    tried: int  # columns tried for a split, drawn at random; all of them if there are no more


class _Work(NamedTuple):
    """What is known of the nodes of the tree that grows, by their place in it, and room to work in."""

    begin: np.ndarray  # of a node's rows
    cut: (
        np.ndarray
    )  # of the rows from here on nothing is learned: they are only led to their leaves
    end: np.ndarray
    gain: np.ndarray  # of its best split; 0 if there is none, or it was made
    sums: np.ndarray  # (nodes, 2) of its rows
    slot: np.ndarray  # where its histogram is
    histograms: np.ndarray  # (slots, cells, 2)
    rows: np.ndarray  # those of a node side by side
    moved: np.ndarray  # (rows,) room
    columns: np.ndarray  # in random order


@allocating_jit
def _room_for(rows, binned, growth):
    """Return room to work in; where few columns are tried, histograms are made anew for each node."""
    nodes, columns = 2 * min(growth.leaves, rows) - 1, binned.usual.size
    slots = growth.leaves if growth.tried >= columns else 1
    return _Work(
        np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64),
        np.empty(nodes), np.empty((nodes, 2)), np.empty(nodes, np.int64),
        np.empty((slots, binned.first[columns], 2)),
        np.empty(rows, np.int32), np.empty(rows, np.int32), np.arange(columns),
    )  # fmt: skip


@jit
def _add(cell, pull):
    cell[GRADIENT] += pull[GRADIENT]
    cell[HESSIAN] += pull[HESSIAN]


@jit
def _fill(histogram, binned, pulls, rows, sums):
    """Sum up the rows of a node for each bin of all columns."""
    histogram[:] = 0.0
    for i in range(rows.size):
        row = np.uint32(rows[i])
        g, h = pulls[row, GRADIENT], pulls[row, HESSIAN]
        for k in range(binned.begins[row], binned.begins[row + 1]):
            cell = binned.cells[k]
            histogram[cell, GRADIENT] += g
            histogram[cell, HESSIAN] += h
    for column in range(binned.usual.size):
        first, end = binned.first[column], binned.first[column + 1]
        usual = histogram[first + binned.usual[column]]
        usual[GRADIENT], usual[HESSIAN] = sums[GRADIENT], sums[HESSIAN]
        for cell in range(first, end):
            if cell != first + binned.usual[column]:
                usual[GRADIENT] -= histogram[cell, GRADIENT]
                usual[HESSIAN] -= histogram[cell, HESSIAN]


@jit
def _fill_column(histogram, binned, pulls, rows, column):
    """Sum up the rows of a node for each bin of one column."""
    histogram[:] = 0.0
    for i in range(rows.size):
        row = np.uint32(rows[i])
        cell = binned.codes[row, column]
        histogram[cell, GRADIENT] += pulls[row, GRADIENT]
        histogram[cell, HESSIAN] += pulls[row, HESSIAN]


@jit
def _try_column(histogram, column, at, node, growth, nodes, work):
    """Look at the splits of a node by a column, and note the best if it is better than those so far.

    How many rows are on a side is told by their share of the second derivatives. Return whether any split would do.
    """
    G, H = work.sums[at, GRADIENT], work.sums[at, HESSIAN]
    least = max(growth.hessian, growth.rows * H / nodes.cover[node])
    nothing = _LEAST_GAIN * H  # what is left of the sums of a bin that no row has
    known, found, some_missing = G * G / H, False, histogram[0, HESSIAN] > nothing
    for missing_left in range(1 + some_missing):
        g, h = 0.0, 0.0
        for code in range(1 - missing_left, len(histogram) - 1):
            g += histogram[code, GRADIENT]
            h += histogram[code, HESSIAN]
            if histogram[code, HESSIAN] <= nothing or h < least:
                continue
            if H - h < least:
                break
            whole = g * g / h + (G - g) * (G - g) / (H - h)
            gain = whole - known
            if gain > _LEAST_GAIN * whole:
                found = True
                if gain > work.gain[at]:
                    work.gain[at] = gain
                    nodes.column[node], nodes.bin[node] = column, code
                    nodes.missing[node] = missing_left == 1 if some_missing else 2.0 * h > H
    return found


@jit
def _look(at, node, binned, pulls, growth, nodes, work, random):
    """Look for the best split of a node; where all columns are tried, its histogram is there."""
    work.gain[at] = 0.0
    columns = binned.usual.size
    if growth.tried >= columns:
        for column in range(columns):
            histogram = work.histograms[
                work.slot[at], binned.first[column] : binned.first[column + 1]
            ]
            _try_column(histogram, column, at, node, growth, nodes, work)
        return
    rows, tried = work.rows[work.begin[at] : work.cut[at]], 0
    for k in range(columns):
        other = k + int(uniform(random) * (columns - k))
        column = work.columns[other]
        work.columns[k], work.columns[other] = column, work.columns[k]
        histogram = work.histograms[0, binned.first[column] : binned.first[column + 1]]
        _fill_column(histogram, binned, pulls, rows, column)
        if _try_column(histogram, column, at, node, growth, nodes, work):
            tried += 1
        if tried == growth.tried:
            return


@jit
def _begin(at, node, begin, cut, end, pulls, nodes, work):
    """Begin a leaf with some rows."""
    g, h = 0.0, 0.0
    for i in range(begin, cut):
        row = np.uint32(work.rows[i])
        g += pulls[row, GRADIENT]
        h += pulls[row, HESSIAN]
    work.begin[at], work.cut[at], work.end[at], work.gain[at] = begin, cut, end, 0.0
    work.sums[at, GRADIENT], work.sums[at, HESSIAN] = g, h
    nodes.cover[node] = cut - begin
    nodes.left[node] = nodes.column[node] = NO_NODE
    nodes.bin[node], nodes.missing[node] = 0, False
    nodes.value[node] = -g / h


@jit
def _part(at, node, count, first, binned, pulls, nodes, work):
    """Part the rows of a node by its split, and begin its two children with them, all in the order they are in."""
    column, last, missing = nodes.column[node], nodes.bin[node], nodes.missing[node]
    begin, cut, end = work.begin[at], work.cut[at], work.end[at]
    middle, kept, left_cut, right = begin, 0, begin, 0
    for i in range(begin, end):
        if i == cut:
            left_cut, right = middle, kept
        row = work.rows[i]
        code = binned.codes[np.uint32(row), column]
        goes_left = ((code > 0) & (code <= last)) | ((code == 0) & missing)
        # Without a branch, which could not be foreseen.
        work.rows[middle] = work.moved[kept] = row
        middle += goes_left
        kept += not goes_left
    if cut == end:
        left_cut, right = middle, kept
    for i in range(kept):
        work.rows[middle + i] = work.moved[i]
    nodes.left[node] = first + count
    _begin(count, first + count, begin, left_cut, middle, pulls, nodes, work)
    _begin(count + 1, first + count + 1, middle, middle + right, end, pulls, nodes, work)


@jit
def _next(work, count, best_first):
    """Return the leaf that is split next, `NO_NODE` if none can be."""
    found, most = NO_NODE, 0.0
    for at in range(count):
        if work.gain[at] > most:
            found, most = at, work.gain[at]
            if not best_first:
                break
    return found


@jit
def _grow(binned, pulls, growth, nodes, first, cut, work, random):
    """Grow a tree from the rows in `work` up to `cut`, its root being the node `first`; return how many nodes it has."""
    shares = growth.tried >= binned.usual.size  # histograms
    begin = 0
    _begin(0, first, 0, cut, work.rows.size, pulls, nodes, work)
    work.slot[0] = 0
    if shares:
        _fill(work.histograms[0], binned, pulls, work.rows[:cut], work.sums[0])
    _look(0, first, binned, pulls, growth, nodes, work, random)
    count, leaves = 1, 1
    while leaves < growth.leaves:
        if shares:
            at = _next(work, count, True)
        else:  # none is left out in the end: their order does not matter
            while begin < count and work.gain[begin] == 0.0:
                begin += 1
            at = begin if begin < count else NO_NODE
        if at == NO_NODE:
            break
        work.gain[at] = 0.0
        _part(at, first + at, count, first, binned, pulls, nodes, work)
        count, leaves = count + 2, leaves + 1
        if leaves == growth.leaves:
            break
        if shares:
            fewer_left = nodes.cover[first + count - 2] < nodes.cover[first + count - 1]
            small = count - 2 if fewer_left else count - 1
            large = 2 * count - 3 - small
            work.slot[large], work.slot[small] = work.slot[at], leaves - 1
            fewer, whole = work.histograms[leaves - 1], work.histograms[work.slot[at]]
            rows = work.rows[work.begin[small] : work.cut[small]]
            _fill(fewer, binned, pulls, rows, work.sums[small])
            for cell in range(len(whole)):
                whole[cell, GRADIENT] -= fewer[cell, GRADIENT]
                whole[cell, HESSIAN] -= fewer[cell, HESSIAN]
        for k in range(2):
            new = count - 2 + k
            _look(new, first + new, binned, pulls, growth, nodes, work, random)
    for at in range(count):
        if nodes.left[first + at] == NO_NODE:
            nodes.column[first + at] = NO_NODE
    return count


@kernel
def boost(binned, labels, weights, held, rate, growth, nodes, roots, leaves, random):
    """Grow one tree after the other, each from the errors of those before it; return the number of nodes.

    The loss is the logistic one, and what a leaf adds is `rate` times what would be best. Trees are grown without
    the rows that are `held`, whose leaves are written down.
    """
    size, ones, total, count = labels.size, 0.0, 0.0, 0
    for i in range(size):
        if not held[i]:
            ones += weights[i] * labels[i]
            total += weights[i]
    work = _room_for(size, binned, growth)
    scores, pulls = np.full(size, np.log(ones / (total - ones))), np.zeros((size, 2))
    for tree in range(roots.size):
        cut, rest = 0, size
        for i in range(size):
            if held[i]:
                rest -= 1
                work.rows[rest] = i
                continue
            p = 1.0 / (1.0 + np.exp(-scores[i]))
            pulls[i, GRADIENT] = weights[i] * (p - labels[i])
            pulls[i, HESSIAN] = max(weights[i] * p * (1.0 - p), 1e-16)
            work.rows[cut] = i
            cut += 1
        roots[tree] = count
        nodes_of_tree = _grow(binned, pulls, growth, nodes, count, cut, work, random)
        for at in range(nodes_of_tree):
            node = count + at
            nodes.value[node] *= rate
            if nodes.left[node] == NO_NODE:
                for i in range(work.begin[at], work.end[at]):
                    row = work.rows[i]
                    scores[row] += nodes.value[node]
                    if held[row]:
                        leaves[row, tree] = node
        count += nodes_of_tree
    return count


@kernel
def bag(binned, labels, weights, growth, nodes, roots, leaves, random):
    """Grow trees from bootstrap samples of the rows; return the number of nodes.

    A leaf has the share of positive rows among its own, less that among all. The leaves of rows that a tree was
    grown without are written down.
    """
    size = labels.size
    ones, total = 0.0, 0.0
    for i in range(size):
        ones += weights[i] * labels[i]
        total += weights[i]
    work = _room_for(size, binned, growth)
    chance, count, pulls = ones / total, 0, np.empty((size, 2))
    for tree in range(roots.size):
        pulls[:] = 0.0
        for _ in range(size):
            pulls[int(uniform(random) * size), HESSIAN] += 1.0
        cut, rest = 0, size
        for i in range(size):
            if pulls[i, HESSIAN] == 0.0:
                rest -= 1
                work.rows[rest] = i
                continue
            pulls[i, HESSIAN] *= weights[i]
            pulls[i, GRADIENT] = pulls[i, HESSIAN] * (chance - labels[i])
            work.rows[cut] = i
            cut += 1
        roots[tree] = count
        nodes_of_tree = _grow(binned, pulls, growth, nodes, count, cut, work, random)
        for at in range(nodes_of_tree):
            if nodes.left[count + at] == NO_NODE:
                for i in range(work.cut[at], work.end[at]):
                    leaves[work.rows[i], tree] = count + at
        count += nodes_of_tree
    return count


@kernel
def leaves_of(X, column, threshold, missing, left, roots, leaves):
    """Write the leaf that each row reaches in each tree, as the place of its node.

    All rows go down a tree side by side, a level at a time, without a branch that depends on them.
    """
    for tree in range(roots.size):
        for row in range(X.shape[0]):
            leaves[row, tree] = roots[tree]
        goes_on = left[roots[tree]] != NO_NODE
        while goes_on:
            goes_on = False
            for row in range(X.shape[0]):
                node = np.uint32(leaves[row, tree])
                below = left[node]
                value = X[row, np.uint32(max(column[node], 0))]
                absent = value != value  # noqa: PLR0124
                right = (value > threshold[node]) | (absent & (not missing[node]))
                leaves[row, tree] = below + right if below != NO_NODE else node
                goes_on |= below != NO_NODE


@kernel
def last_of_bins(counts, last):
    """Share different values, of which there are so many each, out among bins; return how many have any.

    A value with more rows than a bin would have by the mean ends one, as long as there are bins; smaller values are
    in it if they have less than half as many rows. `last` gets the place of the last value of each bin.
    """
    free, rest = BINS - 1, counts.sum()
    own = np.zeros(counts.size, np.bool_)
    if counts.size <= free:
        own[:] = True
    found = counts.size > free
    while found:
        found, mean = False, rest / free
        for i in range(counts.size):
            if not own[i] and counts[i] > mean:
                own[i], found = True, True
                free -= 1
                rest -= counts[i]
    bins, held = 0, 0
    for i in range(counts.size):
        held += counts[i]
        mean = rest / max(free, 1)
        is_last = i + 1 == counts.size
        before_own = not is_last and own[i + 1] and held >= 0.5 * mean
        if is_last or ((own[i] or held >= mean or before_own) and bins < BINS - 2):
            last[bins] = i
            if not own[i]:
                free -= 1
                rest -= held
            bins, held = bins + 1, 0
    return bins


@kernel
def centre(left, cover, roots, weights):
    """Subtract from the weights of leaves the mean of their tree, by the rows it was grown from; return the sum of means."""
    total = 0.0
    for tree in range(roots.size):
        end = roots[tree + 1] if tree + 1 < roots.size else left.size
        mean = 0.0
        for node in range(roots[tree], end):
            if left[node] == NO_NODE:
                mean += weights[node] * cover[node]
        mean /= cover[roots[tree]]
        total += mean
        for node in range(roots[tree], end):
            if left[node] == NO_NODE:
                weights[node] -= mean
    return total


# Why a row has its score ------------------------------------------------------------------------------


@kernel
def expect(left, cover, weights, expected):
    """Write for each node the mean of the weights of the leaves below it, by the rows that they were grown from."""
    for node in range(left.size - 1, -1, -1):  # children come after their parents
        below = left[node]
        if below == NO_NODE:
            expected[node] = weights[node]
        else:
            share = cover[below] / (cover[below] + cover[below + 1])
            expected[node] = share * expected[below] + (1.0 - share) * expected[below + 1]


@kernel
def credit(begins, leaves, values, parent, part, expected, parts):
    """Add to the parts of rows what their leaves add to scores: at each split what it changes of the expected score.

    `part` says of each node whose part its split is.
    """
    for row in range(begins.size - 1):
        for k in range(begins[row], begins[row + 1]):
            node = leaves[k]
            while parent[node] != NO_NODE:
                above = parent[node]
                parts[row, part[above]] += values[k] * (expected[node] - expected[above])
                node = above


@kernel
def depend(
    X, values, own, column, threshold, missing, left, roots, reference, weights, variances,
    effects, squares,
):  # fmt: skip
    """Add to effects the mean score of some rows if they had other values in some columns, and to squares its variance.

    Both are relative to what `reference` weighs the values by. `own` says of each column of X its place among those
    of `values`, -1 if rows keep what they have. All values go down a tree side by side until it decides by them.
    """
    count, longest = len(values), 0
    for tree in range(roots.size):
        end = roots[tree + 1] if tree + 1 < roots.size else left.size
        longest = max(longest, end - roots[tree])
    reached, places, moved = np.zeros((longest, count)), np.arange(count), np.empty(count, np.int64)
    nodes, begins = np.empty(longest, np.int64), np.empty(longest, np.int64)
    ends = np.empty(longest, np.int64)
    for tree in range(roots.size):
        root, end = roots[tree], roots[tree + 1] if tree + 1 < roots.size else left.size
        decides = False
        for node in range(root, end):
            decides |= left[node] != NO_NODE and own[column[node]] >= 0
        if not decides:
            continue
        reached[: end - root] = 0.0
        for row in range(len(X)):
            nodes[0], begins[0], ends[0], waiting = root, 0, count, 1
            while waiting:
                waiting -= 1
                node, first, last = nodes[waiting], begins[waiting], ends[waiting]
                while left[node] != NO_NODE:
                    at, middle, kept = own[column[node]], first, 0
                    if at < 0:
                        value = X[row, column[node]]
                        is_left = missing[node] if np.isnan(value) else value <= threshold[node]
                        middle = last if is_left else first
                    else:
                        for i in range(first, last):
                            value = values[places[i], at]
                            if missing[node] if np.isnan(value) else value <= threshold[node]:
                                places[middle] = places[i]
                                middle += 1
                            else:
                                moved[kept] = places[i]
                                kept += 1
                        places[middle:last] = moved[:kept]
                    if first < middle < last:  # the right ones wait
                        nodes[waiting], begins[waiting], ends[waiting] = (
                            left[node] + 1,
                            middle,
                            last,
                        )
                        waiting += 1
                        last = middle
                    node = left[node] + (middle == first)
                for i in range(first, last):
                    reached[node - root, places[i]] += 1.0 / len(X)
        for node in range(root, end):
            if left[node] == NO_NODE:
                usual = 0.0
                for i in range(count):
                    usual += reference[i] * reached[node - root, i]
                for i in range(count):
                    difference = reached[node - root, i] - usual
                    effects[i] += difference * weights[node]
                    squares[i] += difference * difference * variances[node]
