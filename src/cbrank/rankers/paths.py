"""What trees add to scores, by the columns that they decide by.

The score that a tree is expected to give changes at each split on the way from its root to a leaf: that change is
what the column of the split adds (Saabas, 2014). So what all columns add is the weight of the leaf.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank import kernels
from cbrank.features.forests import DAYS, WORD, Forest, ranks_of
from cbrank.kernels.trees import NO_NODE

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


class Trees(NamedTuple):
    """Trees as they are served."""

    forest: Forest
    weights: Floats  # of nodes, centred in each tree
    variances: Floats  # of these
    term: Places  # that each column which trees decide by belongs to

    def parts(self, leaves: sp.csr_array, n_terms: int) -> Floats:
        """Return what each term adds to the scores of rows, given their leaves."""
        forest = self.forest
        expected, parts = np.empty(forest.width), np.zeros((leaves.shape[0], n_terms))
        kernels.trees.expect(forest.left, forest.cover, self.weights, expected)
        inner = np.flatnonzero(forest.left != NO_NODE)
        parent, part = np.full(forest.width, NO_NODE), np.zeros(forest.width, np.int64)
        parent[forest.left[inner]] = parent[forest.left[inner] + 1] = inner
        part[inner] = self.term[forest.column[inner]]
        begins, places = leaves.indptr.astype(np.int64), leaves.indices.astype(np.int64)
        kernels.trees.credit(begins, places, leaves.data, parent, part, expected, parts)
        return parts

    def dependence(
        self, X: Floats, cells: Sequence[tuple[int, Any]], reference: Floats
    ) -> tuple[Floats, Floats]:
        """Return the mean score of rows if they had other cells in some terms, and its variance.

        Both are relative to the mean over these cells, weighed by `reference`. Cells are numbers, features of words,
        places in the calendar, or all that trees know of times.
        """
        forest, effects, squares = self.forest, np.zeros(reference.size), np.zeros(reference.size)
        own, values = np.full(self.term.size, -1), list[Floats]()
        for term, found in cells:
            for column in np.flatnonzero(self.term == term).tolist():
                own[column], part = len(values), forest.columns.part[column]
                if part == WORD:
                    values.append(ranks_of(forest.columns.words, found))
                else:
                    values.append(found[part - DAYS] if isinstance(found, tuple) else found)
        if len(X) and values and reference.size:
            kernels.trees.depend(
                X, np.column_stack(values), own, forest.column, forest.threshold, forest.missing, forest.left,
                forest.roots, reference, self.weights, self.variances, effects, squares,
            )  # fmt: skip
        return forest.share * effects, forest.share**2 * squares
