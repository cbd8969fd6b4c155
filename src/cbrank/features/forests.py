"""Trees grown from rows of a table, whose leaves are features: a row has one leaf of each tree.

Columns enter trees as numbers: a word by how frequent it is, a time by its days, month, weekday and hour.
What a row says of itself must not come from itself, if learners are to be told by how they rank it: of rows
that trees were grown from, each has the leaves only of trees that were grown without it.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.features.curves import NumberColumn
from cbrank.features.table import Table
from cbrank.features.times import TimeColumn
from cbrank.features.words import WordColumn
from cbrank.kernels.trees import BINS, NO_NODE, Binned, Growth, Nodes

if TYPE_CHECKING:
    from cbrank.features.encoder import TableEncoder

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

# Where rows are few, or those of a class, randomised trees, else boosted ones (docs/beyond.md).
FEW, _RARE = 2048, 128
_BAGGED, _BOOSTED = 300, 100
# Each fold has the leaves of trees that were grown from the others. Where rows are many, half of them are enough.
_FOLDS, _MANY, _FOLDS_OF_MANY = 4, 2**14, 2
_RATE, _LEAVES, _LEAST_ROWS, _LEAST_HESSIAN = 0.1, 31, 20, 1e-3
_FOR_BINS = 2**15  # rows that decide where bins end
_LARGEST = float(
    np.finfo(np.float64).max
)  # so that no value is as low as what parts missing ones from all others

NUMBER, WORD, DAYS, MONTH, WEEKDAY, HOUR = range(6)  # what of a column decides
_KINDS: tuple[Any, ...] = NumberColumn, WordColumn, TimeColumn, TimeColumn, TimeColumn, TimeColumn


_DTYPES: dict[str, Any] = {
    "column": np.int32,
    "threshold": np.float64,
    "missing": np.bool_,
    "left": np.int32,
    "value": np.float64,
    "cover": np.float64,
    "roots": np.int32,
    "owner": np.int64,
    "part": np.int64,
    "words": np.int64,
}


class Apart(Table):
    """Rows that trees were grown from, and the leaves of each in trees that were grown without it.

    Where a tree was grown with a row, its leaf there is -1.
    """

    __slots__ = ("leaves",)

    def __init__(self, rows: Table, leaves: NDArray[np.int32]) -> None:
        super().__init__(rows.names, rows.columns, rows.named)
        self.leaves = leaves

    def take(self, rows: Any) -> "Apart":
        """Return some of the rows."""
        return Apart(super().take(rows), self.leaves[rows])

    def plain(self) -> Table:
        """Return the rows alone."""
        return Table(self.names, self.columns, self.named)


class Columns(NamedTuple):
    """The numbers that trees decide by."""

    owner: Places  # the column of the table
    part: Places  # and what of it
    words: Places  # (2, words) features of the encoder, sorted, and their ranks by frequency

    def are_sound(self, encoder: "TableEncoder") -> bool:
        """Say whether columns that an encoder knows can be read like this."""
        owner, part, words = self
        return bool(
            owner.size == part.size
            and words.shape[0] == 2
            and np.isin(owner, np.arange(encoder.n_features_in_)).all()
            and np.isin(part, range(HOUR + 1)).all()
            and (np.diff(words[0]) > 0).all()
        )


class Forest(NamedTuple):
    """Trees, as arrays of nodes (see ``kernels.trees``)."""

    columns: Columns
    column: NDArray[np.int32]
    threshold: Floats
    missing: NDArray[np.bool_]
    left: NDArray[np.int32]
    value: Floats
    cover: Floats
    roots: NDArray[np.int32]
    share: float  # of a leaf, for rows that none of the trees was grown from
    shared: bool = False  # whether rankers that learn apart have them, and grow none of their own

    @property
    def kind(self) -> str:
        """How its features are learned: the field of a method."""
        return "leaves"

    @property
    def width(self) -> int:
        """Number of features, one for each node; those of nodes that are no leaves stay 0."""
        return self.column.size

    def encode(self, encoder: "TableEncoder", rows: Table) -> sp.csr_array:
        """Return the leaves of rows."""
        own, shape = rows.leaves if isinstance(rows, Apart) else None, (len(rows), self.width)
        if own is None or not own.size:
            leaves = self.leaves_of(numbers_of(encoder, rows, self.columns))
            values, ends = (
                np.full(leaves.size, self.share),
                np.arange(len(rows) + 1) * leaves.shape[1],
            )
            return sp.csr_array((values, leaves.ravel(), ends), shape=shape)
        there = own >= 0
        count = there.sum(axis=1)
        shares = self.share * self.roots.size / np.maximum(count, 1)
        return sp.csr_array(
            (np.repeat(shares, count), own[there], np.append(0, np.cumsum(count))), shape=shape
        )

    def centred(self, weights: Floats) -> tuple[Floats, float]:
        """Return weights of leaves less their mean in each tree, and what that takes from the score of a row."""
        weights = weights.copy()
        means = kernels.trees.centre(self.left, self.cover, self.roots, weights)
        return weights, self.share * float(means)

    def leaves_of(self, X: Floats) -> NDArray[np.int32]:
        """Return the node of the leaf that each row reaches in each tree."""
        leaves = np.empty((self.roots.size, len(X)), np.int32).T
        kernels.trees.leaves_of(
            X, self.column, self.threshold, self.missing, self.left, self.roots, leaves
        )
        return leaves

    def with_features(self, places: Places) -> "Forest":
        """Return the trees for an encoder that has the features of this one at other places."""
        features, ranks = self.columns.words
        moved = np.array([places[features], ranks])[:, places[features] >= 0]
        words = moved[:, np.argsort(moved[0])]
        return self._replace(columns=self.columns._replace(words=words))

    # In model files

    def arrays(self) -> Arrays:
        """Return the arrays."""
        own = self._asdict()
        del own["share"], own["shared"], own["columns"]
        return own | self.columns._asdict()

    def facts(self) -> dict[str, Any]:
        """Return what is no array."""
        return {"share": self.share, "shared": self.shared}

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: Any, encoder: "TableEncoder") -> "Forest":
        """Return saved trees; refuse what would lead a walk astray."""
        match facts:
            case {"share": float(share), "shared": bool(shared)} if 0.0 < share <= 1.0:
                pass
            case _:
                raise ValueError("its trees do not say what a leaf counts")
        if arrays.keys() != _DTYPES.keys() or any(
            arrays[name].dtype != kind or arrays[name].ndim != 1 + (name == "words")
            for name, kind in _DTYPES.items()
        ):
            raise ValueError("the arrays of its trees are not those of trees")
        columns = Columns(*(arrays[name] for name in Columns._fields))
        own = {name: arrays[name] for name in cls._fields if name in arrays}
        forest = cls(columns=columns, share=share, shared=shared, **own)
        if not (forest._is_sound() and columns.are_sound(encoder)):
            raise ValueError("its trees make no sense")
        return forest

    def _is_sound(self) -> bool:
        size, places, inner = self.left.size, np.arange(self.left.size), self.left != NO_NODE
        nodes = self.column, self.threshold, self.missing, self.value, self.cover
        below, column = self.left[inner], self.column[inner]
        return bool(
            size
            and all(array.size == size for array in nodes)
            and (below > places[inner]).all()
            and (below < size - 1).all()
            and (column >= 0).all()
            and (column < self.columns.owner.size).all()
            and self.roots.size
            and self.roots[0] == 0
            and (np.diff(self.roots) > 0).all()
            and self.roots[-1] < size
            and not np.isnan(self.threshold).any()
            and np.isfinite(self.value).all()
            and np.isfinite(self.cover).all()
            and (self.cover > 0.0).all()
        )


# Rows as numbers ----------------------------------------------------------------------------------


def _columns_of(encoder: "TableEncoder", rows: Table) -> Columns:
    """Return the numbers that trees can decide by, words ranked by their frequency in some rows."""
    found, words = list[tuple[int, int]](), list[Any]()
    cells: list[Any] = encoder.as_decided(rows)
    for owner, known in enumerate(encoder.known()):
        if isinstance(known, NumberColumn):
            found.append((owner, NUMBER))
        elif isinstance(known, WordColumn):
            found.append((owner, WORD))
            features, counts = np.unique(known.places(cells[owner]), return_counts=True)
            order = np.argsort(-counts[features >= 0], kind="stable")
            ranks = np.empty(order.size, np.int64)
            ranks[order] = np.arange(order.size)
            words.append(np.array([features[features >= 0], ranks]))
        elif isinstance(known, TimeColumn):
            parts = (DAYS, MONTH, WEEKDAY, HOUR) if known.mixed else (MONTH, WEEKDAY, HOUR)
            found += [(owner, part) for part in parts]
    owners, parts_of = np.array(found, np.int64).reshape(-1, 2).T
    both = np.concatenate([np.zeros((2, 0), np.int64), *words], axis=1)
    return Columns(owners, parts_of, both[:, np.argsort(both[0])])


def numbers_of(encoder: "TableEncoder", rows: Table, columns: Columns) -> Floats:
    """Return rows as the numbers that trees decide by, NaN for missing values and unknown words."""
    cells: list[Any] = encoder.as_decided(rows)
    known: list[Any] = encoder.known()
    X, times = np.empty((len(rows), columns.owner.size)), dict[int, Any]()
    for at, (owner, part) in enumerate(zip(*columns[:2], strict=True)):
        column, values = known[owner], cells[owner]
        if not isinstance(column, _KINDS[part]):  # it has turned out to be something else since
            X[:, at] = np.nan
        elif part == NUMBER:
            X[:, at] = np.clip(values, -_LARGEST, _LARGEST)
        elif part == WORD:
            X[:, at] = ranks_of(columns.words, column.places(values))
        else:
            if owner not in times:
                times[owner] = column.numbers(values)
            X[:, at] = times[owner][part - DAYS]
    return X


def ranks_of(words: Places, places: Places) -> Floats:
    """Return the ranks of words, given their features."""
    if not words.size:
        return np.full(places.size, np.nan)
    at = np.minimum(np.searchsorted(words[0], places), words.shape[1] - 1)
    return np.where(words[0, at] == places, words[1, at], np.nan)


# Bins ---------------------------------------------------------------------------------------------


def thresholds_of(values: Floats) -> Floats:
    """Return the numbers at which bins of a column end, each within the bin.

    A value that more rows have than there are for a bin ends one, in which smaller values are few; the others share
    those that are left.
    """
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    last = np.empty(BINS, np.int64)
    count = kernels.trees.last_of_bins(counts, last)
    last = last[: max(count - 1, 0)]
    ends, nexts = distinct[last], distinct[last + 1]
    middle = ends / 2 + nexts / 2
    return np.where((middle >= ends) & (middle < nexts), middle, ends)


def _binned(X: Floats, thresholds: list[Floats]) -> Binned:
    """Return rows as bins."""
    codes, usual = np.empty(X.shape, np.uint8), np.empty(X.shape[1], np.int64)
    for at, ends in enumerate(thresholds):
        found = np.searchsorted(ends, X[:, at]) + 1
        codes[:, at] = np.where(np.isnan(X[:, at]), 0, found)
        usual[at] = np.bincount(codes[:, at]).argmax()
    first = np.append(0, np.cumsum([ends.size + 2 for ends in thresholds]))
    others = codes != usual
    cells = (codes + first[:-1])[others].astype(np.int32)
    return Binned(codes, first, usual, np.append(0, np.cumsum(others.sum(axis=1))), cells)


# Growing ------------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """Rows that trees are grown from."""

    X: Table
    labels: Places
    weights: Floats


class _Known(NamedTuple):
    """What trees are grown from."""

    rows: Rows
    columns: Columns
    thresholds: list[Floats]
    binned: Binned


def grown(
    encoder: "TableEncoder", rows: Rows, seed: int, *, folds: bool, trees: int | None = None
) -> tuple[Forest, Any] | None:
    """Return trees, and the leaves of each row in those that were grown without it.

    Without `folds` boosted trees are grown from all rows, for rows to come. So many `trees` are boosted whatever the
    number of rows is.
    """
    columns = _columns_of(encoder, rows.X)
    counts = np.bincount(rows.labels, minlength=2)
    if not columns.owner.size or counts.min() < 2 * _FOLDS:
        return None
    X = numbers_of(encoder, rows.X, columns)
    step = -(-len(X) // _FOR_BINS)
    thresholds = [thresholds_of(column[::step]) for column in X.T]
    known = _Known(rows, columns, thresholds, _binned(X, thresholds))
    random = np.array([seed % 2**63 + 1], np.uint64)
    few = len(X) <= FEW or (len(X) <= _MANY and counts.min() <= _RARE)
    if folds and few and trees is None:
        return _bagged(known, random)
    parts = (_FOLDS_OF_MANY if len(X) > _MANY else _FOLDS) if folds else 1
    return _boosted(known, random, parts, trees or _BOOSTED)


def _room(nodes: int) -> Nodes:
    kinds = np.int32, np.int32, np.bool_, np.int32, np.float64, np.float64
    return Nodes(*(np.empty(nodes, kind) for kind in kinds))


def _bagged(known: _Known, random: Any) -> tuple[Forest, Any]:
    rows, (size, width) = known.rows, known.binned.codes.shape
    growth = Growth(size, 1, 0.0, max(1, int(np.sqrt(width))))
    nodes, roots = _room(_BAGGED * (2 * size - 1)), np.empty(_BAGGED, np.int32)
    leaves = np.full((size, _BAGGED), NO_NODE, np.int32)
    count = kernels.trees.bag(
        known.binned, rows.labels, rows.weights, growth, nodes, roots, leaves, random
    )
    nodes = Nodes(*(array[:count] for array in nodes))
    return _forest(known, nodes, roots, 1.0, _SCALE_OF_BAG), leaves


def _boosted(known: _Known, random: Any, folds: int, trees: int) -> tuple[Forest, Any]:
    rows, (size, width) = known.rows, known.binned.codes.shape
    growth = Growth(_LEAVES, _LEAST_ROWS, _LEAST_HESSIAN, width)
    fold = _folds_of(rows.labels, folds, random)
    leaves = np.full((size, trees), NO_NODE, np.int32)
    parts, begins, first = list[Nodes](), list[Any](), 0
    for group in range(folds):
        nodes, roots = _room(trees * (2 * _LEAVES - 1)), np.empty(trees, np.int32)
        held = (fold == group) & (folds > 1)
        count = kernels.trees.boost(
            known.binned,
            rows.labels,
            rows.weights,
            held,
            _RATE,
            growth,
            nodes,
            roots,
            leaves,
            random,
        )
        leaves[held] += first
        nodes.left[nodes.left != NO_NODE] += first
        parts.append(Nodes(*(array[:count] for array in nodes)))
        begins.append(roots + first)
        first += count
    nodes = Nodes(*map(np.concatenate, zip(*parts, strict=True)))
    return _forest(known, nodes, np.concatenate(begins), 1.0 / folds, _SCALE), leaves


def _folds_of(labels: Places, folds: int, random: Any) -> Places:
    """Return a fold for each row, each with its share of both classes."""
    fold = np.empty(labels.size, np.int64)
    order = np.random.RandomState(int(random[0] % 2**32)).permutation(labels.size)
    for label in range(2):
        own = order[labels[order] == label]
        fold[own] = np.arange(own.size) % folds
    return fold


# Weights of leaves begin with so many times what trees say: about the scale at which rows of both classes are as
# far apart as CBR wants them.
_SCALE, _SCALE_OF_BAG = 4.0, 4.0 / 30.0


def _forest(known: _Known, nodes: Nodes, roots: Any, share: float, scale: float) -> Forest:
    thresholds = known.thresholds
    ends = np.concatenate([[0], np.cumsum([each.size for each in thresholds])])
    inner = nodes.left != NO_NODE
    threshold = np.zeros(inner.size)
    at = ends[nodes.column[inner]] + nodes.bin[inner] - 1
    every = np.concatenate([*thresholds, [0.0]])
    threshold[inner] = np.where(nodes.bin[inner] > 0, every[at], -np.inf)
    return Forest(
        known.columns,
        nodes.column.copy(),
        threshold,
        nodes.missing.copy(),
        nodes.left.copy(),
        np.where(inner, 0.0, scale * nodes.value),
        nodes.cover.copy(),
        roots,
        share,
    )
