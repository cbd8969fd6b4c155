"""Trees in a graph.

The operator for trees compares single floats. So each number becomes the count of the column's thresholds below
it, which floats hold exactly, as they do the leaf that a tree ends at; its weight is looked up among doubles.
"""

import numpy as np
from numpy.typing import NDArray

from cbrank.features.forests import Forest
from cbrank.kernels.trees import NO_NODE
from cbrank.onnx.graph import Graph

Floats = NDArray[np.float64]


def score_of_trees(
    graph: Graph, forest: Forest, weights: Floats, used: NDArray[np.int32], values: str
) -> str:
    """Return what trees add to the score.

    Parameters
    ----------
    graph : Graph
        What nodes are added to.
    forest : Forest
        The trees.
    weights : ndarray
        What each node adds to the score if it is the leaf of a row.
    used : ndarray of int
        The columns by which trees decide, sorted.
    values : str
        The matrix of these columns.

    Returns
    -------
    str
        The scores.
    """
    inner = forest.left != NO_NODE
    column = np.where(inner, np.searchsorted(used, forest.column), 0)
    bins = np.full(inner.size, -1.0)  # as where missing values are parted from all others
    ends = list[Floats]()
    for at in range(used.size):
        own = inner & (column == at) & (forest.threshold > -np.inf)
        ends.append(np.unique(forest.threshold[own]))
        bins[own] = np.searchsorted(ends[-1], forest.threshold[own])
    most = max(1, *(each.size for each in ends))
    thresholds = np.array(
        [np.pad(each, (0, most - each.size), constant_values=np.inf) for each in ends]
    )
    below = graph.add("Greater", graph.add("Unsqueeze", values, np.array([2])), thresholds)
    counts = graph.add("ReduceSum", graph.cast(below, "float"), np.array([2]), keepdims=0)
    codes = graph.add("Where", graph.add("IsNaN", values), np.float32(np.nan), counts)

    tree = np.searchsorted(forest.roots, np.arange(inner.size), side="right") - 1
    place = np.arange(inner.size) - forest.roots[tree]
    left = np.where(inner, forest.left - forest.roots[tree], 0)
    reached = graph.add(
        "TreeEnsembleRegressor",
        codes,
        n_targets=forest.roots.size,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=place.tolist(),
        nodes_modes=np.where(inner, "BRANCH_LEQ", "LEAF").tolist(),
        nodes_featureids=column.tolist(),
        nodes_values=bins.tolist(),
        nodes_truenodeids=left.tolist(),
        nodes_falsenodeids=np.where(inner, left + 1, 0).tolist(),
        nodes_missing_value_tracks_true=(inner & forest.missing).astype(int).tolist(),
        target_treeids=tree[~inner].tolist(),
        target_nodeids=place[~inner].tolist(),
        target_ids=tree[~inner].tolist(),
        target_weights=place[~inner].astype(float).tolist(),
    )
    leaves = graph.add("Add", graph.cast(reached, "int64"), forest.roots.astype(np.int64))
    added = graph.add("Gather", weights * forest.share, leaves)
    return graph.add("ReduceSum", added, np.array([1]), keepdims=0)
