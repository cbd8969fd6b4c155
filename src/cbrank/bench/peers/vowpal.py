"""Vowpal Wabbit: examples are parsed before the clock starts."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cbrank.bench.peers.learner import Learner

NEEDS = {"vowpalwabbit": "pip install 'cbrank[bench]'"}


class VowpalWabbit(Learner):
    """Its Python wheel with logistic loss and otherwise its own defaults."""

    def __init__(self) -> None:
        import vowpalwabbit  # noqa: PLC0415

        self.workspace = vowpalwabbit.Workspace(
            "--loss_function logistic --bit_precision 18 --quiet"
        )

    def prepare(self, X: Any, y: NDArray[np.int64]) -> list[Any]:
        """Parse examples."""
        texts = zip(_features(X), y.tolist(), strict=True)
        return [self.workspace.parse(f"{1 if label else -1} | {text}") for text, label in texts]

    def learn(self, rows: Any) -> None:
        """Learn from a chunk, one example at a time."""
        learn = self.workspace.learn
        for example in rows:
            learn(example)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores."""
        return np.array([self.workspace.predict(f"| {text}") for text in _features(X)])


def _features(X: Any) -> list[str]:
    """Write rows as Vowpal Wabbit reads them, which keeps single precision."""
    rows = sparse.csr_array(X)
    numbers = list(zip(rows.indices.tolist(), rows.data.tolist(), strict=True))
    begins = rows.indptr.tolist()
    return [
        " ".join(f"{index}:{value:.9g}" for index, value in numbers[begin:end])
        for begin, end in pairwise(begins)
    ]
