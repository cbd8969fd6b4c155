"""The exact AUC of a sliding window, in O(log w) per row.

A treap (a search tree by score that is a heap by random priority) counts the rows of each class in
every subtree. So the number of rows of the other class below a score is found on one path from the
root, and the number of pairs ranked right is updated with each row that enters or leaves. Counts are
integers: no rounding error builds up, however long the stream.

The last w rows are a ring buffer, and a row's place in the ring is its node in the tree, so that
evicting the oldest needs no search. Priorities are drawn once for the places: rows come to
places in the order of the stream, whatever their scores, and the tree is always a random one. One
extra node, ``nil``, stands for every missing child; its left child is the root.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import jit, kernel

LEFT, RIGHT, PARENT = range(3)  # places in `links`
NEXT, ROWS, TWICE_RIGHT = range(3)  # places in `tally`
NEGATIVE = 0


class Window(NamedTuple):
    """The last w rows, the w + 1 nodes of their tree, and running totals."""

    scores: np.ndarray  # (w,)
    labels: np.ndarray  # (w,)
    priority: np.ndarray  # (w + 1,) lower for a child than for its parent
    links: np.ndarray  # (w + 1, 3) left, right, parent
    counts: np.ndarray  # (w + 1, 2) rows of each class in the subtree
    tally: np.ndarray  # (3,) next place, rows held, twice the pairs ranked right


def empty(size: int) -> Window:
    """Make an empty window for `size` rows."""
    priority = np.append(np.random.default_rng(0).permutation(size), -1).astype(np.int64)
    return Window(
        scores=np.zeros(size),
        labels=np.zeros(size, np.int64),
        priority=priority,
        links=np.full((size + 1, 3), size, np.int64),
        counts=np.zeros((size + 1, 2), np.int64),
        tally=np.zeros(3, np.int64),
    )


@kernel
def slide(window: Window, labels: np.ndarray, scores: np.ndarray) -> None:
    """Add rows, each in place of the oldest once the window is full."""
    size = window.scores.size
    for i in range(scores.size):
        place = window.tally[NEXT]
        if window.tally[ROWS] == size:
            _evict(window, place)
        window.labels[place] = labels[i]
        window.scores[place] = scores[i]
        _admit(window, place)
        window.tally[NEXT] = (place + 1) % size


def n_rows(window: Window) -> int:
    """Return how many rows the window holds."""
    return int(window.tally[ROWS])


def auc(window: Window) -> float:
    """Return the share of pairs ranked right, or nan while a class is missing."""
    root = window.links[window.scores.size, LEFT]
    negatives, positives = window.counts[root].tolist()
    pairs = negatives * positives
    return int(window.tally[TWICE_RIGHT]) / (2 * pairs) if pairs else math.nan


@jit
def _admit(window: Window, node: int) -> None:
    window.tally[TWICE_RIGHT] += _twice_right(window, node)
    window.tally[ROWS] += 1
    _hang(window, node)
    _count_row(window, node, 1)
    _sift_up(window, node)


@jit
def _evict(window: Window, node: int) -> None:
    _sift_down(window, node)
    _count_row(window, node, -1)
    parent = window.links[node, PARENT]
    window.links[parent, _side(window, parent, node)] = window.scores.size
    window.tally[ROWS] -= 1
    window.tally[TWICE_RIGHT] -= _twice_right(window, node)


@jit
def _twice_right(window: Window, node: int) -> int:
    """Twice the pairs ranked right (a tie is half a pair) of a row with the other class in the tree.

    Twice the rows below the score plus those tied with it is those below it plus those up to it.
    """
    score, opposite = window.scores[node], 1 - window.labels[node]
    ranked_below = _count_below(window, score, opposite, False)
    ranked_below += _count_below(window, score, opposite, True)
    if opposite == NEGATIVE:
        return ranked_below
    root = window.links[window.scores.size, LEFT]
    held: int = window.counts[root, opposite]
    return 2 * held - ranked_below


@jit
def _count_below(window: Window, score: float, label: int, inclusive: bool) -> int:
    nil = window.scores.size
    node = window.links[nil, LEFT]
    count = 0
    while node != nil:
        right = window.links[node, RIGHT]
        if window.scores[node] < score or (inclusive and window.scores[node] == score):
            count += window.counts[node, label] - window.counts[right, label]
            node = right
        else:
            node = window.links[node, LEFT]
    return count


@jit
def _hang(window: Window, leaf: int) -> None:
    """Add a row's node as a leaf where its score belongs, behind equal scores."""
    nil = window.scores.size
    parent, side = nil, LEFT
    node = window.links[nil, LEFT]
    while node != nil:
        parent = node
        side = RIGHT if window.scores[leaf] >= window.scores[node] else LEFT
        node = window.links[parent, side]
    window.links[parent, side] = leaf
    window.links[leaf, PARENT] = parent
    window.links[leaf, LEFT] = nil
    window.links[leaf, RIGHT] = nil


@jit
def _count_row(window: Window, node: int, change: int) -> None:
    """Add a row to the counts on the path from its node to the root, or subtract it."""
    label = window.labels[node]
    while node != window.scores.size:
        window.counts[node, label] += change
        node = window.links[node, PARENT]


@jit
def _sift_up(window: Window, node: int) -> None:
    parent = window.links[node, PARENT]
    while parent != window.scores.size and window.priority[parent] < window.priority[node]:
        _rotate_up(window, node)
        parent = window.links[node, PARENT]


@jit
def _sift_down(window: Window, node: int) -> None:
    child = _first_child(window, node)
    while child != window.scores.size:
        _rotate_up(window, child)
        child = _first_child(window, node)


@jit
def _first_child(window: Window, node: int) -> int:
    left: int = window.links[node, LEFT]
    right: int = window.links[node, RIGHT]
    return left if window.priority[left] > window.priority[right] else right


@jit
def _rotate_up(window: Window, node: int) -> None:
    """Rotate a node above its parent; counts of the two subtrees are updated."""
    links, counts = window.links, window.counts
    parent = links[node, PARENT]
    grandparent = links[parent, PARENT]
    side = _side(window, parent, node)
    inner = links[node, 1 - side]
    for label in range(2):
        total = counts[parent, label]
        counts[parent, label] += counts[inner, label] - counts[node, label]
        counts[node, label] = total
    links[grandparent, _side(window, grandparent, parent)] = node
    links[node, PARENT] = grandparent
    links[node, 1 - side] = parent
    links[parent, PARENT] = node
    links[parent, side] = inner
    links[inner, PARENT] = parent


@jit
def _side(window: Window, parent: int, node: int) -> int:
    return RIGHT if window.links[parent, RIGHT] == node else LEFT
