"""LibAUC's pairwise loss on a linear model of PyTorch."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank.bench.peers.learner import Learner

NEEDS = {
    "torch": "install a CPU build of PyTorch, as the default one brings CUDA packages",
    "libauc": (
        "pip install --no-deps libauc tqdm, as what it requires brings CUDA packages and a "
        "hundred others"
    ),
}

_BATCH = 64


class PairwiseLoss(Learner):
    """`PairwiseAUCLoss` with its own defaults and Adam, a step for each batch of 64 rows."""

    def __init__(self) -> None:
        from libauc.losses import PairwiseAUCLoss  # noqa: PLC0415

        self.loss = PairwiseAUCLoss()
        self.model: Any = None

    def prepare(self, X: Any, y: NDArray[np.int64]) -> Any:
        """Make batches; one that lacks a class has no pairs and is left out."""
        import torch  # noqa: PLC0415

        torch.set_num_threads(1)
        begins = range(0, len(y), _BATCH)
        chunks = [(X[begin : begin + _BATCH], y[begin : begin + _BATCH]) for begin in begins]
        return [
            (torch.tensor(rows, dtype=torch.float32), torch.tensor(labels))
            for rows, labels in chunks
            if 0 < labels.sum() < len(labels)
        ]

    def learn(self, rows: Any) -> None:
        """Take a step for each batch."""
        for batch, labels in rows:
            if self.model is None:
                self._start(batch.shape[1])
            self.optimizer.zero_grad()
            self.loss(self.model(batch), labels).backward()
            self.optimizer.step()

    def _start(self, features: int) -> None:
        import torch  # noqa: PLC0415

        torch.manual_seed(0)
        self.model = torch.nn.Linear(features, 1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores."""
        weights = self.model.weight.detach().numpy().ravel().astype(float)
        return np.asarray(X @ weights)
