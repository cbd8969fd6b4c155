"""The data, how they are read and split, a process for each method, and the measures."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.beyond.methods import Fitted, Method
from benchmarks.comparison import Folder, table_path, why_no_data_set, why_no_table
from benchmarks.processes import Process, timed
from benchmarks.streams import measuring as streams
from docs import one_class

Labels = NDArray[np.int64]
Group = Literal["benchmark", "tables", "large", "streams"]

MEASURES = ("auc", "average_precision", "log_loss", "seconds", "mib")
"""What is measured of each split: AUC, average precision, log loss, seconds of the fit, and MiB it added."""

_HOURS = 4 * 3600  # seconds for a fit: EBM may need more than one on a large table
_GAPS = ("?", "")


# Data ---------------------------------------------------------------------------------------------


class Loaded(NamedTuple):
    """Rows with their labels.

    Attributes
    ----------
    as_read : array or frame
        Rows as they are read.
    by_hand : array or frame
        The same of arrays; of frames what a person makes of them for a library that wants it: ids
        left out, gaps as gaps, numbers as numbers, words as categories.
    y : ndarray of int64
        Labels, 0 and 1.
    """

    as_read: Any
    by_hand: Any
    y: Labels

    def facts(self) -> dict[str, Any]:
        """Return what the rows are like."""
        rows, columns = self.as_read.shape
        return {"rows": rows, "features": columns, "positives": int(self.y.sum())}


@dataclass(frozen=True)
class Data:
    """Rows that are split into those to learn from and those to rank, or a stream.

    Attributes
    ----------
    name : str
        Its name on the command line, and of its data set or table.
    group : {"benchmark", "tables", "large", "streams"}
        A data set of the paper, a table with words and gaps, many rows, or a stream.
    splits : int
        How many random splits are made; 0 for streams.
    size : int
        Rough number of rows learned from in all, for the time that remains.
    most : int or None
        How many rows a split takes, if not all.
    source : str
        The name of its data set or table, if not `name`.
    label, positive : str
        A table's label and which is positive.
    ids, without : tuple of str
        Columns of a table left out by hand, and by all methods.
    """

    name: str
    group: Group
    splits: int = 10
    size: int = 5000
    most: int | None = 8000
    source: str = ""
    label: str = ""
    positive: str = ""
    ids: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def missing(self) -> str:
        """Say what is missing and where it should lie; nothing if it is there."""
        table = self.group in {"tables", "streams"}
        return (why_no_table if table else why_no_data_set)(self.source or self.name)

    def load(self) -> Loaded:
        """Return rows and labels."""
        if self.group == "streams":
            X, y = next(s for s in streams.STREAMS if s.name == self.name).load()
            return Loaded(X, X, y)
        if self.label:
            return self._read()
        X, y = one_class.load(self.source or self.name)
        return Loaded(X, X, y)

    def _read(self) -> Loaded:
        import pandas as pd  # noqa: PLC0415

        frame = pd.read_csv(table_path(self.source or self.name))
        y = (frame.pop(self.label).astype(str) == self.positive).to_numpy().astype(np.int64)
        frame = frame.drop(columns=list(self.without))
        return Loaded(frame, by_hand(frame.drop(columns=list(self.ids))), y)

    def split(self, rows: int, run: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return four fifths of the rows to learn from, in random order, and the rest."""
        order = np.random.RandomState(run).permutation(rows)[: self.most]
        cut = len(order) * 4 // 5
        return order[:cut], order[cut:]


def by_hand(frame: Any) -> Any:
    """Return a frame with gaps as gaps, numbers as numbers and words as categories.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": ["41", "?", " "], "sex": ["F", "?", "M"]})
    >>> by_hand(frame).dtypes.astype(str).to_dict()
    {'age': 'float64', 'sex': 'category'}
    """
    return frame.apply(_by_hand)


def _by_hand(column: Any) -> Any:
    import pandas as pd  # noqa: PLC0415

    if pd.api.types.is_numeric_dtype(column):
        return column
    words = column.astype(object).where(~column.astype(str).str.strip().isin(_GAPS))
    numbers = pd.to_numeric(words, errors="coerce")
    known = numbers.notna().sum() == words.notna().sum()
    return numbers if known else words.astype("category")


_SETS = (
    "glass", "ionosphere", "german", "svmguide4", "svmguide3", "heart", "australian", "diabetes",
    "vehicle", "segment", "spambase", "magic04", "cod-rna", "covtype",
)  # fmt: skip
_ROWS = {"spambase": 37_000, "magic04": 64_000, "cod-rna": 64_000, "covtype": 64_000}


def _table(name: str, size: int, label: str, positive: str, **parameters: Any) -> Data:
    return Data(name, "tables", 5, size, None, label=label, positive=positive, **parameters)


DATA = [
    *[Data(name, "benchmark", size=_ROWS.get(name, 5000)) for name in _SETS],
    _table("adult", 120_000, "income", ">50K"),
    _table("telco", 28_000, "Churn", "Yes", ids=("customerID",)),
    _table(
        "telco-no-score", 28_000, "Churn", "Yes", source="telco", ids=("customerID",),
        without=("CustomerSatisfactionScore",),
    ),
    _table("hypothyroid", 12_500, "status", "hypothyroid"),
    Data("covtype-100k", "large", 1, 80_000, 100_000, source="covtype"),
    *[Data(name, "streams", 0, size) for name, size in (("elec", 45_000), ("weather", 18_000))],
]  # fmt: skip


# Measures -----------------------------------------------------------------------------------------


class Trial:
    """A method that learns from some rows and ranks others, inside its process."""

    def __init__(self, make: Callable[[], Fitted]) -> None:
        self.make = make

    def warm_up(self, X: Any, y: Labels) -> None:
        """Let a learner that is thrown away load and compile what it needs."""
        learner = self.make()
        learner.fit(learner.prepare(X, y), y)
        learner.scores(X)

    def measure(self, X: Any, y: Labels, X_test: Any, y_test: Labels) -> list[float]:
        """Return the `MEASURES` of a split."""
        from sklearn.metrics import average_precision_score, log_loss, roc_auc_score  # noqa: PLC0415

        learner = self.make()
        seconds, mib = timed(learner.fit, learner.prepare(X, y), y)
        scores = learner.scores(X_test)
        auc, precision = roc_auc_score(y_test, scores), average_precision_score(y_test, scores)
        loss = log_loss(y_test, np.clip(learner.probabilities(X_test), 1e-15, 1 - 1e-15))
        return [float(auc), float(precision), float(loss), seconds, mib]


class Results(Folder):
    """The results, as they come.

    Parameters
    ----------
    path : Path
        The folder; it need not exist yet.
    methods : list of Method
        The methods.
    splits : int
        At most so many splits are wanted.
    """

    def __init__(self, path: Any, methods: list[Method], splits: int = 10) -> None:
        super().__init__(path, "beyond", DATA, methods)
        self.most = splits

    def has(self, subject: Data, method: Method) -> bool:
        """Say whether all splits that are wanted were measured."""
        if subject.group == "streams":
            return super().has(subject, method)
        done = self.result(subject.name, method.name).get("auc", [])
        return len(done) >= min(subject.splits, self.most)


def measure(folder: Results, data: Data, method: Method, loaded: Loaded) -> None:
    """Measure what is not in the folder yet, in a fresh process with one thread; keep each split.

    Raises
    ------
    ProcessFailed
        If the method fails; the text says why.
    """
    if data.group == "streams":
        folder.add(data.name, loaded.facts(), method.name, _on_stream(method, loaded))
        return
    X = loaded.as_read if method.as_read else loaded.by_hand
    X, y = (X.iloc if hasattr(X, "iloc") else X), loaded.y
    kept = folder.result(data.name, method.name) or {name: [] for name in MEASURES}
    with Process(timeout=_HOURS) as process:
        process.make(Trial, method.make)
        train, _ = data.split(len(y), 0)
        few = _few(y, train, method.warm_up)
        process.call("warm_up", X[few], y[few])
        for run in range(len(kept["auc"]), min(data.splits, folder.most)):
            train, test = data.split(len(y), run)
            measured = process.call("measure", X[train], y[train], X[test], y[test])
            for name, value in zip(MEASURES, measured, strict=True):
                kept[name].append(value)
            folder.add(data.name, loaded.facts(), method.name, kept)


def _few(y: Labels, rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return the first rows, and some of each class among them."""
    each = [rows[y[rows] == label][: most // 10 + 5] for label in (0, 1)]
    return np.unique(np.concatenate([rows[:most], *each]))


def _on_stream(method: Method, loaded: Loaded) -> dict[str, float]:
    from sklearn.metrics import average_precision_score  # noqa: PLC0415

    assert method.stream is not None
    X, y = loaded.as_read, loaded.y
    told = streams.foretell(method.stream, X, y)
    measured = streams.measures(y, told.probabilities)
    return {
        "window_auc": measured["window_auc"],
        "auc": measured["auc"],
        "average_precision": float(average_precision_score(y, told.probabilities)),
        "microseconds": told.microseconds,
        "mib": told.mib,
    }
