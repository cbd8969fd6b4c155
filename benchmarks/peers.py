"""The learners that are compared: a class for each library, and a line in `PEERS` for each peer."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Kind = Literal["dense", "sparse"]

CLASSES = (0, 1)
BUFFER_SIZES = (1, 5, 10, 20, 50, 100, 200)
_C = 2.0**-4  # fixed, so that the cost of choosing C is measured apart, by the default peers
_BATCH = 64  # rows of a step of LibAUC, which needs both classes in each


class Learner:
    """A peer that learns from one stream; a subclass says how it learns and scores.

    Attributes
    ----------
    batch : bool
        Whether it learns from all rows at once, in `finish`.
    passes : int
        How often a `batch` learner goes over them.
    tries : int
        How often `finish` is timed, of which the shortest counts: after other processes had their
        turn, a single pass would also measure how long it takes to have the rows in the caches.
    matrices : bool
        Whether matrix products should take most of its time, so that their rate is measured too.
    learned : int or None
        Rows of the last chunk that it learned from, if not all.
    """

    batch = False
    passes = 1
    tries = 1
    matrices = False
    learned: int | None = None

    def prepare(self, X: Any, y: NDArray[np.int64]) -> Any:
        """Return rows in the form that the library takes; not timed."""
        return X, y

    def learn(self, rows: Any) -> None:
        """Go on learning from prepared rows; this is timed."""
        raise NotImplementedError

    def gather(self) -> None:
        """Make the last preparations for `finish`; not timed."""

    def finish(self) -> None:
        """Do what needs all rows at once; timed if `batch`."""

    def scores(self, X: Any) -> NDArray[np.float64] | None:
        """Return the score of each row, or None if not all rows were learned from."""
        raise NotImplementedError

    def counts(self) -> tuple[int, int]:
        """Return CBR's pairs so far, and how many of them fired, that is, changed the model."""
        return 0, 0

    def difference(self) -> float:
        """Return the largest relative difference from `CBRanker`, for those that should equal it."""
        return math.nan


class AtOnce(Learner):
    """An estimator that learns from all rows by one call of `fit`, those of the lead-in too."""

    batch = True
    model: Any

    def __init__(self) -> None:
        self.chunks: list[Any] = []

    def learn(self, rows: Any) -> None:
        """Keep the rows."""
        self.chunks.append(rows)

    def gather(self) -> None:
        """Put all rows into one matrix."""
        X, y = zip(*self.chunks, strict=True)
        stack = sparse.vstack if sparse.issparse(X[0]) else np.concatenate
        self.chunks = [(stack(X), np.concatenate(y))]

    def finish(self) -> None:
        """Fit once."""
        self.model.fit(*self.chunks[0])

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the ranking scores, signed distances or log-odds."""
        return np.asarray(self.model.decision_function(X))


# cbrank -------------------------------------------------------------------------------------------


def has_learned(ranker: Any) -> bool:
    """Say whether a ranker has learned from any row."""
    return hasattr(ranker, "classes_")


class CBR(Learner):
    """`CBRanker.partial_fit`, a chunk at a time."""

    def __init__(self, **parameters: Any) -> None:
        from cbrank import CBRanker  # noqa: PLC0415

        self.ranker = CBRanker(**parameters, random_state=0)
        self.matrices = self.ranker.covariance == "full"

    def learn(self, rows: Any) -> None:
        """Learn from a chunk."""
        X, y = rows
        self.ranker.partial_fit(X, y, CLASSES)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the ranking scores."""
        return np.asarray(self.ranker.decision_function(X))

    def counts(self) -> tuple[int, int]:
        """Return the pairs so far, and how many of them fired."""
        ranker = self.ranker
        return (ranker.n_pairs_, ranker.n_updates_) if has_learned(ranker) else (0, 0)


class CBRByRow(CBR):
    """`CBRanker.learn_one`, a row at a time."""

    def learn(self, rows: Any) -> None:
        """Learn from the rows of a chunk, one after the other."""
        for x, y in zip(*rows, strict=True):
            self.ranker.learn_one(x, y, classes=None if has_learned(self.ranker) else CLASSES)


class CBRAtOnce(AtOnce):
    """`CBRanker.fit`, one pass in the order of the rows."""

    tries = 3

    def __init__(self, **parameters: Any) -> None:
        from cbrank import CBRanker  # noqa: PLC0415

        super().__init__()
        self.model = CBRanker(**parameters, shuffle=False, random_state=0)

    def counts(self) -> tuple[int, int]:
        """Return the pairs, and how many of them fired."""
        ranker = self.model
        return (ranker.n_pairs_, ranker.n_updates_) if has_learned(ranker) else (0, 0)


def _plain_loop(buffer_size: int) -> Learner:
    from benchmarks.plain_loop import PlainLoop  # noqa: PLC0415  (it imports Numba)

    return PlainLoop(C=_C, buffer_size=buffer_size)


# scikit-learn -------------------------------------------------------------------------------------


class SGD(Learner):
    """`SGDClassifier.partial_fit`."""

    def __init__(self, **parameters: Any) -> None:
        from sklearn.linear_model import SGDClassifier  # noqa: PLC0415

        self.classifier = SGDClassifier(**parameters, shuffle=False, random_state=0)

    def learn(self, rows: Any) -> None:
        """Learn from a chunk."""
        self.classifier.partial_fit(*rows, classes=CLASSES)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the signed distances."""
        return np.asarray(self.classifier.decision_function(X))


class SGDAtOnce(AtOnce):
    """`SGDClassifier.fit`; with more passes the call itself counts for less."""

    tries = 3

    def __init__(self, passes: int) -> None:
        from sklearn.linear_model import SGDClassifier  # noqa: PLC0415

        super().__init__()
        self.passes = passes
        self.model = SGDClassifier(
            loss="log_loss", max_iter=passes, tol=None, shuffle=False, random_state=0
        )


class BatchLogisticRegression(AtOnce):
    """`LogisticRegression.fit`."""

    def __init__(self) -> None:
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

        super().__init__()
        self.model = LogisticRegression(max_iter=1000)


# River --------------------------------------------------------------------------------------------


class RiverLogisticRegression(Learner):
    """`linear_model.LogisticRegression` with its own defaults.

    Rows are dictionaries, made before the clock starts.
    """

    def __init__(self) -> None:
        from river import linear_model  # noqa: PLC0415

        self.model: Any = linear_model.LogisticRegression()

    def prepare(self, X: Any, y: NDArray[np.int64]) -> list[tuple[dict[Any, float], bool]]:
        """Make dictionaries: all numbers of a dense row, the non-zeros of a sparse one."""
        return list(zip(self.rows(X), y.astype(bool).tolist(), strict=True))

    def rows(self, X: Any) -> list[dict[Any, float]]:
        """Return the dictionaries of rows."""
        if sparse.issparse(X):
            return [
                dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
                for row in (X[i : i + 1] for i in range(X.shape[0]))
            ]
        return [dict(enumerate(row)) for row in X.tolist()]

    def learn(self, rows: Any) -> None:
        """Learn from a chunk, one row at a time."""
        learn_one = self.model.learn_one
        for x, y in rows:
            learn_one(x, y)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities."""
        return np.array([self.model.predict_proba_one(x).get(True, 0.5) for x in self.rows(X)])


class RiverAdPredictor(RiverLogisticRegression):
    """`linear_model.AdPredictor`, a Gaussian for each weight.

    It looks only at which features are present, not at their values. So each column of dense rows
    is cut into ten bins at the deciles of the first chunk, and the bins are the features; that is
    not timed.
    """

    def __init__(self) -> None:
        from river import linear_model  # noqa: PLC0415

        self.model = linear_model.AdPredictor()
        self.edges: list[NDArray[np.float64]] = []

    def rows(self, X: Any) -> list[dict[Any, float]]:
        """Return the dictionaries of the bins that rows fall into."""
        if sparse.issparse(X):
            return super().rows(X)
        if not self.edges:
            self.edges = [np.unique(np.quantile(column, np.arange(0.1, 1, 0.1))) for column in X.T]
        bins = [
            np.searchsorted(edges, column) for edges, column in zip(self.edges, X.T, strict=True)
        ]
        return [dict.fromkeys(enumerate(row), 1.0) for row in np.array(bins).T.tolist()]


# Vowpal Wabbit ------------------------------------------------------------------------------------


class VowpalWabbit(Learner):
    """Its Python wheel with logistic loss and otherwise its own defaults.

    Examples are parsed before the clock starts.
    """

    def __init__(self) -> None:
        import vowpalwabbit  # noqa: PLC0415

        self.workspace = vowpalwabbit.Workspace(
            "--loss_function logistic --bit_precision 18 --quiet"
        )

    def prepare(self, X: Any, y: NDArray[np.int64]) -> list[Any]:
        """Parse examples."""
        texts = zip(vowpal_features(X), y.tolist(), strict=True)
        return [self.workspace.parse(f"{1 if label else -1} | {text}") for text, label in texts]

    def learn(self, rows: Any) -> None:
        """Learn from a chunk, one example at a time."""
        learn = self.workspace.learn
        for example in rows:
            learn(example)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores."""
        return np.array([self.workspace.predict(f"| {text}") for text in vowpal_features(X)])


def vowpal_features(X: Any) -> list[str]:
    """Write rows in Vowpal Wabbit's text format; nine digits are all that single precision holds."""
    rows = sparse.csr_array(X)
    numbers = list(zip(rows.indices.tolist(), rows.data.tolist(), strict=True))
    begins = rows.indptr.tolist()
    return [
        " ".join(f"{index}:{value:.9g}" for index, value in numbers[begin:end])
        for begin, end in pairwise(begins)
    ]


# LibAUC -------------------------------------------------------------------------------------------


class LibAUC(Learner):
    """`PairwiseAUCLoss` with its own defaults on a linear model, an Adam step for each 64 rows."""

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


# The list -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    """A learner that is compared with others.

    Attributes
    ----------
    name : str
        Its name in tables.
    make : callable
        Makes its `Learner`, in the process that is measured.
    takes : tuple of {"dense", "sparse"}
        The kinds of rows that it can learn from.
    needs : dict of str to str
        Modules that must be installed, and how to get them.
    """

    name: str
    make: Callable[[], Learner]
    takes: tuple[Kind, ...] = ("dense", "sparse")
    needs: dict[str, str] = field(default_factory=dict)

    def missing(self) -> str:
        """Say why it cannot run here; nothing if it can."""
        return why_missing(self.needs)


def why_missing(needs: dict[str, str]) -> str:
    """Name the first of some modules that is not installed, and how to get it.

    Examples
    --------
    >>> why_missing({"json": "", "no_such_module": "there is no cure"})
    'no no_such_module: there is no cure'
    """
    absent = [module for module in needs if find_spec(module) is None]
    return f"no {absent[0]}: {needs[absent[0]]}" if absent else ""


RIVER = {"river": "pip install river"}
VOWPAL_WABBIT = {"vowpalwabbit": "pip install vowpalwabbit"}
_LIBAUC = {
    "torch": "install a CPU build of PyTorch, as the default one brings CUDA packages",
    "libauc": (
        "pip install --no-deps libauc tqdm, as what it requires brings CUDA packages and a "
        "hundred others"
    ),
}
_DIAGONAL: dict[str, Any] = {"C": _C, "covariance": "diagonal"}

_PEERS = [
    *[Peer(f"CBR {M}", partial(CBR, C=_C, buffer_size=M), ("dense",)) for M in BUFFER_SIZES],
    *[Peer(f"CBR-diag {M}", partial(CBR, **_DIAGONAL, buffer_size=M)) for M in BUFFER_SIZES],
    *[
        Peer(f"CBR {M}, no averaging", partial(CBR, C=_C, buffer_size=M, average=False), ("dense",))
        for M in (50, 10)
    ],
    *[
        Peer(f"CBR {M}, sparse rows", partial(CBR, C=_C, buffer_size=M), ("sparse",))
        for M in (50, 10)
    ],
    Peer("CBR 10, row by row", partial(CBRByRow, C=_C, buffer_size=10), ("dense",)),
    Peer("CBR default", CBR, ("dense",)),
    Peer("CBR fixed C", partial(CBR, C=_C), ("dense",)),
    Peer("CBR 50, C auto", partial(CBR, C="auto", buffer_size=50), ("dense",)),
    Peer("CBR-diag default", partial(CBR, covariance="diagonal")),
    Peer("CBR-diag 50, one call", partial(CBRAtOnce, **_DIAGONAL, buffer_size=50)),
    *[Peer(f"Plain loop {M}", partial(_plain_loop, M), ("dense",)) for M in (50, 10)],
    Peer("SGD", partial(SGD, loss="log_loss")),
    Peer("SGD hinge", partial(SGD, loss="hinge")),
    Peer("SGD averaged", partial(SGD, loss="log_loss", average=True)),
    Peer("SGD, one call", partial(SGDAtOnce, 1)),
    Peer("SGD, ten passes", partial(SGDAtOnce, 10)),
    Peer("Batch LR", BatchLogisticRegression),
    Peer("River LR", RiverLogisticRegression, needs=RIVER),
    Peer("River AdPredictor", RiverAdPredictor, needs=RIVER),
    Peer("Vowpal Wabbit", VowpalWabbit, needs=VOWPAL_WABBIT),
    Peer("LibAUC", LibAUC, ("dense",), needs=_LIBAUC),
]
PEERS = {peer.name: peer for peer in _PEERS}
