"""The methods: each learns from some rows and scores others, or goes through a stream."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import RIVER, VOWPAL_WABBIT, vowpal_features
from benchmarks.streams import learners as streams
from benchmarks.streams.measuring import WINDOW

_LIGHTGBM = {"lightgbm": "pip install lightgbm"}
_XGBOOST, _CATBOOST = {"xgboost": "pip install xgboost"}, {"catboost": "pip install catboost"}
_EBM = {"interpret": "pip install interpret-core"}


class Fitted:
    """A method that learns from some rows and scores others; a subclass says how."""

    def prepare(self, X: Any, y: NDArray[np.int64]) -> Any:  # noqa: ARG002
        """Return rows in the form that the library takes; not timed."""
        return X

    def fit(self, rows: Any, y: NDArray[np.int64]) -> None:
        """Learn from prepared rows; timed."""
        raise NotImplementedError

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each row."""
        raise NotImplementedError

    def probabilities(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each row."""
        return self.scores(X)


class Model(Fitted):
    """An estimator with scikit-learn's API."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.model = make()

    def fit(self, rows: Any, y: NDArray[np.int64]) -> None:
        """Fit."""
        self.model.fit(rows, y)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return log-odds or probabilities."""
        if hasattr(self.model, "decision_function"):
            return np.asarray(self.model.decision_function(X))
        return self.probabilities(X)

    def probabilities(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities."""
        return np.asarray(self.model.predict_proba(X))[:, 1]


class Line(Model):
    """`CBRanker`; tables are made numbers by scikit-learn first.

    A column for each word, and for the gaps of each column that has some; gaps become means.
    """

    def __init__(self) -> None:
        from cbrank import CBRanker  # noqa: PLC0415

        super().__init__(partial(CBRanker, random_state=0))

    def fit(self, rows: Any, y: NDArray[np.int64]) -> None:
        """Fit; the table's columns too."""
        if hasattr(rows, "columns"):
            from sklearn.pipeline import make_pipeline  # noqa: PLC0415

            self.model = make_pipeline(_numbers(), self.model)
        super().fit(rows, y)


def _numbers() -> Any:
    from sklearn.compose import make_column_selector, make_column_transformer  # noqa: PLC0415
    from sklearn.impute import SimpleImputer  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder  # noqa: PLC0415

    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    numbers = SimpleImputer(add_indicator=True)
    return make_column_transformer(
        (words, make_column_selector(dtype_include="category")),
        (numbers, make_column_selector(dtype_include="number")),
    )


def _additive(**parameters: Any) -> Any:
    return import_module("cbrank").AdditiveRanker(**parameters, random_state=0)


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier  # noqa: PLC0415

    return LGBMClassifier(n_jobs=1, verbose=-1)


def _xgboost() -> Any:
    from xgboost import XGBClassifier  # noqa: PLC0415

    return XGBClassifier(n_jobs=1, enable_categorical=True, random_state=0)


class CatBoost(Model):
    """CatBoost, which wants to know the columns of words, and no gaps in them."""

    def __init__(self) -> None:
        from catboost import CatBoostClassifier  # noqa: PLC0415

        make = partial(CatBoostClassifier, thread_count=1, verbose=False, random_seed=0)
        super().__init__(partial(make, allow_writing_files=False))

    def prepare(self, X: Any, y: NDArray[np.int64]) -> Any:
        """Make a pool."""
        from catboost import Pool  # noqa: PLC0415

        if not hasattr(X, "columns"):
            return Pool(X, y)
        words = [name for name in X.columns if X[name].dtype == "category"]
        known = {name: X[name].astype(object).fillna("").astype(str) for name in words}
        return Pool(X.assign(**known), y, cat_features=words)

    def fit(self, rows: Any, y: NDArray[np.int64]) -> None:  # noqa: ARG002
        """Fit to a pool, which has the labels."""
        self.model.fit(rows)

    def probabilities(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities."""
        pool = self.prepare(X, np.zeros(len(X), np.int64))
        return np.asarray(self.model.predict_proba(pool))[:, 1]

    scores = probabilities


class Forest(Model):
    """A random forest of 300 trees; words are numbered."""

    def __init__(self) -> None:
        from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415

        super().__init__(partial(RandomForestClassifier, 300, n_jobs=1, random_state=0))

    def fit(self, rows: Any, y: NDArray[np.int64]) -> None:
        """Fit; the codes of words too."""
        if hasattr(rows, "columns"):
            from sklearn.pipeline import make_pipeline  # noqa: PLC0415

            self.model = make_pipeline(_codes(), self.model)
        super().fit(rows, y)


def _codes() -> Any:
    from sklearn.compose import make_column_selector, make_column_transformer  # noqa: PLC0415
    from sklearn.preprocessing import OrdinalEncoder  # noqa: PLC0415

    words = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    selected = make_column_selector(dtype_include="category")
    return make_column_transformer((words, selected), remainder="passthrough")


def _hist_gradient_boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415

    return HistGradientBoostingClassifier(random_state=0)


def _ebm() -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier  # noqa: PLC0415

    return ExplainableBoostingClassifier(n_jobs=1)


class River(Fitted):
    """A classifier of River, one pass in the order of the rows.

    Rows are dictionaries, made before the clock starts; gaps are left out.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.learner = streams.River(make)

    def prepare(self, X: Any, y: NDArray[np.int64]) -> list[Any]:
        """Make dictionaries."""
        if not hasattr(X, "columns"):
            return self.learner.prepare(X, y)
        rows = [
            {name: value for name, value in row.items() if value == value}  # noqa: PLR0124
            for row in X.astype(object).to_dict("records")
        ]
        return list(zip(rows, y.astype(bool).tolist(), strict=True))

    def fit(self, rows: Any, y: NDArray[np.int64]) -> None:  # noqa: ARG002
        """Learn from one row after the other."""
        for row in rows:
            self.learner.learn(row)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities."""
        rows = self.prepare(X, np.zeros(len(X), np.int64))
        return np.array([self.learner.predict(row) for row in rows])


class VowpalWabbit(Fitted):
    """Vowpal Wabbit with logistic loss and options, one pass in the order of the rows.

    Examples are parsed before the clock starts; gaps are left out.
    """

    def __init__(self, options: str) -> None:
        self.learner = streams.VowpalWabbit(options)
        self.workspace = self.learner.workspace

    def prepare(self, X: Any, y: NDArray[np.int64]) -> list[Any]:
        """Parse examples."""
        texts = zip(_vowpal_texts(X), y.tolist(), strict=True)
        return [self.workspace.parse(f"{1 if label else -1} | {text}") for text, label in texts]

    def fit(self, rows: Any, y: NDArray[np.int64]) -> None:  # noqa: ARG002
        """Learn from one example after the other."""
        for example in rows:
            self.learner.learn(example)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities."""
        return np.array([self.workspace.predict(f"| {text}") for text in _vowpal_texts(X)])


def _vowpal_texts(X: Any) -> list[str]:
    """Write rows in Vowpal Wabbit's text format: numbers with their values, words without."""
    if not hasattr(X, "columns"):
        return vowpal_features(X)
    columns = [_vowpal_column(at, X[name]) for at, name in enumerate(X.columns)]
    return [" ".join(filter(None, cells)) for cells in zip(*columns, strict=True)]


def _vowpal_column(at: int, column: Any) -> list[str]:
    if column.dtype.kind in "biuf":
        return ["" if x != x else f"{at}:{x:.9g}" for x in column.astype(float)]  # noqa: PLR0124
    words = column.astype(str).str.replace(r"[\s:|]+", "_", regex=True)
    gaps = column.isna()
    return ["" if gap else f"{at}={word}" for word, gap in zip(words, gaps, strict=True)]


class Refitted(streams.Learner):
    """An estimator on a stream: fitted anew each 1,000 rows, to all rows so far."""

    rows = WINDOW

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.model: Any = None
        self.blocks: list[Any] = []

    def predict(self, block: Any) -> Any:
        """Return the probabilities of a block; one half while there is one class."""
        return 0.5 if self.model is None else self.model.predict_proba(block[0])[:, 1]

    def learn(self, block: Any) -> None:
        """Fit to all rows so far."""
        self.blocks.append(block)
        X, y = (np.concatenate(parts) for parts in zip(*self.blocks, strict=True))
        if y.min() < y.max():
            self.model = self.make().fit(X, y)


@dataclass(frozen=True, eq=False)
class Method(streams.Method):
    """A method that is measured on data sets and on streams.

    Attributes
    ----------
    make : callable
        Makes its `Fitted`, in the process that is measured.
    stream : callable or None
        Makes its `Learner` for streams; None if streams would take it too long.
    as_read : bool
        Whether it takes tables as `pandas.read_csv` returns them.
    warm_up : int
        How many rows a throw-away learner takes before the clock starts: as many as it takes to
        load and compile all, and no more.
    """

    make: Callable[[], Any]
    stream: Callable[[], streams.Learner] | None = None
    as_read: bool = False
    warm_up: int = 1000


def _ours(name: str, title: str, cost: float, **parameters: Any) -> Method:
    return Method(
        name,
        title,
        "cbrank",
        partial(Model, partial(_additive, **parameters)),
        cost,
        stream=partial(streams.CBR, "AdditiveRanker", **parameters),
        as_read=True,
        warm_up=4000,  # few rows have bagged trees, more have boosted ones
    )


def _trees(name: str, title: str, make: Callable[[], Any], cost: float, needs: Any) -> Method:
    refitted = partial(Refitted, make)
    return Method(name, title, "peers", partial(Model, make), cost, needs, stream=refitted)


_PAIRS = "-q ::"
METHODS = [
    Method("line", "line", "cbrank", Line, 100, stream=streams.CBR),
    _ours("curves", "curves", 300, trees=0),
    _ours("trees", "curves and trees", 300),
    _trees("lightgbm", "LightGBM", _lightgbm, 50, _LIGHTGBM),
    _trees("xgboost", "XGBoost", _xgboost, 100, _XGBOOST),
    Method("catboost", "CatBoost", "peers", CatBoost, 1000, _CATBOOST),
    _trees("hgb", "HistGradientBoosting", _hist_gradient_boosting, 100, {}),
    Method("forest", "random forest", "peers", Forest, 300),
    Method("ebm", "EBM", "peers", partial(Model, _ebm), 10_000, _EBM, warm_up=50),
    Method(
        "river-arf",
        "River ARF",
        "peers",
        partial(River, streams.river_forest),
        1500,
        RIVER,
        stream=partial(streams.River, streams.river_forest),
    ),
    Method(
        "vw-pairs",
        "Vowpal Wabbit -q ::",
        "peers",
        partial(VowpalWabbit, _PAIRS),
        100,
        VOWPAL_WABBIT,
        stream=partial(streams.VowpalWabbit, _PAIRS),
    ),
]
"""A peer of another library is a class above, if it learns in a new way, and a line here."""
