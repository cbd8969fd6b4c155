"""Calls with one row: to learn from it, to ask for its probability, and the two in turns."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from benchmarks.peers import CLASSES, RIVER, why_missing
from benchmarks.processes import Process
from benchmarks.workloads import Split, synthetic

FEATURES = 20
_LEAD_IN = 500  # rows that fill CBR's buffers
_ROWS = 500  # of a round


class Calls:
    """Times calls of a learner, inside its process; a subclass says what is called.

    Attributes
    ----------
    learn_one, predict : callable
        Learns from a row and its label, and returns the probability of a row.
    learned, asked : list
        Rows with their labels, and rows, in the form that these take.
    """

    learn_one: Callable[[Any, Any], Any]
    predict: Callable[[Any], Any]
    learned: list[tuple[Any, Any]]
    asked: list[Any]

    def learn(self, begin: int) -> float:
        """Return the microseconds of a call that learns."""
        learn_one, rows = self.learn_one, self.learned[begin : begin + _ROWS]
        with _undisturbed():
            clock = time.perf_counter()
            for x, label in rows:
                learn_one(x, label)
            return 1e6 * (time.perf_counter() - clock) / _ROWS

    def ask(self, begin: int) -> float:
        """Return the microseconds of a call that asks for a probability."""
        predict, rows = self.predict, self.asked[begin : begin + _ROWS]
        with _undisturbed():
            clock = time.perf_counter()
            for x in rows:
                predict(x)
            return 1e6 * (time.perf_counter() - clock) / _ROWS

    def both(self, begin: int) -> float:
        """Return the microseconds of a call that asks, and of one that learns from the row then."""
        learn_one, predict, part = self.learn_one, self.predict, slice(begin, begin + _ROWS)
        rows = list(zip(self.learned[part], self.asked[part], strict=True))
        with _undisturbed():
            clock = time.perf_counter()
            for (x, label), asked in rows:
                predict(asked)
                learn_one(x, label)
            return 1e6 * (time.perf_counter() - clock) / _ROWS


@contextmanager
def _undisturbed() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class RankerCalls(Calls):
    """`CBRanker`; rows are arrays."""

    def __init__(self, split: Split, **parameters: Any) -> None:
        from cbrank import CBRanker  # noqa: PLC0415

        ranker = CBRanker(**parameters, random_state=0)
        ranker.partial_fit(split.X[:_LEAD_IN], split.y[:_LEAD_IN], CLASSES)
        self.learn_one, self.predict = ranker.learn_one, ranker.predict_proba
        self.learned = list(zip(split.X, split.y.tolist(), strict=True))
        self.asked = [x.reshape(1, -1) for x in split.X]


class RiverCalls(Calls):
    """River's logistic regression, or with parameters `CBRanker` in River; rows are dictionaries."""

    def __init__(self, split: Split, **parameters: Any) -> None:
        model = _ranker_in_river(parameters) if parameters else _regression()
        self.learn_one, self.predict = model.learn_one, model.predict_proba_one
        self.asked = [dict(enumerate(row)) for row in split.X.tolist()]
        self.learned = list(zip(self.asked, split.y.astype(bool).tolist(), strict=True))
        for row, label in self.learned[:_LEAD_IN]:
            model.learn_one(row, label)


def _regression() -> Any:
    from river import linear_model  # noqa: PLC0415

    return linear_model.LogisticRegression()


def _ranker_in_river(parameters: dict[str, Any]) -> Any:
    from cbrank import CBRanker  # noqa: PLC0415
    from cbrank.river import RankingClassifier  # noqa: PLC0415

    return RankingClassifier(CBRanker(**parameters, random_state=0))


_TEN = {"C": 2.0**-4, "buffer_size": 10}
CALLERS: dict[str, tuple[type[RankerCalls | RiverCalls], dict[str, Any]]] = {
    "CBR 10": (RankerCalls, _TEN),
    "CBR 10 in River": (RiverCalls, _TEN),
    "CBR default": (RankerCalls, {}),
    "River LR": (RiverCalls, {}),
}
"""What is called, and its parameters."""

KINDS = {"learn": "`learn_one`", "ask": "`predict_proba`", "both": "one after the other"}
"""The methods of `Calls`, and what they are in tables."""


def single_rows(seed: int, quick: bool) -> list[dict[str, Any]]:
    """Measure calls with one row of 20 columns, with which about a third of the pairs fires.

    A round takes a millisecond or two, which anything else on the machine may double. So the least of
    all rounds counts.
    """
    rounds = 5 if quick else 20
    split = synthetic(FEATURES, "third", _LEAD_IN + 2 * rounds * _ROWS, 0, seed)
    taken: dict[tuple[str, str], list[float]] = {}
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(Process()).make(_made, name, split)
            for name, (calls, _) in CALLERS.items()
            if calls is RankerCalls or not why_missing(RIVER)
        }
        for turn in range(-1, rounds):  # the first one warms up
            place = max(turn, 0)
            for kind, at in (("learn", place), ("ask", place), ("both", rounds + place)):
                for name, process in processes.items():
                    cost = process.call(kind, _LEAD_IN + at * _ROWS)
                    if turn >= 0:
                        taken.setdefault((name, kind), []).append(cost)
    return [
        {"caller": name, "kind": kind, "cost": min(costs), "costs": costs}
        for (name, kind), costs in taken.items()
    ]


def _made(name: str, split: Split) -> Calls:
    calls, parameters = CALLERS[name]
    return calls(split, **parameters)
