"""The methods: each gives probabilities for rows, then learns from them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import (
    CLASSES,
    RIVER,
    VOWPAL_WABBIT,
    has_learned,
    vowpal_features,
    why_missing,
)

Group = Literal["cbrank", "peers", "options"]

_AT_A_TIME = 10


class Learner:
    """A method on one stream; a subclass says how it predicts and learns.

    Attributes
    ----------
    rows : int
        How many rows it predicts before it learns from them.
    """

    rows = 1

    def prepare(self, X: NDArray[np.float64], y: NDArray[np.int64]) -> list[Any]:
        """Return blocks of `rows` rows in the form that the library takes; not timed."""
        begins = range(0, len(y), self.rows)
        return [(X[begin : begin + self.rows], y[begin : begin + self.rows]) for begin in begins]

    def predict(self, block: Any) -> Any:
        """Return the probability that a row is positive, for each of a block; timed."""
        raise NotImplementedError

    def learn(self, block: Any) -> None:
        """Learn from a block; timed."""
        raise NotImplementedError

    def reported(self) -> float:
        """Return the AUC that it reports of itself; NaN if it reports none."""
        return math.nan


class CBR(Learner):
    """`CBRanker`, or another ranker, with raw columns: `predict_proba`, then `partial_fit`."""

    rows = _AT_A_TIME

    def __init__(self, ranker: str = "CBRanker", **parameters: Any) -> None:
        import cbrank  # noqa: PLC0415

        self.ranker: Any = getattr(cbrank, ranker)(**parameters, random_state=0)

    def predict(self, block: Any) -> Any:
        """Return the probabilities of a block."""
        return self.ranker.predict_proba(block[0])[:, 1]

    def learn(self, block: Any) -> None:
        """Learn from a block."""
        self.ranker.partial_fit(*block, CLASSES)

    def reported(self) -> float:
        """Return `progressive_auc_`."""
        return float(self.ranker.progressive_auc_)


class CBRByRow(CBR):
    """`CBRanker` with raw columns: `predict_proba` of one row, then `learn_one`."""

    rows = 1

    def learn(self, block: Any) -> None:
        """Learn from a row."""
        X, y = block
        classes = None if has_learned(self.ranker) else CLASSES
        self.ranker.learn_one(X[0], y[0], classes=classes)


class River(Learner):
    """A classifier of River, a row at a time.

    Rows are dictionaries, made before the clock starts.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.model = make()

    def prepare(self, X: NDArray[np.float64], y: NDArray[np.int64]) -> list[Any]:
        """Make dictionaries."""
        rows = [dict(enumerate(row)) for row in X.tolist()]
        return list(zip(rows, y.astype(bool).tolist(), strict=True))

    def predict(self, block: Any) -> float:
        """Return the probability of a row; one half if the model says nothing."""
        shares = self.model.predict_proba_one(block[0])
        return float(shares.get(True, 1.0 - shares.get(False, 0.5)))

    def learn(self, block: Any) -> None:
        """Learn from a row."""
        self.model.learn_one(*block)


def _river_regression() -> Any:
    from river import linear_model, preprocessing  # noqa: PLC0415

    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def _river_tree() -> Any:
    from river import tree  # noqa: PLC0415

    return tree.HoeffdingAdaptiveTreeClassifier(seed=0)


def river_forest() -> Any:
    from river import forest  # noqa: PLC0415

    return forest.ARFClassifier(n_models=10, seed=0)


class SGD(Learner):
    """`SGDClassifier` after a `StandardScaler`, both by `partial_fit`."""

    def __init__(self, rows: int) -> None:
        from sklearn.linear_model import SGDClassifier  # noqa: PLC0415
        from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

        self.rows = rows
        self.scaler = StandardScaler()
        self.classifier = SGDClassifier(loss="log_loss", shuffle=False, random_state=0)

    def predict(self, block: Any) -> Any:
        """Return the probabilities of a block, scaled by what was seen before it."""
        return self.classifier.predict_proba(self.scaler.transform(block[0]))[:, 1]

    def learn(self, block: Any) -> None:
        """Learn from a block."""
        X, y = block
        X = self.scaler.partial_fit(X).transform(X)
        self.classifier.partial_fit(X, y, classes=CLASSES)


class VowpalWabbit(Learner):
    """Vowpal Wabbit with logistic loss and else its own defaults or options, a row at a time.

    Examples are parsed before the clock starts. It scales columns itself.
    """

    def __init__(self, options: str = "") -> None:
        import vowpalwabbit  # noqa: PLC0415

        self.workspace = vowpalwabbit.Workspace(
            f"--loss_function logistic --link logistic --quiet {options}"
        )

    def prepare(self, X: NDArray[np.float64], y: NDArray[np.int64]) -> list[Any]:
        """Parse examples."""
        texts = zip(vowpal_features(X), y.tolist(), strict=True)
        return [self.workspace.parse(f"{1 if label else -1} | {text}") for text, label in texts]

    def predict(self, block: Any) -> float:
        """Return the probability of an example."""
        return float(self.workspace.predict(block))

    def learn(self, block: Any) -> None:
        """Learn from an example and hand it back, or the workspace would keep its memory."""
        self.workspace.learn(block)
        self.workspace.finish_example(block)


class LabelBefore(Learner):
    """No model: the label of the row before is the prediction.

    It shows how much of a stream can be predicted by whoever sees every label at once.
    """

    def __init__(self) -> None:
        self.label = 0.5

    def predict(self, block: Any) -> float:  # noqa: ARG002
        """Return the label of the row before."""
        return self.label

    def learn(self, block: Any) -> None:
        """Keep the label."""
        self.label = float(block[1][0])


@dataclass(frozen=True, eq=False)
class Method:
    """A learner that is measured on every stream.

    Attributes
    ----------
    name, title : str
        Its name on the command line, and in tables.
    group : {"cbrank", "peers", "options"}
        Whether it is `CBRanker` with its defaults, another library's, or `CBRanker` with an option.
    make : callable
        Makes its `Learner`, in the process that is measured.
    cost : float
        Rough microseconds of a row, for the time that remains.
    needs : dict of str to str
        Modules that must be installed, and how to get them.
    """

    name: str
    title: str
    group: Group
    make: Callable[[], Learner]
    cost: float
    needs: dict[str, str] = field(default_factory=dict)

    def missing(self) -> str:
        """Say why it cannot run here; nothing if it can."""
        return why_missing(self.needs)


METHODS = [
    Method("cbr", "CBR, 10 at a time", "cbrank", CBR, 120),
    Method("cbr-row", "CBR, row by row", "cbrank", CBRByRow, 500),
    Method("river-lr", "River LR", "peers", partial(River, _river_regression), 40, RIVER),
    Method("river-hat", "River HAT", "peers", partial(River, _river_tree), 250, RIVER),
    Method("river-arf", "River ARF", "peers", partial(River, river_forest), 1200, RIVER),
    Method("sgd", "SGD, 10 at a time", "peers", partial(SGD, _AT_A_TIME), 80),
    Method("sgd-row", "SGD, row by row", "peers", partial(SGD, 1), 700),
    Method("vw", "Vowpal Wabbit", "peers", VowpalWabbit, 10, VOWPAL_WABBIT),
    Method("label-before", "label of the row before", "peers", LabelBefore, 1),
    Method(
        "cbr-reservoir", '`policy="reservoir"`', "options", partial(CBR, policy="reservoir"), 120
    ),
    Method("cbr-keeping", "`forgetting=0`", "options", partial(CBR, forgetting=0), 100),
]
"""A peer of another library is a class above, if it learns in a new way, and a line here."""
