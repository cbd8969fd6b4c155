"""Rows to learn from and rows held out."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


class Rows(NamedTuple):
    """What every peer of a workload gets."""

    X: Any
    y: NDArray[np.int64]
    X_held: Any
    y_held: NDArray[np.int64]

    @property
    def kind(self) -> str:
        """Whether the rows are dense or sparse."""
        return "sparse" if sparse.issparse(self.X) else "dense"
